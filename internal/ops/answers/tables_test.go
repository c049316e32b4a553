package answers

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

func TestRulesAreFoundByTopicAndByWord(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	got, err := opstest.Do(t, c, Rules(), "heads")
	require.NoError(t, err)
	byWord := got.(RulesOut)
	require.NotEmpty(t, byWord.Rules)
	headings := map[string]int{}
	var facts int
	for _, s := range byWord.View(lang.EN).Sections {
		headings[s.Heading]++
		facts += len(s.Facts)
	}
	require.Len(t, byWord.Rules, facts, "each is a line")
	for heading, n := range headings {
		require.Equal(t, 1, n, "the rules of %s stand together", heading)
	}
	for _, r := range byWord.Rules {
		if r.Condition.EN == "" {
			continue
		}
		require.Contains(t, lines(byWord.View(lang.EN)), r.Condition.EN+" → "+r.Requirement.EN)
		require.Contains(t, lines(byWord.View(lang.ZH)), r.Condition.In(lang.ZH)+" → "+r.Requirement.In(lang.ZH))
	}

	topic := byWord.Rules[0].Topic
	got, err = opstest.Do(t, c, Rules(), "--topic", topic)
	require.NoError(t, err)
	for _, r := range got.(RulesOut).Rules {
		require.Equal(t, topic, r.Topic)
	}
	_, err = opstest.Do(t, c, Rules(), "lampshade")
	var refused *ops.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, ops.NotFound, refused.Code)
	require.Regexp(t, `^topics: `+topic+`\b|, `+topic+`\b`, refused.Fix.EN)
	require.NotRegexp(t, `\b`+topic+`, (?:.*, )?`+topic+`\b`, refused.Fix.EN, "each topic is named once")
}

// lines returns the facts of a page.
func lines(d view.Doc) (list []string) {
	for _, s := range d.Sections {
		for _, f := range s.Facts {
			list = append(list, f.Value)
		}
	}
	return list
}

func TestANodesStateWithItsFlagIsExplained(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	explain := func(word string) ExplainOut {
		got, err := opstest.Do(t, c, Explain(), word)
		require.NoError(t, err, word)
		return got.(ExplainOut)
	}
	idle, drain, both := explain("IDLE"), explain("DRAIN"), explain("IDLE+DRAIN")
	require.Equal(t, "node state", both.Kind)
	require.Equal(t, idle.Says+"; "+drain.Says, both.Says)
	for _, word := range []string{"IDLE+LAMPSHADE", "LAMPSHADE+IDLE"} {
		_, err := opstest.Do(t, c, Explain(), word)
		require.Error(t, err, word)
	}
}

func TestWhatIsEmptySaysSo(t *testing.T) {
	t.Parallel()
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		require.NotEmpty(t, CardOut{}.View(l).Title)
		require.NotEmpty(t, KnowledgeOut{}.View(l).Title)
	}
	one := CardOut{Cards: []SiteCard{{By: "alice"}}}
	require.Equal(t, []string{"id", "question", "answer", "by"}, one.View(lang.EN).Sections[0].Table.Header)
	require.Equal(t, "编号", one.View(lang.ZH).Sections[0].Table.Header[0])
	require.Equal(t, "Noted.", KnowledgeOut{Noted: "wrong", Gaps: []Gap{{Question: "q"}}}.View(lang.EN).Title)
	require.NotEqual(t, "Noted.", KnowledgeOut{Gaps: []Gap{{Question: "q"}}}.View(lang.EN).Title)
}

// The questions change nothing, and no answer depends on the outside.
func TestWhatAnswersOnlyReads(t *testing.T) {
	t.Parallel()
	for _, op := range []ops.Op{Rules(), Explain(), Constants(), Search()} {
		require.Equal(t, ops.Read, op.Effect, op.Name)
		require.True(t, op.Closed, op.Name)
	}
}

// Both kinds of FSDP gather during the computation, which a single queue would prevent.
func TestConstantsAnswerToFSDP(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for fsdp, want := range map[string]string{"none": "1", "torch": rules.Unset, "megatron": rules.Unset} {
		got, err := opstest.Do(t, c, Constants(), "--gpu", "h100", "--tp", "2", "--fsdp", fsdp)
		require.NoError(t, err, fsdp)
		all := got.(ConstantsOut).Constants
		at := slices.IndexFunc(all, func(k ConstantOut) bool { return k.Name == "CUDA_DEVICE_MAX_CONNECTIONS" })
		require.Equal(t, want, all[at].Value, fsdp)
	}
}

func TestAFlagIsExplainedWithTheRulesThatNameIt(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	got, err := opstest.Do(t, c, Explain(), "--", "--num-attention-heads")
	require.NoError(t, err)
	var want []string
	for _, r := range rules.Table() {
		if slices.Contains(r.Flags, "--num-attention-heads") {
			want = append(want, r.ID+": "+requirement(r, "--num-attention-heads", megatron.V015).EN)
		}
	}
	require.NotEmpty(t, want)
	require.Equal(t, want, got.(ExplainOut).Rules)
}

func TestWhatIsMostOftenNotKnownComesFirst(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for _, n := range []struct {
		verdict, question string
		times             int
	}{
		{VerdictWrong, "where is the falcon scratch", 1},
		{VerdictUnknown, "which lampshade suits the foyer", 3},
		{VerdictWrong, "who pays for hawk nodes", 2},
	} {
		for i := range n.times {
			c.Who.ID = strconv.Itoa(i)
			require.NoError(t, NoteVerdict(t.Context(), c, n.verdict, n.question, ""))
		}
	}
	got, err := opstest.Do(t, c, Knowledge())
	require.NoError(t, err)
	var order []string
	for _, g := range got.(KnowledgeOut).Gaps {
		order = append(order, fmt.Sprint(g.Question, " ", g.Wrong, g.Unknown))
	}
	require.Equal(t, []string{"which lampshade suits the foyer 0 3", "who pays for hawk nodes 2 0", "where is the falcon scratch 1 0"}, order)
}

func TestWhatIsNotKnownIsSaidWithWhatIsNear(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	_, err := opstest.Do(t, c, Explain(), "--", "--num-layerz")
	var refused *ops.Error
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Fix.EN, "--num-layers")
	_, err = opstest.Do(t, c, Explain(), "Lampshade")
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Fix.EN, "a rule id")
}

// A constant whose name is words has a name in Chinese.
func TestConstantsAreNamedInTheReadersLanguage(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	got, err := opstest.Do(t, c, Constants())
	require.NoError(t, err)
	english := regexp.MustCompile(`^[a-z ]+$`)
	var words int
	for i, f := range got.(ConstantsOut).View(lang.EN).Sections[0].Facts {
		zh := got.(ConstantsOut).View(lang.ZH).Sections[0].Facts[i]
		if english.MatchString(f.Name) {
			words++
			require.Equal(t, lang.ZH, lang.Of(zh.Name), zh.Name)
		} else {
			require.Equal(t, f.Name, zh.Name)
		}
	}
	require.Equal(t, 3, words)
}
