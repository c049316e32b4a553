package skills_test

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/skills"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// common are stop words, which say nothing about a request's subject.
var common = map[string]bool{
	"a": true, "after": true, "an": true, "and": true, "any": true, "as": true, "at": true, "before": true, "by": true, "do": true, "does": true, "each": true,
	"for": true, "from": true, "has": true, "have": true, "how": true, "i": true, "in": true, "is": true, "it": true, "its": true, "my": true, "not": true,
	"of": true, "on": true, "or": true, "own": true, "should": true, "that": true, "the": true, "this": true, "to": true, "use": true, "what": true,
	"when": true, "where": true, "which": true, "will": true, "with": true, "without": true,
}

// wordsOf returns a text's words, in lower case and without endings and stop words.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_')
	}) {
		if stem, cut := strings.CutSuffix(w, "ies"); cut {
			w = stem + "y"
		}
		for _, ending := range []string{"ing", "ed", "es", "s"} {
			if stem, cut := strings.CutSuffix(w, ending); cut && len(stem) > 2 {
				w = stem
				break
			}
		}
		if !common[w] {
			words[w] = true
		}
	}
	return words
}

// bestSkill returns the skill whose description has most of a request's words; "" where
// none has any. A word that fewer descriptions have counts more.
func bestSkill(request string, all []skills.Skill) string {
	described := make([]map[string]bool, len(all))
	having := map[string]int{}
	for i, s := range all {
		described[i] = wordsOf(s.Name + " " + s.Description)
		for w := range described[i] {
			having[w]++
		}
	}
	best, most := "", 0.0
	for i, s := range all {
		score := 0.0
		for w := range wordsOf(request) {
			if described[i][w] {
				score += math.Log(1 + float64(len(all))/float64(having[w]))
			}
		}
		if score > most {
			best, most = s.Name, score
		}
	}
	return best
}

// TestDescriptionsMatchRequests scores the descriptions, because an agent sees only these
// before it opens a skill. Golden files pin each verdict.
func TestDescriptionsMatchRequests(t *testing.T) {
	for _, set := range []struct {
		name         string
		asked, floor int
	}{
		{"triggers", 60, 59},
		{"requests", 44, 37}, // in people's own words, with few technical terms
	} {
		t.Run(set.name, func(t *testing.T) {
			file, err := os.Open(filepath.Join("testdata", set.name+".txt"))
			require.NoError(t, err)
			defer file.Close()
			var verdicts strings.Builder
			right, asked := 0, 0
			for lines := bufio.NewScanner(file); lines.Scan(); {
				want, request, ok := strings.Cut(lines.Text(), "\t")
				if !ok {
					continue
				}
				got := bestSkill(request, skills.All())
				asked++
				mark := "ok  "
				if got == want {
					right++
				} else {
					mark = "MISS"
				}
				fmt.Fprintf(&verdicts, "%s %s <- %s\n", mark, got, request)
			}
			golden := filepath.Join("testdata", set.name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(verdicts.String()), 0o600))
			}
			pinned, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(pinned), verdicts.String(), "go test ./skills -update, if it is meant")
			require.Equal(t, set.asked, asked)
			require.GreaterOrEqual(t, right, set.floor, verdicts.String())
			t.Logf("%d of %d", right, asked)
		})
	}
}
