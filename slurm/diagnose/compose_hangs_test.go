package diagnose_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestHangs are runs that stopped writing while Slurm says that they run.
func TestHangs(t *testing.T) {
	for name, say := range map[string]func(r *diagnosetest.Run){
		"between iterations": func(*diagnosetest.Run) {},
		"in evaluation":      func(r *diagnosetest.Run) { r.Say(61*time.Second, 0, "Evaluating on 3200 samples") },
		"in a checkpoint": func(r *diagnosetest.Run) {
			r.Say(61*time.Second, 0, "saving checkpoint at iteration     105 to /ckpt/run in torch_dist format")
		},
		"after old warnings": func(r *diagnosetest.Run) {
			r.Say(5*time.Second, 9, "{host}:91:92 [{local}] graph/topo.h:230 NCCL WARN Could not find NET with id 0")
		},
		"at the start": func(r *diagnosetest.Run) { r.Lines = nil; r.Say(0, 0, "> initializing torch distributed ...") },
	} {
		for form, layout := range diagnosetest.Layouts {
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				r := &diagnosetest.Run{World: 16, PerNode: 8}
				r.Healthy(0, time.Minute)
				say(r)
				dir := t.TempDir()
				layout(t, r, dir)
				silent := int64(5400)
				got, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent})
				require.NoError(t, err)
				require.Equal(t, outcome.Hang, got.Class, "%+v", got)
				require.True(t, got.Retry)
				require.Equal(t, silent, *got.SinceS)
			})
		}
	}
}

// TestAJobThatOnlyChattersHangs has a job that writes on without an iteration,
// and one whose other program writes the times of another zone.
func TestAJobThatOnlyChattersHangs(t *testing.T) {
	fresh := int64(20)
	for after, want := range map[time.Duration]string{
		2*time.Hour + 5*time.Minute: outcome.Hang, 8*time.Hour + 30*time.Second: outcome.Running, 10 * time.Minute: outcome.Running,
	} {
		var b strings.Builder
		at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
		for i := 1; i <= 60; i++ {
			at = at.Add(4 * time.Second)
			fmt.Fprintf(&b, "[%s] iteration %8d/    1000 | consumed samples: 64 | elapsed time per iteration (ms): 4000.0 | lm loss: 2.000000E+00 "+
				"| grad norm: 0.5 |\n", at.Format("2006-01-02 15:04:05.000000"), i)
		}
		fmt.Fprintf(&b, "%s heartbeat: the exporter is alive\n", at.Add(after).Format("2006-01-02 15:04:05"))
		src, err := logfile.Read("a.log", strings.NewReader(b.String()))
		require.NoError(t, err)
		got, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &fresh})
		require.NoError(t, err)
		require.Equal(t, want, got.Class, after)
	}
}

// TestAPauseThatTheRunKnowsIsNoHang has a run whose evaluation takes half an
// hour each time.
func TestAPauseThatTheRunKnowsIsNoHang(t *testing.T) {
	var b strings.Builder
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for i := 1; i <= 60; i++ {
		at = at.Add(4 * time.Second)
		if i%20 == 0 {
			at = at.Add(30 * time.Minute)
		}
		fmt.Fprintf(&b, "[%s] iteration %8d/    1000 | consumed samples: 64 | elapsed time per iteration (ms): 4000.0 | lm loss: 2.000000E+00 "+
			"| grad norm: 0.5 |\n", at.Format("2006-01-02 15:04:05.000000"), i)
	}
	for silent, want := range map[int64]string{40 * 60: outcome.Running, 70 * 60: outcome.Hang} {
		src, err := logfile.Read("a.log", strings.NewReader(b.String()))
		require.NoError(t, err)
		got, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent})
		require.NoError(t, err)
		require.Equal(t, want, got.Class, silent)
	}
}

// TestSlurmEndsTheJob checks that Slurm's word wins over what ranks say of it.
func TestSlurmEndsTheJob(t *testing.T) {
	for class, line := range map[string]string{
		outcome.SlurmTimeLimit: "slurmstepd: error: *** JOB 77 ON gpu040 CANCELLED AT 2026-06-11T10:01:05 DUE TO TIME LIMIT ***",
		outcome.SlurmPreempted: "slurmstepd: error: *** JOB 77 ON gpu040 CANCELLED AT 2026-06-11T10:01:05 DUE TO PREEMPTION ***",
		outcome.SlurmNodeFail:  "srun: error: Node failure on gpu043",
		outcome.SlurmCancelled: "slurmstepd: error: *** JOB 77 ON gpu040 CANCELLED AT 2026-06-11T10:01:05 ***",
	} {
		for form, layout := range diagnosetest.Layouts {
			t.Run(class+"/"+form, func(t *testing.T) {
				t.Parallel()
				r := &diagnosetest.Run{World: 16, PerNode: 8}
				r.Healthy(0, time.Minute)
				r.Say(65*time.Second, -1, line)
				r.Victims(66*time.Second, map[int]bool{8: true})
				r.Say(70*time.Second, -1, "srun: error: gpu040: task 0: Killed", "srun: error: gpu043: task 1: Terminated")
				dir := t.TempDir()
				layout(t, r, dir)
				got, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "ENDED"})
				require.NoError(t, err)
				require.Equal(t, class, got.Class, "%+v", got)
				if class == outcome.SlurmNodeFail {
					require.Equal(t, []string{"gpu043"}, got.ExcludeNodes)
				}
			})
		}
	}
}

// TestPrefixesOfOtherLaunchers are pdsh's node and Ray's worker.
func TestPrefixesOfOtherLaunchers(t *testing.T) {
	r := diagnosetest.Text(t, "c000001: Traceback (most recent call last):\nc000002: starting\n"+
		"c000001:   File \"/w/gpt_dataset.py\", line 148, in build\nc000002: [rank9]: KeyError\n"+
		"c000001: FileNotFoundError: [Errno 2] No such file or directory: '/d/43d5_doc_idx.npy'\n")
	require.Equal(t, outcome.DatasetMissing, r.Class)
	require.Equal(t, "c000001", *r.RootNode)
	r = diagnosetest.Text(t, "(head, rank=3, pid=4773) Traceback (most recent call last):\n"+
		"(head, rank=3, pid=4773)   File \"/w/megatron/core/datasets/indexed_dataset.py\", line 293, in __init__\n(worker1, rank=4, pid=12)  fine\n"+
		"(head, rank=3, pid=4773) AssertionError\n")
	require.Equal(t, outcome.DatasetMissing, r.Class, "an index that contradicts itself")
	require.Equal(t, 3, *r.RootRank)
}
