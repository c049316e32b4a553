package follow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
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

// Failures belong to one incident if the jobs ended within its window, no matter when
// the follower learned of them.
func TestFailuresFarApartAreNoIncident(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		ends []time.Time
		want bool
	}{
		"a minute apart":         {[]time.Time{now.Add(-time.Minute), now}, true},
		"heard of late together": {[]time.Time{now.Add(-20 * time.Hour), now}, false},
		"of an unknown end":      {[]time.Time{{}, now}, true},
	} {
		l, _, _ := newQueue(t, `{}`)
		var last News
		for i, end := range tt.ends {
			last = News{
				Job: slurm.Job{ID: slurm.JobID([]string{"91", "92"}[i]), Cluster: "bench", State: slurm.Failed},
				Report: &report.Report{
					Class: outcome.Filesystem, RootLine: "OSError: [Errno 116] Stale file handle: '/lustre/proj/data/1.bin'",
				},
			}
			if !end.IsZero() {
				last.Job.EndedAt = &end
			}
			l.f.reportIncident(t.Context(), l.st, &last)
		}
		require.Equal(t, tt.want, last.Incident != nil, name)
		other := News{Job: last.Job, Report: &report.Report{Class: outcome.HostOOM, RootLine: "Killed"}}
		other.Job.ID = "93"
		l.f.reportIncident(t.Context(), l.st, &other)
		require.Nil(t, other.Incident, "what others have in common is not this one's")
		unexplained := News{Job: last.Job}
		l.f.reportIncident(t.Context(), l.st, &unexplained)
		require.Nil(t, unexplained.Incident)
	}
}
