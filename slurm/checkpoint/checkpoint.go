// Package checkpoint reads what a checkpoint of Megatron-LM says of itself, without
// PyTorch: its format, iteration, layout, completeness and size.
package checkpoint

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/pickle"
)

// A Format is how a checkpoint is laid out, in the words of --ckpt-format.
type Format string

// The formats.
const (
	Torch       Format = "torch"
	TorchDist   Format = "torch_dist"
	FSDPDTensor Format = "fsdp_dtensor"
	// TorchDCP is of Torch-FSDP2, and laid out as fsdp_dtensor is.
	TorchDCP Format = "torch_dcp"
	// Zarr is of Megatron-LM before core 0.16, which neither writes nor reads it.
	Zarr Format = "zarr"
)

// A Layout is over how many ranks a run is spread, and how.
type Layout struct {
	TP    int `json:"tensor_model_parallel_size"`
	PP    int `json:"pipeline_model_parallel_size"`
	EP    int `json:"expert_model_parallel_size"`
	CP    int `json:"context_parallel_size"`
	DP    int `json:"data_parallel_size"`
	World int `json:"world_size"`
}

// A Checkpoint is one saved iteration.
type Checkpoint struct {
	Path      string `json:"path"`
	Format    Format `json:"format"`
	Iteration *int   `json:"iteration"` // null: a release, or not told
	Latest    bool   `json:"latest"`    // what --load of its folder would take
	// Saved is the layout that it was saved with, as far as it tells; 0: not told.
	Saved Layout `json:"saved_with"`
	// Model are the arguments that a run which loads it must agree with.
	Model map[string]any `json:"model,omitempty"`
	// Optimizer says whether it holds the optimizer's state, and OptimizerSharding how
	// that is cut: which decides whether another TP or PP can load it.
	Optimizer         *bool  `json:"optimizer"`
	OptimizerSharding string `json:"optimizer_sharding,omitempty"`
	Tensors           int    `json:"tensors,omitempty"`
	Parameters        int64  `json:"parameters,omitempty"`
	Files             int    `json:"files"`
	Bytes             int64  `json:"bytes"`
	Complete          bool   `json:"complete"`
	// Faults are what is missing from it or cut short.
	Faults []Fault `json:"faults,omitempty"`
	// Others are the other iterations beside it.
	Others []int `json:"other_iterations,omitempty"`
}

// A Fault is a file that is not as the checkpoint's own index says.
type Fault struct {
	File string `json:"file"`
	Want int64  `json:"want_bytes,omitempty"`
	Have int64  `json:"have_bytes,omitempty"`
	// Missing, Empty and Unreadable say how it is wrong; none: it is too short.
	Missing    bool `json:"missing,omitempty"`
	Empty      bool `json:"empty,omitempty"`
	Unreadable bool `json:"unreadable,omitempty"`
}

// The errors of folders that hold no checkpoint.
var (
	ErrNone    = lang.Text{EN: "no checkpoint of Megatron-LM", ZH: "不是 Megatron-LM 的检查点"}.Err()
	ErrNoSuch  = lang.Text{EN: "no such iteration", ZH: "没有这次迭代"}.Err()
	iterFolder = regexp.MustCompile(`^iter_([0-9]{7,})$`)
	rankFolder = regexp.MustCompile(`^mp_rank_([0-9]{2,})(?:_([0-9]{3,}))?(?:_([0-9]{3,}))?$`)
)

// reader bounds what the index of a checkpoint may hold: one over some ten thousand
// ranks is below it.
var reader = pickle.Reader{Items: 64 << 20, String: 16 << 20}

const tracker = "latest_checkpointed_iteration.txt"

// Read looks at the checkpoint at dir: one iteration's folder, or the folder that
// --save wrote to, of which it is the latest or the iteration that is asked for (0:
// the latest).
func Read(dir string, iteration int) (Checkpoint, error) {
	at, c := dir, Checkpoint{}
	if format(dir) == "" {
		word, err := os.ReadFile(filepath.Join(dir, tracker))
		latest := strings.TrimSpace(string(word))
		all := iterations(dir)
		switch {
		case iteration > 0:
			at = filepath.Join(dir, fmt.Sprintf("iter_%07d", iteration))
			if !slices.Contains(all, iteration) {
				return c, lang.Text{EN: "%s: %d of %s", ZH: "%s：%d（现有 %s）"}.Err(ErrNoSuch, iteration, fmt.Sprint(all))
			}
		case latest == "release":
			at = filepath.Join(dir, latest)
		case err == nil:
			n, err := strconv.Atoi(latest)
			if err != nil {
				return c, lang.Text{EN: "%s: %s holds %.40q", ZH: "%s：%s 的内容是 %.40q"}.Err(ErrNone, tracker, latest)
			}
			at = filepath.Join(dir, fmt.Sprintf("iter_%07d", n))
		case len(all) > 0: // saving did not come to an end, or the file was lost
			at = filepath.Join(dir, fmt.Sprintf("iter_%07d", all[len(all)-1]))
		default:
			return c, ErrNone
		}
		c.Latest = latest == strings.TrimPrefix(filepath.Base(at), "iter_") || latest != "" && filepath.Base(at) == latest
		if n, err := strconv.Atoi(latest); err == nil {
			c.Latest = filepath.Base(at) == fmt.Sprintf("iter_%07d", n)
		}
		for _, n := range all {
			if filepath.Base(at) != fmt.Sprintf("iter_%07d", n) {
				c.Others = append(c.Others, n)
			}
		}
	}
	c.Path = at
	if m := iterFolder.FindStringSubmatch(filepath.Base(at)); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			c.Iteration = &n
		}
	}
	if c.Format = format(at); c.Format == "" {
		if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
			return c, lang.Text{EN: "%s: %s names %s, which is not there", ZH: "%s：%s 指向 %s，而它不存在"}.Err(ErrNone, tracker, filepath.Base(at))
		}
		return c, ErrNone
	}
	if err := c.weigh(); err != nil {
		return c, err
	}
	switch c.Format {
	case Torch:
		c.readTorch()
	case Zarr:
		c.readZarr()
	default:
		c.readDistributed()
	}
	slices.SortFunc(c.Faults, func(a, b Fault) int { return strings.Compare(a.File, b.File) })
	c.Complete = len(c.Faults) == 0
	return c, nil
}

// format is how the folder of one iteration is laid out, as Megatron tells it: empty
// where it is none.
func format(dir string) Format {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	ranks, _ := fs.Glob(os.DirFS(dir), "mp_rank_0*")
	data, _ := fs.Glob(os.DirFS(dir), "*.distcp")
	switch {
	case has(backendFile):
		if b, err := readBackend(dir); err == nil && b == Zarr {
			return Zarr
		}
		return TorchDist
	case len(ranks) > 0:
		return Torch
	case has(commonFile), len(data) > 0 && !has(indexFile): // saving did not come to its end
		return TorchDist
	case has(indexFile):
		return FSDPDTensor // its index and its arguments may tell otherwise
	}
	return ""
}

func iterations(dir string) (all []int) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if m := iterFolder.FindStringSubmatch(e.Name()); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return all
}

// weigh counts the files, and finds those that are empty.
func (c *Checkpoint) weigh() error {
	return filepath.WalkDir(c.Path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		c.Files++
		c.Bytes += st.Size()
		if st.Size() == 0 && strings.HasSuffix(path, ".pt") {
			c.fault(Fault{File: c.relative(path), Empty: true})
		}
		return nil
	})
}

func (c *Checkpoint) relative(path string) string {
	if rel, err := filepath.Rel(c.Path, path); err == nil {
		return rel
	}
	return path
}

func (c *Checkpoint) fault(f Fault) {
	if !slices.ContainsFunc(c.Faults, func(had Fault) bool { return had.File == f.File }) {
		c.Faults = append(c.Faults, f)
	}
}

// readTorch reads a checkpoint of one folder a model-parallel rank.
func (c *Checkpoint) readTorch() {
	entries, _ := os.ReadDir(c.Path)
	type place struct{ tp, pp, ep int }
	seen := map[place]bool{}
	three, most := false, place{}
	second := 0
	for _, e := range entries {
		m := rankFolder.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		n := func(i int) int { v, _ := strconv.Atoi(m[i]); return v }
		p := place{tp: n(1), pp: n(2), ep: n(3)}
		three = three || m[3] != ""
		second = max(second, p.pp)
		most = place{max(most.tp, p.tp), max(most.pp, p.pp), max(most.ep, p.ep)}
		seen[p] = true
		c.readTorchFile(filepath.Join(c.Path, e.Name(), "model_optim_rng.pt"), p == place{})
	}
	// Of two numbers the second is the pipeline's rank, or the experts' where there is
	// no pipeline: the arguments tell.
	if !three && c.Saved.PP <= 1 && c.Saved.EP > 1 {
		most.pp, most.ep = 0, second
	}
	c.Saved.TP, c.Saved.PP, c.Saved.EP = max(c.Saved.TP, most.tp+1), max(c.Saved.PP, most.pp+1), max(c.Saved.EP, most.ep+1)
	for tp := range c.Saved.TP {
		for pp := range c.Saved.PP {
			for ep := range c.Saved.EP {
				p, name := place{tp, pp, ep}, fmt.Sprintf("mp_rank_%02d", tp)
				if c.Saved.PP > 1 {
					name += fmt.Sprintf("_%03d", pp)
				}
				if c.Saved.EP > 1 {
					name += fmt.Sprintf("_%03d", ep)
					if c.Saved.PP <= 1 {
						p = place{tp, ep, 0}
					}
				}
				if !seen[p] {
					c.fault(Fault{File: name, Missing: true})
				}
			}
		}
	}
}

func (c *Checkpoint) readTorchFile(path string, first bool) {
	name := c.relative(path)
	st, err := os.Stat(path)
	switch {
	case err != nil:
		c.fault(Fault{File: name, Missing: true})
		return
	case st.Size() == 0:
		return // told already
	}
	v, err := torchFile(path)
	if err != nil {
		c.fault(Fault{File: name, Unreadable: true, Have: st.Size()})
		return
	}
	if !first {
		return
	}
	c.readState(v)
	_, shard := os.Stat(filepath.Join(filepath.Dir(path), "distrib_optim.pt"))
	has := shard == nil || pickle.Attribute(v, "optimizer") != nil
	c.Optimizer = &has
}

// torchFile reads what torch.save wrote, without the tensors: the zip's directory is
// at its end, so that a file that was cut short is not readable.
func torchFile(path string) (any, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = z.Close() }() // it was only read
	return torchZip(&z.Reader)
}

func torchZip(z *zip.Reader) (any, error) {
	for _, f := range z.File {
		if filepath.Base(f.Name) != "data.pkl" {
			continue
		}
		in, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer in.Close()
		return reader.Read(in)
	}
	return nil, pickle.Err
}

// modelArguments are those that Megatron compares when it loads.
var modelArguments = []string{
	"num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels", "num_experts", "padded_vocab_size",
	"seq_length", "max_position_embeddings", "position_embedding_type", "add_position_embedding", "swiglu", "untie_embeddings_and_output_weights",
	"normalization", "tokenizer_type", "bf16", "fp16", "use_distributed_optimizer", "global_batch_size", "consumed_train_samples", "train_iters",
}

// readState reads the arguments of the run that saved, and what else the common
// part of a checkpoint tells.
func (c *Checkpoint) readState(v any) {
	number := func(from any, name string) int {
		n, _ := pickle.Attribute(from, name).(int64)
		return int(n)
	}
	args := pickle.Attribute(v, "args")
	c.Saved = Layout{
		TP: number(args, "tensor_model_parallel_size"), PP: number(args, "pipeline_model_parallel_size"), EP: number(args, "expert_model_parallel_size"),
		CP: number(args, "context_parallel_size"), DP: number(args, "data_parallel_size"), World: number(args, "world_size"),
	}
	for _, name := range modelArguments {
		switch value := pickle.Attribute(args, name).(type) {
		case int64, bool, float64, string:
			if c.Model == nil {
				c.Model = map[string]any{}
			}
			c.Model[name] = value
		}
	}
	if c.Iteration == nil {
		if n, ok := pickle.Attribute(v, "iteration").(int64); ok {
			at := int(n)
			c.Iteration = &at
		}
	}
	if saved, _ := pickle.Attribute(args, "ckpt_format").(string); c.Format == FSDPDTensor && saved == string(TorchDCP) {
		c.Format = TorchDCP
	}
	c.OptimizerSharding, _ = pickle.Attribute(pickle.Attribute(v, "content_metadata"), "distrib_optim_sharding_type").(string)
	if c.OptimizerSharding == "" && c.Model["use_distributed_optimizer"] == true && c.Format == TorchDist {
		c.OptimizerSharding = "dp_zero_gather_scatter" // before checkpoints told it
		if full, _ := pickle.Attribute(args, "ckpt_fully_parallel_save").(bool); full {
			c.OptimizerSharding = "fully_sharded_model_space"
		}
	}
}
