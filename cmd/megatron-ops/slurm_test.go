package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// A person is somebody at a shell on a login node of a real Slurm.
type person struct {
	t    *testing.T
	tree string
}

// do runs a command line and returns its exit code and what it printed.
func (p person) do(args ...string) (code int, out string) {
	var o, e strings.Builder
	code = run(context.Background(), args, streams{in: strings.NewReader(""), out: &o, err: &e})
	return code, o.String() + e.String()
}

// must runs a command line that prints one JSON document, and reads it.
func (p person) must(code int, into any, args ...string) {
	p.t.Helper()
	var o, e strings.Builder
	got := run(context.Background(), append(args, "-o", "json"), streams{in: strings.NewReader(""), out: &o, err: &e})
	require.Equal(p.t, code, got, "%v: %s%s", args, o.String(), e.String())
	require.NoError(p.t, json.Unmarshal([]byte(o.String()), into), o.String())
}

// until asks for a job's state until it is one of those.
func (p person) until(id string, states ...string) {
	p.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	var job struct{ State, Reason string }
	for time.Now().Before(deadline) {
		p.must(0, &job, "status", id)
		for _, s := range states {
			if job.State == s {
				return
			}
		}
		time.Sleep(300 * time.Millisecond)
	}
	_, logs := p.do("logs", id, "--tail", "60")
	p.t.Fatalf("job %s is %s (%s), not one of %v:\n%s", id, job.State, job.Reason, states, logs)
}

// The rendered script, started by a real Slurm over two nodes, launches a real
// torch.distributed.run; the failure that is diagnosed is PyTorch's own.
func TestTheMainJobOnSlurm(t *testing.T) {
	tools := slurmtest.Torch(t)
	real := slurmtest.Start(t, slurmtest.Options{})
	p := person{t: t, tree: filepath.Join(real.Work, "tree")}
	require.NoError(t, os.MkdirAll(filepath.Join(p.tree, ".venv", "bin"), 0o755))
	b, err := os.ReadFile(filepath.Join(tools, "train.py"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(p.tree, "train.py"), b, 0o644))
	for _, e := range real.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "SLURM") {
			t.Setenv(name, value)
		}
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("MEGATRON_OPS_STATE_DIR", filepath.Join(real.Work, "state"))
	t.Setenv("MEGATRON_OPS_CLUSTER", slurmCluster)
	t.Setenv("OMP_NUM_THREADS", "1")
	submit := []string{
		"submit", "--name", "e2e", "--nodes", "2", "--gpus-per-node", "2", "--gpu", "a100", "--partition", "dev", "--time", "5",
		"--worktree", p.tree, "--script", "train.py", "--env", "GLOO_SOCKET_IFNAME=lo", "--yes",
	}
	var sub struct {
		JobID    string   `json:"job_id"`
		LogPaths []string `json:"log_paths"`
	}

	t.Run("two nodes train to the end", func(t *testing.T) {
		p.must(0, &sub, append(submit, "--master-port", "24511", "--env", "TRAIN_ITERS=30")...)
		p.until(sub.JobID, "RUNNING", "COMPLETED")
		p.until(sub.JobID, "COMPLETED")
		require.FileExists(t, sub.LogPaths[0])
		code, out := p.do("logs", sub.JobID, "--tail", "400")
		require.Zero(t, code, out)
		require.Contains(t, out, "rank 3 of 4")
		require.Contains(t, out, "after training is done")
		code, out = p.do("diagnose", sub.JobID)
		require.Zero(t, code, "nothing failed: %s", out)
		code, out = p.do("metrics", sub.JobID)
		require.Zero(t, code, out)
		require.Contains(t, out, "30/30")
	})
	t.Run("a rank that fails is found among the others", func(t *testing.T) {
		p.must(0, &sub, append(submit, "--master-port", "24512", "--env", "FAIL_AT=2:4")...)
		p.until(sub.JobID, "FAILED")
		var d struct {
			Class    string `json:"class"`
			RootRank *int   `json:"root_rank"`
			RootNode string `json:"root_node"`
		}
		p.must(3, &d, "diagnose", sub.JobID)
		require.Equal(t, "shape_mismatch", d.Class)
		require.NotNil(t, d.RootRank)
		require.Equal(t, 2, *d.RootRank)
		require.Equal(t, "gpu2", d.RootNode)
	})
	t.Run("a job is cancelled", func(t *testing.T) {
		p.must(0, &sub, append(submit, "--master-port", "24513", "--env", "TRAIN_ITERS=1000000")...)
		p.until(sub.JobID, "RUNNING")
		code, out := p.do("cancel", sub.JobID, "--yes")
		require.Zero(t, code, out)
		p.until(sub.JobID, "CANCELLED")
	})
	t.Run("Slurm's refusal is told in its own words, with what to do", func(t *testing.T) {
		for field, want := range map[string]string{"partition": "invalid partition specified: nosuch", "constraint": "Invalid feature specification"} {
			code, out := p.do(append(submit, "--"+field, "nosuch")...)
			require.Equal(t, 1, code, out)
			require.Contains(t, out, want)
			require.Contains(t, out, "try: ", fmt.Sprintf("what to do about %s", field))
		}
	})
}
