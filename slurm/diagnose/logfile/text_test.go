package logfile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheEndsOfALogTellWhetherItIsText has the windows of files.
func TestTheEndsOfALogTellWhetherItIsText(t *testing.T) {
	program, bytes, text := []byte("\x7fELF\x02\x01"), []byte(strings.Repeat("\x01", 90)), []byte("loading\n")
	require.NoError(t, LooksBinary(nil))
	require.Error(t, LooksBinary([]Window{{Data: program}}))
	require.Error(t, LooksBinary([]Window{{Data: program}, {Data: text, Off: 900}}))
	require.NoError(t, LooksBinary([]Window{{Data: program, Off: 64}}), "amid a file")
	require.NoError(t, LooksBinary([]Window{{Data: bytes}, {Data: text, Off: 900}}), "its end is text")
	require.Error(t, LooksBinary([]Window{{Data: text}, {Data: bytes, Off: 900}}))
}

// TestLinesOfADigestKeepTheirNumbers has a digest without the middle of its log.
func TestLinesOfADigestKeepTheirNumbers(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	require.NoError(t, json.NewEncoder(z).Encode(Digest{Name: "x.log", Lines: []DigestLine{{Off: 0, No: 1}, {Off: 10, No: 2}, {Off: 400, No: 41, Gap: true}}}))
	require.NoError(t, z.Close())
	src, err := ReadDigests(&b)
	require.NoError(t, err)
	for off, no := range map[int64]int{0: 1, 10: 2, 400: 41, 5: 0, 20: 0, 900: 0} {
		require.Equal(t, no, src.Logs[0].LineAt(off), off)
	}
}

// The folders of torchrun's attempts give the number of restarts.
func TestHowOftenAgentsRestarted(t *testing.T) {
	for names, restarts := range map[string]int{
		"":                         0,
		"job.out":                  0,
		"a/attempt_0/0/stdout.log": 0,
		"a/attempt_0/0/stdout.log a/attempt_1/0/stderr.log":                          1,
		"a/attempt_2/0/stdout.log a/attempt_1/0/stdout.log b/attempt_0/0/stderr.log": 4,
		"a/attempt_1/0/error.json":                                                   0,
	} {
		require.Equal(t, restarts, Restarts(strings.Fields(names)), names)
	}
	names := []string{"7/attempt-0/a/attempt_3/0/stdout.log", "7/attempt-1/a/attempt_0/0/stdout.log", "7/attempt-1/a/attempt_1/0/stdout.log", "job.out"}
	last := LastAttempts(names)
	for i, earlier := range []bool{true, true, false, false} {
		require.Equal(t, earlier, Earlier(names[i], last), names[i])
	}
}

// TestHowFarAStreamIsUnpacked has sizes of compressed logs.
func TestHowFarAStreamIsUnpacked(t *testing.T) {
	for size, limit := range map[int64]int64{0: anyRatioLimit, 1 << 20: anyRatioLimit, 8 << 20: 512 << 20, 1 << 30: maxUnpacked} {
		require.Equal(t, limit, unpackedLimit(size), size)
	}
}

// There are more broken archives than the source may list.
func TestNotesOnWhatCannotBeReadAreBounded(t *testing.T) {
	dir := t.TempDir()
	for n := range MaxUnreadable + 2 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.zip", n)), []byte("no archive"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "job.out"), []byte("loading\n"), 0o600))
	src, err := Open(dir)
	require.NoError(t, err)
	require.Len(t, src.Unreadable, MaxUnreadable)
	require.Equal(t, []string{"job.out"}, src.Files())
}
