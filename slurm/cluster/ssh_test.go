package cluster_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// sshd starts a real sshd on loopback, in which alice and bob may log in with
// one key, and returns an ssh_config whose host "login" is it.
func sshd(t *testing.T, real *slurmtest.Cluster) (config string) {
	t.Helper()
	program, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI=true promises an sshd: apt-get install openssh-server")
		}
		t.Skip("no sshd to test with: apt-get install openssh-server")
	}
	dir, err := os.MkdirTemp(real.Dir, "ssh-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.MkdirAll("/run/sshd", 0o755))
	for _, key := range []string{"host", "user"} {
		require.NoError(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is one
	require.NoError(t, l.Close())
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	// BASH_ENV and rc files stay out of it: SetEnv is all that a site would set.
	server := write("sshd_config", fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %[2]s/host
PidFile none
AuthorizedKeysFile %[2]s/user.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM yes
AllowUsers alice bob
SetEnv SLURM_CONF=%[3]s
`, port, dir, real.Conf()))
	hostKey, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	require.NoError(t, err)
	known := write("known_hosts", fmt.Sprintf("[127.0.0.1]:%d %s", port, hostKey))
	config = write("ssh_config", fmt.Sprintf(`Host login
  HostName 127.0.0.1
  Port %d
  IdentityFile %s/user
  IdentitiesOnly yes
  UserKnownHostsFile %s
`, port, dir, known))
	cmd := exec.Command(program, "-D", "-e", "-f", server)
	log, err := os.Create(filepath.Join(dir, "sshd.log"))
	require.NoError(t, err)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
		}
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)
	return config
}

func TestSSHConforms(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	config := sshd(t, real)
	control, err := os.MkdirTemp("/tmp", "ctl")
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = exec.Command("ssh", "-F", config, "-o", "ControlPath="+control+"/%C", "-l", "alice", "-O", "exit", "login").Run()
		_ = os.RemoveAll(control)
	})
	c, err := cluster.NewSSH("far", cluster.SSHOptions{Host: "login", User: "alice", Config: config, ControlDir: control})
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
		bob, err := cluster.NewSSH("far", cluster.SSHOptions{Host: "login", User: "bob", Config: config})
		require.NoError(t, err)
		require.ErrorIs(t, bob.Cancel(t.Context(), id), slurm.ErrDenied)
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
		require.ErrorContains(t, err, "is no host name", host)
	}
	_, err := cluster.NewSSH("x", cluster.SSHOptions{Host: "login", User: "-oX"})
	require.ErrorContains(t, err, "is no login name")
}
