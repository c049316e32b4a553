// Package knowledge answers set-up questions about Megatron-LM on Slurm, in
// English and Chinese, from what the project states: the rules core, the cards
// and the skills. It invents nothing: what it does not know it says it does not
// know, and what it is asked to do it leaves to the operations.
package knowledge

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
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
	// Usual is the language of whoever asks. It counts where Text is a pasted
	// message, which has no language of its own.
	Usual lang.Lang
	// History holds the earlier turns of the same thread, oldest first.
	History []Turn
	// User is who asks, for the model's budget; it may be empty.
	User string
	// Tools are read-only operations that a model may call, for whoever asks.
	Tools []Tool
	// Stream, where set, is given the answer sentence by sentence as a model
	// writes it, each one checked. What Ask returns stands, also where it differs:
	// a later sentence may have failed.
	Stream func(piece string)
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
	// Unsure reports that nothing known fits the question well, so that it shows
	// a gap: it was declined as not known, or answered just above the bound.
	Unsure bool `json:"-"`
	// Streamed reports that Answer is what went to the question's Stream.
	Streamed bool `json:"-"`
}

// A Source says where an answer comes from.
type Source struct {
	Skill   string `json:"skill"`
	Section string `json:"section"`
	URL     string `json:"url"`
}

// View draws the answer for a surface.
func (a Answer) View(l lang.Lang) view.Doc {
	d := view.Doc{Sections: drawn(a.Answer)}
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

// drawn takes the fenced code out of an answer's words, so that a script
// stays one wherever it is drawn.
func drawn(text string) []view.Section {
	var all []view.Section
	for i, part := range strings.Split("\n"+text, "\n```") {
		if i%2 == 1 {
			name, code, _ := strings.Cut(part, "\n")
			all = append(all, view.Section{Code: code + "\n", Lang: strings.TrimSpace(name)})
			continue
		}
		if part = strings.Trim(part, "\n"); part != "" {
			all = append(all, view.Section{Text: part})
		}
	}
	return all
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
type Options struct {
	// Site lists folders of Markdown pages (a wiki, runbooks) that hold what is
	// particular to the place. They go before what is built in.
	Site []string
	// Own gives the cards about this program, which are looked at where a question
	// names it; nil for none.
	Own func() []cards.Card
	// Model is a language model that words the answers; nil for none.
	Model *Model
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// An Answerer answers Questions. It is safe for concurrent use.
type Answerer struct {
	ready func() *library
	own   func() *library // nil where nothing is known of the program
	site  *site
	model *Model
	spent *budget
}

// A library is the cards and their index, made when first asked.
type library struct {
	cards []cards.Card
	index *index.Index
	byID  map[string]int
	own   int // so many are cards; those behind them deny a false premise
}

// New returns an Answerer. It reads nothing yet: the index is built on the
// first question.
func New(opts Options) *Answerer {
	now := opts.Now
	if now == nil {
		now = time.Now
	}
	var own func() *library
	if opts.Own != nil {
		own = sync.OnceValue(func() *library { return makeLibrary(opts.Own()) })
	}
	return &Answerer{
		own:   own,
		ready: sync.OnceValue(func() *library { return makeLibrary(known()) }),
		site:  &site{folders: opts.Site, now: now},
		model: opts.Model,
		spent: &budget{now: now},
	}
}

// Warm reads and indexes everything that answers come from, the site's pages
// included, so that the first question does not wait for it.
func (a *Answerer) Warm() {
	a.ready()
	if a.own != nil {
		a.own()
	}
	a.site.current()
}

func makeLibrary(list []cards.Card) *library {
	own := len(list)
	list = withDenials(list)
	docs := make([]index.Doc, len(list))
	lib := &library{cards: list, byID: make(map[string]int, len(list)), own: own}
	for i, c := range list {
		docs[i] = index.Doc{
			Asks:  c.Asks,
			Title: c.Title.EN + " " + c.Title.ZH,
			Body:  c.Text.EN + " " + c.Text.ZH,
		}
		if _, ok := lib.byID[c.ID]; !ok {
			lib.byID[c.ID] = i
		}
	}
	lib.index = index.New(docs)
	return lib
}

// Ask answers one question. It returns an error only when ctx is done.
func (a *Answerer) Ask(ctx context.Context, q Question) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	q.Text = excerpt(strings.TrimSpace(q.Text))
	bare := q.Lang == "" && onlyPasted(q.Text)
	if q.Lang == "" {
		q.Lang = lang.Of(q.Text)
		if bare && q.Usual != "" {
			q.Lang, bare = q.Usual, false
		}
	}
	found := a.despite(q, a.find(q))
	if a.model != nil && !found.closed {
		if ans, ok := a.worded(ctx, q, found); ok {
			return ans, nil
		}
	}
	ans := found.Answer
	if unsettled(q.Text, found) { // a model would have told
		ans.Answer = textUnsettled.In(q.Lang) + withoutYes(ans.Answer)
	}
	if q.Lang == lang.ZH {
		ans.Answer = lang.FullWidth(ans.Answer)
	}
	if bare && !ans.Refused {
		ans.Answer += textOtherTongue
	}
	return ans, ctx.Err()
}

// textOtherTongue follows the answer to a message that was pasted without a word.
const textOtherTongue = "\n\n（需要中文回答，请在报错后加一句中文。）"

// message finds what programs print when they fail; words finds a person's.
var (
	message = lazy.New(`(?i)error|exception|traceback|\bwarn|fail|errno|slurmstepd|invalid|cannot|not found|no such|unable|killed|timed? ?out|timeout|cancelled|refused|denied|not available|not divisible`)
	printed = lazy.New(`:\s|\[|\(|Error\b|WARN|^\w+:|/`)
	words   = lazy.New(`(?i)\b(?:how|what|why|which|where|i|i'm|my|we|our|me|please|pls|plz|help|fix|means?|meaning|solve|solution|getting|keeps|seeing)\b|[?？]|\p{Han}`)
)

// onlyPasted reports whether a text is a program's message without a word of
// whoever pasted it.
func onlyPasted(text string) bool {
	return message.MatchString(text) && printed.MatchString(text) && !words.MatchString(text)
}

// maxText is how many characters of a question are read, half from its
// beginning and half from its end: a pasted log tells both there.
const maxText = 4000

func excerpt(text string) string {
	if len(text) <= maxText {
		return text
	}
	rs := []rune(text)
	if len(rs) <= maxText {
		return text
	}
	return string(rs[:maxText/2]) + "\n" + string(rs[len(rs)-maxText/2:])
}

// A finding is a deterministic answer and how it came about.
type finding struct {
	Answer
	// closed says that no model may answer either: a request to act, for a
	// secret, or with instructions of its own.
	closed bool
	// computed says that the answer was worked out; its numbers stand.
	computed bool
	// doubt says that no card surely fits.
	doubt bool
	// hits are the cards that came nearest.
	hits []index.Hit
}

// nearest is how many cards are looked at, so that a denial is among them.
const nearest = 8

// find answers without a model.
func (a *Answerer) find(q Question) finding {
	lib, text, l := a.ready(), q.Text, q.Lang
	hits := lib.deny(text, lib.index.Search(text, nearest))
	why := outOfScope(text)
	if plain, ok := literal[why]; ok {
		if why = plain; lib.meansHere(text, hits) {
			why = ""
		}
	} else if (why == foreign || why == person || why == predict || why == noSuch) && lib.asAsked(text, hits) {
		why = ""
	} else if why == foreign && declines(neighbourRules, strings.ToLower(text)) == "" && lib.surely(text, hits) {
		why = ""
	}
	if why == predict && workedOut(text, l) {
		why = ""
	}
	if ans, ok := a.about(text, l, why); ok {
		return finding{Answer: ans, hits: hits}
	}
	if why != "" && !siteMay(why) {
		return finding{Answer: lib.decline(text, hits, l, why), closed: true}
	}
	whole := inContext(text, q.History)
	if why == "" {
		for _, t := range []string{whole, text} {
			if t == "" {
				continue
			}
			if r, ok := compute.Answer(t, l); ok {
				written := finding{hits: hits} // nothing, where the value alone is wanted
				if r.Told || !r.Wanted {
					written = a.told(text, whole, l, why, hits)
					written.doubt = !lib.surely(text, hits)
				}
				return a.joined(r, written, q)
			}
		}
	}
	return a.told(text, whole, l, why, hits)
}

// told answers with what is written somewhere: a page of the site, a rule, a
// flag, a card.
func (a *Answerer) told(text, whole string, l lang.Lang, why reason, hits []index.Hit) finding {
	lib := a.ready()
	if ans, ok := a.local(text, l, hits); ok {
		return finding{Answer: ans, hits: hits}
	}
	if why != "" {
		return finding{Answer: lib.decline(text, hits, l, why), hits: hits}
	}
	if ans, ok := lib.assertion(text, l, hits); ok {
		return finding{Answer: ans, hits: hits}
	}
	if ans, ok := lib.flagFact(text, l, hits); ok {
		return finding{Answer: ans, hits: hits}
	}
	if lib.fits(text, hits) {
		return finding{Answer: lib.found(text, hits, l), hits: hits}
	}
	if whole != "" {
		if hits := lib.index.Search(whole, 4); lib.fits(whole, hits) {
			return finding{Answer: lib.found(text, hits, l), hits: hits}
		}
	}
	return finding{Answer: lib.decline(text, hits, l, unknown), hits: hits}
}

// ownTalk finds questions about this program.
var ownTalk = lazy.New(`(?i)megatron[-_ ]?ops|\b(?:this|the|slack) bot\b|\bbot\b|/megatron\b|\bmcp\b|job\.ya?ml|\bjob spec|\b(?:the|a|my|this|your|our|yaml) specification\b|\bspec field|failure class|\brule id|\brule [a-z0-9]+(?:[.-][a-z0-9]+)+|knowledge gaps|\bidempotency|\bthe llm\b|\bask\b.{0,20}\bwiki\b|\bwiki\b.{0,20}\bask\b|(?:in|of) the cli\b|机器人|作业规格|规格(?:字段|文件)|(?:故障|失败)类别|规则 ?id|幂等`)

// ownScore is how well a card about this program must fit.
const ownScore = 0.30

// about answers a question about this program. What is asked for secrets or to
// act stays declined.
func (a *Answerer) about(text string, l lang.Lang, why reason) (Answer, bool) {
	if a.own == nil || why != "" && why != foreign && why != noSuch || !ownTalk.MatchString(text) {
		return Answer{}, false
	}
	lib := a.own()
	hits := lib.index.Search(text, 1)
	if len(hits) == 0 || hits[0].Score < ownScore {
		return Answer{}, false
	}
	return lib.answer(hits[0].Doc, l), true
}

// answer is card i in language l.
func (lib *library) answer(i int, l lang.Lang) Answer {
	c := lib.cards[i]
	return Answer{
		Answer:  c.Text.In(l),
		Sources: []Source{{Skill: c.Skill, Section: c.Title.In(l), URL: c.URL}},
	}
}

// textRelated stands before the title of a second card.
var textRelated = lang.Text{EN: "Related: ", ZH: "相关:"}

// found answers with the best card; where a second one fits nearly as well, it
// follows under its title.
func (lib *library) found(question string, hits []index.Hit, l lang.Lang) Answer {
	ans := lib.answer(hits[0].Doc, l)
	confirms := index.Confirms(question)
	best := hits[0].Score
	shown := []string{lib.cards[hits[0].Doc].ID}
	ans.Unsure = best < weakScore
	for _, h := range hits[1:min(len(hits), 3)] {
		if best > certain || h.Score < relatedShare*best {
			break
		}
		// Not its denial: nobody said of it what is not so.
		c := lib.cards[lib.byID[lib.cards[h.Doc].ID]]
		if slices.Contains(shown, c.ID) {
			continue
		}
		// Nor a yes or a no to something else, below a statement that wants one.
		if said := c.Text.In(l); confirms && (denied.MatchString(said) || affirmed.MatchString(said)) {
			continue
		}
		more := "\n\n" + textRelated.In(l) + c.Title.In(l) + "\n" + c.Text.In(l)
		if len([]rune(ans.Answer))+len([]rune(more)) > maxWithRelated {
			continue
		}
		ans.Answer += more
		ans.Sources = append(ans.Sources, Source{Skill: c.Skill, Section: c.Title.In(l), URL: c.URL})
		shown = append(shown, c.ID)
	}
	return ans
}
