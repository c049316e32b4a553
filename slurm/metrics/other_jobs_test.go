package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Of a folder that several jobs wrote into, only the newest job's numbers are read. An older job's log
// does not count as a restart.
func TestOfAFolderTheNewestJobIsRead(t *testing.T) {
	iteration := func(hour, n, loss string) string {
		return "[2026-11-23 " + hour + ":00:00] iteration " + n + "/ 100 | elapsed time per iteration (ms): 100.0 | lm loss: " + loss + " |\n"
	}
	older, newer := iteration("09", "1", "9.0")+iteration("10", "8", "8.0"), iteration("11", "1", "5.0")+iteration("12", "2", "4.0")
	event := string(eventFile(7, "lm loss", 3))
	for name, c := range map[string]struct {
		files map[string]string
		last  int
		other []string
	}{
		"Slurm's own names":  {map[string]string{"slurm-4711.out": older, "slurm-4712.out": newer}, 2, []string{"slurm-4711.out"}},
		"names of scripts":   {map[string]string{"gpt-4711.out": older, "gpt-4712.out": newer, "gpt-4711/r0.log": older}, 2, []string{"gpt-4711/r0.log", "gpt-4711.out"}},
		"ranks of one job":   {map[string]string{"rank-4711.log": older, "rank-4712.log": newer}, 8, nil},
		"one job in folders": {map[string]string{"gpt-4711.out": newer, "tensorboard/4711/gpt.log": newer}, 2, nil},
		"event files of an older job": {
			map[string]string{"slurm-4711.out": older, "slurm-4712.out": newer, "tb/4711/events.out.tfevents.1764000000.gpu1.9.0": event},
			2,
			[]string{"slurm-4711.out", "tb/4711/events.out.tfevents.1764000000.gpu1.9.0"},
		},
		"a process id in an event file": {
			map[string]string{"slurm-4711.out": older, "slurm-4712.out": newer, "events.out.tfevents.1764000000.gpu1.4711.0": event},
			7,
			[]string{"slurm-4711.out"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
			}
			run, err := Read(t.Context(), nil, dir, "")
			require.NoError(t, err)
			s := run.Summary()
			require.Equal(t, c.last, s.Last)
			require.Zero(t, s.Restarts)
			require.Equal(t, c.other, s.OtherJobs)
			shown := fmt.Sprint(View([]Run{run}, []Summary{s}, lang.EN))
			for _, file := range c.other {
				require.Contains(t, shown, file, "a person is told what was not read")
			}
		})
	}
}
