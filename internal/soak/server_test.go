package soak

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// me is the user who runs the test.
var me = func() string {
	u, err := user.Current()
	if err != nil {
		return "root"
	}
	return u.Username
}()

// A server is `megatron-ops serve`, the released program, which keeps its address over
// restarts.
type server struct {
	t        *testing.T
	program  string
	home     string
	env      []string
	addr     string
	complain *os.File // what it writes to standard error

	mu    sync.Mutex
	cmd   *exec.Cmd
	lives int
}

// newServer builds the program and writes its configuration.
func newServer(t *testing.T, addr, config string, env ...string) *server {
	t.Helper()
	s := &server{t: t, home: t.TempDir(), addr: addr}
	s.program = filepath.Join(s.home, "megatron-ops")
	build := exec.Command("go", "build", "-o", s.program, "github.com/megatron-ops/megatron-ops/cmd/megatron-ops")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "megatron-ops.yaml"), []byte(config), 0o600))
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "SLACK_") && !strings.HasPrefix(e, "MEGATRON_OPS_") && !strings.HasPrefix(e, "PATH=") {
			s.env = append(s.env, e)
		}
	}
	s.env = append(s.env, "HOME="+s.home, "MEGATRON_OPS_STATE_DIR="+filepath.Join(s.home, "state"), "MEGATRON_OPS_ALLOW_ROOT=1")
	s.env = append(s.env, env...)
	s.complain, err = os.Create(filepath.Join(s.home, "serve.log"))
	require.NoError(t, err)
	t.Cleanup(func() { s.kill(); s.complain.Close() })
	return s
}

func (s *server) url() string { return "http://" + s.addr }

func (s *server) command(words ...string) *exec.Cmd {
	return &exec.Cmd{Path: s.program, Args: append([]string{"megatron-ops"}, words...), Env: s.env, Dir: s.home}
}

// start starts a process, and returns when it serves. While the database is unavailable
// serve exits, and is started again, as systemd would.
func (s *server) start() error {
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		cmd := s.command("serve", "--listen", s.addr)
		errs, err := cmd.StderrPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		serves := make(chan bool, 1)
		go func() {
			in := bufio.NewScanner(errs)
			in.Buffer(nil, 1<<20)
			for in.Scan() {
				fmt.Fprintln(s.complain, in.Text())
				if strings.Contains(in.Text(), "serving on http://") {
					serves <- true
				}
			}
			_, _ = io.Copy(s.complain, errs)
			_ = cmd.Wait()
			serves <- false
		}()
		if <-serves {
			s.mu.Lock()
			s.cmd, s.lives = cmd, s.lives+1
			s.mu.Unlock()
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("serve does not start: see %s", s.complain.Name())
		}
	}
}

// kill ends it as a power failure would.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		s.cmd = nil
	}
}

// A sample is what serve uses at one moment of one process.
type sample struct {
	at         time.Time
	life       int
	rss        float64 // MiB
	heap       float64 // MiB that are in use
	goroutines float64
}

var metricLine = regexp.MustCompile(`(?m)^(go_goroutines|process_resident_memory_bytes|go_memstats_heap_alloc_bytes) (\S+)$`)

// sample reads serve's own metrics. ok is false if it does not answer.
func (s *server) sample() (x sample, ok bool) {
	s.mu.Lock()
	x.life, x.at = s.lives, time.Now()
	s.mu.Unlock()
	client := http.Client{Timeout: 10 * time.Second}
	res, err := client.Get(s.url() + "/metrics")
	if err != nil {
		return x, false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return x, false
	}
	for _, m := range metricLine.FindAllStringSubmatch(string(body), -1) {
		v, _ := strconv.ParseFloat(m[2], 64)
		switch m[1] {
		case "go_goroutines":
			x.goroutines = v
		case "process_resident_memory_bytes":
			x.rss = v / (1 << 20)
		default:
			x.heap = v / (1 << 20)
		}
	}
	return x, x.rss > 0
}
