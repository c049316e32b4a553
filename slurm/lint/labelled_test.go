package lint

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A label has the faults of a script in testdata/labelled, according to its author.
type label struct {
	ID       string
	Findings []struct {
		Rule     string
		Line     []int
		Optional bool
	}
	Optional []string // rules that may be reported or not
}

// labelled reads the scripts of testdata/labelled with their labels.
func labelled(t testing.TB) (labels []label, scripts map[string]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/labelled/labels.jsonl")
	require.NoError(t, err)
	scripts = map[string]string{}
	for line := range bytes.Lines(text) {
		var l label
		require.NoError(t, json.Unmarshal(line, &l))
		src, err := os.ReadFile(filepath.Join("testdata", "labelled", l.ID+".sh"))
		require.NoError(t, err)
		labels, scripts[l.ID] = append(labels, l), string(src)
	}
	return labels, scripts
}

func TestAgreesWithTheLabelledScripts(t *testing.T) {
	labels, scripts := labelled(t)
	require.Len(t, labels, 44)
	required, hit, placed, alarms := 0, 0, 0, 0
	for _, l := range labels {
		found := Check("", []byte(scripts[l.ID]))
		known, clean := l.Optional, true
		for _, f := range l.Findings {
			known = append(known, f.Rule)
			if f.Optional {
				continue
			}
			clean = false
			required++
			if slices.ContainsFunc(found, func(g Finding) bool { return g.Rule == f.Rule }) {
				hit++
			}
			if slices.ContainsFunc(found, func(g Finding) bool { return g.Rule == f.Rule && slices.Contains(f.Line, g.Line) }) {
				placed++
			}
		}
		for _, rule := range broken(scripts[l.ID]) {
			if !slices.Contains(known, rule) {
				alarms++
				require.False(t, clean, "%s: %s on a clean script", l.ID, rule)
			}
		}
	}
	require.GreaterOrEqual(t, float64(hit), 0.92*float64(required))
	require.GreaterOrEqual(t, float64(placed), 0.92*float64(hit))
	require.GreaterOrEqual(t, float64(hit), 0.95*float64(hit+alarms))
}

// The golden file has every verdict, one script per line: the findings with their lines,
// and the findings that are left after lint --fix. Each changed verdict is one changed line.
func TestVerdictsStayAsTheyAre(t *testing.T) {
	var b strings.Builder
	pin := func(name, script string) {
		var before, after []string
		for _, f := range Check("", []byte(script)) {
			before = append(before, fmt.Sprintf("%d %s", f.Line, f.Rule))
		}
		_, applied, left := Fix([]byte(script), lang.EN)
		for _, f := range left {
			after = append(after, fmt.Sprintf("%d %s", f.Line, f.Rule))
		}
		fmt.Fprintf(&b, "%s: %s", name, strings.Join(before, ", "))
		if len(applied) > 0 {
			fmt.Fprintf(&b, " -> %s", strings.Join(after, ", "))
		}
		b.WriteByte('\n')
	}
	labels, scripts := labelled(t)
	for _, l := range labels {
		pin(l.ID, scripts[l.ID])
	}
	documents, err := filepath.Glob("testdata/documents/*.sh")
	require.NoError(t, err)
	for _, file := range documents {
		pin(filepath.Base(file), document(t, strings.TrimSuffix(filepath.Base(file), ".sh")))
	}
	for _, c := range corpus(t) {
		pin(c.name, c.script)
	}
	const golden = "testdata/verdicts.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(b.String(), "\n"), "run go test ./slurm/lint -update and read the difference")
}
