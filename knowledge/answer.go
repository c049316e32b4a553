// Package knowledge answers set-up questions about Megatron-LM on Slurm, in
// English and Chinese, with up to three passages from what the project states,
// best first, each under its title and with its source. It invents nothing:
// where nothing is near it says so, and what it is asked to do it leaves to the
// operations.
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
	// Answer is what a person is shown.
	Answer string `json:"answer"`
	// Refused reports that there are no passages: nothing is near, or the question
	// is a request that an operation carries out.
	Refused bool `json:"refused"`
	// Passages are what may answer the question, best first; below a computed
	// answer, what else comes near.
	Passages []Passage `json:"passages"`
	Sources  []Source  `json:"sources"`
	// Topics are the nearest titles, offered where there is nothing.
	Topics []string `json:"topics,omitempty"`
	// Unsure reports that nothing known fits the question well, so that it shows
	// a gap.
	Unsure bool `json:"-"`
	// Streamed reports that Answer is what went to the question's Stream.
	Streamed bool `json:"-"`
}

// A Passage is a text that may answer a question.
type Passage struct {
	Title string `json:"title"`
	Text  string `json:"text"`
	// URL is the page that states it; empty where none does.
	URL string `json:"url"`
	// Score tells how well it fits, from 0 to about 1.
	Score float64 `json:"score"`
	// Card is the address by which agents read it again; empty for a page.
	Card string `json:"card,omitempty"`

	skill string
	id    string
	local bool // from the site's pages, or added by an operator
}

// CardScheme begins the addresses of cards.
const CardScheme = "card://"

// A Source says where an answer comes from.
type Source struct {
	Skill   string `json:"skill"`
	Section string `json:"section"`
	URL     string `json:"url"`
}

// String names the source in one line.
func (s Source) String() string {
	name := strings.TrimPrefix(s.Skill+" › "+s.Section, " › ")
	return strings.TrimSpace(strings.TrimSuffix(name, " › ") + " " + s.URL)
}

// View draws the answer for a surface: each passage under its title. What stands
// around the passages is in their language, whatever the surface's.
func (a Answer) View(l lang.Lang) view.Doc {
	head, shown := a.Answer, false
	for _, said := range []lang.Lang{lang.EN, lang.ZH} {
		if before, _, ok := strings.Cut(a.Answer, textPassages.In(said)); ok && len(a.Passages) > 0 {
			head, l, shown = strings.TrimSpace(before), said, true
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
		d.Sections = drawn(head)
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
	d.Sections = append(d.Sections, view.Section{Text: textPassages.In(l)})
	for i, p := range a.Passages {
		parts := drawn(p.Text)
		parts[0].Heading = fmt.Sprintf("%d. %s", i+1, p.Title)
		d.Sections = append(d.Sections, parts...)
		if p.URL != "" {
			d.Sections = append(d.Sections, view.Section{Text: textSource.In(l) + textColon.In(l) + p.URL})
		}
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
	if len(all) == 0 {
		all = append(all, view.Section{})
	}
	return all
}

// Options of an Answerer. The zero value answers from what is built in.
type Options struct {
	// Site lists folders of Markdown pages (a wiki, runbooks) that hold what is
	// particular to the place. They go before what is built in.
	Site []string
	// Own gives the cards about this program, which are looked at where a question
	// names it; nil for none.
	Own func() []cards.Card
	// Added gives the cards that operators have added; nil for none. It is called
	// for each question, and what it returns is live at once.
	Added func() []cards.Card
	// Model is a language model that words the answers; nil for none.
	Model *Model
	// Embedder ranks together with the index; nil for the index alone.
	Embedder *Embedder
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// An Answerer answers Questions. It is safe for concurrent use.
type Answerer struct {
	own   func() *library.Library // nil where nothing is known of the program
	added *added
	site  *site
	model *Model
	near  *Embedder
	spent *budget
}

// New returns an Answerer. It reads nothing yet.
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

// Warm reads everything that answers come from, the site's pages included, so
// that the first question does not wait for it.
func (a *Answerer) Warm() {
	library.BuiltIn()
	if a.own != nil {
		a.own()
	}
	a.site.current()
	if a.near != nil {
		a.near.ofCards(context.Background(), library.BuiltIn().Cards)
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
		if q.Usual != "" && !worded.MatchString(q.Text) {
			q.Lang = q.Usual
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

// worded finds that a person speaks, and not only a program's message.
var worded = lazy.New(`(?i)\b(?:how|what|why|which|where|when|i|my|we|our|me|please|pls|help|fix|means?|should|can|does)\b|[?？]|\p{Han}`)

// maxText is how many characters of a question are read, half from its
// beginning and half from its end: a pasted log tells both there.
const maxText = 4000

func excerpt(text string) string {
	rs := []rune(text)
	if len(rs) <= maxText {
		return text
	}
	return string(rs[:maxText/2]) + "\n" + string(rs[len(rs)-maxText/2:])
}

// A finding is an answer without a model, and what a model is given.
type finding struct {
	Answer
	// closed says that no model may answer either: a request to act, or for a secret.
	closed bool
	// computed is the worked-out answer, if there is one.
	computed string
	// near are the passages that came nearest, also where the answer shows none.
	near []Passage
}

// newShare is how much the words of a question that goes on from another count
// beside both together.
const newShare = 0.4

// lead puts those passages first that the new words of a question ask for.
func (a *Answerer) lead(ctx context.Context, near []Passage, q Question) {
	alone := map[string]float64{}
	for _, p := range a.Search(ctx, q.Text, q.Lang, 4*nearestCount) {
		alone[p.id] = p.Score
	}
	for i := range near {
		near[i].Score = (near[i].Score + newShare*alone[near[i].id]) / (1 + newShare)
	}
	slices.SortStableFunc(near, func(a, b Passage) int { return cmp.Compare(b.Score, a.Score) })
}

// find answers without a model.
func (a *Answerer) find(ctx context.Context, q Question) finding {
	whole := cmp.Or(inContext(q.Text, q.History), q.Text)
	near, sure := a.nearest(ctx, whole, q.Lang)
	if whole != q.Text {
		a.lead(ctx, near, q)
	}
	if r, ok := pointed(q.Text); ok {
		return finding{Answer: point(r.to, q.Lang), closed: r.to == toOperation || r.to == toSecrets || r.to == toRules, near: near}
	}
	if r, ok := compute.Answer(whole, q.Lang); ok && r.Asked() {
		beside := near
		if !r.Setting || len(index.Terms(whole)) <= bareTerms {
			beside = nil
		}
		return finding{Answer: worked(r, beside, q.Lang), computed: r.Text, near: near}
	}
	if !sure || unknownName(q.Text) {
		return finding{Answer: nothing(near, q.Lang), near: near}
	}
	return finding{Answer: show(near, q.Lang), near: near}
}

var (
	textPassages = lang.Text{EN: "Passages that may answer this:", ZH: "以下内容可能回答这个问题："}
	textSource   = lang.Text{EN: "Source", ZH: "来源"}
	textColon    = lang.Text{EN: ": ", ZH: "："}
	textNothing  = lang.Text{
		EN: "I have nothing on this: I only answer questions about running Megatron-LM on Slurm.",
		ZH: "没有相关内容：我只回答在 Slurm 上运行 Megatron-LM 的问题。",
	}
	textTitles = lang.Text{EN: "Nearest titles: ", ZH: "最接近的标题："}
)

// Bounds of what is shown.
const (
	maxShown   = 3    // passages
	maxBeside  = 2    // passages beside a computed answer,
	sureBeside = 0.35 // if they score so much
	bareTerms  = 6    // a question with more words is more than its numbers
	maxAnswer  = 2400 // characters of all of them
	clearScore = 0.60 // with a best score above, and no second that is
	clearShare = 0.70 // so near to it, one passage is shown
	weakScore  = 0.35 // a best score below shows a gap
)

// show is the answer that consists of the best passages.
func show(near []Passage, l lang.Lang) Answer {
	n := min(len(near), maxShown)
	if near[0].Score >= clearScore && (n < 2 || near[1].Score < clearShare*near[0].Score) {
		n = 1
	}
	ans := Answer{Unsure: near[0].Score < weakScore}
	ans.add(near[:n], l)
	return ans
}

// worked is a computed answer, with what comes near below it.
func worked(r compute.Result, near []Passage, l lang.Lang) Answer {
	text := r.Text
	if l == lang.ZH {
		text = lang.FullWidth(text)
	}
	ans := Answer{Answer: text, Passages: []Passage{}, Sources: []Source{{Skill: r.Skill, Section: r.Section, URL: r.URL}}}
	n := 0
	for n < min(len(near), maxBeside) && near[n].Score >= sureBeside {
		n++
	}
	if n > 0 {
		ans.Answer += "\n\n"
		ans.add(near[:n], l)
	}
	return ans
}

// add shows passages, as many as there is room for.
func (a *Answer) add(list []Passage, l lang.Lang) {
	a.Answer += textPassages.In(l)
	for _, p := range list {
		text := fmt.Sprintf("\n\n%d. %s\n%s", len(a.Passages)+1, p.Title, p.Text)
		if p.URL != "" {
			text += "\n" + textSource.In(l) + textColon.In(l) + p.URL
		}
		if len(a.Passages) > 0 && len([]rune(a.Answer))+len([]rune(text)) > maxAnswer {
			continue
		}
		a.Answer += text
		a.Passages = append(a.Passages, p)
		a.Sources = append(a.Sources, Source{Skill: p.skill, Section: p.Title, URL: p.URL})
	}
}

// nothing says that nothing is near, and offers the nearest titles.
func nothing(near []Passage, l lang.Lang) Answer {
	ans := Answer{Refused: true, Unsure: true, Passages: []Passage{}, Sources: []Source{}, Answer: textNothing.In(l)}
	for _, p := range near[:min(len(near), maxShown)] {
		ans.Topics = append(ans.Topics, p.Title)
	}
	if len(ans.Topics) > 0 {
		ans.Answer += "\n" + textTitles.In(l) + strings.Join(ans.Topics, lang.Text{EN: "; ", ZH: "；"}.In(l))
	}
	return ans
}
