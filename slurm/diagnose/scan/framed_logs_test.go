package scan_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// factsOfFiles are what the files of one folder tell, read as they are and from their digest.
func factsOfFiles(t *testing.T, files map[string]string) map[string][2]*scan.Facts {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	told := map[string][2]*scan.Facts{}
	for n, src := range []logfile.Source{src, digestOf(t, src, 0)} {
		all, err := scan.All(context.Background(), src)
		require.NoError(t, err)
		for i, f := range all {
			both := told[src.Logs[i].Name]
			both[n] = f
			told[src.Logs[i].Name] = both
		}
	}
	require.Len(t, told, len(files))
	return told
}

// framed puts a text before each line.
func framed(before, text string) string {
	return before + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+before) + "\n"
}

const clockOf = "2026-06-11T10:00:00.000000000Z " // as kubectl logs --timestamps writes it

// TestAShortLogHasTheFrameOfTheOthers has files of one job below a collector: a file too short to show the frame
// has that of another file, if it fits.
func TestAShortLogHasTheFrameOfTheOthers(t *testing.T) {
	const lost = "KeyError: 'tokens'\n"
	traceback := diagnosetest.Rounds(9, "The line {n}\n") + inStep("KeyError: 'a'") + "\n"
	fill := func(n int) string { return diagnosetest.Rounds(n-1, "The line {n}\n") }
	told := factsOfFiles(t, map[string]string{
		"1.out": framed(clockOf, traceback),
		"2.out": framed("node log> ", traceback),
		"3.out": framed(clockOf, "The data\n"+lost),
		"4.out": framed("node log> ", "The data\n"+lost),
		"5.out": framed("another log> ", "The data\n"+lost),
		"6.out": framed("node log> ", fill(512)+lost),
		"7.out": framed("node log> ", fill(513)+lost),
		"8.out": "The data\n" + lost,
	})
	for name, text := range map[string]string{
		"1.out": "KeyError: 'a'", "2.out": "KeyError: 'a'", "3.out": "KeyError: 'tokens'", "4.out": "KeyError: 'tokens'",
		"5.out": "", "6.out": "KeyError: 'tokens'", "7.out": "", "8.out": "KeyError: 'tokens'",
	} {
		for n, f := range told[name] {
			var got string
			for _, e := range f.Events {
				require.Empty(t, got, name)
				got = e.Text
			}
			require.Equal(t, text, got, "%s %d", name, n)
		}
	}
	require.Equal(t, 10, told["3.out"][0].Events[0].Before.Hour(), "the frame's time is the line's")
	require.Empty(t, factsOf(t, framed("node log> ", "The data\n"+lost)).Events, "no other file shows a frame")
}

// TestAFrameIsThatOfTheWholeLog has long logs of which only the beginning has a frame, or whose lines are numbered.
func TestAFrameIsThatOfTheWholeLog(t *testing.T) {
	body := func(n int) string { return inStep("KeyError: 'a'") + "\n" + diagnosetest.Rounds(n-5, "The line {n}\n") }
	var numbered, mixed strings.Builder
	for n, l := range strings.Split(strings.TrimSuffix(body(900), "\n"), "\n") {
		fmt.Fprintf(&numbered, "%6d\t%s\n", n+1, l)
		fmt.Fprintf(&mixed, "%6d\t%s\n", n*7%900, l)
	}
	for name, c := range map[string]struct {
		log  string
		read bool
	}{
		"short":            {framed("node log> ", body(40)), true},
		"long":             {framed("node log> ", body(900)), true},
		"begun long ago":   {framed("node log> ", body(512)) + diagnosetest.Rounds(600, "x {n}\n"), false},
		"numbered by cat":  {numbered.String(), true},
		"of other numbers": {mixed.String(), false},
		"by the speaker":   {framed("[pod/gpu1/main] ", body(40)) + framed("[pod/gpu2/main] ", "The data\n\n"), true},
	} {
		f := factsOf(t, c.log)
		require.Equal(t, c.read, len(f.Events) == 1 && f.Events[0].Raw == "KeyError: 'a'", name)
		if name == "by the speaker" {
			require.Equal(t, "gpu1", f.Events[0].Tag.Host)
			require.Equal(t, "gpu1", f.Events[0].Node)
		}
	}
}

// TestIterationsInsideAFrame has a trainer's iterations below a collector, as a log and as its digest.
func TestIterationsInsideAFrame(t *testing.T) {
	const step = " iteration {n}/ 900 | elapsed time per iteration (ms): 900.1 | lm loss: 2.1 |"
	told := factsOfFiles(t, map[string]string{"1.out": framed(clockOf, inStep("KeyError: 'a'")+"\n"+diagnosetest.Rounds(5, step+"\n"))})
	for _, f := range told["1.out"] {
		require.Len(t, f.Progress, 5)
		require.Contains(t, f.Progress[4].Text, " iteration 5/ 900 |")
		require.NotContains(t, f.Progress[4].Text, "000000Z")
		require.Equal(t, "5", f.Progress[4].Step())
	}
}

// TestWhatIsAnIteration has lines with a trainer's words on an iteration, near their beginning and far behind it.
func TestWhatIsAnIteration(t *testing.T) {
	pad := func(n int) string { return strings.Repeat("x", n) }
	for line, is := range map[string]bool{
		" iteration 3/ 9 | elapsed time per iteration (ms): 9": true,
		" iteration 3/ 9 | time (ms): 9":                       false,
		" step 3/ 9 | elapsed time per iter (ms): 9":           false,
		pad(293) + " elapsed time per iteration":               true,
		pad(294) + " elapsed time per iteration":               false,
		"":                                                     false,
	} {
		require.Equal(t, is, scan.IsProgress([]byte(line)), line)
	}
}

// TestWhatFollowsAProgressBarOnItsLine has what other programs write behind a bar, with and without a launcher's label.
func TestWhatFollowsAProgressBarOnItsLine(t *testing.T) {
	const (
		bar  = " 5%|# | 1/9 [00:01<00:08, 1.1it/s]"
		full = "OSError: [Errno 28] No space left on device"
	)
	for line, want := range map[string][]string{
		bar:                             nil,
		bar + full:                      {"-1 " + full},
		bar + "\r" + bar + full:         {"-1 " + full},
		bar + "\r" + full:               {"-1 " + full},
		"3: " + bar + full:              {"3 " + full},
		"3: " + bar + "\r" + full:       {"3 " + full},
		"3: " + bar + "\r3: " + full:    {"3 " + full},
		"3: " + bar + "\r2: " + full:    {"2 " + full},
		"3: " + bar + "2: " + full:      {"2 " + full},
		bar + "\r" + full + "\r" + full: {"-1 " + full, "-1 " + full},
		bar + "\r" + bar + "Killed":     {"-1 Killed"},
		bar + "\r 6%|# | 1/9Killed":     {"-1 Killed"},
		bar + "Killed":                  {"-1 Killed"},
		"3: " + bar + "\rx 1/9Killed":   {"3 Killed"},
		"6%|# | 1/9Killed":              nil,
		bar + "\r 6% 1/9Killed\r" + bar: nil,
		bar + "\r\r" + full:             {"-1 " + full},
		"\r\r":                          nil,
	} {
		var got []string
		for _, e := range factsOf(t, "The data\n"+line+"\n").Events {
			got = append(got, fmt.Sprint(e.Tag.Label, " ", e.Text))
		}
		require.Equal(t, want, got, "%q", line)
	}
	f := factsOf(t, "3: "+bar+"\r"+bar+"\r3: "+bar+"\n")
	require.Len(t, f.Progress, 3)
	require.Equal(t, 3, f.Progress[1].Tag.Label)
	require.Equal(t, "3: "+bar, f.Progress[1].Text)
	require.Equal(t, map[int]bool{3: true}, f.Labels)
}

// TestOfALongLineTheBeginningOrTheLastBarIsRead has lines longer than what is examined of one.
func TestOfALongLineTheBeginningOrTheLastBarIsRead(t *testing.T) {
	const full = "OSError: [Errno 28] No space left on device"
	const most = logfile.MaxLineLength
	pad := strings.Repeat("x", 2*most)
	for name, c := range map[string]struct {
		line  string
		found bool
	}{
		"at the beginning":                   {full + pad, true},
		"at the end":                         {pad + " " + full, false},
		"at the end, behind a return":        {pad + "\r" + full, true},
		"at the beginning, a return behind":  {full + pad + "\rx", false},
		"at the beginning, an early return":  {full + "\r" + pad, true},
		"a return where it begins":           {strings.Repeat("x", most) + "\r" + full + strings.Repeat("x", most-1-len(full)), true},
		"a return just before where it does": {strings.Repeat("x", most) + "\r" + full + strings.Repeat("x", most-len(full)), false},
	} {
		require.Equal(t, c.found, len(factsOf(t, "The data\n"+c.line+"\n").Events) == 1, name)
	}
}
