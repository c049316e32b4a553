package follow

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// chainMark separates the key of a chain's first job from the number of a later one.
const chainMark = "/link-"

// queueDelay is how soon after its start a job of a chain queues the next one: it does
// so before anything else.
const queueDelay = 2 * time.Minute

// adoptNext finds the job that a chain's job has queued after itself, so that it is
// followed and reported like the first, in the same thread. It looks in the known
// queue, where the next job waits for the end of this one.
func (f *Follower) adoptNext(ctx context.Context, st *store.Store, j slurm.Job) {
	sub, s := specOf(ctx, st, j)
	if s.Chain == nil {
		return
	}
	first, n := linkOf(sub)
	if n >= *s.Chain {
		return
	}
	f.adopting.Lock()
	defer f.adopting.Unlock()
	key := first + chainMark + strconv.Itoa(n+1)
	if _, err := st.Submission(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return
	}
	for _, next := range f.queueOf(ctx, j) {
		if !isQueuedBy(next, j, s) {
			continue
		}
		if known, err := st.ByJob(ctx, j.Cluster, next.ID); !errors.Is(err, store.ErrNotFound) && (err != nil || known.Became(next)) {
			continue
		}
		// Report first: the report has a key, so that after a crash a repeated one
		// appears only once.
		f.tell(ctx, News{Job: j, Next: next.ID, Why: chainText(next.ID, n+1, *s.Chain, s)})
		link := sub
		link.Key, link.Token, link.JobID, link.CreatedAt = key, sub.Token+"-"+strconv.Itoa(n+1), next.ID, f.Service.Now()
		if err := st.Adopt(ctx, link); err != nil {
			f.Log.Error("the next job of a chain could not be taken up", "job", next.ID, "error", err)
		}
		return
	}
}

// chainText says that the next job of a chain is queued, and how to end the chain.
func chainText(id slurm.JobID, n, of int, s job.Spec) lang.Text {
	s = s.WithDefaults()
	stop := s.StopFile()
	return lang.Text{
		EN: fmt.Sprintf("job %d of the chain's %d is queued as %s; `touch %s` ends the chain", n, of, id, stop),
		ZH: fmt.Sprintf("作业链的第 %d 个作业（共 %d 个）已排队为 %s；`touch %s` 可结束作业链", n, of, id, stop),
	}
}

// linkOf returns the key of a chain's first job, and sub's number in the chain.
func linkOf(sub store.Submission) (first string, n int) {
	first, number, ok := strings.Cut(sub.Key, chainMark)
	if !ok {
		return sub.Key, 1
	}
	n, _ = strconv.Atoi(number)
	return first, n
}

// queueOf returns the known jobs of j's user. It queries the cluster only if there is
// no view whose answers readers share.
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

// isQueuedBy reports whether next is the job that j's script queued: it has the same
// name, user and folder, none of our tokens, and either waits for another job's end or
// was queued as j started.
func isQueuedBy(next, j slurm.Job, s job.Spec) bool {
	if next.User != j.User || next.Name != s.WithDefaults().Name || next.WorkDir != j.WorkDir || !submittedAfter(next.ID, j.ID) ||
		slurm.UserComment(next.Comment) != next.Comment || next.SubmittedAt == nil || j.StartedAt == nil || next.SubmittedAt.Before(*j.StartedAt) {
		return false
	}
	return next.Reason == "Dependency" || next.SubmittedAt.Sub(*j.StartedAt) < queueDelay
}

// submittedAfter reports whether job a was submitted after job b, judged by their ids.
func submittedAfter(a, b slurm.JobID) bool {
	m, err1 := strconv.Atoi(string(a))
	n, err2 := strconv.Atoi(string(b))
	return err1 == nil && err2 == nil && m > n
}
