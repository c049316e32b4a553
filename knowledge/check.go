package knowledge

import (
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
	"github.com/megatron-ops/megatron-ops/knowledge/names"
)

// A check judges what a model words, before anybody sees it: a number has to
// stand in what the model was given, a named value must not differ from the
// computed one, an option has to exist. What fails is withheld, and the
// deterministic answer stands.
type check struct {
	lang    lang.Lang
	found   finding
	numbers map[string]bool
	values  map[string][]string // what the found answer says of a name
}

var (
	numberForm = lazy.New(`\d+(?:\.\d+)?`)
	listMark   = lazy.New(`(?m)^\s*\d{1,2}[.)、]\s`)
	valueForm  = lazy.New("\\b([A-Z][A-Z_]+)`?\\s*(?:=+|:|:|is|of|to|为|是|等于|应为|设为|设成)\\s*`?(\\d+(?:\\.\\d+)?)")
	wordedFlag = lazy.New("(?:^|[\\s`(])(--[a-z][a-z0-9-]+)")
	sentences  = lazy.New(`[.!?](?:\s|$)|[。!?;\n]`)
	// excuse is how a model declines.
	excuse = lazy.New(`(?i)UNKNOWN|\bI(?:'m| am) sorry\b|\bI (?:can(?:no|')t|am unable|am not able|won't)\b|\bas an ai\b|\blanguage model\b|抱歉|对不起|我(?:无法|不能|没办法)|作为(?:一个)?(?:人工智能|AI|语言模型)`)
)

// Excuse reports whether a model's text declines to answer.
func Excuse(text string) bool { return excuse.MatchString(text) }

// newCheck allows the numbers of everything that the model is told, but those
// of the rules of the house.
func newCheck(q Question, f finding, told []openai.ChatCompletionMessage) *check {
	c := &check{lang: q.Lang, found: f, numbers: map[string]bool{}, values: map[string][]string{}}
	for _, m := range told[1:] {
		c.allow(m.Content)
	}
	for _, m := range valueForm.FindAllStringSubmatch(f.Answer.Answer, -1) {
		c.values[m[1]] = append(c.values[m[1]], m[2])
	}
	return c
}

// allow takes the numbers of a text as known.
func (c *check) allow(text string) {
	for _, n := range numberForm.FindAllString(text, -1) {
		c.numbers[n] = true
	}
}

// sentence reports whether a part of an answer may be shown.
func (c *check) sentence(text string) bool {
	for _, n := range numberForm.FindAllString(listMark.ReplaceAllString(text, " "), -1) {
		if !c.numbers[n] {
			return false
		}
	}
	for _, m := range valueForm.FindAllStringSubmatch(text, -1) {
		if v, ok := c.values[m[1]]; ok && !slices.Contains(v, m[2]) {
			return false
		}
	}
	for _, m := range wordedFlag.FindAllStringSubmatch(text, -1) {
		if !names.Option(m[1]) {
			return false
		}
	}
	return !excuse.MatchString(text)
}

// whole reports whether an answer may be shown: it answers, in the right
// language, about the same thing, and keeps the computed result.
func (c *check) whole(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || len([]rune(text)) > maxAnswer || c.lang == lang.ZH && lang.Of(text) != c.lang || !c.sentence(text) {
		return false
	}
	if c.found.computed {
		// The first number of a computed answer is the result itself.
		if n := numberForm.FindString(c.found.Answer.Answer); n != "" && !slices.Contains(numberForm.FindAllString(text, -1), n) {
			return false
		}
	}
	return c.found.computed || related(text, c.found.Answer.Answer)
}

// related reports whether two texts share words, as an answer and what it is
// made from do.
func related(text, from string) bool {
	held := map[string]bool{}
	for _, t := range index.Terms(from) {
		held[t.Key] = true
	}
	shared := 0
	for _, t := range index.Terms(text) {
		if held[t.Key] {
			shared++
		}
	}
	return shared >= min(2, len(held))
}

// sentenceEnd is where the last whole sentence of text ends; 0 where none does.
func sentenceEnd(text string) int {
	all := sentences.FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return 0
	}
	end := all[len(all)-1][1]
	if end == len(text) && !strings.HasSuffix(text, "\n") && text[len(text)-1] < 0x80 {
		// "4." may go on as "4.5".
		if len(all) == 1 {
			return 0
		}
		end = all[len(all)-2][1]
	}
	return end
}
