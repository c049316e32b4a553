package skills_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// stub writes a replacement for a command into dir.
func stub(t *testing.T, dir, name, script string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755))
}

// script runs a skill's script with bin first on the PATH, and returns its output and exit
// code.
func script(t *testing.T, bin, file string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(file, args...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestWaitForArtifactCancelsTheJob(t *testing.T) {
	bin := t.TempDir()
	stub(t, bin, "squeue", "echo RUNNING")
	stub(t, bin, "scancel", "echo cancelled $1")
	result := filepath.Join(bin, "metrics.json")
	require.NoError(t, os.WriteFile(result, []byte("{}"), 0o644))
	out, code := script(t, bin, "run-on-slurm/scripts/wait-for-artifact.sh", "77", result, "1")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "cancelled 77")

	stub(t, bin, "squeue", "exit 0")
	out, code = script(t, bin, "run-on-slurm/scripts/wait-for-artifact.sh", "77", filepath.Join(bin, "none"), "1")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "ended without")

	_, code = script(t, bin, "run-on-slurm/scripts/wait-for-artifact.sh")
	require.Equal(t, 2, code)
}

func TestFirstErrorSkipsConsequences(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rank0.err"), []byte("start\nNCCL Error: timeout\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rank3.err"), []byte("start\nTraceback (most recent call last):\nNCCL Error\n"), 0o644))
	for _, file := range []string{"diagnose-failures/scripts/first-error.sh", "ci-test-system/scripts/failing-ranks.sh"} {
		out, code := script(t, dir, file, dir)
		require.Equal(t, 0, code, out)
		require.Contains(t, out, "rank3.err:2:Traceback")
		require.NotContains(t, out, "rank0")
	}
	_, code := script(t, dir, "diagnose-failures/scripts/first-error.sh", t.TempDir())
	require.Equal(t, 1, code)
}

func TestStacksRequestsNoGPUs(t *testing.T) {
	bin := t.TempDir()
	stub(t, bin, "squeue", "echo 4")
	stub(t, bin, "srun", `printf '%s\n' "$@"`)
	out, code := script(t, bin, "slurm-user-guide/scripts/stacks.sh", "9", filepath.Join(bin, "out"))
	require.Equal(t, 0, code, out)
	for _, want := range []string{"--jobid=9", "--gres=gpu:0", "--overlap", "--nodes=4", "py-spy dump"} {
		require.Contains(t, out, want)
	}
}

func TestBatchScriptsReachTheLauncher(t *testing.T) {
	bin := t.TempDir()
	// One write, like scontrol: after head -n1 a second write would go to a closed pipe, and
	// pipefail would end the script.
	stub(t, bin, "scontrol", "cat <<'END'\nn1\nn2\nEND")
	stub(t, bin, "srun", `while [[ $1 == --* ]]; do shift; done; SLURM_NODEID=1 exec "$@"`)
	stub(t, bin, "docker", `[ "$1" = stop ] || printf '%s\n' "$@"`)
	stub(t, bin, "python3", `printf '%s\n' "$@"`)
	t.Setenv("SLURM_JOB_NODELIST", "n[1-2]")
	t.Setenv("SLURM_JOB_ID", "12")
	t.Setenv("SLURM_NNODES", "2")
	t.Setenv("SLURM_GPUS_ON_NODE", "8")
	t.Setenv("HOST_WORKSPACE", "/shared/me")
	t.Setenv("SLURM_SUBMIT_DIR", bin)
	for file, wants := range map[string][]string{
		"docker-on-slurm/scripts/megatron_docker.slurm": {"--network\nhost", "--node-rank=1", "--nnodes=2", "--master-addr=n1", "--lr\n1e-4 $HOME"},
		"slurm-user-guide/scripts/check-nodes.slurm":    {"--node-rank=1", "--nproc-per-node=8", "--master-addr=n1"},
	} {
		out, code := script(t, bin, "bash", file, "--lr", "1e-4 $HOME")
		require.Equal(t, 0, code, out)
		for _, want := range wants {
			require.Contains(t, out, want, file)
		}
	}
}

func TestScriptsPassShellcheck(t *testing.T) {
	tool, err := exec.LookPath("shellcheck")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI=true promises shellcheck: run .ci/setup")
		}
		t.Skip("shellcheck is not installed")
	}
	files, err := filepath.Glob("*/scripts/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	// SC2016: the single quotes are intended, because the nodes expand the variables.
	out, err := exec.Command(tool, append([]string{"-s", "bash", "-e", "SC2016"}, files...)...).CombinedOutput()
	require.NoError(t, err, string(out))
}
