package ops

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// Who tells of one end of a job says what one diagnosis found; another end has its own.
func TestOneDiagnosisOfOneFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r FailureReports
		made := 0
		slow := func() (report.Report, error) {
			made++
			time.Sleep(time.Second)
			return report.Report{Class: fmt.Sprint(made)}, nil
		}
		started := time.Now()
		j := slurm.Job{ID: "4711", Cluster: "prod", State: slurm.Failed, StartedAt: &started}
		class := func(j slurm.Job) string {
			got, err := FailureOf(t.Context(), &r, j, time.Now(), slow)
			require.NoError(t, err)
			return got.Class
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { require.Equal(t, "1", class(j)) })
		}
		all.Wait()
		require.Equal(t, "1", class(j))
		again := time.Now()
		j.StartedAt = &again
		require.Equal(t, "2", class(j), "it was requeued and has failed again")
		j.Cluster = "dev"
		require.Equal(t, "3", class(j))
		time.Sleep(failureKept)
		require.Equal(t, "4", class(j))
		for i := range 2 * mostFailures {
			j.ID = slurm.JobID(fmt.Sprint(5000 + i))
			class(j)
		}
		require.LessOrEqual(t, len(r.by), mostFailures)

		var none *FailureReports
		got, err := FailureOf(t.Context(), none, j, time.Now(), slow)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(made), got.Class)
	})
}

// A diagnosis that fails is made again by whoever waits for it, or asks later.
func TestADiagnosisThatFailsIsNobodyElses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r FailureReports
		j := slurm.Job{ID: "4711", State: slurm.Failed}
		cut := errors.New("cut off")
		go func() {
			_, err := FailureOf(t.Context(), &r, j, time.Now(), func() (report.Report, error) {
				time.Sleep(time.Second)
				return report.Report{}, cut
			})
			require.ErrorIs(t, err, cut)
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := FailureOf[report.Report](short, &r, j, time.Now(), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		got, err := FailureOf(t.Context(), &r, j, time.Now(), func() (report.Report, error) { return report.Report{Class: "cuda_oom"}, nil })
		require.NoError(t, err)
		require.Equal(t, "cuda_oom", got.Class)
	})
}
