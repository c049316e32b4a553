package diagnose_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// update rewrites the pinned verdicts: go test ./slurm/diagnose -update.
var update = flag.Bool("update", false, "rewrite the pinned verdicts")

// TestVerdicts compares every labelled case with its pinned verdict.
func TestVerdicts(t *testing.T) {
	golden := diagnosetest.Testdata("cases", "verdicts.golden")
	var lines []string
	reports := diagnosetest.Reports(t)
	for _, l := range diagnosetest.Cases(t) {
		r := reports[l.ID]
		lines = append(lines, diagnosetest.Verdict(l.ID, r))
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, strings.Split(strings.TrimSpace(string(want)), "\n"), lines, "a verdict changed; rewrite with -update where that is meant")
}

// TestVerdictsMeetTheirLabels requires minimum scores over all labelled cases, so that rewritten pinned
// verdicts cannot lower them unnoticed.
func TestVerdictsMeetTheirLabels(t *testing.T) {
	var singles, singlesOK, lines, linesOK, jobs, jobsOK, placeOK, retryOK, excludeOK int
	reports := diagnosetest.Reports(t)
	for _, l := range diagnosetest.Cases(t) {
		r := reports[l.ID]
		if !l.Accepts(r.Class) {
			t.Logf("%s: %s, labelled %s: %s", l.ID, r.Class, l.Class, r.RootLine)
		}
		switch {
		case l.Class == outcome.Success:
			require.True(t, l.Accepts(r.Class), "%s: false alarm %s: %s", l.ID, r.Class, r.RootLine)
		case l.Kind == "single":
			singles++
			singlesOK += count(l.Accepts(r.Class))
			if len(l.RootLineNos) > 0 {
				lines++
				linesOK += count(r.RootLineNo != nil && slices.Contains(l.RootLineNos, *r.RootLineNo))
			}
		case l.Type == "hang":
			require.Equal(t, outcome.Hang, r.Class, l.ID)
		default:
			jobs++
			jobsOK += count(l.Accepts(r.Class))
			placeOK += count(l.Place(r))
			retryOK += count(r.Retry == l.Retry)
			excludeOK += count(slices.Equal(r.ExcludeNodes, l.Exclude))
		}
	}
	floor := func(name string, got, of int, share float64) {
		t.Logf("%s: %d of %d", name, got, of)
		require.GreaterOrEqual(t, float64(got), share*float64(of), name)
	}
	floor("one log, class", singlesOK, singles, 0.97)
	floor("one log, line", linesOK, lines, 0.95)
	floor("many ranks, class", jobsOK, jobs, 0.97)
	floor("many ranks, place", placeOK, jobs, 0.97)
	floor("many ranks, retry", retryOK, jobs, 0.97)
	floor("many ranks, nodes to avoid", excludeOK, jobs, 0.97)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }
