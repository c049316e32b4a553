package diagnose_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

// A label is what a labelled case should come to.
type label struct {
	ID          string   `json:"id"`
	Kind        string   `json:"kind"`
	Type        string   `json:"type"`
	Class       string   `json:"class"`
	AlsoOK      []string `json:"also_ok"`
	RootLine    string   `json:"root_line"`
	RootLineNos []int    `json:"root_line_nos"`
	RootRank    *int     `json:"root_rank"`
	RootRanksOK []*int   `json:"root_ranks_ok"`
	RootOK      []struct {
		File   string `json:"file"`
		LineNo int    `json:"line_no"`
	} `json:"root_ok"`
	Retry        bool     `json:"retry"`
	ExcludeNodes []string `json:"exclude_nodes"`
}

func (l label) accepts(class string) bool {
	return class == l.Class || slices.Contains(l.AlsoOK, class)
}

// place reports whether the rank, or else file and line, is one that the
// label accepts.
func (l label) place(r diagnose.Report) bool {
	if r.RootRank != nil && l.RootRank != nil {
		return slices.ContainsFunc(l.RootRanksOK, func(ok *int) bool { return ok != nil && *ok == *r.RootRank })
	}
	for _, ok := range l.RootOK {
		if ok.File == r.RootFile && r.RootLineNo != nil && abs(*r.RootLineNo-ok.LineNo) <= 2 {
			return true
		}
	}
	return false
}

func abs(n int) int { return max(n, -n) }

// sharedFailures is where labelled cases lie outside the module, if anywhere.
func sharedFailures(t *testing.T) string {
	t.Helper()
	dirs := []string{filepath.Join("..", "..", "..", "shared")}
	if d := os.Getenv("MEGATRON_OPS_SHARED"); d != "" {
		dirs = append([]string{d}, dirs...)
	}
	for _, d := range dirs {
		if p := filepath.Join(d, "failures"); exists(p) {
			return p
		}
	}
	t.Skip("no labelled cases beside the module; set MEGATRON_OPS_SHARED to a folder that has failures/")
	return ""
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func readLines[T any](t *testing.T, path string) (all []T) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		var v T
		require.NoError(t, json.Unmarshal(s.Bytes(), &v))
		all = append(all, v)
	}
	return all
}

// TestConformance scores the diagnosis on labelled logs and prints the
// confusion table.
func TestConformance(t *testing.T) {
	root := sharedFailures(t)
	t.Run("composed", func(t *testing.T) {
		score(t, root, func(l label) string {
			if l.Kind == "single" {
				return filepath.Join(root, "cases", l.ID+".log")
			}
			return filepath.Join(root, "composite", l.ID)
		})
	})
	t.Run("real", func(t *testing.T) {
		score(t, filepath.Join(root, "realruns"), func(l label) string { return filepath.Join(root, "realruns", "runs", l.ID) })
	})
}

func score(t *testing.T, dir string, path func(label) string) {
	type withID struct {
		ID string `json:"id"`
		diagnose.Context
	}
	given := map[string]diagnose.Context{}
	for _, c := range readLines[withID](t, filepath.Join(dir, "context.jsonl")) {
		given[c.ID] = c.Context
	}
	var out *os.File
	if f := os.Getenv("DIAGNOSE_PREDICTIONS"); f != "" {
		var err error
		out, err = os.OpenFile(f, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		require.NoError(t, err)
		defer out.Close()
	}
	confusion := map[[2]string]int{}
	var singles, singlesOK, lines, linesOK, multi, multiOK, placeOK, retryOK, healthy, alarms, excludeOK int
	for _, l := range readLines[label](t, filepath.Join(dir, "labels.jsonl")) {
		r, err := diagnose.Path(context.Background(), path(l), given[l.ID])
		require.NoError(t, err, l.ID)
		if out != nil {
			b, _ := json.Marshal(struct {
				ID string `json:"id"`
				diagnose.Report
			}{l.ID, r})
			fmt.Fprintf(out, "%s\n", b)
		}
		got, want := r.Class, l.Class
		if l.accepts(got) {
			want = got
		} else {
			t.Logf("%s: %s, labelled %s: %s", l.ID, got, l.Class, r.RootLine)
		}
		confusion[[2]string{want, got}]++
		switch {
		case l.Class == diagnose.Success:
			healthy++
			if !l.accepts(got) {
				alarms++
			}
		case l.Kind == "single":
			singles++
			singlesOK += count(l.accepts(got))
			if l.RootLine != "" {
				lines++
				ok := r.RootLineNo != nil && slices.Contains(l.RootLineNos, *r.RootLineNo)
				linesOK += count(ok)
				if !ok {
					t.Logf("%s: line %v, labelled %v (%s)", l.ID, value(r.RootLineNo), l.RootLineNos, r.RootLine)
				}
			}
		case l.Type == "hang":
			multi++
			multiOK += count(l.accepts(got))
			placeOK++
			retryOK++
			excludeOK++
		default:
			multi++
			multiOK += count(l.accepts(got))
			ok := l.place(r)
			placeOK += count(ok)
			if !ok {
				t.Logf("%s: place %s:%v rank %v, labelled rank %v %v", l.ID, r.RootFile, value(r.RootLineNo), value(r.RootRank), value(l.RootRank), l.RootOK)
			}
			retryOK += count(r.Retry == l.Retry)
			if r.Retry != l.Retry {
				t.Logf("%s: retry %v for %s", l.ID, r.Retry, r.RootLine)
			}
			same := slices.Equal(r.ExcludeNodes, l.ExcludeNodes)
			excludeOK += count(same)
			if !same {
				t.Logf("%s: exclude %v, labelled %v", l.ID, r.ExcludeNodes, l.ExcludeNodes)
			}
		}
	}
	t.Logf("one log: class %d/%d, line %d/%d", singlesOK, singles, linesOK, lines)
	t.Logf("many ranks: class %d/%d, place %d/%d, retry %d/%d, exclude %d/%d", multiOK, multi, placeOK, multi, retryOK, multi, excludeOK, multi)
	t.Logf("false alarms: %d of %d", alarms, healthy)
	t.Logf("confusion (labelled → diagnosed):\n%s", table(confusion))
	require.GreaterOrEqual(t, float64(singlesOK), 0.92*float64(singles))
	require.GreaterOrEqual(t, float64(multiOK), 0.95*float64(multi))
	require.GreaterOrEqual(t, float64(placeOK), 0.95*float64(multi))
	require.GreaterOrEqual(t, float64(retryOK), 0.95*float64(multi))
	require.Zero(t, alarms)
}

func value(n *int) any {
	if n == nil {
		return "none"
	}
	return *n
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func table(confusion map[[2]string]int) string {
	var keys [][2]string
	for k := range confusion {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i][0]+keys[i][1] < keys[j][0]+keys[j][1] })
	var b strings.Builder
	for _, k := range keys {
		mark := ""
		if k[0] != k[1] {
			mark = "  ✗"
		}
		fmt.Fprintf(&b, "  %-28s %-28s %4d%s\n", k[0], k[1], confusion[k], mark)
	}
	return b.String()
}
