package diagnosetest

import (
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Hangs tests jobs that write nothing more while Slurm says that they run.
func Hangs(t *testing.T) {
	t.Helper()
	for name, say := range map[string]func(r *Run){
		"between iterations": func(*Run) {},
		"in evaluation":      func(r *Run) { r.Say(61*time.Second, 0, "Evaluating on 3200 samples") },
		"in a checkpoint": func(r *Run) {
			r.Say(61*time.Second, 0, "saving checkpoint at iteration     105 to /ckpt/run in torch_dist format")
		},
		"after old warnings": func(r *Run) {
			r.Say(5*time.Second, 9, "{host}:91:92 [{local}] graph/topo.h:230 NCCL WARN Could not find NET with id 0")
		},
		"at the start": func(r *Run) { r.Lines = nil; r.Say(0, 0, "> initializing torch distributed ...") },
	} {
		for form, layout := range Layouts {
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				r := &Run{World: 16, PerNode: 8}
				r.Healthy(0, time.Minute)
				say(r)
				silent := int64(5400)
				got, _ := diagnosed(t, r, layout, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent})
				require.Equal(t, outcome.Hang, got.Class, "%+v", got)
				require.True(t, got.Retry)
				require.Equal(t, silent, *got.SinceS)
			})
		}
	}
}

// SlurmEndsTheJob tests that Slurm's reason for the end wins over errors of the ranks.
func SlurmEndsTheJob(t *testing.T) {
	t.Helper()
	for class, line := range map[string]string{
		outcome.SlurmTimeLimit: "slurmstepd: error: *** JOB 77 ON gpu040 CANCELLED AT 2026-06-11T10:01:05 DUE TO TIME LIMIT ***",
		outcome.SlurmPreempted: "slurmstepd: error: *** JOB 77 ON gpu040 CANCELLED AT 2026-06-11T10:01:05 DUE TO PREEMPTION ***",
		outcome.SlurmNodeFail:  "srun: error: Node failure on gpu043",
		outcome.SlurmCancelled: "slurmstepd: error: *** JOB 77 ON gpu040 CANCELLED AT 2026-06-11T10:01:05 ***",
	} {
		for form, layout := range Layouts {
			t.Run(class+"/"+form, func(t *testing.T) {
				t.Parallel()
				r := &Run{World: 16, PerNode: 8}
				r.Healthy(0, time.Minute)
				r.Say(65*time.Second, -1, line)
				r.Victims(66*time.Second, map[int]bool{8: true})
				r.Say(70*time.Second, -1, "srun: error: gpu040: task 0: Killed", "srun: error: gpu043: task 1: Terminated")
				got, _ := diagnosed(t, r, layout, diagnose.Context{JobState: "ENDED"})
				require.Equal(t, class, got.Class, "%+v", got)
				if class == outcome.SlurmNodeFail {
					require.Equal(t, []string{"gpu043"}, got.ExcludeNodes)
				}
			})
		}
	}
}
