package job_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestEveryPresetCanBeUsed(t *testing.T) {
	t.Parallel()
	for _, p := range job.Presets() {
		require.NotEmpty(t, p.Doc.EN)
		require.NotEmpty(t, p.Doc.ZH)
		s := twoNodes()
		s.Preset = []string{p.Name}
		script, err := job.Render(s, job.Options{})
		require.NoError(t, err)
		requireClean(t, script.Text)
		for _, set := range p.Sets {
			require.Regexp(t, "export "+set[:4], script.Text)
		}
	}
}

func TestASitesPresetsComeFirstAndTheUsersValueLast(t *testing.T) {
	t.Parallel()
	site := job.Site{Presets: map[string]map[string]string{"debug-nccl": {"NCCL_DEBUG": "TRACE", "OURS": "a b"}, "bad": {"BASH_ENV": "/x"}}}
	s := twoNodes()
	s.Preset = []string{"debug-nccl", "ethernet"}
	r := execute(t, s, job.Options{Site: site})
	require.Equal(t, "TRACE", r.of("python")[0].Env["NCCL_DEBUG"])
	require.Equal(t, "a b", r.of("python")[1].Env["OURS"])
	require.Equal(t, "1", r.of("python")[0].Env["NCCL_IB_DISABLE"])
	s.Env = map[string]string{"NCCL_DEBUG": "WARN"}
	require.Equal(t, "WARN", execute(t, s, job.Options{Site: site}).of("python")[0].Env["NCCL_DEBUG"])

	s.Preset = []string{"bad"}
	_, err := job.Render(s, job.Options{Site: site})
	require.ErrorContains(t, err, "which a script may not set")
	s.Preset = []string{"no-such"}
	_, err = job.Render(s, job.Options{})
	require.ErrorContains(t, err, "one of debug-nccl, debug-torch")
}

func TestWarningsOfWhatAnExpertWouldNotDo(t *testing.T) {
	for says, change := range map[string]func(*job.Spec){
		"cpus_per_task is not given": func(*job.Spec) {},
		"most sites forbid it":       func(s *job.Spec) { s.Preset = []string{"docker-privileged"} },
		"USR1 leaves them the time":  func(s *job.Spec) { s.Signal = "TERM@300" },
		"60 seconds before the end":  func(s *job.Spec) { s.Signal = "USR1" },
		"save before its time limit": func(s *job.Spec) { s.Time = "60" },
		"local to each node":         func(s *job.Spec) { s.Worktree = "/tmp/mlm" },
		"enroot import":              func(s *job.Spec) { s.Container = job.Container{Runtime: job.Enroot, Image: "nvcr.io/nvidia/pytorch:1"} },
		"container's first process":  func(s *job.Spec) { s.KillSwitch = "STOP"; s.Container = job.Container{Runtime: job.Docker, Image: "a"} },
		"joined-log gets nothing":    func(s *job.Spec) { s.Preset = []string{"joined-log", "per-node-logs"} },
	} {
		s := twoNodes()
		change(&s)
		script, err := job.Render(s, job.Options{})
		require.NoError(t, err)
		require.Contains(t, warned(script), says)
	}
}

// warned returns the warnings of a script in English, one per line.
func warned(script job.Script) string {
	var b strings.Builder
	for _, w := range script.Warnings {
		b.WriteString(w.EN + "\n")
	}
	return b.String()
}

// The flight recorder's variables have an older and a newer name. Every release of torch finds one
// it reads; a value that the user gives by one name is not hidden by ours under the other.
func TestTheFlightRecorderIsOnInEveryReleaseOfTorch(t *testing.T) {
	t.Parallel()
	names := [][]string{{"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}}
	env := execute(t, twoNodes(), job.Options{}).of("python")[0].Env
	for _, pair := range names {
		require.NotEmpty(t, env[pair[0]], pair[0])
		require.Equal(t, env[pair[0]], env[pair[1]])
		for i, name := range pair {
			s := twoNodes()
			s.Env = map[string]string{name: "7"}
			env := execute(t, s, job.Options{}).of("python")[0].Env
			require.Equal(t, "7", env[name])
			require.NotContains(t, env, pair[1-i])
		}
	}
}
