package chat_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// A far cluster needs one more file uploaded from the second look on.
type far struct {
	*bench
	looks, brought int
}

func (*far) Kind() string { return "ssh" }

func (*far) SyncDefaults() (string, []string) { return "/lustre", nil }

func (f *far) CompareTree(_ context.Context, t *cluster.SourceTree, _ string) (d cluster.TreeDifference, err error) {
	for _, file := range t.Files {
		d.Added = append(d.Added, cluster.TreeChange{Path: file.Path, Bytes: file.Bytes})
	}
	if f.looks++; f.looks > 1 {
		d.Added = append(d.Added, cluster.TreeChange{Path: "secret.env", Bytes: 8})
	}
	return d, nil
}

func (f *far) BringTree(ctx context.Context, t *cluster.SourceTree, to, _ string, _ cluster.GitSource) (cluster.TreeDifference, error) {
	d, err := f.CompareTree(ctx, t, to)
	if t.Agreed != d.Digest() {
		return d, cluster.ErrDifferenceChanged
	}
	f.brought++
	return d, err
}

// A yes in a chat is for the files that were shown: for other files the person is asked again.
func TestAYesToASyncIsForWhatWasShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.py"), []byte("print(1)\n"), 0o600))
	for name, tt := range map[string]struct {
		keys    []string
		brought int
	}{"yes to both": {[]string{"1", "1"}, 1}, "no to the second": {[]string{"1", "2"}, 0}} {
		to := &far{bench: newBench()}
		said := converseWith(t, to, dir, lang.EN, append([]string{"sync " + dir}, tt.keys...)...)
		first, second, again := strings.Cut(said, "has changed since it was shown")
		require.True(t, again, "%s: %s", name, said)
		require.Contains(t, first, "train.py")
		require.NotContains(t, first, "secret.env")
		require.Contains(t, second, "secret.env")
		require.Equal(t, tt.brought, to.brought, "%s: %s", name, said)
	}
}
