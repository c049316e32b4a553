package launch

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// RenderIn is the specification to render as a script.
type RenderIn struct {
	SpecIn
	Minimal bool        `json:"minimal,omitempty" help:"no guards, no monitoring" zh:"只输出文档中的最小骨架：没有检查与监控"`
	For     string      `json:"for,omitempty" enum:",sbatch,shell,session,hostfile,distribute" default:"" help:"sbatch; shell: a command a node, by hand; session: an interactive allocation; hostfile; distribute: brings the image to every node" zh:"sbatch；shell：每个节点手动执行一条命令；session：交互式分配；hostfile；distribute：把镜像分发到各节点的短作业"`
	On      string      `json:"on_nodes,omitempty" name:"on-nodes" placeholder:"HOSTLIST" help:"nodes, for shell and hostfile" zh:"节点名，用于 shell 与 hostfile"`
	Into    slurm.JobID `json:"into,omitempty" placeholder:"JOBID" help:"as a step in this allocation" zh:"生成在该已有分配中启动的脚本"`
}

// RenderOut is the script.
type RenderOut struct {
	Script string `json:"script"`
	// Hash is the specification's hash, as in the script's header.
	Hash string `json:"hash,omitempty"`
	// Warnings point out what works but is not good practice.
	Warnings []string `json:"warnings,omitempty"`
	// LogDir is the folder of the script's output, as --output names it. Slurm does not make it.
	LogDir string `json:"log_dir,omitempty"`
}

// Render returns the operation render.
func Render() ops.Op {
	return ops.Define(ops.Op{
		Name: "render", Effect: ops.Read, Toolset: ops.PlanSet, Core: true, Closed: true,
		Summary: lang.Text{EN: "write the sbatch script for a job", ZH: "为作业生成 sbatch 脚本"},
		Help: lang.Text{
			EN: "Use to see or keep the script. The same specification gives the same bytes and quotes every value. To run it use submit.",
			ZH: "用于查看或保存脚本。相同的规格得到完全相同的脚本；所有取值都会被引用，绝不会被解释执行。不会提交；提交请用 submit。",
		},
		Example: "render -f job.yaml > run.sbatch",
		Batch:   ops.ByLine(job.RenderLine),
	}, render)
}

func render(_ context.Context, c *ops.Call, in RenderIn) (RenderOut, error) {
	s, err := ReadSpec(c, in.SpecIn)
	if err != nil {
		return RenderOut{}, err
	}
	opts := job.Options{Minimal: in.Minimal, Version: c.Version, Site: c.SiteOf(s)}
	var nodes []string
	if in.On != "" {
		if nodes, err = hostlist.Expand(in.On); err != nil {
			return RenderOut{}, ops.InputError("on_nodes", lang.Said(err), lang.Text{EN: "for example gpu[01-02]", ZH: "例如 gpu[01-02]"})
		}
	}
	switch in.For {
	case "shell":
		lines, err := job.ForShell(s, opts, nodes)
		if err != nil {
			return RenderOut{}, ops.FieldErrors(err)
		}
		return RenderOut{Script: manualCommands(lines, nodes)}, nil
	case "hostfile":
		if len(nodes) == 0 {
			return RenderOut{}, ops.InputError("on_nodes",
				lang.Text{EN: "a hostfile needs the nodes' names", ZH: "hostfile 需要节点名"},
				lang.Same("--on-nodes gpu[01-02]"))
		}
		return RenderOut{Script: job.Hostfile(nodes, *s.WithDefaults().GPUsPerNode)}, nil
	case "distribute":
		sc, err := job.Distribute(s, opts)
		if err != nil {
			return RenderOut{}, ops.FieldErrors(err)
		}
		return RenderOut{Script: sc.Text, Hash: sc.Hash, Warnings: warnings(c, sc), LogDir: sc.LogDir}, nil
	case "session":
		i, err := job.ForSession(s, opts)
		if err != nil {
			return RenderOut{}, ops.FieldErrors(err)
		}
		return RenderOut{Script: sessionCommands(i)}, nil
	}
	render := job.Render
	if in.Into != "" {
		render = func(s job.Spec, o job.Options) (job.Script, error) { return job.IntoStep(s, o, in.Into) }
	}
	sc, err := render(s, opts)
	if err != nil {
		return RenderOut{}, ops.FieldErrors(err)
	}
	out := RenderOut{Script: sc.Text, Hash: sc.Hash, Warnings: warnings(c, sc)}
	if in.Into == "" {
		out.LogDir = sc.LogDir
	}
	return out, nil
}

// warnings returns a script's warnings in the caller's language.
func warnings(c *ops.Call, sc job.Script) []string {
	var all []string
	for _, w := range sc.Warnings {
		all = append(all, w.In(c.Lang))
	}
	return all
}

// manualCommands puts the node's name in front of each command that a person types on it.
func manualCommands(commands []string, nodes []string) string {
	var b strings.Builder
	for i, c := range commands {
		name := fmt.Sprintf("node %d", i)
		if len(nodes) > 0 {
			name = nodes[i]
		}
		fmt.Fprintf(&b, "# on %s\n%s\n", name, c)
	}
	return b.String()
}

func sessionCommands(i job.Interactive) string {
	return fmt.Sprintf(`# take the nodes, and keep them when this shell ends; it says JOBID
%s
# start the training there, again and again
megatron-ops submit --into JOBID -f job.yaml
# a shell on one of its nodes, beside what runs
%s
# beside the training, without a GPU
%s
# or one node at once, in a shell on it
%s
# give the nodes back: they count until then
%s
`, i.Allocate, i.Join, i.Side, i.Shell, i.Release)
}

// Verbatim returns only the script, so that it can be piped into a file.
func (o RenderOut) Verbatim() string { return o.Script }

// Aside returns what the one who submits the script has to do before; "" for nothing.
func (o RenderOut) Aside(l lang.Lang) string {
	if o.LogDir == "" || path.Clean(o.LogDir) == "." {
		return ""
	}
	return lang.Text{EN: "before sbatch: %s", ZH: "执行 sbatch 之前：%s"}.With("mkdir -p " + shellword.Line([]string{o.LogDir})).In(l)
}

// View shows the script, what to do before it is submitted, and its warnings.
func (o RenderOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Sections: []view.Section{{Code: o.Script, Lang: "bash"}}}
	d.Add(view.Section{Text: o.Aside(l)})
	d.Add(view.Section{Items: o.Warnings})
	return d
}
