package knowledge

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/names"
)

// A check judges what a model writes, before anybody sees it: a number has to
// stand in what the model was given, an option has to exist, a citation has to
// name a passage or a tool that there was. What fails is withheld, and the
// passages are shown.
type check struct {
	lang     lang.Lang
	talk     *talk
	computed string
	numbers  map[string]bool
}

var (
	valueForm    = lazy.New("\\b([A-Z][A-Z_]+)`?\\s*(?:=+|:|：|is|of|to|为|是|等于|应为|设为)\\s*`?(\\d+(?:\\.\\d+)?)")
	numberForm   = lazy.New(`\d+(?:\.\d+)?`)
	listMark     = lazy.New(`(?m)^\s*\d{1,2}[.)、]\s`)
	citationForm = lazy.New(`\[([^\[\]\n]{1,40})\]`)
	wordedFlag   = lazy.New("(?:^|[\\s`(])(--[a-z][a-z0-9-]+)")
	sentences    = lazy.New(`[.!?](?:\s|$)|[。！？；\n]`)
	// excuse is how a model declines.
	excuse = lazy.New(`(?i)UNKNOWN|\bI(?:'m| am) sorry\b|\bI (?:can(?:no|')t|am unable|am not able|won't)\b|\bas an ai\b|\blanguage model\b` +
		`|抱歉|对不起|我(?:无法|不能|没办法)|作为(?:一个)?(?:人工智能|AI|语言模型)`)
)

// Excuse reports whether a model's text declines to answer.
func Excuse(text string) bool { return excuse.MatchString(text) }

// allow takes the numbers of a text as known.
func (c *check) allow(text string) {
	if c.numbers == nil {
		c.numbers = map[string]bool{}
	}
	for _, n := range numberForm.FindAllString(text, -1) {
		c.numbers[n] = true
	}
}

// sentence reports whether a part of an answer may be shown.
func (c *check) sentence(text string) bool {
	if !c.citationsHold(text) {
		return false
	}
	bare := listMark.ReplaceAllString(citationForm.ReplaceAllString(text, " "), " ")
	for _, n := range numberForm.FindAllString(bare, -1) {
		if !c.numbers[n] {
			return false
		}
	}
	known := valueForm.FindAllStringSubmatch(c.computed, -1)
	for _, m := range valueForm.FindAllStringSubmatch(text, -1) {
		same := func(k []string) bool { return k[1] == m[1] }
		if slices.ContainsFunc(known, same) && !slices.ContainsFunc(known, func(k []string) bool { return same(k) && k[2] == m[2] }) {
			return false // it contradicts the computed result
		}
	}
	for _, m := range wordedFlag.FindAllStringSubmatch(text, -1) {
		if !names.Option(m[1]) {
			return false
		}
	}
	return !Excuse(text)
}

// citationsHold reports whether what is cited was there: a passage by its
// number, a tool that was called, the computed result. Other brackets, such as
// those of a node list, are none.
func (c *check) citationsHold(text string) bool {
	for _, m := range citationForm.FindAllStringSubmatch(text, -1) {
		for part := range strings.SplitSeq(m[1], ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(part)); err == nil && (n < 1 || n > len(c.talk.passages)) && !c.numbers[strings.TrimSpace(part)] {
				return false
			}
		}
	}
	return true
}

// cited are the numbers of the passages that a text cites, each once.
func (c *check) cited(text string) []int {
	var list []int
	for _, m := range citationForm.FindAllStringSubmatch(text, -1) {
		for part := range strings.SplitSeq(m[1], ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err == nil && n >= 1 && n <= len(c.talk.passages) && !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	return list
}

// whole reports whether an answer may be shown: it is sound, in the right
// language, and keeps the computed result, or cites a passage or a tool that was
// called.
func (c *check) whole(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || len([]rune(text)) > maxWorded || c.lang == lang.ZH && lang.Of(text) != c.lang || !c.sentence(text) {
		return false
	}
	// The first number of a computed answer is the result itself.
	if n := numberForm.FindString(c.computed); n != "" && slices.Contains(numberForm.FindAllString(text, -1), n) {
		return true
	}
	if len(c.cited(text)) > 0 {
		return true
	}
	return len(c.citedTools(text)) > 0
}

// citedTools are the tools that were called and that a text cites, each once.
func (c *check) citedTools(text string) []string {
	var list []string
	for _, tool := range c.talk.called {
		if tool != "search" && strings.Contains(text, "["+tool+"]") && !slices.Contains(list, tool) {
			list = append(list, tool)
		}
	}
	return list
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
