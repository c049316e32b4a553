package checkpoint

import (
	"fmt"
	"path/filepath"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Run holds the options of a run that decide whether it can load a checkpoint.
type Run struct {
	Layout
	Format      Format         // its --ckpt-format
	FSDP        bool           // --use-megatron-fsdp
	AutoDetect  bool           // --auto-detect-ckpt-format
	NoOptimizer bool           // --no-load-optim, or --finetune
	Distributed bool           // --use-distributed-optimizer
	Model       map[string]int // those of modelArguments that its command line sets
}

// A Verdict says whether a run can load a checkpoint: Why gives the reasons against it,
// How the ways to load it.
type Verdict struct {
	Loads bool        `json:"loads"`
	Why   []lang.Text `json:"-"`
	How   []lang.Text `json:"-"`
}

// reshardable are the kinds of optimizer sharding that a run with another TP or PP can
// load (DistributedOptimizer.checkpoint_fully_reshardable_formats).
var reshardable = map[string]bool{"fully_reshardable": true, "fully_sharded_model_space": true, "fsdp_dtensor": true}

// mustAgree are the arguments that Megatron asserts to be equal.
var mustAgree = []string{"num_layers", "hidden_size", "num_attention_heads"}

// LoadedBy reports whether r can load c, by the checks of Megatron's checkpointing.py.
func (c Checkpoint) LoadedBy(r Run) Verdict {
	v := Verdict{Loads: true}
	refuse := func(why, how lang.Text) {
		v.Loads = false
		v.Why = append(v.Why, why)
		if how != (lang.Text{}) {
			v.How = append(v.How, how)
		}
	}
	if !c.Complete {
		how := lang.Text{EN: "load an earlier iteration: --ckpt-step", ZH: "改为加载更早的迭代：--ckpt-step"}
		if len(c.Others) > 0 {
			how = lang.Text{EN: "load an earlier iteration: --ckpt-step %d", ZH: "改为加载更早的迭代：--ckpt-step %d"}.With(c.Others[len(c.Others)-1])
		}
		refuse(lang.Text{EN: "it is not complete", ZH: "检查点不完整"}, how)
	}
	for _, name := range mustAgree {
		saved, ok := c.Model[name].(int64)
		if asked := r.Model[name]; ok && asked != 0 && asked != int(saved) {
			refuse(lang.Text{EN: "%s is %d in it and %d in the job", ZH: "%s 在检查点中为 %d，在作业中为 %d"}.With(name, saved, asked),
				lang.Text{EN: "the model's arguments as they were, or --use-checkpoint-args", ZH: "使用原来的模型参数，或 --use-checkpoint-args"})
		}
	}
	moved := c.Saved.TP != 0 && (c.Saved.TP != r.TP || c.Saved.PP != 0 && c.Saved.PP != r.PP)
	experts := c.Saved.EP != 0 && c.Saved.EP != r.EP
	switch c.Format {
	case Zarr:
		refuse(lang.Text{EN: "it is a zarr checkpoint, which Megatron-LM has not read since core 0.16", ZH: "它是 zarr 格式，Megatron-LM 从 core 0.16 起不再读取"},
			lang.Text{
				EN: "convert it with core 0.15 and its packages zarr and tensorstore: --load %s --ckpt-convert-format torch_dist --ckpt-convert-save DIR",
				ZH: "用 core 0.15（并安装 zarr 与 tensorstore）转换：--load %s --ckpt-convert-format torch_dist --ckpt-convert-save DIR",
			}.With(filepath.Dir(c.Path)))
	case FSDPDTensor:
		if !r.FSDP {
			refuse(lang.Text{EN: "it is Megatron-FSDP's, and the job does not use that", ZH: "它由 Megatron-FSDP 保存，而作业未使用 Megatron-FSDP"},
				lang.Text{EN: "--use-megatron-fsdp --ckpt-format fsdp_dtensor", ZH: "--use-megatron-fsdp --ckpt-format fsdp_dtensor"})
		} else if r.Format != FSDPDTensor {
			refuse(lang.Text{EN: "the job reads %s", ZH: "作业读取的格式是 %s"}.With(r.Format), lang.Same("--ckpt-format fsdp_dtensor"))
		}
		v.noteResharding(c, r)
	case TorchDCP:
		fsdp2 := lang.Same("--use-torch-fsdp2 --ckpt-format torch_dcp")
		switch {
		case r.FSDP:
			refuse(lang.Text{EN: "it is Torch-FSDP2's, and the job uses Megatron-FSDP", ZH: "它由 Torch-FSDP2 保存，而作业使用 Megatron-FSDP"}, fsdp2)
		case r.Format != TorchDCP:
			refuse(lang.Text{EN: "it is Torch-FSDP2's, and the job reads %s", ZH: "它由 Torch-FSDP2 保存，而作业读取的格式是 %s"}.With(r.Format), fsdp2)
		}
		v.noteResharding(c, r)
	case TorchDist:
		if r.FSDP || r.Format == FSDPDTensor {
			refuse(lang.Text{EN: "the job uses Megatron-FSDP, which reads fsdp_dtensor", ZH: "作业使用 Megatron-FSDP，它读取 fsdp_dtensor 格式"},
				lang.Text{EN: "convert it: tools/checkpoint/checkpoint_inspector.py convert-torch-dist-to-fsdp-dtensor %s OUTPUT", ZH: "转换：tools/checkpoint/checkpoint_inspector.py convert-torch-dist-to-fsdp-dtensor %s OUTPUT"}.With(c.Path))
			break
		}
		if (r.Format == Torch || r.Format == TorchDCP) && !r.AutoDetect {
			refuse(lang.Text{EN: "the job reads %s", ZH: "作业读取的格式是 %s"}.With(r.Format), lang.Text{EN: "--ckpt-format torch_dist, or --auto-detect-ckpt-format", ZH: "--ckpt-format torch_dist，或 --auto-detect-ckpt-format"})
		}
		if holds := c.Optimizer == nil || *c.Optimizer; (moved || experts) && holds && r.Distributed && !r.NoOptimizer &&
			c.OptimizerSharding != "" && !reshardable[c.OptimizerSharding] {
			refuse(lang.Text{EN: "its optimizer state is sharded as %s, which only the same TP, PP and EP can load", ZH: "其优化器状态按 %s 切分，只有相同的 TP、PP、EP 才能加载"}.With(c.OptimizerSharding),
				lang.Text{EN: "--no-load-optim starts the optimizer anew; or save it once more with --dist-ckpt-optim-fully-reshardable under the old layout", ZH: "用 --no-load-optim 重新开始优化器；或在原布局下加 --dist-ckpt-optim-fully-reshardable 再保存一次"})
			break
		}
		v.noteResharding(c, r)
	case Torch:
		if r.FSDP || r.Format == FSDPDTensor {
			refuse(lang.Text{EN: "the job uses Megatron-FSDP, which reads fsdp_dtensor", ZH: "作业使用 Megatron-FSDP，它读取 fsdp_dtensor 格式"},
				lang.Text{EN: "save it as torch_dist first (--ckpt-convert-format torch_dist --ckpt-convert-save DIR), then convert that", ZH: "先转存为 torch_dist（--ckpt-convert-format torch_dist --ckpt-convert-save DIR），再转换"})
			break
		}
		if moved || experts {
			refuse(lang.Text{EN: "a torch checkpoint is loaded only with the layout that it was saved with: %s, and the job has %s", ZH: "torch 格式只能以保存时的布局加载：%s，而作业是 %s"}.With(c.Saved.Words(), r.Words()),
				lang.Text{
					EN: "convert it: tools/checkpoint/convert.py --model-type GPT --loader core --saver core --load-dir %s --save-dir OUTPUT --target-tensor-parallel-size %d --target-pipeline-parallel-size %d",
					ZH: "转换：tools/checkpoint/convert.py --model-type GPT --loader core --saver core --load-dir %s --save-dir OUTPUT --target-tensor-parallel-size %d --target-pipeline-parallel-size %d",
				}.With(c.Path, r.TP, r.PP))
		}
	}
	return v
}

// noteResharding adds to How what loading changes without any option.
func (v *Verdict) noteResharding(c Checkpoint, r Run) {
	if !v.Loads || c.Saved.TP == 0 || c.Saved.Words() == r.Words() {
		return
	}
	v.How = append(v.How, lang.Text{EN: "it is resharded while it is loaded: from %s to %s", ZH: "加载时自动重新切分：从 %s 到 %s"}.With(c.Saved.Words(), r.Words()))
	if c.Saved.TP != r.TP || c.Saved.PP != r.PP {
		v.How = append(v.How, lang.Text{EN: "the state of the random numbers is not taken over: dropout differs from an undisturbed run", ZH: "随机数状态不会沿用：dropout 与未中断的训练不同"})
	}
}

// Words returns the layout as people write it, such as "TP 2 PP 4".
func (l Layout) Words() string {
	s := fmt.Sprintf("TP %d PP %d", l.TP, max(l.PP, 1))
	if l.EP > 1 {
		s += fmt.Sprintf(" EP %d", l.EP)
	}
	if l.CP > 1 {
		s += fmt.Sprintf(" CP %d", l.CP)
	}
	if l.DP > 0 {
		s += fmt.Sprintf(" DP %d", l.DP)
	}
	return s
}
