package knowledge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

var update = flag.Bool("update", false, "rewrite the golden file of verdicts")

// A labelled question is derived from the documents or reworded from a public thread.
// Must holds the key points: an answer must contain one alternative of each group.
type labelled struct {
	ID      string     `json:"id"`
	Thread  string     `json:"thread"`
	Split   string     `json:"split"` // learn or score
	Lang    lang.Lang  `json:"lang"`
	Kind    string     `json:"kind"`
	Q       string     `json:"q"`
	Must    [][]string `json:"must"`
	MustNot []string   `json:"must_not"`
}

func read(t testing.TB, file string) []labelled {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	var list []labelled
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q labelled
		require.NoError(t, json.Unmarshal(lines.Bytes(), &q), lines.Text())
		list = append(list, q)
	}
	require.NoError(t, lines.Err())
	return list
}

// simple removes differences that do not matter to a reader.
func simple(text string) string {
	text = strings.NewReplacer("`", "", "*", "", "，", ",", "（", "(", "）", ")", "：", ":", "＝", "=", "×", "x").Replace(text)
	return strings.Join(strings.Fields(text), " ")
}

// answers caches answers, because several tests use the same ones.
var answers sync.Map

// answer returns the answer of the built-in knowledge alone.
func (q labelled) answer(t testing.TB) Answer {
	t.Helper()
	if ans, ok := answers.Load(q.ID + q.Q); ok {
		return ans.(Answer)
	}
	ans, err := New(Options{}).Ask(t.Context(), Question{Text: q.Q, Lang: q.Lang})
	require.NoError(t, err)
	answers.Store(q.ID+q.Q, ans)
	return ans
}

// holds reports whether a text contains the key points of a question.
func (q labelled) holds(text string) bool {
	for _, group := range q.Must {
		found := false
		for _, p := range group {
			if expr, ok := strings.CutPrefix(p, "re:"); ok {
				re, err := regexp.Compile("(?im)" + expr)
				found = found || err != nil || re.MatchString(text) || re.MatchString(simple(text)) // Go has no look-behind
			} else {
				found = found || strings.Contains(strings.ToLower(simple(text)), strings.ToLower(simple(p)))
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// verdict summarizes an answer: the cards that it shows, that it is computed, or that it
// redirects a request.
func verdict(a Answer) string {
	var ids []string
	if len(a.Sources) > len(a.Passages) {
		ids = append(ids, "computed "+a.Sources[0].Section)
	}
	for _, p := range a.Passages {
		ids = append(ids, p.id)
	}
	switch {
	case len(ids) > 0:
		return strings.Join(ids, " ")
	case a.Refused && a.Unsure:
		return "nothing"
	case a.Refused:
		return "pointed"
	}
	return "none"
}

// The golden file has one line for each question, so that review shows every changed
// answer.
func TestVerdictsArePinned(t *testing.T) {
	var out strings.Builder
	for _, file := range []string{"derived.jsonl", "asked.jsonl"} {
		for _, q := range read(t, file) {
			ans := q.answer(t)
			fmt.Fprintf(&out, "%s\t%s\n", q.ID, verdict(ans))
		}
	}
	const golden = "testdata/verdicts.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	wanted := strings.Split(string(want), "\n")
	for i, line := range strings.Split(out.String(), "\n") {
		if i >= len(wanted) || line != wanted[i] {
			require.Failf(t, "a verdict changed", "line %d: %q; go test ./knowledge -run Pinned -update writes what is so now", i+1, line)
		}
	}
}

// Minimal shares of right answers. The scoring half of the questions was never looked at
// while the cards were written.
func TestPublicQuestionsReachTheFloor(t *testing.T) {
	for split, floor := range map[string]struct{ first, shown, lost float64 }{
		"learn": {0.88, 0.96, 0.04},
		"score": {0.75, 0.90, 0.04},
	} {
		var n, first, shown, lone int
		for _, q := range read(t, "asked.jsonl") {
			if q.Split != split {
				continue
			}
			n++
			ans := q.answer(t)
			all := ""
			for i, p := range ans.Passages {
				if all += p.Text + "\n"; i == 0 && q.holds(p.Text) {
					first++
				}
			}
			if q.holds(all) || !ans.Refused && q.holds(ans.Answer) {
				shown++
			} else if len(ans.Passages) == 1 || len(ans.Passages) == 0 && !ans.Refused {
				lone++ // one wrong passage, or a wrong number: it misleads
			}
			require.NotRegexp(t, `^(?:No\b|不是这样)`, ans.Answer, q.Q)
		}
		t.Logf("%s: %d questions, key point in the first passage %.3f, among what is shown %.3f, alone and wrong %.3f",
			split, n, share(first, n), share(shown, n), share(lone, n))
		require.GreaterOrEqual(t, share(first, n), floor.first, split)
		require.GreaterOrEqual(t, share(shown, n), floor.shown, split)
		require.LessOrEqual(t, share(lone, n), floor.lost, split)
	}
}

func share(k, n int) float64 { return float64(k) / float64(n) }

func TestDocumentQuestionsReachTheFloor(t *testing.T) {
	var n, right, refused, outside int
	for _, q := range read(t, "derived.jsonl") {
		ans := q.answer(t)
		require.LessOrEqual(t, len([]rune(ans.Answer)), 2500, q.Q)
		if q.Kind == "out_of_scope" {
			outside++
			if ans.Refused {
				refused++
			}
			continue
		}
		n++
		if q.holds(ans.Answer) {
			right++
		}
	}
	t.Logf("%d of %d hold the key points, %d of %d outside are declined", right, n, refused, outside)
	require.GreaterOrEqual(t, share(right, n), 0.95)
	require.GreaterOrEqual(t, share(refused, outside), 0.90)
}

// Questions about everyday life, other programs and other fields are declined. The answer
// offers the nearest titles where any card has a word of the question.
func TestOffTopicQuestionsAreDeclined(t *testing.T) {
	for _, split := range []string{"learn", "score"} {
		n, declined := 0, 0
		for _, q := range read(t, "elsewhere.jsonl") {
			if q.Split != split {
				continue
			}
			n++
			ans := q.answer(t)
			require.LessOrEqual(t, len(ans.Topics), maxShown, q.Q)
			if !ans.Refused {
				t.Logf("%s is answered by %s", q.Q, verdict(ans))
				continue
			}
			declined++
			require.Empty(t, ans.Passages, q.Q)
		}
		t.Logf("%s: %d of %d are declined", split, declined, n)
		require.GreaterOrEqual(t, share(declined, n), 0.90, split)
	}
}
