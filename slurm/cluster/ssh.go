package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// SSHOptions tell how to reach a login node. Everything else comes from the person's
// ssh_config: jump hosts, keys, agents, shared connections.
type SSHOptions struct {
	// Host is a host name of ssh_config, a DNS name or an address.
	Host string
	// User is the login name; empty: from ssh_config.
	User string
	// Config is an ssh_config that replaces the person's; may be empty.
	Config string
	// ControlDir is a private directory with a short path for sockets of shared
	// connections, which stay open for a minute; empty: from ssh_config.
	ControlDir string
	// Env is exported on the host before every command, such as SLURM_CONF.
	Env []string
	// Bin is a folder on the host that is put in front of PATH; may be empty.
	Bin string
	// SyncTo is the folder on the host that a sync copies trees into. SyncExclude are
	// patterns, in the form of .gitignore, of files that a sync leaves out. Both may be
	// empty.
	SyncTo      string
	SyncExclude []string
}

// The forms of host and user names. Neither can be mistaken for an option by ssh, nor
// be interpreted by the shell of a proxy command.
var (
	hostForm = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_.:%-]*$`)
	userForm = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_.@-]*$`)
)

// NewSSH returns the Slurm of a login node, reached through the system's OpenSSH. A
// remote command travels as a script on ssh's standard input, with every word quoted.
// Nothing of a job appears on ssh's command line.
func NewSSH(name string, o SSHOptions) (*CLI, error) {
	if !hostForm.MatchString(o.Host) {
		return nil, lang.Text{
			EN: "cluster %s: host %q is not a host name; use a name from ssh_config, a DNS name or an address",
			ZH: "集群 %s：%q 不是主机名；请用 ssh_config 中的名称、DNS 名或地址",
		}.Err(name, o.Host)
	}
	if o.User != "" && !userForm.MatchString(o.User) {
		return nil, lang.Text{EN: "cluster %s: user %q is not a login name", ZH: "集群 %s：用户 %q 不是登录名"}.Err(name, o.User)
	}
	r := &sshRunner{o, os.Environ}
	return &CLI{
		name: name, kind: "ssh", meter: new(Meter), columns: new(detailColumns), runner: r,
		// Jobs inherit the host's environment, never this machine's.
		Environ: func() []string { return nil },
		mkdir:   mkdirBy(r),
	}, nil
}

// sshRunner runs commands on another host.
type sshRunner struct {
	SSHOptions
	// environ returns the environment of ssh and rsync on this machine: os.Environ, or a test's.
	environ func() []string
}

// args returns the command line of ssh that runs the command remote on the host.
func (s *sshRunner) args(remote string) []string { return append(s.options(), "--", s.Host, remote) }

func (s *sshRunner) options() []string {
	args := []string{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"}
	if s.Config != "" {
		args = append(args, "-F", s.Config)
	}
	if s.ControlDir != "" {
		args = append(args, "-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", "ControlPath="+filepath.Join(s.ControlDir, "%C"))
	}
	if s.User != "" {
		args = append(args, "-l", s.User)
	}
	return args
}

// remoteScript returns the script for the host's shell. First the script prints hello
// on standard error, because otherwise a failure of ssh looks the same as a command
// that exits with 255. The rest of the script is in braces, which a shell reads to the
// end before it runs anything: a script that is cut off does nothing, whereas half a
// here-document would be half a job. Where the host lacks the command, the script prints
// hello once more: then certainly nothing was run.
func remoteScript(c command, exports []string, bin, hello string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "echo %s >&2\n{\n", hello)
	if bin != "" {
		fmt.Fprintf(&b, "export PATH=%s:\"$PATH\"\n", shellword.POSIX(bin))
	}
	for _, entry := range append(exports, c.env...) {
		name, value, _ := strings.Cut(entry, "=")
		if envName.MatchString(name) {
			fmt.Fprintf(&b, "export %s=%s\n", name, shellword.POSIX(value))
		}
	}
	if c.dir != "" {
		fmt.Fprintf(&b, "cd -- %s || exit 72\n", shellword.POSIX(c.dir))
	}
	fmt.Fprintf(&b, "command -v %s >/dev/null 2>&1 || { echo %s >&2; exit 127; }\n", shellword.POSIX(c.argv[0]), hello)
	for i, word := range c.argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(shellword.POSIX(word))
	}
	if c.stdin == "" {
		b.WriteString(" </dev/null\n}\n")
		return b.String()
	}
	end := rand.Text() // a random line, which no script contains
	fmt.Fprintf(&b, " <<'%s'\n%s\n%s\n}\n", end, strings.TrimSuffix(c.stdin, "\n"), end)
	return b.String()
}

var envName = lazy.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (s *sshRunner) run(ctx context.Context, c command) (result, error) {
	if c.limit == 0 {
		c.limit = commandLimit + 10*time.Second // extra time for the connection
	}
	if strings.Contains(c.stdin, "\x00") {
		return result{}, &slurm.Error{Op: c.argv[0], Kind: slurm.Rejected, Msg: lang.Text{EN: "the script holds a NUL character", ZH: "脚本中含有 NUL 字符"}}
	}
	hello := rand.Text()
	r, err := localRunner{}.run(ctx, command{
		argv: s.args("exec /bin/sh -s"), env: s.environ(), limit: c.limit, held: c.held,
		stdin: remoteScript(c, s.Env, s.Bin, hello),
	})
	// The text before hello is banners and warnings of ssh.
	_, after, connected := strings.Cut(r.stderr, hello+"\n")
	if !connected {
		said := oneLine(r.stderr)
		if err != nil {
			said = err.Error()
		}
		words := lang.Same(said)
		if said == "" {
			words = lang.Text{EN: "the connection ended without any message", ZH: "连接中断，没有任何输出"}
		}
		fix := lang.Text{EN: "try `%s` by hand: it must work without a question", ZH: "请手动执行 `%s`：应能无交互成功"}
		return r, &slurm.Error{Op: "ssh " + s.Host, Kind: sshKind(said), Msg: words, Fix: fix.With(s.byHand("true"))}
	}
	r.stderr, r.host = after, s.Host
	if err == nil && r.code == 72 && after != "" && strings.Contains(after, "cd:") {
		return r, &slurm.Error{Op: c.argv[0], Kind: slurm.Rejected, Msg: lang.Text{EN: "working directory: %s", ZH: "工作目录：%s"}.With(strings.TrimSpace(after))}
	}
	if err == nil && r.code == 255 && strings.Contains(after, "onnection") && !strings.Contains(after, "sbatch:") {
		return r, &slurm.Error{Op: "ssh " + s.Host, Kind: slurm.Unreachable, Msg: lang.Same(strings.TrimSpace(after))}
	}
	if err == nil && r.code == 127 && strings.HasSuffix(after, hello+"\n") {
		return r, &slurm.Error{
			Op: c.argv[0], Kind: slurm.Missing, Msg: lang.Text{EN: "there is no %s on the PATH of a non-interactive login on %s", ZH: "%s 不在 PATH 中（%s 的非交互登录）"}.With(c.argv[0], s.Host),
			Fix: lang.Text{
				EN: "name the folder of Slurm's commands on %s as slurm_bin of this cluster, or put it on the PATH there: `%s` must find it",
				ZH: "请在该集群的 slurm_bin 中给出 %s 上 Slurm 命令所在的目录，或将其加入那里的 PATH：`%s` 应能找到它",
			}.With(s.Host, s.byHand("command -v "+c.argv[0])),
		}
	}
	if err == nil && r.code == 127 {
		return r, &slurm.Error{Op: c.argv[0], Kind: slurm.Broken, Msg: lang.Same(strings.TrimSpace(after))}
	}
	return r, err
}

// byHand returns the command with which a person tries a command on the host.
func (s *sshRunner) byHand(command string) string {
	words := []string{"ssh"}
	if s.Config != "" {
		words = append(words, "-F", s.Config)
	}
	if s.User != "" {
		words = append(words, "-l", s.User)
	}
	return strings.Join(append(words, s.Host, command), " ")
}

// oneLine joins the lines of ssh, which frames its warnings in @.
func oneLine(text string) string {
	var said []string
	for line := range strings.Lines(text) {
		if line = strings.Trim(line, "@ \t\r\n"); line != "" {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

// sshKind distinguishes a refused login from an unreachable host.
func sshKind(said string) slurm.ErrorKind {
	for _, word := range []string{"Permission denied", "Host key verification failed", "Too many authentication failures"} {
		if strings.Contains(said, word) {
			return slurm.Denied
		}
	}
	return slurm.Unreachable
}
