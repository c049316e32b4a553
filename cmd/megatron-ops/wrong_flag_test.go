package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with a flag that every command has is told in the language that any of them names.
func TestAWrongFlagIsToldInTheLanguageThatAnotherNames(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	t.Setenv("LC_ALL", "C")
	for line, says := range map[string]string{
		"list --output x.log --lang zh":    "不支持输出格式",
		"--lang zh list --output x.log":    "不支持输出格式",
		"list --output x.log":              "is not known",
		"list --output toml --lang xx":     "output",
		"list -o x.log --lang zh -- --all": "不支持输出格式",
	} {
		var out, errs bytes.Buffer
		require.NotZero(t, run(t.Context(), strings.Fields(line), streams{in: strings.NewReader(""), out: &out, err: &errs}), line)
		require.Contains(t, errs.String(), says, line)
		require.Empty(t, out.String(), line)
	}
}
