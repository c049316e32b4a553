package report_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
)

// TestVerdicts holds the pinned verdicts of whole diagnoses against this room.
func TestVerdicts(t *testing.T) { diagnosetest.RequirePinned(t) }
