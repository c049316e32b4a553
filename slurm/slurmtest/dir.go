package slurmtest

import (
	"os"
	"testing"
	"time"
)

// Dir is a folder for a test whose jobs may still write their last words when
// the test has ended: unlike t.TempDir, its removal is tried for some seconds.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "megatron-ops-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var err error
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("a job still writes to %s ten seconds after its test: %v", dir, err)
	})
	return dir
}
