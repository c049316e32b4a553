package fleet

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// RunCommand returns the operation run.
func RunCommand() ops.Op {
	return ops.Define(ops.Op{
		Name: "run", Effect: ops.Destructive, Toolset: ops.NodesSet,
		Summary: lang.Text{EN: "run a command on every node of a running job, beside what runs there", ZH: "在运行中作业的每个节点上执行命令，不影响作业本身"},
		Help: lang.Text{
			EN: "Use for nvidia-smi, py-spy dump or df on the nodes of a job. It takes no GPU unless told to, and never waits for the job's own steps.",
			ZH: "在作业节点上执行 nvidia-smi、py-spy dump、df 等。除非指定，否则不占用 GPU，也不会等待作业自身的步骤。",
		},
		Example: "run 4711 -- nvidia-smi",
	}, runOn)
}

// RunIn is a command to run on every node of a job.
type RunIn struct {
	Job   slurm.JobID `json:"job" arg:"" help:"job id of a running job" zh:"运行中的作业号"`
	Nodes string      `json:"nodes,omitempty" short:"w" help:"only these of its nodes" zh:"只在这些节点上执行"`
	GPUs  bool        `json:"gpus,omitempty" name:"gpus" help:"let the command see the job's GPUs" zh:"让命令能看到作业的 GPU"`
	Limit ops.Seconds `json:"limit_s,omitempty" name:"limit" help:"seconds that it may take (typed, also 10m); 60 where left out" zh:"允许的秒数（在命令中也可写 10m），默认 60"`
	Argv  []string    `json:"argv" kong:"-" help:"the command, one element a word"`
	ops.OnCluster
}

// RunOut holds each node's output.
type RunOut struct {
	JobID slurm.JobID        `json:"job_id"`
	Nodes []slurm.NodeOutput `json:"nodes"`
}

// View shows each node's output. Nodes with the same output share one section.
func (o RunOut) View(lang.Lang) view.Doc {
	var d view.Doc
	byText := map[string][]string{}
	var order []string
	for _, n := range o.Nodes {
		if byText[n.Text] == nil {
			order = append(order, n.Text)
		}
		byText[n.Text] = append(byText[n.Text], n.Node)
	}
	for _, text := range order {
		d.Sections = append(d.Sections, view.Section{Heading: hostlist.Compress(byText[text]), Code: text})
	}
	return d
}

func runOn(ctx context.Context, c *ops.Call, in RunIn) (RunOut, error) {
	out := RunOut{JobID: in.Job, Nodes: []slurm.NodeOutput{}}
	if len(in.Argv) == 0 {
		return out, ops.InputError("argv",
			lang.Text{EN: "there is no command to run", ZH: "没有要执行的命令"},
			lang.Text{EN: "for example: `megatron-ops run 4711 -- nvidia-smi`", ZH: "例如：`megatron-ops run 4711 -- nvidia-smi`"})
	}
	if in.Limit < 0 {
		return out, ops.NegativeError("limit_s", int(in.Limit), lang.Text{EN: "seconds, such as 60", ZH: "秒数，例如 60"})
	}
	cl, j, err := c.Job(ctx, in.Cluster, in.Job)
	if err != nil {
		return out, err
	}
	if err := c.MayChange(j); err != nil {
		return out, err
	}
	if j.State != slurm.Running {
		return out, &ops.Error{Code: ops.Failed, Field: "job", Message: lang.Text{EN: "job %s is %s: commands run beside a running job only", ZH: "作业 %s 处于 %s：只能在运行中的作业旁执行命令"}.With(j.ID, j.State.Word())}
	}
	e := slurm.Exec{Job: in.Job, Argv: in.Argv, GPUs: in.GPUs, Limit: in.Limit.Duration()}
	if in.Nodes != "" {
		if e.Nodes, err = nodeNames(in.Nodes); err != nil {
			return out, err
		}
	}
	if _, err := c.BeginOn(ctx, j, nil); err != nil {
		return out, err
	}
	done := c.During(lang.Text{EN: "the nodes run it", ZH: "各节点正在执行"}.In(c.Lang))
	said, err := cl.Exec(ctx, e)
	done()
	out.Nodes = append(out.Nodes, said...)
	if err != nil {
		return out, c.SlurmError(err, in.Job)
	}
	return out, nil
}

// AfterDashes receives the command, which is written after "--".
func (in *RunIn) AfterDashes(words []string) { in.Argv = words }
