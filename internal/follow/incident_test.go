package follow

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/stretchr/testify/require"
)

// TestOneCauseOfSeveralJobsIsToldOnce has three jobs that fail one after the other
// because of the same file system.
func TestOneCauseOfSeveralJobsIsToldOnce(t *testing.T) {
	y := followCluster(t, `echo "Traceback (most recent call last):
  File \"/w/train.py\", line 3, in <module>
OSError: [Errno 116] Stale file handle: '/lustre/proj/data/$SLURM_JOB_ID.bin'" >&2
exit 1
`)
	var failed []slurm.JobID
	for range 3 {
		id := y.submit(job.Spec{})
		y.until("its failure", func(n News) bool { return n.Job.ID == id && n.Report != nil })
		failed = append(failed, id)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	var told []*report.Incident
	for _, n := range y.news {
		if n.Incident != nil {
			told = append(told, n.Incident)
		}
	}
	require.Len(t, told, 1, "said with the second job, and not again with the third")
	require.Equal(t, outcome.Filesystem, told[0].Class)
	require.Equal(t, "/lustre/proj", told[0].Where)
	require.Equal(t, []string{string(failed[0]), string(failed[1])}, told[0].Jobs)
}
