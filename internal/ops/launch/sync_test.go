package launch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// An acceptingReceiver accepts every file of a tree into an empty folder.
type acceptingReceiver struct {
	*opstest.Site
	brought int
}

func (*acceptingReceiver) SyncDefaults() (string, []string) { return "/lustre", nil }

func (*acceptingReceiver) CompareTree(_ context.Context, t *cluster.SourceTree, _ string) (d cluster.TreeDifference, err error) {
	for _, f := range t.Files {
		d.Added = append(d.Added, cluster.TreeChange{Path: f.Path, Bytes: f.Bytes})
	}
	return d, nil
}

func (s *acceptingReceiver) BringTree(ctx context.Context, t *cluster.SourceTree, to, _ string, _ cluster.GitSource) (cluster.TreeDifference, error) {
	d, err := s.CompareTree(ctx, t, to)
	if t.Agreed != "" && t.Agreed != d.Digest() {
		return d, cluster.ErrDifferenceChanged
	}
	s.brought++
	return d, err
}

// A yes applies to the difference that was shown; another difference needs another
// question.
func TestAYesIsForTheDifferenceThatWasShown(t *testing.T) {
	dir := t.TempDir()
	opstest.Write(t, filepath.Join(dir, "train.py"), "print(1)\n")
	to := &acceptingReceiver{Site: &opstest.Site{OfKind: "ssh"}}
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

// Nor does a yes to a submission with a transfer: nothing is submitted from a tree that nobody saw.
func TestAYesToASubmissionIsForTheTreeThatWasShown(t *testing.T) {
	dir := t.TempDir()
	opstest.Write(t, filepath.Join(dir, "train.py"), "print(1)\n")
	to := &acceptingReceiver{Site: &opstest.Site{OfKind: "ssh"}}
	c := opstest.NewCall(t, to.Site)
	c.Clusters = map[string]ops.Cluster{c.Default: to}
	words := append([]string{"--sync"}, opstest.GoodJob...)
	words[slices.Index(words, "/lustre/m")] = dir
	submit := func() error {
		_, err := opstest.Do(t, c, launch.Submit(), words...)
		return err
	}
	first := ops.AsError(submit())
	require.True(t, first.Confirm)
	c.Confirmed, c.Shown = true, first.Shown
	opstest.Write(t, filepath.Join(dir, "secret.env"), "TOKEN=x\n")
	second := ops.AsError(submit())
	require.True(t, second.Confirm)
	require.Empty(t, to.Submitted)
	c.Shown = second.Shown
	require.NoError(t, submit())
	require.Equal(t, []int{1, 1}, []int{to.brought, len(to.Submitted)})
}

// A differingReceiver has a fixed difference and fixed jobs in its folder.
type differingReceiver struct {
	*opstest.Site
	differs cluster.TreeDifference
}

func (*differingReceiver) SyncDefaults() (string, []string) { return "/lustre", nil }

func (p *differingReceiver) CompareTree(context.Context, *cluster.SourceTree, string) (cluster.TreeDifference, error) {
	return p.differs, nil
}

func (p *differingReceiver) BringTree(context.Context, *cluster.SourceTree, string, string, cluster.GitSource) (cluster.TreeDifference, error) {
	return p.differs, nil
}

// The question shows everything that a person must know to agree, and only some of the
// files.
func TestWhatASyncWouldDoIsShown(t *testing.T) {
	dir := t.TempDir()
	opstest.Write(t, filepath.Join(dir, "train.py"), "print(1)\n")
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "outside")))
	files := func(n int) (all []cluster.TreeChange) {
		for i := range n {
			all = append(all, cluster.TreeChange{Path: fmt.Sprintf("f%02d.py", i), Bytes: 2048})
		}
		return all
	}
	to := filepath.Join("/lustre", filepath.Base(dir))
	for name, c := range map[string]struct {
		differs cluster.TreeDifference
		says    []string
		silent  []string
	}{
		"nothing":          {cluster.TreeDifference{Same: 3}, []string{to + " is as it is here: 3 files", "links that lead out of the folder: outside"}, []string{"jobs of yours", "more"}},
		"twelve new files": {cluster.TreeDifference{Added: files(12)}, []string{"differs: 12 added, 0 changed, 0 deleted", "+ f11.py  2.0 KiB", "would see this: "}, []string{"more"}},
		"thirteen":         {cluster.TreeDifference{Added: files(13)}, []string{"+ f11.py", "+ and 1 more"}, []string{"f12.py"}},
		"edited there":     {cluster.TreeDifference{Changed: []cluster.TreeChange{{Path: "a.py", Bytes: 1, EditedThere: true}, {Path: "b.py", Bytes: 1}}}, []string{"~ a.py  1 B  (edited there since it was brought)", "~ b.py  1 B"}, []string{"b.py  1 B  (edited"}},
		"gone here":        {cluster.TreeDifference{Deleted: []cluster.TreeChange{{Path: "a\tb"}}}, []string{`- "a\tb"`}, []string{`tb"  0 B`}},
		"unfinished":       {cluster.TreeDifference{Unfinished: "bob@desk", Added: files(1)}, []string{"an earlier sync (bob@desk) broke off"}, nil},
	} {
		at := &differingReceiver{Site: &opstest.Site{OfKind: "ssh", KnownJobs: map[slurm.JobID]slurm.Job{
			"1": {ID: "1", User: "alice", State: slurm.Running, WorkDir: to}, "2": {ID: "2", User: "alice", State: slurm.Pending, WorkDir: to + "/runs"},
			"3": {ID: "3", User: "alice", State: slurm.Failed, WorkDir: to}, "4": {ID: "4", User: "alice", State: slurm.Running, WorkDir: to + "-old"},
		}}, differs: c.differs}
		call := opstest.NewCall(t, at.Site)
		call.Clusters = map[string]ops.Cluster{call.Default: at}
		out, err := opstest.Do(t, call, launch.Sync(), dir, "--dry-run")
		require.NoError(t, err, name)
		if name != "nothing" {
			require.ElementsMatch(t, []slurm.JobID{"1", "2"}, out.(launch.SyncOut).Jobs, name)
		}
		text := opstest.Text(t, out, lang.EN)
		for _, want := range c.says {
			require.Contains(t, text, want, name)
		}
		for _, not := range c.silent {
			require.NotContains(t, text, not, name)
		}
	}
}
