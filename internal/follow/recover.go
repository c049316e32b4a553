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
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// usualRetries are made where a specification says what to retry on and not how
// often; mostRetries bounds what it may say.
const (
	usualRetries = 3
	mostRetries  = 20
)

// cause is what is kept of a failed attempt, to see the same one come back.
const cause = "cause"

// goesOn reports whether a class ends a run that has done nothing wrong: the next
// one simply goes on.
func goesOn(class string) bool {
	return class == outcome.SlurmTimeLimit || class == outcome.SlurmPreempted
}

// recover submits a failed job again where its specification allows it: for a
// class of failure that is worth it, at most so often, without the nodes that
// diagnoses blame, from the last checkpoint, and not when the same cause came
// twice. The new job waits in Slurm's own queue, by --begin or behind the old
// one, where it can be seen and cancelled.
func (f *Follower) recover(ctx context.Context, st *store.Store, n *News) {
	sub, s, ok := specOf(ctx, st, n.Job)
	if !ok || n.Report == nil || retriesOf(s.Retry) < 1 || s.Chain != nil && *s.Chain > 1 {
		return // the links of a chain queue one another
	}
	r := *n.Report
	call := &ops.Call{Service: f.Service, Who: owner(sub), Confirmed: true}
	s.Cluster = n.Job.Cluster
	lineage, attempt := lineageOf(sub)
	s, last, resumes := joblogs.ResumeSpec(ctx, call, s)
	may, why := mayRetry(s.Retry, r, attempt)
	if may {
		again, err := f.sameCause(ctx, st, lineage, n.Job.ID, r, last.Iteration)
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
	s, left, taken := f.leaveOut(ctx, call, s, r.ExcludeNodes)
	delay := 0
	if goesOn(r.Class) {
		s.Dependency = "afterany:" + string(n.Job.ID.Array())
	} else {
		delay = delayMinutes(attempt)
		s.Begin = "now+" + strconv.Itoa(delay) + "minutes"
	}
	out, err := do[launch.SubmitOut](ctx, call, "submit", &launch.SubmitIn{
		SpecIn: launch.SpecIn{Spec: s}, IdempotencyKey: fmt.Sprintf("%s%s%d", lineage, joblogs.RetryMark, attempt+1), Force: true,
	})
	if err != nil {
		f.Log.Error("a failed job could not be submitted again", "job", n.Job.ID, "error", err)
		n.Why = lang.Text{EN: "could not be submitted again: %s", ZH: "无法再次提交：%s"}.With(lang.Said(err))
		return
	}
	n.Next = *out.JobID
	n.Why = lang.Text{
		EN: fmt.Sprintf("submitted again as %s (retry %d of %d)", n.Next, attempt+1, retriesOf(s.Retry)),
		ZH: fmt.Sprintf("已再次提交为 %s（第 %d 次重试，共 %d 次）", n.Next, attempt+1, retriesOf(s.Retry)),
	}
	add := func(en, zh string, args ...any) {
		n.Why.EN += fmt.Sprintf(en, args...)
		n.Why.ZH += fmt.Sprintf(zh, args...)
	}
	if delay > 0 {
		add(", to start in %d min", "，%d 分钟后开始", delay)
	}
	if resumes {
		add(", from the checkpoint of iteration %s", "，从第 %s 次迭代的检查点继续", last.Iteration)
	}
	if len(left) > 0 {
		add(", without %s", "，排除 %s", hostlist.Compress(left))
	}
	if len(taken) > 0 {
		add(", with the spares %s", "，改用备用节点 %s", hostlist.Compress(taken))
	}
	add("; `cancel %s` stops that", "；`cancel %s` 可终止", n.Next)
}

// retriesOf is how often at most a policy tries again.
func retriesOf(p job.Retry) int {
	switch {
	case p.Max != nil:
		return min(*p.Max, mostRetries)
	case len(p.On) > 0:
		return usualRetries
	}
	return 0
}

// lineageOf is the key of the first submission, and how many retries sub is.
func lineageOf(sub store.Submission) (lineage string, attempt int) {
	// The store's key has the owner and the cluster before the caller's.
	k := strings.TrimPrefix(sub.Key, sub.Owner+"/"+sub.Cluster+"/")
	first, n, ok := strings.Cut(k, joblogs.RetryMark)
	if !ok {
		return k, 0
	}
	attempt, _ = strconv.Atoi(n)
	return first, attempt
}

// mayRetry says whether the class of failure and the count allow another try.
func mayRetry(p job.Retry, r report.Report, attempt int) (bool, lang.Text) {
	most := retriesOf(p)
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
// this one's cause. A time limit or a preemption is the same only where the run
// has come no further since. Asked again for the same job, after a crash, it says
// the same.
func (f *Follower) sameCause(ctx context.Context, st *store.Store, lineage string, id slurm.JobID, r report.Report, iteration string) (bool, error) {
	type kept struct {
		Class, Line, Iteration string
		Job                    slurm.JobID
		Again                  bool
	}
	var before kept
	now := time.Now()
	had, err := st.Slack().Get(ctx, cause, lineage, now, &before)
	if err != nil || had && before.Job == id {
		return before.Again, err
	}
	this := kept{Class: r.Class, Line: shape(r.RootLine), Job: id}
	if goesOn(r.Class) {
		this.Iteration = iteration
	}
	this.Again = had && before.Class == this.Class && before.Line == this.Line && before.Iteration == this.Iteration
	return this.Again, st.Slack().Put(ctx, cause, lineage, this, now.Add(memory))
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

// leaveOut makes s avoid the nodes that are blamed now, and those on the list.
// Where s names its nodes, spares take the place of bad ones. It returns the
// nodes left out and the spares taken.
func (f *Follower) leaveOut(ctx context.Context, c *ops.Call, s job.Spec, blamed []string) (_ job.Spec, left, taken []string) {
	list, err := fleet.AvoidedNodes(ctx, f.Service, s.Cluster, c.Who.User)
	if err != nil {
		f.Log.Error("the list of nodes to avoid could not be read", "error", err)
	}
	left = slices.Clone(blamed)
	var spares []string
	for _, a := range list {
		switch {
		case a.Spare:
			spares = append(spares, a.Node)
		case !slices.Contains(left, a.Node):
			left = append(left, a.Node)
		}
	}
	slices.Sort(left)
	s, taken = replaced(s, left, spares)
	return without(s, left), left, taken
}

// replaced puts spares where s must have nodes that are bad.
func replaced(s job.Spec, bad, spares []string) (_ job.Spec, taken []string) {
	must, err := hostlist.Expand(s.Nodelist)
	if s.Nodelist == "" || err != nil {
		return s, nil
	}
	var kept []string
	for _, n := range must {
		if !slices.Contains(bad, n) {
			kept = append(kept, n)
		}
	}
	for _, n := range spares {
		if len(kept) < len(must) && !slices.Contains(kept, n) && !slices.Contains(bad, n) {
			kept, taken = append(kept, n), append(taken, n)
		}
	}
	s.Nodelist = hostlist.Compress(kept)
	return s, taken
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
