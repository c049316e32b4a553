package knowledge

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/names"
)

// A check judges a model's text before anybody sees it. A number must occur in the
// model's evidence, an option must exist, and a citation must name a passage or a tool
// of the evidence. A text that fails is withheld, and the passages are shown instead.
type check struct {
	lang     lang.Lang
	evidence *evidence
	computed string
	numbers  map[string]bool
}

var (
	valuePattern    = lazy.New("\\b([A-Z][A-Z_]+)`?\\s*(?:=+|:|：|is|of|to|为|是|等于|应为|设为)\\s*`?(\\d+(?:\\.\\d+)?)")
	numberPattern   = lazy.New(`\d+(?:\.\d+)?`)
	listMark        = lazy.New(`(?m)^\s*\d{1,2}[.)、]\s`)
	citationPattern = lazy.New(`\[([^\[\]\n]{1,40})\]`)
	flagPattern     = lazy.New("(?:^|[\\s`(])(--[a-z][a-z0-9-]+)")
	sentenceEnds    = lazy.New(`[.!?](?:\s|$)|[。！？；\n]`)
	// excuse matches the words with which a model declines.
	excuse = lazy.New(`(?i)UNKNOWN|\bI(?:'m| am) sorry\b|\bI (?:can(?:no|')t|am unable|am not able|won't)\b|\bas an ai\b|\blanguage model\b` +
		`|抱歉|对不起|我(?:无法|不能|没办法)|作为(?:一个)?(?:人工智能|AI|语言模型)`)
)

// Excuse reports whether a model's text declines to answer.
func Excuse(text string) bool { return excuse.MatchString(text) }

func (c *check) addNumbers(text string) {
	if c.numbers == nil {
		c.numbers = map[string]bool{}
	}
	for _, n := range numberPattern.FindAllString(text, -1) {
		c.numbers[n] = true
	}
}

// sentence reports whether the evidence supports a part of an answer.
func (c *check) sentence(text string) bool {
	if !c.citationsHold(text) {
		return false
	}
	bare := listMark.ReplaceAllString(citationPattern.ReplaceAllString(text, " "), " ")
	for _, n := range numberPattern.FindAllString(bare, -1) {
		if !c.numbers[n] {
			return false
		}
	}
	known := valuePattern.FindAllStringSubmatch(c.computed, -1)
	for _, m := range valuePattern.FindAllStringSubmatch(text, -1) {
		same := func(k []string) bool { return k[1] == m[1] }
		if slices.ContainsFunc(known, same) && !slices.ContainsFunc(known, func(k []string) bool { return same(k) && k[2] == m[2] }) {
			return false // it contradicts the computed result
		}
	}
	for _, m := range flagPattern.FindAllStringSubmatch(text, -1) {
		if !names.Option(m[1]) {
			return false
		}
	}
	return !Excuse(text)
}

// citationsHold reports whether every number in brackets is the number of a passage,
// or occurs in the evidence. Other text in brackets, such as a node list, is no
// citation.
func (c *check) citationsHold(text string) bool {
	for _, m := range citationPattern.FindAllStringSubmatch(text, -1) {
		for part := range strings.SplitSeq(m[1], ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(part)); err == nil && (n < 1 || n > len(c.evidence.passages)) && !c.numbers[strings.TrimSpace(part)] {
				return false
			}
		}
	}
	return true
}

// cited returns the numbers of the passages that a text cites, each once.
func (c *check) cited(text string) []int {
	var list []int
	for _, m := range citationPattern.FindAllStringSubmatch(text, -1) {
		for part := range strings.SplitSeq(m[1], ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err == nil && n >= 1 && n <= len(c.evidence.passages) && !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	return list
}

// answer reports whether a whole answer may be shown. The evidence must support it,
// it must be in the right language, and it must contain the computed result, or cite a
// passage or a called tool.
func (c *check) answer(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || len([]rune(text)) > maxWorded || c.lang == lang.ZH && lang.Of(text) != c.lang || !c.sentence(text) {
		return false
	}
	// The first number of a computed answer is the result itself.
	n := numberPattern.FindString(c.computed)
	return n != "" && slices.Contains(numberPattern.FindAllString(text, -1), n) || len(c.cited(text)) > 0 || len(c.citedTools(text)) > 0
}

// citedTools returns the called tools that a text cites, each once.
func (c *check) citedTools(text string) []string {
	var list []string
	for _, tool := range c.evidence.called {
		if tool != "search" && strings.Contains(text, "["+tool+"]") && !slices.Contains(list, tool) {
			list = append(list, tool)
		}
	}
	return list
}

// sentenceEnd returns the end of the last complete sentence in text; 0 where there is
// none.
func sentenceEnd(text string) int {
	all := sentenceEnds.FindAllStringIndex(text, -1)
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
