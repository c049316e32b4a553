// Package pgtest starts a real PostgreSQL of its own for tests.
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

// Start returns the URL of a server that ends with the test. Without PostgreSQL
// the test is skipped, and fails where CI promises one.
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

// Up starts a private server on a socket in a folder of its own, as the user
// postgres where we are root: the server refuses to run as root. It returns the
// server's URL, and what ends it.
func Up() (url string, stop func(), err error) {
	stop = func() {}
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	if len(bins) == 0 {
		return "", stop, fmt.Errorf("no pg_ctl: apt-get install postgresql")
	}
	bin := filepath.Dir(bins[len(bins)-1])
	dir, err := os.MkdirTemp("", "megatron-ops-pg")
	if err != nil {
		return "", stop, err
	}
	run := func(name string, args ...string) error {
		argv := append([]string{filepath.Join(bin, name)}, args...)
		if os.Geteuid() == 0 {
			argv = append([]string{"runuser", "-u", "postgres", "--"}, argv...)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = dir
		log, err := os.Create(filepath.Join(dir, name+".out"))
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
	if os.Geteuid() == 0 {
		if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
			return "", stop, fmt.Errorf("chown: %w: %s", err, out)
		}
	}
	data := filepath.Join(dir, "data")
	remove := func() { os.RemoveAll(dir) }
	if err := run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"); err != nil {
		remove()
		return "", stop, err
	}
	if err := run("pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "log"),
		"-o", "-c listen_addresses='' -c fsync=off -k "+dir, "start"); err != nil {
		remove()
		return "", stop, err
	}
	return "postgres://postgres@/postgres?host=" + dir, func() {
		_ = run("pg_ctl", "-D", data, "-m", "immediate", "stop")
		remove()
	}, nil
}
