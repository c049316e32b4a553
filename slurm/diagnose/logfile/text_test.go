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

// TestWhatIsNoText has what files hold that are taken for logs by their names: text in any
// encoding is read, also with what a crashed process left in it.
func TestWhatIsNoText(t *testing.T) {
	const a, odd, control = "a", "\xe8", "\x01"
	many := strings.Repeat
	for name, c := range map[string]struct {
		data, is string
		off      int64
	}{
		"text":                                  {"loading\n", "", 0},
		"nothing":                               {"", "", 0},
		"a program":                             {"\x7fELF\x02\x01", "a program", 0},
		"compressed":                            {"\x1f\x8b\x08", "gzip", 0},
		"an archive":                            {"PK\x03\x04", "zip", 0},
		"a picture":                             {"\x89PNG\r\n", "a picture", 0},
		"the same amid a file":                  {"\x7fELF\x02\x01", "", 64},
		"bytes":                                 {many("\x00\x01\x02\xc8\x00\x07", 900), "binary", 0},
		"nought alone":                          {many("\x00", 900), "", 0},
		"Latin-1":                               {many("Erreur d'acc\xe8s\n", 9), "", 0},
		"GBK":                                   {many("\xcc\xe1\xb9\xa9\xd2\xbb\x82\x80\n", 90), "", 0},
		"colours, bells and bars":               {many("\x1b[31m9%\r\a\b\f\t\n", 90), "", 0},
		"bytes in a third of it":                {many(control, 10) + many(a, 20), "", 0},
		"bytes in more than a third":            {many(control, 10) + many(a, 19), "binary", 0},
		"one that controls in 64 of a code":     {control + many(odd, 30) + many(a, 33), "", 0},
		"one that controls in 63 of a code":     {control + many(odd, 30) + many(a, 32), "binary", 0},
		"bytes long before the end of the text": {many(control, 9000) + many(a, 4096), "", 0},
		"bytes at the end":                      {many(a, 9000) + many(control, 4096), "binary", 0},
		"a sign that is meant to be unknown":    {many("\ufffd", 90) + many(control, 2), "", 0},
	} {
		err := LooksBinary([]Window{{Data: []byte(c.data), Off: c.off}})
		if c.is == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.is, name)
	}
	require.NoError(t, LooksBinary(nil))
	require.NoError(t, LooksBinary([]Window{{Data: []byte(many(control, 90))}, {Data: []byte("loading\n"), Off: 900}}), "its end is text")
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

// TestHowOftenAgentsRestarted counts by the folders of torchrun's attempts.
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
	for size, limit := range map[int64]int64{0: plainlySmall, 1 << 20: plainlySmall, 8 << 20: 512 << 20, 1 << 30: maxUnpacked} {
		require.Equal(t, limit, unpackedLimit(size), size)
	}
}

// TestNotesOnWhatCannotBeReadAreBounded has more broken archives than are named.
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
