package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the schema")

// Editors complete and check megatron-ops.yaml by its schema, which is generated from
// the structs. The examples in the docs and packages must be valid by it, and wrong
// keys must not.
func TestTheSchemaIsTheConfigurations(t *testing.T) {
	schema, err := jsonschema.For[Config](nil)
	require.NoError(t, err)
	schema.Schema, schema.Title = "https://json-schema.org/draft/2020-12/schema", "megatron-ops.yaml"
	text, err := json.MarshalIndent(schema, "", "  ")
	require.NoError(t, err)
	text = append(text, '\n')
	const file = "../../packaging/megatron-ops.schema.json"
	if *update {
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(written), "go test ./internal/config -update")

	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	valid := func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		var plain any
		if err := json.Unmarshal(raw, &plain); err != nil {
			return err
		}
		if plain == nil {
			return nil
		}
		return resolved.Validate(plain)
	}
	require.Error(t, valid("slackk: {}"))
	require.Error(t, valid("web: {operators: ada}"))
	seen := 0
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	key := regexp.MustCompile(`(?m)^(cluster|clusters|site|slack|mcp|web|notify|knowledge|store|lang):`)
	for _, page := range pages {
		b, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
			if key.MatchString(m[1]) && !regexp.MustCompile(`(?m)^(nodes|name|worktree):`).MatchString(m[1]) {
				seen++
				require.NoError(t, valid(m[1]), "%s:\n%s", page, m[1])
			}
		}
	}
	require.Positive(t, seen)
	example, err := os.ReadFile("../../packaging/megatron-ops.yaml")
	require.NoError(t, err)
	require.NoError(t, valid(string(example)))
	_, shown, _ := strings.Cut(string(example), "#\n")
	require.NoError(t, valid(regexp.MustCompile(`(?m)^# ?`).ReplaceAllString(shown, "")), "its examples too")
}
