package diagnose_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// TestNoiseChangesNoVerdict puts what real jobs print beside their own words
// before, between and after the lines of every labelled case: modules, tables,
// environments, usage texts, warnings of libraries, a script that goes on.
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
						continue // each case meets one kind at each place; the whole matrix reads 80 MB
					}
					if place == "after" && l.Type == "hang" {
						continue // a script writes nothing more while its job hangs
					}
					if l.ID == "s007" && strings.Contains(file, "script") {
						continue // of two errors of one script the first one counts
					}
					path := filepath.Join(dir, filepath.Base(l.Path()))
					copyWithNoise(t, l.Path(), path, strings.ReplaceAll(noise, "{node}", nodes[l.ID]), place)
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

// verdictWithoutLine is a verdict with the text of its line, less what stands before
// it, in place of the number.
func verdictWithoutLine(r report.Report) string {
	_, text := logline.CutTag(r.RootLine)
	r.RootLineNo = nil
	return diagnosetest.Verdict("", r) + " " + r.RootFile + " " + text
}

// copyWithNoise copies a log, or every log of a folder, with noise in it.
func copyWithNoise(t *testing.T, from, to, noise, place string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return os.WriteFile(target, b, 0o644)
		}
		lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		at := map[string]int{"before": 0, "between": betweenStatements(lines), "after": len(lines)}[place]
		all := append(append(append([]string{}, lines[:at]...), timed(noise, lines, at)), lines[at:]...)
		return os.WriteFile(target, []byte(strings.Join(all, "\n")+"\n"), 0o644)
	}))
}

// betweenStatements finds a line near the middle before which something may
// stand without tearing a traceback or a summary apart.
func betweenStatements(lines []string) int {
	at := len(lines) / 2
	for at > 0 && !strings.Contains(lines[at], "iteration ") && !strings.Contains(lines[at], "NCCL INFO") && !strings.HasPrefix(lines[at], "srun:") {
		at--
	}
	return at
}

var moment = regexp.MustCompile(`(\d{4})-(\d\d)-(\d\d)[ T](\d\d:\d\d:\d\d)`)

// timed gives noise at the head of a log the log's time; noise with a time has
// no place elsewhere, where it would say that the clock ran backwards.
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
