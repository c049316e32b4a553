package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const signingSecret = "8f742231b10e8888abcd99yyyzzz85a5"

// A server is `megatron-ops serve` as a process of its own, which can be killed.
type server struct {
	program string // empty: the test binary
	t       *testing.T
	home    string
	env     []string
	url     string
	cmd     *exec.Cmd
	// said receives what it wrote to standard error, once it has ended.
	said chan string
	mu   sync.Mutex
	log  strings.Builder // what it has written so far
}

// logged waits until the log contains words n times.
func (s *server) logged(words string, n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Count(s.log.String(), words) >= n
	}, 30*time.Second, 10*time.Millisecond, words)
}

// newServer prepares a server. config is its megatron-ops.yaml; env is added to an
// environment without Slack's variables.
func newServer(t *testing.T, config string, env ...string) *server {
	t.Helper()
	s := &server{t: t, home: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "megatron-ops.yaml"), []byte(config), 0o600))
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "SLACK_") && !strings.HasPrefix(e, "MEGATRON_OPS_") && !strings.HasPrefix(e, "OPENAI_") {
			s.env = append(s.env, e)
		}
	}
	s.env = append(s.env, "HOME="+s.home, "MEGATRON_OPS_STATE_DIR="+filepath.Join(s.home, "state"), "MEGATRON_OPS_CLUSTER=local")
	s.env = append(s.env, env...)
	return s
}

// command returns the program with these arguments; the test binary stands in if no
// other program is set.
func (s *server) command(words ...string) *exec.Cmd {
	exe := s.program
	if exe == "" {
		var err error
		exe, err = os.Executable()
		require.NoError(s.t, err)
	}
	return &exec.Cmd{Path: exe, Args: append([]string{"megatron-ops"}, words...), Env: s.env, Dir: s.home}
}

var servingAt = regexp.MustCompile(`serving on (http://\S+)`)

// start serves at addr, or at a free port.
func (s *server) start(addr string) {
	s.t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	s.run(s.command("serve", "--listen", addr))
}

// run starts a server's process and waits until it serves.
func (s *server) run(cmd *exec.Cmd) {
	s.t.Helper()
	s.cmd = cmd
	errs, err := s.cmd.StderrPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.cmd.Start())
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	at, said := make(chan string, 1), make(chan string, 1)
	s.said = said
	go func() {
		var all strings.Builder
		in := bufio.NewScanner(errs)
		for in.Scan() {
			all.WriteString(in.Text() + "\n")
			s.mu.Lock()
			s.log.WriteString(in.Text() + "\n")
			s.mu.Unlock()
			if m := servingAt.FindStringSubmatch(in.Text()); m != nil {
				at <- m[1]
			}
		}
		close(at)
		said <- all.String()
	}()
	select {
	case s.url = <-at:
	case <-time.After(30 * time.Second):
	}
	if s.url == "" {
		s.t.Fatalf("serve did not start: %s", <-said)
	}
}

// kill ends it as a power cut would.
func (s *server) kill() {
	require.NoError(s.t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
}

func (s *server) get(path string) (status int, body string) {
	s.t.Helper()
	res, err := http.Get(s.url + path)
	require.NoError(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res.StatusCode, string(b)
}
