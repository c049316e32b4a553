package rules

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// BenchmarkPlan judges one configuration that is parsed already; it must stay
// under 50 microseconds.
func BenchmarkPlan(b *testing.B) {
	d := newDraft(bases["moe"]).carried("", "", true, "")
	args, errs := megatron.Parse(megatron.Run{Entry: d.Entry, Argv: d.Argv, WorldSize: d.World, Arch: d.Arch, Env: d.Env})
	require.Empty(b, errs)
	b.ReportAllocs()
	for b.Loop() {
		CheckConfig(args.Effective(), lang.EN)
	}
}

// BenchmarkParse reads one command line.
func BenchmarkParse(b *testing.B) {
	d := newDraft(bases["moe"]).carried("", "", true, "")
	b.ReportAllocs()
	for b.Loop() {
		megatron.Parse(megatron.Run{Entry: d.Entry, Argv: d.Argv, WorldSize: d.World, Arch: d.Arch, Env: d.Env})
	}
}

// manyLines is n configurations as a batch holds them, half of them refused.
func manyLines(tb testing.TB, n int) []byte {
	tb.Helper()
	var out bytes.Buffer
	cases := generate()
	for i := range n {
		c := cases[i%len(cases)]
		line, err := json.Marshal(map[string]any{"id": i, "entry": c.Entry, "argv": c.Argv, "world_size": c.World, "arch": c.Arch, "env": c.Env})
		require.NoError(tb, err)
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

// BenchmarkBatch judges 10,000 configurations; one round must stay under two seconds.
func BenchmarkBatch(b *testing.B) {
	lines := manyLines(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, PlanBatch(bytes.NewReader(lines), io.Discard))
	}
}

func TestTenThousandConfigurationsInTwoSeconds(t *testing.T) {
	lines := manyLines(t, 10_000)
	start := time.Now()
	require.NoError(t, PlanBatch(bytes.NewReader(lines), io.Discard))
	// Ten times the target, so that a busy machine does not fail the test; the
	// benchmark measures.
	require.Less(t, time.Since(start), 20*time.Second)
}

// TestBatchHoldsFewLines feeds a batch of many lines through a pipe and
// watches the heap: it must not grow with the number of lines.
func TestBatchHoldsFewLines(t *testing.T) {
	block := manyLines(t, 500)
	peak := func(blocks int) uint64 {
		readers := make([]io.Reader, blocks)
		for i := range readers {
			readers[i] = bytes.NewReader(block)
		}
		w := &heapWatcher{}
		require.NoError(t, PlanBatch(io.MultiReader(readers...), w))
		return w.peak
	}
	small, large := peak(2), peak(12)
	require.Less(t, large, 2*small+16<<20, "six times the lines, about the same memory")
}

type heapWatcher struct{ peak uint64 }

func (h *heapWatcher) Write(p []byte) (int, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.peak = max(h.peak, m.HeapAlloc)
	return len(p), nil
}

func TestBatchKeepsOrderAndGoesOnAfterBadLines(t *testing.T) {
	in := strings.Join([]string{
		`{"id":"a","argv":["--bf16"],"world_size":8,"arch":9}`,
		`not json`,
		``,
		`{"id":2,"argv":"--bf16","world_size":8}`,
		`{"id":[3],"argv":[],"world_size":0}`,
		`{"argv":[]}`,
		`{"id":"f","argv":["--num-layers","x"],"world_size":8,"arch":9}`,
		`[1]`,
		`{"id":"h","argv":[],"world_size":8,"arch":3}`,
	}, "\n")
	var out bytes.Buffer
	require.NoError(t, PlanBatch(strings.NewReader(in), &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 8, "one answer for each line that is not blank")

	want := []struct{ id, field string }{
		{`"a"`, ""}, {`null`, "line"}, {`2`, "argv"}, {`[3]`, "world_size"}, {`null`, "argv is fine"}, {`"f"`, ""}, {`null`, "line"}, {`"h"`, "arch"},
	}
	for i, w := range want {
		var got struct {
			ID    json.RawMessage
			OK    *bool
			Error *struct{ Code, Field, Message string }
		}
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &got), lines[i])
		require.Equal(t, w.id, string(got.ID), lines[i])
		switch w.field {
		case "":
			require.NotNil(t, got.OK, lines[i])
			require.False(t, *got.OK)
		case "line":
			require.Equal(t, "bad_input", got.Error.Code)
		case "argv is fine":
			require.Equal(t, "world_size", got.Error.Field)
		default:
			require.Equal(t, w.field, got.Error.Field)
			require.Contains(t, got.Error.Message, w.field)
		}
	}
}

// FuzzBatch holds that any line gets exactly one line of JSON.
func FuzzBatch(f *testing.F) {
	f.Add([]byte(`{"id":1,"argv":["--bf16"],"world_size":8,"arch":9,"env":{"A":"b"}}`))
	f.Add([]byte(`{"id":1,"argv":["--moe-layer-freq","([0]*3+[1])*8","--pipeline-model-parallel-layout","Ett|(t|)*4L"],"world_size":1}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"id":{"x":[1,2]},"world_size":1e99,"argv":[]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		got := Batch(line)
		require.True(t, json.Valid(got), "%s", got)
		require.NotContains(t, string(got), "\n")
	})
}

// FuzzCheck holds that no command line makes the rules panic, and that a
// refused launch always says why.
func FuzzCheck(f *testing.F) {
	for _, base := range bases {
		f.Add(strings.Join(strings.Fields(base), " "), 16, 9)
	}
	f.Fuzz(func(t *testing.T, text string, world, arch int) {
		v := Check(megatron.Run{Argv: strings.Split(text, " "), WorldSize: world, Arch: arch})
		if !v.OK {
			require.True(t, Blocking(v.Problems))
		}
		for _, p := range v.Problems {
			require.NotEmpty(t, p.Rule)
			require.NotEmpty(t, p.Message)
			require.NotEmpty(t, p.Field)
		}
	})
}
