package job_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// watched returns a job with the preset gpu-use. Its ranks run until the shell condition
// is true on their node.
func watched(gpus int, condition string) job.Spec {
	s := twoNodes()
	s.GPUsPerNode, s.Guards, s.Preset = new(gpus), new(false), []string{"gpu-use"}
	s.Launcher, s.LauncherArgv = job.Custom, []string{"bash", "-c", "until " + condition + "; do /bin/sleep 0.1; done", "_"}
	return s
}

func TestEveryNodeNotesHowBusyItsGPUsAre(t *testing.T) {
	t.Parallel()
	noted := `[[ -s $RUN_DIR/gpus-$SLURMD_NODENAME.csv ]]`
	for name, c := range map[string]struct {
		gpus     int
		settings []string
		want     []string
	}{
		"all of a node":             {2, []string{"STANDIN_GPUS=0, 97, 70000\n1, 0, 3\n"}, []string{"0, 97, 70000", "1, 0, 3"}},
		"those of a shared node":    {2, []string{"STANDIN_GPUS=0, 97, 70000\n1, 9, 5\n2, 8, 4\n12, 7, 6\n", "CUDA_VISIBLE_DEVICES=1,12"}, []string{"1, 9, 5", "12, 7, 6"}},
		"by names that say nothing": {1, []string{"STANDIN_GPUS=0, 97, 70000\n", "CUDA_VISIBLE_DEVICES=GPU-1f2e"}, []string{"0, 97, 70000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := execute(t, watched(c.gpus, noted), job.Options{}, c.settings...)
			require.Zero(t, r.code, r.output)
			require.NotContains(t, r.output, "guard:")
			for node := range 2 {
				text, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprintf("logs/42/attempt-0/gpus-node%d.csv", node)))
				require.NoError(t, err)
				var got []string
				for line := range strings.Lines(string(text)) {
					require.Regexp(t, `^1\d{9}, `, line, "with the time in seconds")
					_, rest, _ := strings.Cut(strings.TrimSpace(line), ", ")
					got = append(got, rest)
				}
				require.Equal(t, c.want, got)
			}
		})
	}
}

// If nvidia-smi gives no usable answer, each node prints one warning and the job goes on.
func TestGPUsOfWhichNothingIsSaidAreNotWatched(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"partitioned":          {"STANDIN_GPUS=0, [N/A], 3\n1, [N/A], 3\n"},
		"those of others too":  {"STANDIN_GPUS=0, 97, 70000\n1, 0, 3\n2, 0, 3\n"},
		"no answer":            {"STANDIN_GPUS="},
		"there is none at all": {pathWithout(t, "nvidia-smi")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := execute(t, watched(2, `grep -q "$SLURMD_NODENAME: nvidia-smi" "$HOME/output"`), job.Options{}, settings...)
			require.Zero(t, r.code, r.output)
			require.Len(t, warnings(r), 2, r.output)
			require.Contains(t, r.output, "guard: warning: node1: nvidia-smi does not say how busy the 2 GPUs of this job are")
			found, err := filepath.Glob(filepath.Join(r.dir, "logs/42/attempt-0/gpus-*"))
			require.NoError(t, err)
			require.Empty(t, found)
		})
	}
}

func TestGPUsAreOnlyWatchedWhereTracesAreLeft(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*job.Spec){
		"not asked for": func(s *job.Spec) { s.Preset = nil },
		"no GPUs":       func(s *job.Spec) { s.GPUsPerNode = new(0) },
		"no traces":     func(s *job.Spec) { s.Monitor = new(false) },
	} {
		s := watched(2, "true")
		change(&s)
		script, err := job.Render(s, job.Options{})
		require.NoError(t, err)
		require.NotContains(t, script.Text, "GPU_USE", name)
		require.Equal(t, name == "no traces", strings.Contains(warned(script), "monitor: false leaves both out"), name)
	}
}

// The watch runs next to the ranks of each node, and ends with them.
func TestGPUsAreWatchedOnSlurm(t *testing.T) {
	d := onSlurm(t)
	d.file("bin/nvidia-smi", "#!/bin/sh\nprintf '0, 97, 70000\\n1, 0, 3\\n'\n")
	id := d.submit(d.spec("watched", func(s *job.Spec) {
		s.Nodes, s.GPUsPerNode, s.Monitor, s.Preset, s.Path = new(2), new(2), nil, []string{"gpu-use"}, []string{filepath.Join(d.tree, "bin")}
		s.LauncherArgv = []string{"bash", "-c", "until [[ -e go ]]; do sleep 0.2; done", "_"}
	}))
	var files []string
	require.Eventually(t, func() bool {
		files, _ = filepath.Glob(filepath.Join(d.tree, "logs", id, "attempt-0", "gpus-gpu*.csv"))
		for _, f := range files {
			if text, err := os.ReadFile(f); err != nil || strings.Count(string(text), "\n") != 2 {
				return false
			}
		}
		return len(files) == 2
	}, 100*time.Second, 100*time.Millisecond, d.logs())
	d.file("go", "")
	d.becomes(id, "COMPLETED")
	require.Equal(t, "0:0", d.show(id, "ExitCode"))
	require.Eventually(t, func() bool {
		_, err := d.Run(t.Context(), "pgrep", "-u", "alice", "-f", "watch_gpus")
		return err != nil
	}, 60*time.Second, 100*time.Millisecond, "nothing is left of it on the nodes")
	require.NotContains(t, d.log("watched-"+id+".err", ""), "guard:")
}
