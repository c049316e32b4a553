package launch

import (
	"context"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/preflight"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// docSource is the kind of document that holds a job's code, under the cluster's name
// and the job's id.
const docSource = "source"

// sourceLife is how long the store keeps it.
const sourceLife = 2 * 365 * 24 * time.Hour

// startSource starts to read which code the job s will run. The function that it
// returns waits for the result, which is nil where the code cannot be known.
func startSource(ctx context.Context, c *ops.Call, cl ops.Cluster, s job.Spec) func() *cluster.GitSource {
	found := make(chan *cluster.GitSource, 1)
	go func() {
		var of cluster.GitSource
		ok := false
		if t, can := cl.(interface {
			Source(context.Context, string) (cluster.GitSource, bool)
		}); can {
			of, ok = t.Source(ctx, s.Worktree)
		} else if preflight.SharesFiles(c, s) && c.OwnHands() && s.Worktree != "" {
			of, ok = cluster.SourceHere(ctx, s.Worktree)
		}
		if !ok {
			found <- nil
			return
		}
		found <- &of
	}()
	return func() *cluster.GitSource { return <-found }
}

// keepSource stores the code of a job. A failure is ignored, because the job is
// submitted.
func keepSource(ctx context.Context, c *ops.Call, cl ops.Cluster, id slurm.JobID, of *cluster.GitSource) {
	if of != nil {
		_ = c.Docs().Put(context.WithoutCancel(ctx), docSource, cl.Name()+"/"+string(id), of, c.Now().Add(sourceLife))
	}
}

// SourceOf returns the code of a job that was submitted here, or nil.
func SourceOf(ctx context.Context, c *ops.Call, cl string, id slurm.JobID) *cluster.GitSource {
	if !slurm.IsStepID(string(id)) {
		id = id.Array()
	}
	var of cluster.GitSource
	if ok, err := c.Docs().Get(ctx, docSource, cl+"/"+string(id), c.Now(), &of); err != nil || !ok {
		return nil
	}
	return &of
}

// transferFor returns the transfer of the worktree for the job s, and s with its
// worktree on the cluster: the folder that the job names there, or, where that is a
// folder on this machine, the same place below the cluster's sync_to.
func transferFor(c *ops.Call, cl ops.Cluster, s job.Spec) (*treeTransfer, job.Spec, error) {
	in := SyncIn{To: s.Worktree}
	if c.Dir == "" { // the call comes from an agent
		in.Dir = s.Worktree
	}
	here := c.Dir
	if here != "" {
		here = worktreeAround(here)
	}
	inside := ""
	if rel, err := filepath.Rel(here, s.Worktree); here != "" && err == nil && filepath.IsLocal(rel) {
		in.To, inside = "", rel
	} else if c.Dir == "" {
		in.To = ""
	}
	b, err := newTransfer(c, cl, in)
	s.Worktree = path.Join(b.to, inside)
	return &b, s, err
}

// before runs before a submission. It compares the worktree with the cluster's, and
// transfers it once the caller has agreed to the difference.
func (b *treeTransfer) before(ctx context.Context, c *ops.Call, out *SubmitOut, agreed bool) (lang.Text, error) {
	do := b.compare
	if agreed {
		do = b.run
	}
	done, err := do(ctx, c)
	out.Sync = &done
	return done.question(), err
}

// pending reports whether files still have to be transferred.
func (o *SyncOut) pending() bool { return o != nil && !o.Brought && !o.unchanged() }

// SourceLine describes the code of a job in one line.
func SourceLine(of *cluster.GitSource) lang.Text {
	short := of.Commit[:min(len(of.Commit), 12)]
	t := lang.Text{EN: "commit %s", ZH: "提交 %s"}.With(short)
	if of.Commit == "" {
		t = lang.Text{EN: "no git repository", ZH: "不是 git 仓库"}
	}
	if of.Changed {
		added, removed := 0, 0
		for line := range strings.Lines(of.Diff) {
			switch {
			case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			case strings.HasPrefix(line, "+"):
				added++
			case strings.HasPrefix(line, "-"):
				removed++
			}
		}
		t = lang.Text{EN: "%s, changed: +%d −%d lines, %d untracked", ZH: "%s，有改动：+%d −%d 行，未跟踪 %d 个文件"}.With(t, added, removed, len(of.New))
	}
	if of.Brought != "" {
		t = lang.Text{EN: "%s, brought by %s", ZH: "%s，由 %s 传输"}.With(t, of.Brought)
	}
	return t
}
