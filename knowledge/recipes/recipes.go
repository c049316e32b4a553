// Package recipes holds models that people train with Megatron-LM, as Megatron's
// arguments, with their published layouts and speeds.
package recipes

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

//go:embed recipes.yaml
var file []byte

// A Model is one architecture.
type Model struct {
	Name string `yaml:"name" json:"name"`
	// Also are other names of the same architecture.
	Also     []string `yaml:"also" json:"also,omitempty"`
	Families []string `yaml:"families" json:"-"`
	// Entry is gpt or hybrid: the script of Megatron that trains the model.
	Entry string `yaml:"entry" json:"entry,omitempty"`
	// Since is the first release that knows all flags of the model; empty means that
	// every release does.
	Since  string `yaml:"since" json:"since,omitempty"`
	Source string `yaml:"source" json:"source"`
	Args   string `yaml:"args" json:"-"`
	Runs   []Run  `yaml:"runs" json:"runs"`
}

// A Run is a published layout of a model for a kind and a number of GPUs.
type Run struct {
	GPU  string `yaml:"gpu" json:"gpu"`
	GPUs int    `yaml:"gpus" json:"gpus"`
	// Type is the data type of the GEMMs: bf16, fp8, blockwise, mxfp8 or nvfp4.
	Type  string `yaml:"type" json:"type"`
	Batch int    `yaml:"batch" json:"global_batch_size"`
	Micro int    `yaml:"micro" json:"micro_batch_size,omitempty"`
	TP    int    `yaml:"tp" json:"TP,omitempty"`
	PP    int    `yaml:"pp" json:"PP,omitempty"`
	CP    int    `yaml:"cp" json:"CP,omitempty"`
	VP    int    `yaml:"vp" json:"VPP,omitempty"`
	EP    int    `yaml:"ep" json:"EP,omitempty"`
	// Stages is the --pipeline-model-parallel-layout.
	Stages string `yaml:"stages" json:"stages,omitempty"`
	// Full reports full recompute of every layer, Sharded that the gradients are sharded
	// too.
	Full    bool   `yaml:"full" json:"-"`
	Sharded bool   `yaml:"sharded" json:"-"`
	Args    string `yaml:"args" json:"-"`
	// TFLOPS is the published speed in TFLOP/s a GPU; 0 where none is published.
	TFLOPS float64 `yaml:"tflops" json:"tflops_per_gpu,omitempty"`
	Source string  `yaml:"source" json:"source"`
	// shared are the arguments of all runs from the same source.
	shared string
}

type book struct {
	Common   string            `yaml:"common"`
	Families map[string]string `yaml:"families"`
	Types    map[string]string `yaml:"types"`
	Sources  map[string]string `yaml:"sources"`
	Settings map[string]string `yaml:"settings"`
	Models   []Model           `yaml:"models"`
}

// read parses recipes.yaml. It panics on a bad file; a test parses the embedded one.
var read = sync.OnceValue(func() book {
	var b book
	if err := yaml.UnmarshalWithOptions(file, &b, yaml.Strict()); err != nil {
		panic("recipes.yaml: " + err.Error())
	}
	for i := range b.Models {
		m := &b.Models[i]
		m.Entry = cmp.Or(m.Entry, "gpt")
		m.Source = b.Sources[m.Source]
		for j := range m.Runs {
			r := &m.Runs[j]
			r.shared, r.Source = b.Settings[r.Source], b.Sources[r.Source]
			for _, n := range []*int{&r.Micro, &r.TP, &r.PP, &r.CP, &r.EP} {
				*n = max(*n, 1)
			}
		}
	}
	return b
})

// Models returns all models, in the file's order.
func Models() []Model { return slices.Clone(read().Models) }

// Names returns the names of all models.
func Names() []string {
	var names []string
	for _, m := range read().Models {
		names = append(names, m.Name)
	}
	return names
}

// plain returns a model's name in lower case, without separators, vendor prefixes and
// common suffixes.
func plain(name string) string {
	name = strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	for _, end := range []string{"-instruct", "-base", "-chat", "-hf", "-bf16"} {
		name = strings.TrimSuffix(name, end)
	}
	name = strings.TrimPrefix(name, "meta-")
	name = strings.TrimPrefix(name, "nvidia-")
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(name)
}

// Lookup finds a model by any common form of its name, such as llama3-70b, Llama-3.1-70B
// or Qwen/Qwen3-30B-A3B, or by a prefix that only one model has.
func Lookup(name string) (Model, bool) {
	want := plain(name)
	var prefixed []Model
	for _, m := range read().Models {
		for _, n := range append([]string{m.Name}, m.Also...) {
			if plain(n) == want {
				return m, true
			}
		}
		if want != "" && strings.HasPrefix(plain(m.Name), want) {
			prefixed = append(prefixed, m)
		}
	}
	if len(prefixed) == 1 {
		return prefixed[0], true
	}
	return Model{}, false
}

// piece matches a run of letters or a number in a model's name.
var piece = lazy.New(`[a-z]+|\d+(?:\.\d+)?`)

// spelled returns, for each name of each model, an expression for how people write it, with
// or without separators, the size last or first: "Llama 3 70B", llama3-70b, "a 70B Llama 3".
var spelled = sync.OnceValue(func() (list []spelling) {
	for _, m := range read().Models {
		for _, n := range append([]string{m.Name}, m.Also...) {
			family, size, _ := strings.Cut(n, "-")
			for _, order := range [][]string{{family, size}, {size, family}} {
				var pieces []string
				for _, p := range piece.FindAllString(strings.Join(order, " "), -1) {
					pieces = append(pieces, regexp.QuoteMeta(p))
				}
				list = append(list, spelling{lazy.New(`(?:^|[^a-z0-9])(` + strings.Join(pieces, `[-_ ]?`) + `)(?:$|[^a-z0-9.]|\.(?:\D|$))`), m})
			}
		}
	}
	return list
})

type spelling struct {
	name  *lazy.Pattern
	model Model
}

// sibling matches what follows a model's name in the name of another model of its family.
var sibling = lazy.New(`^[-_ ]?(?:vl|vision|omni|audio|lite|mini|next|embedding)\b`)

// Named returns the model with the longest name in a text in lower case, and the text
// without the name.
func Named(text string) (m Model, rest string, ok bool) {
	from, to := 0, 0
	for _, s := range spelled() {
		if at := s.name.FindStringSubmatchIndex(text); at != nil && at[3]-at[2] > to-from && !sibling.MatchString(text[at[3]:]) {
			m, from, to, ok = s.model, at[2], at[3], true
		}
	}
	return m, text[:from] + text[to:], ok
}

// Like returns the names most similar to an unknown model name.
func Like(name string) []string {
	want := plain(name)
	var found []string
	for _, m := range read().Models {
		if p := plain(m.Name); want != "" && strings.HasPrefix(p, want) {
			found = append(found, m.Name)
		}
	}
	if len(found) > 0 {
		return found
	}
	if n := near.Word(name, Names(), 4); n != "" {
		return []string{n}
	}
	return nil
}

// Argv returns the model as the arguments of a release of Megatron, without layout and batch.
func (m Model) Argv(in megatron.Release) []string {
	b := read()
	words := strings.Fields(b.Common)
	for _, f := range m.Families {
		words = append(words, strings.Fields(b.Families[f])...)
	}
	words = append(words, strings.Fields(m.Args)...)
	if m.Entry == "hybrid" {
		words = append(append(words, "--spec"), megatron.HybridSpec(in)...)
	}
	return words
}

// Script returns the name of a release's entry script for the model.
func (m Model) Script(in megatron.Release) string { return megatron.EntryScript(m.Entry, in) }

// Argv returns the run's layout, batch and data type as Megatron's arguments.
func (r Run) Argv() []string {
	words := r.Number()
	add := func(name string, n, omitted int) {
		if n != omitted {
			words = append(words, name, strconv.Itoa(n))
		}
	}
	add("--tensor-model-parallel-size", r.TP, 0)
	add("--pipeline-model-parallel-size", r.PP, 0)
	add("--context-parallel-size", r.CP, 1)
	add("--num-virtual-stages-per-pipeline-rank", r.VP, 0)
	if r.Stages != "" {
		words = append(words, "--pipeline-model-parallel-layout", r.Stages)
	}
	add("--expert-model-parallel-size", r.EP, 1)
	if r.EP > 1 {
		add("--expert-tensor-parallel-size", 1, 0)
	}
	if r.TP > 1 {
		words = append(words, "--sequence-parallel")
	}
	add("--micro-batch-size", r.Micro, 0)
	add("--global-batch-size", r.Batch, 0)
	if r.Full {
		words = append(words, "--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1")
	}
	if r.Sharded {
		words = append(words, "--use-megatron-fsdp", "--data-parallel-sharding-strategy", "optim_grads", "--ckpt-format", "fsdp_dtensor", "--no-gradient-accumulation-fusion")
	}
	words = append(words, strings.Fields(r.shared)...)
	return append(words, strings.Fields(r.Args)...)
}

// Number returns the arguments for the run's data type.
func (r Run) Number() []string { return strings.Fields(read().Types[r.Type]) }

// Types returns the data types of runs.
func Types() []string { return slices.Sorted(maps.Keys(read().Types)) }

// Layout returns the run's parallel sizes, such as "TP4 PP2".
func (r Run) Layout() string {
	words := fmt.Sprintf("TP%d PP%d", r.TP, r.PP)
	for _, n := range []struct {
		name string
		size int
	}{{"VP", r.VP}, {"CP", r.CP}, {"EP", r.EP}, {"MBS", r.Micro}} {
		if n.size > 1 {
			words += fmt.Sprintf(" %s%d", n.name, n.size)
		}
	}
	return words
}

// Group returns the number of GPUs that hold one copy of the model.
func (r Run) Group() int { return r.TP * r.PP * r.CP }

// Find returns the published run for a kind of GPU, a number of GPUs and a data type. An
// empty kind or type and a number of 0 mean any. Where no run has that number of GPUs,
// exact is false, and the run is the largest smaller one whose layout can be repeated to
// use all GPUs.
func (m Model) Find(gpu string, gpus int, dataType string) (r Run, exact, ok bool) {
	kind, _ := megatron.LookupGPU(gpu)
	for _, run := range m.Runs {
		if gpu != "" && run.GPU != kind.Name || dataType != "" && run.Type != dataType {
			continue
		}
		if gpus == 0 || run.GPUs == gpus {
			return run, true, true
		}
		fills := gpus%run.Group() == 0 && gpus%run.EP == 0 && run.Batch%(gpus/run.Group()*run.Micro) == 0
		if run.GPUs < gpus && fills && run.GPUs > r.GPUs {
			r, ok = run, true
		}
	}
	return r, false, ok
}

// UsualBatch is the global batch size where no published run of a model gives one.
const UsualBatch = 256

// PerNode returns the usual number of GPUs of a node with this kind of GPU.
func PerNode(gpu string) int {
	if strings.HasPrefix(gpu, "gb") {
		return 4
	}
	return 8
}
