package diagnosetest

import (
	"bufio"
	"context"
	"encoding/json"
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

// testdata is the folder of the diagnosis' test data, for tests of slurm/diagnose and of its
// subpackages.
func testdata() string {
	for _, dir := range []string{"testdata", filepath.Join("..", "testdata")} {
		if _, err := os.Stat(filepath.Join(dir, "cases", "labels.jsonl")); err == nil {
			return dir
		}
	}
	panic("a test of another folder asks for the test data of the diagnosis")
}

// Testdata is the path of a file in the shared test data.
func Testdata(parts ...string) string {
	return filepath.Join(append([]string{testdata()}, parts...)...)
}

// A Case is a labelled log or folder of logs, with the expected diagnosis.
type Case struct {
	ID          string           `json:"id"`
	Kind        string           `json:"kind"` // single: one log; composite: a folder of logs
	Type        string           `json:"type"` // for composites: fail, double, none, hang
	Class       string           `json:"class"`
	AlsoOK      []string         `json:"also_ok"` // further classes that count as right
	RootLineNos []int            `json:"root_line_nos"`
	RootRank    *int             `json:"root_rank"`
	RootRanksOK []*int           `json:"root_ranks_ok"`
	RootOK      []FileLine       `json:"root_ok"`
	Retry       bool             `json:"retry"`
	Exclude     []string         `json:"exclude_nodes"`
	Context     diagnose.Context `json:"context"`
}

// A FileLine is a line of a log.
type FileLine struct {
	File   string `json:"file"`
	LineNo int    `json:"line_no"`
}

// Path is the path of the case's log or folder.
func (c Case) Path() string {
	if c.Kind == "single" {
		return filepath.Join(testdata(), "cases", c.ID+".log")
	}
	return filepath.Join(testdata(), "cases", c.ID)
}

// Accepts reports whether class counts as right. A job that still runs is labelled success.
func (c Case) Accepts(class string) bool {
	if class == outcome.Running {
		class = outcome.Success
	}
	return class == c.Class || slices.Contains(c.AlsoOK, class)
}

// Place reports whether the label accepts the report's rank or, where either names none, its file and
// line.
func (c Case) Place(r report.Report) bool {
	if r.RootRank != nil && c.RootRank != nil {
		return slices.ContainsFunc(c.RootRanksOK, func(ok *int) bool { return ok != nil && *ok == *r.RootRank })
	}
	for _, ok := range c.RootOK {
		if ok.File == r.RootFile && r.RootLineNo != nil && max(*r.RootLineNo-ok.LineNo, ok.LineNo-*r.RootLineNo) <= 2 {
			return true
		}
	}
	return false
}

// Cases returns the labelled cases.
func Cases(t *testing.T) []Case {
	t.Helper()
	all, err := readCases()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

func readCases() (all []Case, err error) {
	f, err := os.Open(filepath.Join(testdata(), "cases", "labels.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, lines.Err()
}

// reports holds the diagnoses of the labelled cases, by id. Several tests use them, so it computes them
// once.
var reports = sync.OnceValues(func() (map[string]report.Report, error) {
	all := map[string]report.Report{}
	list, err := readCases()
	for _, c := range list {
		r, failed := diagnose.Path(context.Background(), c.Path(), c.Context)
		if failed != nil {
			return nil, failed // the error names the log
		}
		all[c.ID] = r
	}
	return all, err
})

// Reports returns the diagnoses of the labelled cases, by id.
func Reports(t *testing.T) map[string]report.Report {
	t.Helper()
	all, err := reports()
	require.NoError(t, err)
	return all
}

// Verdict formats a diagnosis as one line: class, whether a retry is worth it, the line of the cause,
// its rank and node, and the nodes to avoid.
func Verdict(id string, r report.Report) string {
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

// RequirePinned compares the diagnoses of all cases with the pinned ones. Each subpackage calls it, so
// that its own tests notice a change. To change the pinned verdicts on purpose, run the tests of
// slurm/diagnose with -update.
func RequirePinned(t *testing.T) {
	t.Helper()
	pinned, err := os.ReadFile(Testdata("cases", "verdicts.golden"))
	require.NoError(t, err)
	var got []string
	all := Reports(t)
	for _, c := range Cases(t) {
		got = append(got, Verdict(c.ID, all[c.ID]))
	}
	require.Equal(t, strings.Split(strings.TrimSpace(string(pinned)), "\n"), got)
}
