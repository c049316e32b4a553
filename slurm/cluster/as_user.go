package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// AsUserWord is the subcommand of this program that sudo starts to run one Slurm
// command as another user.
const AsUserWord = "as-user"

// A Helper is the command line with which a server runs Slurm's commands as another
// user: sudo starts this program with AsUserWord. The sudoers rule fixes all arguments,
// so the administrator alone decides which code runs: the folder of Slurm's commands,
// and the configuration whose plugins the commands load.
type Helper struct {
	Program   string // absolute; only root may write it
	SlurmBin  string // the folder of Slurm's commands; empty: /usr/bin
	SlurmConf string // empty: Slurm's own default
}

// words returns the helper's command line.
func (h Helper) words() []string {
	words := []string{h.Program, AsUserWord}
	if h.SlurmBin != "" && h.SlurmBin != "/usr/bin" {
		words = append(words, "--slurm-bin", h.SlurmBin)
	}
	if h.SlurmConf != "" {
		words = append(words, "--slurm-conf", h.SlurmConf)
	}
	return words
}

// plainPath matches a path that sudoers reads without any escaping.
var plainPath = lazy.New(`^/[A-Za-z0-9._/+@-]*$`)

// Sudoers returns a rule for /etc/sudoers.d that lets login act for the users of group,
// only through the helpers. It refuses a helper that anybody but root could change,
// because sudo would run the changed program.
func Sudoers(login, group string, helpers []Helper) (string, error) {
	var commands []string
	for _, h := range helpers {
		for _, p := range []string{h.Program, h.SlurmBin, h.SlurmConf} {
			if p != "" && !plainPath.MatchString(p) {
				return "", lang.Text{
					EN: "%q cannot be named in a sudo rule, which allows only letters, digits and ._/+@-",
					ZH: "sudo 规则不能写路径 %q：只能用字母、数字和 ._/+@-",
				}.Err(p)
			}
		}
		if err := rootsOwn(h.Program); err != nil {
			return "", err
		}
		if line := strings.Join(h.words(), " "); !slices.Contains(commands, line) {
			commands = append(commands, line)
		}
	}
	alias := "MEGATRON_OPS"
	return fmt.Sprintf("Cmnd_Alias %[1]s = %[2]s\nDefaults!%[1]s env_reset, !setenv\n%[3]s ALL=(%%%[4]s) NOPASSWD:NOSETENV: %[1]s\n",
		alias, strings.Join(commands, ", "), login, group), nil
}

// rootsOwn returns an error where somebody other than root could change the file or
// replace it.
func rootsOwn(file string) error {
	for at := filepath.Clean(file); ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0
		if !ok || st.Uid != 0 || info.Mode()&fs.ModeSymlink != 0 || info.Mode().Perm()&0o022 != 0 && !sticky {
			return lang.Text{
				EN: "%s: users other than root can change %s, and sudo would run what they put there: install it where only root writes, such as /usr/bin",
				ZH: "%s：root 以外的人可以修改 %s，sudo 会运行他们放在那里的内容：请安装到只有 root 可写的位置，例如 /usr/bin",
			}.Err(file, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// A userRequest is the JSON document that the helper reads from standard input.
type userRequest struct {
	Argv  []string `json:"argv"`
	Env   []string `json:"env,omitempty"`
	Dir   string   `json:"dir,omitempty"`
	Stdin string   `json:"stdin,omitempty"`
}

// longestRequest bounds one request in bytes; a script has at most 4 MiB.
const longestRequest = 16 << 20

// userCommands are the commands that the helper runs. It also runs mkdir, for a job's
// log folder.
var userCommands = []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun", "sprio", "sshare", "sacctmgr"}

// userVariables are the variables that a request may set. None of them makes a command
// load code or another configuration.
var userVariables = []string{"TZ", "LC_ALL", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN"}

// AsUser is the helper's main function: it reads one request and runs the command in it
// by its absolute path, in an environment that it builds itself. It returns the
// command's exit code, or 126 for a request that it refuses.
func AsUser(words []string, in io.Reader, stdout, stderr io.Writer) int {
	refuse := func(format string, args ...any) int {
		fmt.Fprintf(stderr, "megatron-ops "+AsUserWord+": "+format+"\n", args...)
		return 126
	}
	f := flag.NewFlagSet(AsUserWord, flag.ContinueOnError)
	f.SetOutput(stderr)
	bin, conf := f.String("slurm-bin", "/usr/bin", "folder of Slurm's commands"), f.String("slurm-conf", "", "Slurm's configuration")
	if err := f.Parse(words); err != nil || f.NArg() > 0 {
		return refuse("the words are those of the rule that `megatron-ops sudoers` prints")
	}
	raw, err := io.ReadAll(io.LimitReader(in, longestRequest+1))
	if err != nil || len(raw) > longestRequest {
		return refuse("the request cannot be read, or is longer than %d bytes", longestRequest)
	}
	var r userRequest
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Argv) == 0 {
		return refuse("standard input holds no request")
	}
	var program string
	switch name := r.Argv[0]; {
	case slices.Contains(userCommands, name):
		program = filepath.Join(*bin, name)
	case name == "mkdir" && len(r.Argv) == 4 && r.Argv[1] == "-p" && r.Argv[2] == "--":
		program = "/bin/mkdir"
	default:
		return refuse("%q is not one of Slurm's commands", name)
	}
	env := []string{"PATH=" + *bin + ":/usr/local/bin:/usr/bin:/bin"}
	for _, name := range []string{"HOME", "USER", "LOGNAME", "SHELL"} { // as sudo set them
		env = append(env, name+"="+os.Getenv(name))
	}
	for _, entry := range r.Env {
		if name, _, ok := strings.Cut(entry, "="); ok && slices.Contains(userVariables, name) {
			env = append(env, entry)
		}
	}
	if *conf != "" {
		env = append(env, "SLURM_CONF="+*conf)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	cmd := exec.CommandContext(ctx, program, r.Argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, r.Dir, strings.NewReader(r.Stdin), stdout, stderr
	err = cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.Exited() {
		return ended.ExitCode()
	}
	if err != nil {
		return refuse("%v", err)
	}
	return 0
}

// A sudoRunner runs commands as another user of this machine through the helper.
type sudoRunner struct {
	inner  runner
	login  string
	helper Helper
}

func (s *sudoRunner) run(ctx context.Context, c command) (result, error) {
	var err error
	if c, err = s.wrapped(c); err != nil {
		return result{}, err
	}
	r, err := s.inner.run(ctx, c)
	ours, theirs := splitSudoLines(r.stderr)
	r.stderr = theirs
	if err == nil && r.code == 1 && ours != "" && theirs == "" {
		return r, &slurm.Error{Op: "act as " + s.login, Kind: slurm.Denied, Msg: lang.Same(ours)}
	}
	return r, err
}

// wrapped returns the sudo command that carries out c. The command line holds only the
// helper's fixed words; all of c travels on standard input.
func (s *sudoRunner) wrapped(c command) (command, error) {
	request, err := json.Marshal(userRequest{Argv: c.argv, Env: c.env, Dir: c.dir, Stdin: c.stdin})
	if err != nil {
		return c, err
	}
	c.argv = append([]string{"sudo", "--non-interactive", "--set-home", "--user=" + s.login, "--"}, s.helper.words()...)
	c.dir, c.stdin = "", string(request)
	return c, nil
}

// splitSudoLines separates sudo's own lines from the command's. sudo may warn and still
// run the command ("unable to resolve host"), so sudo has refused only where the
// command printed nothing.
func splitSudoLines(stderr string) (ours, theirs string) {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "sudo: ") {
			ours += line
		} else {
			theirs += line
		}
	}
	return strings.TrimSpace(ours), theirs
}
