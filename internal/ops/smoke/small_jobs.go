package smoke

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A rung is one small job.
type rung struct {
	name string
	spec job.Spec
}

// Bounds of a small job.
const (
	smokeIterations = 10
	smokeLimit      = "00:10:00"
	smokeLayers     = 2 // for each pipeline stage
)

// ladder derives small jobs from s, each with a little more that can fail: one GPU, one
// node, two nodes; never more than s itself has. Image, mounts, environment and data
// stay the same.
func ladder(s job.Spec) []rung {
	full := s.WithDefaults()
	nodes, gpus := *full.Nodes, *full.GPUsPerNode
	var rungs []rung
	add := func(n, g int, suffix, name string) {
		rungs = append(rungs, rung{name, small(s, n, g, suffix)})
	}
	if gpus > 1 || gpus == 1 && nodes > 1 {
		add(1, 1, "1gpu", "1 GPU")
	}
	if gpus != 1 || nodes == 1 {
		add(1, gpus, "1node", "1 node")
	}
	if nodes > 1 {
		add(2, gpus, "2nodes", "2 nodes")
	}
	return rungs
}

func small(s job.Spec, nodes, gpus int, suffix string) job.Spec {
	full := s.WithDefaults()
	name := full.Name
	s.Name = name[:min(len(name), 100)] + "-smoke-" + suffix
	s.Nodes, s.GPUsPerNode, s.Time = &nodes, &gpus, smokeLimit
	if s.CPUsPerTask != nil && gpus > 0 && gpus < *full.GPUsPerNode {
		cpus := max(1, *s.CPUsPerTask*gpus / *full.GPUsPerNode)
		s.CPUsPerTask = &cpus
	}
	// These settings belong to the real run: its place in a series, its result, its
	// switch.
	s.Chain, s.Array, s.Train, s.Every, s.Dependency, s.Begin, s.Signal, s.KillSwitch = nil, "", "", "", "", "", "", ""
	s.Artifact, s.Retry, s.Nodelist = job.Artifact{}, job.Retry{}, ""
	no := false
	s.Requeue = &no
	// A custom launcher may start Megatron, too: the flags show it.
	if launch.Trains(s.WithDefaults()) || megatron.NumberOf(s.Args, "--num-layers", 0) > 0 {
		s.Args = smallArgs(s.Args, nodes*max(gpus, 1))
	}
	return s
}

// ofTheRun holds the flags that a small job leaves out: they write where the real run
// writes, load what it has saved, or count what ten iterations cannot reach.
var ofTheRun = []string{
	"--save", "--load", "--pretrained-checkpoint", "--use-checkpoint-args", "--ckpt-step", "--exit-on-missing-checkpoint", "--save-interval", "--non-persistent-save-interval", "--async-save",
	"--tensorboard-dir", "--wandb-project", "--wandb-exp-name", "--wandb-save-dir", "--exit-interval", "--exit-duration-in-mins",
	"--train-samples", "--lr-decay-samples", "--lr-warmup-samples", "--lr-decay-iters", "--lr-warmup-iters", "--lr-warmup-fraction",
	"--lr-wsd-decay-iters", "--lr-wsd-decay-samples", "--rampup-batch-size", "--train-iters", "--eval-iters", "--eval-interval", "--log-interval",
	"--num-layers-per-virtual-pipeline-stage", "--num-virtual-stages-per-pipeline-rank", "--pipeline-model-parallel-layout",
	"--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers", "--account-for-embedding-in-pipeline-split",
	"--account-for-loss-in-pipeline-split", "--exit-signal-handler", "--exit-signal",
}

// smallArgs returns the command line for world GPUs: few layers, ten iterations, and as
// much of the layout as fits. It reduces pipeline first, then context, then tensor
// parallelism.
func smallArgs(args []string, world int) []string {
	tp, pp := megatron.NumberOf(args, "--tensor-model-parallel-size", 1), megatron.NumberOf(args, "--pipeline-model-parallel-size", 1)
	cp, ep := megatron.NumberOf(args, "--context-parallel-size", 1), megatron.NumberOf(args, "--expert-model-parallel-size", 1)
	for _, size := range []*int{&pp, &cp, &tp} {
		for *size > 1 && world%(tp*pp*cp) != 0 {
			*size = smaller(*size)
		}
	}
	// Without a size of its own, the experts' tensor parallelism is that of the layers.
	etp := min(tp, megatron.NumberOf(args, "--expert-tensor-parallel-size", tp))
	for ep > 1 && world%(etp*ep*pp) != 0 {
		ep = smaller(ep)
	}
	drop := slices.Clone(ofTheRun)
	var add []string
	set := func(flag string, value int, evenUnset bool) {
		if _, given := megatron.ValueOf(args, flag); given || evenUnset {
			drop = append(drop, flag)
			add = append(add, flag, strconv.Itoa(value))
		}
	}
	set("--tensor-model-parallel-size", tp, false)
	set("--pipeline-model-parallel-size", pp, false)
	set("--context-parallel-size", cp, false)
	set("--expert-model-parallel-size", ep, false)
	set("--expert-tensor-parallel-size", etp, false)
	for _, layers := range []string{"--num-layers", "--encoder-num-layers", "--decoder-num-layers"} {
		if n := megatron.NumberOf(args, layers, 0); n > 0 {
			set(layers, min(n-n%pp, smokeLayers*pp), false)
		}
	}
	if strings.HasPrefix(megatron.LastOf(args, "--moe-layer-freq"), "[") || strings.HasPrefix(megatron.LastOf(args, "--moe-layer-freq"), "(") {
		drop = append(drop, "--moe-layer-freq") // a list with one entry for each original layer
	}
	micro := megatron.NumberOf(args, "--micro-batch-size", 1)
	set("--global-batch-size", micro*world/(tp*pp*cp), true)
	set("--train-iters", smokeIterations, true)
	set("--eval-iters", 1, true)
	set("--eval-interval", smokeIterations, true) // Megatron divides by it and has no default since 0.16
	set("--log-interval", 1, true)
	return append(megatron.WithoutFlags(args, drop), add...)
}

// smaller returns the next smaller divisor of n.
func smaller(n int) int {
	for d := n / 2; d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}

// size describes the size of a rung.
func (r rung) size() lang.Text {
	return lang.Text{EN: "%s, %s", ZH: "%s，%s"}.With(ops.Counted(*r.spec.Nodes, "node"), ops.Counted(*r.spec.Nodes**r.spec.GPUsPerNode, "GPU"))
}
