package megatron

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/near"
)

// A Type is how Megatron's parser reads a flag's value.
type Type string

// The types of Megatron's flags. Switch takes no value; Pattern is an integer
// or a list expression such as ([0]*3+[1])*8.
const (
	Int         Type = "int"
	Float       Type = "float"
	Str         Type = "string"
	Switch      Type = "switch"
	Truth       Type = "truth"
	Enum        Type = "enum"
	Signal      Type = "signal"
	Pattern     Type = "pattern"
	Tuple       Type = "tuple"
	GraphModule Type = "graph module"
)

// An Action is what a flag does with its value.
type Action uint8

// The actions of Megatron's flags. A Toggle has a second name that begins with
// --no- and switches it off.
const (
	Store Action = iota
	SetTrue
	SetFalse
	Toggle
)

// A Flag is one flag of Megatron's parser.
type Flag struct {
	Name    string
	Aliases []string
	Type    Type
	Action  Action
	Choices []string
	// Nargs is how many values the flag takes: "" for one (none for a switch),
	// "+" for one or more, "*" for any number, or a number.
	Nargs string
	// Default is the value without the flag; empty means none.
	Default string
	Group   string
	// Since and Until are the first and the last release with this definition;
	// zero means the oldest and the newest known release.
	Since, Until Release
	dest         int // the number of the destination, which is also that of its field in Options, if it has one
}

// An Opt is a value that may be absent, like Python's None.
type Opt[T any] struct {
	V  T
	OK bool
}

// Or returns the value, or other where there is none.
func (o Opt[T]) Or(other T) T {
	if o.OK {
		return o.V
	}
	return other
}

// Some returns an Opt that holds v.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }

// A Freq says which layers are special: every N-th layer, or each layer whose
// entry in List is 1.
type Freq struct {
	N      int
	List   []int
	IsList bool
}

// Flags returns every flag of the newest release's parser, in the parser's order.
func Flags() []Flag { return flagsOf(0) }

// flagsOf returns every flag of a release's parser.
func flagsOf(r Release) []Flag {
	var flags []Flag
	for _, f := range flagTable {
		if f.In(r) {
			flags = append(flags, f)
		}
	}
	return flags
}

// flagIndexes maps, for each release, every spelling of a flag to the flag's
// row in flagTable.
var flagIndexes [len(releases)]struct {
	once sync.Once
	rows map[string]int
}

func flagIndex(r Release) map[string]int {
	at := &flagIndexes[r.OrNewest()-1]
	at.once.Do(func() {
		at.rows = make(map[string]int, 2*len(flagTable))
		for i := range flagTable {
			if !flagTable[i].In(r) {
				continue
			}
			at.rows[flagTable[i].Name] = i
			for _, a := range flagTable[i].Aliases {
				at.rows[a] = i
			}
		}
	})
	return at.rows
}

// LookupFlag returns the flag of the newest release with this name or alias.
// The two leading dashes are optional.
func LookupFlag(name string) (Flag, bool) { return LookupFlagIn(0, name) }

// LookupFlagIn is LookupFlag for a release.
func LookupFlagIn(r Release, name string) (Flag, bool) {
	if !strings.HasPrefix(name, "-") {
		name = "--" + name
	}
	i, ok := flagIndex(r)[name]
	if !ok {
		return Flag{}, false
	}
	return flagTable[i], true
}

// renamed maps names from other programs, from older versions and from
// Megatron's own messages to the flags that exist.
var renamed = map[string]string{
	"--batch-size":                           "--micro-batch-size",
	"--train-batch-size":                     "--global-batch-size",
	"--per-device-train-batch-size":          "--micro-batch-size",
	"--per_device_train_batch_size":          "--micro-batch-size",
	"--gradient-accumulation-steps":          "--global-batch-size",
	"--gradient_accumulation_steps":          "--global-batch-size",
	"--gradient-clip-val":                    "--clip-grad",
	"--max-grad-norm":                        "--clip-grad",
	"--grad-clip":                            "--clip-grad",
	"--train-steps":                          "--train-iters",
	"--max-steps":                            "--train-iters",
	"--max_steps":                            "--train-iters",
	"--num-train-steps":                      "--train-iters",
	"--learning-rate":                        "--lr",
	"--learning_rate":                        "--lr",
	"--warmup-steps":                         "--lr-warmup-iters",
	"--warmup_steps":                         "--lr-warmup-iters",
	"--warmup":                               "--lr-warmup-fraction",
	"--lr-scheduler-type":                    "--lr-decay-style",
	"--model-parallel-size":                  "--tensor-model-parallel-size",
	"--tensor-parallel-size":                 "--tensor-model-parallel-size",
	"--tp":                                   "--tensor-model-parallel-size",
	"--tp-size":                              "--tensor-model-parallel-size",
	"--pipeline-parallel-size":               "--pipeline-model-parallel-size",
	"--pp":                                   "--pipeline-model-parallel-size",
	"--pp-size":                              "--pipeline-model-parallel-size",
	"--cp":                                   "--context-parallel-size",
	"--cp-size":                              "--context-parallel-size",
	"--context-model-parallel-size":          "--context-parallel-size",
	"--ep":                                   "--expert-model-parallel-size",
	"--ep-size":                              "--expert-model-parallel-size",
	"--expert-parallel-size":                 "--expert-model-parallel-size",
	"--etp":                                  "--expert-tensor-parallel-size",
	"--mbs":                                  "--micro-batch-size",
	"--gbs":                                  "--global-batch-size",
	"--vpp":                                  "--num-virtual-stages-per-pipeline-rank",
	"--virtual-pipeline-model-parallel-size": "--num-virtual-stages-per-pipeline-rank",
	"--seq-len":                              "--seq-length",
	"--sequence-length":                      "--seq-length",
	"--max-seq-len":                          "--seq-length",
	"--max-seq-length":                       "--seq-length",
	"--context-length":                       "--seq-length",
	"--n-layers":                             "--num-layers",
	"--num-hidden-layers":                    "--num-layers",
	"--n-heads":                              "--num-attention-heads",
	"--num-heads":                            "--num-attention-heads",
	"--num-kv-heads":                         "--num-query-groups",
	"--num-key-value-heads":                  "--num-query-groups",
	"--intermediate-size":                    "--ffn-hidden-size",
	"--d-model":                              "--hidden-size",
	"--n-embd":                               "--hidden-size",
	"--num-local-experts":                    "--num-experts",
	"--num-moe-experts":                      "--num-experts",
	"--num-experts-per-tok":                  "--moe-router-topk",
	"--gradient-checkpointing":               "--recompute-activations",
	"--activation-checkpointing":             "--recompute-activations",
	"--checkpoint-activations":               "--recompute-activations",
	"--checkpoint-num-layers":                "--recompute-num-layers",
	"--activations-checkpoint-method":        "--recompute-method",
	"--activations-checkpoint-num-layers":    "--recompute-num-layers",
	"--activations-checkpoint-granularity":   "--recompute-granularity",
	"--distribute-checkpointed-activations":  "--distribute-saved-activations",
	"--zero-stage":                           "--use-distributed-optimizer",
	"--fsdp":                                 "--use-megatron-fsdp",
	"--use-custom-fsdp":                      "--use-megatron-fsdp",
	"--fp8":                                  "--fp8-format",
	"--fp4":                                  "--fp4-format",
	"--nccl-ub":                              "--use-nccl-ub",
	"--local-ckpt-dir":                       "--non-persistent-local-ckpt-dir",
	"--non_persistent_ckpt_type":             "--non-persistent-ckpt-type",
	"--standalone-embedding-stage":           "--account-for-embedding-in-pipeline-split",
	"--standalone-loss-stage":                "--account-for-loss-in-pipeline-split",
	"--gtp_remat-weight-remat-size":          "--tensor-parallel-num-weight-shards",
	"--expert-generalized-tensor-parallel-remat-size": "--expert-tensor-parallel-num-weight-shards",
	"--moe-extended-tp":        "--expert-tensor-parallel-size",
	"--align-param-gather":     "--no-align-grad-reduce",
	"--save-steps":             "--save-interval",
	"--save_steps":             "--save-interval",
	"--eval-steps":             "--eval-interval",
	"--logging-steps":          "--log-interval",
	"--output-dir":             "--save",
	"--output_dir":             "--save",
	"--resume-from-checkpoint": "--load",
	"--use-flash-attention":    "--attention-backend",
	"--rope-theta":             "--rotary-base",
	"--rms-norm-eps":           "--norm-epsilon",
	"--tie-word-embeddings":    "--untie-embeddings-and-output-weights",
	"--rampup-batch-size":      "--step-batch-size-schedule",
	"--cuda-graph-scope":       "--cuda-graph-modules",
}

// Renamed returns Megatron's flag for name, a flag of another program or of an
// older version.
func Renamed(name string) (string, bool) {
	to, ok := renamed[name]
	return to, ok
}

// Nearest returns up to three flags of the newest release with the names most
// similar to name, best first. It returns none where no flag is similar.
func Nearest(name string) []string { return nearestIn(0, name) }

// nearestIn is Nearest for a release.
func nearestIn(r Release, name string) []string {
	name, _, _ = strings.Cut(name, "=")
	index := flagIndex(r)
	if to, ok := renamed[name]; ok {
		if _, has := index[to]; has {
			return []string{to}
		}
	}
	type candidate struct {
		name string
		cost float64
	}
	asked := strings.Split(strings.Trim(strings.ReplaceAll(name, "_", "-"), "-"), "-")
	var found []candidate
	for flag := range index {
		cost := dissimilarity(name, flag, asked)
		if cost < 0.42 {
			found = append(found, candidate{flag, cost})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, f := range found[:min(3, len(found))] {
		names = append(names, f.name)
	}
	return names
}

// dissimilarity is 0 for equal names and 1 for names with nothing in common. It
// is the edit distance divided by the longer length, and it is lower where both
// names have the same words in any order.
func dissimilarity(name, flag string, words []string) float64 {
	longest := max(len(name), len(flag))
	if d := len(name) - len(flag); d > longest/2 || -d > longest/2 {
		return 1
	}
	cost := float64(near.Distance(name, flag)) / float64(longest)
	shared := 0
	theirs := strings.Split(flag[2:], "-")
	for _, w := range words {
		if slices.Contains(theirs, w) {
			shared++
		}
	}
	overlap := 1 - float64(2*shared)/float64(len(words)+len(theirs))
	return min(cost, 0.5*cost+0.5*overlap)
}

// Value returns the flag's value in o as a user would type it. The result is
// empty for a flag without a value, and "true" or "false" for a switch. A flag without a
// field has none.
func (f Flag) Value(o *Options) string {
	switch v := f.place(reflect.ValueOf(o).Elem()).Addr().Interface().(type) {
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return strconv.Itoa(*v)
	case *float64:
		return number(*v)
	case *string:
		return *v
	case *Freq:
		return v.String()
	case *Opt[int]:
		if v.OK {
			return strconv.Itoa(v.V)
		}
	case *Opt[float64]:
		if v.OK {
			return number(v.V)
		}
	case *Opt[string]:
		return v.V
	case *Opt[bool]:
		if v.OK {
			return strconv.FormatBool(v.V)
		}
	case *Opt[Freq]:
		if v.OK {
			return v.V.String()
		}
	case *[]string:
		return strings.Join(*v, " ")
	case *[]int:
		return strings.Trim(fmt.Sprint(*v), "[]")
	case *[]float64:
		return strings.Trim(fmt.Sprint(*v), "[]")
	}
	return ""
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// String returns N or, for a list, the list.
func (f Freq) String() string {
	if f.IsList {
		return strings.ReplaceAll(fmt.Sprint(f.List), " ", ",")
	}
	return strconv.Itoa(f.N)
}
