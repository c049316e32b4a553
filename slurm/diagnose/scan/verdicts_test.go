package scan_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
)

// TestVerdicts holds the pinned verdicts of whole diagnoses against this room.
func TestVerdicts(t *testing.T) { diagnosetest.RequirePinned(t) }

// TestComposed reads runs that are made up, in every layout of logs, of which the judge's
// tests have more.
func TestComposed(t *testing.T) {
	t.Run("failures", func(t *testing.T) { diagnosetest.ComposedFailures(t, 4) })
	t.Run("only the last attempt counts", diagnosetest.OnlyTheLastAttemptCounts)
	t.Run("the rank that never arrived", diagnosetest.TheRankThatNeverArrived)
	t.Run("healthy shapes", func(t *testing.T) { diagnosetest.HealthyShapes(t, 1) })
	t.Run("hangs", diagnosetest.Hangs)
	t.Run("Slurm ends the job", diagnosetest.SlurmEndsTheJob)
}
