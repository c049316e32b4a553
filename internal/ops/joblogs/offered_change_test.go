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

// A job that was requeued starts by itself: it is changed in the queue, or cancelled first, and
// no second job is submitted beside it.
func TestTheChangeOfAJobInTheQueue(t *testing.T) {
	alone, more := launch.SpecPatch{From: "40"}, launch.SpecPatch{From: "40"}
	alone.Spec.Exclude, more.Spec.Exclude, more.Spec.Args = "gpu4", "gpu4", []string{"--lr", "1"}
	for _, c := range []struct {
		fix   launch.SpecPatch
		waits string
		next  []string
	}{
		{alone, "BeginTime", []string{"update 40 --exclude gpu4"}},
		{more, "BeginTime", []string{"cancel 40", more.Command()}},
		{alone, "", []string{alone.Command()}},
	} {
		out := DiagnoseOut{Report: report.Report{Class: outcome.SlurmNodeFail}, Fix: &c.fix, WaitsFor: c.waits}
		require.Equal(t, c.next, out.View(lang.EN).Next)
	}
}
