package launch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// A ship brings every file of a tree to a place where nothing is yet.
type ship struct {
	*opstest.Site
	brought int
}

func (*ship) SyncDefaults() (string, []string) { return "/lustre", nil }

func (*ship) CompareTree(_ context.Context, t *cluster.SourceTree, _ string) (d cluster.TreeDifference, err error) {
	for _, f := range t.Files {
		d.Added = append(d.Added, cluster.TreeChange{Path: f.Path, Bytes: f.Bytes})
	}
	return d, nil
}

func (s *ship) BringTree(ctx context.Context, t *cluster.SourceTree, to, _ string, _ cluster.GitSource) (cluster.TreeDifference, error) {
	d, err := s.CompareTree(ctx, t, to)
	if t.Agreed != "" && t.Agreed != d.Digest() {
		return d, cluster.ErrOther
	}
	s.brought++
	return d, err
}

// A yes is for the difference that was shown: another one is asked about again.
func TestAYesIsForTheDifferenceThatWasShown(t *testing.T) {
	dir := t.TempDir()
	opstest.Write(t, filepath.Join(dir, "train.py"), "print(1)\n")
	to := &ship{Site: &opstest.Site{OfKind: "ssh"}}
	c := opstest.NewCall(t, to.Site)
	c.Clusters = map[string]ops.Cluster{c.Default: to}
	run := func() *ops.Error {
		_, err := opstest.Do(t, c, launch.Sync(), dir)
		if err == nil {
			return nil
		}
		e := ops.AsError(err)
		require.True(t, e.Confirm, e)
		require.NotEmpty(t, e.Shown)
		return e
	}
	first := run()
	require.Len(t, first.Details, 1)

	c.Confirmed, c.Shown = true, first.Shown
	opstest.Write(t, filepath.Join(dir, "secret.env"), "TOKEN=x\n")
	second := run()
	require.NotNil(t, second, "it is asked again")
	require.Zero(t, to.brought)
	require.NotEqual(t, first.Shown, second.Shown)
	require.Len(t, second.Details, 2)
	require.Contains(t, second.Message.In(lang.EN), "the difference has changed since it was shown; this brings")
	require.Contains(t, second.Message.In(lang.ZH), "差异在显示之后又有变化")

	c.Shown = second.Shown
	require.Nil(t, run())
	require.Equal(t, 1, to.brought)
	require.NoError(t, os.Remove(filepath.Join(dir, "secret.env")))
	c.Shown = ""
	require.Nil(t, run(), "--yes was shown nothing")
}
