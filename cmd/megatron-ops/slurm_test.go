package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// A person is a user at a shell on a login node of a real Slurm.
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

// must runs a command line that prints one JSON document, and decodes it.
func (p person) must(code int, into any, args ...string) {
	p.t.Helper()
	var o, e strings.Builder
	got := run(context.Background(), append(args, "-o", "json"), streams{in: strings.NewReader(""), out: &o, err: &e})
	require.Equal(p.t, code, got, "%v: %s%s", args, o.String(), e.String())
	require.NoError(p.t, json.Unmarshal([]byte(o.String()), into), o.String())
}

// until polls a job's state until it is one of states.
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

// atSlurm returns a person with a worktree, in an environment of real.
func atSlurm(t *testing.T, real *slurmtest.Cluster, tools, tree string) person {
	t.Helper()
	p := person{t: t, tree: filepath.Join(real.Work, tree)}
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
	return p
}

// The rendered script, started by a real Slurm on two nodes, launches a real
// torch.distributed.run; the diagnosed failure is PyTorch's own.
func TestTheMainJobOnSlurm(t *testing.T) {
	tools := slurmtest.Torch(t)
	real := slurmtest.Start(t, slurmtest.Options{})
	p := atSlurm(t, real, tools, "tree")
	submit := []string{
		"submit", "--name", "e2e", "--nodes", "2", "--gpus-per-node", "2", "--gpu", "a100", "--partition", "dev", "--time", "5",
		"--worktree", p.tree, "--script", "train.py", "--env", "GLOO_SOCKET_IFNAME=lo", "--yes",
	}
	var sub struct {
		JobID    string   `json:"job_id"`
		LogPaths []string `json:"log_paths"`
	}

	t.Run("two nodes train to the end", func(t *testing.T) {
		p.must(0, &sub, append(submit, "--master-port", fmt.Sprint(real.Port(0)), "--env", "TRAIN_ITERS=30")...)
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
		p.must(0, &sub, append(submit, "--master-port", fmt.Sprint(real.Port(1)), "--env", "FAIL_AT=2:4")...)
		p.until(sub.JobID, "FAILED")
		var d struct {
			Class    string `json:"class"`
			RootRank *int   `json:"root_rank"`
			RootNode string `json:"root_node"`
		}
		p.must(3, &d, "diagnose", sub.JobID)
		require.Equal(t, "shape_mismatch", d.Class)
		require.Equal(t, "gpu2", d.RootNode)
		// Slurm may end the node before its launcher reports which of the two ranks it
		// was.
		require.True(t, d.RootRank == nil || *d.RootRank == 2, "rank %v", d.RootRank)
	})
	t.Run("what changed since the run that worked", func(t *testing.T) {
		var d struct {
			Changes []struct{ Field, Old, New string }
			Script  string
		}
		p.must(0, &d, "diff", sub.JobID)
		fields := map[string]string{}
		for _, c := range d.Changes {
			fields[c.Field] = c.New
		}
		require.Equal(t, "2:4", fields["env.FAIL_AT"])
		require.Equal(t, fmt.Sprint(real.Port(1)), fields["master_port"])
		require.Contains(t, d.Script, "+export FAIL_AT=2:4")
	})
	t.Run("a job is cancelled", func(t *testing.T) {
		p.must(0, &sub, append(submit, "--master-port", fmt.Sprint(real.Port(2)), "--env", "TRAIN_ITERS=1000000")...)
		p.until(sub.JobID, "RUNNING")
		code, out := p.do("cancel", sub.JobID, "--yes")
		require.Zero(t, code, out)
		p.until(sub.JobID, "CANCELLED")
	})
	t.Run("Slurm's refusal is told in its own words, with what to do", func(t *testing.T) {
		for field, want := range map[string]string{"partition": "nosuch is no partition here", "constraint": "Invalid feature specification"} {
			code, out := p.do(append(submit, "--"+field, "nosuch")...)
			require.Equal(t, 3, code, out)
			require.Contains(t, out, want)
			require.Contains(t, out, "fix (", fmt.Sprintf("what to do about %s", field))
		}
	})
}

// typed runs a line as a person at a terminal would, and returns the output.
func typed(t *testing.T, line, keys string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "script", "-qec", line, "/dev/null")
	cmd.Stdin = strings.NewReader(keys)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	return string(out)
}

// Held nodes are used repeatedly: the session's commands are those that render shows,
// and each launch is a step with logs of its own.
func TestAnAllocationIsUsedAgainAndAgainOnSlurm(t *testing.T) {
	tools := slurmtest.Torch(t)
	real := slurmtest.Start(t, slurmtest.Options{})
	p := atSlurm(t, real, tools, "held")
	code, session := p.do("render", "--for", "session", "--name", "held", "--nodes", "2", "--gpus-per-node", "2", "--partition", "prod", "--time", "10", "--begin", "now+1", "--worktree", p.tree)
	require.Zero(t, code, session)
	command := map[string]string{} // by its first words
	for line := range strings.Lines(session) {
		for _, head := range []string{"salloc", "srun --jobid=JOBID --overlap --pty", "srun --jobid=JOBID --overlap --gres", "srun --pty", "scancel"} {
			if strings.HasPrefix(line, head+" ") || strings.HasPrefix(line, head+"=") {
				command[head] = strings.TrimSpace(line)
			}
		}
	}
	require.Len(t, command, 5, session)
	granted := typed(t, command["salloc"], "")
	m := regexp.MustCompile(`Granted job allocation ([0-9]+)`).FindStringSubmatch(granted)
	require.NotNil(t, m, granted)
	id := m[1]
	in := func(head, node string) string {
		return strings.NewReplacer("JOBID", id, "NODE", node).Replace(command[head])
	}
	t.Cleanup(func() { _, _ = real.Run(context.Background(), "scancel", id) })

	var held struct{ Nodes []string }
	p.must(0, &held, "status", id)
	require.Len(t, held.Nodes, 2)
	node := held.Nodes[1]
	require.Contains(t, typed(t, in("srun --jobid=JOBID --overlap --pty", node), "echo on $SLURMD_NODENAME; exit\n"), "on "+node)
	require.Regexp(t, "on gpu[1-4]", typed(t, command["srun --pty"], "echo on $SLURMD_NODENAME; exit\n"))
	side := strings.Replace(in("srun --jobid=JOBID --overlap --gres", node), "nvidia-smi", `bash -c 'echo "on $SLURMD_NODENAME, sees ${CUDA_VISIBLE_DEVICES:-no GPU}"'`, 1)
	require.Contains(t, typed(t, side, ""), "on "+node+", sees no GPU")

	submit := []string{
		"submit", "--into", id, "--name", "step", "--gpus-per-node", "2", "--gpu", "a100", "--worktree", p.tree, "--script", "train.py",
		"--env", "GLOO_SOCKET_IFNAME=lo", "--yes", "--master-port", fmt.Sprint(real.Port(3)),
	}
	var first, second, third struct {
		JobID   string   `json:"job_id"`
		Already bool     `json:"already_submitted"`
		Logs    []string `json:"log_paths"`
	}
	p.must(0, &first, append(submit, "--env", "TRAIN_ITERS=20", "--idempotency-key", "one")...)
	require.Regexp(t, "^"+id+`\.[0-9]+$`, first.JobID)
	p.must(0, &second, append(submit, "--env", "TRAIN_ITERS=20", "--idempotency-key", "one")...)
	require.True(t, second.Already)
	require.Equal(t, first.JobID, second.JobID)
	p.until(first.JobID, "COMPLETED")
	code, out := p.do("logs", first.JobID, "--tail", "400")
	require.Zero(t, code, out)
	require.Contains(t, out, "rank 3 of 4")
	require.Contains(t, out, "after training is done")
	require.FileExists(t, strings.TrimSuffix(first.Logs[0], ".out")+".sh")

	p.must(0, &second, append(submit, "--env", "TRAIN_ITERS=20", "--env", "FAIL_AT=2:4")...)
	require.NotEqual(t, first.JobID, second.JobID)
	p.until(second.JobID, "FAILED")
	var d struct{ Class string }
	p.must(3, &d, "diagnose", second.JobID)
	require.Equal(t, "shape_mismatch", d.Class)

	p.must(0, &third, append(submit, "--env", "TRAIN_ITERS=1000000")...)
	require.Eventually(t, func() bool {
		_, out := p.do("logs", third.JobID, "--tail", "3")
		return strings.Contains(out, "iteration ")
	}, time.Minute, 300*time.Millisecond)
	// While it runs the port is in use: the next launch ends at once, and says so.
	p.must(0, &second, append(submit, "--env", "TRAIN_ITERS=20")...)
	p.until(second.JobID, "FAILED", "CANCELLED")
	_, out = p.do("logs", second.JobID)
	require.Contains(t, out, fmt.Sprintf("port %d is taken; another launch may still run", real.Port(3)))
	p.until(third.JobID, "RUNNING")
	code, out = p.do("cancel", third.JobID, "--yes")
	require.Zero(t, code, out)
	p.until(third.JobID, "CANCELLED")
	p.until(id, "RUNNING")

	typed(t, in("scancel", node), "")
	p.until(id, "CANCELLED", "COMPLETED")
	code, out = p.do(submit...)
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "has no nodes")
}

// init examines a real site. Several clusters live in one file, each with a profile of
// its own, and a job is rendered for the cluster that it names.
func TestSeveralClustersInOneFileOnSlurm(t *testing.T) {
	real, program := slurmtest.Start(t, slurmtest.Options{}), binary(t)
	t.Chdir(t.TempDir())
	for _, e := range real.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "SLURM") {
			t.Setenv(name, value)
		}
	}
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	p := person{t: t}
	require.NoError(t, os.WriteFile("megatron-ops.yaml", []byte("# ours\nlang: en\nclusters:\n  far: # over ssh\n    kind: ssh\n    host: login\n    site: {partition: big, gpus_per_node: 4, gpu: gb200, gpu_request: gres}\n"), 0o644))
	code, out := p.do("init")
	require.Equal(t, 2, code)
	require.Contains(t, out, "--as NAME adds this cluster")
	code, out = p.do("init", "--as", "near")
	require.Zero(t, code, out)
	require.Contains(t, out, "partition: dev (Slurm's default partition, and it has GPUs)")
	file, err := os.ReadFile("megatron-ops.yaml")
	require.NoError(t, err)
	require.Contains(t, string(file), "far: # over ssh", "what was there stays as it was")
	require.Contains(t, string(file), real.Conf())
	code, out = p.do("init", "--as", "near")
	require.Equal(t, 2, code, "the name is taken: %s", out)
	code, out = p.do("init", "--as", "a b")
	require.Equal(t, 2, code, out)

	// At a terminal, init asks what it cannot detect, and says which answers are
	// invalid.
	bin := t.TempDir()
	for _, name := range []string{"apptainer", "singularity", "enroot", "docker", "findmnt"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	keys := strings.Join([]string{"nosuch", "prod", "", "", "enroot", "/lustre,here", "/lustre,/home", ""}, "\n")
	out = typed(t, program+" init --file asked.yaml", keys)
	require.Contains(t, out, `"nosuch" is not one of dev, prod`)
	require.Contains(t, out, `"here" is not an absolute path`)
	require.Contains(t, out, "partition: prod (as you say)")
	asked, err := os.ReadFile("asked.yaml")
	require.NoError(t, err)
	require.Contains(t, string(asked), "  partition: prod\n")
	require.Contains(t, string(asked), "  gpu_request: gpus-per-node\n")
	require.Contains(t, string(asked), "    runtime: enroot\n")
	require.Contains(t, string(asked), "  shared:\n  - /lustre\n  - /home\n")
	out = typed(t, program+" --lang zh init --yes --file taken.yaml", "")
	require.NotContains(t, out, "[")
	require.Contains(t, out, "partition: dev (")
	require.FileExists(t, "taken.yaml")
	cmd := exec.CommandContext(t.Context(), "script", "-qec", program+" init --file none.yaml", "/dev/null")
	cmd.Stdin = strings.NewReader("\n")
	said, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "nothing was written")
	require.NoFileExists(t, "none.yaml")

	for cluster, want := range map[string][]string{
		"near": {"#SBATCH --partition=dev\n", "#SBATCH --gpus-per-node=8\n", "#SBATCH --cpus-per-task=64\n"},
		"far":  {"#SBATCH --partition=big\n", "#SBATCH --gres=gpu:4\n"},
	} {
		code, out = p.do("render", "--cluster", cluster, "--worktree", "/w")
		require.Zero(t, code, out)
		for _, line := range want {
			require.Contains(t, out, line, cluster)
		}
	}
	var jobs struct{ Jobs []any }
	p.must(0, &jobs, "list", "--cluster", "near")
	code, out = p.do("list", "--cluster", "nowhere")
	require.Equal(t, 2, code)
	require.Contains(t, out, "one of far, local, near")
}

// Every launcher starts the same ranks, over two nodes and with PyTorch's own launcher;
// accelerate is not part of the distribution.
func TestEveryLauncherTrainsOnSlurm(t *testing.T) {
	tools := slurmtest.Torch(t)
	real := slurmtest.Start(t, slurmtest.Options{})
	require.NoError(t, os.WriteFile(filepath.Join(tools, "python"), []byte("#!/bin/sh\nexec uv run python \"$@\"\n"), 0o755))
	p := atSlurm(t, real, tools, "launchers")
	ids := map[string]string{}
	for i, l := range []struct {
		name  string
		words []string
	}{
		{"c10d", []string{"--rdzv-backend", "c10d", "--rdzv-conf", "join_timeout=120", "--rdzv-conf", "max_restarts=0", "--preset", "joined-log"}},
		{"python", []string{"--launcher", "python"}},
		{"venv", []string{"--launcher", "python", "--venv", "own"}},
		{"custom", []string{
			"--launcher", "custom", "--launcher-argv", "uv", "--launcher-argv", "run", "--launcher-argv", "python", "--launcher-argv=-m", "--launcher-argv", "torch.distributed.run",
			"--launcher-argv=--nnodes={nnodes}", "--launcher-argv=--node-rank={node_rank}", "--launcher-argv=--nproc-per-node={gpus_per_node}",
			"--launcher-argv=--master-addr={master_addr}", "--launcher-argv=--master-port={master_port}",
		}},
	} {
		if l.name == "venv" {
			bin := filepath.Join(p.tree, "own", "bin")
			require.NoError(t, os.MkdirAll(bin, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(bin, "python"), []byte("#!/bin/sh\necho from the named environment >&2\nexec uv run python \"$@\"\n"), 0o755))
		}
		var sub struct {
			JobID string `json:"job_id"`
		}
		p.must(0, &sub, append([]string{
			"submit", "--name", l.name, "--nodes", "2", "--gpus-per-node", "2", "--gpu", "a100", "--partition", "prod", "--time", "5", "--worktree", p.tree,
			"--script", "train.py", "--env", "GLOO_SOCKET_IFNAME=lo", "--env", "TRAIN_ITERS=5", "--master-port", fmt.Sprint(real.Port(4 + i)), "--yes",
		}, l.words...)...)
		ids[l.name] = sub.JobID
		p.until(sub.JobID, "COMPLETED")
		_, out := p.do("logs", sub.JobID)
		require.Contains(t, out, "rank 3 of 4", l.name)
		require.Contains(t, out, "after training is done", l.name)
		if l.name == "venv" {
			require.Contains(t, out, "from the named environment")
		}
	}
	joined, err := os.ReadFile(filepath.Join(p.tree, "logs", "c10d-"+ids["c10d"]+".log"))
	require.NoError(t, err)
	require.Contains(t, string(joined), "after training is done")
	// torch writes each rank's own log, on shared storage, by node.
	ranks, err := filepath.Glob(filepath.Join(p.tree, "logs", ids["python"], "attempt-0", "gpu*", "*", "attempt_0", "*", "stdout.log"))
	require.NoError(t, err)
	require.Len(t, ranks, 4)
}
