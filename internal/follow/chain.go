package follow

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// linkMark stands between the key of a chain's first job and a link's number.
const linkMark = "/link-"

// promptly is how soon after its start a job of a chain queues the next one: it
// does so before anything else.
const promptly = 2 * time.Minute

// adopt takes up the job that a chain's job has queued after itself, so that it
// is followed and told of like the first, in the same thread. It is looked for in
// what is known of the queue, where it waits for the end of this one.
func (f *Follower) adopt(ctx context.Context, st *store.Store, j slurm.Job) {
	sub, s, ok := specOf(ctx, st, j)
	if !ok || s.Chain == nil {
		return
	}
	first, n := linkOf(sub)
	if n >= *s.Chain {
		return
	}
	f.adopting.Lock()
	defer f.adopting.Unlock()
	key := first + linkMark + strconv.Itoa(n+1)
	if _, err := st.Submission(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return
	}
	for _, next := range f.queueOf(ctx, j) {
		if !follows(next, j, s) {
			continue
		}
		if _, err := st.ByJob(ctx, j.Cluster, next.ID); !errors.Is(err, store.ErrNotFound) {
			continue
		}
		// Told first: what a crash lets be told again shows once.
		f.tell(ctx, News{Job: j, Next: next.ID, Why: linked(next.ID, n+1, *s.Chain, s)})
		link := sub
		link.Key, link.Token, link.JobID, link.CreatedAt = key, sub.Token+"-"+strconv.Itoa(n+1), next.ID, f.Service.Now()
		if err := st.Adopt(ctx, link); err != nil {
			f.Log.Error("the next job of a chain could not be taken up", "job", next.ID, "error", err)
		}
		return
	}
}

// linked says that the next job of a chain waits, and how to end the chain.
func linked(id slurm.JobID, n, of int, s job.Spec) lang.Text {
	s = s.WithDefaults()
	stop := path.Join(s.LogDir, s.Name+".stop")
	return lang.Text{
		EN: fmt.Sprintf("job %d of the chain's %d is queued as %s; `touch %s` ends the chain", n, of, id, stop),
		ZH: fmt.Sprintf("作业链的第 %d 个作业（共 %d 个）已排队为 %s；`touch %s` 可结束作业链", n, of, id, stop),
	}
}

// linkOf is the key of a chain's first job, and which job of the chain sub is.
func linkOf(sub store.Submission) (first string, n int) {
	first, number, ok := strings.Cut(sub.Key, linkMark)
	if !ok {
		return sub.Key, 1
	}
	n, _ = strconv.Atoi(number)
	return first, n
}

// queueOf is what is known of the jobs of j's user, which asks the cluster
// nothing more where many readers share its answers.
func (f *Follower) queueOf(ctx context.Context, j slurm.Job) []slurm.Job {
	mine := slurm.Filter{User: j.User, All: true}
	if v := f.Service.Views[j.Cluster]; v != nil {
		rows, _ := v.Known(mine)
		return rows
	}
	rows, err := f.Service.Reader(j.Cluster).Jobs(ctx, mine)
	if err != nil && ctx.Err() == nil {
		f.Log.Warn("the queue could not be read for the next job of a chain", "job", j.ID, "error", err)
	}
	return rows
}

// follows reports whether next is the job that j's script queued: of the same
// name, person and folder, with none of our tokens, and either waiting for another
// job's end or queued as j started.
func follows(next, j slurm.Job, s job.Spec) bool {
	if next.User != j.User || next.Name != s.WithDefaults().Name || next.WorkDir != j.WorkDir || !later(next.ID, j.ID) ||
		slurm.UserComment(next.Comment) != next.Comment || next.SubmittedAt == nil || j.StartedAt == nil || next.SubmittedAt.Before(*j.StartedAt) {
		return false
	}
	return next.Reason == "Dependency" || next.SubmittedAt.Sub(*j.StartedAt) < promptly
}

// later reports whether a job was submitted after another, by their numbers.
func later(a, b slurm.JobID) bool {
	m, err1 := strconv.Atoi(string(a))
	n, err2 := strconv.Atoi(string(b))
	return err1 == nil && err2 == nil && m > n
}
