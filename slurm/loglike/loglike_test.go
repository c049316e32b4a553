package loglike_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/loglike"
)

// The names of files in job folders tell which of them may be logs.
func TestLogsAreToldByTheirNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"slurm-4711.out", "a.log", "c.ERR", "d.txt", "notes", "rank0", "gpt.4711", "gpt.o4711", "TRAIN.O4711", "gpt.4711.o", "4711.o", "gpt-4711.O", "gpt.4711.e",
		"gpt.stdout", "gpt.log.1", "gpt.log-20261123", "gpt.log.bak", "gpt.gpu3", "g.log.gz", "logs.tar", "so.long", "tfevents.log",
	} {
		require.True(t, loglike.Name(name), name)
	}
	for _, name := range []string{
		".hidden", ".j.log", "events.out.tfevents.1", "config.yaml", "model.PT", "train.py", "adam_sm80.o", "i.o", "f.json", "h.csv", "x.distcp", "README.md", "libx.so",
	} {
		require.False(t, loglike.Name(name), name)
	}
	for _, folder := range []string{".git", ".venv"} {
		require.Error(t, loglike.Enter(folder), folder)
	}
	for _, folder := range []string{"logs", "venv", ".hidden", "."} {
		require.NoError(t, loglike.Enter(folder), folder)
	}
}

// Files that are not text are recognised although their names are those of logs. Text in any encoding
// is read, also with stray bytes of a crashed process.
func TestWhatIsNoText(t *testing.T) {
	t.Parallel()
	const a, odd, control = "a", "\xe8", "\x01"
	many := strings.Repeat
	for name, c := range map[string]struct{ data, is string }{
		"text":                                  {"loading\n", ""},
		"nothing":                               {"", ""},
		"a program":                             {"\x7fELF\x02\x01", "a program"},
		"xz":                                    {"\xfd7zXZ\x00\x00\x04", "xz -d"},
		"bzip2":                                 {"BZh91AY&SY\x00", "bzip2 -d"},
		"compressed":                            {"\x1f\x8b\x08", "gzip"},
		"an archive":                            {"PK\x03\x04", "zip"},
		"a picture":                             {"\x89PNG\r\n", "a picture"},
		"bytes":                                 {many("\x00\x01\x02\xc8\x00\x07", 900), "binary"},
		"nought alone":                          {many("\x00", 900), ""},
		"Latin-1":                               {many("Erreur d'acc\xe8s\n", 9), ""},
		"GBK":                                   {many("\xcc\xe1\xb9\xa9\xd2\xbb\x82\x80\n", 90), ""},
		"colours, bells and bars":               {many("\x1b[31m9%\r\a\b\f\t\n", 90), ""},
		"bytes in a third of it":                {many(control, 10) + many(a, 20), ""},
		"bytes in more than a third":            {many(control, 10) + many(a, 19), "binary"},
		"one that controls in 64 of a code":     {control + many(odd, 30) + many(a, 33), ""},
		"one that controls in 63 of a code":     {control + many(odd, 30) + many(a, 32), "binary"},
		"bytes long before the end of the text": {many(control, 9000) + many(a, 4096), ""},
		"bytes at the end":                      {many(a, 9000) + many(control, 4096), "binary"},
		"a sign that is meant to be unknown":    {many("\ufffd", 90) + many(control, 2), ""},
	} {
		err := loglike.Text([]byte(c.data), []byte(c.data))
		if c.is == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.is, name)
	}
}
