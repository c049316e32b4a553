package diagnose_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// update rewrites the pinned verdicts: go test ./slurm/diagnose -update.
var update = flag.Bool("update", false, "rewrite the pinned verdicts")

// casesDir holds labelled logs: <id>.log for one log, <id>/ for the logs of a
// job of many ranks, labels.jsonl for what each should come to, and
// verdicts.golden for what each comes to today, one line a case.
var casesDir = filepath.Join("testdata", "cases")

// A label is what a labelled case should come to.
type label struct {
	ID          string           `json:"id"`
	Kind        string           `json:"kind"` // single: one log; composite: a folder
	Type        string           `json:"type"` // of composites: fail, double, none, hang
	Class       string           `json:"class"`
	AlsoOK      []string         `json:"also_ok"` // classes that are accepted too
	RootLineNos []int            `json:"root_line_nos"`
	RootRank    *int             `json:"root_rank"`
	RootRanksOK []*int           `json:"root_ranks_ok"`
	RootOK      []fileLine       `json:"root_ok"`
	Retry       bool             `json:"retry"`
	Exclude     []string         `json:"exclude_nodes"`
	Context     diagnose.Context `json:"context"`
}

type fileLine struct {
	File   string `json:"file"`
	LineNo int    `json:"line_no"`
}

func (l label) path() string {
	if l.Kind == "single" {
		return filepath.Join(casesDir, l.ID+".log")
	}
	return filepath.Join(casesDir, l.ID)
}

// accepts reports whether the label accepts a class. A run that goes on is
// labelled a success.
func (l label) accepts(class string) bool {
	if class == outcome.Running {
		class = outcome.Success
	}
	return class == l.Class || slices.Contains(l.AlsoOK, class)
}

// place reports whether the rank, or else file and line, is one that the
// label accepts.
func (l label) place(r report.Report) bool {
	if r.RootRank != nil && l.RootRank != nil {
		return slices.ContainsFunc(l.RootRanksOK, func(ok *int) bool { return ok != nil && *ok == *r.RootRank })
	}
	for _, ok := range l.RootOK {
		if ok.File == r.RootFile && r.RootLineNo != nil && max(*r.RootLineNo-ok.LineNo, ok.LineNo-*r.RootLineNo) <= 2 {
			return true
		}
	}
	return false
}

func labels(t *testing.T) []label {
	t.Helper()
	all, err := readLabels()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

func readLabels() (all []label, err error) {
	f, err := os.Open(filepath.Join(casesDir, "labels.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l label
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, lines.Err()
}

// reports are the diagnoses of the labelled cases, by id. Several tests look at
// them: the cases are read once.
var reports = sync.OnceValues(func() (map[string]report.Report, error) {
	all := map[string]report.Report{}
	list, err := readLabels()
	for _, l := range list {
		r, failed := diagnose.Path(context.Background(), l.path(), l.Context)
		if failed != nil {
			return nil, fmt.Errorf("%s: %w", l.ID, failed)
		}
		all[l.ID] = r
	}
	return all, err
})

func reportsOf(t *testing.T) map[string]report.Report {
	t.Helper()
	all, err := reports()
	require.NoError(t, err)
	return all
}

// verdictLine is a diagnosis in one line: class, whether a retry is worth it,
// the line of the cause, its rank and node, and the nodes to avoid.
func verdictLine(id string, r report.Report) string {
	retry := "stay"
	if r.Retry {
		retry = "retry"
	}
	place := "-"
	if r.RootLineNo != nil {
		place = fmt.Sprintf("%s:%d", r.RootFile, *r.RootLineNo)
	}
	rank, node, exclude := "-", "-", "-"
	if r.RootRank != nil {
		rank = fmt.Sprint(*r.RootRank)
	}
	if r.RootNode != nil {
		node = *r.RootNode
	}
	if len(r.ExcludeNodes) > 0 {
		exclude = strings.Join(r.ExcludeNodes, ",")
	}
	return fmt.Sprintf("%-5s %-27s %-5s %s rank=%s node=%s exclude=%s", id, r.Class, retry, place, rank, node, exclude)
}

// TestVerdicts compares every labelled case with its pinned verdict.
func TestVerdicts(t *testing.T) {
	golden := filepath.Join(casesDir, "verdicts.golden")
	var lines []string
	reports := reportsOf(t)
	for _, l := range labels(t) {
		r := reports[l.ID]
		lines = append(lines, verdictLine(l.ID, r))
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, strings.Split(strings.TrimSpace(string(want)), "\n"), lines, "a verdict changed; rewrite with -update where that is meant")
}

// TestVerdictsMeetTheirLabels keeps floors under the scores of all labelled
// cases, so that a rewritten verdict cannot lower them unseen.
func TestVerdictsMeetTheirLabels(t *testing.T) {
	var singles, singlesOK, lines, linesOK, jobs, jobsOK, placeOK, retryOK, excludeOK int
	reports := reportsOf(t)
	for _, l := range labels(t) {
		r := reports[l.ID]
		if !l.accepts(r.Class) {
			t.Logf("%s: %s, labelled %s: %s", l.ID, r.Class, l.Class, r.RootLine)
		}
		switch {
		case l.Class == outcome.Success:
			require.True(t, l.accepts(r.Class), "%s: false alarm %s: %s", l.ID, r.Class, r.RootLine)
		case l.Kind == "single":
			singles++
			singlesOK += count(l.accepts(r.Class))
			if len(l.RootLineNos) > 0 {
				lines++
				linesOK += count(r.RootLineNo != nil && slices.Contains(l.RootLineNos, *r.RootLineNo))
			}
		case l.Type == "hang":
			require.Equal(t, outcome.Hang, r.Class, l.ID)
		default:
			jobs++
			jobsOK += count(l.accepts(r.Class))
			placeOK += count(l.place(r))
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
