package cluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	c.Environ, c.Helper = real.Environ, helper(t, real)
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

	id := alice.submit(t, "--time=5 --output=logs/%j.out", `echo "$(id -un) $HOME ${SLACK_BOT_TOKEN-no token}"; sleep 60`, func(sub *slurm.Submission) {
		sub.LogDir = "logs"
	})
	j := alice.state(t, id, slurm.Running)
	require.Equal(t, "alice", j.User)
	require.Equal(t, "research", j.Account)
	require.Contains(t, alice.log(t, "logs/"+string(id)+".out"), "alice /home/alice no token\n")
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

// A login node whose own name does not resolve makes sudo warn before every command.
// Such a warning is neither a refusal nor a message of Slurm.
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
}

// helper returns the test's own binary as the program that sudo starts, in a place
// where everybody may run it and only root may change it.
func helper(t *testing.T, real *slurmtest.Cluster) cluster.Helper {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir, err := os.MkdirTemp(real.Dir, "helper-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "megatron-ops")
	// Another program copies it: while a child of another test holds a file open that
	// this process has written, the file cannot be started.
	out, err := exec.CommandContext(t.Context(), "install", "-m", "755", self, program).CombinedOutput()
	require.NoError(t, err, string(out))
	return cluster.Helper{Program: program, SlurmBin: real.Bin(), SlurmConf: real.Conf()}
}

func TestTheRuleOfSudosNamesTheHelperAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "megatron-ops")
	require.NoError(t, os.WriteFile(program, nil, 0o755))
	h := cluster.Helper{Program: program, SlurmBin: "/opt/slurm/bin", SlurmConf: "/etc/slurm/a.conf"}
	rule, err := cluster.Sudoers("bot", "users", []cluster.Helper{h, h, {Program: program}})
	require.NoError(t, err)
	require.Equal(t, "Cmnd_Alias MEGATRON_OPS = "+program+" as-user --slurm-bin /opt/slurm/bin --slurm-conf /etc/slurm/a.conf, "+program+" as-user\n"+
		"Defaults!MEGATRON_OPS env_reset, !setenv\nbot ALL=(%users) NOPASSWD:NOSETENV: MEGATRON_OPS\n", rule)
	if visudo, err := exec.LookPath("visudo"); err == nil {
		file := filepath.Join(t.TempDir(), "rule")
		require.NoError(t, os.WriteFile(file, []byte(rule), 0o440))
		out, err := exec.Command(visudo, "-c", "-f", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	for _, path := range []string{"/opt/a b/bin", "/opt/x, ALL", "relative", "/opt/!y"} {
		_, err := cluster.Sudoers("bot", "users", []cluster.Helper{{Program: program, SlurmBin: path}})
		require.ErrorContains(t, err, "cannot be named in a sudo rule", path)
	}
	// sudo must not run a file that others may change.
	require.NoError(t, os.Chmod(program, 0o775))
	_, err = cluster.Sudoers("bot", "users", []cluster.Helper{h})
	require.ErrorContains(t, err, "users other than root can change "+program)
	require.NoError(t, os.Chmod(program, 0o755))
	require.NoError(t, os.Chown(program, 4711, 0))
	_, err = cluster.Sudoers("bot", "users", []cluster.Helper{h})
	require.ErrorContains(t, err, "users other than root can change "+program)
	require.NoError(t, os.Chown(program, 0, 0))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(program, link))
	_, err = cluster.Sudoers("bot", "users", []cluster.Helper{{Program: link}})
	require.ErrorContains(t, err, "users other than root can change "+link)
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err = cluster.Sudoers("bot", "users", []cluster.Helper{h})
	require.ErrorContains(t, err, "users other than root can change "+dir)
}

// The helper runs Slurm's commands by their absolute paths, and its request cannot add
// a variable that makes a command load code.
func TestTheHelperRunsNothingElse(t *testing.T) {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "squeue"), []byte("#!/bin/sh\nenv | sort; echo \"$@\"; cat; exit 7\n"), 0o755))
	t.Setenv("HOME", "/home/alice")
	t.Setenv("LD_LIBRARY_PATH", "/attack")
	run := func(request string, words ...string) (code int, said, refused string) {
		var out, err strings.Builder
		code = cluster.AsUser(append([]string{"--slurm-bin", bin, "--slurm-conf", "/etc/slurm/slurm.conf"}, words...), strings.NewReader(request), &out, &err)
		return code, out.String(), err.String()
	}
	code, said, _ := run(`{"argv":["squeue","-j","4711; id"],"stdin":"#!/bin/bash\n","env":["LD_PRELOAD=/tmp/x.so","SLURM_CONF=/tmp/x.conf","PATH=/tmp","BASH_ENV=/tmp/x","TZ=UTC","HOME=/tmp"]}`)
	require.Equal(t, 7, code)
	for _, part := range []string{"TZ=UTC", "SLURM_CONF=/etc/slurm/slurm.conf", "HOME=/home/alice", "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "-j 4711; id", "#!/bin/bash"} {
		require.Contains(t, said, part)
	}
	for _, attack := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "x.conf", "BASH_ENV", "HOME=/tmp"} {
		require.NotContains(t, said, attack)
	}
	for _, request := range []string{
		`{"argv":["sh","-c","id"]}`, `{"argv":["/tmp/squeue"]}`, `{"argv":["../squeue"]}`, `{"argv":["mkdir","/x"]}`, `{"argv":["mkdir","-p","-m","--"]}`,
		`{"argv":["sh","-p","--","/x"]}`,
		`{"argv":[]}`, `{}`, `squeue`, ``,
	} {
		code, said, refused := run(request)
		require.Equal(t, 126, code, request)
		require.Empty(t, said, request)
		require.Contains(t, refused, "megatron-ops as-user: ", request)
	}
	code, _, _ = run(`{"argv":["squeue"]}`, "more")
	require.Equal(t, 126, code)
	logs := filepath.Join(t.TempDir(), "logs")
	code, _, _ = run(`{"argv":["mkdir","-p","--","` + logs + `"]}`)
	require.Equal(t, 0, code)
	require.DirExists(t, logs)
	code, _, refused := run(`{"argv":["squeue"]}` + strings.Repeat(" ", 16<<20))
	require.Equal(t, 126, code)
	require.Contains(t, refused, "is longer than")
}
