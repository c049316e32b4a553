package jobcontrol

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestHistoryTellsWhatHitSeveralJobs(t *testing.T) {
	dir := t.TempDir()
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	for i, said := range []string{
		"RuntimeError: CUDA error: uncorrectable ECC error encountered", "ValueError: my own mistake", "RuntimeError: CUDA error: uncorrectable ECC error encountered",
	} {
		end := time.Now().Add(time.Duration(i-10) * time.Minute)
		id := slurm.JobID(fmt.Sprint(81 + i))
		log := filepath.Join(dir, fmt.Sprintf("gpt-%s.out", id))
		require.NoError(t, os.WriteFile(log, []byte("[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/train.py\", line 3, in <module>\n[rank0]:     step()\n[rank0]: "+said+"\n"), 0o600))
		s.KnownJobs[id] = slurm.Job{ID: id, Name: "gpt", User: "alice", State: slurm.Failed, Nodes: []string{"gpu9"}, EndedAt: &end, Stdout: log, WorkDir: dir}
	}
	c := opstest.NewCall(t, s)
	out, err := opstest.Do(t, c, History(), "--incidents")
	require.NoError(t, err)
	h := out.(HistoryOut)
	require.Len(t, h.Incidents, 1)
	require.Equal(t, "gpu9", h.Incidents[0].Where)
	require.Equal(t, []string{"81", "83"}, h.Incidents[0].Jobs)
	require.Contains(t, opstest.Text(t, h, lang.EN), "One incident, not 2: jobs 81, 83 failed on gpu9")
	require.Contains(t, opstest.Text(t, h, lang.ZH), "这是同一起事件")

	out, err = opstest.Do(t, c, History())
	require.NoError(t, err)
	require.Empty(t, out.(HistoryOut).Incidents, "logs are read where it is asked for")
}
