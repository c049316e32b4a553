// Package checkpoint reads the description of a Megatron-LM checkpoint without PyTorch:
// its format, iteration, layout, completeness and size.
package checkpoint

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/pickle"
	"github.com/megatron-ops/megatron-ops/internal/within"
)

// A Format is the file format of a checkpoint, in the words of --ckpt-format.
type Format string

// The formats.
const (
	Torch       Format = "torch"
	TorchDist   Format = "torch_dist"
	FSDPDTensor Format = "fsdp_dtensor"
	// TorchDCP is written by Torch-FSDP2, and has the same files as fsdp_dtensor.
	TorchDCP Format = "torch_dcp"
	// Zarr was written before core 0.16; since then Megatron-LM neither writes nor
	// reads it.
	Zarr Format = "zarr"
)

// A Layout is the number of ranks of a run in each kind of parallelism; 0 means not
// known.
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
	Iteration *int   `json:"iteration"` // null: a release, or not known
	Latest    bool   `json:"latest"`    // --load of its folder would take this iteration
	// Saved is the layout of the run that saved the checkpoint, as far as the
	// checkpoint contains it.
	Saved Layout `json:"saved_with"`
	// Model holds the arguments that a run which loads the checkpoint must agree with.
	Model map[string]any `json:"model,omitempty"`
	// Optimizer reports whether the checkpoint contains the optimizer's state.
	// OptimizerSharding is how that state is sharded, which decides whether a run with
	// another TP or PP can load it.
	Optimizer         *bool  `json:"optimizer"`
	OptimizerSharding string `json:"optimizer_sharding,omitempty"`
	Tensors           int    `json:"tensors,omitempty"`
	Parameters        int64  `json:"parameters,omitempty"`
	Files             int    `json:"files"`
	Bytes             int64  `json:"bytes"`
	Complete          bool   `json:"complete"`
	// Faults lists the files that are missing or damaged.
	Faults []Fault `json:"faults,omitempty"`
	// Others lists the other iterations in the same folder.
	Others []int `json:"other_iterations,omitempty"`

	in *within.Folders // through which its files are opened
}

// A Fault is a file that differs from the checkpoint's own index.
type Fault struct {
	File string `json:"file"`
	Want int64  `json:"want_bytes,omitempty"`
	Have int64  `json:"have_bytes,omitempty"`
	// Missing, Empty and Unreadable say what is wrong; where none is set, the file is
	// too short.
	Missing    bool `json:"missing,omitempty"`
	Empty      bool `json:"empty,omitempty"`
	Unreadable bool `json:"unreadable,omitempty"`
}

// The errors of folders without a checkpoint.
var (
	ErrNone    = lang.Text{EN: "no checkpoint of Megatron-LM", ZH: "不是 Megatron-LM 的检查点"}.Err()
	ErrNoSuch  = lang.Text{EN: "no such iteration", ZH: "没有这次迭代"}.Err()
	iterFolder = regexp.MustCompile(`^iter_([0-9]{7,})$`)
	rankFolder = regexp.MustCompile(`^mp_rank_([0-9]{2,})(?:_([0-9]{3,}))?(?:_([0-9]{3,}))?$`)
)

// reader bounds the size of a checkpoint's index. The index of a run with some ten
// thousand ranks is below the bounds.
var reader = pickle.Reader{Items: 64 << 20, String: 16 << 20}

const tracker = "latest_checkpointed_iteration.txt"

// The largest sizes in bytes of the files that are read as text. A file of another kind
// under their name, or one that has no end, is not waited for.
const (
	mostTracker = 64
	mostJSON    = 1 << 20
)

// mostRanks is the largest number of model-parallel ranks whose files are looked for.
const mostRanks = 1 << 13

// Read reads the checkpoint at dir through the open folders in. dir is the folder of one
// iteration, or the folder of --save; from the latter Read takes the given iteration, or
// the latest where iteration is 0.
func Read(in *within.Folders, dir string, iteration int) (Checkpoint, error) {
	at, c := dir, Checkpoint{in: in}
	if err := c.mayRead(dir); err != nil {
		return c, err
	}
	if c.format(dir) == "" {
		word, err := in.ReadFile(filepath.Join(dir, tracker), mostTracker)
		latest := strings.TrimSpace(string(word))
		all := c.iterations(dir)
		switch {
		case iteration > 0:
			at = filepath.Join(dir, folderOf(iteration))
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
			at = filepath.Join(dir, folderOf(n))
		case len(all) > 0: // the first save did not finish, or the tracker file was lost
			at = filepath.Join(dir, folderOf(all[len(all)-1]))
		default:
			return c, ErrNone
		}
		c.Latest = latest != "" && filepath.Base(at) == latest
		if n, err := strconv.Atoi(latest); err == nil {
			c.Latest = filepath.Base(at) == folderOf(n)
		}
		c.Others = slices.DeleteFunc(all, func(n int) bool { return filepath.Base(at) == folderOf(n) })
	}
	c.Path = at
	if m := iterFolder.FindStringSubmatch(filepath.Base(at)); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			c.Iteration = &n
		}
	}
	if err := c.mayRead(at); err != nil {
		return c, err
	}
	if c.Format = c.format(at); c.Format == "" {
		if _, err := in.Stat(at); errors.Is(err, fs.ErrNotExist) {
			return c, lang.Text{EN: "%s: %s names %s, which is not there", ZH: "%s：%s 指向 %s，而它不存在"}.Err(ErrNone, tracker, filepath.Base(at))
		}
		if at != dir {
			return c, lang.Text{EN: "%s: %s is there, without a checkpoint's files", ZH: "%s：%s 存在，但其中没有检查点的文件"}.Err(ErrNone, filepath.Base(at))
		}
		return c, ErrNone
	}
	if err := c.countFiles(); err != nil {
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

// mayRead returns the error of a folder that this account may not read.
func (c *Checkpoint) mayRead(dir string) error {
	if _, err := c.in.ReadDir(dir); errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil // what it lacks is told later
}

// format returns the format of one iteration's folder by Megatron's own rules, or ""
// where dir is no such folder.
func (c *Checkpoint) format(dir string) Format {
	has := func(name string) bool {
		_, err := c.in.Stat(filepath.Join(dir, name))
		return err == nil
	}
	entries, _ := c.in.ReadDir(dir)
	some := func(is func(name string) bool) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return is(e.Name()) })
	}
	ranks := some(func(name string) bool { return strings.HasPrefix(name, "mp_rank_0") })
	data := some(func(name string) bool { return strings.HasSuffix(name, ".distcp") })
	switch {
	case has(backendFile):
		if b, err := c.readBackend(dir); err == nil && b == Zarr {
			return Zarr
		}
		return TorchDist
	case ranks:
		return Torch
	case has(commonFile), data && !has(indexFile): // the save did not finish
		return TorchDist
	case has(indexFile):
		return FSDPDTensor // until its index or its arguments say otherwise
	}
	return ""
}

func folderOf(iteration int) string { return fmt.Sprintf("iter_%07d", iteration) }

func (c *Checkpoint) iterations(dir string) (all []int) {
	entries, _ := c.in.ReadDir(dir)
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

// countFiles counts the files and their bytes, and records empty ones as faults.
func (c *Checkpoint) countFiles() error {
	return c.in.WalkDir(c.Path+"/", func(path string, e fs.DirEntry, err error) error { // a link to a folder, too
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

// fault records a fault, only one for each file.
func (c *Checkpoint) fault(f Fault) {
	if !slices.ContainsFunc(c.Faults, func(had Fault) bool { return had.File == f.File }) {
		c.Faults = append(c.Faults, f)
	}
}

// readTorch reads a checkpoint with one folder for each model-parallel rank.
func (c *Checkpoint) readTorch() {
	entries, _ := c.in.ReadDir(c.Path)
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
	// Of two numbers the second is the pipeline rank, or the expert rank where there is
	// no pipeline. The arguments decide.
	if !three && c.Saved.PP <= 1 && c.Saved.EP > 1 {
		most.pp, most.ep = 0, second
	}
	c.Saved.TP, c.Saved.PP, c.Saved.EP = max(c.Saved.TP, most.tp+1), max(c.Saved.PP, most.pp+1), max(c.Saved.EP, most.ep+1)
	if !few(c.Saved.TP, c.Saved.PP, c.Saved.EP) { // no run has so many, so the names or the arguments are wrong
		c.fault(Fault{File: "mp_rank_*", Unreadable: true})
		return
	}
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

// few reports whether the sizes of a layout are sizes, and make at most mostRanks ranks.
func few(sizes ...int) bool {
	all := 1
	for _, n := range sizes {
		if n < 1 || n > mostRanks/all {
			return false
		}
		all *= n
	}
	return true
}

// readTorchFile checks the file of one rank, and reads the state from the first rank's.
func (c *Checkpoint) readTorchFile(path string, first bool) {
	name := c.relative(path)
	st, err := c.in.Stat(path)
	switch {
	case err != nil:
		c.fault(Fault{File: name, Missing: true})
		return
	case st.Size() == 0:
		return // countFiles has recorded the fault
	}
	v, err := c.torchFile(path)
	if err != nil {
		c.fault(Fault{File: name, Unreadable: true, Have: st.Size()})
		return
	}
	if !first {
		return
	}
	c.readState(v)
	_, shard := c.in.Stat(filepath.Join(filepath.Dir(path), "distrib_optim.pt"))
	has := shard == nil || pickle.Attribute(v, "optimizer") != nil
	c.Optimizer = &has
}

// torchFile reads a file of torch.save without its tensors. The zip directory is at the
// file's end, so a file that was cut short cannot be read.
func (c *Checkpoint) torchFile(path string) (any, error) {
	in, err := c.in.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(in, st.Size())
	if err != nil {
		return nil, err
	}
	return torchZip(z)
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

// modelArguments are the arguments that Megatron compares when it loads a checkpoint.
var modelArguments = []string{
	"num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels", "num_experts", "padded_vocab_size",
	"seq_length", "max_position_embeddings", "position_embedding_type", "add_position_embedding", "swiglu", "untie_embeddings_and_output_weights",
	"normalization", "tokenizer_type", "bf16", "fp16", "use_distributed_optimizer", "global_batch_size", "consumed_train_samples", "train_iters",
}

// readState reads the arguments of the run that saved the checkpoint, and the other
// facts in its common part.
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
		c.OptimizerSharding = "dp_zero_gather_scatter" // the default of checkpoints that do not contain it yet
		if full, _ := pickle.Attribute(args, "ckpt_fully_parallel_save").(bool); full {
			c.OptimizerSharding = "fully_sharded_model_space"
		}
	}
}
