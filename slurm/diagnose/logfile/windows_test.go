package logfile_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/stretchr/testify/require"
)

// lineLength is the length of a numbered line. All bounds on windows are multiples of it.
const lineLength = 16

// numbered returns a log of size bytes, whose lines are their own numbers.
func numbered(size int) []byte {
	b := make([]byte, 0, size+lineLength)
	for n := 1; len(b) < size; n++ {
		line := strconv.Itoa(n)
		b = append(b, strings.Repeat("0", lineLength-1-len(line))...)
		b = append(append(b, line...), '\n')
	}
	return b[:size]
}

// opened opens a log with the given content.
func opened(t *testing.T, content []byte) (f *logfile.File, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "rank0.log")
	require.NoError(t, os.WriteFile(path, content, 0o644))
	src, err := logfile.Open(path)
	require.NoError(t, err)
	return src.Logs[0], path
}

// windows reads the windows of a log that looks healthy everywhere.
func windows(t *testing.T, f *logfile.File, want int) []logfile.Window {
	t.Helper()
	var buf []byte
	ws, err := f.Windows(t.Context(), &buf, want, func([]byte) bool { return true })
	require.NoError(t, err)
	return ws
}

// requireNumbered checks that a window begins with a whole line, and that LineAt returns the line's
// number.
func requireNumbered(t *testing.T, f *logfile.File, w logfile.Window) {
	t.Helper()
	line, _, _ := bytes.Cut(w.Data, logfile.Newline)
	require.Equal(t, fmt.Sprintf("%015d", f.LineAt(w.Off)), string(line))
}

// Logs of sizes around the bounds: the windows hold whole lines from both ends.
func TestBothEndsOfALogAreRead(t *testing.T) {
	const small, large = 2 * logfile.MinWindow, 2*logfile.MinWindow + lineLength
	for _, c := range []struct {
		name                string
		size, want          int
		head, tail, tailOff int // bytes; a log that is read whole has no tail
	}{
		{"shorter than asked for", 1 << 10, small, 1 << 10, 0, 0},
		{"as long as asked for", small, small, small, 0, 0},
		{"one line more", small + lineLength, small, 2 * lineLength, small - lineLength, 2 * lineLength},
		{"a piece of a line more", small + 5, small, lineLength, small - 11, lineLength},
		{"all but the end of a line more", small + lineLength - 1, small, lineLength, small - 1, lineLength},
		{"a short head", 1 << 20, small, 8 << 10, small - lineLength, 1<<20 - small + lineLength},
		{"a long head", 1 << 20, large, 64 << 10, large - lineLength, 1<<20 - large + lineLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			content := numbered(c.size)
			f, _ := opened(t, content)
			ws := windows(t, f, c.want)
			if c.tail == 0 {
				require.Len(t, ws, 1)
				require.Equal(t, content, ws[0].Data)
				return
			}
			require.Len(t, ws, 2)
			require.Len(t, ws[0].Data, c.head)
			require.Equal(t, content[:c.head], ws[0].Data)
			require.Equal(t, int64(c.tailOff), ws[1].Off)
			require.Len(t, ws[1].Data, c.tail)
			require.True(t, bytes.Equal(content[c.tailOff:], ws[1].Data))
			requireNumbered(t, f, ws[1])
		})
	}
}

// The last line is longer than the window, and the first longer than the head.
func TestAnEndWithoutLinesIsReadAsItIs(t *testing.T) {
	long := append(bytes.Repeat([]byte{'x'}, 200<<10), '\n')
	f, _ := opened(t, long)
	ws := windows(t, f, logfile.MinWindow)
	require.Len(t, ws, 2)
	require.Len(t, ws[1].Data, logfile.MinWindow)
	require.Len(t, ws[0].Data, 8<<10)
	f, _ = opened(t, append([]byte{'\n'}, long...))
	ws = windows(t, f, logfile.MinWindow)
	require.Equal(t, "\n", string(ws[0].Data), "a line that is cut off is none")
}

// Windows reads further back step by step, up to its bound, until it sees progress.
func TestTheEndIsExtendedUntilProgressIsSeen(t *testing.T) {
	content := numbered(2 << 20)
	f, _ := opened(t, content)
	progress := content[len(content)-600<<10:][:lineLength]
	var buf []byte
	ws, err := f.Windows(t.Context(), &buf, logfile.MinWindow, func(b []byte) bool { return bytes.Contains(b, progress) })
	require.NoError(t, err)
	require.Len(t, ws, 2)
	require.Len(t, ws[1].Data, 1<<20-lineLength)
	require.Len(t, ws[0].Data, 64<<10)
	requireNumbered(t, f, ws[1])
	ws, err = f.Windows(t.Context(), &buf, logfile.MinWindow, func([]byte) bool { return false })
	require.NoError(t, err)
	require.Len(t, ws, 1, "all of it")
	require.True(t, bytes.Equal(content, ws[0].Data))

	f, path := opened(t, []byte{'\n'})
	require.NoError(t, os.Truncate(path, 40<<20))
	f.Size = 40 << 20
	ws, err = f.Windows(t.Context(), &buf, logfile.MaxWindow, func([]byte) bool { return false })
	require.NoError(t, err)
	require.Len(t, ws[1].Data, logfile.MaxExtended)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = f.Windows(stopped, &buf, logfile.MinWindow, func([]byte) bool { return true })
	require.ErrorIs(t, err, context.Canceled)
}

// The log is truncated after it was found.
func TestALogThatBecomesShorterIsReadAsFarAsItGoes(t *testing.T) {
	content := numbered(32 << 10)
	f, path := opened(t, content)
	require.NoError(t, os.Truncate(path, 8<<10))
	ws := windows(t, f, logfile.MinWindow)
	require.Len(t, ws, 1)
	require.Equal(t, content[:8<<10], ws[0].Data)
	require.Equal(t, 8<<10/lineLength+1, f.LineAt(1<<20), "places behind its end have the number after the last")
	require.NoError(t, os.Remove(path))
	require.Zero(t, f.LineAt(lineLength))
	var buf []byte
	_, err := f.Windows(t.Context(), &buf, logfile.MinWindow, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// LineAt counts over more bytes than it reads at once, in a file and in a stream whose middle is not
// kept.
func TestLinesAreNumberedFromTheStart(t *testing.T) {
	content := numbered(20 << 20)
	f, _ := opened(t, content[:3<<20])
	for _, line := range []int{1, 2, 1 << 20 / lineLength, 1<<20/lineLength + 1, 1<<20/lineLength + 2, 3 << 20 / lineLength} {
		require.Equal(t, line, f.LineAt(int64(line-1)*lineLength))
	}
	src, err := logfile.Read("stdin", bytes.NewReader(content))
	require.NoError(t, err)
	f = src.Logs[0]
	require.Equal(t, int64(len(content)), f.Size)
	ws := windows(t, f, logfile.MinWindow)
	require.Len(t, ws, 2)
	require.True(t, bytes.Equal(content[:1<<20], ws[0].Data))
	require.True(t, bytes.Equal(content[ws[1].Off:], ws[1].Data), "all from where the tail starts")
	require.GreaterOrEqual(t, len(ws[1].Data), 8<<20)
	require.LessOrEqual(t, len(ws[1].Data), 16<<20)
	for _, w := range ws {
		requireNumbered(t, f, w)
		end := w.Off + int64(len(w.Data))
		require.Equal(t, int(end)/lineLength, f.LineAt(end-lineLength), "the last line of the window")
		require.Equal(t, int(end)/lineLength+1, f.LineAt(end), "the line after the window")
	}
	src, err = logfile.Read("stdin", bytes.NewReader(content[:4<<20]))
	require.NoError(t, err)
	ws = windows(t, src.Logs[0], logfile.MinWindow)
	require.Len(t, ws, 1, "nothing of it is dropped")
	require.True(t, bytes.Equal(content[:4<<20], ws[0].Data))
}
