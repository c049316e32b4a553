package report_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// sentence matches the boundary between two sentences, in either language.
var sentence = regexp.MustCompile(`[.:;] +|[。；]`)

// sentencesOf returns the sentences of a document, without lines of logs.
func sentencesOf(d view.Doc) (all []string) {
	for _, s := range d.Sections {
		for _, text := range append([]string{s.Text}, s.Items...) {
			for _, one := range sentence.Split(text, -1) {
				if one = strings.TrimRight(strings.TrimSpace(one), "."); one != "" {
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// No sentence occurs twice in a report, in either language.
func TestNothingIsSaidTwice(t *testing.T) {
	reports := map[string]report.Report{
		"nodes that did not start alike": {Class: outcome.NCCLTimeout, Differs: []string{"commit", "venv"}},
		"a change that fits": {
			Class: outcome.CUDAOOM, Fit: &report.Fit{Flags: []string{"--micro-batch-size", "1"}, EstimateGiB: 60, TotalGiB: 80},
			Layout: &report.Layout{MicroBatchSize: 4, TP: 2, PP: 2},
		},
		"some logs could not be read":   {Class: outcome.UnknownExit, Unreadable: []logfile.Unreadable{{Path: "a.out", Reason: "permission denied"}}},
		"only some ranks are available": {Class: outcome.Success, Why: "finished", OnlyRanks: []int{0, 3}},
	}
	maps.Copy(reports, diagnosetest.Reports(t))
	for name, r := range reports {
		for _, l := range []lang.Lang{lang.EN, lang.ZH} {
			seen := map[string]bool{}
			for _, s := range sentencesOf(r.View(l)) {
				require.False(t, seen[s], "%s says twice: %s", name, s)
				seen[s] = true
			}
		}
	}
}

// If a corrected specification is offered, the advice does not repeat its changes.
func TestAnOfferedChangeIsNotAdvised(t *testing.T) {
	r := report.Report{
		Class: outcome.CUDAOOM, ExcludeNodes: []string{"n7"},
		Fit: &report.Fit{Flags: []string{"--recompute-granularity", "full"}, EstimateGiB: 60, TotalGiB: 80},
	}
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		plain, offered := strings.Join(sentencesOf(r.View(l)), "\n"), strings.Join(sentencesOf(r.Offered().View(l)), "\n")
		for _, words := range []string{"--recompute-granularity full", "--exclude=n7"} {
			require.Contains(t, plain, words)
			require.NotContains(t, offered, words)
		}
	}
}
