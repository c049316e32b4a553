package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/mcp/clients"
)

// Every command that is not an operation has its words and flags described in both languages, and
// `mcp config` knows every client.
func TestHelpOfACommandHasBothLanguages(t *testing.T) {
	for _, c := range commands() {
		for _, p := range c.Params() {
			require.NotEmpty(t, p.Help.EN, "%s %s", c.Name, p.Name)
			require.Equal(t, lang.ZH, lang.Of(p.Help.ZH), "%s %s", c.Name, p.Name)
			if p.Name == "client" {
				require.Equal(t, clients.Names(), p.Enum)
			}
		}
		for _, words := range []string{"help " + c.Name, c.Name + " --help"} {
			var out, errs bytes.Buffer
			require.Zero(t, run(t.Context(), strings.Fields(words), streams{in: strings.NewReader(""), out: &out, err: &errs}), words)
			require.Contains(t, out.String(), "megatron-ops "+c.Name, words)
			require.Empty(t, errs.String(), words)
		}
	}
}

// The help of an operation shows its arguments, its flags by both names, and their choices.
func TestHelpOfAnOperation(t *testing.T) {
	for command, has := range map[string][]string{
		"plan":  {"megatron-ops plan [job.yaml]", "\n  -f, --file ", "\n  -N, --nodes ", "\n  --worktree ", "\n  --batch "},
		"image": {"megatron-ops image ", "\n  --worktree "},
		"hold":  {"megatron-ops hold <job>"},
	} {
		var out bytes.Buffer
		require.Zero(t, run(t.Context(), []string{command, "--help"}, streams{in: strings.NewReader(""), out: &out, err: &out}))
		for _, part := range has {
			require.Contains(t, out.String(), part)
		}
	}
}

// A group of commands shows each of them.
func TestHelpOfAGroup(t *testing.T) {
	for _, words := range [][]string{{"slack", "--help"}, {"help", "slack"}} {
		var out bytes.Buffer
		require.Zero(t, run(t.Context(), words, streams{in: strings.NewReader(""), out: &out, err: &out}))
		require.Contains(t, out.String(), "megatron-ops slack manifest")
		require.Contains(t, out.String(), "--url")
	}
}

// A wrong MEGATRON_OPS_LANG stops every command but help and version, which answer and warn
// of it.
func TestHelpWarnsOfALanguageThatIsNone(t *testing.T) {
	t.Setenv("MEGATRON_OPS_LANG", "de")
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	warning := "megatron-ops: MEGATRON_OPS_LANG: \"de\" is not a supported language\nmegatron-ops: try: en or zh\n"
	for words, code := range map[string]int{"": 0, "help": 0, "help submit": 0, "submit --help": 0, "version": 0, "--version": 0, "list": 2} {
		var out, err bytes.Buffer
		require.Equal(t, code, run(t.Context(), strings.Fields(words), streams{in: strings.NewReader(""), out: &out, err: &err}), words)
		require.Equal(t, code == 0, out.Len() > 0, words)
		require.Equal(t, warning, err.String(), words)
	}
}

// The commands that are no operations heed -o too.
func TestDoctorAndVersionInJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("MEGATRON_OPS_STATE_DIR", file)
	t.Setenv("MEGATRON_OPS_CLUSTER", "local")
	var told struct {
		Version string     `json:"version"`
		Checks  []checkRow `json:"checks"`
	}
	for words, code := range map[string]int{"version": 0, "doctor": int(found)} {
		var out, err bytes.Buffer
		require.Equal(t, code, run(t.Context(), []string{"-o", "json", words}, streams{in: strings.NewReader(""), out: &out, err: &err}), words)
		require.NoError(t, json.Unmarshal(out.Bytes(), &told), words)
	}
	require.Equal(t, version(), told.Version)
	i := slices.IndexFunc(told.Checks, func(c checkRow) bool { return c.Check == "state directory" })
	require.Equal(t, checkRow{
		Check: "state directory", Problem: file + ": not a directory", Fix: "MEGATRON_OPS_STATE_DIR names a directory that you may write",
	}, told.Checks[i])
	require.True(t, told.Checks[0].OK, "the configuration")
}
