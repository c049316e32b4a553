// Package knowledge answers set-up questions about Megatron-LM on Slurm, in English
// and Chinese. An answer is a computed result or up to three passages, best first,
// each with title and source. Where no passage fits, the answer says so. A request
// to act is not carried out: the answer names the operation that can.
package knowledge

import (
	"cmp"
	"context"
	"fmt"
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
	"github.com/megatron-ops/megatron-ops/knowledge/library"
)

// A Question is what a person or an agent asks.
type Question struct {
	Text string
	// Lang is the language of the answer; empty means the language of Text.
	Lang lang.Lang
	// UserLang is the user's preferred language. It is used where Text is a pasted
	// message, whose language is not the user's.
	UserLang lang.Lang
	// History holds the earlier turns of the same thread, oldest first.
	History []Turn
	// User identifies the user for the model's budget; it may be empty.
	User string
	// Tools are read-only operations that a model may call for the user.
	Tools []Tool
	// Stream, if set, receives the answer sentence by sentence while a model writes
	// it. Each sentence is checked. The result of Ask is authoritative: it differs
	// where a later sentence fails the check.
	Stream func(piece string)
}

// A Turn is one earlier question of a thread and its answer.
type Turn struct{ Question, Answer string }

// An Answer is the answer to a Question.
type Answer struct {
	// Answer is the text for a person.
	Answer string `json:"answer"`
	// Refused reports that there are no passages: none fits, or the question is a
	// request that only an operation can fulfil.
	Refused bool `json:"refused"`
	// Passages are the passages that may answer the question, best first. With a
	// computed answer they are related passages.
	Passages []Passage `json:"passages"`
	Sources  []Source  `json:"sources"`
	// Topics are the titles of the nearest passages, offered where none fits.
	Topics []string `json:"topics,omitempty"`
	// Weak reports that no passage fits well: they are the nearest ones, and may be about
	// something else.
	Weak bool `json:"weak,omitempty"`
	// Unsure reports that the passages hardly fit. Such a question shows a gap in the
	// knowledge.
	Unsure bool `json:"-"`
	// Streamed reports that Answer has already been sent to the question's Stream.
	Streamed bool `json:"-"`
}

// A Passage is a text that may answer a question.
type Passage struct {
	Title string `json:"title"`
	Text  string `json:"text"`
	// URL is the page that states the text; empty for none.
	URL string `json:"url"`
	// Score says how well the passage fits, from 0 to about 1.
	Score float64 `json:"score"`
	// Card is the URI of the passage's card, for agents; empty for a page.
	Card string `json:"card,omitempty"`

	skill string
	id    string
	local bool // from the site's pages, or added by an operator
}

// CardScheme is the prefix of cards' URIs.
const CardScheme = "card://"

// A Source is the origin of an answer.
type Source struct {
	Skill   string `json:"skill"`
	Section string `json:"section"`
	URL     string `json:"url"`
}

// String returns the source in one line.
func (s Source) String() string {
	name := strings.TrimPrefix(s.Skill+" › "+s.Section, " › ")
	return strings.TrimSpace(strings.TrimSuffix(name, " › ") + " " + s.URL)
}

// View returns the answer as a document with a section for each passage. Headings
// are in the passages' language, even where l is the other language.
func (a Answer) View(l lang.Lang) view.Doc {
	head, shown := a.Answer, false
	if head != "" {
		l = lang.Of(head) // who asks in Chinese is answered in Chinese, whatever the menus' language
	}
	for _, used := range []lang.Lang{lang.EN, lang.ZH} {
		if before, _, ok := strings.Cut(a.Answer, a.lead().In(used)); ok && len(a.Passages) > 0 {
			head, l, shown = strings.TrimSpace(before), used, true
		}
	}
	var d view.Doc
	if a.Refused {
		d.Tone = view.Warn
	}
	sources := a.Sources
	if shown {
		sources = sources[:len(sources)-len(a.Passages)]
	}
	if head != "" {
		d.Sections = splitCode(head)
	}
	if len(sources) > 0 {
		s := view.Section{Heading: textSource.In(l)}
		for _, src := range sources {
			s.Items = append(s.Items, src.String())
		}
		d.Sections = append(d.Sections, s)
	}
	if !shown {
		return d
	}
	d.Sections = append(d.Sections, view.Section{Text: a.lead().In(l)})
	for i, p := range a.Passages {
		parts := splitCode(p.Text)
		parts[0].Heading = fmt.Sprintf("%d. %s", i+1, p.Title)
		d.Sections = append(d.Sections, parts...)
		if p.URL != "" {
			d.Sections = append(d.Sections, view.Section{Text: l.Named(textSource.In(l), p.URL)})
		}
	}
	return d
}

// splitCode splits a text into sections of prose and of fenced code, so that every
// surface shows a script as code.
func splitCode(text string) []view.Section {
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
	if len(all) == 0 {
		all = append(all, view.Section{})
	}
	return all
}

// Options of an Answerer. The zero value uses the built-in cards alone.
type Options struct {
	// Site lists folders of Markdown pages about the site, such as a wiki or runbooks.
	// They rank before the built-in cards.
	Site []string
	// Own returns the cards about this program, which are searched where a question
	// is about the program; nil for none.
	Own func() []cards.Card
	// Added returns the cards that operators have added; nil for none. It is called
	// for each question, so that changes are effective at once.
	Added func() []cards.Card
	// Model is a language model that writes the answers; nil for none.
	Model *Model
	// Embedder ranks passages together with the index; nil for the index alone.
	Embedder *Embedder
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// An Answerer answers Questions. It is safe for concurrent use.
type Answerer struct {
	own   func() *library.Library // nil without Options.Own
	added *added
	site  *site
	model *Model
	near  *Embedder
	spent *budget
}

// New returns an Answerer. It loads nothing before Warm or the first question.
func New(opts Options) *Answerer {
	now := opts.Now
	if now == nil {
		now = time.Now
	}
	a := &Answerer{
		site:  &site{folders: opts.Site, now: now},
		added: &added{list: opts.Added},
		model: opts.Model,
		near:  opts.Embedder,
		spent: &budget{now: now},
	}
	if opts.Own != nil {
		a.own = sync.OnceValue(func() *library.Library { return library.Make(opts.Own()) })
	}
	return a
}

// Warm loads everything that answers are made from, including the site's pages, so
// that the first question does not wait.
func (a *Answerer) Warm() {
	library.BuiltIn()
	if a.own != nil {
		a.own()
	}
	a.site.current()
	if a.near != nil {
		a.near.cardVectors(context.Background(), library.BuiltIn().Cards)
	}
}

// Ask answers one question. It returns an error only when ctx is done.
func (a *Answerer) Ask(ctx context.Context, q Question) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	q.Text = excerpt(strings.TrimSpace(q.Text))
	if q.Lang == "" {
		q.Lang = lang.Of(q.Text)
		if q.UserLang != "" && !askedByPerson.MatchString(q.Text) {
			q.Lang = q.UserLang
		}
	}
	f := a.find(ctx, q)
	if a.model != nil && !f.closed {
		if ans, ok := a.modelAnswer(ctx, q, f); ok {
			return ans, nil
		}
	}
	return f.Answer, ctx.Err()
}

// askedByPerson matches texts with words of a person, not only a program's message.
var askedByPerson = lazy.New(`(?i)\b(?:how|what|why|which|where|when|i|my|we|our|me|please|pls|help|fix|means?|should|can|does)\b|[?？]|\p{Han}`)

// maxText is the number of characters of a question that are read: half from the
// beginning and half from the end, where a pasted log is most informative.
const maxText = 4000

func excerpt(text string) string {
	rs := []rune(text)
	if len(rs) <= maxText {
		return text
	}
	return string(rs[:maxText/2]) + "\n" + string(rs[len(rs)-maxText/2:])
}

// A finding is the answer without a model, and the material for a model.
type finding struct {
	Answer
	// closed reports that a model may not answer either: the text is a request to
	// act, for a secret, or against the rules.
	closed bool
	// computed is the computed answer; empty for none.
	computed string
	// near are the nearest passages, even where the answer shows none.
	near []Passage
}

// newWordsShare is the weight of a follow-up question's own words. The whole thread
// has the weight 1.
const newWordsShare = 0.4

// preferNewWords reorders passages in favour of those that fit the follow-up
// question's own words.
func (a *Answerer) preferNewWords(ctx context.Context, near []Passage, q Question) {
	alone := map[string]float64{}
	for _, p := range a.Search(ctx, q.Text, q.Lang, 4*nearestCount) {
		alone[p.id] = p.Score
	}
	for i := range near {
		near[i].Score = (near[i].Score + newWordsShare*alone[near[i].id]) / (1 + newWordsShare)
	}
	slices.SortStableFunc(near, func(a, b Passage) int { return cmp.Compare(b.Score, a.Score) })
}

// find answers a question without a model. A misspelt name is read as the name that is
// meant; the answer says so first.
func (a *Answerer) find(ctx context.Context, q Question) finding {
	unknown, corrected := respelt(q.Text)
	q.Text = corrected
	words, corrected := a.respeltWords(q.Text)
	f := finding{Answer: Answer{Refused: true, Unsure: true}}
	if len(words) > 0 {
		f = a.findAs(ctx, Question{Text: corrected, Lang: q.Lang, History: q.History})
	}
	if f.Refused && f.Unsure {
		words, f = nil, a.findAs(ctx, q) // what is no question of ours is not made one
	}
	unknown = append(unknown, words...)
	switch said := hint(unknown, !f.Refused, q.Lang); {
	case said == "":
	case !f.Refused:
		f.Answer.Answer = said + "\n\n" + f.Answer.Answer
	case f.Unsure:
		f.Answer.Answer = strings.Replace(f.Answer.Answer, textNothing.In(q.Lang), said, 1)
	}
	return f
}

// findAs answers a question as it is spelt.
func (a *Answerer) findAs(ctx context.Context, q Question) finding {
	whole := cmp.Or(inContext(q.Text, q.History), q.Text)
	near, sure := a.nearest(ctx, whole, q.Lang)
	if whole != q.Text {
		a.preferNewWords(ctx, near, q)
	}
	if r, ok := findRedirect(q.Text); ok && !r.answered(q.Text, near) {
		return finding{Answer: redirect(r.to, q.Lang), closed: r.to == toOperation || r.to == toSecrets || r.to == toRules, near: near}
	}
	if r, ok := compute.Answer(whole, q.Lang); ok && r.Asked() {
		related := near
		if !r.Setting || len(index.Terms(whole)) <= bareTerms {
			related = nil
		}
		return finding{Answer: computedAnswer(r, related, q.Lang), computed: r.Text, near: near}
	}
	named := aboutNames(q.Text, near)
	if !sure || len(named) == 0 || len(unknownNames(q.Text)) > 0 {
		return finding{Answer: declined(near, q.Lang), near: near}
	}
	return finding{Answer: passagesAnswer(named, q.Lang), near: near}
}

var (
	textPassages = lang.Text{EN: "Passages that may answer this:", ZH: "以下内容可能回答这个问题："}
	textNearest  = lang.Text{
		EN: "None of these is a close match; check first that one is about your case:",
		ZH: "没有完全对应的内容；以下最接近，请先核对是否符合你的情况：",
	}
	textSource  = lang.Text{EN: "Source", ZH: "来源"}
	textNothing = lang.Text{
		EN: "I have nothing on this: I only answer questions about running Megatron-LM on Slurm.",
		ZH: "没有相关内容：我只回答在 Slurm 上运行 Megatron-LM 的问题。",
	}
	textTitles = lang.Text{EN: "Nearest titles: ", ZH: "最接近的标题："}
)

// Limits of an answer.
const (
	maxShown   = 3    // passages
	maxRelated = 2    // passages below a computed answer
	minRelated = 0.35 // score of a passage below a computed answer
	bareTerms  = 6    // a question with more terms asks for more than a number or a name
	maxAnswer  = 2400 // characters of all passages

	// One passage is shown alone where its score is at least clearScore and the
	// second's is less than clearShare of it.
	clearScore = 0.60
	clearShare = 0.70

	fitScore    = 0.50 // with a lower best score the first passage answers every fourth question only
	unsureScore = 0.35 // a lower best score shows a gap in the knowledge
)

func passagesAnswer(near []Passage, l lang.Lang) Answer {
	n := min(len(near), maxShown)
	if near[0].Score >= clearScore && (n < 2 || near[1].Score < clearShare*near[0].Score) {
		n = 1
	}
	best := near[0]
	ans := Answer{Unsure: best.Score < unsureScore, Weak: best.Score < fitScore && best.Card != "" && !best.local}
	ans.add(near[:n], l)
	return ans
}

// computedAnswer returns a computed answer with related passages below it.
func computedAnswer(r compute.Result, near []Passage, l lang.Lang) Answer {
	text := r.Text
	if l == lang.ZH {
		text = lang.FullWidth(text)
	}
	ans := Answer{Answer: text, Passages: []Passage{}, Sources: []Source{{Skill: r.Skill, Section: r.Section, URL: r.URL}}}
	n := 0
	for n < min(len(near), maxRelated) && near[n].Score >= minRelated {
		n++
	}
	if n > 0 {
		ans.Answer += "\n\n"
		ans.add(near[:n], l)
	}
	return ans
}

// lead returns the text that introduces the passages.
func (a Answer) lead() lang.Text {
	if a.Weak {
		return textNearest
	}
	return textPassages
}

// add appends the first passage, and the others while maxAnswer allows.
func (a *Answer) add(list []Passage, l lang.Lang) {
	a.Answer += a.lead().In(l)
	for _, p := range list {
		text := fmt.Sprintf("\n\n%d. %s\n%s", len(a.Passages)+1, p.Title, p.Text)
		if p.URL != "" {
			text += "\n" + l.Named(textSource.In(l), p.URL)
		}
		if len(a.Passages) > 0 && len([]rune(a.Answer))+len([]rune(text)) > maxAnswer {
			continue
		}
		a.Answer += text
		a.Passages = append(a.Passages, p)
		a.Sources = append(a.Sources, Source{Skill: p.skill, Section: p.Title, URL: p.URL})
	}
}

// declined returns the answer for a question without a fitting passage. It offers the
// nearest titles.
func declined(near []Passage, l lang.Lang) Answer {
	ans := Answer{Refused: true, Unsure: true, Passages: []Passage{}, Sources: []Source{}, Answer: textNothing.In(l)}
	for _, p := range near[:min(len(near), maxShown)] {
		ans.Topics = append(ans.Topics, p.Title)
	}
	if len(ans.Topics) > 0 {
		ans.Answer += "\n" + textTitles.In(l) + strings.Join(ans.Topics, lang.Text{EN: "; ", ZH: "；"}.In(l))
	}
	return ans
}
