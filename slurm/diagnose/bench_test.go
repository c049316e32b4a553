package diagnose_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// literals are words for which a person would search a folder of logs.
var literals = []string{
	"Traceback (most recent call last)", "CUDA out of memory", "NCCL WARN", "Segmentation fault", "RuntimeError", "oom-kill",
	"Xid", "No space left on device", "Watchdog caught", "CANCELLED AT",
}

// rankLogs writes the logs of n ranks, of about size bytes each, into a folder that is kept between
// runs. One of the ranks failed first.
func rankLogs(b testing.TB, n, size int) (dir string, root int) {
	b.Helper()
	base := os.Getenv("DIAGNOSE_BENCH_DIR")
	if base == "" {
		base = filepath.Join(os.TempDir(), "megatron-ops-bench")
	}
	dir = filepath.Join(base, fmt.Sprintf("%d-%d", n, size))
	root = n * 2 / 3
	if exists(filepath.Join(dir, "complete")) {
		return dir, root
	}
	require.NoError(b, os.MkdirAll(dir, 0o755))
	for rank := range n {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("rank%04d.err", rank)))
		require.NoError(b, err)
		var s strings.Builder
		at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
		written := 0
		for i := 1; written < size-4096; i++ {
			fmt.Fprintf(&s, " [%s] iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): 4000.0 "+
				"| throughput per GPU (TFLOP/s/GPU): 412.3 | learning rate: 1.000000E-04 | global batch size:    64 | lm loss: 2.%06dE+00 | loss scale: 1.0 "+
				"| grad norm: 0.500 | number of skipped iterations:   0 | number of nan iterations:   0 |\n", at.Format("2006-01-02 15:04:05.000000"), i, 64*i,
				i%1000000)
			at = at.Add(4 * time.Second)
			if s.Len() > 1<<20 {
				written += s.Len()
				_, err = f.WriteString(s.String())
				require.NoError(b, err)
				s.Reset()
			}
			if written+s.Len() >= size-4096 {
				break
			}
		}
		if rank == root {
			fmt.Fprintf(&s, "[rank%d]: Traceback (most recent call last):\n[rank%d]:   File \"/w/pretrain_gpt.py\", line 9, in <module>\n"+
				"[rank%d]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\n", rank, rank, rank)
		} else {
			fmt.Fprintf(&s, "[rank%d]:[E%s ProcessGroupNCCL.cpp:629] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, "+
				"OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600063 milliseconds before timing out.\n", rank,
				at.Add(10*time.Minute).Format("0102 15:04:05.000000"), rank)
		}
		_, err = f.WriteString(s.String())
		require.NoError(b, err)
		require.NoError(b, f.Close())
	}
	require.NoError(b, os.WriteFile(filepath.Join(dir, "complete"), nil, 0o644))
	return dir, root
}

// BenchmarkFolder diagnoses folders of rank logs. For comparison it searches the largest folder for ten
// literals with ripgrep, or with grep -E where ripgrep is not installed.
func BenchmarkFolder(b *testing.B) {
	for _, c := range []struct {
		name    string
		n, size int
	}{{"256x13MB", 256, 13 << 20}, {"4096x1MB", 4096, 1 << 20}} {
		dir, root := rankLogs(b, c.n, c.size)
		warm(b, dir)
		b.Run(c.name+"/diagnose", func(b *testing.B) {
			for b.Loop() {
				r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "ENDED"})
				require.NoError(b, err)
				require.Equal(b, outcome.CUDAOOM, r.Class)
				require.Equal(b, root, *r.RootRank)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-sys")
		})
		if tool, args := searcher(dir); tool != "" {
			b.Run(c.name+"/"+filepath.Base(tool), func(b *testing.B) {
				for b.Loop() {
					cmd := exec.Command(tool, args...)
					cmd.Env = append(os.Environ(), "LC_ALL=C")
					require.NoError(b, cmd.Run())
				}
			})
		}
	}
}

// BenchmarkDifferentErrors diagnoses folders of small logs, each with errors of words of its own. Four times
// as many logs must take about four times as long.
func BenchmarkDifferentErrors(b *testing.B) {
	for _, n := range []int{512, 2048} {
		dir := b.TempDir()
		for i := range n {
			require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%04d.err", i)), []byte(differentErrors(i)), 0o600))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				_, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "ENDED"})
				require.NoError(b, err)
			}
		})
	}
}

// differentErrors returns a log in which one program logs four exceptions and goes on after each, and at
// last ends by another one. No other log has the same words.
func differentErrors(log int) string {
	var s strings.Builder
	word := func(k int) string {
		return strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprintf("%05d", 10*log+k))
	}
	for k := range 5 {
		fmt.Fprintf(&s, "Traceback (most recent call last):\n  File \"/w/%[1]s.py\", line 9, in %[1]s\n    read()\n"+
			"ValueError: cannot read the shard %[1]s\n", word(k))
		for i := range 40 * min(1, 4-k) {
			if log%2 == 0 { // every second program prints the time
				fmt.Fprintf(&s, "[2026-06-11 10:%02d:%02d] ", k, i)
			}
			fmt.Fprintf(&s, "iteration %d/ 500 | lm loss: 2.%d |\n", 40*k+i, i)
		}
	}
	return s.String()
}

// searcher returns the fastest installed search tool with its arguments.
func searcher(dir string) (string, []string) {
	pattern := strings.NewReplacer("(", `\(`, ")", `\)`).Replace(strings.Join(literals, "|"))
	if p, err := exec.LookPath("rg"); err == nil {
		return p, []string{"-c", "-e", pattern, dir}
	}
	if p, err := exec.LookPath("grep"); err == nil {
		return p, []string{"-rcE", pattern, dir}
	}
	return "", nil
}

// warm reads a folder into the page cache.
func warm(b testing.TB, dir string) {
	names, err := filepath.Glob(filepath.Join(dir, "*.err"))
	require.NoError(b, err)
	buf := make([]byte, 1<<20)
	for _, n := range names {
		f, err := os.Open(n)
		require.NoError(b, err)
		for {
			if k, _ := f.Read(buf); k == 0 {
				break
			}
		}
		f.Close()
	}
}
