package ops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// batches holds both forms of a batch.
var batches = map[string]func(func([]byte) []byte) func(io.Reader, io.Writer) error{"on all cores": ByLine, "one by one": OneByOne}

func TestABatchAnswersEveryLineInItsOrder(t *testing.T) {
	for name, batch := range batches {
		var in, want strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&in, "  %d \r\n\n", i)
			fmt.Fprintf(&want, "<%d>\n", i)
		}
		in.WriteString("the last has no end")
		want.WriteString("<the last has no end>\n")
		var out bytes.Buffer
		require.NoError(t, batch(func(line []byte) []byte { return fmt.Appendf(nil, "<%s>", line) })(strings.NewReader(in.String()), &out), name)
		require.Equal(t, want.String(), out.String(), name)
	}
}

// A caller that sends one line at a time gets each answer before it sends the next
// line.
func TestABatchAnswersALineBeforeTheNextIsWritten(t *testing.T) {
	for name, batch := range batches {
		in, lines := io.Pipe()
		answers, out := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- batch(bytes.ToUpper)(in, out) }()
		for _, line := range []string{"a\n", "b\n", "c\n"} {
			_, err := io.WriteString(lines, line)
			require.NoError(t, err, name)
			got := make([]byte, len(line))
			_, err = io.ReadFull(answers, got)
			require.NoError(t, err, name)
			require.Equal(t, strings.ToUpper(line), string(got), name)
		}
		require.NoError(t, lines.Close())
		require.NoError(t, <-done, name)
	}
}

func TestALineThatIsTooLongIsAnsweredAndTheNextToo(t *testing.T) {
	var out bytes.Buffer
	in := io.MultiReader(strings.NewReader(strings.Repeat("x", maxLine+1)+"\n"), strings.NewReader("short\n"))
	require.NoError(t, ByLine(bytes.ToUpper)(in, &out))
	long, short, _ := strings.Cut(out.String(), "\n")
	require.Contains(t, long, `"message":"the line is longer than 4194304 bytes"`)
	require.Equal(t, "SHORT\n", short)
}

// A batch of any length keeps only a few lines in memory at a time.
func TestABatchHoldsFewLines(t *testing.T) {
	var held, most atomic.Int64
	line := strings.Repeat("x", 64<<10) + "\n"
	readers := make([]io.Reader, 2000)
	for i := range readers {
		readers[i] = &endReader{strings.NewReader(line), func() { most.Store(max(most.Load(), held.Add(1))) }}
	}
	answer := func([]byte) []byte { held.Add(-1); return nil }
	require.NoError(t, ByLine(answer)(io.MultiReader(readers...), io.Discard))
	require.Zero(t, held.Load(), "every line was answered")
	require.Less(t, most.Load(), int64(16*runtime.GOMAXPROCS(0)+16))
}

// An endReader records when it was read to its end.
type endReader struct {
	io.Reader
	ended func()
}

func (c *endReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if errors.Is(err, io.EOF) && c.ended != nil {
		c.ended()
		c.ended = nil
	}
	return n, err
}

// broken fails on every read and write.
type broken struct{}

func (broken) Read([]byte) (int, error)  { return 0, errors.New("gone") }
func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestABatchEndsWhereItCannotBeReadOrWritten(t *testing.T) {
	for name, batch := range batches {
		require.EqualError(t, batch(bytes.ToUpper)(broken{}, io.Discard), "gone", name)
		require.EqualError(t, batch(bytes.ToUpper)(strings.NewReader(strings.Repeat("x\n", 10_000)), broken{}), "full", name)
	}
}
