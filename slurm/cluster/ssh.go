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

// SSHOptions say how a login node is reached. All else is the person's
// ssh_config: jump hosts, keys, agents, shared connections.
type SSHOptions struct {
	// Host is a host of ssh_config, or a name or address.
	Host string
	// User is the login; empty: as ssh_config says.
	User string
	// Config is an ssh_config to use in place of the person's; may be empty.
	Config string
	// ControlDir is a directory, private and short, where connections are kept open
	// for a minute and shared; empty: as ssh_config says.
	ControlDir string
	// Env is exported on the host before every command, such as SLURM_CONF.
	Env []string
	// Bin is a folder of the host's, put before its PATH; may be empty.
	Bin string
	// SyncTo is the folder there that trees are brought into, and SyncExclude what is
	// left out of them, in the form of .gitignore; both may be empty.
	SyncTo      string
	SyncExclude []string
}

// Host and user names: nothing that ssh could take for an option, or a proxy
// command's shell for its own.
var (
	hostForm = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_.:%-]*$`)
	userForm = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_.@-]*$`)
)

// NewSSH returns the Slurm of a login node, reached by the system's OpenSSH. What
// is run there arrives as a script on standard input, every word of it quoted:
// nothing of a job's stands on ssh's command line.
func NewSSH(name string, o SSHOptions) (*CLI, error) {
	if !hostForm.MatchString(o.Host) {
		return nil, lang.Text{
			EN: "cluster %s: host %q is no host name; use a name from ssh_config, a DNS name or an address",
			ZH: "集群 %s：%q 不是主机名；请用 ssh_config 中的名称、DNS 名或地址",
		}.Err(name, o.Host)
	}
	if o.User != "" && !userForm.MatchString(o.User) {
		return nil, lang.Text{EN: "cluster %s: user %q is no login name", ZH: "集群 %s：用户 %q 不是登录名"}.Err(name, o.User)
	}
	r := &there{SSHOptions: o}
	return &CLI{
		name: name, kind: "ssh", meter: new(Meter), runner: r,
		// The environment of jobs is the host's, never that of this machine.
		Environ: func() []string { return nil },
		mkdir: func(ctx context.Context, dir string) error {
			res, err := r.run(ctx, command{argv: []string{"mkdir", "-p", "--", dir}})
			if err == nil && res.code != 0 {
				err = slurm.Words(strings.TrimSpace(res.stderr))
			}
			return err
		},
	}, nil
}

// there runs commands on another host.
type there struct{ SSHOptions }

// args is the command line of ssh that runs remote there.
func (t *there) args(remote string) []string { return append(t.options(), "--", t.Host, remote) }

// options are ssh and its options.
func (t *there) options() []string {
	args := []string{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"}
	if t.Config != "" {
		args = append(args, "-F", t.Config)
	}
	if t.ControlDir != "" {
		args = append(args, "-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", "ControlPath="+filepath.Join(t.ControlDir, "%C"))
	}
	if t.User != "" {
		args = append(args, "-l", t.User)
	}
	return args
}

// remoteScript is what the host's shell is given to read. hello is said on
// standard error before anything else: ssh's own failures and a command that
// exits with 255 look alike otherwise. All that follows stands in braces, which a
// shell reads to their end before it runs anything: a script cut off on its way
// does nothing, where half a here-document would be half a job.
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
	end := rand.Text() // a line that no script can hold on purpose
	fmt.Fprintf(&b, " <<'%s'\n%s\n%s\n}\n", end, strings.TrimSuffix(c.stdin, "\n"), end)
	return b.String()
}

var envName = lazy.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (t *there) run(ctx context.Context, c command) (result, error) {
	if c.limit == 0 {
		c.limit = commandLimit + 10*time.Second // for the connection
	}
	if strings.Contains(c.stdin, "\x00") {
		return result{}, &slurm.Error{Op: c.argv[0], Kind: slurm.Rejected, Msg: lang.Text{EN: "the script holds a NUL character", ZH: "脚本中含有 NUL 字符"}}
	}
	hello := rand.Text()
	r, err := here{}.run(ctx, command{
		argv: t.args("exec /bin/sh -s"), env: os.Environ(), limit: c.limit, held: c.held,
		stdin: remoteScript(c, t.Env, t.Bin, hello),
	})
	// What stands before are banners and warnings of ssh.
	_, after, connected := strings.Cut(r.stderr, hello+"\n")
	if !connected {
		said := strings.TrimSpace(r.stderr)
		if err != nil {
			said = err.Error()
		}
		words := lang.Same(said)
		if said == "" {
			words = lang.Text{EN: "the connection ended without a word", ZH: "连接中断，没有任何输出"}
		}
		return r, &slurm.Error{Op: "ssh " + t.Host, Kind: sshKind(said), Msg: words, Fix: lang.Text{
			EN: "try `ssh " + t.Host + " true` by hand: it must work without a question",
			ZH: "请手动执行 `ssh " + t.Host + " true`：应能无交互成功",
		}}
	}
	r.stderr = after
	if err == nil && r.code == 72 && after != "" && strings.Contains(after, "cd:") {
		return r, &slurm.Error{Op: c.argv[0], Kind: slurm.Rejected, Msg: lang.Text{EN: "working directory: %s", ZH: "工作目录：%s"}.With(strings.TrimSpace(after))}
	}
	if err == nil && r.code == 255 && strings.Contains(after, "onnection") && !strings.Contains(after, "sbatch:") {
		return r, &slurm.Error{Op: "ssh " + t.Host, Kind: slurm.Unreachable, Msg: lang.Same(strings.TrimSpace(after))}
	}
	if err == nil && r.code == 127 {
		return r, &slurm.Error{Op: c.argv[0], Kind: slurm.Broken, Msg: lang.Same(strings.TrimSpace(after)), Fix: lang.Text{
			EN: "Slurm's commands are not on the PATH of a non-interactive login on " + t.Host,
			ZH: "在 " + t.Host + " 的非交互登录环境中找不到 Slurm 命令（PATH）",
		}}
	}
	return r, err
}

// sshKind tells a login that is refused from a host that cannot be reached.
func sshKind(said string) slurm.ErrorKind {
	for _, word := range []string{"Permission denied", "Host key verification failed", "Too many authentication failures"} {
		if strings.Contains(said, word) {
			return slurm.Denied
		}
	}
	return slurm.Unreachable
}
