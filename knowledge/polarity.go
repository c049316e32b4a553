package knowledge

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// textNo begins the answer to a question that takes something wrong for granted.
var textNo = lang.Text{EN: "No. ", ZH: "不是这样。"}

// denied matches an answer that already begins with a no to what was said. An
// order (never ..., 不要 ...) is none: it may say what the question says.
var denied = lazy.New(`^(?:No\b|That does not fit|对不上|Not\b|不[^要]|没有|并非|否)`)

// affirmed matches the yes of an answer, which no no may precede.
var affirmed = lazy.New(`^(?:Yes[,:]? |(?:会|能|要|可以|算)[,:]\s*)`)

// withDenials adds to the cards those that answer a false premise: the same
// text, behind a no.
func withDenials(list []cards.Card) []cards.Card {
	all := slices.Clone(list)
	for _, c := range list {
		if len(c.Denies) == 0 {
			continue
		}
		d := c
		d.Asks, d.Denies = c.Denies, nil
		for _, t := range []struct{ text, no *string }{{&d.Text.EN, &textNo.EN}, {&d.Text.ZH, &textNo.ZH}} {
			if !denied.MatchString(*t.text) {
				*t.text = *t.no + withoutYes(*t.text)
			}
		}
		all = append(all, d)
	}
	return all
}

// withoutYes takes the yes off an answer.
func withoutYes(text string) string {
	if yes := affirmed.FindString(text); yes != "" {
		return lang.Capital(text[len(yes):])
	}
	return text
}

// yesNo finds a question that a no may begin the answer to.
var yesNo = lazy.New(`(?i)(?:^|[,.;:] ?)(?:so |and |but |ok |hi |hey )*(?:is|are|am|was|were|do|does|did|don't|doesn't|can|could|may|might|must|should|shall|will|would|has|have|isn't|aren't|won't)\b|\b(?:ok|okay|fine|allowed|possible|enough|safe|needed|required|harmful)\s*[?？]?$|[吗么吧嘛]\s*[?？。!！]?\s*$|行不行|能不能|可不可以|是不是|对不对|会不会|要不要|用不用|该不该|需不需要|有没有|有什么(?:坏处|问题)|行吗|可以吗|能.{0,12}吗`)

// deny chooses between the best card and its denial of a false premise. The
// denial answers a question that only wants a yes, if by its letters a premise
// known to be false is near, and nearer than anything else known of the matter:
// of what is only somewhat like one, nearly as much is right as is wrong. To a
// question that no can not answer, the card itself answers.
func (lib *library) deny(text string, hits []index.Hit) []index.Hit {
	if len(hits) == 0 {
		return hits
	}
	confirms := index.Confirms(text)
	if !confirms && (hits[0].Doc < lib.own || yesNo.MatchString(text)) {
		return hits
	}
	hits = slices.Clone(hits)
	id := lib.cards[hits[0].Doc].ID
	no := slices.IndexFunc(hits, func(h index.Hit) bool { return h.Doc >= lib.own && lib.cards[h.Doc].ID == id })
	yes := slices.IndexFunc(hits, func(h index.Hit) bool { return h.Doc < lib.own && lib.cards[h.Doc].ID == id })
	switch {
	case no < 0:
	case confirms && hits[no].Like >= denialLike && (yes < 0 || hits[no].Like >= hits[yes].Like+denialMore):
		h := hits[no]
		return slices.Insert(slices.Delete(hits, no, no+1), 0, h)
	case no == 0:
		hits[0].Doc = lib.byID[id]
	}
	return hits
}

// leading finds the one value that a computed answer begins with.
var leading = lazy.New("^(?:[^:\\n]*?= |`--[a-z-]+=|CUDA_DEVICE_MAX_CONNECTIONS=)?(\\d+)(?:[^\\d,.]|$)")

// number finds the numbers of a question, set what an answer gives a name, and
// named what a question does.
var (
	number = lazy.New(`\d+`)
	set    = lazy.New(`([A-Za-z][\w-]+)=(\d+)\b`)
	named  = lazy.New(`([A-Za-z][\w-]+)(?:=| (?:must be|should be|has to be|is|to) | ?(?:必须是|应该是|要写|得写|写|填|设|是) ?)(\d+)\b`)
)

// contradicts reports whether a question that wants a yes takes another value for
// granted than the one that was worked out: it names numbers, and not that one, or
// sets what the answer sets otherwise.
func contradicts(question, worked string) bool {
	if !index.Confirms(question) {
		return false
	}
	for _, q := range named.FindAllStringSubmatch(question, -1) {
		for _, w := range set.FindAllStringSubmatch(worked, -1) {
			if q[1] == w[1] && q[2] != w[2] {
				return true
			}
		}
	}
	m := leading.FindStringSubmatch(worked)
	all := number.FindAllString(question, -1)
	return m != nil && len(all) > 0 && !slices.Contains(all, m[1])
}

// agrees reports whether a question comes to the value that was worked out: it is
// the last that it names.
func agrees(question, worked string) bool {
	m := leading.FindStringSubmatch(worked)
	all := number.FindAllString(question, -1)
	return m != nil && len(all) > 0 && all[len(all)-1] == m[1]
}

// textUnsettled begins the answer to a question that wants a yes, where what is
// known is found but not whether it says the same. Words that are alike do not
// tell: "gives hours" and "gives minutes" differ in one.
var textUnsettled = lang.Text{EN: "I cannot confirm it as you put it; this is what holds. ", ZH: "这个说法不能直接确认，以下面为准。"}

// unsettled reports whether a question wants a yes and f does not deny it. That a
// statement is like one that is known to be right does not settle it either: the
// wrong ones are as like.
func unsettled(question string, f finding) bool {
	switch {
	case f.Refused || !index.Confirms(question) || denied.MatchString(f.Answer.Answer):
		return false
	case f.computed:
		return !agrees(question, f.Answer.Answer)
	}
	return true
}
