package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGeneratedFileIsCurrent checks that flags_gen.go is generated from the current flags.jsonl.
func TestGeneratedFileIsCurrent(t *testing.T) {
	out := filepath.Join(t.TempDir(), "flags_gen.go")
	require.NoError(t, run("flags.jsonl", out, "../../..", "", release{}))
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	want, err := os.ReadFile("../flags_gen.go")
	require.NoError(t, err)
	require.True(t, string(got) == string(want), "run: go generate ./knowledge/megatron")
}

func TestAddRelease(t *testing.T) {
	dir := t.TempDir()
	flags, out := filepath.Join(dir, "flags.jsonl"), filepath.Join(dir, "flags_gen.go")
	require.NoError(t, os.WriteFile(flags, nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rule.go"), []byte(`package rules; var x = c.A || c.Given("--old")`), 0o644))
	add := func(name, constant, rows string) string {
		dump := filepath.Join(dir, name+".json")
		require.NoError(t, os.WriteFile(dump, []byte(`{"args":[`+rows+`]}`), 0o644))
		require.NoError(t, run(flags, out, dir, dump, release{Name: name, Const: constant, Tag: name, Commit: "c" + name, Date: "2026-01-01"}))
		raw, err := os.ReadFile(flags)
		require.NoError(t, err)
		return string(raw)
	}
	const kept = `{"name":"--a","dest":"a","type":"int","action":"StoreAction","default":1,"group":"g"}`
	add("main", "Main", kept+`,{"name":"--new","dest":"new","type":"flag","action":"StoreTrueAction","default":false,"nargs":0,"group":"g"}`)
	text := add("0.1.0", "V1", `{"name":"--a","dest":"a","type":"int","action":"StoreAction","default":1,"group":"other"},{"name":"--old","dest":"old","type":"str","default":"x","group":"g"}`)
	require.Equal(t, `{"release":"0.1.0","const":"V1","tag":"0.1.0","commit":"c0.1.0","date":"2026-01-01"}
{"release":"main","const":"Main","tag":"main","commit":"cmain","date":"2026-01-01"}
{"name":"--a","dest":"a","type":"int","default":1,"group":"g"}
{"since":"main","name":"--new","dest":"new","type":"flag","action":"StoreTrueAction","default":false,"group":"g"}
{"until":"0.1.0","name":"--old","dest":"old","type":"str","default":"x","group":"g"}
`, text)

	text = add("0.2.0", "V2", `{"name":"--a","dest":"a","type":"int","default":2,"group":"g"}`)
	require.Contains(t, text, `{"since":"0.2.0","until":"0.2.0","name":"--a"`)
	source, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(source), "case V2:\n\t\to.A = 2")
	require.NotContains(t, string(source), "\tNew ", "no source uses it")
	require.Contains(t, string(source), `{Name: "--old", Type: Str, dest: 1, Until: V1, Default: "x", Group: "g"}`)
}

func TestUnknownTypeIsAnError(t *testing.T) {
	_, err := generate(history{releases: []release{{Name: "main", Const: "Main"}}, rows: []row{{Name: "--x", Type: "complex"}}}, func(string) bool { return true })
	require.ErrorContains(t, err, `--x: unknown type "complex"`)
}
