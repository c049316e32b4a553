package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// took measures how long a command takes.
func took(b *testing.B, env []string, argv ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	require.NoError(b, err, "%s", out)
	return time.Since(begin)
}

// busy measures how long a command and its children use processors, in milliseconds,
// which other load on the machine does not affect.
func busy(b *testing.B, env []string, argv ...string) float64 {
	b.Helper()
	var all []time.Duration
	for range 5 {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = env
		require.NoError(b, cmd.Run())
		all = append(all, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	return middle(all)
}

// middle returns the median, in milliseconds.
func middle(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}

// newBench returns the released program on a real Slurm, and a person's state.
func newBench(b *testing.B, o slurmtest.Options) (real *slurmtest.Cluster, program, dir string, env []string) {
	b.Helper()
	real = slurmtest.Start(b, o)
	dir, err := os.MkdirTemp(real.Work, "speed-")
	require.NoError(b, err)
	program = filepath.Join(dir, "megatron-ops")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(b, err, "%s", out)
	env = append(real.Environ(), "MEGATRON_OPS_STATE_DIR="+filepath.Join(dir, "state"), "MEGATRON_OPS_CLUSTER=slurm")
	return real, program, dir, env
}

// BenchmarkSubmit submits the same script with the program and with sbatch, in turns.
// The program's overhead is the median of the pairs' differences.
func BenchmarkSubmit(b *testing.B) {
	real, program, dir, env := newBench(b, slurmtest.Options{})
	require.NoError(b, os.MkdirAll(filepath.Join(dir, ".venv"), 0o755))
	require.NoError(b, os.WriteFile(filepath.Join(dir, "train.py"), nil, 0o644))
	words := []string{"--nodes", "1", "--gpus-per-node", "0", "--time", "5", "--begin", "now+2hours", "--worktree", dir, "--script", "train.py", "--name", "speed"}
	script, err := exec.Command(program, append([]string{"render"}, words...)...).Output()
	require.NoError(b, err)
	file := filepath.Join(dir, "speed.sbatch")
	require.NoError(b, os.WriteFile(file, script, 0o644))
	ours := append(append([]string{program, "submit"}, words...), "--yes", "-o", "json")
	took(b, env, ours...) // makes the store
	var with, without, added []time.Duration
	for b.Loop() {
		w := took(b, env, ours...)
		o := took(b, env, "sbatch", "--parsable", "--chdir="+dir, file)
		with, without, added = append(with, w), append(without, o), append(added, w-o)
	}
	b.ReportMetric(middle(with), "ms/submit")
	b.ReportMetric(middle(without), "ms/sbatch")
	b.ReportMetric(middle(added), "ms-added")
	b.ReportMetric(busy(b, env, ours...), "cpu-ms/submit")
	_, err = real.Run(b.Context(), "scancel", "--name=speed")
	require.NoError(b, err)
}

// BenchmarkListTenThousand lists 10,000 pending jobs with the program, compared with
// the squeue that it runs.
func BenchmarkListTenThousand(b *testing.B) {
	real, program, dir, env := newBench(b, slurmtest.Options{Conf: "MaxArraySize=10001\n"})
	out, err := real.Run(b.Context(), "sbatch", "--parsable", "--hold", "--array=1-10000", "--output=/dev/null", "--chdir="+dir, "--wrap=true")
	require.NoError(b, err, "%s", out)
	var with, without, added []time.Duration
	for b.Loop() {
		w := took(b, env, program, "list", "--user", "all", "-o", "json")
		o := took(b, env, "squeue", "--noheader", "--array", "--states=all", "--format="+slurm.QueueFormat("\x1f2345678901AB\x1f"))
		with, without, added = append(with, w), append(without, o), append(added, w-o)
	}
	b.ReportMetric(middle(with), "ms/list")
	b.ReportMetric(middle(without), "ms/squeue")
	b.ReportMetric(middle(added), "ms-added")
	b.ReportMetric(busy(b, env, program, "list", "--user", "all", "-o", "json"), "cpu-ms/list")
	_, err = real.Run(b.Context(), "scancel", out)
	require.NoError(b, err)
}

// BenchmarkStatus queries one job, compared with the squeue that it runs, and starts
// the program for a job id that needs none.
func BenchmarkStatus(b *testing.B) {
	real, program, dir, env := newBench(b, slurmtest.Options{})
	id, err := real.Run(b.Context(), "sbatch", "--parsable", "--hold", "--output=/dev/null", "--chdir="+dir, "--wrap=true")
	require.NoError(b, err)
	var with, without, added []time.Duration
	for b.Loop() {
		w := took(b, env, program, "status", id, "-o", "json")
		o := took(b, env, "squeue", "--noheader", "--jobs="+id) + took(b, env, "squeue", "--noheader", "--jobs="+id, "--Format=StdOut:1024")
		with, without, added = append(with, w), append(without, o), append(added, w-o)
	}
	b.ReportMetric(middle(with), "ms/status")
	b.ReportMetric(middle(without), "ms/squeue")
	b.ReportMetric(middle(added), "ms-startup")
	b.ReportMetric(busy(b, env, program, "status", id, "-o", "json"), "cpu-ms/status")
	_, err = real.Run(b.Context(), "scancel", id)
	require.NoError(b, err)
}
