package joblogs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestAWindowIsWholeLinesWhereverItBegins(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	file := filepath.Join(t.TempDir(), "a.out")
	var all strings.Builder
	for i := 1; i <= 20_000; i++ {
		fmt.Fprintf(&all, "line %d of a log\n", i)
	}
	opstest.Write(t, file, all.String()+"the last, unfinished")
	window := func(at Place) Window {
		t.Helper()
		w, err := ReadWindow(t.Context(), c, slurm.Job{User: "alice"}, file, at)
		require.NoError(t, err)
		return w
	}
	first := window(Place{})
	require.Equal(t, "line 1 of a log", first.Lines[0])
	require.Less(t, len(first.Lines), 20_000)
	// Reading forward from each window's end gives every line once.
	var lines []string
	for at := (Place{}); ; {
		w := window(at)
		lines = append(lines, w.Lines...)
		if at.From = w.To; w.To >= w.Size {
			break
		}
	}
	require.Len(t, lines, 20_001)
	require.Equal(t, "line 20000 of a log", lines[19_999])

	// Reading backward from the end gives every line once.
	w := window(Place{End: true})
	require.Equal(t, "the last, unfinished", w.Lines[len(w.Lines)-1])
	back := append([]string{}, w.Lines...)
	for w.From > 0 {
		w = window(Place{Before: w.From})
		back = append(append([]string{}, w.Lines...), back...)
	}
	require.Equal(t, lines, back)

	for _, n := range []int{1, 2, 9_999, 20_000} {
		w := window(Place{Line: n})
		require.Equal(t, fmt.Sprintf("line %d of a log", n), w.Lines[w.Mark])
	}
	w = window(Place{Line: 50_000})
	require.Equal(t, "the last, unfinished", w.Lines[w.Mark], "there are fewer lines")
	require.Equal(t, []string{"line 12345 of a log"}, window(Place{Find: "LINE 12345 "}).Lines)

	// A search with too many results continues where it stopped.
	found := 0
	for at := (Place{Find: "log"}); ; {
		w := window(at)
		found += len(w.Lines)
		if at.From = w.To; w.To >= w.Size {
			break
		}
	}
	require.Equal(t, 20_000, found)
}

// A line's offset is found whatever precedes it, also across blocks that are counted in
// parallel.
func TestALineIsFoundFarDown(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	file := filepath.Join(t.TempDir(), "a.out")
	var all strings.Builder
	for i := 1; all.Len() < 5*countBytes; i++ {
		fmt.Fprintf(&all, "line %d %s\n", i, strings.Repeat("x", i%3000))
	}
	lines := strings.Count(all.String(), "\n")
	opstest.Write(t, file, all.String())
	for _, n := range []int{1, 2, lines / 3, lines / 2, lines - 1, lines} {
		w, err := ReadWindow(t.Context(), c, slurm.Job{User: "alice"}, file, Place{Line: n})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(w.Lines[w.Mark], fmt.Sprintf("line %d x", n)) || w.Lines[w.Mark] == fmt.Sprintf("line %d ", n), w.Lines[w.Mark])
	}
}

// Where a log has fewer lines, the last one is marked.
func TestALineBehindTheEndIsTheLast(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for name, log := range map[string]string{
		"one line": "the last", "a line before it": "a\nthe last", "an empty line before it": "\nthe last", "two empty lines before it": "\n\nthe last",
	} {
		file := filepath.Join(t.TempDir(), "a.out")
		opstest.Write(t, file, log)
		w, err := ReadWindow(t.Context(), c, slurm.Job{User: "alice"}, file, Place{Line: 9})
		require.NoError(t, err)
		require.Equal(t, "the last", w.Lines[w.Mark], name)
	}
}

// Lines are selected by their writer and severity, as the operation logs does.
func TestAWindowOfOneRank(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	file := filepath.Join(t.TempDir(), "a-7.out")
	var all strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&all, "%d: step %d\n", i%4, i)
	}
	all.WriteString("2: RuntimeError: broken\n2: warning: slow\n3: WARNING: hot\n")
	opstest.Write(t, file, all.String())
	rank := 2
	for name, p := range map[string]struct {
		at   Place
		want []string
	}{
		"rank":          {Place{Rank: &rank, Find: "step 10"}, []string{"2: step 10", "2: step 102", "2: step 106", "2: step 1002"}},
		"errors":        {Place{Level: "error"}, []string{"2: RuntimeError: broken"}},
		"warnings":      {Place{Level: "warning", Rank: &rank}, []string{"2: RuntimeError: broken", "2: warning: slow"}},
		"nobody":        {Place{Rank: new(int), Level: "error"}, nil},
		"newest errors": {Place{Level: "error", End: true}, []string{"2: RuntimeError: broken"}},
		"another node":  {Place{Node: "gpu9"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := ReadWindow(t.Context(), c, slurm.Job{User: "alice"}, file, p.at)
			require.NoError(t, err)
			require.Equal(t, w.Size, w.To)
			require.GreaterOrEqual(t, len(w.Lines), len(p.want))
			if len(p.want) == 0 {
				require.Empty(t, w.Lines)
				return
			}
			require.Equal(t, p.want, w.Lines[:len(p.want)])
		})
	}
	// The rest continues behind the last line that was returned.
	seen := 0
	for at := (Place{Rank: &rank}); ; {
		w, err := ReadWindow(t.Context(), c, slurm.Job{User: "alice"}, file, at)
		require.NoError(t, err)
		require.LessOrEqual(t, len(w.Lines), findLines)
		for _, l := range w.Lines {
			require.True(t, strings.HasPrefix(l, "2: "), l)
		}
		seen += len(w.Lines)
		if at.From = w.To; w.To >= w.Size {
			break
		}
	}
	require.Equal(t, 752, seen)
}

// A line that is longer than a window can be passed in both directions: it is shown
// cut, and its neighbours completely.
func TestALineLongerThanAWindowIsPassed(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	file := filepath.Join(t.TempDir(), "a.out")
	opstest.Write(t, file, "before\n"+strings.Repeat("x", 3*windowBytes)+"\nbehind\nlast\n")
	window := func(at Place) Window {
		t.Helper()
		w, err := ReadWindow(t.Context(), c, slurm.Job{User: "alice"}, file, at)
		require.NoError(t, err)
		require.NotEmpty(t, w.Lines)
		require.Less(t, w.From, w.To)
		return w
	}
	words := func(w Window) (all []string) {
		for _, l := range w.Lines {
			all = append(all, l[:min(len(l), 6)])
		}
		return all
	}
	on := []string{}
	for at := (Place{}); ; {
		w := window(at)
		on = append(on, words(w)...)
		if at.From = w.To; w.To >= w.Size {
			break
		}
	}
	require.Equal(t, []string{"before", "xxxxxx", "behind", "last"}, slices.Compact(on))
	back := []string{}
	for at := (Place{Before: int64(len("before\n") + 3*windowBytes + 1)}); at.Before > 0; {
		w := window(at)
		back = append(words(w), back...)
		at.Before = w.From
	}
	require.Equal(t, "before", back[0])
	require.Equal(t, "xxxxxx", back[len(back)-1])
	opstest.Write(t, file, "\n"+strings.Repeat("x", 3*windowBytes))
	require.Equal(t, []string{""}, window(Place{}).Lines, "the long line comes by itself, though what is before it is empty")
}

// A viewer shows of a line what a terminal would finally show, without secrets.
func TestAWindowShowsLinesAsTheyMayBeSeen(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	file := filepath.Join(t.TempDir(), "a.out")
	opstest.Write(t, file, "  1%|  | 1/100\r 50%|##| 50/100\r100%|####| 100/100\n\x1b[31mred\x1b[0m\r\nWANDB_API_KEY=0123456789abcdef0123456789abcdef01234567\n")
	for name, at := range map[string]Place{"read": {}, "searched": {Find: "0"}} {
		w, err := ReadWindow(t.Context(), c, slurm.Job{User: "alice"}, file, at)
		require.NoError(t, err)
		require.Equal(t, "100%|####| 100/100", w.Lines[0], name)
		require.NotContains(t, strings.Join(w.Lines, "\n"), "0123456789abcdef", name)
		if name == "read" {
			require.Equal(t, "red", w.Lines[1])
		}
	}
}

// A page offers the files of a job, and not the folder of its ranks' logs, which has no lines.
func TestAFolderIsNoLogFile(t *testing.T) {
	logs := t.TempDir()
	file := filepath.Join(logs, "gpt-7.out")
	opstest.Write(t, file, "line\n")
	opstest.Write(t, filepath.Join(logs, "7", "attempt-0", "start-0"), "start\n")
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": {ID: "7", User: "alice", State: slurm.Running, Stdout: file}}})
	_, files, err := Files(t.Context(), c, "", "7")
	require.NoError(t, err)
	require.Equal(t, []string{file}, files)
}

func TestALineWithoutAnEndIsCut(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	file := filepath.Join(t.TempDir(), "a.out")
	opstest.Write(t, file, strings.Repeat("x", 1<<20))
	for _, at := range []Place{{}, {End: true}, {Line: 1}, {Find: "x"}} {
		w, err := ReadWindow(t.Context(), c, slurm.Job{User: "alice"}, file, at)
		require.NoError(t, err)
		for _, line := range w.Lines {
			require.LessOrEqual(t, len(line), longestLine)
		}
	}
	_, err := ReadWindow(t.Context(), c, slurm.Job{User: "alice"}, filepath.Join(t.TempDir(), "none"), Place{})
	require.ErrorContains(t, err, "cannot be read")
}
