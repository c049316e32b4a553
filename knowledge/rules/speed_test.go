package rules

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// BenchmarkPlan judges one parsed configuration. It must take less than 50
// microseconds.
func BenchmarkPlan(b *testing.B) {
	d := newDraft(bases["moe"]).carried("", "", true, "")
	args, errs := megatron.Parse(megatron.Run{Entry: d.Entry, Argv: d.Argv, WorldSize: d.World, Arch: d.Arch, Env: d.Env})
	require.Empty(b, errs)
	b.ReportAllocs()
	for b.Loop() {
		CheckConfig(args.Effective(), lang.EN)
	}
}

// BenchmarkParse parses one command line.
func BenchmarkParse(b *testing.B) {
	d := newDraft(bases["moe"]).carried("", "", true, "")
	b.ReportAllocs()
	for b.Loop() {
		megatron.Parse(megatron.Run{Entry: d.Entry, Argv: d.Argv, WorldSize: d.World, Arch: d.Arch, Env: d.Env})
	}
}

// manyLines returns n configurations as lines of a batch, half of them refused.
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

// BenchmarkBatch judges 10,000 configurations. On all cores a round must take less than two seconds.
func BenchmarkBatch(b *testing.B) {
	lines := manyLines(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		for line := range bytes.Lines(lines) {
			Batch(line)
		}
	}
}

func TestBatchAnswersBadLinesToo(t *testing.T) {
	in := []string{
		`{"id":"a","argv":["--bf16"],"world_size":8,"arch":9}`,
		`not json`,
		`{"id":2,"argv":"--bf16","world_size":8}`,
		`{"id":[3],"argv":[],"world_size":0}`,
		`{"argv":[]}`,
		`{"id":"f","argv":["--num-layers","x"],"world_size":8,"arch":9}`,
		`[1]`,
		`{"id":"h","argv":[],"world_size":8,"arch":3}`,
	}
	want := []struct{ id, field string }{
		{`"a"`, ""}, {`null`, "line"}, {`2`, "argv"}, {`[3]`, "world_size"}, {`null`, "argv is fine"}, {`"f"`, ""}, {`null`, "line"}, {`"h"`, "arch"},
	}
	for i, w := range want {
		var got struct {
			ID    json.RawMessage
			OK    *bool
			Error *struct{ Code, Field, Message string }
		}
		line := string(Batch([]byte(in[i])))
		require.NoError(t, json.Unmarshal([]byte(line), &got), line)
		require.Equal(t, w.id, string(got.ID), line)
		switch w.field {
		case "":
			require.NotNil(t, got.OK, line)
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

// FuzzBatch checks that Batch answers any line with exactly one line of JSON.
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

// FuzzCheck checks that no command line makes the rules panic, and that a refused
// launch always has a problem.
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
