package joblogs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// TestAChangeIsSaidOnce checks that the answer states a change that a plan accepted
// once, in both languages.
func TestAChangeIsSaidOnce(t *testing.T) {
	out := DiagnoseOut{
		Report: report.Report{
			Class: outcome.CUDAOOM,
			Fit:   &report.Fit{Flags: []string{"--recompute-granularity", "full"}, EstimateGiB: 60, TotalGiB: 80},
		},
		Fix: &launch.SpecPatch{Changes: []string{"--recompute-granularity full"}},
	}
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		require.Equal(t, 1, strings.Count(fmt.Sprint(out.View(l).Sections), "--recompute-granularity"))
		alone := out
		alone.Fix = nil
		require.Equal(t, 1, strings.Count(fmt.Sprint(alone.View(l).Sections), "--recompute-granularity"))
	}
}
