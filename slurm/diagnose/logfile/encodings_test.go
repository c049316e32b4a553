package logfile_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/stretchr/testify/require"
)

// The same failure in UTF-16 of either byte order, as PowerShell writes it, and beside Chinese text in
// GBK.
func TestLogsInOtherEncodings(t *testing.T) {
	log := strings.Repeat("Loading a shard\n", 40) + diagnosetest.Raised("ZeroDivisionError: no batch is left")
	wide := func(mark string, low, high int) string {
		b := []byte(mark)
		for _, u := range utf16.Encode([]rune(log)) {
			two := [2]byte{}
			two[low], two[high] = byte(u), byte(u>>8)
			b = append(b, two[:]...)
		}
		return string(b)
	}
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"little endian": {wide("\xff\xfe", 0, 1), 44},
		"big endian":    {wide("\xfe\xff", 1, 0), 44},
		"GBK":           {strings.Repeat("\xcc\xe1\xb9\xa9\xd2\xbb\x82\x80\xd7\xd6\xb5\xe4\n", 400) + log, 444},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "train.log")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
			r, err := diagnose.Path(context.Background(), path, diagnose.Context{JobState: "ENDED"})
			require.NoError(t, err)
			require.Equal(t, "user_exception ZeroDivisionError: no batch is left", r.Class+" "+r.RootLine)
			require.Equal(t, c.line, *r.RootLineNo)
			var lines []diagnose.Line
			src, err := logfile.Open(path)
			require.NoError(t, err)
			require.NoError(t, diagnose.Lines(context.Background(), src, diagnose.Filter{Tail: 1}, func(l diagnose.Line) error {
				lines = append(lines, l)
				return nil
			}))
			require.Len(t, lines, 1)
			require.Equal(t, "ZeroDivisionError: no batch is left", lines[0].Text)
		})
	}
}
