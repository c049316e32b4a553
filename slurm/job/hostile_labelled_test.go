package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A labelledValue is a hostile or unusual value of one field, with the expected outcome:
// refuse; refuse_or_inert, if the value may also be kept as plain text; or intact.
type labelledValue struct {
	ID, Field, Why, Expect string
	Value                  any
}

// fieldOf maps a label's field to its path in a specification, where the two differ.
var fieldOf = map[string]string{"job_name": "name", "container_image": "container.image", "container_mounts": "container.mounts"}

// with returns a specification that has value in the label's field, as decoded JSON.
func (v labelledValue) with(value any) map[string]any {
	spec := map[string]any{"name": "gpt", "nodes": 2, "gpus_per_node": 8, "worktree": "/shared/tree", "mem": "0"}
	field := v.Field
	if named := fieldOf[field]; named != "" {
		field = named
	}
	if inner, ok := strings.CutPrefix(field, "container."); ok {
		spec["container"] = map[string]any{"runtime": "docker", "image": "a", inner: value}
	} else {
		spec[field] = value
	}
	return spec
}

// Each labelled value has the outcome of its label: an error names its field, or the
// value arrives whole, changes no other directive, and is not executed. The golden file
// has the outcome of each value, one per line.
func TestLabelledValuesEndAsTheyMust(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/hostile.jsonl")
	require.NoError(t, err)
	var verdicts strings.Builder
	n := 0
	for line := range bytes.Lines(text) {
		var v labelledValue
		require.NoError(t, json.Unmarshal(line, &v))
		n++
		fmt.Fprintf(&verdicts, "%s %s: %s\n", v.ID, v.Field, outcome(t, v, !testing.Short() || n%4 == 0))
	}
	require.Equal(t, 80, n)
	compareGolden(t, "testdata/hostile.golden", verdicts.String())
}

// outcome returns the outcome of a value. If run is true, it also runs the script of a
// value that is accepted.
func outcome(t *testing.T, v labelledValue, run bool) string {
	t.Helper()
	given, err := json.Marshal(v.with(v.Value))
	require.NoError(t, err)
	spec, err := job.Decode(given)
	var script job.Script
	if err == nil {
		script, err = job.Render(spec, job.Options{})
	}
	if err != nil {
		require.NotEqual(t, "intact", v.Expect, "%s: %v", v.ID, err)
		field := v.Field
		if named := fieldOf[field]; named != "" {
			field = named
		}
		found := job.AsFieldErrors(err)
		require.Len(t, found, 1, "%s: %v", v.ID, err)
		require.True(t, found[0].Field == field || strings.HasPrefix(found[0].Field, field+"."), "%s: %v", v.ID, err)
		return "refused: " + found[0].Msg.EN
	}
	require.NotEqual(t, "refuse", v.Expect, v.ID)
	options := directivesOf(t, script.Text)
	harmless := map[string]any{
		"array": "1-2", "begin": "now", "dependency": "singleton", "signal": "USR1@60", "time": "60", "nodelist": "a", "exclude": "a", "mail_user": "a",
		"args": []string{"a"}, "env": map[string]string{}, "container_mounts": []string{"/a"}, "worktree": "/w",
	}
	plain, ok := harmless[v.Field]
	if !ok {
		plain = "a"
	}
	given, err = json.Marshal(v.with(plain))
	require.NoError(t, err)
	usual, err := job.Decode(given)
	require.NoError(t, err)
	other, err := job.Render(usual, job.Options{})
	require.NoError(t, err)
	want := directivesOf(t, other.Text)
	option := strings.ReplaceAll(strings.ReplaceAll(v.Field, "job_name", "job-name"), "_", "-")
	if _, own := options[option]; own {
		require.Equal(t, v.Value, options[option], "%s: as sbatch reads it", v.ID)
		want[option] = options[option]
	}
	require.Equal(t, want, options, "%s changes another directive", v.ID)
	if !run {
		return "whole"
	}
	r := execute(t, spec, job.Options{})
	require.Zero(t, r.code, "%s: %s", v.ID, r.output)
	ranks := r.of("python")
	require.Len(t, ranks, 2, "%s: %s", v.ID, r.output)
	for _, rank := range ranks {
		require.Equal(t, append([]string{spec.WithDefaults().Script}, spec.Args...), rank.Argv[len(rank.Argv)-len(spec.Args)-1:], v.ID)
		for name, value := range spec.Env {
			require.Equal(t, value, rank.Env[name], v.ID)
		}
	}
	return "whole"
}

// directivesOf returns the options of a script as sbatch reads them.
func directivesOf(t *testing.T, script string) map[string]string {
	t.Helper()
	options, err := slurm.ReadDirectives(script)
	require.NoError(t, err)
	all := map[string]string{}
	for _, o := range options {
		_, twice := all[o.Name]
		require.False(t, twice, o.Name)
		all[o.Name] = o.Value
	}
	return all
}
