package job_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestASweepIsEveryCombination(t *testing.T) {
	t.Parallel()
	s := twoNodes("--lr", "1", "--save", "/ckpt/", "--load", "/base", "--tensorboard-dir=/tb")
	s.Env = map[string]string{"T_X": "0"}
	s.Sweep = []string{"--lr=1e-4,a/b", "micro_batch_size=2..6..2", "env.T_X=1,2"}
	points := s.Points()
	require.Len(t, points, 2*3*2)
	require.Equal(t, "lr=1e-4 micro-batch-size=2 env.T_X=1", points[0].String())
	require.Equal(t, "lr=1e-4 micro-batch-size=2 env.T_X=2", points[1].String())
	require.Equal(t, "lr=a/b micro-batch-size=6 env.T_X=2", points[11].String())
	require.Equal(t, append(s.Args, "--lr", "1e-4", "--micro-batch-size", "4", "--save", "/ckpt/lr-1e-4_micro-batch-size-4_T_X-1",
		"--tensorboard-dir", "/tb/lr-1e-4_micro-batch-size-4_T_X-1"), points[2].Spec.Args)
	require.Equal(t, "1", points[2].Spec.Env["T_X"])
	require.Equal(t, "0", s.Env["T_X"], "what was given stays as it is")
	require.Empty(t, points[2].Spec.Sweep)
	require.Empty(t, points[2].Spec.Array)
	folders := map[string]bool{}
	for _, p := range points {
		folders[p.Spec.Args[len(p.Spec.Args)-1]] = true
	}
	require.Len(t, folders, 12, "no two points share a folder")

	s.Sweep = []string{"save=/a,/b", "seed=1..3"}
	require.Equal(t, []string{"--save", "/a", "--seed", "2", "--tensorboard-dir", "/tb/save--a-1_seed-2"}, s.Points()[1].Spec.Args[len(s.Args):])
	require.Empty(t, twoNodes().Points())
}

func TestEachElementOfASweepRunsItsPoint(t *testing.T) {
	t.Parallel()
	s := bareLaunch("--lr", "1", "--wandb-project", "p")
	s.Sweep = []string{`lr=1e-4,$(touch "$CANARY"),it's`, "seed=-1..0", "env.T_X=a b,'"}
	s.Container = job.Container{Runtime: job.Docker, Image: "a"}
	for i, p := range s.Points() {
		if i%3 != 0 {
			continue
		}
		r := execute(t, s, job.Options{}, fmt.Sprint("SLURM_ARRAY_TASK_ID=", i), "SLURM_ARRAY_JOB_ID=40")
		require.Zero(t, r.code, r.output)
		require.Contains(t, r.output, fmt.Sprintf("sweep: point %d: %s\n", i, p))
		ranks := r.of("python")
		require.Len(t, ranks, 2)
		for _, c := range ranks {
			require.Equal(t, p.Spec.Args, c.Argv[len(c.Argv)-len(p.Spec.Args):])
			require.Equal(t, p.Spec.Env["T_X"], c.Env["T_X"])
			require.Equal(t, fmt.Sprint("gpt-40_", i), c.Env["WANDB_RUN_ID"])
		}
	}
	r := execute(t, s, job.Options{}, "SLURM_ARRAY_TASK_ID=99", "SLURM_ARRAY_JOB_ID=40")
	require.Equal(t, 3, r.code)
	require.Empty(t, r.of("python"), "no point, no run")

	script, err := job.Render(s, job.Options{})
	require.NoError(t, err)
	require.Contains(t, script.Text, "#SBATCH --array=0-11\n")
	require.Contains(t, script.LogPaths[0], "%A_%a")
}

func TestASweepThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"lr":                        "gives no values",
		"lr=":                       "gives no values",
		"lr=1,,2":                   "has an empty value",
		"lr=1,1":                    `gives "1" twice`,
		"seed=4..1":                 "counts down",
		"a b=1":                     "names neither a flag nor a variable",
		"env.A B=1":                 "names neither a flag nor a variable",
		"env.BASH_ENV=/x":           "may not be set",
		"env.MASTER_PORT=1,2":       "is set by the script",
		"env.HF_TOKEN=x":            "looks like a secret",
		"seed=1..1001":              "makes more than 1000 points",
		"seed=1..999999999":         "makes more than 1000 points",
		"lr=1\n2":                   "contains the invisible character",
		"seed=1..999999999..999999": "makes more than 1000 points",
	} {
		s := twoNodes()
		s.Sweep = []string{text}
		errs := s.Validate()
		require.NotEmpty(t, errs, text)
		require.ErrorContains(t, errs[0], says)
		require.Contains(t, errs[0].Field, "sweep")
		require.Empty(t, s.Points())
	}
	for name, change := range map[string]func(*job.Spec){
		"sweep": func(s *job.Spec) { s.Sweep = []string{"lr=1,2", "--lr=3"} },
		"array": func(s *job.Spec) { s.Array = "0-5" },
		"chain": func(s *job.Spec) { s.Chain = new(2) },
		"every": func(s *job.Spec) { s.Every = "daily" },
		"train": func(s *job.Spec) { s.Train = "a.sh" },
	} {
		s := twoNodes()
		s.Sweep = []string{"lr=1,2"}
		change(&s)
		errs := s.Validate()
		require.Len(t, errs, 1, name)
		require.Equal(t, name, errs[0].Field)
	}
	s := twoNodes()
	s.Sweep, s.Array = []string{"lr=1,2"}, "0-1%1"
	require.Empty(t, s.Validate(), "an array of as many elements says how many run at once")
}

// A tracked run keeps its name across requeues, the jobs of a chain, and the elements of
// an array that run one at a time.
func TestATrackedRunKeepsItsName(t *testing.T) {
	t.Parallel()
	tracked := func(change func(*job.Spec), settings ...string) map[string]string {
		s := bareLaunch("--wandb-project", "p")
		change(&s)
		r := execute(t, s, job.Options{}, settings...)
		require.Zero(t, r.code, r.output)
		return r.of("python")[1].Env
	}
	none := func(*job.Spec) {}
	env := tracked(none)
	require.Equal(t, "gpt-42", env["WANDB_RUN_ID"])
	require.Equal(t, "allow", env["WANDB_RESUME"])
	require.Equal(t, "gpt-42", tracked(none, "SLURM_RESTART_COUNT=2")["WANDB_RUN_ID"])
	require.Equal(t, "mine", tracked(none, "WANDB_RUN_ID=mine")["WANDB_RUN_ID"])
	require.Equal(t, "own", tracked(func(s *job.Spec) { s.Env = map[string]string{"WANDB_RUN_ID": "own"} })["WANDB_RUN_ID"])
	array := []string{"SLURM_ARRAY_JOB_ID=40", "SLURM_ARRAY_TASK_ID=2"}
	require.Equal(t, "gpt-40", tracked(func(s *job.Spec) { s.Array = "1-3%1" }, array...)["WANDB_RUN_ID"])
	require.Equal(t, "gpt-40_2", tracked(func(s *job.Spec) { s.Array = "1-3" }, array...)["WANDB_RUN_ID"])
	require.Empty(t, tracked(func(s *job.Spec) { s.Args = nil })["WANDB_RUN_ID"], "nobody tracks it")
	require.Equal(t, "gpt-42", tracked(func(s *job.Spec) { s.Env = map[string]string{"MLFLOW_TRACKING_URI": "x"} })["MLFLOW_RUN_NAME"])

	s := bareLaunch("--wandb-project", "p")
	s.Chain = new(3)
	r := execute(t, s, job.Options{})
	require.Equal(t, "gpt-42", r.of("sbatch")[0].Env["WANDB_RUN_ID"], "the next job of the chain inherits it")
}
