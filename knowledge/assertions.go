package knowledge

import (
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

var (
	// demanded finds what Megatron says when it refuses a launch.
	demanded = lazy.New(`(?i)assert|valueerror|runtimeerror|\bmust\b|should (?:be|not)|cannot be|can not be|not (?:supported|allowed|compatible|divisible|implemented)|incompatible|requires?\b|only (?:supported|works?|valid|available)|报错|断言|必须`)
	// argument finds the names of Megatron's arguments as its messages write them.
	argument = lazy.New(`(?:--)?[a-z][a-z0-9]*(?:[_-][a-z0-9]+)+`)
)

// cardOfMessage is how well a card that speaks of the same arguments must fit to
// go before the rule.
const cardOfMessage = 0.45

// configNames are arguments that messages call by the field of a configuration.
var configNames = map[string]string{"num-moe-experts": "--num-experts", "context-parallel": "--context-parallel-size", "virtual-pipeline-model-parallel-size": "--num-layers-per-virtual-pipeline-stage"}

// A wordedRule is a rule with the words of its condition and requirement.
type wordedRule struct {
	rules.Rule
	words []index.Term
}

var ruleWords = sync.OnceValue(func() []wordedRule {
	var list []wordedRule
	for _, r := range rules.Table() {
		if r.Severity == rules.Error {
			list = append(list, wordedRule{r, index.Terms(r.Condition.EN + " " + r.Requirement.EN)})
		}
	}
	return list
})

// assertion answers a message of Megatron's own checks from the rule that names
// the same arguments.
func (lib *library) assertion(text string, l lang.Lang, hits []index.Hit) (Answer, bool) {
	if !demanded.MatchString(text) {
		return Answer{}, false
	}
	named := map[string]bool{}
	for _, name := range argument.FindAllString(strings.ToLower(text), -1) {
		name = strings.ReplaceAll(strings.TrimPrefix(name, "--"), "_", "-")
		if flag, ok := configNames[name]; ok {
			named[flag] = true
		} else if f, ok := megatron.LookupFlag("--" + name); ok {
			named[f.Name] = true
		}
	}
	if len(named) < 2 || len(hits) > 0 && hits[0].Score >= cardOfMessage && lib.speaksOf(hits[0].Doc, named) {
		return Answer{}, false
	}
	var best rules.Rule
	most := 0.0
	said := index.Terms(text)
	for _, r := range ruleWords() {
		both := 0
		for _, flag := range r.Flags {
			if named[flag] {
				both++
			}
		}
		if both < 2 {
			continue
		}
		// The flags tell most, the words decide between rules of the same ones.
		score := float64(both)/float64(len(r.Flags)+len(named)-both) + alike(said, r.words)
		if score > most {
			best, most = r.Rule, score
		}
	}
	if most == 0 {
		return Answer{}, false
	}
	say := func(en, zh string) string { return lang.Text{EN: en, ZH: zh}.In(l) }
	t := best.Requirement.In(l)
	if c := best.Condition.In(l); c != "" {
		t += say(" (where: ", "(适用情形:") + c + ")"
	}
	t += say(". Reason: ", "。原因:") + best.Reason.In(l) + say(". Fix: ", "。改法:") + best.Remedy.In(l) +
		say(". `megatron-ops plan` finds this before the launch (rule ", "。`megatron-ops plan` 在启动前就能查出(规则 ") + best.ID + say(").", ")。")
	return Answer{Answer: t, Sources: []Source{{Skill: "parallel-layout", Section: best.Topic, URL: best.Source}}}, true
}

// speaksOf reports whether card i holds all the flags, however they are spelt.
func (lib *library) speaksOf(i int, flags map[string]bool) bool {
	c := lib.cards[i]
	held := strings.ToLower(strings.ReplaceAll(c.Text.EN+" "+strings.Join(c.Asks, " "), "_", "-"))
	for flag := range flags {
		if !strings.Contains(held, strings.TrimPrefix(flag, "--")) {
			return false
		}
	}
	return true
}

// alike is the share of the second text's words that the first holds.
func alike(said, of []index.Term) float64 {
	held := map[string]bool{}
	for _, t := range said {
		held[t.Key] = true
	}
	n := 0
	for _, t := range of {
		if held[t.Key] {
			n++
		}
	}
	return float64(n) / float64(max(len(of), 1)) / 2
}
