package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// withoutSlurm returns a folder of this machine's programs without Slurm's, which are
// in another folder.
func withoutSlurm(t *testing.T, bin, dir string) (tools, slurms string) {
	t.Helper()
	tools, slurms = filepath.Join(dir, "tools"), filepath.Join(dir, "opt", "slurm", "bin")
	commands := []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun", "sprio", "sshare", "sacctmgr", "sdiag"}
	link := func(from, to string, takes func(name string) bool) {
		require.NoError(t, os.MkdirAll(to, 0o755)) //nolint:gosec // of everybody's
		entries, err := os.ReadDir(from)
		require.NoError(t, err)
		for _, e := range entries {
			if takes(e.Name()) {
				require.NoError(t, os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
			}
		}
	}
	isSlurms := func(name string) bool { return slices.Contains(commands, name) }
	link(bin, slurms, isSlurms)
	link("/usr/bin", tools, func(name string) bool { return !isSlurms(name) })
	return tools, slurms
}

// A Slurm whose commands are not on the PATH is used where the configuration says they
// are: by commands here, in the jobs of either kind, by doctor, and for sudo's rule. In
// a job, the site's and the specification's own folders come first.
func TestASlurmOnNoPathIsUsed(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	dir, err := os.MkdirTemp(real.Work, "place-")
	require.NoError(t, err)
	jwt, err := real.Token(t.Context(), "root")
	require.NoError(t, err)
	token, file, tree := filepath.Join(dir, "token"), filepath.Join(dir, "megatron-ops.yaml"), filepath.Join(dir, "tree")
	require.NoError(t, os.WriteFile(token, []byte(jwt), 0o600))
	tools, bin := withoutSlurm(t, real.Bin(), dir)
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `cluster: here
clusters:
  here: {kind: cli, slurm_bin: %[1]s, slurm_conf: %[2]s, site: {path: [/opt/site/bin]}}
  api: {kind: rest, slurm_bin: %[1]s, url: %[3]q, token_file: %[4]s, site: {path: [/opt/site/bin]}}
`, bin, real.Conf(), real.REST, token), 0o600))
	require.NoError(t, os.Mkdir(tree, 0o755)) //nolint:gosec // the job's
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.sh"), []byte("echo \"srun is $(command -v srun) in $PATH\"\n"), 0o600))
	t.Setenv("PATH", tools)
	t.Setenv("SLURM_CONF", "")
	t.Setenv("MEGATRON_OPS_CONFIG", file)
	t.Setenv("MEGATRON_OPS_STATE_DIR", filepath.Join(dir, "state"))
	p := person{t: t, tree: tree}

	for _, name := range []string{"here", "api"} {
		var sub struct {
			JobID    string   `json:"job_id"`
			LogPaths []string `json:"log_paths"`
		}
		p.must(0, &sub, "submit", "--yes", "--cluster", name, "--name", "place", "--nodes", "1", "--gpus-per-node", "1", "--gpu", "a100", "--time", "5",
			"--partition", "dev", "--launcher", "custom", "--launcher-argv", "bash", "--script", "train.sh", "--no-guards", "--no-monitor",
			"--path", "/opt/mine/bin", "--worktree", tree)
		t.Setenv("MEGATRON_OPS_CLUSTER", name)
		p.until(sub.JobID, "COMPLETED")
		text, err := os.ReadFile(sub.LogPaths[0])
		require.NoError(t, err)
		require.Contains(t, string(text), "srun is "+bin+"/srun in /opt/mine/bin:/opt/site/bin:"+bin+":", name)
	}
	_, said := p.do("doctor")
	require.Contains(t, said, "cli, "+bin)
	h := helperOf(config.Cluster{SlurmBin: bin, SlurmConf: real.Conf()})
	require.Equal(t, []string{bin, real.Conf()}, []string{h.SlurmBin, h.SlurmConf})
}
