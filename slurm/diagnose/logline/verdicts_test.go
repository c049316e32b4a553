package logline_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
)

// TestVerdicts compares the pinned verdicts of whole diagnoses, so that this package's tests notice a
// change.
func TestVerdicts(t *testing.T) { diagnosetest.RequirePinned(t) }
