package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

func TestSSHConforms(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	config := real.SSHD(t)
	control, err := os.MkdirTemp("/tmp", "ctl")
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = exec.Command("ssh", "-F", config, "-o", "ControlPath="+control+"/%C", "-l", "alice", "-O", "exit", "login").Run()
		_ = os.RemoveAll(control)
	})
	c, err := cluster.NewSSH("far", cluster.SSHOptions{Host: "login", User: "alice", Config: config, ControlDir: control, Bin: real.Bin()})
	require.NoError(t, err)
	dir, err := os.MkdirTemp(real.Work, "ssh-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777))
	s := site{backend: c, dir: dir, environ: func() []string { return []string{"SLURM_CONF=" + real.Conf()} }}
	conform(t, s)

	t.Run("the job is the login's own, and another's cannot be cancelled", func(t *testing.T) {
		id := s.submit(t, "--time=5 --hold --output=/dev/null", "true")
		j, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "alice", j.User)
		bob, err := cluster.NewSSH("far", cluster.SSHOptions{Host: "login", User: "bob", Config: config, Bin: real.Bin()})
		require.NoError(t, err)
		require.ErrorIs(t, bob.Cancel(t.Context(), id), slurm.ErrDenied)
	})
	t.Run("through a jump host, with a key that an agent holds", func(t *testing.T) {
		text, err := os.ReadFile(config)
		require.NoError(t, err)
		key := regexp.MustCompile(`IdentityFile (.*)`).FindStringSubmatch(string(text))[1]
		known := regexp.MustCompile(`UserKnownHostsFile (.*)`).FindStringSubmatch(string(text))[1]
		port := regexp.MustCompile(`Port (.*)`).FindStringSubmatch(string(text))[1]
		socket := control + "/agent"
		agent := exec.Command("ssh-agent", "-D", "-a", socket)
		require.NoError(t, agent.Start())
		t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
		require.Eventually(t, func() bool { _, err := os.Stat(socket); return err == nil }, 5*time.Second, 20*time.Millisecond)
		t.Setenv("SSH_AUTH_SOCK", socket)
		require.NoError(t, exec.Command("ssh-add", "-q", key).Run())
		jump := control + "/config"
		require.NoError(t, os.WriteFile(jump, fmt.Appendf(nil, "Host inside\n  ProxyJump gate\nHost gate inside\n  HostName 127.0.0.1\n  Port %s\n  User alice\n  UserKnownHostsFile %s\n", port, known), 0o600))
		inside, err := cluster.NewSSH("inside", cluster.SSHOptions{Host: "inside", Config: jump, Bin: real.Bin()})
		require.NoError(t, err)
		parts, err := inside.Partitions(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, parts)
	})
	t.Run("a login that is refused, and a host that is not there", func(t *testing.T) {
		root, err := cluster.NewSSH("far", cluster.SSHOptions{Host: "login", User: "nobody", Config: config})
		require.NoError(t, err)
		_, err = root.Jobs(t.Context(), slurm.Filter{})
		require.ErrorIs(t, err, slurm.ErrDenied)
		gone, err := cluster.NewSSH("gone", cluster.SSHOptions{Host: "127.0.0.1", Config: "/dev/null"})
		require.NoError(t, err)
		gone.Environ = func() []string { return nil }
		_, err = gone.Jobs(t.Context(), slurm.Filter{})
		require.Error(t, err)
		require.NotEmpty(t, slurm.FixOf(err).EN)
	})
}

func TestSSHTakesNoOptionsForHosts(t *testing.T) {
	for _, host := range []string{"", "-oProxyCommand=touch /tmp/pwned", "a b", "a;b", "$(x)", "a\nb", "a'b", "--"} {
		_, err := cluster.NewSSH("x", cluster.SSHOptions{Host: host})
		require.ErrorContains(t, err, "is not a host name", host)
	}
	_, err := cluster.NewSSH("x", cluster.SSHOptions{Host: "login", User: "-oX"})
	require.ErrorContains(t, err, "is not a login name")
}
