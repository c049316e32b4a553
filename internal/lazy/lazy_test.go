package lazy_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

func TestAPatternFindsWhatItsExpressionFinds(t *testing.T) {
	p := lazy.New(`r(\d)`)
	double := func(m string) string { return m + m }
	require.True(t, p.MatchString("a r1 r2"))
	require.Equal(t, "r1", p.FindString("a r1 r2"))
	require.Equal(t, []int{2, 4}, p.FindStringIndex("a r1 r2"))
	require.Equal(t, []string{"r1", "1"}, p.FindStringSubmatch("a r1 r2"))
	require.Equal(t, []int{2, 4, 3, 4}, p.FindStringSubmatchIndex("a r1 r2"))
	require.Equal(t, []string{"r1", "r2"}, p.FindAllString("a r1 r2", -1))
	require.Equal(t, [][]int{{2, 4}}, p.FindAllStringIndex("a r1 r2", 1))
	require.Equal(t, [][]string{{"r1", "1"}, {"r2", "2"}}, p.FindAllStringSubmatch("a r1 r2", -1))
	require.Equal(t, [][]int{{2, 4, 3, 4}, {5, 7, 6, 7}}, p.FindAllStringSubmatchIndex("a r1 r2", -1))
	require.Equal(t, "a <1> <2>", p.ReplaceAllString("a r1 r2", "<$1>"))
	require.Equal(t, "a r1r1 r2r2", p.ReplaceAllStringFunc("a r1 r2", double))
}

func TestATextWithoutAWordIsNotAsked(t *testing.T) {
	p := lazy.On("ode|ODE", `(?i)node (\w+)`)
	require.True(t, p.MatchString("NODE a"))
	require.Equal(t, []string{"Node a", "a"}, p.FindStringSubmatch("on Node a"))
	require.Equal(t, []string{"node a", "node b"}, p.FindAllString("node a, node b", -1))
	for _, s := range []string{"", "NoDe a", "host a"} {
		require.False(t, p.MatchString(s), s)
		require.Nil(t, p.FindStringSubmatch(s), s)
		require.Equal(t, s, p.ReplaceAllString(s, "x"))
	}
}

func TestAWrongExpressionPanicsAtFirstUse(t *testing.T) {
	p := lazy.New(`(`)
	require.Panics(t, func() { p.MatchString("a") })
}

// TestWordsFindsEveryWord compares the set with a search for each word, in texts made
// of pieces of the words. The texts are the same in every run.
func TestWordsFindsEveryWord(t *testing.T) {
	words := []string{"oom", "oom-kill", "killed", "ill", "lled", "作业", "error: ", "aaa", "aaaa", "xid (pci", "zip"}
	pieces := []string{"o", "oom", "-k", "kill", "ed", "ILL", "Ki", "作", "业", " ", "a", "aa", "AA", "Xid ", "(PCI", "error", ": ", "Z", "zi", "ip", "\xff"}
	set := lazy.NewWords(words)
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 5000 {
		var s string
		for range r.IntN(8) {
			s += pieces[r.IntN(len(pieces))]
		}
		got := map[string]bool{}
		set.Each(s, func(i int) { got[words[i]] = true })
		for _, w := range words {
			require.Equal(t, strings.Contains(strings.ToLower(s), w), got[w], "%q in %q", w, s)
		}
		found += len(got)
	}
	require.Greater(t, found, 1000)
}
