package knowledge

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// defaultTalk is what a question about a flag's default says.
var defaultTalk = lazy.New(`(?i)\bdefaults?\b|\bchoices?\b|\btype\b|\bvalues?\b|默认|取值|可选|类型`)

// flagFact answers from Megatron's flag table where the question names one
// flag: what it takes and its default. It leaves flags that the best card
// speaks of to the card, unless the default is asked for.
func (lib *library) flagFact(text string, l lang.Lang, hits []index.Hit) (Answer, bool) {
	named := optionForm.FindAllStringSubmatch(text, -1)
	if len(named) != 1 || pasted.MatchString(text) {
		return Answer{}, false
	}
	f, ok := megatron.LookupFlag(strings.ReplaceAll(strings.ToLower(named[0][1]), "_", "-"))
	if !ok {
		return Answer{}, false
	}
	if len(hits) > 0 && !defaultTalk.MatchString(text) {
		c := lib.cards[hits[0].Doc]
		if hits[0].Score >= minScoreField && strings.Contains(c.Text.EN+strings.Join(c.Asks, " "), f.Name) {
			return Answer{}, false
		}
	}
	say := func(en, zh string) string { return lang.Text{EN: en, ZH: zh}.In(l) }
	b := "`" + f.Name + "`: " + say("a flag of Megatron-LM, ", "Megatron-LM 的参数,")
	switch {
	case f.Type == megatron.Switch || f.Action != megatron.Store:
		b += say("a switch without a value", "开关,不带值")
	case len(f.Choices) > 0:
		b += say("one of ", "可选值 ") + strings.Join(f.Choices, ", ")
	default:
		b += say("takes a value of type ", "取值类型 ") + string(f.Type)
	}
	def := f.Default
	if def == "" {
		def = say("none", "无")
	}
	b += say("; default ", ";默认 ") + def + say("; group ", ";分组 ") + f.Group
	if len(f.Aliases) > 0 {
		b += say("; also ", ";别名 ") + strings.Join(f.Aliases, ", ")
	}
	ans := Answer{
		Answer:  b + say(". `megatron-ops plan` checks it together with your other arguments.", "。`megatron-ops plan` 会结合其他参数检查。"),
		Sources: []Source{{Skill: "parallel-layout", Section: f.Group, URL: "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py"}},
	}
	// A card that speaks of the flag follows.
	for _, h := range hits[:min(len(hits), 2)] {
		c := lib.cards[h.Doc]
		if strings.Contains(c.Text.EN, f.Name) {
			ans.Answer += "\n\n" + c.Text.In(l)
			break
		}
	}
	return ans, true
}
