package diagnose_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
)

// TestComposed diagnoses invented runs in every layout of logs.
func TestComposed(t *testing.T) {
	nth, often := 1, 20 // in any order of files
	if testing.Short() {
		nth, often = 3, 2 // each cause in two layouts, and each layout with a third of the causes
	}
	t.Run("failures", func(t *testing.T) { diagnosetest.ComposedFailures(t, nth) })
	t.Run("only the last attempt counts", diagnosetest.OnlyTheLastAttemptCounts)
	t.Run("the rank that never arrived", diagnosetest.TheRankThatNeverArrived)
	t.Run("healthy shapes", func(t *testing.T) { diagnosetest.HealthyShapes(t, often) })
	t.Run("hangs", diagnosetest.Hangs)
	t.Run("Slurm ends the job", diagnosetest.SlurmEndsTheJob)
}
