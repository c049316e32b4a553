package cluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// TestActingForOthers submits as alice and bob on a cluster where accounts and
// limits bind.
func TestActingForOthers(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sudo"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI=true promises sudo: apt-get install sudo")
		}
		t.Skip("no sudo to test with: apt-get install sudo")
	}
	real := slurmtest.Start(t, slurmtest.Options{Enforce: true})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	dir, err := os.MkdirTemp(real.Work, "as-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777))
	as := func(login string) site {
		t.Helper()
		other, err := c.As(login)
		require.NoError(t, err)
		return site{backend: other, dir: dir, environ: real.Environ}
	}
	alice, bob := as("alice"), as("bob")

	id := alice.submit(t, "--time=5 --output=logs/%j.out", `id -un; echo "$HOME ${SLACK_BOT_TOKEN-no token}"; sleep 60`, func(sub *slurm.Submission) {
		sub.LogDir = "logs"
	})
	j := alice.state(t, id, slurm.Running)
	require.Equal(t, "alice", j.User)
	require.Equal(t, "research", j.Account)
	require.Contains(t, alice.log(t, "logs/"+string(id)+".out"), "alice\n/home/alice no token\n")
	info, err := os.Stat(filepath.Join(dir, "logs"))
	require.NoError(t, err)
	require.NotZero(t, info.Size())

	short := alice.submit(t, "--qos=short --gpus-per-node=4 --time=5 --output=logs/%j.out", "sleep 60")
	alice.state(t, short, slurm.Running)
	limits, err := c.Limits(t.Context(), "alice", "", "short")
	require.NoError(t, err)
	require.ElementsMatch(t, []slurm.Limit{
		{Of: "QOS short", Name: "MaxWallPJ", Max: 30},
		{Of: "alice under QOS short", Name: "MaxTRESPU", TRES: "gres/gpu", Max: 8, Used: 4},
	}, limits)
	require.NoError(t, alice.Cancel(t.Context(), short))

	require.ErrorIs(t, bob.Cancel(t.Context(), id), slurm.ErrDenied)
	require.NoError(t, alice.Cancel(t.Context(), id))
	alice.state(t, id, slurm.Cancelled)

	_, err = bob.Submit(t.Context(), slurm.Submission{Script: script("--account=research", "true"), Dir: dir})
	require.ErrorContains(t, err, "Invalid account")
	require.Contains(t, slurm.FixOf(err).EN, "accounts")
	_, err = bob.Submit(t.Context(), slurm.Submission{Script: script("--qos=urgent", "true"), Dir: dir})
	require.ErrorContains(t, err, "Invalid qos")
	_, err = alice.Submit(t.Context(), slurm.Submission{Script: script("--qos=short --time=60", "true"), Dir: dir})
	require.ErrorContains(t, err, "QOSMaxWallDurationPerJobLimit")
	require.Contains(t, slurm.FixOf(err).ZH, "时限")
	_, err = c.Submit(t.Context(), slurm.Submission{Script: script("--partition=nosuch", "true"), Dir: dir})
	require.ErrorContains(t, err, "invalid partition specified: nosuch")

	mine, err := alice.Jobs(t.Context(), slurm.Filter{User: "bob"})
	require.NoError(t, err)
	require.Empty(t, mine)
}

// A login node whose own name does not resolve makes sudo warn before every
// command: that is no refusal, and not Slurm's words.
func TestSudoThatWarns(t *testing.T) {
	sudo := filepath.Join(t.TempDir(), "sudo")
	t.Setenv("PATH", filepath.Dir(sudo)+":"+os.Getenv("PATH"))
	for said, check := range map[string]func(error){
		"sudo: unable to resolve host login1: Name or service not known\nsbatch: error: Batch job submission failed: Invalid account": func(err error) {
			require.ErrorContains(t, err, "Invalid account")
			require.NotContains(t, err.Error(), "resolve host")
			require.Contains(t, slurm.FixOf(err).EN, "accounts")
		},
		"sudo: unable to resolve host login1: Name or service not known\nsudo: a password is required": func(err error) {
			require.ErrorIs(t, err, slurm.ErrDenied)
			require.ErrorContains(t, err, "a password is required")
		},
	} {
		body := "#!/bin/sh\ncat >&2 <<'END'\n" + said + "\nEND\nexit 1\n"
		require.NoError(t, os.WriteFile(sudo, []byte(body), 0o755))
		alice, err := cluster.NewCLI("x").As("alice")
		require.NoError(t, err)
		_, err = alice.Submit(t.Context(), slurm.Submission{Script: script("--account=research", "true"), Dir: t.TempDir()})
		check(err)
	}
}

func TestNobodyBecomesRoot(t *testing.T) {
	c := cluster.NewCLI("x")
	token := func(context.Context) (string, error) { return "", nil }
	r, err := cluster.NewREST("x", "http://127.0.0.1:1", "alice", token)
	require.NoError(t, err)
	for _, login := range []string{"root", "slurm", "", "-u", "a b", "$(id)", "a;b", "x@y"} {
		_, err := c.As(login)
		require.Error(t, err, login)
		_, err = r.As(login, token)
		require.Error(t, err, login)
	}
	rule := cluster.Sudoers("bot", "users")
	require.Contains(t, rule, "bot ALL=(%users) NOPASSWD:SETENV: MEGATRON_OPS")
	require.NotContains(t, rule, "/bin/sh")
	if visudo, err := exec.LookPath("visudo"); err == nil {
		file := filepath.Join(t.TempDir(), "rule")
		require.NoError(t, os.WriteFile(file, []byte(rule), 0o440))
		out, err := exec.Command(visudo, "-c", "-f", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}
