// Package smoke tries a job at small sizes before the whole job queues.
package smoke

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// In is the job to try.
type In struct {
	launch.SpecIn
	DryRun bool `json:"dry_run,omitempty" name:"dry-run" help:"show the ladder, submit nothing" zh:"只显示各级，不提交"`
	Yes    bool `json:"yes,omitempty" help:"do not ask before submitting" zh:"不再询问，直接提交"`
}

// Out says which of the small jobs succeeded.
type Out struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Rungs []Rung `json:"rungs"`
	// Failed names the first rung that fails; larger ones are not tried.
	Failed string `json:"failed,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`

	elsewhere string // what a command about a rung adds where it ran on another than the default cluster
}

// A Rung is one small job.
type Rung struct {
	Rung     string      `json:"rung"`
	Size     string      `json:"size"`
	Args     []string    `json:"args"`
	JobID    slurm.JobID `json:"job_id,omitempty"`
	State    slurm.State `json:"state,omitempty"`
	ElapsedS int64       `json:"elapsed_s,omitempty"`
	// Why is what went wrong, according to the diagnosis or the plan.
	Why   string `json:"why,omitempty"`
	sized lang.Text
}

// Found reports whether a rung failed.
func (o Out) Found() bool { return o.Failed != "" }

// Did reports whether a rung was submitted.
func (o Out) Did() bool {
	return slices.ContainsFunc(o.Rungs, func(r Rung) bool { return r.JobID != "" })
}

// Smoke returns the operation smoke.
func Smoke() ops.Op {
	return ops.Define(ops.Op{
		Name: "smoke", Effect: ops.Write, Toolset: ops.JobsSet,
		Summary: lang.Text{EN: "try a job at small sizes: 1 GPU, 1 node, 2 nodes; names the first that fails", ZH: "小规模试跑：单卡、单节点、两节点；指出最先失败的一级"},
		Help:    lang.Text{EN: "Use before a large job, or when one fails and it is not clear why. Few layers, 10 iterations, 10 minutes; same image, mounts and data; saves nothing.", ZH: "大作业之前，或失败原因不明时使用。少量层、10 次迭代、10 分钟上限；镜像、挂载与数据不变；不保存检查点。"},
		Example: "smoke -f job.yaml",
	}, smoke)
}

func smoke(ctx context.Context, c *ops.Call, in In) (Out, error) {
	s, err := launch.ReadSpec(c, in.SpecIn)
	if err != nil {
		return Out{}, err
	}
	cl, err := c.Cluster(s.Cluster)
	if err != nil {
		return Out{}, err
	}
	rungs := ladder(s)
	out := Out{Name: s.WithDefaults().Name, Rungs: []Rung{}, DryRun: in.DryRun, elsewhere: c.Elsewhere(cl.Name())}
	if in.DryRun {
		for _, r := range rungs {
			out.Rungs = append(out.Rungs, Rung{Rung: r.name, Size: r.size().EN, sized: r.size(), Args: append([]string{}, r.spec.Args...)})
		}
		return out, nil
	}
	if !in.Yes && !c.Confirmed {
		return out, &ops.Error{
			Code: ops.NotAllowed, Confirm: true,
			Message: lang.Text{EN: "this submits up to %s to %s, one after the other, of at most ten minutes each; the largest has %s", ZH: "将向 %[2]s 依次提交至多 %[1]s，每个最多十分钟；最大的一个为 %[3]s"}.With(ops.Counted(len(rungs), "job"), cl.Name(), rungs[len(rungs)-1].size()),
			Fix:     lang.Text{EN: "say yes: --yes; --dry-run shows them", ZH: "确认请加 --yes；--dry-run 可先查看这些作业"},
		}
	}
	for i, r := range rungs {
		c.Step(i, len(rungs), r.name)
		one, err := runRung(ctx, c, cl, r, func(said string) { c.Step(i, len(rungs), r.name+": "+said) })
		out.Rungs = append(out.Rungs, one)
		if err != nil {
			return out, err
		}
		if one.State != slurm.Completed {
			out.Failed = r.name
			return out, nil
		}
	}
	out.OK = true
	return out, nil
}

// runRung runs one rung to its end, and reports its state through tell. Where the
// caller stops waiting, the job is cancelled, because nobody would look at it.
func runRung(ctx context.Context, c *ops.Call, cl ops.Cluster, r rung, tell func(string)) (Rung, error) {
	one := Rung{Rung: r.name, Size: r.size().EN, sized: r.size(), Args: append([]string{}, r.spec.Args...)}
	plan, err := launch.JudgeSpec(c, r.spec)
	if err != nil {
		return one, err
	}
	for _, p := range plan.Problems {
		if p.Severity == rules.Error {
			one.Why = c.Lang.Named(p.Field, p.Message)
			return one, nil
		}
	}
	sc, err := job.Render(r.spec, job.Options{Version: c.Version, Site: c.SiteOf(r.spec)})
	if err != nil {
		return one, ops.FieldErrors(err)
	}
	id, _, _, err := c.SubmitOnce(ctx, cl, r.spec, sc, "smoke-"+rand.Text())
	if err != nil {
		return one, err
	}
	one.JobID, one.State = id, slurm.Pending
	for !one.State.Ended() {
		if !ops.Pause(ctx, ops.PollPause(cl)) {
			if err := cl.Cancel(context.WithoutCancel(ctx), id); err != nil {
				e := ops.AsError(c.SlurmError(err, id))
				e.Message = lang.Text{EN: "job %s could not be cancelled and may still run: %s", ZH: "未能取消作业 %s，它可能仍在运行：%s"}.With(id, e.Message)
				e.Fix = lang.Text{EN: "`megatron-ops status %[1]s` tells whether it runs, `megatron-ops cancel %[1]s` ends it", ZH: "`megatron-ops status %[1]s` 可查看其是否在运行，`megatron-ops cancel %[1]s` 可结束它"}.With(id)
				return one, e
			}
			return one, ctx.Err()
		}
		// A failed question is asked again; the job has its own time limit.
		if j, err := cl.Job(ctx, id); err == nil {
			one.State, one.ElapsedS = j.State, j.ElapsedS
			tell(string(j.State) + " " + ops.Duration(j.ElapsedS))
		}
	}
	if one.State != slurm.Completed {
		one.Why = one.State.Explain().Says.In(c.Lang)
		if d, err := joblogs.DiagnoseJob(
			ctx,
			c,
			joblogs.DiagnoseIn{Target: string(id), OnCluster: ops.OnCluster{Cluster: cl.Name()}},
		); err == nil && d.Summary != "" {
			one.Why = d.Summary
		}
	}
	return one, nil
}

// View shows one line for each rung, and what the first failure means.
func (o Out) View(l lang.Lang) view.Doc {
	d := view.Doc{}
	switch {
	case o.Failed != "":
		d.Tone = view.Bad
		d.Title = fmt.Sprintf(lang.Text{EN: "%s: the first rung that fails is %s", ZH: "%s：最先失败的一级是 %s"}.In(l), o.Name, o.Failed)
	case o.DryRun:
		d.Title = fmt.Sprintf(lang.Text{EN: "%s: the ladder; nothing was submitted", ZH: "%s：各级如下，没有提交"}.In(l), o.Name)
	case o.OK:
		d.Tone = view.Good
		d.Title = fmt.Sprintf(lang.Text{EN: "%s: every rung holds", ZH: "%s：每一级都通过"}.In(l), o.Name)
	}
	t := &view.Table{Header: view.Columns(l, "rung|size|job|state|elapsed", "级别|规模|作业|状态|用时")}
	s := view.Section{Table: t}
	for _, r := range o.Rungs {
		t.Rows = append(t.Rows, []string{r.Rung, cmp.Or(r.sized.In(l), r.Size), string(r.JobID), string(r.State), ops.Duration(r.ElapsedS)})
		if o.DryRun && len(r.Args) > 0 {
			s.Items = append(s.Items, l.Named(r.Rung, strings.Join(r.Args, " ")))
		}
		if r.Why != "" {
			s.Items = append(s.Items, l.Named(r.Rung, r.Why))
		}
		if r.JobID != "" && r.State != slurm.Completed {
			d.Next = []string{"diagnose " + string(r.JobID) + o.elsewhere}
		}
	}
	d.Sections = append(d.Sections, s)
	if hint, ok := smokeHints[o.Failed]; ok {
		d.Sections = append(d.Sections, view.Section{Text: hint.In(l)})
	}
	return d
}

// smokeHints says where to look, by the first rung that fails.
var smokeHints = map[string]lang.Text{
	"1 GPU":   {EN: "One GPU alone fails: look at the image, the environment, the data and the arguments, not at the network.", ZH: "单卡即失败：检查镜像、环境、数据与参数，与网络无关。"},
	"1 node":  {EN: "One node fails where one GPU holds: look at NCCL inside the node (NVLink, /dev/shm), the layout and the memory.", ZH: "单卡通过而单节点失败：检查节点内 NCCL（NVLink、/dev/shm）、并行配置与显存。"},
	"2 nodes": {EN: "Two nodes fail where one holds: look at the network between them (NCCL_SOCKET_IFNAME, InfiniBand, firewall), MASTER_ADDR and paths that one node lacks.", ZH: "单节点通过而两节点失败：检查节点间网络（NCCL_SOCKET_IFNAME、InfiniBand、防火墙）、MASTER_ADDR，以及某个节点缺少的路径。"},
}
