package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// From a laptop: the worktree is copied to the cluster, a job runs the copy, and
// records which code that was.
func TestWorkFromALaptop(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	p := person{t: t, tree: t.TempDir()}
	sh := func(script string) {
		t.Helper()
		out, err := exec.Command("sh", "-ec", "cd '"+p.tree+"'; "+script).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	place, err := os.MkdirTemp(real.Work, "laptop-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(place, 0o777))
	there := filepath.Join(place, "src", filepath.Base(p.tree))
	sh(`mkdir runs; printf 'print("brought")\n' >train.py; printf 'runs/out\n' >.gitignore; printf 'x\n' >'sp ace'; git init -q; git add .
git -c user.name=a -c user.email=a@example.org commit -qm one; printf 'print("token", "changed")\n' >train.py`)
	require.NoError(t, os.WriteFile(filepath.Join(p.tree, "runs", "megatron-ops.yaml"), fmt.Appendf(nil,
		"cluster: far\nclusters:\n  far: {kind: ssh, host: login, ssh_config: %s, slurm_bin: %s, sync_to: %q, sync_exclude: [megatron-ops.yaml]}\n", real.SSHD(t), real.Bin(), filepath.Dir(there)), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(p.tree, "runs", "job.yaml"), []byte("name: far\nnodes: 1\ngpus_per_node: 1\ngpu: a100\npartition: dev\ntime: 5\nworktree: ..\nlauncher: custom\nlauncher_argv: [/usr/bin/python3]\nscript: train.py\n"), 0o644))
	t.Chdir(filepath.Join(p.tree, "runs"))
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())

	code, out := p.do("sync", "--dry-run")
	require.Zero(t, code, out)
	require.Contains(t, out, "far:"+there+" differs: 4 added, 0 changed, 0 deleted, ")
	require.Contains(t, out, "+ runs/job.yaml")
	require.Contains(t, out, "+ sp ace  2 B")
	require.NotContains(t, out, "megatron-ops.yaml")
	code, out = p.do("sync")
	require.Equal(t, 4, code, out)
	require.Contains(t, out, "this brings "+p.tree+" to far:"+there)
	require.Contains(t, out, "\n  + train.py")
	require.NoDirExists(t, there)

	code, out = p.do("submit", "-f", "job.yaml", "--sync")
	require.Equal(t, 4, code, out)
	require.Contains(t, out, "4 added, 0 changed, 0 deleted")
	require.Contains(t, out, "then this submits far to far: 1 node, 1 GPU")
	require.NoDirExists(t, there)

	var sub struct {
		JobID string `json:"job_id"`
		Sync  struct{ Brought bool }
	}
	p.must(0, &sub, "submit", "-f", "job.yaml", "--sync", "--yes")
	require.True(t, sub.Sync.Brought)
	p.until(sub.JobID, "COMPLETED")
	logs, err := filepath.Glob(filepath.Join(there, "logs", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, logs, "what a job writes stays where it is")

	var status struct {
		Source struct {
			Commit, Diff string
			Changed      bool
			BroughtBy    string `json:"brought_by"`
		}
		Spec struct{ Worktree string }
	}
	p.must(0, &status, "status", sub.JobID)
	require.Len(t, status.Source.Commit, 40)
	require.True(t, status.Source.Changed)
	require.Contains(t, status.Source.Diff, `+print("token", "changed")`)
	require.NotEmpty(t, status.Source.BroughtBy)
	require.Equal(t, there, status.Spec.Worktree)
	code, out = p.do("status", sub.JobID)
	require.Zero(t, code, out)
	require.Contains(t, out, "commit "+status.Source.Commit[:12]+", changed: +1 −1 lines, 2 untracked")
	code, out = p.do("status", sub.JobID, "-o", "yaml")
	require.Zero(t, code, out)
	require.Contains(t, out, "commit: "+status.Source.Commit)

	sh(`rm 'sp ace'`)
	code, out = p.do("sync", "--yes", "--lang", "zh")
	require.Zero(t, code, out)
	require.Contains(t, out, "新增 0，修改 0，删除 1")
	code, out = p.do("sync")
	require.Zero(t, code, out)
	require.Contains(t, out, "is as it is here")
	after, err := filepath.Glob(filepath.Join(there, "logs", "*"))
	require.NoError(t, err)
	require.Equal(t, logs, after)

	code, out = p.do("sync", "--cluster", "local", "--to", "/x")
	require.Equal(t, 2, code)
	require.Contains(t, out, "name a cluster of kind ssh")
	code, out = p.do("sync", "--to", "relative")
	require.Equal(t, 2, code)
	require.Contains(t, out, "is no absolute path of a folder")
}
