package slurmtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// SSHD starts a real sshd on loopback, in which alice and bob may log in with one key,
// and returns an ssh_config with the host "login". It ends with the test.
func (c *Cluster) SSHD(t testing.TB) (config string) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	program, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		skip(t, "an sshd", "apt-get install openssh-server")
	}
	dir, err := os.MkdirTemp(c.Dir, "ssh-")
	ok(err)
	ok(os.Chmod(dir, 0o755))
	ok(os.MkdirAll("/run/sshd", 0o755))
	for _, key := range []string{"host", "user"} {
		ok(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(err)
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is one
	ok(l.Close())
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		ok(os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	// SetEnv is the only setting that a site would make; BASH_ENV and rc files play no
	// part.
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
`, port, dir, c.Conf()))
	hostKey, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	ok(err)
	known := write("known_hosts", fmt.Sprintf("[127.0.0.1]:%d %s", port, hostKey))
	config = write("ssh_config", fmt.Sprintf(`Host login
  HostName 127.0.0.1
  Port %d
  User alice
  IdentityFile %s/user
  IdentitiesOnly yes
  UserKnownHostsFile %s
`, port, dir, known))
	cmd := exec.Command(program, "-D", "-e", "-f", server)
	log, err := os.Create(filepath.Join(dir, "sshd.log"))
	ok(err)
	cmd.Stderr = log
	cmd.SysProcAttr = endedWithUs()
	ok(cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ok(c.await(t.Context(), "sshd", 10*time.Second, func() bool { return accepts("tcp", fmt.Sprintf("127.0.0.1:%d", port)) }))
	return config
}
