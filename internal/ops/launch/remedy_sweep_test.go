package launch

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/stretchr/testify/require"
)

// askedFor returns specifications as people write them. Each has something that a
// remedy may not repeat, may not contradict, or may not mistake for Megatron's.
func askedFor() map[string]job.Spec {
	all := map[string]job.Spec{}
	add := func(name string, change func(*job.Spec), words ...string) {
		s := failing()
		s.Args = append(megatron.WithoutFlags(s.Args, flagNamesOf(words)), words...)
		if change != nil {
			change(&s)
		}
		all[name] = s
	}
	yes, port, own := true, 24711, 4
	add("plain", nil)
	add("the smallest batch", nil, "--micro-batch-size", "1")
	add("a batch whose half divides nothing", nil, "--micro-batch-size", "5", "--global-batch-size", "60")
	add("joined words", nil, "--micro-batch-size=4", "--num-workers=8", "--save=/ckpt/g", "--save-interval=50")
	add("no workers", nil, "--num-workers", "0")
	add("one worker", nil, "--num-workers", "1")
	add("everything is in use", nil, "--micro-batch-size", "1", "--use-distributed-optimizer", "--recompute-granularity", "full",
		"--recompute-method", "uniform", "--recompute-num-layers", "1", "--num-workers", "0")
	add("segments grow", func(s *job.Spec) { s.Env = map[string]string{"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} })
	add("a variable of its own", func(s *job.Spec) { s.Env = map[string]string{connections: "32"} }, "--sequence-parallel")
	add("all memory", func(s *job.Spec) { s.Mem, s.Exclusive = "0", &yes })
	add("some memory", func(s *job.Spec) { s.Mem = "500G" })
	add("memory by GPU", func(s *job.Spec) { s.MemPerGPU = "60G" })
	add("memory in words", func(s *job.Spec) { s.Mem = "1.5T" })
	add("a port of its own", func(s *job.Spec) { s.MasterPort = &port })
	add("saves", nil, "--save", "/ckpt/g", "--save-interval", "50")
	add("goes on already", nil, "--save", "/ckpt/g", "--save-interval", "50", "--load", "/ckpt/g")
	add("goes on from a step", nil, "--save", "/ckpt/g", "--save-interval", "50", "--load", "/ckpt/g", "--ckpt-step", "100")
	add("finetunes", nil, "--save", "/ckpt/g", "--save-interval", "50", "--load", "/ckpt/base", "--finetune")
	add("keeps off a node", func(s *job.Spec) { s.Exclude = "gpu[1-3]" })
	add("asks for its nodes", func(s *job.Spec) { s.Nodelist = "gpu[1-2]" })
	add("a layout that cannot be", nil, "--tensor-model-parallel-size", "3")
	add("somebody's own program", func(s *job.Spec) { s.Script, s.Args = "train.py", []string{"--save", "/ckpt/g"} })
	add("without a launcher", func(s *job.Spec) { s.Launcher, s.GPUsPerNode, s.Args = job.Custom, &own, []string{"./run.sh"} })
	return all
}

// TestEveryOfferedChangeChangesSomethingAndIsPlanned asks for a change for every class
// of failure and every specification: the offer changes something, passes the plan, and
// describes what it changes.
func TestEveryOfferedChangeChangesSomethingAndIsPlanned(t *testing.T) {
	c := &ops.Call{Service: &ops.Service{Now: time.Now, Default: "local"}}
	offered := map[string]bool{}
	for name, s := range askedFor() {
		for _, class := range outcome.Classes() {
			for _, r := range []report.Report{
				{Class: class.ID},
				{Class: class.ID, Retry: true, ExcludeNodes: []string{"gpu1"}},
				{Class: class.ID, Memory: &report.Memory{TriedGiB: 2, ReservedGiB: 9}},
			} {
				mended, ok := remedyOf(c, s, "4711", r)
				if !ok {
					mended, ok = withoutFailedNodes(c, s, r)
				}
				if !ok {
					continue
				}
				offered[class.ID] = true
				at := class.ID + ", " + name
				goesOn := megatron.LastOf(s.Args, "--load") == "/ckpt/g" && strings.Contains(mended.Changes[0].EN, "goes on from")
				if !goesOn { // continuing from the last checkpoint is the change
					require.NotEmpty(t, job.Diff(s, mended.Spec), at)
				}
				verdict, err := JudgeSpec(c, mended.Spec)
				require.NoError(t, err, at)
				require.False(t, rules.Blocking(verdict.Problems), at)
				_, ok = PatchOf("4711", s, mended.Spec)
				require.True(t, ok, at)
				for _, said := range mended.Changes {
					require.NotContains(t, said.In(lang.EN)+said.In(lang.ZH), "%!", at)
				}
				require.False(t, mended.Spec.Mem != "" && mended.Spec.MemPerGPU != "", "%s: Slurm takes one of the two", at)
				require.False(t, s.Nodelist != "" && mended.Spec.Exclude != "", "%s: it asks for the node", at)
				if s.Script != "" || s.Launcher == job.Custom {
					for _, flag := range flagNamesOf(mended.Spec.Args) {
						require.True(t, slices.Contains(flagNamesOf(s.Args), flag), "%s: its program may not know %s", at, flag)
					}
				}
			}
		}
	}
	for _, class := range []string{
		outcome.CUDAOOM, outcome.HostOOM, outcome.MaxConnections, outcome.PortInUse, outcome.ParallelConfig, outcome.ShmBusError,
		outcome.SlurmTimeLimit, outcome.SlurmPreempted, outcome.GPUHardware,
	} {
		require.True(t, offered[class], "nothing is ever offered for %s", class)
	}
}
