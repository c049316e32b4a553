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

// docSource is the kind of document that holds the code of a job, by its cluster and
// id.
const docSource = "source"

// sourceLife is how long it is kept.
const sourceLife = 2 * 365 * 24 * time.Hour

// sourceOf begins to find out which code the job s will run; what it returns waits for
// that, and is nil where it cannot be known.
func sourceOf(ctx context.Context, c *ops.Call, cl ops.Cluster, s job.Spec) func() *cluster.GitSource {
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

// keepSource keeps the code of a job. The job is submitted whether or not that works.
func keepSource(ctx context.Context, c *ops.Call, cl ops.Cluster, id slurm.JobID, of *cluster.GitSource) {
	docs, err := c.Docs()
	if err == nil && of != nil {
		_ = docs.Put(context.WithoutCancel(ctx), docSource, cl.Name()+"/"+string(id), of, c.Now().Add(sourceLife))
	}
}

// SourceOf is the code that a job was submitted with from here, or nil.
func SourceOf(ctx context.Context, c *ops.Call, cl string, id slurm.JobID) *cluster.GitSource {
	docs, err := c.Docs()
	if err != nil {
		return nil
	}
	if !slurm.IsStepID(string(id)) {
		id = id.Array()
	}
	var of cluster.GitSource
	if ok, err := docs.Get(ctx, docSource, cl+"/"+string(id), c.Now(), &of); err != nil || !ok {
		return nil
	}
	return &of
}

// treeOf is the tree that is brought for the job s, which then runs where that is
// brought to: the worktree that the job names there, or, where that is the folder
// here, its place below the cluster's sync_to.
func treeOf(c *ops.Call, cl ops.Cluster, s job.Spec) (*bring, job.Spec, error) {
	in := SyncIn{To: s.Worktree}
	if c.Dir == "" { // an agent's
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
	b, err := bringing(c, cl, in)
	s.Worktree = path.Join(b.to, inside)
	return &b, s, err
}

// before runs before a submission: it says what bringing the tree would change, and
// brings it once the caller has agreed to that.
func (b *bring) before(ctx context.Context, c *ops.Call, out *SubmitOut, agreed bool) (lang.Text, error) {
	do := b.compare
	if agreed {
		do = b.bring
	}
	done, err := do(ctx, c)
	out.Sync = &done
	return done.would(), err
}

// toCome reports whether files are still to be brought.
func (o *SyncOut) toCome() bool { return o != nil && !o.Brought && !o.none() }

// SourceLine is the code of a job in one line.
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
