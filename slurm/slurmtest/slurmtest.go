// Package slurmtest starts a complete real Slurm on this machine, for tests and for
// trying things out: munge, MariaDB, slurmdbd, slurmctld, four slurmd with eight device
// files each that stand for GPUs, and slurmrestd. All daemons listen only on loopback,
// on ports of their own, keep everything in one directory, and end without affecting
// any other process.
//
// It needs root and Debian's packages (see Packages), and starts in about ten seconds.
// Each slurmd has its own host name and hosts file, by namespaces, so that jobs see
// nodes gpu1 to gpu4 that resolve. The machine's own files stay unchanged, except that
// the users alice and bob are added.
package slurmtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Packages are the Debian packages that a real Slurm needs.
const Packages = "slurm-wlm slurmdbd slurmrestd slurm-wlm-jwt-plugin munge mariadb-server sudo openssh-server python3-torch python3-numpy"

// Options describe the site. The zero value enforces no limits and never preempts.
type Options struct {
	// Enforce makes accounts, QOS and limits binding.
	Enforce bool
	// Preempt lets the QOS urgent requeue jobs of normal and scavenge.
	Preempt bool
	// MinJobAge is the number of seconds for which the controller remembers an ended
	// job; 0 means 300.
	MinJobAge int
	// SlurmdTimeout is the number of seconds after which a silent node is down; 0 means
	// 120.
	SlurmdTimeout int
	// Conf is added to slurm.conf.
	Conf string
}

// A Cluster is a running Slurm.
type Cluster struct {
	Dir  string // the directory with everything
	Work string // a directory that every user may write to
	REST string // slurmrestd's address, such as http://127.0.0.1:22002

	options Options
	port    int // slurmctld's port; the others follow
}

// Nodes are the names of the cluster's nodes.
var Nodes = []string{"gpu1", "gpu2", "gpu3", "gpu4"}

// Prefix is the environment variable with the folder of a Slurm to use in place of the
// one on the PATH. The folder contains bin, sbin and lib.
const Prefix = "SLURM_PREFIX"

// takePrefix puts the folders of Prefix in front of the PATH.
var takePrefix = sync.OnceFunc(func() {
	if p := os.Getenv(Prefix); p != "" {
		_ = os.Setenv("PATH", filepath.Join(p, "bin")+":"+filepath.Join(p, "sbin")+":"+os.Getenv("PATH"))
	}
})

// Missing returns what prevents a Slurm from being started here; "" means nothing.
func Missing() string {
	takePrefix()
	if os.Getuid() != 0 {
		return "starting Slurm needs root"
	}
	prefix := os.Getenv(Prefix)
	for _, program := range []string{"munged", "mariadbd", "mariadb", "unshare", "useradd", "slurmdbd", "slurmctld", "slurmd", "slurmrestd", "sbatch", "sacctmgr"} {
		path, err := exec.LookPath(program)
		if err != nil {
			return fmt.Sprintf("no %s here: apt-get install %s", program, Packages)
		}
		if own := strings.HasPrefix(program, "s"); own && prefix != "" && !strings.HasPrefix(path, filepath.Clean(prefix)+"/") {
			return fmt.Sprintf("%s=%s has no %s", Prefix, prefix, program) // another Slurm's commands would not understand its daemons
		}
	}
	plugins := "/usr/lib/*/slurm*/auth_jwt.so"
	if prefix != "" {
		plugins = filepath.Join(prefix, "lib*", "slurm*", "auth_jwt.so")
	}
	if found, _ := filepath.Glob(plugins); len(found) == 0 {
		return "no auth/jwt plugin here (" + plugins + "): apt-get install " + Packages
	}
	return ""
}

// Bin returns the folder of Slurm's commands.
func (c *Cluster) Bin() string {
	sbatch, _ := exec.LookPath("sbatch") // sbatch exists where a Slurm was started
	return filepath.Dir(sbatch)
}

// Conf returns the path of slurm.conf.
func (c *Cluster) Conf() string { return filepath.Join(c.Dir, "etc", "slurm.conf") }

// Env returns the variables that a process needs to use the cluster.
func (c *Cluster) Env() []string { return []string{"SLURM_CONF=" + c.Conf()} }

// Environ returns this process's environment with Env, and without settings that would
// change what Slurm's commands do.
func (c *Cluster) Environ() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "SLURM") && !strings.HasPrefix(e, "SBATCH_") {
			env = append(env, e)
		}
	}
	return append(env, c.Env()...)
}

// Run runs a command as root and returns its standard output and standard error
// together.
func (c *Cluster) Run(ctx context.Context, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = c.Environ(), c.Work
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), err
}

// RunAs runs a command as another user of the machine.
func (c *Cluster) RunAs(ctx context.Context, user string, argv ...string) (string, error) {
	return c.Run(ctx, append([]string{"runuser", "-u", user, "--"}, argv...)...)
}

// Token returns a JSON web token for user.
func (c *Cluster) Token(ctx context.Context, user string) (string, error) {
	out, err := c.Run(ctx, "scontrol", "token", "username="+user, "lifespan=3600")
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(out, "SLURM_JWT="), nil
}

// Up starts a Slurm in dir, which must not exist or be empty, and returns once its
// nodes are idle. Where it fails, it ends everything that it has started.
func Up(ctx context.Context, dir string, o Options) (*Cluster, error) {
	if missing := Missing(); missing != "" {
		return nil, errors.New(missing)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty; if it is an earlier Slurm of ours, take it down first", dir)
	}
	c := &Cluster{Dir: dir, Work: filepath.Join(dir, "work"), options: o}
	if err := c.up(ctx); err != nil {
		err = fmt.Errorf("%w\n%s", err, c.lastOutput())
		return nil, errors.Join(err, Down(dir))
	}
	return c, nil
}

// lastOutput returns the last lines of each daemon's output.
func (c *Cluster) lastOutput() string {
	files, _ := filepath.Glob(filepath.Join(c.Dir, "log", "*.console"))
	var b strings.Builder
	for _, f := range files {
		text, _ := os.ReadFile(f)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "%s: %s\n", filepath.Base(f), strings.Join(lines[max(0, len(lines)-3):], " / "))
	}
	return b.String()
}

// ports is the number of consecutive ports of a cluster: its own, and those that Port
// returns.
const ports = 24

// Port returns one of sixteen ports, numbered from 0, that no other test's Slurm uses.
// A fixed port in a test could belong to another process's daemon.
func (c *Cluster) Port(n int) int { return c.port + 8 + n }

// freePorts returns the first of some free consecutive ports. It starts from the
// process id, so that two processes that search at the same time find different ports.
func freePorts() (int, error) {
	for i := range 500 {
		base := 20000 + (os.Getpid()*ports+i*ports*7)%12000
		free := true
		for p := base; p < base+ports && free; p++ {
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(p))
			if free = err == nil; free {
				_ = l.Close()
			}
		}
		if free {
			return base, nil
		}
	}
	return 0, errors.New("no ports are free between 20000 and 32000")
}

// A test process has one Slurm for each set of options.
var (
	startedMu sync.Mutex
	started   = map[Options]*Cluster{}
)

// Start returns a running Slurm. Tests of one package with the same options share it;
// it ends with the test process, however that ends. With -short, and where no Slurm can
// be started, the test is skipped with the reason; with CI=true the latter fails the
// test.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("a real Slurm is not for -short")
	}
	startedMu.Lock()
	defer startedMu.Unlock()
	if c := started[o]; c != nil {
		return c
	}
	if missing := Missing(); missing != "" {
		skip(t, "a Slurm", missing)
	}
	c, err := start(o)
	if err != nil {
		// Another process may have taken the ports meanwhile, so try once more.
		t.Logf("Slurm did not start at first: %v", err)
		c, err = start(o)
	}
	if err != nil {
		t.Fatalf("Slurm does not start: %v", err)
	}
	started[o] = c
	return c
}

// skip skips a test that cannot have what it needs, and fails it where CI is true.
func skip(t testing.TB, what, missing string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI=true promises %s: %s", what, missing)
	}
	t.Skipf("no test with %s: %s", what, missing)
}

// start starts a Slurm that ends with this process.
func start(o Options) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "slurmtest-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users' jobs run below it
		return nil, err
	}
	if err := endWithUs(dir); err != nil {
		return nil, err
	}
	return Up(context.Background(), dir, o)
}
