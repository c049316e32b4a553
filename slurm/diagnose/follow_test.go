package diagnose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/stretchr/testify/require"
)

func TestFollowTellsEachLineOnce(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, flag int, text string) {
		f, err := os.OpenFile(filepath.Join(dir, name), flag|os.O_CREATE|os.O_WRONLY, 0o644)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	put("rank0.log", os.O_APPEND, "old\n")
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	w := diagnose.NewFollower(src, diagnose.Filter{})
	look := func() (got []string) {
		lines, err := w.Look(t.Context(), nil, dir)
		require.NoError(t, err)
		for _, l := range lines {
			got = append(got, fmt.Sprintf("%d %d %s", *l.Rank, l.LineNo, l.Text))
		}
		return got
	}
	require.Empty(t, look())
	put("rank0.log", os.O_APPEND, "half")
	require.Empty(t, look(), "a line is told when it is whole")
	put("rank0.log", os.O_APPEND, " and whole\n")
	require.Equal(t, []string{"0 2 half and whole"}, look())
	put("rank0.log", os.O_TRUNC, "anew\n")
	require.Equal(t, []string{"0 1 anew"}, look())
	put("rank0.log", os.O_APPEND, "\n \nmore\n")
	require.Equal(t, []string{"0 4 more"}, look(), "empty lines are counted and not told")
	put("rank1.log", os.O_APPEND, "other\n")
	require.Equal(t, []string{"1 1 other"}, look())
	require.Empty(t, look())
	gone := diagnose.NewFollower(logfile.Source{}, diagnose.Filter{})
	lines, err := gone.Look(t.Context(), nil, filepath.Join(dir, "later.log"))
	require.NoError(t, err)
	require.Empty(t, lines, "a log that is not there yet")
	put("later.log", os.O_APPEND, "first\n")
	lines, err = gone.Look(t.Context(), nil, filepath.Join(dir, "later.log"))
	require.NoError(t, err)
	require.Len(t, lines, 1)
}

// TestFollowMergesAndFilters has four ranks on two nodes that write at the same time.
func TestFollowMergesAndFilters(t *testing.T) {
	dir := t.TempDir()
	name := func(rank int) string {
		return filepath.Join(dir, fmt.Sprintf("train_gpu%d_rank%04d.out", 1+rank/2, rank))
	}
	for rank := range 4 {
		require.NoError(t, os.WriteFile(name(rank), []byte("begins\n"), 0o600))
	}
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	three := 3
	followers := map[string]*diagnose.Follower{}
	for what, f := range map[string]diagnose.Filter{"all": {}, "rank": {Rank: &three}, "node": {Node: "gpu1"}, "level": {Level: "error"}} {
		f.Nodes = []string{"gpu1", "gpu2"}
		followers[what] = diagnose.NewFollower(src, f)
	}
	for rank := range 4 {
		f, err := os.OpenFile(name(rank), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		fmt.Fprintf(f, "[2026-06-11 10:00:%02d] step of mine\n  without a time\n[2026-06-11 10:00:40] all done\n", 30-rank)
		if rank == 2 {
			fmt.Fprintf(f, "[2026-06-11 10:00:41] RuntimeError: token=hf_abcdefghijklmnopqrstuvwxyz012345 \x1b[31mred\n")
		}
		require.NoError(t, f.Close())
	}
	got := map[string][]string{}
	for what, w := range followers {
		lines, err := w.Look(t.Context(), nil, dir)
		require.NoError(t, err)
		if what == "all" {
			collapsed := diagnose.Collapse(lines)
			last := collapsed[len(collapsed)-2]
			require.Equal(t, "[2026-06-11 10:00:40] all done", last.Text)
			require.Equal(t, 4, last.Ranks)
		}
		for _, l := range lines {
			got[what] = append(got[what], fmt.Sprintf("%d %s %s", *l.Rank, l.Node, l.Text))
		}
	}
	require.Len(t, got["all"], 13)
	require.Equal(t, []string{"3 gpu2 [2026-06-11 10:00:27] step of mine", "3 gpu2   without a time", "2 gpu2 [2026-06-11 10:00:28] step of mine"}, got["all"][:3],
		"merged by time, each file in its order")
	require.Len(t, got["rank"], 3)
	require.Len(t, got["node"], 6)
	require.Len(t, got["level"], 1)
	require.NotContains(t, strings.Join(got["level"], ""), "hf_abc", "secrets stay here")
	require.NotContains(t, strings.Join(got["level"], ""), "\x1b")
}
