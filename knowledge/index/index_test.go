package index_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

func open(t *testing.T, docs ...index.Doc) *index.Index {
	t.Helper()
	x, err := index.Open(index.Build(docs))
	require.NoError(t, err)
	return x
}

var docs = []index.Doc{
	{Asks: []string{"cancel a job", "怎么取消作业"}, Title: "Cancel", Body: "`scancel JOBID` ends it."},
	{Asks: []string{"why is my job pending", "作业为什么排队"}, Title: "Pending", Body: "`squeue -j ID -o %r` tells the reason."},
	{Asks: []string{"exclude a node", "排除节点"}, Title: "--exclude", Body: "`--exclude=gpu13` or -x."},
	{Title: "No asks", Body: "gradient accumulation fusion"},
}

func TestNearestDocIsFirst(t *testing.T) {
	x := open(t, docs...)
	for q, want := range map[string]int{
		"how can I cancel this job": 0,
		"取消我的作业":                    0,
		"cancle job":                0, // a slip of the keyboard
		"job stuck in queue, why":   1,
		"为什么一直在排队":                  1,
		"keep away from one node":   2,
		"--exclude":                 2,
		"gradient accumulation":     3,
		"ｅｘｃｌｕｄｅ a node":            2,
	} {
		hits := x.Search(q, 3)
		require.NotEmpty(t, hits, q)
		require.Equal(t, want, hits[0].Doc, q)
		for i := range hits[1:] {
			require.LessOrEqual(t, hits[i+1].Score, hits[i].Score, "best first")
		}
	}
}

func TestSearchReturnsAtMostN(t *testing.T) {
	x := open(t, docs...)
	require.Len(t, x.Search("job node", 2), 2)
	require.Empty(t, x.Search("job", 0))
	require.Empty(t, x.Search("", 3))
	require.Empty(t, x.Search("?!", 3))
	require.Empty(t, open(t).Search("job", 3))
}

func TestExactQuestionScoresHigh(t *testing.T) {
	x := open(t, docs...)
	require.Greater(t, x.Search("why is my job pending", 1)[0].Score, 0.75)
	require.Less(t, x.Search("a poem about the sea", 1)[0].Score, 0.4)
}

func TestHolds(t *testing.T) {
	x := open(t, docs...)
	require.True(t, x.Holds("--exclude", 4))
	require.False(t, x.Holds("--exclude", 2))
	require.False(t, x.Holds("--nonsense", 4))
	require.True(t, x.HasFieldTerm("what is --exclude", 4))
	require.True(t, x.HasFieldTerm("how many nodes", 4), "the lexicon marks it")
	require.False(t, x.HasFieldTerm("what is the meaning of life", 4))
}

func TestOpenRejectsOtherBytes(t *testing.T) {
	good := index.Build(docs)
	for _, b := range [][]byte{nil, []byte("x"), good[:len(good)/2], append([]byte("y"), good...), good[:21]} {
		_, err := index.Open(b)
		require.ErrorIs(t, err, index.ErrFormat)
	}
}

func TestBuildIsDeterministic(t *testing.T) {
	require.Equal(t, index.Build(docs), index.Build(docs))
}

func TestTermsMapWordsToConcepts(t *testing.T) {
	keys := func(text string) (list []string) {
		for _, term := range index.Terms(text) {
			list = append(list, term.Key)
		}
		return list
	}
	require.Equal(t, keys("machines"), keys("hosts"))
	require.Equal(t, keys("显卡"), keys("GPU"))
	require.Contains(t, keys("start it at 4 pm"), "=begin")
	require.Contains(t, keys("明早八点再跑"), "=begin")
	require.Contains(t, keys("--array=1-50%5"), "%slots")
	require.Contains(t, keys("not on gpu07"), "=nodelist")
	require.Contains(t, keys("NCCL_IB_HCA"), "nccl_ib_hca")
	require.Equal(t, keys("multi node"), keys("multi-node"))
}

// A table of names gets rows that are worded alike. What they say must not change what the
// words of other Docs are worth.
func TestMoreRowsOfATableChangeNoOtherScore(t *testing.T) {
	row := func(name string) index.Doc {
		return index.Doc{Asks: []string{"what does the job setting " + name + " do", "作业参数 " + name + " 什么作用"}, Title: name, Body: "a setting of a job", Group: "conf"}
	}
	few := open(t, append(docs, row("ALPHA_A"))...)
	many := open(t, append(docs, row("ALPHA_A"), row("BETA_B"), row("GAMMA_C"), row("DELTA_D"))...)
	for _, q := range []string{"how can I cancel this job", "why is my job pending", "作业为什么排队"} {
		require.Equal(t, few.Search(q, 1), many.Search(q, 1), q)
	}
	require.Equal(t, 6, many.Search("what does GAMMA_C do", 1)[0].Doc, "each row is found by its name")
}

func TestAnOptionWithoutItsDashesIsThatOption(t *testing.T) {
	x := open(t, append(docs, index.Doc{Asks: []string{"length of the run"}, Title: "Length", Body: "`--train-iters` is the number of steps."})...)
	require.Equal(t, 4, x.Search("train-iters of a job", 1)[0].Doc)
	require.Greater(t, x.Search("train-iters", 1)[0].Score, x.Search("train iters", 1)[0].Score)
	require.Equal(t, x.Search("multi node", 3), x.Search("multi-node", 3), "other hyphenated words are two words")
}

// Configuration files and other programs write an option's name with underscores, or leave
// its beginning out.
func TestANameWithUnderscoresIsThatOption(t *testing.T) {
	x := open(t, append([]index.Doc{
		{Title: "--kiln-glow-history-len", Body: "length of the window"},
		{Title: "--lr-decay-iters", Body: "where the decay ends"},
		{Title: "--first-weight-decay-style", Body: "one of two"},
		{Title: "--second-weight-decay-style", Body: "the other"},
	}, docs...)...)
	for q, want := range map[string]int{
		"sensible lr_decay_iters please":       1,
		"sensible glow_history_len please":     0,
		"sensible glow-history-len please":     0,
		"sensible kiln_glow_history_len value": 0,
	} {
		require.Equal(t, want, x.Search(q, 1)[0].Doc, q)
	}
	require.Less(t, x.Search("sensible weight_decay_style", 1)[0].Score, 0.2, "two options end so")
}

func TestAnUnknownAdverbChangesNothing(t *testing.T) {
	x := open(t, docs...)
	require.InDelta(t, x.Search("exclude a node", 1)[0].Score, x.Search("exclude a node preferably", 1)[0].Score, 0.2)
	require.Zero(t, x.UnknownShare("exclude preferably", len(docs)))
	require.NotZero(t, x.UnknownShare("exclude bicycles", len(docs)))
	require.Zero(t, x.ForeignShare("exclude bicycles", len(docs)), "no Doc at all has it")
}

func TestBritishSpellingIsTheSameWord(t *testing.T) {
	require.Equal(t, index.Terms("gpu utilization, initialize, behavior"), index.Terms("gpu utilisation, initialise, behaviour"))
}

func TestWordsAreNoNames(t *testing.T) {
	words := index.Words(index.Terms("set NCCL_GRAPH_REGISTER=0 and --fp16 against a crash"))
	require.NotContains(t, index.Keys(words), "nccl_graph_register")
	require.NotContains(t, index.Keys(words), "--fp16")
	require.Contains(t, index.Keys(words), "=crash")
	only := index.Terms("NCCL_GRAPH_REGISTER")
	require.Equal(t, only, index.Words(only), "without a word the names are all there is")
}
