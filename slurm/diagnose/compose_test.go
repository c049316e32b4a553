package diagnose_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
)

// TestComposed judges runs that are made up, in every layout of logs.
func TestComposed(t *testing.T) {
	t.Run("failures", func(t *testing.T) { diagnosetest.ComposedFailures(t, 1) })
	t.Run("only the last attempt counts", diagnosetest.OnlyTheLastAttemptCounts)
	t.Run("the rank that never arrived", diagnosetest.TheRankThatNeverArrived)
	t.Run("healthy shapes", func(t *testing.T) { diagnosetest.HealthyShapes(t, 20) }) // whatever the order in which files are read
	t.Run("hangs", diagnosetest.Hangs)
	t.Run("Slurm ends the job", diagnosetest.SlurmEndsTheJob)
}
