package operations

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// aCommand matches a fix that can be typed as it is, in either language.
var aCommand = regexp.MustCompile("^(--[a-z-]+ [^ ]+|[a-z_]+: [^ ]+|chmod .*|[a-z]+ [0-9]+)$")

func requireChinese(t *testing.T, err error, why ...any) {
	t.Helper()
	e := ops.AsError(err)
	require.NotNil(t, e, why...)
	for _, e := range append([]*ops.Error{e}, e.More...) {
		message, fix := e.Message.In(lang.ZH), e.Fix.In(lang.ZH)
		require.Equal(t, lang.ZH, lang.Of(message), "%v: message %q", why, message)
		if fix != "" && !aCommand.MatchString(fix) {
			require.Equal(t, lang.ZH, lang.Of(fix), "%v: fix %q", why, fix)
		}
		require.NotContains(t, message+fix, "%!")
		require.NotContains(t, e.Message.EN+e.Fix.EN, "%!")
		require.Equal(t, lang.EN, lang.Of(e.Message.EN+e.Fix.EN), "%v: %q", why, e.Message.EN)
	}
}

// Every operation is called in the ways in which people and agents get it wrong: with
// no words, one too many, a flag that does not exist, an unknown cluster, a job that
// does not exist or belongs to somebody else, a field with a wrong value, by a
// stranger.
func TestWrongCallsAreAnsweredInChinese(t *testing.T) {
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"12": {ID: "12", Name: "gpt", User: "bob", State: slurm.Completed, Cluster: "test"},
		"13": {ID: "13", Name: "gpt", User: "bob", State: slurm.Pending, Reason: "Priority", Cluster: "test"},
	}}
	base := opstest.NewCall(t, s)
	callers := []ops.Caller{
		{Surface: ops.Shell, ID: "alice", User: "alice"},
		{Surface: ops.Slack, ID: "T/U"},
		{Surface: ops.Slack, ID: "T/U", User: "alice"},
		{Surface: ops.MCPHTTP, ID: "agent", User: "alice", ReadOnly: true},
	}
	seen := 0
	check := func(err error, why ...any) {
		if err != nil {
			requireChinese(t, err, why...)
			seen++
		}
	}
	for _, o := range All() {
		if o.Name == "ask" || o.Name == "search" || o.Name == "wait" {
			continue // two of them answer any question, and the third waits for one
		}
		for _, words := range [][]string{{}, {"--no-such-flag"}, {"one", "two", "three", "four"}, {"--tensor-model-parallel-size", "4"}, {"--", "x"}, {"--tail", "x"}, {"--output-dir"}} {
			check(o.Words(o.NewIn(), words), o.Name, words)
		}
		for _, raw := range []string{`[]`, `{`, `{"no_such": 1}`, `{"job": ["a"], "spec": 3, "nodes": "x"}`, `{"spec": {"nodes": "many", "nam": 1}}`} {
			check(ops.Decode([]byte(raw), o.NewIn(), nil), o.Name, raw)
		}
		for _, who := range callers {
			run := func(in any, why ...any) {
				c := *base
				c.Who, c.Lang, c.Dir, c.Stdin = who, lang.ZH, t.TempDir(), strings.NewReader("")
				_, err := o.Run(t.Context(), &c, in)
				check(err, append(why, o.Name, who.Surface)...)
			}
			run(o.NewIn())
			fields := reflect.VisibleFields(o.In())
			for _, f := range fields {
				if !f.IsExported() || f.Anonymous {
					continue
				}
				var wrong []any
				switch f.Type.Kind() {
				case reflect.String:
					wrong = []any{"?!", "/no/such", "99", "12", "13"}
				case reflect.Int, reflect.Int64:
					wrong = []any{-5}
				case reflect.Bool:
					wrong = []any{true}
				}
				for _, v := range wrong {
					in := o.NewIn()
					if job := reflect.ValueOf(in).Elem().FieldByName("Job"); job.IsValid() && job.Kind() == reflect.String {
						job.SetString("12")
					}
					reflect.ValueOf(in).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(v).Convert(f.Type))
					run(in, f.Name, v)
				}
			}
		}
	}
	require.Greater(t, seen, 1000)
}

// Slurm's own words are quoted unchanged, and only the advice is translated.
func TestSlurmsOwnWordsAreQuotedInChinese(t *testing.T) {
	refusal := slurm.FromStderr("submit", "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified")
	c := opstest.NewCall(t, &opstest.Site{Refuse: refusal})
	c.Lang = lang.ZH
	_, err := do(t, c, "submit", append([]string{"--yes"}, opstest.GoodJob...)...)
	e := ops.AsError(err)
	require.Equal(t, "提交失败，原文：“Invalid account or account/partition combination specified”", e.Message.ZH)
	require.Equal(t, refusal.Fix, e.Fix)

	require.Equal(t, refusal.Error(), e.Message.EN)
	require.False(t, strings.Contains(e.Message.EN, "原文"))
}

func TestEveryOperationHasSchemas(t *testing.T) {
	for _, o := range All() {
		for _, s := range []*ops.Schema{o.InputSchema(), o.OutputSchema()} {
			raw, err := s.MarshalJSON()
			require.NoError(t, err, o.Name)
			require.True(t, json.Valid(raw), o.Name)
			require.Equal(t, "object", s.Type, o.Name)
		}
	}
}

// Decode reads the types that inputs have, and no others.
func TestDecodeReadsEveryInput(t *testing.T) {
	var check func(t reflect.Type) bool
	check = func(t reflect.Type) bool {
		switch t.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Float64:
			return true
		case reflect.Pointer:
			return t.Elem().Kind() == reflect.Int || t.Elem().Kind() == reflect.Float64
		case reflect.Slice:
			return check(t.Elem())
		case reflect.Struct:
			return t == reflect.TypeFor[job.Spec]() || !slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
				return f.IsExported() && f.Tag.Get("json") != "-" && !check(f.Type)
			})
		}
		return false
	}
	for _, o := range All() {
		require.True(t, check(o.In()), o.Name)
	}
}

func TestDecodeReadsASpecificationAsItsFileIsRead(t *testing.T) {
	var in launch.PlanIn
	require.NoError(t, ops.Decode([]byte(`{"spec":{"name":"gpt","nodes":2,"args":["--lr",1e-05,"--tensor-model-parallel-size",4,"--bf16"],"env":{"A":"<b>&"}}}`), &in, nil))
	require.Equal(t, []string{"--lr", "1e-05", "--tensor-model-parallel-size", "4", "--bf16"}, in.Spec.Args, "numbers stay as they were written")
	require.Equal(t, "<b>&", in.Spec.Env["A"])
	in = launch.PlanIn{}
	require.NoError(t, ops.Decode([]byte(`{"spec":{"nodes":"2","gpus_per_node":8.0,"account":"","args":"--bf16","path":"/a/bin,/b/bin","exclude":["gpu1","gpu2"],"guards":"false"}}`), &in, nil))
	require.Equal(t, job.Spec{
		Nodes: new(2), GPUsPerNode: new(8), Args: []string{"--bf16"}, Path: []string{"/a/bin", "/b/bin"}, Exclude: "gpu1,gpu2", Guards: new(false),
	}, in.Spec, "one word is a list, and a text is cut at its commas where a file's is")
	require.ErrorContains(t, ops.Decode([]byte(`{"spec":{"args":[null]}}`), &in, nil), "args: is nothing")
	err := ops.Decode([]byte(`{"spec":{"nodes":"many","contaner":{}}}`), &in, nil)
	require.Error(t, err)
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
	fields := []string{ops.AsError(err).Field, ops.AsError(err).More[0].Field}
	require.ElementsMatch(t, []string{"nodes", "contaner"}, fields, "named by the specification's own paths")
}
