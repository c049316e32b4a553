package store

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// postgresURL is the server that TestMain started; empty where Debian's
// postgresql package is not installed.
var postgresURL string

func TestMain(m *testing.M) {
	stop, err := startPostgres()
	if err != nil && os.Getenv("CI") == "true" {
		fmt.Fprintln(os.Stderr, "CI promises PostgreSQL:", err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// startPostgres runs a private server on a socket in a folder of its own, as
// the user postgres where we are root: the server refuses to run as root.
func startPostgres() (stop func(), err error) {
	stop = func() {}
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	if len(bins) == 0 {
		return stop, fmt.Errorf("no pg_ctl: apt-get install postgresql")
	}
	bin := filepath.Dir(bins[len(bins)-1])
	dir, err := os.MkdirTemp("", "megatron-ops-pg")
	if err != nil {
		return stop, err
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
			return stop, fmt.Errorf("chown: %w: %s", err, out)
		}
	}
	data := filepath.Join(dir, "data")
	remove := func() { os.RemoveAll(dir) }
	if err := run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"); err != nil {
		remove()
		return stop, err
	}
	if err := run("pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "log"),
		"-o", "-c listen_addresses='' -c fsync=off -k "+dir, "start"); err != nil {
		remove()
		return stop, err
	}
	postgresURL = "postgres://postgres@/postgres?host=" + dir
	return func() {
		_ = run("pg_ctl", "-D", data, "-m", "immediate", "stop")
		remove()
	}, nil
}

// needPostgres is the URL of the server, or skips the test with the reason.
func needPostgres(t *testing.T) string {
	t.Helper()
	if postgresURL == "" {
		t.Skip("PostgreSQL is not installed: apt-get install postgresql, or run `make setup`")
	}
	return postgresURL
}
