package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The help of a command that is not an operation lists the flags that the command takes.
func TestHelpListsEveryFlag(t *testing.T) {
	t.Setenv(allowRoot, "1")
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	said := func(words ...string) string {
		var out bytes.Buffer
		run(t.Context(), words, streams{in: strings.NewReader(""), out: &out, err: &out})
		return out.String()
	}
	flag := regexp.MustCompile(`--[a-z-]+`)
	listed := 0
	for _, s := range surfaces {
		words := strings.Fields(s.name)
		if s.name == "version" || s.name == "help" { // which do what they do whatever follows
			continue
		}
		help := said(append(words, "--help")...)
		require.Contains(t, help, "megatron-ops "+s.name)
		require.Equal(t, help, said(append([]string{"help"}, words...)...))
		_, takes, ok := strings.Cut(said(append(words, "--no-such-flag")...), s.name+" takes ")
		if !ok {
			continue
		}
		var lines []string
		for _, l := range strings.Split(help, "\n")[1:] {
			if name, is := strings.CutPrefix(l, "  --"); is {
				name, _, _ = strings.Cut(name, " ")
				lines = append(lines, "--"+name)
			}
		}
		slices.Sort(lines)
		require.Equal(t, flag.FindAllString(takes, -1), lines, s.name)
		listed++
	}
	require.GreaterOrEqual(t, listed, 8)
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
