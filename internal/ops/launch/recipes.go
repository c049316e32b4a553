package launch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/recipes"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// RecipesIn asks for the known models, for one model, or for a job.
type RecipesIn struct {
	Do     string `json:"do,omitempty" arg:"" optional:"" enum:"list,show,render" default:"list" verb:"recipes show" help:"list the models, show one, or render a job for it" zh:"列出模型、查看一个模型，或为它生成作业"`
	Recipe string `json:"recipe,omitempty" arg:"" optional:"" name:"recipe" help:"the model, such as llama3-70b; llama3-70b:fp8 for a type of number" zh:"模型，例如 llama3-70b；llama3-70b:fp8 指定数值类型"`
	GPU    string `json:"gpu,omitempty" name:"gpu" placeholder:"KIND" help:"kind of GPU" zh:"GPU 型号"`
	GPUs   int    `json:"gpus,omitempty" name:"gpus" placeholder:"N" help:"GPUs in all" zh:"GPU 总数"`
}

// RecipesOut holds the models, or one model and its job.
type RecipesOut struct {
	Models []recipes.Model `json:"models"`
	// Args holds the arguments of the requested model.
	Args []string `json:"args,omitempty"`
	// Spec is the job specification, for render. Script is the rendered script, where
	// the site knows enough for one.
	Spec   string `json:"spec,omitempty"`
	Script string `json:"script,omitempty"`
	// Published reports that the layout was published for exactly this number of GPUs.
	Published bool `json:"published,omitempty"`
}

// Recipes returns the operation recipes.
func Recipes() ops.Op {
	return ops.Define(ops.Op{
		Name: "recipes", Effect: ops.Read, Toolset: ops.PlanSet, Closed: true,
		Summary: lang.Text{EN: "models by name: Megatron's arguments, published layouts and speeds, and a job from them", ZH: "按名称给出模型：Megatron 参数、公开发表的并行配置与速度，并由此生成作业"},
		Help: lang.Text{
			EN: "Use to begin from what somebody published: Llama 3, Qwen3, DeepSeek-V3, Kimi K2, Mixtral, GPT-OSS, Nemotron, GPT. plan, render, submit and memory take --recipe, recommend takes --model. The data are stand-ins until --data-path and --tokenizer-type are given.",
			ZH: "用于从公开发表的配置开始：Llama 3、Qwen3、DeepSeek-V3、Kimi K2、Mixtral、GPT-OSS、Nemotron、GPT。plan、render、submit、memory 接受 --recipe，recommend 接受 --model。给出 --data-path 与 --tokenizer-type 之前使用模拟数据。",
		},
		Example: "recipes render llama3-70b --gpu h100 --gpus 64",
	}, listRecipes)
}

func listRecipes(_ context.Context, c *ops.Call, in RecipesIn) (RecipesOut, error) {
	if in.Do == "list" && in.Recipe == "" {
		return RecipesOut{Models: recipes.Models()}, nil
	}
	m, number, err := modelNamed("recipe", in.Recipe)
	if err != nil {
		return RecipesOut{}, err
	}
	out := RecipesOut{Models: []recipes.Model{m}, Args: m.Argv(megatron.Main)}
	if in.Do != "render" {
		if r, _, ok := m.Find(in.GPU, in.GPUs, number); ok && (in.GPU != "" || number != "") {
			out.Args = append(out.Args, r.Argv()...)
		}
		return out, nil
	}
	s, err := draft(c, SpecIn{Recipe: in.Recipe, GPUs: in.GPUs, Spec: job.Spec{GPU: in.GPU}})
	if err != nil {
		return out, err
	}
	_, out.Published, _ = m.Find(s.GPU, s.WithDefaults().WorldSize(), number)
	out.Args, out.Spec = s.Args, string(job.Encode(s))
	s.Worktree = cmp.Or(s.Worktree, "/path/to/Megatron-LM")
	sc, err := job.Render(s, job.Options{Version: c.Version, Site: c.SiteOf(s)})
	if err != nil {
		return out, ops.FieldErrors(err)
	}
	out.Script = sc.Text
	return out, nil
}

// modelNamed returns the model that a person named, and the number type after a colon.
func modelNamed(field, name string) (recipes.Model, string, error) {
	name, number, _ := strings.Cut(name, ":")
	m, ok := recipes.Lookup(name)
	if !ok {
		fix := lang.Text{EN: "recipes list shows all", ZH: "recipes list 列出全部"}
		if like := recipes.Like(name); len(like) > 0 {
			fix = ops.DidYouMean.With(strings.Join(like, ", "))
		}
		return m, "", ops.NotFoundError(field, lang.Text{EN: "%q is no model that is known here", ZH: "这里没有名为 %q 的模型"}.With(name), fix)
	}
	if number != "" && !slices.Contains(recipes.Types(), number) {
		return m, "", ops.InputError(field,
			lang.Text{EN: "%q is no type of number", ZH: "%q 不是数值类型"}.With(number),
			lang.Same(strings.Join(recipes.Types(), ", ")))
	}
	return m, number, nil
}

// recipe returns the job with a model's published layout. base is what else the person
// gave.
func recipe(c *ops.Call, in SpecIn, base job.Spec) (job.Spec, error) {
	field := "recipe"
	if in.modelOnly {
		field = "model"
	}
	m, number, err := modelNamed(field, in.Recipe)
	if err != nil {
		return job.Spec{}, err
	}
	site := c.SiteOf(job.Spec{Cluster: cmp.Or(in.Spec.Cluster, base.Cluster)})
	gpu := cmp.Or(in.Spec.GPU, base.GPU, site.GPU)
	if gpu != "" {
		kind, err := kindOfGPU(gpu)
		if err != nil {
			return job.Spec{}, err
		}
		gpu = kind.Name
	}
	judged, _ := megatron.ParseRelease(cmp.Or(in.Spec.Megatron, base.Megatron))
	s := job.Spec{Name: m.Name, Script: m.Script(judged.Release)}
	gpus := in.GPUs
	if n := cmp.Or(in.Spec.Nodes, base.Nodes); gpus == 0 && n != nil {
		gpus = *n * perNode(cmp.Or(in.Spec.GPUsPerNode, base.GPUsPerNode), site, gpu)
	}
	r, _, ok := m.Find(gpu, gpus, number)
	if in.modelOnly {
		r.Batch = cmp.Or(r.Batch, recipes.UsualBatch)
		s.Args = append(m.Argv(judged.Release), recipes.Run{Type: cmp.Or(number, r.Type)}.Number()...)
		s.Args = append(s.Args, "--global-batch-size", strconv.Itoa(r.Batch))
		return s, nil
	}
	if !ok {
		return s, ops.NotFoundError("recipe",
			lang.Text{EN: "no layout of %s was published that fills these GPUs", ZH: "没有公开发表的 %s 配置能用满这些 GPU"}.With(m.Name),
			lang.Text{EN: "`recommend --model %s` finds one; `recipes show %s` lists the published", ZH: "`recommend --model %s` 可给出一种；`recipes show %s` 列出已发表的"}.With(m.Name, m.Name))
	}
	s.GPU = r.GPU
	if gpus = cmp.Or(gpus, r.GPUs); gpus < perNode(nil, site, s.GPU) {
		s.GPUsPerNode = &gpus
	}
	nodes := -(-gpus / perNode(s.GPUsPerNode, site, s.GPU))
	s.Nodes = &nodes
	if s.GPUsPerNode == nil && site.GPUsPerNode == 0 {
		n := recipes.PerNode(s.GPU)
		s.GPUsPerNode = &n
	}
	s.Args = append(m.Argv(judged.Release), r.Argv()...)
	return s, nil
}

// kindOfGPU returns the GPU of that name, or an error that suggests similar names.
func kindOfGPU(word string) (megatron.GPU, error) {
	if g, ok := megatron.LookupGPU(word); ok {
		return g, nil
	}
	fix := lang.Text{EN: "a kind such as h100, b200 or gb200", ZH: "型号如 h100、b200 或 gb200"}
	if like := megatron.NearestGPUs(word); len(like) > 0 {
		fix = ops.DidYouMean.With(strings.Join(like, ", "))
	}
	return megatron.GPU{}, ops.InputError("gpu", lang.Text{EN: "%q is no kind of GPU that is known here", ZH: "%q 不是已知的 GPU 型号"}.With(word), fix)
}

// perNode returns the number of GPUs of a node: the given number, the site's, or the
// usual one for that kind of GPU.
func perNode(given *int, site job.Site, gpu string) int {
	if given != nil && *given > 0 {
		return *given
	}
	return cmp.Or(site.GPUsPerNode, recipes.PerNode(gpu))
}

// setNodes sets the number of nodes that holds so many GPUs.
func setNodes(s job.Spec, gpus int, site job.Site) (job.Spec, error) {
	per := perNode(s.GPUsPerNode, site, s.GPU)
	if gpus < per && s.GPUsPerNode == nil {
		per = gpus
	}
	if gpus < 1 {
		return s, ops.InputError("gpus", lang.Text{EN: "%d is less than 1", ZH: "%d 小于 1"}.With(gpus), lang.Text{EN: "a number of 1 or more", ZH: "1 或更大的数"})
	}
	if gpus%per != 0 {
		return s, ops.InputError("gpus",
			lang.Text{EN: "%s cannot fill nodes of %d", ZH: "%s无法用满每节点 %d 张的节点"}.With(ops.Counted(gpus, "GPU"), per),
			lang.Text{EN: "a multiple of %d", ZH: "%d 的倍数"}.With(per))
	}
	nodes := gpus / per
	if s.Nodes != nil && *s.Nodes != nodes {
		return s, ops.InputError("gpus",
			lang.Text{EN: "%s, at %d a node, make %s, not %d", ZH: "%s（每节点 %d 张）是 %s，而不是 %d 个"}.With(ops.Counted(gpus, "GPU"), per, ops.Counted(nodes, "node"), *s.Nodes),
			lang.Text{EN: "give nodes or gpus", ZH: "nodes 与 gpus 给出一个即可"})
	}
	s.Nodes, s.GPUsPerNode = &nodes, &per
	return s, nil
}

// ownData holds the flags that name a person's own data.
var ownData = []string{"--data-path", "--train-data-path", "--data-args-path", "--per-split-data-args-path"}

// withoutMockData removes a recipe's --mock-data where the person gave their own data.
func withoutMockData(args []string) []string {
	own := slices.ContainsFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains(ownData, name)
	})
	if !own {
		return args
	}
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--mock-data" })
}

// View shows a table of the models, or one model with its published layouts.
func (o RecipesOut) View(l lang.Lang) view.Doc {
	if o.Spec != "" {
		note := lang.Text{EN: "published for this count", ZH: "该数量有公开发表的配置"}
		if !o.Published {
			note = lang.Text{EN: "published for fewer GPUs; the data-parallel size makes up the rest", ZH: "公开发表的是较少 GPU 的配置；其余由数据并行补足"}
		}
		return view.Doc{Title: o.Models[0].Name, Sections: []view.Section{
			{Text: note.In(l)},
			{Heading: "job.yaml", Code: o.Spec, Lang: "yaml"},
			{Heading: "sbatch", Code: o.Script, Lang: "bash", Fold: true},
		}}
	}
	t := &view.Table{Header: view.Columns(l, "model|GPU|GPUs|type|layout|GBS|TFLOP/s/GPU", "模型|GPU|GPU 数|类型|并行配置|GBS|TFLOP/s/GPU"), Spare: []int{5}}
	var sources []string
	for _, m := range o.Models {
		name := m.Name
		for _, r := range m.Runs {
			speed := ""
			if r.TFLOPS > 0 {
				speed = fmt.Sprintf("%.0f", r.TFLOPS)
			}
			t.Rows = append(t.Rows, []string{name, r.GPU, strconv.Itoa(r.GPUs), r.Type, r.Layout(), strconv.Itoa(r.Batch), speed})
			name = ""
			if !slices.Contains(sources, r.Source) {
				sources = append(sources, r.Source)
			}
		}
		if len(m.Runs) == 0 {
			t.Rows = append(t.Rows, []string{name, "", "", "", "", "", ""})
		}
	}
	d := view.Doc{Sections: []view.Section{{Table: t}, {Heading: lang.Text{EN: "published in", ZH: "来源"}.In(l), Items: sources}}}
	if len(o.Models) == 1 && len(o.Args) > 0 {
		m := o.Models[0]
		d.Title = m.Name
		d.Sections[1].Items = append(d.Sections[1].Items, lang.Text{EN: "the model: ", ZH: "模型："}.In(l)+m.Source)
		d.Sections = append(d.Sections, view.Section{Heading: lang.Text{EN: "Megatron's arguments", ZH: "Megatron 参数"}.In(l), Code: shellword.Line(o.Args)})
	}
	return d
}
