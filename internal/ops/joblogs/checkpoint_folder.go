package joblogs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/checkpoint"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// CheckpointIn names a checkpoint, and the job that should load it.
type CheckpointIn struct {
	Place     string      `json:"place" arg:"" name:"folder-or-job" jobs:"" help:"folder that --save wrote to, one iteration's folder, or a job id: what it saved" zh:"--save 写入的目录、某次迭代的目录，或作业号（即它保存的检查点）"`
	Iteration int         `json:"iteration,omitempty" help:"this iteration; the latest where left out" zh:"查看这次迭代，默认最新"`
	File      string      `json:"-" short:"f" placeholder:"FILE" help:"could the job of this specification load it?" zh:"该规格的作业能否加载它？"`
	For       slurm.JobID `json:"for,omitempty" name:"for" placeholder:"JOBID" help:"could this earlier job of mine load it?" zh:"我之前的这个作业能否加载它？"`
	ops.OnCluster
}

// CheckpointFolderOut describes a checkpoint, and whether the job could load it.
type CheckpointFolderOut struct {
	checkpoint.Checkpoint
	Load *CheckpointLoad `json:"load,omitempty"`
}

// A CheckpointLoad says whether a job can load a checkpoint, why not, and what would
// help.
type CheckpointLoad struct {
	Name   string            `json:"name"`
	Layout checkpoint.Layout `json:"layout"`
	Loads  bool              `json:"loads"`
	Why    []string          `json:"why"`
	How    []string          `json:"how"`
}

// Found reports whether the checkpoint is incomplete, or the job cannot load it.
func (o CheckpointFolderOut) Found() bool { return !o.Complete || o.Load != nil && !o.Load.Loads }

// CheckpointFolder returns the operation checkpoint.
func CheckpointFolder() ops.Op {
	return ops.Define(ops.Op{
		Name: "checkpoint", Effect: ops.Read, Toolset: ops.LogsSet,
		Summary: lang.Text{EN: "a checkpoint: format, iteration, layout, completeness, and whether a job can load it", ZH: "检查点的格式、迭代、并行布局、完整性，以及作业能否加载它"},
		Help: lang.Text{
			EN: "Use before a run is resumed, resharded or converted. It reads torch_dist, torch, fsdp_dtensor and torch_dcp without PyTorch, and loads no tensor.",
			ZH: "在恢复、重新切分或转换之前使用。无需 PyTorch 即可读取 torch_dist、torch、fsdp_dtensor 与 torch_dcp，不加载张量。",
		},
		Example: "checkpoint /lustre/me/ckpt -f job.yaml",
	}, checkpointFolder)
}

func checkpointFolder(ctx context.Context, c *ops.Call, in CheckpointIn) (CheckpointFolderOut, error) {
	dir, folders, err := checkpointDir(ctx, c, in)
	if err != nil {
		return CheckpointFolderOut{}, err
	}
	defer folders.Close()
	read, err := checkpoint.Read(folders, dir, in.Iteration)
	out := CheckpointFolderOut{Checkpoint: read}
	switch {
	case errors.Is(err, checkpoint.ErrNoSuch):
		return out, ops.NotFoundError("iteration", lang.Text{EN: "%s has no iteration %d", ZH: "%s 中没有第 %d 次迭代"}.With(dir, in.Iteration), lang.Text{EN: "without --iteration the latest is shown, with the others", ZH: "不加 --iteration 会显示最新的，并列出其他迭代"})
	case errors.Is(err, checkpoint.ErrNone), errors.Is(err, fs.ErrNotExist):
		said := lang.Text{EN: "%s holds no checkpoint of Megatron-LM", ZH: "%s 中没有 Megatron-LM 的检查点"}.With(dir)
		if why := lang.Said(err); errors.Is(err, checkpoint.ErrNone) && why != lang.Said(checkpoint.ErrNone) { // it says which part is missing
			said = lang.Text{EN: "%s: %s", ZH: "%s：%s"}.With(dir, why)
		}
		fix := lang.Text{EN: "the folder that --save names, or iter_NNNNNNN in it", ZH: "--save 指定的目录，或其中的 iter_NNNNNNN"}
		if n := len(read.Others); n > 0 {
			fix = lang.Text{EN: "--iteration %d reads one that is there", ZH: "--iteration %d 可读取现有的一个"}.With(read.Others[n-1])
		}
		return out, ops.NotFoundError("place", said, fix)
	case err != nil:
		return out, &ops.Error{Code: ops.Failed, Field: "place", Message: lang.Said(err)}
	}
	var s job.Spec
	switch {
	case in.File != "":
		if s, err = launch.ReadSpec(c, launch.SpecIn{File: in.File}); err != nil {
			return out, err
		}
	case in.For != "":
		cl, err := c.Cluster(in.Cluster)
		if err != nil {
			return out, err
		}
		var ok bool
		if s, ok = c.SpecOf(ctx, cl.Name(), in.For); !ok {
			return out, noSpec("for", in.For)
		}
	default:
		return out, nil
	}
	v := read.LoadedBy(loaderOf(s.WithDefaults()))
	out.Load = &CheckpointLoad{Name: s.WithDefaults().Name, Layout: loaderOf(s.WithDefaults()).Layout, Loads: v.Loads, Why: []string{}, How: []string{}}
	for _, t := range v.Why {
		out.Load.Why = append(out.Load.Why, t.In(c.Lang))
	}
	for _, t := range v.How {
		out.Load.How = append(out.Load.How, t.In(c.Lang))
	}
	return out, nil
}

func noSpec(field string, id slurm.JobID) error {
	return ops.NotFoundError(field, lang.Text{EN: "the specification of job %s is not known here", ZH: "这里没有作业 %s 的规格"}.With(id), lang.Text{EN: "name the folder, or the specification's file: -f job.yaml", ZH: "请给出目录，或规格文件：-f job.yaml"})
}

// checkpointDir returns the folder that in names, and the open folders through which it
// must be read. Only the person's own process reads
// the folder that a job saves to: a server may read more than the person may.
func checkpointDir(ctx context.Context, c *ops.Call, in CheckpointIn) (string, *within.Folders, error) {
	if !slurm.IsJobID(in.Place) {
		return resolvePath(c, "place", in.Place)
	}
	if !c.OwnHands() {
		return "", nil, ops.InputError("place", lang.Text{EN: "checkpoints are looked at in a shell of your own", ZH: "请在您自己的 shell 中查看检查点"}, lang.Text{EN: "in a shell: megatron-ops checkpoint %s", ZH: "在 shell 中运行：megatron-ops checkpoint %s"}.With(in.Place))
	}
	cl, j, err := c.Job(ctx, in.Cluster, slurm.JobID(in.Place))
	if err != nil {
		return "", nil, err
	}
	s, ok := c.SpecOfJob(ctx, cl.Name(), j)
	if !ok {
		return "", nil, noSpec("place", j.ID)
	}
	save := megatron.LastOf(s.Args, "--save")
	if save == "" {
		return "", nil, ops.NotFoundError("place", lang.Text{EN: "job %s saves no checkpoint: it has no --save", ZH: "作业 %s 没有 --save，不保存检查点"}.With(j.ID),
			lang.Text{EN: "name a folder that holds a checkpoint, or a job that saves one", ZH: "请给出含有检查点的目录，或保存检查点的作业"})
	}
	dir, seen := s.WithDefaults().OnHost(save)
	if !seen {
		return "", nil, ops.NotFoundError("place", lang.Text{EN: "%s is inside the job's container alone", ZH: "%s 只在作业的容器内"}.With(save), lang.Text{EN: "a mount for it in container.mounts", ZH: "在 container.mounts 中为其添加挂载"})
	}
	return dir, nil, nil
}

// loaderOf returns the part of a specification that decides whether the job can load a
// checkpoint.
func loaderOf(s job.Spec) checkpoint.Run {
	given := func(flag string) bool { _, ok := megatron.ValueOf(s.Args, flag); return ok }
	r := checkpoint.Run{
		Format: checkpoint.TorchDist, FSDP: given("--use-megatron-fsdp"), AutoDetect: given("--auto-detect-ckpt-format"),
		NoOptimizer: given("--no-load-optim") || given("--finetune"), Distributed: given("--use-distributed-optimizer"),
		Model: map[string]int{},
	}
	if f := megatron.LastOf(s.Args, "--ckpt-format"); f != "" {
		r.Format = checkpoint.Format(f)
	}
	r.TP, r.PP = megatron.NumberOf(s.Args, "--tensor-model-parallel-size", 1), megatron.NumberOf(s.Args, "--pipeline-model-parallel-size", 1)
	r.EP, r.CP = megatron.NumberOf(s.Args, "--expert-model-parallel-size", 1), megatron.NumberOf(s.Args, "--context-parallel-size", 1)
	r.World = s.WorldSize()
	r.DP = r.World / (r.TP * r.PP * r.CP)
	for _, name := range []string{"num_layers", "hidden_size", "num_attention_heads"} {
		r.Model[name] = megatron.NumberOf(s.Args, "--"+strings.ReplaceAll(name, "_", "-"), 0)
	}
	return r
}

// View shows what the checkpoint is, what is wrong with it, and whether the job can
// load it.
func (o CheckpointFolderOut) View(l lang.Lang) view.Doc {
	at := lang.Text{EN: "a release", ZH: "发布版"}
	if o.Iteration != nil {
		at = lang.Text{EN: "iteration %d", ZH: "第 %d 次迭代"}.With(*o.Iteration)
	}
	d := view.Doc{Tone: view.Good, Title: lang.Text{EN: "%s, %s: complete", ZH: "%s，%s：完整"}.With(at, string(o.Format)).In(l)}
	if !o.Complete {
		d.Tone, d.Title = view.Bad, lang.Text{EN: "%s, %s: not complete", ZH: "%s，%s：不完整"}.With(at, string(o.Format)).In(l)
	}
	s := view.Section{}
	add := func(en, zh, value string) { s.Facts.Add(l, en, zh, value) }
	add("path", "路径", o.Path)
	if o.Saved.TP > 0 {
		add("saved with", "保存时的布局", o.Saved.Words())
	}
	add("size", "大小", lang.Text{EN: "%s in %s", ZH: "%s，%s"}.With(ops.Bytes(o.Bytes), ops.Counted(o.Files, "file")).In(l))
	if o.Parameters > 0 {
		add("parameters", "参数量", lang.Text{EN: "%s in %d tensors", ZH: "%s，%d 个张量"}.With(parametersWords(o.Parameters), o.Tensors).In(l))
	}
	if o.Optimizer != nil {
		word := lang.Text{EN: "not in it", ZH: "不含"}
		if *o.Optimizer {
			word = lang.Text{EN: "in it", ZH: "包含"}
		}
		if o.OptimizerSharding != "" {
			word = lang.Text{EN: "%s, cut as %s", ZH: "%s，按 %s 切分"}.With(word, o.OptimizerSharding)
		}
		add("optimizer's state", "优化器状态", word.In(l))
	}
	var model []string
	for _, name := range []string{"num_layers", "hidden_size", "num_attention_heads", "num_experts", "seq_length", "padded_vocab_size"} {
		if v, ok := o.Model[name]; ok {
			model = append(model, fmt.Sprintf("%s %v", name, v))
		}
	}
	add("model", "模型", strings.Join(model, ", "))
	var others []string
	for _, n := range o.Others {
		others = append(others, strconv.Itoa(n))
	}
	add("other iterations", "其他迭代", strings.Join(others, ", "))
	d.Sections = append(d.Sections, s)
	if len(o.Faults) > 0 {
		f := view.Section{Heading: lang.Text{EN: "what is wrong", ZH: "问题"}.In(l)}
		const most = 20
		for i, x := range o.Faults {
			if i == most {
				f.Items = append(f.Items, lang.Text{EN: "and %d more", ZH: "另有 %d 处"}.With(len(o.Faults)-most).In(l))
				break
			}
			f.Items = append(f.Items, faultWords(x).In(l))
		}
		d.Sections = append(d.Sections, f)
	}
	if o.Load != nil {
		f := view.Section{Heading: lang.Text{EN: "%s (%s) can load it", ZH: "%s（%s）可以加载"}.With(o.Load.Name, o.Load.Layout.Words()).In(l)}
		if !o.Load.Loads {
			d.Tone = view.Bad
			f.Heading = lang.Text{EN: "%s (%s) cannot load it", ZH: "%s（%s）无法加载"}.With(o.Load.Name, o.Load.Layout.Words()).In(l)
		}
		f.Items = append(f.Items, o.Load.Why...)
		for _, how := range o.Load.How {
			if !o.Load.Loads {
				how = lang.Text{EN: "fix: ", ZH: "修复："}.In(l) + how
			}
			f.Items = append(f.Items, how)
		}
		d.Sections = append(d.Sections, f)
	}
	return d
}

func faultWords(f checkpoint.Fault) lang.Text {
	switch {
	case f.Missing:
		return lang.Text{EN: "%s is missing", ZH: "缺少 %s"}.With(f.File)
	case f.Empty:
		return lang.Text{EN: "%s is empty", ZH: "%s 是空文件"}.With(f.File)
	case f.Unreadable:
		return lang.Text{EN: "%s was cut short, or is not what PyTorch writes", ZH: "%s 被截断，或不是 PyTorch 写出的文件"}.With(f.File)
	}
	return lang.Text{EN: "%s has %s, and the index says %s", ZH: "%s 只有 %s，而索引要求 %s"}.With(f.File, ops.Bytes(f.Have), ops.Bytes(f.Want))
}

// parametersWords formats a number of parameters as in the names of models.
func parametersWords(n int64) lang.Text {
	if n < 1e6 {
		return lang.Same(strconv.FormatInt(n, 10))
	}
	if n < 1e9 {
		return lang.Text{EN: "%.1f million", ZH: "%.1f M"}.With(float64(n) / 1e6)
	}
	return lang.Text{EN: "%.2f billion", ZH: "%.2f B"}.With(float64(n) / 1e9)
}
