package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A command is one process to run on this machine or on another.
type command struct {
	argv  []string
	env   []string // the whole environment
	dir   string
	stdin string
	// input is the standard input where stdin is empty; the caller closes it.
	input *os.File
	// held is inherited by the process, so that a lock on the file lasts as long as the
	// process.
	held *os.File
	// limit bounds the run time.
	limit time.Duration
}

// A result is the output of a command that ran to its end.
type result struct {
	stdout, stderr string
	code           int
	host           string // where the command ran, if not on this machine
}

// A runner runs commands on this machine or over ssh. Its error is an *slurm.Error and
// means that the command did not run to its end. A command that ended with a nonzero
// code gives a result and no error.
type runner interface {
	run(ctx context.Context, c command) (result, error)
}

// mkdirBy returns a function that creates a directory, and its parents, with mkdir(1).
func mkdirBy(r runner) func(ctx context.Context, dir string) error {
	return func(ctx context.Context, dir string) error {
		done, err := r.run(ctx, command{argv: []string{"mkdir", "-p", "--", dir}})
		if err == nil && done.code != 0 {
			err = slurm.Words(strings.TrimSpace(done.stderr))
		}
		return err
	}
}

// Limits on one command's time and output. The controller itself gives up after 9 to 10
// seconds (MessageTimeout); sacct never does.
const (
	commandLimit = 15 * time.Second
	maxStdout    = 32 << 20
	maxStderr    = 64 << 10
)

// localRunner runs commands on this machine.
type localRunner struct{}

func (localRunner) run(ctx context.Context, c command) (result, error) {
	name := c.argv[0]
	c.limit = cmp.Or(c.limit, commandLimit)
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, c.argv[1:]...)
	cmd.Env, cmd.Dir = c.env, c.dir
	if path := LookIn(c.env, name); path != "" {
		cmd.Path, cmd.Err = path, nil
	}
	if c.input != nil {
		cmd.Stdin = c.input
	}
	if c.stdin != "" {
		f, err := unnamedFile(c.stdin)
		if err != nil {
			return result{}, &slurm.Error{Op: name, Msg: lang.Said(err), Kind: slurm.Broken, Fix: lang.Text{
				EN: "nothing was sent; make room there, or set TMPDIR to another folder",
				ZH: "没有发送任何内容；请在该处腾出空间，或把 TMPDIR 设为其他目录",
			}}
		}
		defer f.Close()
		cmd.Stdin = f
	}
	if c.held != nil {
		cmd.ExtraFiles = []*os.File{c.held}
	}
	stdout, stderr := &capped{left: maxStdout}, &capped{left: maxStderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// Kill the whole process group, because a wrapper script's child would live on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	r := result{stdout: stdout.String(), stderr: stderr.String()}
	if cmd.ProcessState != nil {
		r.code = cmd.ProcessState.ExitCode()
	}
	exit, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist) && cmd.Process == nil:
		return r, noCommand(name, c.dir, err)
	case cmd.Process == nil:
		return r, &slurm.Error{Op: name, Msg: lang.Said(err), Kind: slurm.Broken}
	case errors.Is(ctx.Err(), context.Canceled) && r.code != 0:
		return r, &slurm.Error{Op: name, Kind: slurm.Unreachable, Msg: lang.Text{EN: "interrupted%s", ZH: "已中断%s"}.With(saidSoFar(r.stderr))}
	case ctx.Err() != nil && r.code != 0:
		return r, &slurm.Error{
			Op: name, Kind: slurm.Unreachable,
			Msg: lang.Text{EN: "no answer within %s%s", ZH: "%s 内没有响应%s"}.With(c.limit, saidSoFar(r.stderr)),
			Fix: silenceOf(name),
		}
	case isExit && r.code < 0:
		return r, &slurm.Error{Op: name, Msg: lang.Text{EN: "ended by %s%s", ZH: "被终止（%s）%s"}.With(exit, saidSoFar(r.stderr)), Kind: slurm.Unreachable}
	case stdout.full:
		return r, &slurm.Error{Op: name, Msg: lang.Text{EN: "the answer is longer than %d MiB", ZH: "返回内容超过 %d MiB"}.With(maxStdout >> 20), Kind: slurm.Broken}
	case err != nil && !isExit && !errors.Is(err, exec.ErrWaitDelay):
		return r, &slurm.Error{Op: name, Msg: lang.Said(err), Kind: slurm.Broken}
	}
	return r, nil
}

// accounting are the commands that the accounting database answers.
var accounting = map[string]bool{"sacct": true, "sacctmgr": true, "sreport": true, "sshare": true}

// silenceOf says who did not answer a command: the accounting database and the controller fail
// independently of each other.
func silenceOf(name string) lang.Text {
	if accounting[filepath.Base(name)] {
		return lang.Text{
			EN: "the accounting database (slurmdbd) may be stopped or overloaded; `list` and the status of jobs in the queue do without it",
			ZH: "记账数据库（slurmdbd）可能已停止或过载；`list` 和队列中作业的状态不需要它",
		}
	}
	return lang.Text{EN: "the controller may be stopped or overloaded; try again in a minute", ZH: "控制器可能已停止或过载；请一分钟后重试"}
}

// unnamedFile returns a file without a name that holds text. It replaces a pipe as
// standard input: a pipe would end early where this process dies, and sbatch would
// submit half a script.
func unnamedFile(text string) (*os.File, error) {
	f, err := os.CreateTemp("", "megatron-ops-")
	if err != nil {
		return nil, err
	}
	removed := os.Remove(f.Name())
	_, err = f.WriteAt([]byte(text), 0) // the file is still read from its beginning
	if err = errors.Join(removed, err); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// noCommand distinguishes a missing command from a missing directory, which the
// operating system reports with the same error.
func noCommand(name, dir string, err error) *slurm.Error {
	if dir != "" {
		if _, statErr := os.Stat(dir); statErr != nil {
			return &slurm.Error{Op: name, Msg: lang.Text{EN: "working directory %s: %s", ZH: "工作目录 %s：%s"}.With(dir, errors.Unwrap(statErr)), Kind: slurm.Rejected, Fix: lang.Text{
				EN: "give a directory that exists on this machine and on the nodes",
				ZH: "请给出在本机与计算节点上都存在的目录",
			}}
		}
	}
	return &slurm.Error{Op: name, Msg: lang.Said(err), Kind: slurm.Missing, Fix: lang.Text{
		EN: "Slurm's commands are not on the PATH of this machine: module load slurm, run on a login node, or use --cluster local",
		ZH: "本机 PATH 中没有 Slurm 命令：请执行 module load slurm，在登录节点上运行，或使用 --cluster local",
	}}
}

// lacksConf returns the error of a command on this machine whose SLURM_CONF names no
// file. Slurm's commands themselves look for it again and again for a minute.
func (c *CLI) lacksConf(cmd command) error {
	if _, here := c.runner.(localRunner); !here || LookIn(cmd.env, cmd.argv[0]) == "" {
		return nil
	}
	conf := ""
	for _, entry := range cmd.env { // the last one counts
		if path, is := strings.CutPrefix(entry, "SLURM_CONF="); is {
			conf = path
		}
	}
	if _, err := os.Stat(conf); conf == "" || !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return &slurm.Error{
		Op: cmd.argv[0], Kind: slurm.Missing,
		Msg: lang.Text{EN: "SLURM_CONF is %s, and there is no such file", ZH: "SLURM_CONF 为 %s，但没有这个文件"}.With(conf),
		Fix: slurm.NoConfiguration,
	}
}

func saidSoFar(stderr string) lang.Text {
	if stderr = strings.TrimSpace(stderr); stderr != "" {
		return lang.Text{EN: ", after printing: %s", ZH: "，此前的输出：%s"}.With(stderr)
	}
	return lang.Text{}
}

// A capped buffer keeps the first bytes written to it and drops the rest, so that a
// runaway command costs no memory.
type capped struct {
	bytes.Buffer
	left int
	full bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := p
	if len(p) > c.left {
		keep, c.full = p[:c.left], true
	}
	n, _ := c.Buffer.Write(keep)
	c.left -= n
	return len(p), nil
}

// ReadFrom hides that of bytes.Buffer, so that io.Copy cannot bypass the cap.
func (c *capped) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

// LookIn returns the path of a program on the PATH of env, which may differ from this
// process's; "" where env has no PATH or the PATH lacks the program.
func LookIn(env []string, name string) string {
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") })
	if i < 0 || strings.Contains(name, "/") {
		return ""
	}
	for _, dir := range filepath.SplitList(strings.TrimPrefix(env[i], "PATH=")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}
