// Package knowledge answers set-up questions about Megatron-LM on Slurm, in
// English and Chinese, from what the project states: the rules core, the cards
// and the skills. It invents nothing: what it does not know it says it does not
// know, and what it is asked to do it leaves to the operations.
package knowledge

import (
	"context"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// A Question is what a person or an agent asks.
type Question struct {
	Text string
	// Lang is the language to answer in; empty means that of Text.
	Lang lang.Lang
	// History holds the earlier turns of the same thread, oldest first.
	History []Turn
}

// A Turn is one earlier question of a thread and its answer.
type Turn struct{ Question, Answer string }

// An Answer is what is known of a Question.
type Answer struct {
	Answer string `json:"answer"`
	// Refused reports that the question was declined: out of scope, not known,
	// or a request to act.
	Refused bool     `json:"refused"`
	Sources []Source `json:"sources"`
	// Topics are the nearest topics, offered where the question was declined.
	Topics []string `json:"topics,omitempty"`
}

// A Source says where an answer comes from.
type Source struct {
	Skill   string `json:"skill"`
	Section string `json:"section"`
	URL     string `json:"url"`
}

// View draws the answer for a surface.
func (a Answer) View(l lang.Lang) view.Doc {
	d := view.Doc{Sections: []view.Section{{Text: a.Answer}}}
	if a.Refused {
		d.Tone = view.Warn
	}
	if len(a.Sources) > 0 {
		s := view.Section{Heading: lang.Text{EN: "Source", ZH: "来源"}.In(l)}
		for _, src := range a.Sources {
			s.Items = append(s.Items, src.String())
		}
		d.Sections = append(d.Sections, s)
	}
	return d
}

// String names the source in one line.
func (s Source) String() string {
	name := s.Skill
	if s.Section != "" {
		name = strings.TrimPrefix(name+" › "+s.Section, " › ")
	}
	if s.URL != "" {
		name = strings.TrimSpace(name + " " + s.URL)
	}
	return name
}

// Options of an Answerer. The zero value answers from what is built in.
type Options struct{}

// An Answerer answers Questions. It is safe for concurrent use.
type Answerer struct {
	opts  Options
	ready func() *library
}

// A library is the cards and their index, made when first asked.
type library struct {
	cards []cards.Card
	index *index.Index
	byID  map[string]int
}

// New returns an Answerer. It reads nothing yet: the index is built on the
// first question.
func New(opts Options) *Answerer {
	return &Answerer{opts: opts, ready: sync.OnceValue(newLibrary)}
}

func newLibrary() *library {
	list := cards.All()
	docs := make([]index.Doc, len(list))
	lib := &library{cards: list, byID: make(map[string]int, len(list))}
	for i, c := range list {
		docs[i] = index.Doc{
			Asks:  c.Asks,
			Title: c.Title.EN + " " + c.Title.ZH,
			Body:  c.Text.EN + " " + c.Text.ZH,
		}
		lib.byID[c.ID] = i
	}
	lib.index = index.New(docs)
	return lib
}

// Below these a question is declined: a card has to fit it at least so well,
// less well where the question uses the words of the field.
const (
	minScore       = 0.48
	minCover       = 0.50
	minScoreField  = 0.22
	minCoverField  = 0.16
	wholeScore     = 0.30 // where the card holds every word of the question
	wholeCover     = 0.95
	relatedShare   = 0.72 // of the best score, for a second card to be shown as well
	certain        = 0.90 // a best score above which no second card is shown
	maxWithRelated = 1500 // characters of an answer with a second card
)

// Ask answers one question. It returns an error only when ctx is done.
func (a *Answerer) Ask(ctx context.Context, q Question) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	text := strings.TrimSpace(q.Text)
	l := q.Lang
	if l == "" {
		l = lang.Of(text)
	}
	lib := a.ready()
	if why := outOfScope(text); why != "" {
		return lib.decline(text, l, why), nil
	}
	if r, ok := compute.Answer(text, l); ok {
		return Answer{Answer: r.Text, Sources: []Source{{Skill: r.Skill, Section: r.Section, URL: r.URL}}}, nil
	}
	if id := signature(text); id != "" {
		if i, ok := lib.byID[id]; ok {
			return lib.answer(i, l), nil
		}
	}
	hits := lib.index.Search(text, 4)
	if len(hits) == 0 {
		return lib.decline(text, l, unknown), nil
	}
	if !lib.fits(text, hits[0]) {
		return lib.decline(text, l, unknown), nil
	}
	return lib.found(hits, l), nil
}

// fits reports whether the best card is close enough to be an answer.
func (lib *library) fits(text string, h index.Hit) bool {
	if index.OnlyNumbers(text) {
		return false
	}
	if h.Score >= minScore && h.Cover >= minCover || h.Score >= wholeScore && h.Cover >= wholeCover {
		return true
	}
	return h.Score >= minScoreField && h.Cover >= minCoverField && lib.index.Field(text)
}

// answer is card i in language l.
func (lib *library) answer(i int, l lang.Lang) Answer {
	c := lib.cards[i]
	return Answer{
		Answer:  c.Text.In(l),
		Sources: []Source{{Skill: c.Skill, Section: c.Title.In(l), URL: c.URL}},
	}
}

// found answers with the best card; where a second one fits nearly as well, it
// follows under its title.
func (lib *library) found(hits []index.Hit, l lang.Lang) Answer {
	ans := lib.answer(hits[0].Doc, l)
	best := hits[0].Score
	for _, h := range hits[1:min(len(hits), 3)] {
		if best > certain || h.Score < relatedShare*best {
			break
		}
		c := lib.cards[h.Doc]
		more := "\n\n" + lang.Text{EN: "Related: ", ZH: "相关:"}.In(l) + c.Title.In(l) + "\n" + c.Text.In(l)
		if len([]rune(ans.Answer))+len([]rune(more)) > maxWithRelated {
			break
		}
		ans.Answer += more
		ans.Sources = append(ans.Sources, Source{Skill: c.Skill, Section: c.Title.In(l), URL: c.URL})
	}
	return ans
}

// decline says why there is no answer and offers the nearest topics.
func (lib *library) decline(text string, l lang.Lang, why reason) Answer {
	ans := Answer{Refused: true, Sources: []Source{}}
	for _, h := range lib.index.Search(text, 3) {
		ans.Topics = append(ans.Topics, lib.cards[h.Doc].Title.In(l))
	}
	for _, id := range []string{"run.minimal-script", "run.cdmc", "run.diag-classes"} {
		if i, ok := lib.byID[id]; ok && len(ans.Topics) < 3 {
			ans.Topics = append(ans.Topics, lib.cards[i].Title.In(l))
		}
	}
	var b strings.Builder
	b.WriteString(refusals[why].In(l))
	b.WriteString("\n" + lang.Text{EN: "Nearest topics: ", ZH: "相近的主题:"}.In(l))
	b.WriteString(strings.Join(ans.Topics, lang.Text{EN: "; ", ZH: ";"}.In(l)))
	ans.Answer = b.String()
	return ans
}
