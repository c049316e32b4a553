package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// typedIn has one flag or argument of each kind.
type typedIn struct {
	Job   slurm.JobID       `arg:"" optional:"" json:"job,omitempty" help:"job id" zh:"作业号"`
	Tail  int               `json:"tail" short:"n" default:"50" help:"how many lines"`
	Rate  float64           `json:"rate"`
	Mode  string            `json:"mode" enum:"fast,slow" default:"fast"`
	Modes []string          `json:"modes" enum:"a,b,c,"`
	Wait  time.Duration     `json:"wait"`
	Limit Seconds           `json:"limit_s" name:"limit"`
	Env   map[string]string `json:"env"`
	Name  string            `json:"name"`
	All   bool              `json:"all"`
}

// textIn accepts any text.
type textIn struct {
	Words []string `arg:"" text:"" name:"question" json:"question"`
	Top   int      `json:"top"`
	All   bool     `json:"all"`
}

func TestWordsFillTheInputOrSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *Call, typedIn) (int, error) { return 0, nil }
	op := Define(Op{Name: "poke", Example: "poke 4711"}, nothing)
	for line, want := range map[string]struct{ filled, field, message, fix string }{
		"4711 --tail 5 --all":     {filled: "4711 5 0 fast [] 0s map[]  true"},
		"-n 7":                    {filled: " 7 0 fast [] 0s map[]  false"},
		"--wait=90s --rate 0.5":   {filled: " 50 0.5 fast [] 1m30s map[]  false"},
		"--modes a,b --mode=slow": {filled: " 50 0 slow [a b] 0s map[]  false"},
		"--env A=1 --name x":      {filled: " 50 0 fast [] 0s map[A:1] x false"},
		"--env A=1 --env A=2":     {field: "env.A", message: "is given twice", fix: "give it once"},
		"--env A=1 --env B=2":     {filled: " 50 0 fast [] 0s map[A:1 B:2]  false"},
		"--tail many":             {field: "tail", message: `"many" is not a number of 0 or more`, fix: "for example: --tail "},
		"--rate many":             {field: "rate", message: `"many" is not a number`, fix: "for example: --rate"},
		"--wait many":             {field: "wait", message: `"many" is not a duration`},
		"--all=false":             {filled: " 50 0 fast [] 0s map[]  false"},
		"4711 --all false":        {field: "all", message: `"false" does not belong to --all`, fix: "--all=false"},
		"--all=perhaps":           {field: "all", message: `"perhaps" is not yes or no`},
		"--limit many":            {field: "limit", message: `"many" is not a number of seconds, nor a duration such as 10m`, fix: "for example: --limit 10m"},
		"--limit":                 {field: "limit", message: "--limit needs a value"},
		"--tail":                  {field: "tail", message: "--tail needs a value"},
		"--tail --all":            {field: "tail", message: "--tail needs a value"},
		"--name --all":            {field: "name", message: `--name needs a value, and "--all" reads as a flag`, fix: "--name=--all"},
		"--mode quick":            {field: "mode", message: `"quick" is not among its choices`, fix: "one of fast, slow"},
		"--modes a,quick":         {field: "modes", message: `"quick" is not among its choices`, fix: "one of a, b, c"},
		"--json":                  {field: "--json", message: "poke has no flag --json", fix: "did you mean --output json?"},
		"--tial 5":                {field: "--tial", message: "poke has no flag --tial", fix: "did you mean --tail?"},
		"--job-name=a":            {field: "--job-name", message: "poke has no flag --job-name", fix: "what sbatch calls --job-name is --name here"},
		"--chdir=/w":              {field: "--chdir", message: "poke has no flag --chdir", fix: "see: megatron-ops help poke"},
		"--frobnicate=1":          {field: "--frobnicate", message: "poke has no flag --frobnicate", fix: "see: megatron-ops help poke"},
		"-xyz":                    {field: "-x", message: "poke has no flag -x"},
		"-tail=5":                 {field: "-tail", message: "poke has no flag -tail", fix: "did you mean --tail?"},
		"4711 4712":               {field: "4712", message: `poke does not know what to do with "4712"`},
		"4711 -- x":               {field: "--", message: "poke takes no arguments after --", fix: "leave them out"},
	} {
		var in typedIn
		err := op.Words(&in, strings.Fields(line))
		if want.filled != "" {
			require.NoError(t, err, line)
			require.Equal(t, want.filled, fmt.Sprint(in.Job, " ", in.Tail, " ", in.Rate, " ", in.Mode, " ", in.Modes, " ", in.Wait, " ", in.Env, " ", in.Name, " ", in.All), line)
			continue
		}
		require.Error(t, err, line)
		e := AsError(err)
		require.Equal(t, BadInput, e.Code, line)
		require.Equal(t, want.field, e.Field, line)
		require.Contains(t, e.Message.EN, want.message, line)
		require.Contains(t, e.Fix.EN, want.fix, line)
	}
}

func TestTextMayBeginWithADash(t *testing.T) {
	t.Parallel()
	op := Define(Op{Name: "ask", Example: "ask why"}, func(context.Context, *Call, textIn) (int, error) { return 0, nil })
	for line, want := range map[string]string{
		"why is that":                 "0 false why is that",
		"--top 3 why":                 "3 false why",
		"--top 3 -- --bf16":           "3 false --bf16",
		"-- --all --top 3":            "0 false --all --top 3",
		"why -- --bf16":               "0 false why --bf16",
		"--all why -- --bf16":         "0 true why --bf16",
		"--all --top 3 why -- --bf16": "3 true why --bf16",
		"--top 3 why -- --bf16":       "3 false why --bf16",
		"--all -- -x":                 "0 true -x",
	} {
		var in textIn
		require.NoError(t, op.Words(&in, strings.Fields(line)), line)
		require.Equal(t, want, fmt.Sprint(in.Top, " ", in.All, " ", strings.Join(in.Words, " ")), line)
	}
	for line, want := range map[string][2]string{
		"":                  {"ask needs <question>", "megatron-ops ask why"},
		"why --zero-copied": {"ask has no flag --zero-copied", "megatron-ops ask why -- --zero-copied"},
		"--zero-copied=1 x": {"ask has no flag --zero-copied", "megatron-ops ask -- --zero-copied=1 x"},
	} {
		err := op.Words(&textIn{}, strings.Fields(line))
		require.Error(t, err, line)
		require.Contains(t, AsError(err).Message.EN, want[0], line)
		require.Contains(t, AsError(err).Fix.EN, want[1], line)
	}
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"--bf16 is slow, why"}, "0 false --bf16 is slow, why"},
		{[]string{"--cpus-per-gpu=4 is refused"}, "0 false --cpus-per-gpu=4 is refused"},
		{[]string{"--top", "3", "--bf16 is slow"}, "3 false --bf16 is slow"},
		{[]string{"why", "--bf16 is slow"}, "0 false why --bf16 is slow"},
	} {
		var in textIn
		require.NoError(t, op.Words(&in, c.words), c.words)
		require.Equal(t, c.want, fmt.Sprint(in.Top, " ", in.All, " ", strings.Join(in.Words, " ")))
	}
	// A quoted command line is a flag's value, though it begins with a dash.
	require.Equal(t, []string{"--args=--bf16 --tp 2", "x"}, joinQuotedValues([]string{"--args", "--bf16 --tp 2", "x"}))
	for _, words := range [][]string{{"--args", "--bf16"}, {"-a", "--bf16 x"}, {"--args=1", "--bf16 x"}, {"--args", "bf16 x"}, {"--args"}, {"a", "-b c"}} {
		require.Equal(t, words, joinQuotedValues(words))
	}
}

func TestParametersAreShownAsTheyAreTyped(t *testing.T) {
	t.Parallel()
	op := Define(Op{Name: "poke"}, func(context.Context, *Call, typedIn) (int, error) { return 0, nil })
	got := map[string]Param{}
	for _, p := range op.Params() {
		got[p.Name] = p
	}
	require.Equal(t, Param{Name: "job", Arg: true, Job: true, Type: "text", Help: lang.Text{EN: "job id", ZH: "作业号"}}, got["job"])
	require.Equal(t, Param{Name: "tail", Short: 'n', Type: "number", Help: lang.Text{EN: "how many lines"}}, got["tail"])
	require.Equal(t, Param{Name: "mode", Type: "text", Enum: []string{"fast", "slow"}}, got["mode"])
	require.Equal(t, Param{Name: "modes", Type: "list", Several: true, Enum: []string{"a", "b", "c"}}, got["modes"])
	for name, kind := range map[string]string{"env": "NAME=value", "all": "switch", "name": "text"} {
		require.Equal(t, kind, got[name].Type, name)
	}
	ask := Define(Op{Name: "ask"}, func(context.Context, *Call, textIn) (int, error) { return 0, nil }).Params()
	require.True(t, ask[0].Arg && ask[0].Required && ask[0].Several)
}

func TestNumbersTimesAndErrorsAreSaid(t *testing.T) {
	t.Parallel()
	for s, want := range map[int64]string{
		0: "00:00", 59: "00:59", 60: "01:00", 3599: "59:59", 3600: "01:00:00", 86399: "23:59:59", 86400: "1-00:00:00", 93784: "1-02:03:04",
	} {
		require.Equal(t, want, Duration(s))
	}
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 2: "2 nodes"} {
		require.Equal(t, want, Counted(n, "node").In(lang.EN))
	}
	for code, want := range map[Code]int{BadInput: 2, Preflight: 3, NotAllowed: 4, NotFound: 5, Failed: 1, "": 1} {
		require.Equal(t, want, code.ExitCode(), code)
	}
	e := InputError("nodes", lang.Text{EN: "is wrong", ZH: "有误"}, lang.Text{EN: "do", ZH: "做"})
	require.Equal(t, "nodes: is wrong", e.Error())
	require.Equal(t, "nodes：有误", e.Said().In(lang.ZH))
	e.More = []*Error{InputError("", lang.Text{EN: "nodes again"}, lang.Text{})}
	raw, err := e.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"code":"bad_input","field":"nodes","message":"is wrong","fix":"do","more":[{"code":"bad_input","message":"nodes again"}]}`, string(raw))
	e.Message.EN = "nodes is wrong"
	require.Equal(t, "nodes is wrong", e.Error(), "a field is not named twice")
	require.Nil(t, AsError(nil))
	require.Same(t, e, AsError(fmt.Errorf("around: %w", e)))
	require.Equal(t, Failed, AsError(errors.New("x")).Code)
}

// The first look that finds nothing does not decide.
func TestTheSecondLookComesWhenTheClusterHasHadTime(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2*time.Second, lookAgain("rest"), "no lock tells of a request to slurmrestd")
	for _, kind := range []string{"cli", "ssh", ""} {
		require.Equal(t, 500*time.Millisecond, lookAgain(kind))
	}
	token := tokenOf("ada", "a", "k")
	require.Len(t, token, 26)
	require.Equal(t, token, tokenOf("ada", "a", "k"))
	for _, other := range []string{tokenOf("bob", "a", "k"), tokenOf("ada", "b", "k"), tokenOf("ada", "a", "l"), tokenOf("adaa", "", "k")} {
		require.NotEqual(t, token, other)
	}
}

func TestOnlyTheAgreedScriptIsSubmitted(t *testing.T) {
	t.Parallel()
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of abc
	require.NoError(t, (&Call{}).RequireAgreed("anything"))
	require.NoError(t, (&Call{Agreed: sum}).RequireAgreed("abc"))
	err := (&Call{Agreed: sum}).RequireAgreed("abd")
	require.ErrorContains(t, err, "nothing was submitted")
	require.Equal(t, NotAllowed, AsError(err).Code)
}

func TestWhoMayDecideAboutAnApproval(t *testing.T) {
	t.Parallel()
	asked := Caller{Surface: MCPHTTP, User: "ada", Agent: "agent"}
	for name, c := range map[string]struct {
		by    Caller
		limit string
		want  string
	}{
		"its own person":                      {by: Caller{User: "ada"}},
		"its own person, who only reads":      {by: Caller{User: "ada", ReadOnly: true}, want: "only operators"},
		"its own person, beyond a limit":      {by: Caller{User: "ada"}, limit: "x", want: "only operators"},
		"a colleague":                         {by: Caller{User: "bob"}, want: "only operators"},
		"an operator":                         {by: Caller{User: "grace", Operator: true}},
		"an operator, beyond a limit":         {by: Caller{User: "grace", Operator: true}, limit: "x"},
		"an operator who only reads":          {by: Caller{User: "grace", Operator: true, ReadOnly: true}, want: "only operators"},
		"an operator without a cluster user":  {by: Caller{Operator: true}},
		"such a one, beyond a limit":          {by: Caller{Operator: true}, limit: "x", want: "must be linked"},
		"an operator for themselves":          {by: Caller{User: "ada", Operator: true}},
		"for themselves, beyond a limit":      {by: Caller{User: "ada", Operator: true}, limit: "x", want: "somebody else than the requester"},
		"nobody, of a request of nobody else": {by: Caller{}, want: "only operators"},
	} {
		who := asked
		if name == "nobody, of a request of nobody else" {
			who.User = ""
		}
		err := mayDecide(Approval{Who: who, Why: c.limit}, c.by)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, NotAllowed, AsError(err).Code, name)
	}
	require.True(t, Approval{}.Waits())
	require.False(t, Approval{Decided: "x"}.Waits())
	require.Equal(t, 24*time.Hour, (&Service{}).ApprovalLifetime())
	require.Equal(t, time.Hour, (&Service{ApprovalLife: time.Hour}).ApprovalLifetime())
	base := CallDigest(asked, "cancel", map[string]any{"job": "1", "idempotency_key": "a"}, "d")
	require.Equal(t, base, CallDigest(asked, "cancel", map[string]any{"job": "1", "idempotency_key": "b"}, "d"), "a key decides nothing")
	for _, other := range []string{
		CallDigest(asked, "cancel", map[string]any{"job": "2"}, "d"), CallDigest(asked, "hold", map[string]any{"job": "1"}, "d"),
		CallDigest(asked, "cancel", map[string]any{"job": "1"}, "e"), CallDigest(Caller{Surface: MCPHTTP, User: "bob"}, "cancel", map[string]any{"job": "1"}, "d"),
	} {
		require.NotEqual(t, base, other)
	}
}

func TestDecodeReadsEveryKindOfField(t *testing.T) {
	t.Parallel()
	type kinds struct {
		Small int      `json:"small"`
		Share *float64 `json:"share"`
		Modes []string `json:"modes" enum:"a,b"`
		Lines []int    `json:"lines"`
		On    bool     `json:"on" default:"true"`
		Rate  float64  `json:"rate" default:"0.5"`
		Words []string `json:"words" default:"x,y"`
		Must  string   `json:"must" required:""`
	}
	for raw, want := range map[string]string{
		`{"must":"m"}`:                              "",
		`{"must":"m","small":1e3}`:                  "",
		`{"must":"m","small":99999999999999999999}`: "small: is the number 99999999999999999999, not a whole number",
		`{"must":"m","small":1e300}`:                "small: is the number 1e300",
		`{"must":"m","share":"x"}`:                  `share: is the string "x", not a number`,
		`{"must":"m","share":"1e999"}`:              `share: is the string "1e999", not a number`,
		`{"must":"m","share":0.25}`:                 "",
		`{"must":"m","share":"0.25"}`:               "",
		`{"must":"m","lines":[1,null]}`:             "lines[1]: is null, not a whole number",
		`{"must":"m","modes":"a"}`:                  "",
		`{"must":"m","modes":["a","b"]}`:            "",
		`{"must":"m","modes":["a","c"]}`:            `modes[1]: is "c", which is not one of`,
		`{"must":"m","modes":"a b"}`:                `modes: is the string "a b", not a list`,
		`{"must":"m","modes":""}`:                   `modes: is the string "", not a list`,
		`{"must":"m","lines":["x"]}`:                `lines[0]: is the string "x"`,
		`{"must":null}`:                             "must: is missing",
		`{"must":"m","on":"false"}`:                 "",
		`{"must":"m","on":"no"}`:                    `on: is the string "no", not a boolean`,
		`{"must":"` + strings.Repeat("a", 41) + `","small":"` + strings.Repeat("a", 41) + `"}`: `small: is the string "` + strings.Repeat("a", 40) + `…"`,
		`null`: "must: is missing",
		``:     "must: is missing",
	} {
		var in kinds
		err := Decode([]byte(raw), &in, nil)
		if want == "" {
			require.NoError(t, err, raw)
			require.Equal(t, 0.5, in.Rate, raw)
			require.Equal(t, []string{"x", "y"}, in.Words, raw)
			require.Equal(t, !strings.Contains(raw, `"on"`), in.On, raw)
			continue
		}
		require.ErrorContains(t, err, want, raw)
	}
	own := ""
	var in kinds
	err := Decode([]byte(`{"must":"m","confirm":"t","hidden":"x"}`), &in, map[string]*string{"confirm": &own, "hidden": nil})
	require.ErrorContains(t, err, "hidden: is not an argument here")
	require.Equal(t, "t", own)
	err = Decode([]byte(`{"must":"m","cnofirm":"t"}`), &in, map[string]*string{"confirm": &own, "hidden": nil})
	require.Equal(t, "did you mean confirm?", AsError(err).Fix.EN)
	err = Decode([]byte(`{"x":1}`), &struct{}{}, nil)
	require.Equal(t, "this operation takes no arguments", AsError(err).Fix.EN)
}

func TestSecondsAreTypedAsANumberOrADuration(t *testing.T) {
	t.Parallel()
	op := Define(Op{Name: "poke"}, func(context.Context, *Call, typedIn) (int, error) { return 0, nil })
	for word, want := range map[string]Seconds{"90": 90, "10s": 10, "1m30s": 90, "2h": 7200, "0": 0} {
		var in typedIn
		require.NoError(t, op.Words(&in, []string{"--limit", word}), word)
		require.Equal(t, want, in.Limit, word)
	}
	var in typedIn
	require.NoError(t, json.Unmarshal([]byte(`{"limit_s": 90}`), &in))
	require.Equal(t, 90*time.Second, in.Limit.Duration())
}
