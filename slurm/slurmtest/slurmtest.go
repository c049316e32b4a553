// Package slurmtest starts a whole real Slurm on this machine, for tests and for
// people who want one to try things on: munge, MariaDB, slurmdbd, slurmctld, four
// slurmd with eight device files each that pass for GPUs, and slurmrestd. All of
// it listens on loopback only, on ports of its own, lives in one directory, and
// ends without touching any other process.
//
// It needs root and Debian's packages (see Packages), and starts in about ten
// seconds. Each slurmd has a host name and a hosts file of its own, in
// namespaces, so that jobs see nodes gpu1 to gpu4 that resolve; the machine's
// own files stay as they are, but for the users alice and bob.
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

// Packages are the Debian packages that it takes.
const Packages = "slurm-wlm slurmdbd slurmrestd slurm-wlm-jwt-plugin munge mariadb-server sudo openssh-server python3-torch python3-numpy"

// Options choose what sort of site it is. The zero value enforces nothing and
// never preempts.
type Options struct {
	// Enforce makes accounts, QOS and limits binding.
	Enforce bool
	// Preempt lets the QOS urgent requeue jobs of normal and scavenge.
	Preempt bool
	// MinJobAge is how many seconds the controller remembers an ended job; 0: 300.
	MinJobAge int
	// SlurmdTimeout is after how many seconds a silent node is down; 0: 120.
	SlurmdTimeout int
	// Conf is added to slurm.conf.
	Conf string
}

// A Cluster is a running Slurm.
type Cluster struct {
	Dir  string // all of it
	Work string // a directory that every user may write to
	REST string // slurmrestd's address, such as http://127.0.0.1:22002

	options Options
	port    int // of slurmctld; the others follow
}

// Nodes are the names of the cluster's nodes.
var Nodes = []string{"gpu1", "gpu2", "gpu3", "gpu4"}

// Prefix names, in the environment, the folder of another Slurm than the one on
// the PATH: with bin, sbin and lib below it.
const Prefix = "SLURM_PREFIX"

// takePrefix puts the Slurm that Prefix names before the PATH.
var takePrefix = sync.OnceFunc(func() {
	if p := os.Getenv(Prefix); p != "" {
		_ = os.Setenv("PATH", filepath.Join(p, "bin")+":"+filepath.Join(p, "sbin")+":"+os.Getenv("PATH"))
	}
})

// Missing names what keeps a Slurm from being started here; "" means nothing.
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
			return fmt.Sprintf("%s=%s has no %s", Prefix, prefix, program) // another's would not understand its daemons
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

// Bin is the folder of Slurm's commands.
func (c *Cluster) Bin() string {
	sbatch, _ := exec.LookPath("sbatch") // without it nothing was started
	return filepath.Dir(sbatch)
}

// Conf is the path of slurm.conf.
func (c *Cluster) Conf() string { return filepath.Join(c.Dir, "etc", "slurm.conf") }

// Env is what a process needs in its environment to use the cluster.
func (c *Cluster) Env() []string { return []string{"SLURM_CONF=" + c.Conf()} }

// Environ is this process's environment with Env, and without settings that
// would change what Slurm's commands do.
func (c *Cluster) Environ() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "SLURM") && !strings.HasPrefix(e, "SBATCH_") {
			env = append(env, e)
		}
	}
	return append(env, c.Env()...)
}

// Run runs a command of Slurm's as root and returns what it printed, both
// streams together.
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

// Token makes a JSON web token with which slurmrestd takes the caller for user.
func (c *Cluster) Token(ctx context.Context, user string) (string, error) {
	out, err := c.Run(ctx, "scontrol", "token", "username="+user, "lifespan=3600")
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(out, "SLURM_JWT="), nil
}

// Up starts a Slurm in dir, which must not exist or be empty, and returns once
// its nodes are idle. What it started is ended again when it cannot.
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
		err = fmt.Errorf("%w\n%s", err, c.lastWords())
		return nil, errors.Join(err, Down(dir))
	}
	return c, nil
}

// lastWords is the end of what the daemons said.
func (c *Cluster) lastWords() string {
	files, _ := filepath.Glob(filepath.Join(c.Dir, "log", "*.console"))
	var b strings.Builder
	for _, f := range files {
		text, _ := os.ReadFile(f)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "%s: %s\n", filepath.Base(f), strings.Join(lines[max(0, len(lines)-3):], " / "))
	}
	return b.String()
}

// ports is how many ports in a row a cluster takes: its own, and those that
// Port hands to what runs on it.
const ports = 24

// Port is one of sixteen ports, from 0 on, that no other test's Slurm takes: a
// number in the text of a test may be another process's daemon.
func (c *Cluster) Port(n int) int { return c.port + 8 + n }

// freePorts finds the first of some free ports in a row. Two processes that
// look at the same time are kept apart by their process ids.
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

// One test process has one Slurm for each set of options.
var (
	startedMu sync.Mutex
	started   = map[Options]*Cluster{}
)

// Start returns a running Slurm. Tests of one package that ask with the same
// options share it; it ends with the test process, however that ends. With
// -short, and where it cannot be started, the test is skipped with the reason;
// where CI is true the latter fails.
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
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI=true promises a Slurm: %s", missing)
		}
		t.Skipf("no Slurm to test with: %s", missing)
	}
	c, err := start(o)
	if err != nil {
		// Another process may have taken our ports meanwhile: once more.
		t.Logf("Slurm did not start at first: %v", err)
		c, err = start(o)
	}
	if err != nil {
		t.Fatalf("Slurm does not start: %v", err)
	}
	started[o] = c
	return c
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
