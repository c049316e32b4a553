package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

func drawn(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(b.String())
}

// A form's values become a specification, and that becomes the same form again.
func TestValuesBecomeASpecificationAndValuesAgain(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"name": " gpt ", "worktree": "/w", "nodes": "2", "gpus_per_node": "0", "preset": "debug-nccl,fast",
		"args": `--num-layers 24 --name "a b"`,
		"env":  "A=1\n\nexport B=x=y\nexport C=\"mlx5_0\"\nD=“a b”\nE={\"k\": 1}\nF=\"a\" and \"b\"",
	}
	spec, errs := SpecOf(values, lang.EN)
	require.Empty(t, errs)
	require.Equal(t, map[string]any{
		"name": "gpt", "worktree": "/w", "nodes": 2, "gpus_per_node": 0, "preset": []string{"debug-nccl", "fast"},
		"args": []string{"--num-layers", "24", "--name", "a b"},
		"env":  map[string]string{"A": "1", "B": "x=y", "C": "mlx5_0", "D": "a b", "E": `{"k": 1}`, "F": `"a" and "b"`},
	}, spec)
	require.Equal(t, map[string]string{
		"name": "gpt", "nodes": "2", "preset": "debug-nccl,fast", "args": `--num-layers 24 "a b" 'say "x"' ""`, "env": "A=1\nB=2\nC='\"x\"'",
	}, FieldsOfSpec(map[string]any{
		"name": "gpt", "nodes": uint64(2), "preset": []any{"debug-nccl", "fast"}, "args": []any{"--num-layers", 24, "a b", `say "x"`, ""},
		"env": map[string]any{"B": 2, "A": 1, "C": `"x"`}, "unknown": "x",
	}))
	_, errs = SpecOf(map[string]string{"env": "A=1\nB"}, lang.EN)
	require.Equal(t, map[string]string{"env": "line 2 is not NAME=value"}, errs)
	wide, errs := SpecOf(map[string]string{"nodes": "２", "time": "１：００：００", "partition": "ｐｒｏｄ，ｄｅｖ", "env": "A=说明：一，二"}, lang.ZH)
	require.Empty(t, errs)
	require.Equal(t, map[string]any{"nodes": 2, "time": "1:00:00", "partition": "prod,dev", "env": map[string]string{"A": "说明：一，二"}}, wide, "as East Asian keyboards write")
	_, errs = SpecOf(map[string]string{"env": "=x"}, lang.ZH)
	require.Equal(t, map[string]string{"env": "第 1 行不是 NAME=value 的形式"}, errs)
}

func TestWhatIsWrongStandsAtItsField(t *testing.T) {
	t.Parallel()
	problems := []rules.Problem{
		{Severity: rules.Error, Field: "nodes", Message: "too many", Fix: "nodes: 2"},
		{Severity: rules.Warning, Field: "container.image", Message: "old"},
		{Severity: rules.Note, Field: "time", Message: "by the way"},
		{Severity: rules.Warning, Field: "env.NCCL_DEBUG", Message: "loud"},
		{Severity: rules.Error, Field: "env[0]", Message: "bad"},
		{Severity: rules.Error, Message: "of no field"},
	}
	v := VerdictOf(lang.EN, nil, problems)
	require.Equal(t, map[string][]string{
		"nodes": {"⛔ too many → nodes: 2"}, "args": {"⚠️ container.image: old", "⛔ of no field"}, "env": {"⚠️ loud", "⛔ bad"},
	}, v.At)
	require.Equal(t, map[string]string{"nodes": "too many → nodes: 2", "args": "of no field", "env": "bad"}, v.Errors())
	require.True(t, v.Stops())
	require.False(t, VerdictOf(lang.EN, nil, problems[1:3]).Stops())
	err := &ops.Error{Code: ops.BadInput, Field: "name", Message: lang.Same("empty"), More: []*ops.Error{{Field: "worktree", Message: lang.Same("relative")}}}
	require.Equal(t, map[string]string{"name": "empty", "worktree": "relative"}, AtFields(lang.EN, err, nil))
	require.Contains(t, AtFields(lang.EN, nil, problems[1:3])["name"], "broke", "something is said, whatever it is")
	require.NotEmpty(t, AtFields(lang.EN, errors.New("x"), nil))
	require.Equal(t, map[string]string{"nodes~2": "bad"}, AtBlocks(map[string]string{"nodes": "bad"}, 2, map[string]string{"nodes": "0"}, lang.EN))
	require.Equal(t, map[string]string{"name": "empty; Megatron arguments: odd; Environment: bad", "nodes": "bad"}, AtBlocks(
		map[string]string{"name": "empty", "nodes": "bad", "args": "odd", "env": "bad"}, 0, map[string]string{"name": "", "nodes": ""}, lang.EN,
	), "Slack refuses an error at a field that is not in the form")
	require.Equal(t, map[string]string{"a": "b"}, ErrorVerdict(map[string]string{"a": "b"}).Errors())
}

func TestAFieldIsAChoiceWhereThereIsOne(t *testing.T) {
	t.Parallel()
	s := State{
		Values:  map[string]string{"partition": "old", "preset": "fast", "name": "gpt"},
		Choices: map[string][]string{"partition": {"dev", "prod"}, "preset": {"debug", "fast"}},
		Recipes: []string{"llama3-8b"}, Runs: []Choice{{"run:a/1", "gpt · 1"}},
	}
	raw := drawn(t, View(s, lang.EN))
	require.Contains(t, raw, `"initial_option":{"text":{"type":"plain_text","text":"old","emoji":false},"value":"old"}`, "what is no more offered is not lost")
	require.Contains(t, raw, `"initial_options":[{"text":{"type":"plain_text","text":"fast","emoji":false},"value":"fast"}]`)
	require.Contains(t, raw, `"value":"recipe:llama3-8b"`)
	require.Contains(t, raw, `"value":"run:a/1"`)
	require.Contains(t, raw, `"initial_value":"pretrain_gpt.py"`)
	require.NotContains(t, raw, "Reservation")
	require.NotContains(t, raw, "Read it into the form")
	require.NotContains(t, raw, `"value":""`)
	require.NotContains(t, drawn(t, View(State{}, lang.EN)), "My last runs", "Slack takes no empty group")
	s.Values["reservation"], s.Paste, s.Gen = "maint", true, 3
	raw = drawn(t, View(s, lang.EN))
	require.Contains(t, raw, `"initial_value":"maint"`)
	require.Contains(t, raw, "Read it into the form")
	require.Contains(t, raw, `"block_id":"name~3"`)
	for range 100 {
		s.Choices["partition"] = append(s.Choices["partition"], "p")
	}
	require.Contains(t, drawn(t, View(s, lang.EN)), `"type":"plain_text_input","action_id":"partition"`, "Slack takes a hundred")
	s.Verdict = Verdict{At: map[string][]string{"nodes": {"one", "two", "three", "four", "five"}}, Summary: []string{"*all is well*"}}
	raw = drawn(t, View(s, lang.EN))
	require.Contains(t, raw, `"four"`)
	require.NotContains(t, raw, `"five"`, "what is beyond four is for the plan")
	require.Contains(t, raw, "*all is well*")
	for _, f := range Fields {
		require.Equal(t, f.Name == "reservation" || f.Name == "preset", f.Rare(), f.Name)
	}
}

// What a select or a field cannot hold is typed, or stays as it is: half a value is another value.
func TestAFormCutsNoValue(t *testing.T) {
	t.Parallel()
	long, short := strings.Repeat("p", 151), strings.Repeat("q", 150)
	s := State{
		Values:  map[string]string{"partition": long, "qos": short, "args": "--extra " + strings.Repeat("x", 3000), "account": short},
		Choices: map[string][]string{"partition": {"dev"}, "qos": {"normal"}, "account": {long, short}, "preset": {"debug"}},
	}
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		raw := drawn(t, View(s, l))
		require.Contains(t, raw, `"type":"plain_text_input","action_id":"partition","initial_value":"`+long+`"`)
		require.Contains(t, raw, `"type":"plain_text_input","action_id":"account","initial_value":"`+short+`"`)
		require.Contains(t, raw, `"value":"`+short+`"`, "150 characters are a choice")
		require.Contains(t, raw, textKeptLong.With(lang.Text{EN: "Megatron arguments", ZH: "Megatron 参数"}, 3000).In(l))
		require.NotContains(t, raw, "--extra")
	}
}

func TestTheLastPageSumsUp(t *testing.T) {
	t.Parallel()
	s := Summary{Name: "gpt", Cluster: "prod", Headline: "2 × 8", Script: "a\nb\nc\n", Digest: "0123456789abcdef", Since: "4633"}
	raw := drawn(t, ConfirmView(s, "ID", lang.EN))
	require.Contains(t, raw, "gpt → prod")
	require.Contains(t, raw, "Script: 3 lines, SHA-256 0123456789ab;")
	require.Contains(t, raw, "Nothing has changed since job 4633")
	require.Contains(t, raw, `"private_metadata":"ID"`)
	require.NotContains(t, raw, "approval")
	require.NotContains(t, raw, "Likely start")
	require.NotContains(t, raw, "Warnings")
	s.Start, s.Approval, s.Partition = time.Unix(1_795_197_600, 0), "more than 512 GPU hours", "a&b"
	for i := range 9 {
		s.Changes = append(s.Changes, fmt.Sprintf("x%d: 1 → 2", i))
	}
	s.Warnings = []string{"w0"}
	raw = drawn(t, ConfirmView(s, "ID", lang.EN))
	require.Contains(t, raw, "<!date^1795197600^{date_short_pretty} {time}|")
	require.Contains(t, raw, "This needs an operator's approval: more than 512 GPU hours")
	require.Contains(t, raw, "a&amp;b")
	require.Contains(t, raw, `• x7: 1 → 2\nand 1 more`)
	require.NotContains(t, raw, "x8")
	require.Contains(t, raw, `• w0`)
	require.NotContains(t, raw, "Nothing has changed")
	require.Contains(t, drawn(t, CheckingView("gpt", "M", lang.ZH)), "正在检查 gpt 的分区")
	require.Contains(t, drawn(t, PasteView("M", lang.EN)), `"multiline":true`)
}
