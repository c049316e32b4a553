package launch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// ImportIn is an existing script, or one of Megatron's CI recipes.
type ImportIn struct {
	File string `json:"-" arg:"" optional:"" name:"script-or-recipe" help:"an sbatch script, or a recipe of Megatron's CI (.yaml)" zh:"sbatch 脚本，或 Megatron CI 的 recipe（.yaml）"`
	Text string `json:"script,omitempty" kong:"-" help:"the text of an sbatch script"`
}

// ImportOut holds the specifications as YAML, and what they cannot express.
type ImportOut struct {
	Specs []string   `json:"specs"`
	Notes []job.Note `json:"notes"`
	notes []string
}

// Import returns the operation import.
func Import() ops.Op {
	return ops.Define(ops.Op{
		Name: "import", Effect: ops.Read, Toolset: ops.PlanSet, Closed: true,
		Summary: lang.Text{EN: "turn an existing sbatch script or CI recipe into a job specification", ZH: "把现有 sbatch 脚本或 CI recipe 转成作业规格"},
		Help:    lang.Text{EN: "Use to port a script. It notes what the specification could not carry.", ZH: "用于迁移已有脚本。规格无法表达的内容会逐条说明。"},
		Example: "import run.sbatch > job.yaml",
	}, importScript)
}

func importScript(_ context.Context, c *ops.Call, in ImportIn) (ImportOut, error) {
	out := ImportOut{Specs: []string{}, Notes: []job.Note{}}
	name, text, err := readScript(c, "import", in.File, in.Text)
	if err != nil {
		return out, err
	}
	var specs []job.Spec
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
		found, notes, err := job.ImportRecipe(text)
		if err != nil {
			return out, ops.FieldErrors(err)
		}
		specs, out.Notes = found, append(out.Notes, notes...)
	} else {
		s, notes := job.Import(name, text)
		if len(job.Encode(s)) == 0 {
			return out, ops.InputError("script",
				lang.Text{EN: "%s has nothing to import: no #SBATCH option and no command that starts a training", ZH: "%s 中没有可导入的内容：既没有 #SBATCH 选项，也没有启动训练的命令"}.With(name),
				lang.Text{EN: "name the script that is given to sbatch, or that calls srun, torchrun or python", ZH: "请给出提交给 sbatch 的脚本，或调用 srun、torchrun、python 的脚本"})
		}
		specs, out.Notes = []job.Spec{s}, append(out.Notes, notes...)
	}
	for _, s := range specs {
		out.Specs = append(out.Specs, string(job.Encode(s)))
	}
	out.notes = noteLines(out.Notes, c.Lang)
	return out, nil
}

// noteLines formats notes for a person, with the line of the file in front.
func noteLines(notes []job.Note, l lang.Lang) []string {
	var out []string
	for _, n := range notes {
		out = append(out, strings.TrimPrefix(fmt.Sprintf("%d: %s: %s", n.Line, n.What, n.Why.In(l)), "0: "))
	}
	return out
}

// Verbatim returns the specifications and, as comments, what they cannot express, so
// that it can be piped into a file.
func (o ImportOut) Verbatim() string {
	var b strings.Builder
	for _, n := range o.notes {
		b.WriteString("# " + strings.ReplaceAll(view.Plainly(n), "\n", " ") + "\n")
	}
	b.WriteString(strings.Join(o.Specs, "---\n"))
	return b.String()
}

// View shows the specification and then what it cannot express.
func (o ImportOut) View(l lang.Lang) view.Doc {
	var d view.Doc
	for _, s := range o.Specs {
		d.Sections = append(d.Sections, view.Section{Code: s, Lang: "yaml"})
	}
	d.Add(view.Section{Heading: lang.Text{EN: "not carried over unchanged", ZH: "未能原样保留"}.In(l), Items: o.notes})
	return d
}

// ImageIn selects an image: one of Megatron-LM's own, or a job's to distribute.
type ImageIn struct {
	Variant  string `json:"variant,omitempty" arg:"" optional:"" default:"dev" help:"dev or lts; distribute: a short job that brings a job's image to every node" zh:"dev 或 lts；distribute：把作业的镜像分发到各节点的短作业"`
	File     string `json:"-" short:"f" name:"file" placeholder:"FILE" help:"the job whose image is distributed" zh:"要分发其镜像的作业规格"`
	Worktree string `json:"worktree,omitempty" help:"the Megatron-LM checkout" zh:"Megatron-LM 代码目录"`
	Remote   string `json:"remote,omitempty" help:"URL of the git remote whose registry holds CI's images" zh:"镜像仓库所在 git remote 的 URL"`
	NoCache  bool   `json:"no_cache,omitempty" name:"no-cache" help:"leave the host's uv cache out" zh:"不挂载主机的 uv 缓存"`
}

// ImageOut holds the commands, in order.
type ImageOut struct {
	Steps  []ImageStep `json:"steps"`
	script string
}

// Verbatim returns the script of distribute, which goes to sbatch unchanged; "" for
// commands, which are only shown.
func (o ImageOut) Verbatim() string { return o.script }

// An ImageStep is one command and its purpose.
type ImageStep struct {
	Does    string `json:"does"`
	Command string `json:"command"`
}

// Image returns the operation image.
func Image() ops.Op {
	return ops.Define(ops.Op{
		Name: "image", Effect: ops.Read, Toolset: ops.KnowledgeSet, Closed: true,
		Summary: lang.Text{EN: "the commands that build, pull and enter Megatron's container image", ZH: "构建、拉取并进入 Megatron 容器镜像的命令"},
		Help:    lang.Text{EN: "Use for container set-up with Docker, pyxis/enroot or Singularity. It runs nothing.", ZH: "用于 Docker、pyxis/enroot、Singularity 的容器准备。不执行任何命令。"},
		Example: "image lts",
	}, image)
}

func image(ctx context.Context, c *ops.Call, in ImageIn) (ImageOut, error) {
	if in.Variant == "distribute" {
		r, err := render(ctx, c, RenderIn{SpecIn: SpecIn{File: in.File}, For: in.Variant})
		return ImageOut{Steps: []ImageStep{{
			Does:    lang.Text{EN: "a short job that brings the image to every node, for sbatch", ZH: "把镜像分发到各节点的短作业，交给 sbatch"}.In(c.Lang),
			Command: r.Script,
		}}, script: r.Script}, err
	}
	ask := job.Image{Variant: in.Variant, Worktree: in.Worktree, Remote: in.Remote, NoCache: in.NoCache}
	if in.Worktree != "" && c.AtShell() {
		if !filepath.IsAbs(ask.Worktree) {
			ask.Worktree = filepath.Join(c.Dir, ask.Worktree)
		}
		if b, err := os.ReadFile(filepath.Join(ask.Worktree, "docker", ".ngc_version."+in.Variant)); err == nil {
			ask.Base = string(b)
		}
	}
	steps, err := job.Images(ask)
	if err != nil {
		return ImageOut{}, ops.FieldErrors(err)
	}
	out := ImageOut{Steps: []ImageStep{}}
	for _, s := range steps {
		out.Steps = append(out.Steps, ImageStep{Does: s.Does.In(c.Lang), Command: s.Command})
	}
	return out, nil
}

// View shows each command below its purpose.
func (o ImageOut) View(lang.Lang) view.Doc {
	var d view.Doc
	for _, s := range o.Steps {
		d.Sections = append(d.Sections, view.Section{Heading: s.Does, Code: s.Command, Lang: "bash"})
	}
	return d
}
