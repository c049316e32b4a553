package diagnose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// printed are the printed arguments that determine a run's memory, by their destinations
// (megatron/training/arguments.py _print_args). Megatron prints their values after its own changes.
var printed = []string{
	"num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels", "seq_length", "max_position_embeddings",
	"micro_batch_size", "global_batch_size", "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "expert_model_parallel_size",
	"num_experts", "moe_router_topk", "moe_ffn_hidden_size", "recompute_granularity", "recompute_method", "recompute_num_layers", "vocab_size",
	"make_vocab_size_divisible_by",
	"group_query_attention", "sequence_parallel", "use_distributed_optimizer", "bf16", "fp16", "swiglu", "untie_embeddings_and_output_weights", "use_flash_attn",
}

// launch returns the run's launch, from the context (given) or from the arguments that the run printed;
// ok is false if it is unknown.
func (j *job) launch() (run megatron.Run, given, ok bool) {
	if l := j.given.Launch; l != nil {
		return *l, true, true
	}
	if j.argument("num_layers") == 0 || j.argument("hidden_size") == 0 || j.world == 0 {
		return run, false, false
	}
	run = megatron.Run{WorldSize: j.world, Arch: 9, Env: map[string]string{"CUDA_DEVICE_MAX_CONNECTIONS": "1"}}
	for _, name := range printed {
		flag := "--" + strings.ReplaceAll(name, "_", "-")
		f, known := megatron.LookupFlag(flag)
		switch v := j.args[name]; {
		case !known || v == "" || v == "None" || v == "False":
		case v == "True":
			run.Argv = append(run.Argv, f.Name)
		default:
			run.Argv = append(run.Argv, f.Name, v)
		}
	}
	return run, false, true
}

// mostScale is how many times the estimate a run may have used so that a change of the estimate
// still tells what would fit: above it, most of the memory is something that the estimate does not know.
const mostScale = 4

// fit finds the smallest change that would fit into memory. It scales the estimate so that it agrees
// with what this run tried to allocate.
func (j *job) fit(m *report.Memory) *report.Fit {
	run, _, ok := j.launch()
	if !ok || m == nil || m.TotalGiB == 0 || m.TriedGiB == 0 {
		return nil
	}
	args, _ := megatron.Parse(run)
	was := args.Effective()
	scale := (m.TotalGiB - m.FreeGiB - m.OthersGiB + m.TriedGiB) / was.Memory().GiB()
	if scale > mostScale {
		return nil
	}
	broken := rules.CheckConfig(was, lang.EN).Problems // the run does not print all arguments, so some rules look broken
	room := 0.97 * (m.TotalGiB - m.OthersGiB)
	for _, change := range changes(was) {
		next := run
		next.Argv = append(slices.Clone(run.Argv), change...)
		args, faults := megatron.Parse(next)
		if len(faults) > 0 {
			continue
		}
		c := args.Effective()
		if gib := c.Memory().GiB() * scale; gib <= room && !breaksMore(c, broken) {
			return &report.Fit{Flags: change, EstimateGiB: float64(int(gib*10)) / 10, TotalGiB: m.TotalGiB}
		}
	}
	return nil
}

// breaksMore reports whether a launch breaks a rule that is not in before.
func breaksMore(c *megatron.Config, before []rules.Problem) bool {
	return slices.ContainsFunc(rules.CheckConfig(c, lang.EN).Problems, func(p rules.Problem) bool {
		return p.Severity == rules.Error && !slices.ContainsFunc(before, func(b rules.Problem) bool { return b.Rule == p.Rule })
	})
}

// changes returns the changes to try, cheapest first.
func changes(c *megatron.Config) (all [][]string) {
	set := func(words ...string) { all = append(all, words) }
	var micro [][]string
	for m := c.MicroBatchSize.V / 2; m >= 1; m /= 2 {
		micro = append(micro, []string{"--micro-batch-size", strconv.Itoa(m)})
	}
	if len(micro) > 0 {
		set(micro[0]...)
	}
	if !c.UseDistributedOptimizer {
		set("--use-distributed-optimizer")
	}
	if c.Recompute == "" {
		set("--recompute-granularity", "selective")
	}
	all = append(all, micro...)
	full := []string{"--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1"}
	if c.Recompute != "full" {
		set(full...)
	}
	if c.TP < 8 {
		set("--tensor-model-parallel-size", strconv.Itoa(2*c.TP), "--sequence-parallel")
	}
	set("--pipeline-model-parallel-size", strconv.Itoa(2*c.PP))
	set("--context-parallel-size", strconv.Itoa(2*c.CP))
	if c.TP < 8 {
		set(append(slices.Clone(full), "--tensor-model-parallel-size", strconv.Itoa(2*c.TP), "--sequence-parallel")...)
	}
	return all
}

// brokenRules returns the launch rules that explain a refusal: those that the launch breaks if it is
// known, else the one whose flags the message names.
func (j *job) brokenRules(v verdict) (found []rules.Rule) {
	if v.class != outcome.ParallelConfig && v.class != outcome.BadArgs && v.class != outcome.MaxConnections || v.event == nil {
		return nil
	}
	if run, given, ok := j.launch(); ok && given {
		for _, p := range rules.Check(run).Problems {
			if r, ok := rules.Explain(p.Rule); ok && p.Severity == rules.Error && len(found) < 3 {
				found = append(found, r)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	text := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(v.event.Text))
	best, most := rules.Rule{}, 0
	for _, r := range rules.Table() {
		named := 0
		for _, f := range r.Flags {
			if word := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(f, "--"), "_", "-")); len(word) > 3 && strings.Contains(text, word) {
				named++
			}
		}
		if named == len(r.Flags) && named > most {
			best, most = r, named
		}
	}
	if most > 0 && (most > 1 || v.class == outcome.MaxConnections) {
		found = append(found, best)
	}
	return found
}
