package web_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// BenchmarkTenThousandJobs shows one page of a long queue.
func BenchmarkTenThousandJobs(b *testing.B) {
	s := newSite(b)
	for i := range 10_000 {
		id := slurm.JobID(fmt.Sprint(100_000 + i))
		s.jobs.KnownJobs[id] = slurm.Job{ID: id, Name: "many", User: "alice", State: slurm.Pending, Reason: "Priority"}
	}
	c := s.as("alice")
	for b.Loop() {
		status, _ := c.get("/web/jobs?state=waiting&page=7")
		require.Equal(b, http.StatusOK, status)
	}
}

// BenchmarkALineAtTheEndOfAGigabyte jumps to the last line of a log of 1 GB.
func BenchmarkALineAtTheEndOfAGigabyte(b *testing.B) {
	file := filepath.Join(b.TempDir(), "big.out")
	f, err := os.Create(file)
	require.NoError(b, err)
	line := strings.Repeat("x", 127) + "\n"
	block := strings.Repeat(line, 8192)
	for range 1024 {
		_, err := f.WriteString(block)
		require.NoError(b, err)
	}
	require.NoError(b, f.Close())
	c := &ops.Call{Service: &ops.Service{}, Who: ops.Caller{Surface: ops.Web, User: "alice"}}
	b.ResetTimer()
	for b.Loop() {
		w, err := joblogs.ReadWindow(b.Context(), c, slurm.Job{User: "alice"}, file, joblogs.Place{Line: 8192*1024 - 1})
		require.NoError(b, err)
		require.NotEmpty(b, w.Lines)
	}
}
