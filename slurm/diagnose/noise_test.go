package diagnose_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// TestNoiseChangesNoVerdict adds common output before, between and after the lines of every labelled
// case: modules, tables, environments, usage texts, warnings of libraries, a script that goes on.
func TestNoiseChangesNoVerdict(t *testing.T) {
	kinds, err := filepath.Glob(diagnosetest.Testdata("noise", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, kinds)
	cases, reports := diagnosetest.Cases(t), diagnosetest.Reports(t)
	plain, nodes := map[string]string{}, map[string]string{}
	for _, l := range cases {
		r := reports[l.ID]
		plain[l.ID], nodes[l.ID] = verdictWithoutLine(r), "localhost"
		if r.RootNode != nil {
			nodes[l.ID] = *r.RootNode
		}
	}
	for k, file := range kinds {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		noise := strings.TrimSuffix(string(b), "\n")
		for p, place := range []string{"before", "between", "after"} {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+place, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for i, l := range cases {
					if testing.Short() && (i+k+p)%len(kinds) != 0 {
						continue // each case is tested with one kind at each place; all combinations would read 80 MB
					}
					if place == "after" && l.Type == "hang" {
						continue // a script writes nothing more while its job hangs
					}
					if l.ID == "s007" && strings.Contains(file, "script") {
						continue // of two errors of one script the first one counts
					}
					path := filepath.Join(dir, filepath.Base(l.Path()))
					said := strings.ReplaceAll(noise, "{node}", nodes[l.ID])
					copyLogs(t, l.Path(), path, func(log []byte) []byte { return withNoise(log, said, place) })
					r, err := diagnose.Path(context.Background(), path, l.Context)
					require.NoError(t, err)
					if got := verdictWithoutLine(r); got != plain[l.ID] {
						t.Errorf("%s\nwas %s\nnow %s", l.ID, plain[l.ID], got)
					}
					require.NoError(t, os.RemoveAll(path))
				}
			})
		}
	}
}

// verdictWithoutLine is a verdict with the text of the cause's line, without its prefix, instead of its
// number.
func verdictWithoutLine(r report.Report) string {
	_, text := logline.CutTag(r.RootLine)
	r.RootLineNo = nil
	return diagnosetest.Verdict("", r) + " " + r.RootFile + " " + text
}

// withNoise adds noise to a log at a place. An empty log stays empty.
func withNoise(log []byte, noise, place string) []byte {
	if len(log) == 0 {
		return log
	}
	lines := strings.Split(strings.TrimSuffix(string(log), "\n"), "\n")
	at := map[string]int{"before": 0, "between": betweenStatements(lines), "after": len(lines)}[place]
	return []byte(strings.Join(slices.Insert(lines, at, timed(noise, lines, at)), "\n") + "\n")
}

// betweenStatements returns a line near the middle before which noise does not break a traceback or a
// summary.
func betweenStatements(lines []string) int {
	at := len(lines) / 2
	for at > 0 && !strings.Contains(lines[at], "iteration ") && !strings.Contains(lines[at], "NCCL INFO") && !strings.HasPrefix(lines[at], "srun:") {
		at--
	}
	return at
}

var moment = regexp.MustCompile(`(\d{4})-(\d\d)-(\d\d)[ T](\d\d:\d\d:\d\d)`)

// timed gives the log's time to noise at the log's beginning. Noise with a time cannot stand elsewhere,
// as the clock would run backwards.
func timed(noise string, lines []string, at int) string {
	var when []string
	if at == 0 {
		when = moment.FindStringSubmatch(strings.Join(lines, "\n"))
	}
	var kept []string
	for _, l := range strings.Split(noise, "\n") {
		if when == nil && regexp.MustCompile(`\{(?:time|glog3?)\}`).MatchString(l) {
			continue
		}
		if when != nil {
			day := when[2] + when[3]
			l = strings.NewReplacer("{time}", when[1]+"-"+when[2]+"-"+when[3]+" "+when[4], "{glog}", day+" "+when[4], "{glog3}", strings.TrimPrefix(day,
				"0")+" "+when[4]).Replace(l)
		}
		kept = append(kept, l)
	}
	return strings.Join(kept, "\n")
}
