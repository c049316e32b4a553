package follow

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// mostRetries bounds what a specification may ask for.
const mostRetries = 20

// cause is what is kept of a failed attempt, to see the same one come back.
const cause = "cause"

// recover submits a failed job again where its specification allows it: for a
// class of failure that is worth it, at most so often, without the nodes that
// the diagnosis blames, and not when the same cause came twice. The new job
// waits in Slurm's own queue by --begin, where it can be seen and cancelled.
func (f *Follower) recover(ctx context.Context, st *store.Store, n *News) {
	sub, s, ok := specOf(ctx, st, n.Job)
	if !ok || s.Retry.Max == nil || *s.Retry.Max < 1 || n.Report == nil {
		return
	}
	r := *n.Report
	lineage, attempt := lineageOf(sub)
	may, why := mayRetry(s.Retry, r, attempt)
	if may {
		again, err := f.sameCause(ctx, st, lineage, r)
		if err != nil {
			f.Log.Error("causes of earlier attempts could not be read", "job", n.Job.ID, "error", err)
			return
		}
		if again {
			may, why = false, lang.Text{EN: "not submitted again: the same cause came twice", ZH: "未再次提交：同一原因出现了两次"}
		}
	}
	if !may {
		n.Why = why
		return
	}
	s = without(s, r.ExcludeNodes)
	s.Begin = "now+" + strconv.Itoa(delayMinutes(attempt)) + "minutes"
	call := &ops.Call{Service: f.Service, Who: owner(sub), Confirmed: true}
	out, err := do[ops.SubmitOut](ctx, call, "submit", &ops.SubmitIn{
		SpecIn: ops.SpecIn{Spec: s}, IdempotencyKey: fmt.Sprintf("%s%s%d", lineage, retryMark, attempt+1), Force: true,
	})
	if err != nil || out.JobID == nil {
		f.Log.Error("a failed job could not be submitted again", "job", n.Job.ID, "error", err)
		n.Why = lang.Text{EN: fmt.Sprintf("could not be submitted again: %v", err), ZH: fmt.Sprintf("无法再次提交：%v", err)}
		return
	}
	n.Next = *out.JobID
	n.Why = lang.Text{
		EN: fmt.Sprintf("submitted again as %s (retry %d of %d), to start in %d min", n.Next, attempt+1, *s.Retry.Max, delayMinutes(attempt)),
		ZH: fmt.Sprintf("已再次提交为 %s（第 %d 次重试，共 %d 次），%d 分钟后开始", n.Next, attempt+1, *s.Retry.Max, delayMinutes(attempt)),
	}
	if len(r.ExcludeNodes) > 0 {
		n.Why.EN += ", without " + hostlist.Compress(r.ExcludeNodes)
		n.Why.ZH += "，排除 " + hostlist.Compress(r.ExcludeNodes)
	}
}

// retryMark stands between a first submission's key and a retry's number.
const retryMark = "/retry-"

// lineageOf is the key of the first submission, and how many retries sub is.
func lineageOf(sub store.Submission) (lineage string, attempt int) {
	// The store's key has the owner and the cluster before the caller's.
	k := strings.TrimPrefix(sub.Key, sub.Owner+"/"+sub.Cluster+"/")
	first, n, ok := strings.Cut(k, retryMark)
	if !ok {
		return k, 0
	}
	attempt, _ = strconv.Atoi(n)
	return first, attempt
}

// mayRetry says whether the class of failure and the count allow another try.
func mayRetry(p job.Retry, r diagnose.Report, attempt int) (bool, lang.Text) {
	most := min(*p.Max, mostRetries)
	switch {
	case attempt >= most:
		return false, lang.Text{EN: fmt.Sprintf("not submitted again: %d retries are used up", most), ZH: fmt.Sprintf("未再次提交：%d 次重试已用完", most)}
	case len(p.On) > 0 && !slices.Contains(p.On, r.Class):
		return false, lang.Text{EN: "not submitted again: " + r.Class + " is not among retry.on", ZH: "未再次提交：" + r.Class + " 不在 retry.on 中"}
	case len(p.On) == 0 && !r.Retry:
		return false, lang.Text{EN: "not submitted again: " + r.Class + " would come back unchanged", ZH: "未再次提交：" + r.Class + " 原样重试仍会失败"}
	}
	return true, lang.Text{}
}

// delayMinutes doubles from one minute, and ends at an hour.
func delayMinutes(attempt int) int { return min(1<<min(attempt, 6), 60) }

// sameCause reports whether the attempt before failed of the same, and keeps
// this one's cause.
func (f *Follower) sameCause(ctx context.Context, st *store.Store, lineage string, r diagnose.Report) (bool, error) {
	type kept struct{ Class, Line string }
	var before kept
	now := time.Now()
	had, err := st.Slack().Get(ctx, cause, lineage, now, &before)
	if err != nil {
		return false, err
	}
	this := kept{r.Class, shape(r.RootLine)}
	return had && before == this, st.Slack().Put(ctx, cause, lineage, this, now.Add(memory))
}

// shape is a line without its numbers: times, ranks and addresses differ from
// run to run.
func shape(line string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, line)
}

// without adds nodes to those that the job avoids.
func without(s job.Spec, nodes []string) job.Spec {
	if len(nodes) == 0 {
		return s
	}
	avoid := slices.Clone(nodes)
	if s.Exclude != "" {
		if old, err := hostlist.Expand(s.Exclude); err == nil {
			avoid = append(old, avoid...)
		}
	}
	slices.Sort(avoid)
	s.Exclude = hostlist.Compress(slices.Compact(avoid))
	return s
}
