package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exampleCall matches a submission in an example, whose arguments are written out.
var exampleCall = regexp.MustCompile("(?:\\bmegatron-ops |\")(?:submit|plan) ([^\"`\n…]* -- [^\"`\n…]+)")

// Whoever copies one of our examples is not warned about it.
func TestOurExamplesPlanWithoutAWarning(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	root := filepath.Join("..", "..")
	calls := map[string][]string{"the specification of the docs": {"-f", filepath.Join(root, "internal", "docs", "testdata", "gpt-8b.yaml")}}
	for _, pattern := range []string{"README*.md", "docs/*.md", "docs/*/*.md", "skills/*/*.md", "skills/*/references/*.md", "bot/testdata/day*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range exampleCall.FindAllStringSubmatch(string(text), -1) {
				calls[file+": "+m[1]] = strings.Fields(m[1])
			}
		}
	}
	for name, spec := range recipeSpecs(t) {
		file := filepath.Join(t.TempDir(), "job.yaml")
		require.NoError(t, os.WriteFile(file, spec, 0o600))
		calls["the recipe "+name] = []string{"-f", file, "--worktree", "/lustre/me/Megatron-LM", "--time", "4:00:00"} // a person adds these two; the folder is not here, so what it holds is not judged
	}
	require.Greater(t, len(calls), 30)
	for name, words := range calls {
		require.Empty(t, warningsOf(t, words), name)
	}
}

// recipeSpecs returns the specification of every recipe that a published run fills.
func recipeSpecs(t *testing.T) map[string][]byte {
	t.Helper()
	var list struct{ Models []struct{ Name string } }
	require.NoError(t, json.Unmarshal(answerOf(t, "recipes", "list"), &list))
	specs := map[string][]byte{}
	for _, m := range list.Models {
		var one struct{ Spec string }
		require.NoError(t, json.Unmarshal(answerOf(t, "recipes", "render", m.Name), &one))
		if one.Spec != "" {
			specs[m.Name] = []byte(one.Spec)
		}
	}
	return specs
}

// warningsOf returns the warnings of a plan.
func warningsOf(t *testing.T, words []string) (warnings []string) {
	t.Helper()
	words = append([]string{"plan"}, words...)
	for i, w := range words {
		if w == "--yes" { // of submit
			words = append(words[:i:i], words[i+1:]...)
			break
		}
	}
	var plan struct {
		Problems []struct{ Rule, Severity, Message string }
	}
	require.NoError(t, json.Unmarshal(answerOf(t, words...), &plan), words)
	require.NotNil(t, plan.Problems, words)
	for _, p := range plan.Problems {
		if p.Severity == "warning" {
			warnings = append(warnings, p.Rule+": "+p.Message)
		}
	}
	return warnings
}

// answerOf returns the JSON that a command prints.
func answerOf(t *testing.T, words ...string) []byte {
	t.Helper()
	var out, errs strings.Builder
	run(t.Context(), append([]string{"--cluster", "local", "-o", "json"}, words...), streams{in: strings.NewReader(""), out: &out, err: &errs})
	require.NotEmpty(t, out.String(), "%s: %s", words, errs.String())
	return []byte(out.String())
}
