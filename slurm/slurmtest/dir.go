package slurmtest

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Dir returns a folder for a test whose jobs may outlive the test. Unlike t.TempDir,
// its cleanup first kills processes that still use the folder, and retries the removal
// for some seconds.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "megatron-ops-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var err error
		for range 500 {
			running := startedWith(dir)
			for _, id := range running {
				_ = syscall.Kill(id, syscall.SIGKILL)
			}
			if err = os.RemoveAll(dir); err == nil && len(running) == 0 {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s is in use ten seconds after its test: %v", dir, err)
	})
	return dir
}

// startedWith lists the processes that have dir in an argument or in their environment,
// such as jobs, their supervisors, and servers with their state in dir.
func startedWith(dir string) []int {
	return processes(func(args, env []string) bool {
		return slices.ContainsFunc(slices.Concat(args, env), func(word string) bool { return strings.Contains(word, dir) })
	})
}
