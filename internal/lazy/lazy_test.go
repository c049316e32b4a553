package lazy_test

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// exprs hold what words are derived from, and what they must not be.
var exprs = []string{
	`a`, ``, `abc|abd|x`, `\b(?:ab|bc\w*|a b)\b|作业`, `^(?:please )*(?:ab|cd)\b.{0,3}(?:x|yz)`, `(?i)ask|KISS`, `(?i)[k]a|s`,
	`a(?:b|)c`, `(?:a|b?)c|d*`, `(?:ab|c*)d`, `(?:a|b.|)x`, `a{2,3}b`, `(ab)+c|(?:b|c){0,2}$`, `(?:作|业)?队列|[作业队]a`, `[^a]b`, `\d{2,}x|\d`,
	`(?i)\bé|作a`, `a.*?b|(?s)a.b`, `\Aab\z`, `(?m)^ab$`, `[a-z]x`, "a\ufffd", `a?b?c?(?:ab|cd|)`, `(?:a|b)(?:c|d)(?:作|业)(?:x|)`, `(?i)a(?-i)B`,
	`(?:a|b|c|d|x|k)(?:a|b|c|d|x|k)(?:a|b|c|d|x|k)y`, `\B(?:a|b)\B`, `x(?:a|bc|[^d])`, `$|ab`,
}

var pieces = []string{"a", "b", "c", "d", "x", "y", "z", "ab", "abc", " ", "作", "业", "作业", "队列", "\n", "1", "23", "please ", "K", "k", "s", "S", "ſ", "\u212a", "ask", "kiss", "A", "B", "é", "É", "\xff", "\ufffd"}

// texts are made of the pieces, the same at every run.
func texts() []string {
	r := rand.New(rand.NewPCG(1, 2))
	all := []string{"", "aſk", "\u212aiSſ", "a\xff"}
	for range 3000 {
		var s string
		for range r.IntN(7) {
			s += pieces[r.IntN(len(pieces))]
		}
		all = append(all, s)
	}
	return all
}

func TestFindsWhatTheExpressionFinds(t *testing.T) {
	all := texts()
	for _, e := range exprs {
		re, p := regexp.MustCompile(e), lazy.New(e)
		hits := 0
		for _, s := range all {
			want := re.MatchString(s)
			if want {
				hits++
			}
			require.Equal(t, want, p.MatchString(s), "%q in %q", e, s)
			require.Equal(t, re.FindString(s), p.FindString(s), "%q in %q", e, s)
			require.Equal(t, re.FindAllString(s, -1), p.FindAllString(s, -1), "%q in %q", e, s)
			require.Equal(t, re.FindStringIndex(s), p.FindStringIndex(s), "%q in %q", e, s)
			require.Equal(t, re.FindAllStringIndex(s, -1), p.FindAllStringIndex(s, -1), "%q in %q", e, s)
			require.Equal(t, re.FindStringSubmatch(s), p.FindStringSubmatch(s), "%q in %q", e, s)
			require.Equal(t, re.FindStringSubmatchIndex(s), p.FindStringSubmatchIndex(s), "%q in %q", e, s)
			require.Equal(t, re.FindAllStringSubmatch(s, -1), p.FindAllStringSubmatch(s, -1), "%q in %q", e, s)
			require.Equal(t, re.FindAllStringSubmatchIndex(s, -1), p.FindAllStringSubmatchIndex(s, -1), "%q in %q", e, s)
			require.Equal(t, re.ReplaceAllString(s, "<>"), p.ReplaceAllString(s, "<>"), "%q in %q", e, s)
			double := func(m string) string { return m + m }
			require.Equal(t, re.ReplaceAllStringFunc(s, double), p.ReplaceAllStringFunc(s, double), "%q in %q", e, s)
		}
		require.Positive(t, hits, "no text holds %q", e)
	}
}

func TestAWrongExpressionPanicsAtFirstUse(t *testing.T) {
	p := lazy.New(`(`)
	require.Panics(t, func() { p.MatchString("a") })
	require.Panics(t, func() { lazy.New(`(`).FindString("a") })
}
