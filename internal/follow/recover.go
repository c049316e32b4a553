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
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/ops/preflight"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// causeDocs is the kind of document that records why an attempt failed, to recognise
// the same cause.
const causeDocs = "cause"

// interrupted reports whether a class ends a run that has done nothing wrong, so that
// the next run simply continues.
func interrupted(class string) bool {
	return class == outcome.SlurmTimeLimit || class == outcome.SlurmPreempted
}

// recover submits a failed job again if its specification allows it: for a class of
// failure that is worth it, up to the allowed number of retries, without the nodes that
// diagnoses blame, from the last checkpoint, and not if the same cause came twice. The
// new job waits in Slurm's own queue, by --begin or behind the old job, where it can be
// seen and cancelled.
func (f *Follower) recover(ctx context.Context, st *store.Store, n *News) {
	sub, s := specOf(ctx, st, n.Job)
	if n.Report == nil || s.Retry.Limit() < 1 || s.Chain != nil && *s.Chain > 1 {
		return // the jobs of a chain queue one another
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
	s, avoided, unwanted, taken := f.avoidNodes(ctx, call, s, r.ExcludeNodes)
	avoided, awaited, few := leaveEnough(ctx, call, s, avoided, unwanted, n.Job.ID)
	if few != (lang.Text{}) {
		n.Why = few
		return
	}
	s = excluding(s, avoided)
	delay := 0
	if interrupted(r.Class) {
		s.Dependency = "afterany:" + string(n.Job.ID.Array())
	} else {
		delay = delayMinutes(attempt)
		s.Begin = "now+" + strconv.Itoa(delay) + "minutes"
	}
	out, err := operations.Run[launch.SubmitOut](ctx, call, "submit", &launch.SubmitIn{
		SpecIn: launch.SpecIn{Spec: s}, IdempotencyKey: fmt.Sprintf("%s%s%d", lineage, joblogs.RetryMark, attempt+1), Force: true,
	})
	if err != nil {
		f.Log.Error("a failed job could not be submitted again", "job", n.Job.ID, "error", err)
		n.Why = lang.Text{EN: "could not be submitted again: %s", ZH: "无法再次提交：%s"}.With(lang.Said(err))
		return
	}
	n.Next = *out.JobID
	n.Why = lang.Text{
		EN: fmt.Sprintf("submitted again as %s (retry %d of %d)", n.Next, attempt+1, s.Retry.Limit()),
		ZH: fmt.Sprintf("已再次提交为 %s（第 %d 次重试，共 %d 次）", n.Next, attempt+1, s.Retry.Limit()),
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
	if len(avoided) > 0 {
		add(", without %s", "，排除 %s", hostlist.Compress(avoided))
	}
	if len(awaited) > 0 {
		add(
			", as soon as %s, now out of service, is back: without it too few nodes are left",
			"，待已停用的 %s 恢复后开始（排除它则节点不足）", hostlist.Compress(awaited),
		)
	}
	if len(taken) > 0 {
		add(", with the spares %s", "，改用备用节点 %s", hostlist.Compress(taken))
	}
	add("; `cancel %s` stops that", "；`cancel %s` 可终止", n.Next)
}

// lineageOf returns the key of the first submission, and the number of retries before
// sub.
func lineageOf(sub store.Submission) (lineage string, attempt int) {
	// The store's key starts with the owner and the cluster.
	k := strings.TrimPrefix(sub.Key, sub.Owner+"/"+sub.Cluster+"/")
	lineage, n, _ := strings.Cut(k, joblogs.RetryMark)
	attempt, _ = strconv.Atoi(n)
	return lineage, attempt
}

// mayRetry reports whether the class of failure and the count allow another attempt,
// and if not, why.
func mayRetry(p job.Retry, r report.Report, attempt int) (bool, lang.Text) {
	most := p.Limit()
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

// delayMinutes doubles from one minute up to an hour.
func delayMinutes(attempt int) int { return min(1<<min(attempt, 6), 60) }

// sameCause reports whether the previous attempt failed for the same cause, and stores
// this attempt's cause. A time limit or a preemption counts as the same cause only if
// the run has made no progress since. Called again for the same job after a crash, it
// returns the same.
func (f *Follower) sameCause(ctx context.Context, st *store.Store, lineage string, id slurm.JobID, r report.Report, iteration string) (bool, error) {
	type kept struct {
		Class, Line, Iteration string
		Job                    slurm.JobID
		Again                  bool
	}
	var before kept
	now := time.Now()
	had, err := st.Slack().Get(ctx, causeDocs, lineage, now, &before)
	if err != nil || had && before.Job == id {
		return before.Again, err
	}
	this := kept{Class: r.Class, Line: withoutDigits(r.RootLine), Job: id}
	if interrupted(r.Class) {
		this.Iteration = iteration
	}
	this.Again = had && before.Class == this.Class && before.Line == this.Line && before.Iteration == this.Iteration
	return this.Again, st.Slack().Put(ctx, causeDocs, lineage, this, now.Add(lookback))
}

// withoutDigits removes the digits of a line: times, ranks and addresses differ from
// run to run.
func withoutDigits(line string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, line)
}

// avoidNodes returns the nodes that a retry of s should avoid: those that are blamed now
// and those on the list; unwanted are those that a person put there. If s names its nodes,
// spares replace the bad ones, and it returns the spares used.
func (f *Follower) avoidNodes(ctx context.Context, c *ops.Call, s job.Spec, blamed []string) (_ job.Spec, left, unwanted, taken []string) {
	list, err := fleet.AvoidedNodes(ctx, f.Service, s.Cluster, c.Who.User)
	if err != nil {
		f.Log.Error("the list of nodes to avoid could not be read", "error", err)
	}
	left = slices.Clone(blamed)
	var spares []string
	for _, a := range list {
		if !a.Spare && a.Job == "" { // a blamed node has the job that it failed
			unwanted = append(unwanted, a.Node)
		}
		switch {
		case a.Spare:
			spares = append(spares, a.Node)
		case !slices.Contains(left, a.Node):
			left = append(left, a.Node)
		}
	}
	slices.Sort(left)
	s, taken = withSpares(s, left, spares)
	return s, left, unwanted, taken
}

// leaveEnough returns which of the bad nodes a retry of s can exclude. Slurm refuses a job
// that excludes so many nodes that too few are left. It then does without the exclusion of
// those that are out of service, which Slurm gives to no job until they are back, and returns
// them as awaited; the unwanted stay excluded, since a node that is down can come back by
// itself. Where that is not enough, why says what a person can do.
func leaveEnough(ctx context.Context, c *ops.Call, s job.Spec, bad, unwanted []string, id slurm.JobID) (avoid, awaited []string, why lang.Text) {
	cl, err := c.Cluster(s.Cluster)
	if err != nil {
		return bad, nil, why // the submission says so
	}
	nodes, _ := cl.Nodes(ctx) // without them nothing speaks against it
	full := c.SiteOf(s).Fill(s).WithDefaults()
	all, left, few := preflight.TooFewLeft(ctx, cl, nodes, excluding(full, bad))
	if !few {
		return bad, nil, why
	}
	for _, n := range nodes {
		if slices.Contains(bad, n.Name) && !slices.Contains(unwanted, n.Name) && !n.Usable() {
			awaited = append(awaited, n.Name)
		}
	}
	avoid = slices.DeleteFunc(slices.Clone(bad), func(n string) bool { return slices.Contains(awaited, n) })
	if _, _, few = preflight.TooFewLeft(ctx, cl, nodes, excluding(full, avoid)); !few {
		return avoid, awaited, why
	}
	why = lang.Text{
		EN: "not submitted again: without %s too few nodes are left: %d of %d, and the job needs %d. `submit --from %s` runs it again once they are repaired",
		ZH: "未再次提交：排除 %s 后 %[3]d 个节点只剩 %[2]d 个，而作业需要 %[4]d 个。修复后用 `submit --from %[5]s` 再次运行",
	}.With(hostlist.Compress(bad), left, all, *full.Nodes, id)
	if left > 0 {
		fewer := lang.Text{EN: "; `submit --from %s --exclude %s --nodes %d` does so now with fewer", ZH: "；或现在就用更少的节点：`submit --from %s --exclude %s --nodes %d`"}
		fewer = fewer.With(id, excluding(s, bad).Exclude, left)
		why.EN, why.ZH = why.EN+fewer.EN, why.ZH+fewer.ZH
	}
	return nil, nil, why
}

// withSpares replaces the bad nodes in s's node list by spares.
func withSpares(s job.Spec, bad, spares []string) (_ job.Spec, taken []string) {
	must, err := hostlist.Expand(s.Nodelist)
	if err != nil {
		return s, nil
	}
	kept := slices.DeleteFunc(slices.Clone(must), func(n string) bool { return slices.Contains(bad, n) })
	for _, n := range spares {
		if len(kept) < len(must) && !slices.Contains(kept, n) && !slices.Contains(bad, n) {
			kept, taken = append(kept, n), append(taken, n)
		}
	}
	s.Nodelist = hostlist.Compress(kept)
	return s, taken
}

// excluding adds nodes to those that s excludes.
func excluding(s job.Spec, nodes []string) job.Spec {
	if len(nodes) == 0 {
		return s
	}
	old, _ := hostlist.Expand(s.Exclude) // one that cannot be read excludes none
	s.Exclude = hostlist.Compress(append(old, nodes...))
	return s
}
