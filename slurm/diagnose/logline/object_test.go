package logline_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/stretchr/testify/require"
)

// A log driver writes each line as an object. A structured logger's objects are its own records.
func TestAnObjectAroundEveryLineIsTakenOff(t *testing.T) {
	wrapped := []string{
		`{"log":"Traceback (most recent call last):\n","stream":"stderr","time":"2026-06-11T10:00:01.059175738Z"}`,
		`{"log":"  File \"t.py\", line 3, in main\n","stream":"stderr","time":"2026-06-11T10:00:01.059175738Z"}`,
		`{"log":"KeyError: 'x'\n","stream":"stderr","time":"2026-06-11T10:00:02.059175738Z"}`,
	}
	f := logline.FrameOf(wrapped)
	require.True(t, f.Framed())
	rest, _ := f.Cut(wrapped[2])
	require.Equal(t, "2026-06-11T10:00:02.059Z KeyError: 'x'", rest)
	for _, of := range []string{`"message"`, `"msg"`, `"text"`} {
		f = logline.FrameOf([]string{`{` + of + `:"Traceback (most recent call last):"}`, `{` + of + `:"  File \"t.py\", line 3, in main"}`, `{` + of + `:"KeyError: 'x'"}`})
		require.True(t, f.Framed(), of)
	}
	for _, own := range []string{`{"level":"info","msg":"a"}`, `{"step":3,"msg":"a"}`, `{"step":3,"loss":2.1}`} {
		require.False(t, logline.FrameOf([]string{own, own, own, own}).Framed(), own)
	}
}
