package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

func TestMain(m *testing.M) {
	if code, ok := slurmtest.ReplayCommand(os.Args); ok {
		os.Exit(code)
	}
	if code, ok := local.Standin(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == cluster.AsUserWord {
		os.Exit(cluster.AsUser(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	flag.Parse()
	if testing.Short() { // without a real Slurm tests mostly wait for processes, so sixteen run at a time
		slurmtest.TempInMemory()
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// backend lists the methods that every back end has.
type backend interface {
	Name() string
	Kind() string
	Submit(context.Context, slurm.Submission) (slurm.JobID, error)
	Job(context.Context, slurm.JobID) (slurm.Job, error)
	Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
	Cancel(context.Context, slurm.JobID) error
	Find(ctx context.Context, token string, since time.Time) (slurm.JobID, bool, error)
	Test(context.Context, slurm.Submission) (slurm.Estimate, error)
	Hold(context.Context, slurm.JobID) error
	Release(context.Context, slurm.JobID) error
	Requeue(context.Context, slurm.JobID) error
	Update(context.Context, slurm.JobID, slurm.Update) error
	Nodes(context.Context) ([]slurm.Node, error)
	Partitions(context.Context) ([]slurm.Partition, error)
	Exec(context.Context, slurm.Exec) ([]slurm.NodeOutput, error)
}

// A site is a back end together with a directory that its nodes can write to.
type site struct {
	backend
	dir     string
	environ func() []string // nil: this process's
	lacks   []string        // what this kind of back end cannot do
}

// script returns a batch script with the directives and then body.
func script(directives, body string) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for d := range strings.FieldsSeq(directives) {
		fmt.Fprintf(&b, "#SBATCH %s\n", d)
	}
	return b.String() + body + "\n"
}

// submit submits a script and returns the job's id.
func (s site) submit(t *testing.T, directives, body string, more ...func(*slurm.Submission)) slurm.JobID {
	t.Helper()
	sub := slurm.Submission{Script: script(directives, body), Dir: s.dir, LogDir: "logs"}
	for _, m := range more {
		m(&sub)
	}
	id, err := s.Submit(t.Context(), sub)
	require.NoError(t, err)
	require.True(t, slurm.IsJobID(string(id)), "%q", id)
	t.Cleanup(func() { _ = s.Cancel(context.Background(), id) })
	return id
}

// gate returns a shell command that waits until open is called, so that a job runs as
// long as its test needs.
func (s site) gate(t *testing.T) (wait string, open func()) {
	t.Helper()
	file, err := os.CreateTemp(s.dir, "shut-")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	open = func() { _ = os.Remove(file.Name()) }
	t.Cleanup(open)
	return "while [ -e " + file.Name() + " ]; do sleep 0.1; done", open
}

// until waits until ok is true for the job.
func (s site) until(t *testing.T, id slurm.JobID, what string, ok func(slurm.Job) bool) slurm.Job {
	t.Helper()
	var j slurm.Job
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var err error
		j, err = s.Job(t.Context(), id)
		require.NoError(t, err)
		if ok(j) {
			return j
		}
		if j.State.Ended() || time.Now().After(deadline) {
			require.Failf(t, "job did not come to be "+what, "%+v", j)
		}
	}
}

func (s site) state(t *testing.T, id slurm.JobID, want slurm.State) slurm.Job {
	t.Helper()
	return s.until(t, id, string(want), func(j slurm.Job) bool { return j.State == want })
}

// log reads one file of the site's directory.
func (s site) log(t *testing.T, name string) string {
	t.Helper()
	var text []byte
	require.Eventually(t, func() (ok bool) {
		var err error
		text, err = os.ReadFile(filepath.Join(s.dir, name))
		return err == nil && len(text) > 0
	}, time.Minute, 50*time.Millisecond, name)
	return string(text)
}

// behaviours are the tests that every back end must pass.
var behaviours = []struct {
	name string
	test func(t *testing.T, s site)
	need string // a part that not every kind of back end has
}{
	{"a job on two nodes runs to its end and its output is kept", func(t *testing.T, s site) {
		wait, open := s.gate(t)
		id := s.submit(t, "--job-name=pair --nodes=2 --ntasks-per-node=1 --gpus-per-node=2 --time=5 --output=logs/%x-%j.out --error=logs/%x-%j.err",
			`echo first >&2; srun --label bash -c 'echo $SLURM_NODEID of $SLURM_NNODES with $CUDA_VISIBLE_DEVICES; `+wait+`'`)
		j := s.state(t, id, slurm.Running)
		open()
		require.Len(t, j.Nodes, 2)
		require.Equal(t, "pair", j.Name)
		require.NotNil(t, j.StartedAt)
		require.NotNil(t, j.TimeLimitS)
		require.EqualValues(t, 300, *j.TimeLimitS)
		j = s.state(t, id, slurm.Completed)
		require.NotNil(t, j.EndedAt)
		require.Equal(t, filepath.Join(s.dir, "logs", fmt.Sprintf("pair-%s.out", id)), j.Stdout)
		require.Equal(t, 4, j.GPUs)
		out := s.log(t, fmt.Sprintf("logs/pair-%s.out", id))
		// Which two GPUs of a node: others may hold some.
		require.Regexp(t, `(?m)^0: 0 of 2 with \d,\d$`, out)
		require.Regexp(t, `(?m)^1: 1 of 2 with \d,\d$`, out)
		require.Contains(t, s.log(t, fmt.Sprintf("logs/pair-%s.err", id)), "first\n")
	}, ""},
	{"a failure keeps its exit code", func(t *testing.T, s site) {
		id := s.submit(t, "--time=5 --output=logs/%j.out", "exit 3")
		j := s.until(t, id, "FAILED", func(j slurm.Job) bool { return j.State == slurm.Failed && j.ExitCode != nil })
		require.Equal(t, "3:0", *j.ExitCode)
	}, ""},
	{"cancel ends a running job and may be said twice", func(t *testing.T, s site) {
		id := s.submit(t, "--time=5 --output=logs/%j.out", "echo up; sleep 100")
		log := fmt.Sprintf("logs/%s.out", id)
		s.log(t, log) // a job is running before its log is open, and then leaves none
		require.NoError(t, s.Cancel(t.Context(), id))
		s.state(t, id, slurm.Cancelled)
		require.NoError(t, s.Cancel(t.Context(), id))
		require.Eventually(t, func() bool { return strings.Contains(s.log(t, log), "CANCELLED AT") }, time.Minute, 50*time.Millisecond)
	}, ""},
	{"a job nobody knows is not found", func(t *testing.T, s site) {
		for _, id := range []slurm.JobID{"999999", "999999_3", "word", "1;2", "-1"} {
			_, err := s.Job(t.Context(), id)
			require.ErrorIs(t, err, slurm.ErrNotFound, id)
			require.ErrorIs(t, s.Cancel(t.Context(), id), slurm.ErrNotFound, id)
		}
	}, ""},
	{"a refusal keeps Slurm's words and says what to do", func(t *testing.T, s site) {
		for directive, want := range map[string]string{
			"--bogus=1":          "unrecognized option",
			"--time=soon":        "Invalid --time specification",
			"--nodes=abc":        "is not a valid node count",
			"--gpus-per-node=99": "configuration is not available",
			"--signal=NOPE":      "Invalid --signal specification",
			"--begin=never":      "Invalid --begin specification",
			"--array=5-1":        "Invalid job array specification",
			"--dependency=x":     "Job dependency problem",
		} {
			_, err := s.Submit(t.Context(), slurm.Submission{Script: script(directive, "true"), Dir: s.dir})
			require.ErrorContains(t, err, want, directive)
			require.NotEmpty(t, slurm.FixOf(err).EN, directive)
			require.NotEmpty(t, slurm.FixOf(err).ZH, directive)
		}
		_, err := s.Submit(t.Context(), slurm.Submission{Script: "echo no interpreter\n", Dir: s.dir})
		require.ErrorContains(t, err, "does not look like a batch script")
	}, ""},
	{"a token finds its job, waiting, running and ended", func(t *testing.T, s site) {
		token := fmt.Sprintf("tok%d", time.Now().UnixNano())
		since := time.Now()
		_, found, err := s.Find(t.Context(), token, since)
		require.NoError(t, err)
		require.False(t, found)
		wait, open := s.gate(t)
		id := s.submit(t, "--time=5 --output=logs/%j.out --comment=mine", wait, func(sub *slurm.Submission) {
			sub.Token = token
			sub.Args = []string{"--hold"}
		})
		find := func() {
			t.Helper()
			got, found, err := s.Find(t.Context(), token, since)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, id, got)
		}
		find()
		j, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "mine", slurm.UserComment(j.Comment))
		require.NoError(t, s.Release(t.Context(), id))
		s.state(t, id, slurm.Running)
		find()
		open()
		s.state(t, id, slurm.Completed)
		find()
	}, ""},
	{"hold and release", func(t *testing.T, s site) {
		id := s.submit(t, "--time=5 --output=logs/%j.out --begin=now+1hour", "true")
		s.until(t, id, "waiting for its time", func(j slurm.Job) bool { return j.Reason == "BeginTime" })
		require.NoError(t, s.Hold(t.Context(), id))
		s.until(t, id, "held", func(j slurm.Job) bool { return strings.HasPrefix(j.Reason, "JobHeld") })
		require.NoError(t, s.Release(t.Context(), id))
		s.until(t, id, "waiting again", func(j slurm.Job) bool { return j.Reason == "BeginTime" })
	}, ""},
	{"a dependent waits for its job and never runs after a failure", func(t *testing.T, s site) {
		wait, open := s.gate(t)
		first := s.submit(t, "--time=5 --output=logs/%j.out", wait+"; exit 1")
		ok := s.submit(t, "--time=5 --output=logs/%j.out --dependency=afterok:"+string(first), "true")
		after := s.submit(t, "--time=5 --output=logs/%j.out --dependency=afterany:"+string(first), "true")
		s.until(t, ok, "waiting", func(j slurm.Job) bool { return j.Reason == "Dependency" })
		open()
		s.state(t, first, slurm.Failed)
		s.state(t, after, slurm.Completed)
		s.until(t, ok, "hopeless", func(j slurm.Job) bool { return j.Reason == "DependencyNeverSatisfied" })
	}, ""},
	{"an array runs its elements, few at a time, and one can be cancelled", func(t *testing.T, s site) {
		wait, open := s.gate(t)
		id := s.submit(t, "--time=5 --array=1-3%1 --output=logs/%x-%A_%a.out --job-name=many", "echo element $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT; "+wait)
		two := slurm.JobID(string(id) + "_2")
		require.NoError(t, s.Cancel(t.Context(), two))
		s.state(t, two, slurm.Cancelled)
		open()
		s.state(t, slurm.JobID(string(id)+"_3"), slurm.Completed)
		require.Contains(t, s.log(t, fmt.Sprintf("logs/many-%s_3.out", id)), "element 3 of 3")
		jobs, err := s.Jobs(t.Context(), slurm.Filter{IDs: []slurm.JobID{id}, All: true, Since: time.Now().Add(-time.Hour)})
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(jobs), 2) // Slurm forgets one that never started
	}, "elements"},
	{"a signal reaches the tasks and not the batch script, and the job ends by itself", func(t *testing.T, s site) {
		b, can := s.backend.(interface {
			Signal(ctx context.Context, id slurm.JobID, name string) error
		})
		if !can {
			return
		}
		id := s.submit(t, "--job-name=saves --time=5 --output=logs/%x-%j.out",
			`trap 'echo shell heard it' TERM; srun --ntasks=1 bash -c 'trap "echo saved; exit 0" TERM; echo up; while :; do sleep 0.1; done'; echo ended`)
		name := fmt.Sprintf("logs/saves-%s.out", id)
		require.Eventually(t, func() bool { return strings.Contains(s.log(t, name), "up") }, time.Minute, 100*time.Millisecond)
		require.NoError(t, b.Signal(t.Context(), id, "TERM"))
		s.state(t, id, slurm.Completed)
		require.Regexp(t, `(?s)up.*saved.*ended`, s.log(t, name))
		require.NotContains(t, s.log(t, name), "shell heard it")
		require.Error(t, b.Signal(t.Context(), "999999", "TERM"))
	}, ""},
	{"an array that waits tells how many tasks may run at a time", func(t *testing.T, s site) {
		for elements, limit := range map[string]int{"1-3%2": 2, "1-3": 0} {
			id := s.submit(t, "--time=5 --hold --output=/dev/null --array="+elements, "true")
			for _, asked := range []slurm.JobID{id, id + "_3"} {
				j, err := s.Job(t.Context(), asked)
				require.NoError(t, err)
				require.Equal(t, slurm.Pending, j.State)
				require.Equal(t, limit, j.ArrayLimit, "%s of --array=%s", asked, elements)
			}
		}
	}, ""},
	{"a heterogeneous job runs as one, is found by its token and ended as one", func(t *testing.T, s site) {
		text := "#!/bin/bash\n#SBATCH --job-name=het --nodes=1 --gpus-per-node=2 --cpus-per-task=2 --time=5 --output=logs/%x-%j.out\n" +
			"#SBATCH hetjob\n#SBATCH --partition=prod --nodes=2 --ntasks-per-node=1 --gpus-per-node=1 --time=5\n" +
			"unset SLURM_NTASKS SLURM_NPROCS SLURM_TRES_PER_TASK SLURM_CPUS_PER_TASK\n" +
			`srun --het-group=0,1 --ntasks-per-node=1 bash -c 'echo "$SLURM_NODEID of $SLURM_NNODES"; eval "$1"' _ `
		run := func(then, token string) slurm.JobID {
			id, err := s.Submit(t.Context(), slurm.Submission{Script: text + "'" + then + "'\n", Dir: s.dir, LogDir: "logs", Token: token})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Cancel(context.Background(), id) })
			return id
		}
		token := fmt.Sprintf("tok%d", time.Now().UnixNano())
		wait, open := s.gate(t)
		id := run(wait, token)
		got, found, err := s.Find(t.Context(), token, time.Now())
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, id, got)
		j := s.state(t, id, slurm.Running)
		require.Equal(t, 3, j.NumNodes)
		require.Len(t, j.Nodes, 3)
		require.Equal(t, 4, j.GPUs)
		open()
		s.state(t, id, slurm.Completed)
		out := s.log(t, fmt.Sprintf("logs/het-%s.out", id))
		for _, line := range []string{"0 of 3\n", "1 of 3\n", "2 of 3\n"} {
			require.Contains(t, out, line)
		}
		id = run("sleep 100", "")
		s.state(t, id, slurm.Running)
		require.NoError(t, s.Cancel(t.Context(), id))
		s.state(t, id, slurm.Cancelled)
		s.state(t, id+"+1", slurm.Cancelled)
	}, "components"},
	{"lists what is queued or running, and by id, state and past", func(t *testing.T, s site) {
		held := s.submit(t, "--time=5 --output=logs/%j.out --hold", "true")
		done := s.submit(t, "--time=5 --output=logs/%j.out", "true")
		s.state(t, done, slurm.Completed)
		has := func(f slurm.Filter, id slurm.JobID) bool {
			t.Helper()
			jobs, err := s.Jobs(t.Context(), f)
			require.NoError(t, err)
			for _, j := range jobs {
				if j.ID == id {
					require.Equal(t, s.Name(), j.Cluster)
					return true
				}
			}
			return false
		}
		require.True(t, has(slurm.Filter{}, held))
		require.False(t, has(slurm.Filter{}, done))
		require.True(t, has(slurm.Filter{IDs: []slurm.JobID{held}}, held))
		require.False(t, has(slurm.Filter{IDs: []slurm.JobID{done}}, held))
		require.False(t, has(slurm.Filter{States: []slurm.State{slurm.Running}}, held))
		require.Eventually(t, func() bool {
			return has(slurm.Filter{Since: time.Now().Add(-time.Minute)}, done)
		}, 10*time.Second, 100*time.Millisecond)
		require.False(t, has(slurm.Filter{User: "nobody-of-this-name"}, held))
	}, ""},
	{"trying a submission tells the start and queues nothing", func(t *testing.T, s site) {
		e, err := s.Test(t.Context(), slurm.Submission{Script: script("--nodes=2 --time=5 --job-name=tried", "true"), Dir: s.dir})
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), e.Start, 2*time.Hour)
		jobs, err := s.Jobs(t.Context(), slurm.Filter{All: true})
		require.NoError(t, err)
		for _, j := range jobs {
			require.NotEqual(t, "tried", j.Name)
		}
		_, err = s.Test(t.Context(), slurm.Submission{Script: script("--gpus-per-node=99", "true"), Dir: s.dir})
		require.ErrorIs(t, err, slurm.ErrRejected)
	}, "test"},
	{"the time limit of a job can be changed", func(t *testing.T, s site) {
		id := s.submit(t, "--time=50 --hold --output=logs/%j.out", "true")
		require.NoError(t, s.Update(t.Context(), id, slurm.Update{TimeLimit: 10 * time.Minute}))
		require.NoError(t, s.Release(t.Context(), id))
		s.until(t, id, "changed", func(j slurm.Job) bool { return *j.TimeLimitS == 600 })
	}, ""},
	{"nodes and partitions are listed with their GPUs", func(t *testing.T, s site) {
		id := s.submit(t, "--time=5 --gpus-per-node=2 --output=logs/%j.out", "sleep 30")
		j := s.state(t, id, slurm.Running)
		nodes, err := s.Nodes(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(nodes), 4)
		var mine slurm.Node
		for _, n := range nodes {
			if n.Name == j.Nodes[0] {
				mine = n
			}
		}
		require.GreaterOrEqual(t, mine.GPUs, mine.GPUsUsed)
		require.GreaterOrEqual(t, mine.GPUsUsed, 2)
		require.Contains(t, []string{"mixed", "mixed-", "allocated", "completing"}, mine.State) // another job may be ending there
		require.NotEmpty(t, mine.Partitions)
		partitions, err := s.Partitions(t.Context())
		require.NoError(t, err)
		p := partitions[0]
		require.True(t, p.Default && p.Up, "%+v", p)
		require.Equal(t, len(nodes), p.Total)
		require.Equal(t, p.Total, p.Allocated+p.Idle+p.Other)
		if s.Kind() == "local" {
			require.Equal(t, []string{slurm.Embedded}, p.Features, "nobody takes it for a cluster")
			require.Zero(t, nodes[len(nodes)-1].GPUs, "what is not there is not free")
		} else {
			require.Equal(t, 8, mine.GPUs)
			require.Equal(t, 8, p.GPUs)
		}
	}, ""},
	{"a command runs on every node of a running job, beside its step", func(t *testing.T, s site) {
		id := s.submit(t, "--time=5 --nodes=2 --ntasks-per-node=1 --gpus-per-node=1 --output=logs/%j.out", "srun sleep 30")
		_, err := s.Exec(t.Context(), slurm.Exec{Job: "999999", Argv: []string{"true"}})
		require.ErrorIs(t, err, slurm.ErrNotFound)
		j := s.state(t, id, slurm.Running)
		outs, err := s.Exec(t.Context(), slurm.Exec{Job: id, Argv: []string{"bash", "-c", `echo "at $SLURMD_NODENAME, GPUs: ${CUDA_VISIBLE_DEVICES-none} $1"`, "x", "$(id) 'y'"}})
		require.NoError(t, err)
		require.Len(t, outs, 2)
		for i, o := range outs {
			require.Equal(t, j.Nodes[i], o.Node)
			require.Equal(t, "at "+o.Node+", GPUs: none $(id) 'y'\n", o.Text)
		}
		outs, err = s.Exec(t.Context(), slurm.Exec{Job: id, Nodes: j.Nodes[1:], Argv: []string{"false"}})
		require.Error(t, err)
		require.Equal(t, j.Nodes[1], outs[0].Node)
		_, err = s.Exec(t.Context(), slurm.Exec{Job: id, Argv: []string{"sleep", "60"}, Limit: time.Second})
		require.ErrorContains(t, err, "ended after 1s, which is its limit")
		_, err = s.Exec(t.Context(), slurm.Exec{Job: id, Nodes: []string{"elsewhere"}, Argv: []string{"true"}})
		require.ErrorContains(t, err, "elsewhere is not one of the job's nodes")
	}, "exec"},
	{"a running job can be put back into the queue", func(t *testing.T, s site) {
		id := s.submit(t, "--time=5 --requeue --output=logs/%j.out", "sleep 100")
		s.state(t, id, slurm.Running)
		require.NoError(t, s.Requeue(t.Context(), id))
		s.until(t, id, "restarted", func(j slurm.Job) bool {
			return j.Restarts == 1 && (j.State == slurm.Pending || j.State == slurm.Running)
		})
	}, "requeue"},
	{"strangers' text in a name stays a name", func(t *testing.T, s site) {
		name := "a|b 'c' \"d\" $(touch pwned) `x` ; 4711|COMPLETED"
		id := s.submit(t, "--time=5 --hold --output=logs/%j.out", "true", func(sub *slurm.Submission) { sub.Args = []string{"--job-name=" + name} })
		j, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, name, j.Name)
		require.Equal(t, slurm.Pending, j.State)
		require.NoFileExists(t, filepath.Join(s.dir, "pwned"))
	}, ""},
	{"a job does not see our secrets", func(t *testing.T, s site) {
		id := s.submit(t, "--time=5 --output=logs/%j.out", `env | cut -d= -f1 | sort`, func(sub *slurm.Submission) {
			sub.Env = append(environ(s), "SLACK_BOT_TOKEN=x", "OPENAI_API_KEY=x", "SLURM_JWT=x", "MEGATRON_OPS_STATE_DIR=x", "KEPT=x")
		})
		s.state(t, id, slurm.Completed)
		out := s.log(t, fmt.Sprintf("logs/%s.out", id))
		require.Contains(t, out, "KEPT\n")
		require.Contains(t, out, "SLURM_JOB_ID\n")
		for _, secret := range []string{"SLACK_BOT_TOKEN", "OPENAI_API_KEY", "SLURM_JWT", "MEGATRON_OPS_STATE_DIR"} {
			require.NotContains(t, out, secret)
		}
	}, ""},
}

// conform runs the tests of all behaviours, or of those whose number only selects.
func conform(t *testing.T, s site, only ...func(int) bool) {
	for i, b := range behaviours {
		if slices.Contains(s.lacks, b.need) || len(only) > 0 && !only[0](i) {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.test(t, s)
		})
	}
}

func TestLocalConforms(t *testing.T) {
	t.Parallel()
	conform(t, site{backend: local.New("here", slurmtest.Dir(t)), dir: slurmtest.Dir(t), lacks: []string{"components"}})
}
