package lazy_test

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

func TestRequired(t *testing.T) {
	for expr, words := range map[string][]string{
		`out of memory`:                 {"out of memory"},
		`(?i)Out Of \bMemory`:           {"out of memory"},
		`node (down|failed)`:            {"node down", "node failed"},
		`nodes? down`:                   {"node down", "nodes down"},
		`\d+ clients joined`:            {" clients joined"},
		`error.*(cuda|device)`:          {"error"},
		`cuda.*out of memory|hip error`: {"out of memory", "hip error"},
		`(?:killed)+`:                   {"killed"},
		`(?:killed){2,}x?`:              {"killed"},
		`a[ -]b\d`:                      {"a b", "a-b"},
		`killed|skilled`:                {"killed"},
		`损失 \d`:                         {"损失 "},
		`(?:killed){1,2}x?`:             {"killed"},
		`x*killed|y*killed`:             {"killed"},
		`größe`:                         {"größe"},
		// Too many texts: what is known begins anew.
		`[ab][cd][ef][gh][ij][kl] killed`: {"k killed", "l killed"},
		`killed|no`:                       nil,
		`x*killed|\d+`:                    nil,
		`(?:killed)*`:                     nil,
		`(?:killed){0,3}`:                 nil,
		`(?:killed)?`:                     nil,
		`(?i)größe`:                       nil,
		`.*`:                              nil,
		`(`:                               nil,
	} {
		require.ElementsMatch(t, words, lazy.Required(expr), expr)
	}
}

// TestAMatchHasARequiredWord makes texts at random that match expressions of the forms that the tables
// have. The texts are the same in every run.
func TestAMatchHasARequiredWord(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, expr := range []string{
		`(?i)(uncorrectable|fatal|hardware) .*nvlink|nvlink.*(uncorrectable|fatal|link .*down|is down)`,
		`(?i)\bxid\b[^:]*(\([^)]*\))?:? *(46|48|54)\b`,
		`(?i)(connect to \S+ failed|accept failed|exceeded (error|timeout|retries) count|uds: .*(failed|error))`,
		`(?i)failed with (code|status) -?\d{1,3}|rank \d+ (has )?(exited|died)( early)? \(signal: \d\)`,
		`(?i)(?:error ){1,2}(?:no (?:such )?file)+`,
	} {
		re, err := syntax.Parse(expr, syntax.Perl)
		require.NoError(t, err)
		words := lazy.Required(expr)
		require.NotEmpty(t, words, expr)
		set := lazy.NewWords(words)
		compiled, matched := regexp.MustCompile(expr), 0
		for range 500 {
			text := example(re, r)
			if r.IntN(2) == 0 {
				text = strings.ToUpper(text)
			}
			if !compiled.MatchString(text) {
				continue // a letter came beside the boundary of a word
			}
			matched++
			require.True(t, set.In(text), "%q has none of %q", text, words)
		}
		require.Greater(t, matched, 100, expr)
	}
}

// example returns a text that an expression matches.
func example(re *syntax.Regexp, r *rand.Rand) string {
	repeated := func(low, high int) (s string) {
		for range low + r.IntN(high-low+1) {
			s += example(re.Sub[0], r)
		}
		return s
	}
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		n := 2 * r.IntN(len(re.Rune)/2)
		return string(re.Rune[n] + rune(r.IntN(int(min(re.Rune[n+1]-re.Rune[n], 50))+1)))
	case syntax.OpAnyCharNotNL:
		return string(rune(' ' + r.IntN(95)))
	case syntax.OpCapture:
		return example(re.Sub[0], r)
	case syntax.OpAlternate:
		return example(re.Sub[r.IntN(len(re.Sub))], r)
	case syntax.OpConcat:
		var s string
		for _, sub := range re.Sub {
			s += example(sub, r)
		}
		return s
	case syntax.OpQuest:
		return repeated(0, 1)
	case syntax.OpStar:
		return repeated(0, 4)
	case syntax.OpPlus:
		return repeated(1, 4)
	case syntax.OpRepeat:
		return repeated(re.Min, max(re.Max, re.Min+1))
	}
	return ""
}
