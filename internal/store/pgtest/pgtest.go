// Package pgtest starts a private PostgreSQL server for tests.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Start returns the URL of a server that ends with the test. Without PostgreSQL the
// test is skipped, except in CI, where it fails.
func Start(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a real PostgreSQL is not for -short")
	}
	url, stop, err := Up()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI promises PostgreSQL: ", err)
		}
		t.Skip("no PostgreSQL to test with: ", err)
	}
	t.Cleanup(stop)
	return url
}

// A Server is a private PostgreSQL on a socket in a folder of its own. If we are root,
// it runs as the user postgres: the server refuses to run as root.
type Server struct {
	URL      string
	bin, dir string
}

// Up starts a Server, and returns its URL and a function that ends it.
func Up() (url string, stop func(), err error) {
	s, err := New()
	if err != nil {
		return "", func() {}, err
	}
	return s.URL, s.Stop, nil
}

// New starts a Server; Stop ends it.
func New() (*Server, error) {
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	if len(bins) == 0 {
		return nil, fmt.Errorf("no pg_ctl: apt-get install postgresql")
	}
	dir, err := os.MkdirTemp("", "megatron-ops-pg")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "postgres://postgres@/postgres?host=" + dir, bin: filepath.Dir(bins[len(bins)-1]), dir: dir}
	if os.Geteuid() == 0 {
		if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("chown: %w: %s", err, out)
		}
	}
	if err := s.run("initdb", "-D", s.data(), "-A", "trust", "-U", "postgres", "--no-sync"); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := s.start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) start() error {
	return s.run("pg_ctl", "-D", s.data(), "-w", "-l", filepath.Join(s.dir, "log"), "-o", "-c listen_addresses='' -c fsync=off -k "+s.dir, "start")
}

// Restart ends the server and starts it again. how is "immediate", as a crash would, or
// "fast", which disconnects everybody.
func (s *Server) Restart(how string) error {
	if err := s.run("pg_ctl", "-D", s.data(), "-w", "-m", how, "stop"); err != nil {
		return err
	}
	return s.start()
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() {
	_ = s.run("pg_ctl", "-D", s.data(), "-m", "immediate", "stop")
	os.RemoveAll(s.dir)
}

// run runs one of PostgreSQL's programs.
func (s *Server) run(name string, args ...string) error {
	argv := append([]string{filepath.Join(s.bin, name)}, args...)
	if os.Geteuid() == 0 {
		argv = append([]string{"runuser", "-u", "postgres", "--"}, argv...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = s.dir
	log, err := os.Create(filepath.Join(s.dir, name+".out"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		out, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
