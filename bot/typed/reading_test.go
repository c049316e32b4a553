package typed

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/answers"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
)

func TestFlagsOfTheChatStandAnywhere(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		rest string
		f    Flags
	}{
		"status 4711":                     {"status 4711", Flags{}},
		"--share status 4711":             {"status 4711", Flags{Share: true}},
		"status --公开 4711":                {"status 4711", Flags{Share: true}},
		"cancel 4711 --yes":               {"cancel 4711", Flags{Yes: true}},
		"list --cluster=a":                {"list", Flags{Cluster: "a"}},
		"list --cluster a --all":          {"list --all", Flags{Cluster: "a"}},
		"list --cluster":                  {"list", Flags{}},
		"list --cluster= a":               {"list a", Flags{}},
		"list --lang zh x":                {"list x", Flags{Lang: lang.ZH}},
		"list --lang=en":                  {"list", Flags{Lang: lang.EN}},
		"list --page 3":                   {"list", Flags{Page: 3}},
		"list --页=2":                      {"list", Flags{Page: 2}},
		"list --page many":                {"list", Flags{}},
		"list --output json":              {"list", Flags{Json: true}},
		"list -o=json":                    {"list", Flags{Json: true}},
		"list -o text x":                  {"list x", Flags{}},
		"submit --name=x -- --cluster=no": {"submit --name=x -- --cluster=no", Flags{}},
	} {
		rest, f := TakeFlags(strings.Fields(line))
		require.Equal(t, want.rest, strings.Join(rest, " "), line)
		require.Equal(t, want.f, f, line)
	}
}

func TestTextWithoutACommandIsAQuestionOrNot(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"zero?": true, "显存？": true, "what is zero": true, "two words": false, "stauts": false,
		"怎样减少显存": true, "为什么会慢": true, "为什么慢": false, "显存": false, "naïve": false, "abcdefgh": false,
	} {
		require.Equal(t, want, IsQuestion(text, split(text)), text)
	}
}

func TestEveryOtherNameMeansACommand(t *testing.T) {
	t.Parallel()
	for word, name := range synonyms {
		require.True(t, Known(name), "%s means %s", word, name)
		got, ok := Resolve(word)
		require.True(t, ok || word == "?", word)
		if !Known(word) && ok {
			require.Equal(t, name, got, word)
		}
	}
	for _, name := range OwnWords {
		got, ok := Resolve(" " + name)
		require.False(t, ok, "a blank is no part of %s", got)
		got, ok = Resolve(strings.ToUpper(name) + "！")
		require.True(t, ok)
		require.Equal(t, name, got)
	}
	require.False(t, Known("kill"), "a synonym is no name of its own")
}

func TestWordsBetweenACommandAndItsJob(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"cancel the job 4711":         "cancel 4711",
		"logs of my job #4711_3 -f":   "logs 4711_3 -f",
		"Status FOR Job 4711":         "Status 4711",
		"logs from 4711":              "logs 4711",
		"状态 任务 4711":                  "状态 4711",
		"日志 作业号 4711":                 "日志 4711",
		"cancel job":                  "cancel job",
		"cancel job of":               "cancel job of",
		"cancel # 4711":               "cancel # 4711",
		"cancel job gpt-7b":           "cancel job gpt-7b",
		"explain job 4711":            "explain 4711",
		"q job 4711":                  "q job 4711",
		"frobnicate job 4711":         "frobnicate job 4711",
		"状态4711":                      "状态 4711",
		"日志#4711 --tail 5":            "日志 #4711 --tail 5",
		"状态":                          "状态",
		"status4711":                  "status4711",
		"":                            "",
		"cancel of for the my job 47": "cancel 47",
	} {
		require.Equal(t, want, strings.Join(Unglue(strings.Fields(line)), " "), line)
	}
}

func TestWhatWasMeantIsOfferedNearestFirst(t *testing.T) {
	t.Parallel()
	for typo, want := range map[string][]string{
		"stat":    {"status"},
		"sub":     {"submit", "subscribe"},
		"DIAGNOS": {"diagnose"},
		"unlnk":   {"unlink"},
		"z":       nil,
		"subm":    {"submit"},
		"me":      {"memory", "metrics"},
	} {
		got := DidYouMean(typo)
		require.LessOrEqual(t, len(got), 3, typo)
		if len(want) == 0 {
			require.Empty(t, got, typo)
			continue
		}
		require.Subset(t, got, want, typo)
		require.Equal(t, want[0], got[0], "%s: %v", typo, got)
	}
}

func TestWhatASentenceAsksOfAJobThatItDoesNotName(t *testing.T) {
	t.Parallel()
	far := strings.Repeat("very ", 16)
	for text, want := range map[string]string{
		"why did it fail?":                      "diagnose",
		"what went wrong with my last job":      "diagnose",
		"is it still running?":                  "status",
		"how long will it take":                 "status",
		"when is it ready":                      "status",
		"show me its logs, of that run":         "logs",
		"tail the output of my latest run":      "logs",
		"please cancel it":                      "cancel",
		"stop that":                             "cancel",
		"the loss of this job":                  "metrics",
		"how much memory does it need?":         "memory",
		"它需要多少显存":                               "memory",
		"一张 H100 有多少显存":                         "",
		"what happened":                         "diagnose",
		"怎么失败了":                                 "diagnose",
		"损失曲线":                                  "metrics",
		"还要多久":                                  "status",
		"请停止":                                   "cancel",
		"看一下日志":                                 "logs",
		"how fast do large models usually run":  "",
		"does the curve of big models flatten?": "",
		"why did it fail --verbose":             "",
		"why did it\nfail":                      "",
		"why did it fail " + far:                "",
		"is it raining":                         "",
	} {
		got, ok := AskedOfIt(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want != "", ok, text)
	}
	for text, want := range map[string]string{
		"why did gpt-7b fail?":         "diagnose",
		"how is gpt-7b going":          "status",
		"kill gpt-7b":                  "cancel",
		"throughput of gpt-7b please":  "metrics",
		"gpt-7b":                       "",
		"kill gpt-7b --signal TERM":    "",
		"kill gpt-7b\nand another one": "",
		"restart gpt-7b":               "again",
		"再提交一次 gpt-7b":                 "again",
		"gpt-7b还要多久":                   "status",
		"gpt-7b 为什么 OOM 了":             "diagnose",
		"is gpt-7b stuck?":             "diagnose",
		"what node is gpt-7b on":       "status",
		"看一下 gpt-7b 的 log":             "logs",
		"show me the error of gpt-7b":  "diagnose",
		"what TP for gpt-7b":           "",
		"how do I speed up gpt-7b":     "",
		"kill gpt-7b " + far:           "",
	} {
		got, ok := AskedOfNamed(text, "gpt-7b")
		require.Equal(t, want, got, text)
		require.Equal(t, want != "", ok, text)
	}
}

func TestTheNewestJobIsNamedInManyWays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"my last job": true, "the latest training": true, "Most recent pretraining run": true, "上一个作业": true, "刚才的任务": true, "最近的训练": true,
		"the last epoch": false, "my job": false, "作业": false, "my last job" + strings.Repeat(".", 69): true, "my last job" + strings.Repeat(".", 70): false,
	} {
		require.Equal(t, want, LastJob(text), text)
	}
	require.Equal(t, []string{"why", "did", "gpt-7b", "die"}, PossibleJobNames(`why did "gpt-7b" die? is`))
	require.Equal(t, []string{"run"}, PossibleJobNames("a run! ab"))
	require.Equal(t, []string{"gpt-7b还要多久", "gpt-7b"}, PossibleJobNames("gpt-7b还要多久"))
	_, ok := AskedOfNamed("why is a moe so slow", "moe")
	require.False(t, ok, "a word of the language may stand in a general question")
}

// A follow-up question in a thread has up to nine words, or 24 characters of Chinese.
func TestHowLongAFurtherQuestionIs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		strings.Repeat("why ", 9): true, strings.Repeat("why ", 10): false,
		strings.Repeat("好", 24): true, strings.Repeat("好", 25): false,
		"is --bf16 on": false, "is A_B set": false, "is 123 it": false, "is 12 enough": true,
	} {
		require.Equal(t, want, AsksOn(text), text)
	}
	// A sentence about a numbered job has at most 80 characters.
	const operationAsked = "why did job 4711 fail "
	_, _, ok := AboutJob(operationAsked + strings.Repeat("x", 80-len(operationAsked)))
	require.True(t, ok)
	_, _, ok = AboutJob(operationAsked + strings.Repeat("x", 81-len(operationAsked)))
	require.False(t, ok)
	_, _, ok = AboutJob("why did job 4711 fail --x")
	require.False(t, ok)
	_, _, ok = AboutJob("why did job 4711\nfail")
	require.False(t, ok)
}

func TestSlacksMarkupIsReadAsWhatWasTyped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<@U123> status":                    "@U123 status",
		"<#C1|general> x":                   "#C1 x",
		"<!here>status":                     "status",
		"<mailto:a@b.org>":                  "a@b.org",
		"<tel:123>":                         "123",
		"<https://x.org|>":                  "https://x.org",
		"a < b > c":                         "a < b > c",
		"&lt;https://x&gt;":                 "<https://x>",
		"&quot;x&quot;":                     `"x"`,
		"<https://github.com/a/b|the code>": "the code",
	} {
		require.Equal(t, want, Unescaped(text), text)
	}
	for text, want := range map[string][]string{
		"run `a b` now":        {"run", "a", "b", "now"},
		"one ` tick":           {"one", "`", "tick"},
		"a ```b\nc``` d":       {"a", "c", "d"},
		"a ```1\nc``` d":       {"a", "d"},
		"submit ―nodes 2":      {"submit", "--nodes", "2"},
		"－－nodes＝2":            {"--nodes=2"},
		`--name='a "b" c'`:     {`--name=a "b" c`},
		`a"b c"`:               {`a"b`, `c"`},
		`--x=""`:               {"--x="},
		"\u200bstatus\ufeff 1": {"status", "1"},
		"a\r\nb\rc":            {"a", "b", "c"},
	} {
		require.Equal(t, want, Read(text).Words, text)
	}
	require.Equal(t, "what is zero", Read("what  is\tzero").Whole())
	require.Empty(t, Read("status").Rest)
	require.Equal(t, []string{"submit", "--name", "a b", "--nodes", "2"}, Words("submit —name “a b” \\\n --nodes 2"))
}

// A command that is shown can be typed again.
func TestALineReadsBackAsItsWords(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"status 4711":              {"4711"},
		`status --name "a b"`:      {"--name", "a b"},
		`status ""`:                {""},
		"status \"a\tb\"":          {"a\tb"},
		`status "say 'x' twice"`:   {`say "x" twice`},
		`status a"b`:               {`a"b`},
		"status":                   nil,
		`status 实验　一`:              {"实验　一"},
		`status --comment=don't x`: {"--comment=don't", "x"},
	} {
		got := Line("status", words)
		if strings.Contains(want, "　") {
			want = `status "实验　一"`
		}
		require.Equal(t, want, got)
		if !strings.Contains(strings.Join(words, ""), `"`) {
			require.Equal(t, append([]string{"status"}, words...), split(got))
		}
	}
}

func TestWhatWasTypedFillsTheInput(t *testing.T) {
	t.Parallel()
	fill := func(name string, c Call) any {
		t.Helper()
		o, ok := operations.Lookup(name)
		require.True(t, ok)
		in, err := Fill(o, c)
		require.NoError(t, err)
		return in
	}
	const spec = "name: gpt\nnodes: 2"
	in := fill("submit", Call{Blocks: []string{spec, "second"}, Key: "k1", Cluster: "alpha"})
	require.Equal(t, spec, ops.TextNamed(in, "yaml"))
	require.Equal(t, "slack-k1", ops.TextNamed(in, "idempotency_key"))
	require.Equal(t, "alpha", in.(*launch.SubmitIn).Spec.Cluster)
	in = fill("submit", Call{Words: []string{"--idempotency-key", "mine"}, Key: "k1"})
	require.Equal(t, "mine", ops.TextNamed(in, "idempotency_key"))
	require.Empty(t, ops.TextNamed(in, "yaml"))
	require.Empty(t, in.(*launch.SubmitIn).Spec.Cluster)

	for want, c := range map[string]Call{
		`why "quoted" -- so`:      {Words: []string{"why", "quoted"}, Rest: `why "quoted" -- so`},
		"why this?\nTraceback\nx": {Words: []string{"why"}, Rest: "why this?", Blocks: []string{"Traceback\nx"}},
		"typed only":              {Words: []string{"typed", "only"}},
	} {
		require.Equal(t, want, strings.Join(fill("ask", c).(*answers.AskIn).Question, " "))
	}
	o, _ := operations.Lookup("status")
	_, err := Fill(o, Call{Words: []string{"4711", "--bogus"}})
	require.Error(t, err)
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
}

func TestAnEmptyFieldIsSetByItsNameInJSON(t *testing.T) {
	t.Parallel()
	x := "pointed"
	type shape struct {
		Name  string  `json:"name,omitempty"`
		Count int     `json:"count"`
		Ptr   *string `json:"ptr"`
	}
	v := &shape{Name: "n", Count: 1, Ptr: &x}
	SetIfEmpty(v, "name", "other")
	SetIfEmpty(v, "count", "other")
	SetIfEmpty(v, "ptr", "other")
	require.Equal(t, "n", v.Name)
	require.Equal(t, 1, v.Count)
	require.Equal(t, "pointed", x)
	v.Name = ""
	SetIfEmpty(v, "name", "other")
	require.Equal(t, "other", v.Name)

	require.True(t, IsZero(nil))
	require.True(t, IsZero(shape{}))
	require.False(t, IsZero(shape{Count: 1}))
	require.False(t, IsZero(v))
}
