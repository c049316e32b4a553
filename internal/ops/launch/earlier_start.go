package launch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// EarlierOut says when a waiting job would start if it asked for less.
type EarlierOut struct {
	// AsItIs is when an equal job would start if it were submitted now; nil where Slurm
	// does not say.
	AsItIs  *time.Time    `json:"as_it_is"`
	Options []EarlierStep `json:"options"` // the requests that start sooner
}

// An EarlierStep is a smaller request and its start.
type EarlierStep struct {
	Nodes      int       `json:"nodes,omitempty"`
	TimeLimitS int64     `json:"time_limit_s,omitempty"`
	Start      time.Time `json:"start"`
}

// TryEarlierStart tries a waiting job's request with less time and fewer nodes. It
// queues nothing.
func TryEarlierStart(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job) (*EarlierOut, error) {
	if j.State != slurm.Pending {
		return nil, ops.InputError("earlier",
			lang.Text{EN: "job %s is %s: only a waiting job could start earlier", ZH: "作业 %s 处于 %s：只有排队中的作业才谈得上提前启动"}.With(j.ID, j.State.Word()),
			lang.Text{EN: "leave it out", ZH: "请去掉"})
	}
	cl, err := actingFor(c, cl, j.User)
	if err != nil {
		return nil, err
	}
	s := slurm.Submission{Dir: j.WorkDir}
	if sub, ok, _ := c.SubmissionOf(ctx, cl.Name(), j); ok {
		s.Script, s.Dir = sub.Script, sub.Dir
	} else if w, ok := cl.(interface {
		BatchScript(context.Context, slurm.JobID) (string, error)
	}); ok {
		if s.Script, err = w.BatchScript(ctx, j.ID); err != nil {
			return nil, c.SlurmError(err, j.ID)
		}
	}
	if s.Script == "" {
		return nil, &ops.Error{Code: ops.Failed, Field: "earlier", Message: lang.Text{EN: "the script of job %s is not known here", ZH: "这里没有作业 %s 的脚本"}.With(j.ID)}
	}
	// The script lacks what was given on sbatch's command line, or changed since.
	if j.NumNodes > 0 {
		s.Args = append(s.Args, "--nodes="+strconv.Itoa(j.NumNodes))
	}
	if j.TimeLimitS != nil {
		s.Args = append(s.Args, "--time="+strconv.Itoa(int(math.Ceil(float64(*j.TimeLimitS)/60))))
	}
	if j.Partition != "" {
		s.Args = append(s.Args, "--partition="+j.Partition)
	}
	if n := max(j.NumNodes, 1); j.GPUs > 0 && j.GPUs%n == 0 {
		s.Args = append(s.Args, "--gpus-per-node="+strconv.Itoa(j.GPUs/n))
	}
	out, err := tryLess(ctx, cl, s)
	if err != nil {
		return nil, c.SlurmError(err, j.ID)
	}
	return out, nil
}

// tryLess makes test submissions of s as it is, with half and a quarter of its time, and
// with half and a quarter of its nodes. The answer has those that would start at least a
// minute sooner; where s itself has no estimate, every one with an estimate. It queues
// nothing and makes at most five requests.
func tryLess(ctx context.Context, cl ops.Cluster, s slurm.Submission) (*EarlierOut, error) {
	given, err := cl.Test(ctx, s)
	if err != nil {
		return nil, err
	}
	options, err := slurm.ReadDirectives(s.Script)
	if err != nil {
		return nil, err
	}
	args, err := slurm.ReadOptions(s.Args)
	if err != nil {
		return nil, err
	}
	options = append(options, args...)
	var tries []EarlierStep
	if d, ok := slurm.ParseDuration(options.Value("time")); ok && d >= 4*time.Minute {
		tries = append(tries, EarlierStep{TimeLimitS: int64(d.Seconds() / 2)}, EarlierStep{TimeLimitS: int64(d.Seconds() / 4)})
	}
	var nodes int
	if _, err := fmt.Sscanf(options.Value("nodes"), "%d", &nodes); err == nil {
		for _, n := range []int{nodes / 2, nodes / 4} {
			if n > 0 {
				tries = append(tries, EarlierStep{Nodes: n})
			}
		}
	}
	out := &EarlierOut{Options: []EarlierStep{}}
	if !given.Start.IsZero() {
		out.AsItIs = &given.Start
	}
	for _, v := range tries {
		less := s
		if v.Nodes > 0 {
			less.Args = append(slices.Clone(s.Args), fmt.Sprintf("--nodes=%d", v.Nodes))
		} else {
			less.Args = append(slices.Clone(s.Args), fmt.Sprintf("--time=%d", (v.TimeLimitS+59)/60))
		}
		e, refused := cl.Test(ctx, less)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// Less may be refused, for example where the partition wants more nodes.
		if v.Start = e.Start; refused == nil && !v.Start.IsZero() && (out.AsItIs == nil || given.Start.Sub(v.Start) >= time.Minute) {
			out.Options = append(out.Options, v)
		}
	}
	return out, nil
}

// actingFor returns cl with the caller's rights, where the caller is user: what a
// request may have depends on whose request it is.
func actingFor(c *ops.Call, cl ops.Cluster, user string) (ops.Cluster, error) {
	if !c.OwnHands() && c.Who.User == user && c.As != nil {
		return c.AsOwner(cl, user)
	}
	return cl, nil
}

// LikelyStart returns when Slurm would start one node with so many GPUs for an hour in
// a partition, for the caller. ok is false where Slurm gives no time.
func LikelyStart(ctx context.Context, c *ops.Call, cl ops.Cluster, partition string, gpus int) (at time.Time, ok bool) {
	cl, err := actingFor(c, cl, c.Who.User)
	if err != nil || c.Who.User == "" {
		return at, false
	}
	one := 1
	s := job.Spec{Name: "estimate", Worktree: "/tmp", Partition: partition, Nodes: &one, GPUsPerNode: &gpus, Time: "1:00:00", Cluster: cl.Name()}
	sc, err := job.Render(s, job.Options{Version: c.Version, Site: c.SiteOf(s)})
	if err != nil {
		return at, false
	}
	e, err := cl.Test(ctx, slurm.Submission{Script: sc.Text, Dir: s.Worktree})
	return e.Start, err == nil && !e.Start.IsZero()
}

// dryEarlier tries a job that is not submitted. It returns nil where the cluster cannot
// estimate or would refuse the job: the plan's problems explain a refusal better.
func dryEarlier(ctx context.Context, cl ops.Cluster, s job.Spec, sc job.Script) *EarlierOut {
	out, err := tryLess(ctx, cl, slurm.Submission{Script: sc.Text, Dir: s.Worktree})
	if err != nil || out.AsItIs == nil && len(out.Options) == 0 {
		return nil
	}
	return out
}

// Says describes in one sentence the smallest change that starts the job soonest; it is
// empty where there is none.
func (o *EarlierOut) Says(id slurm.JobID) lang.Text {
	if o == nil || len(o.Options) == 0 {
		return lang.Text{}
	}
	best := o.Options[0]
	for _, v := range o.Options {
		if v.Start.Before(best.Start.Add(-time.Minute)) {
			best = v
		}
	}
	how := "update " + string(id) + " " + best.flag()
	if o.AsItIs == nil {
		return lang.Text{
			EN: "As requested, its start is unknown; with `%s` it would start at %s.",
			ZH: "按现状无法预计开始时间；用 `%s` 预计 %s 开始。",
		}.With(how, best.Start.Format(time.DateTime))
	}
	return lang.Text{
		EN: "As requested, it would start at %s; `%s` brings that to %s.",
		ZH: "按现状预计 %s 开始；`%s` 可提前到 %s。",
	}.With(o.AsItIs.Format(time.DateTime), how, best.Start.Format(time.DateTime))
}

// flag returns the flag that asks for the step.
func (v EarlierStep) flag() string {
	switch {
	case v.Nodes > 0:
		return fmt.Sprintf("--nodes %d", v.Nodes)
	case v.TimeLimitS < 3600:
		return "--time 00:" + ops.Duration(v.TimeLimitS)
	}
	return "--time " + ops.Duration(v.TimeLimitS)
}

// Section says which smaller request starts when, and how to change to it.
func (o *EarlierOut) Section(id slurm.JobID, l lang.Lang) view.Section {
	asItIs := lang.Text{EN: "As requested: unknown", ZH: "按现状：未知"}.In(l)
	if o.AsItIs != nil {
		asItIs = lang.Text{EN: "As requested: ", ZH: "按现状："}.In(l) + o.AsItIs.Format(time.DateTime)
	}
	if len(o.Options) == 0 {
		return view.Section{Text: lang.Text{
			EN: "Neither half nor a quarter of its time or nodes would start it sooner. ", ZH: "时限或节点数减到一半、四分之一都不会更早开始。",
		}.In(l) + asItIs}
	}
	s := view.Section{Heading: lang.Text{EN: "earlier with a smaller request", ZH: "减少申请可提前开始"}.In(l), Text: asItIs}
	for _, v := range o.Options {
		how := v.flag()
		if id != "" {
			how = "update " + string(id) + " " + how
		}
		s.Items = append(s.Items, v.Start.Format(time.DateTime)+": "+how)
	}
	return s
}
