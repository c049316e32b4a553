package ops

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A submission tells of its job and of the parts that this has, and of no other.
func TestASubmissionTellsOfThePartsOfItsJob(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{
		"plain": "#SBATCH --output=logs/%A_%a\n",
		"array": "#SBATCH --array=0-4:2%1\n#SBATCH --output=logs/%A_%a\n",
		"het":   "#SBATCH --output=logs/%j\n#SBATCH hetjob\n#SBATCH --nodes=2\n",
		"lost":  "",
	}
	for line, log := range map[string]string{
		"plain 7": "/w/logs/7_4294967294", "plain 7_0": "", "plain 7+0": "",
		"array 7": "/w/logs/7_%a", "array 7_2": "/w/logs/7_2", "array 7_3": "", "array 7_6": "", "array 7+0": "",
		"het 7": "/w/logs/7", "het 7+1": "/w/logs/7", "het 7+2": "", "het 7_0": "",
		"lost 7_0": "",
	} {
		script, id, _ := strings.Cut(line, " ")
		j, ok := asSubmitted(store.Submission{Name: "gpt", Owner: "ada", Dir: "/w", Script: scripts[script]}, slurm.JobID(id))
		require.Equal(t, log != "", ok, line)
		if ok {
			require.Equal(t, log, j.Stdout, line)
		}
	}
	j, ok := asSubmitted(store.Submission{Script: scripts["array"]}, "7")
	require.True(t, ok)
	require.Equal(t, map[slurm.State]int{slurm.Ended: 3}, j.Tasks)
}

// An arrayView saw an array last while one of its tasks ran.
type arrayView struct{ countingView }

func (arrayView) Known(slurm.Filter) ([]slurm.Job, time.Time) {
	return []slurm.Job{{ID: "2_0", State: slurm.Completed}, {ID: "2_1", State: slurm.Running}}, time.Now()
}

// No task of an array that has left the queue is said to run.
func TestAnArrayThatLeftTheQueueRunsNoTask(t *testing.T) {
	t.Parallel()
	silent := &arrayView{countingView{err: &slurm.AccountsError{Err: &slurm.Error{Kind: slurm.Unreachable}}}}
	s := &Service{Clusters: map[string]Cluster{"test": &site{}}, Default: "test", Now: time.Now, Views: map[string]View{"test": silent}}
	_, j, err := (&Call{Service: s, effect: Read}).ShownJob(t.Context(), "test", "2")
	require.NoError(t, err)
	require.Equal(t, slurm.Ended, j.State)
	require.Equal(t, map[slurm.State]int{slurm.Completed: 1, slurm.Ended: 1}, j.Tasks)
}
