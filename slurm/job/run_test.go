package job_test

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func twoNodes(args ...string) job.Spec {
	return job.Spec{Name: "gpt", Nodes: new(2), GPUsPerNode: new(8), Worktree: "/shared/tree", Args: args}
}

// bareLaunch is twoNodes without guards and traces, started by Python. Its script runs
// a third of the processes: it is for tests that are about another part of the script.
func bareLaunch(args ...string) job.Spec {
	s := twoNodes(args...)
	s.Launcher, s.Guards, s.Monitor = job.Python, new(false), new(false)
	return s
}

func TestTheLaunchLineOfEveryNode(t *testing.T) {
	t.Parallel()
	r := execute(t, twoNodes("--lr", "3e-4"), job.Options{})
	require.Zero(t, r.code, r.output)
	ranks := r.of("python")
	require.Len(t, ranks, 2)
	for node, c := range ranks {
		require.Equal(t, []string{
			"-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=8", fmt.Sprint("--node-rank=", node),
			"--master-addr=node0", "--master-port=29500", fmt.Sprintf("--role=node%d:", node), "--tee=3",
			fmt.Sprintf("--log-dir=%s/logs/42/attempt-0/node%d", r.dir, node), "pretrain_gpt.py", "--lr", "3e-4",
		}, c.Argv)
		require.Equal(t, "16", c.Env["WORLD_SIZE"])
		require.Equal(t, "1", c.Env["PYTHONFAULTHANDLER"])
		require.Equal(t, r.dir, c.Dir)
		require.FileExists(t, filepath.Join(r.dir, "logs/42/attempt-0", fmt.Sprint("start-", node)))
	}
	require.Contains(t, r.output, "start: attempt=0 node=1 host=node1 ranks=8-15 commit=")
}

func TestMinimalIsTheBareSkeleton(t *testing.T) {
	t.Parallel()
	r := execute(t, twoNodes(), job.Options{Minimal: true})
	require.Zero(t, r.code, r.output)
	require.Empty(t, r.output)
	require.Equal(t, []string{"--ntasks=2", "--ntasks-per-node=1", "bash", "-c"}, r.of("srun")[0].Argv[:4])
	require.Equal(t, "pretrain_gpt.py", r.of("python")[1].Argv[7])
}

// startedElsewhere are golden scripts whose features have tests of their own that run
// them: an image, a chain, a series, a signal, a node check, a sweep, hostile values.
var startedElsewhere = strings.Fields("apptainer.registry chain c10d custom enroot.named every gpu-use hostfile nodecheck plain plain.minimal pyxis.registry signal " +
	"sweep tracked values")

func TestEveryGoldenScriptStartsItsProgramOnEveryNode(t *testing.T) {
	t.Parallel()
	for name, spec := range goldenSpecs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if spec.Train != "" {
				t.Log("the sourced script starts the program")
				return
			}
			if testing.Short() && slices.Contains(startedElsewhere, name) {
				t.Skip("without -short: another test runs such a script too")
			}
			nodes := fmt.Sprint(*spec.WithDefaults().Nodes)
			settings := []string{"SLURM_NNODES=" + nodes, "SLURM_ARRAY_JOB_ID=42", "SLURM_ARRAY_TASK_ID=1"}
			for i, part := range spec.Parts() {
				settings = append(settings, fmt.Sprintf("SLURM_JOB_NODELIST_HET_GROUP_%d=node%d", i, i))
				if part.Nodes != nil {
					settings = append(settings, fmt.Sprintf("SLURM_JOB_NUM_NODES_HET_GROUP_%d=%d", i, *part.Nodes))
				}
			}
			r := execute(t, spec, optionsFor(name), settings...)
			require.Zero(t, r.code, r.output)
			var started []call
			for _, c := range append(r.of("python"), r.of("mylauncher")...) {
				if i := len(c.Argv) - len(spec.Args); i >= 0 && strings.Contains(strings.Join(c.Argv, " "), spec.WithDefaults().Script) {
					started = append(started, c)
				}
			}
			require.Len(t, started, *spec.WithDefaults().Nodes, r.output)
			for _, c := range started {
				require.Subset(t, c.Argv, spec.Args)
				for k, v := range spec.Env {
					require.Equal(t, v, c.Env[k], k)
				}
			}
		})
	}
}

func TestGuardsStopOnProof(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings []string
		says     string
	}{
		"Slurm gave other nodes": {[]string{"SLURM_NNODES=1"}, "stop: .*: nodes: 2 asked for, 1 given"},
		"a busy GPU":             {[]string{"STANDIN_GPUS=" + strings.Repeat("0, 3\n", 7) + "7, 70000\n"}, "stop: node0: 7 GPUs are free and 8 are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := execute(t, twoNodes(), job.Options{}, c.settings...)
			require.Equal(t, 3, r.code, r.output)
			require.Regexp(t, c.says, r.output)
			require.Empty(t, r.of("python"))
		})
	}
}

func TestGuardsOnlyWarnOfWhatTheyCannotSee(t *testing.T) {
	t.Parallel()
	for name, gpus := range map[string]string{"no answer": "", "another form": "0, NVIDIA H100, 81559 MiB\n", "a partitioned GPU": "0, [N/A]\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := twoNodes()
			s.Monitor = new(false)
			r := execute(t, s, job.Options{}, "STANDIN_GPUS="+gpus)
			require.Zero(t, r.code, r.output)
			require.Contains(t, r.output, "guard: warning: node1: nvidia-smi does not say which GPUs are free")
			require.Len(t, r.of("python"), 2)
		})
	}
}

func TestTheScriptEndsAsItsRanksDo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*job.Spec){
		"plain":       func(*job.Spec) {},
		"joined log":  func(s *job.Spec) { s.Preset = []string{"joined-log"} },
		"kill switch": func(s *job.Spec) { s.KillSwitch = "STOP" },
		"signal":      func(s *job.Spec) { s.Signal = "B:USR1@300" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := bareLaunch()
			change(&s)
			r := execute(t, s, job.Options{}, "STANDIN_EXIT=7")
			require.Equal(t, 7, r.code, r.output)
			r = execute(t, s, job.Options{})
			require.Zero(t, r.code, r.output)
		})
	}
}

// A signal to save may arrive while the guards and the start mark still run. Then no rank
// starts, and the job succeeds.
func TestASignalBeforeTheRanksStartEndsTheJobInPeace(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*job.Spec){
		"kill switch": func(s *job.Spec) { s.KillSwitch = "STOP" },
		"signal":      func(s *job.Spec) { s.Signal = "USR1@300" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := twoNodes()
			change(&s)
			r := execute(t, s, job.Options{}, "STANDIN_SIGNAL=USR1")
			require.Zero(t, r.code, r.output)
			require.Contains(t, r.output, "told to end before the ranks started")
			require.Empty(t, r.of("python"))
		})
	}
}

// Ranks that are still starting ignore a signal. While the kill switch exists, the script
// sends the signal again, up to a limit.
func TestAKillSwitchIsToldAgainToRanksThatDidNotHear(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ hears, code, most int }{"the second time": {2, 0, 2}, "never": {99, 7, 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			for program, text := range map[string]string{
				// The watch sleeps before each of its signals, so after 60 sleeps it has sent the last one.
				"sleep": "until [[ -e STOP ]]; do /bin/sleep 0.01; done; echo >>slept; exec /bin/sleep 0.005",
				"srun": fmt.Sprintf(`told=0; trap 'echo told; ((++told < %d)) || exit 0' USR1
touch STOP
mkfifo never; exec 9<>never; >>slept
until mapfile -t times <slept; ((${#times[@]} >= 60)); do read -rt 0.002 -u 9; done
exit 7`, tt.hears),
			} {
				require.NoError(t, os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/bash\n"+text+"\n"), 0o755))
			}
			s := twoNodes()
			s.KillSwitch, s.Guards, s.Monitor = "STOP", new(false), new(false)
			r := execute(t, s, job.Options{}, "PATH="+bin+":"+standInBin+":/usr/bin:/bin")
			require.Equal(t, tt.code, r.code, r.output)
			told := strings.Count(r.output, "told\n")
			require.GreaterOrEqual(t, told, 2, r.output)
			require.LessOrEqual(t, told, tt.most, "signals that come close together are heard as one: %s", r.output)
			require.Equal(t, 1, strings.Count(r.output, "the ranks save and end"))
		})
	}
}

// nasty are the parts of random values: text that a shell, sbatch or a container's command
// line could interpret.
var nasty = []string{
	"a", " ", "'", `"`, `\`, "$", "$(touch \"$CANARY\")", "`touch \"$CANARY\"`", ";touch \"$CANARY\";", "\n", "\r", "\t", "|", "&&",
	"${x:-", "}", "$((", "))", "#", "!", "*", "?", "[", "]", "{a,b}", "~", "%", "-", "--", "=", ",", ":", "é", "中", "\u202e", "\u00a0",
	"\u2028", "\x01", "\x7f", "\\n", "EOF", "$'", "fi", "\u0301",
}

func word(r *rand.Rand) string {
	var b strings.Builder
	for range r.Intn(5) {
		b.WriteString(nasty[r.Intn(len(nasty))])
	}
	return b.String()
}

func randomSpec(r *rand.Rand) job.Spec {
	s := twoNodes()
	for range r.Intn(6) {
		s.Args = append(s.Args, word(r))
	}
	s.Env = map[string]string{"T_ONE": word(r), "T_TWO": word(r)}
	s.Container.Runtime = []string{"none", "docker", "singularity", "enroot"}[r.Intn(4)]
	if s.Container.Runtime != "none" {
		s.Container.Image = "/images/a.sqsh"
		s.Container.Env = map[string]string{"T_IN": word(r)}
	}
	s.Launcher = []string{"uv", "python", "custom"}[r.Intn(3)]
	if s.Launcher == "custom" {
		s.LauncherArgv = []string{"mylauncher", word(r), "{node_rank}"}
	}
	return s
}

func FuzzWhateverIsAskedForArrivesWhole(f *testing.F) {
	seeds := int64(8)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		s := randomSpec(rand.New(rand.NewSource(seed)))
		r := execute(t, s, job.Options{})
		require.Zero(t, r.code, r.output)
		ranks := r.of("python")
		if s.Launcher == "custom" {
			ranks = r.of("mylauncher")
		}
		require.Len(t, ranks, 2, r.output)
		for node, c := range ranks {
			require.Equal(t, append([]string{"pretrain_gpt.py"}, s.Args...), c.Argv[len(c.Argv)-len(s.Args)-1:])
			if s.Launcher == "custom" {
				require.Equal(t, []string{s.LauncherArgv[1], fmt.Sprint(node)}, c.Argv[:2])
			}
			require.Equal(t, s.Env["T_ONE"], c.Env["T_ONE"])
			require.Equal(t, s.Env["T_TWO"], c.Env["T_TWO"])
			require.Equal(t, s.Container.Env["T_IN"], c.Env["T_IN"])
		}
	})
}

func TestConnectionsOnlyWhereTheMatrixAsks(t *testing.T) {
	tp := []string{"--tensor-model-parallel-size", "2"}
	for name, c := range map[string]struct {
		gpu  string
		args []string
		want string
	}{
		"tensor parallel on Hopper":         {"h100", tp, "1"},
		"context parallel on Ampere":        {"a100", []string{"--context-parallel-size=2"}, "1"},
		"neither":                           {"h100", nil, ""},
		"Blackwell":                         {"gb200", tp, ""},
		"Megatron-FSDP":                     {"h100", append([]string{"--use-megatron-fsdp"}, tp...), ""},
		"overlapped expert communication":   {"b200", []string{"--overlap-moe-expert-parallel-comm"}, "32"},
		"a GPU that nobody named is Hopper": {"", tp, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoNodes(c.args...)
			s.GPU = c.gpu
			script, err := job.Render(s, job.Options{})
			require.NoError(t, err)
			line := "export CUDA_DEVICE_MAX_CONNECTIONS=" + c.want + "\n"
			if c.want == "" {
				require.NotContains(t, script.Text, "CUDA_DEVICE_MAX_CONNECTIONS")
				return
			}
			require.Regexp(t, "# Megatron: .*\n"+line, script.Text)
			s.Env = map[string]string{"CUDA_DEVICE_MAX_CONNECTIONS": "8"}
			script, err = job.Render(s, job.Options{})
			require.NoError(t, err)
			require.NotContains(t, script.Text, line, "the specification's own value wins")
		})
	}
}

func TestABadNodeEndsTheJobBeforeTraining(t *testing.T) {
	t.Parallel()
	s := bareLaunch("--lr", "1")
	s.NodeCheck = new(true)
	r := execute(t, s, job.Options{}, "STANDIN_EXIT=1")
	require.Equal(t, 3, r.code, r.output)
	require.Contains(t, r.output, "node check: stop: a node is bad")
	for _, c := range r.of("python") {
		require.NotContains(t, c.Argv, "--lr", "the training was started")
	}
	require.Len(t, execute(t, s, job.Options{}).of("python"), 4, "the check and the training, on both nodes")
}

func TestEachJobOfAChainQueuesTheNext(t *testing.T) {
	t.Parallel()
	s := bareLaunch()
	s.Chain = new(3)
	for link, next := range map[string]string{"": "2", "2": "3", "3": "", "x[$(touch \"$CANARY\")]": "2"} {
		r := execute(t, s, job.Options{}, "LINK="+link)
		require.Zero(t, r.code, r.output)
		require.Len(t, r.of("python"), 2)
		if next == "" {
			require.Empty(t, r.of("sbatch"))
			continue
		}
		queued := r.of("sbatch")
		require.Len(t, queued, 1)
		require.Equal(t, []string{"--dependency=afterany:42"}, queued[0].Argv)
		require.Equal(t, next, queued[0].Env["LINK"])
	}
	require.Empty(t, execute(t, s, job.Options{}, "SLURM_RESTART_COUNT=1").of("sbatch"), "a restart has queued it before")
}

func TestASeriesQueuesItsNextRunAndStops(t *testing.T) {
	t.Parallel()
	s := bareLaunch()
	s.Every = "12h"
	r := execute(t, s, job.Options{})
	require.Zero(t, r.code, r.output)
	require.Equal(t, []string{"--begin=now+12hours"}, r.of("sbatch")[0].Argv)
	require.Empty(t, execute(t, s, job.Options{}, "SLURM_RESTART_COUNT=2").of("sbatch"))
}
