package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// clusterBehind returns a cluster behind a fake ssh, which runs body before the shell
// that reads the script, or in its place.
func clusterBehind(t *testing.T, o SSHOptions, body string) *CLI {
	t.Helper()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/bash\n"+body+"\nexec /bin/sh -s\n"), 0o755))
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	o.Host = "login"
	c, err := NewSSH("far", o)
	require.NoError(t, err)
	return c
}

// Errors of ssh are distinguished: a refused login, an unreachable host, a broken
// connection, a missing folder, a missing command.
func TestWhatGoesWrongOverSSH(t *testing.T) {
	for _, c := range []struct {
		name, body string
		command    command
		kind       slurm.ErrorKind
		says       string
	}{
		{"refused", "echo 'alice@login: Permission denied (publickey).' >&2; exit 255", command{argv: []string{"squeue"}}, slurm.Denied, "Permission denied"},
		{"another key", "echo 'Host key verification failed.' >&2; exit 255", command{argv: []string{"squeue"}}, slurm.Denied, "Host key"},
		{"a changed key", "printf '@@@@\\r\\n@  WARNING: IT HAS CHANGED!  @\\r\\n@@@@\\r\\nHost key verification failed.\\r\\n' >&2; exit 255", command{argv: []string{"squeue"}}, slurm.Denied, "ssh login: WARNING: IT HAS CHANGED!; Host key verification failed."},
		{"not there", "echo 'ssh: Could not resolve hostname login' >&2; exit 255", command{argv: []string{"squeue"}}, slurm.Unreachable, "Could not resolve"},
		{"silent", "exit 255", command{argv: []string{"squeue"}}, slurm.Unreachable, "the connection ended without any message"},
		{"broke off", "", command{argv: []string{"sh", "-c", "echo 'Connection to login closed by remote host.' >&2; exit 255"}}, slurm.Unreachable, "closed by remote host"},
		{"no folder", "", command{argv: []string{"true"}, dir: "/nosuch/folder"}, slurm.Rejected, "working directory"},
		{"no command", "", command{argv: []string{"nosuchcommand"}}, slurm.Missing, "there is no nosuchcommand on the PATH of a non-interactive login on login"},
		{"no command behind it", "", command{argv: []string{"sh", "-c", "nosuchcommand"}}, slurm.Broken, "not found"},
		{"half a script", "", command{argv: []string{"cat"}, stdin: "a\x00b"}, slurm.Rejected, "NUL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := clusterBehind(t, SSHOptions{}, c.body).run(t.Context(), c.command)
			var e *slurm.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.kind, e.Kind, "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
	_, err := clusterBehind(t, SSHOptions{Config: "/etc/far"}, "exit 255").run(t.Context(), command{argv: []string{"squeue"}})
	require.Equal(t, "try `ssh -F /etc/far login true` by hand: it must work without a question", slurm.FixOf(err).EN)
	// Advice about a missing slurm.conf is about the host.
	_, err = clusterBehind(t, SSHOptions{}, "").ask(t.Context(), "list", "sh", "-c", "echo 'squeue: error: fetch_config: DNS SRV lookup failed' >&2; exit 1")
	require.Contains(t, slurm.FixOf(err).EN, "Slurm's commands on login have no slurm.conf")
	require.NotContains(t, slurm.FixOf(err).EN, "this machine")
	// A command's own exit status is a result, whatever it is.
	for _, code := range []string{"1", "72", "255"} {
		r, err := clusterBehind(t, SSHOptions{}, "echo a banner >&2").run(t.Context(), command{argv: []string{"sh", "-c", "echo sbatch: error: Connection refused >&2; exit " + code}})
		require.NoError(t, err)
		require.Equal(t, "sbatch: error: Connection refused\n", r.stderr, "the banner is none of it")
		require.Equal(t, code, map[int]string{1: "1", 72: "72", 255: "255"}[r.code])
	}
}

// The configured folder comes first in the host's PATH, and arguments stay whole.
func TestCommandsOverSSH(t *testing.T) {
	slurmBin := filepath.Join(t.TempDir(), "a b")
	require.NoError(t, os.MkdirAll(slurmBin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(slurmBin, "squeue"), []byte("#!/bin/sh\necho \"here $SLURM_CONF $1\"; cat; pwd\n"), 0o755))
	c := clusterBehind(t, SSHOptions{Bin: slurmBin, Env: []string{"SLURM_CONF=/etc/a b.conf", "not a name=x"}}, "")
	dir := t.TempDir()
	r, err := c.run(t.Context(), command{argv: []string{"squeue", "$(id); 'x'"}, stdin: "line one\nEOF\n", dir: dir})
	require.NoError(t, err)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "here /etc/a b.conf $(id); 'x'\nline one\nEOF\n"+dir+"\n", r.stdout)
}

// The errors of a launch as another user that cannot start.
func TestALaunchThroughSudoThatCannotBegin(t *testing.T) {
	for said, want := range map[result]string{
		{code: 1, stderr: "sh: cannot fork\n"}: "cannot fork",
		{stdout: "4711\n"}:                     "exit status 0 without any output",
		{stdout: "4711 /tmp/said\n"}:           "",
	} {
		s := &sudoRunner{inner: &answeringRunner{answers: []result{said}, errs: []error{nil}}, login: "alice", helper: Helper{Program: "/usr/bin/megatron-ops"}}
		p, err := s.startLaunch(t.Context(), "launch in 7", slurm.Launch{Job: "7", Dir: "/w"}, "/w/logs/x", nil)
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "4711", p.pid)
		require.Equal(t, "/tmp/said", p.stderr)
		argv := s.inner.(*answeringRunner).asked[0] //nolint:forcetypeassert // made so
		require.Equal(t, []string{"sh", "-c", startDetached, "sh", "sudo"}, argv[:5])
	}
}
