package knowledge

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
	"github.com/megatron-ops/megatron-ops/knowledge/library"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// Bounds of what is near. The neighbours of a question tell best whether it is
// of the field: a card has to be so much nearer than every question about
// something else, the more where the question holds no word of the field.
const (
	minScore          = 0.20
	elsewhere         = 0.85 // the most that a question about something else may have of the best card's score
	minScoreNotField  = 0.30
	elsewhereNotField = 0.70
	strangeRaise      = 0.25 // for a question of nothing but words that no card holds
	elsewhereClear    = 0.95 // where the best card fits so well that it is clear by itself
)

// nearestCount is how many passages are looked at.
const nearestCount = 8

// Of a question with several clauses one may hold what is wanted, and the others its
// setting: each that has so many terms is looked for by itself as well, and counts so
// much beside the whole.
const (
	clauseLeast = 4
	clauseShare = 0.2
)

// rowShare is how much a row of a table counts, which says what a name is, where a
// question says more than the name.
const rowShare = 0.8

// Shares by which a library's passages go before the built-in ones: what a site
// says of itself, and what its operators have added.
const (
	siteShare  = 1.25
	addedShare = 1.15
)

// Search returns the passages nearest to a question, best first and at most n of
// them, whatever their scores.
func (a *Answerer) Search(ctx context.Context, question string, l lang.Lang, n int) []Passage {
	question = excerpt(strings.TrimSpace(question))
	if l == "" {
		l = lang.Of(question)
	}
	near, _ := a.rank(ctx, question, l, n)
	return near
}

// nearest are the passages to choose from, and whether any is near enough to be
// shown.
func (a *Answerer) nearest(ctx context.Context, question string, l lang.Lang) (near []Passage, sure bool) {
	near, other := a.rank(ctx, question, l, 2*nearestCount)
	near = distinct(near, nearestCount)
	if len(near) == 0 {
		return near, false
	}
	least, share := minScoreNotField, elsewhereNotField
	switch {
	case near[0].local:
		least, share = minScore, 1 // whatever it is about, somebody here wrote it down
	case near[0].Score >= clearScore:
		least, share = minScore, elsewhereClear
	case library.BuiltIn().Field(question):
		least, share = minScore, elsewhere
	}
	if !near[0].local {
		least += strangeRaise * library.BuiltIn().Strange(question)
	}
	return near, near[0].Score >= least && other <= share*near[0].Score
}

// sameShare is how much of a passage's words, by weight, one before it holds that
// says the same.
const sameShare = 0.6

// distinct are the first n passages that say something that none before them
// says. What the site says of itself always counts. What Megatron prints where it
// stops is worded so alike that only the nearest may be meant.
func distinct(near []Passage, n int) []Passage {
	var list []Passage
	var held []map[string]bool // the words of each
	checks := 0
	for _, p := range near {
		if len(list) == n {
			break
		}
		if strings.HasPrefix(p.id, library.Checks) {
			if checks++; checks > 1 {
				continue
			}
		}
		words, whole := map[string]bool{}, 0.0
		terms := p.terms()
		for _, t := range terms {
			words[t.Key] = true
			whole += t.Weight
		}
		if !p.local && slices.ContainsFunc(held, func(before map[string]bool) bool {
			shared := 0.0
			for _, t := range terms {
				if before[t.Key] {
					shared += t.Weight
				}
			}
			return shared > sameShare*whole
		}) {
			continue
		}
		list, held = append(list, p), append(held, words)
	}
	return list
}

// builtInTerms are the terms of passages that the program carries, by text: of all
// that is done for a question, to find them would take the longest.
var builtInTerms sync.Map

func (p Passage) terms() []index.Term {
	if p.local || p.Card == "" {
		return index.Terms(p.Text) // it may change, and is one of few
	}
	if known, ok := builtInTerms.Load(p.Text); ok {
		return known.([]index.Term) //nolint:forcetypeassert // nothing else is stored
	}
	terms := index.Terms(p.Text)
	builtInTerms.Store(p.Text, terms)
	return terms
}

// rank searches all libraries together. other is the score of the nearest
// question about something else.
func (a *Answerer) rank(ctx context.Context, question string, l lang.Lang, n int) (near []Passage, other float64) {
	built := library.BuiltIn()
	more := saysMore(question)
	for _, h := range hits(built, question, 2*n) {
		if built.OffTopic(h) {
			other = max(other, h.Score)
			continue
		}
		p := passage(built.Cards[h.Doc], l, h.Score)
		if more && tableRow.MatchString(p.id) {
			p.Score *= rowShare
		}
		near = append(near, p)
	}
	if a.own != nil && ownTalk.MatchString(question) {
		for _, p := range found(a.own(), question, l, n, 1) {
			p.Card = "" // a row of a table of ours
			near = append(near, p)
		}
	}
	for _, p := range found(a.added.current(), question, l, n, addedShare) {
		p.local = true
		near = append(near, p)
	}
	for _, p := range found(a.site.current(), question, l, n, siteShare) {
		p.local, p.Card = true, "" // a page that may lie on this machine alone
		p.Title = textSite.With(filepath.Base(p.URL), p.Title).In(l)
		near = append(near, p)
	}
	slices.SortStableFunc(near, func(a, b Passage) int { return cmp.Compare(b.Score, a.Score) })
	if a.near != nil {
		near = a.near.rerank(ctx, question, near, l)
	}
	if p, ok := flagPassage(question, l, near); ok {
		near, other = append([]Passage{p}, near...), 0
	}
	return near[:min(len(near), n)], other
}

// saysMore reports whether a question, or the newest of those that it goes on from,
// says more than a name.
func saysMore(question string) bool {
	newest, _, _ := strings.Cut(question, turnEnd)
	return len(index.Terms(newest)) > bareTerms
}

// tableRow finds the id of a card that is one row of a table.
var tableRow = lazy.New(`^(?:conf\.|field\.|flag\.--|option\.|variable\.)`)

// clauseEnd parts the clauses of a question.
var clauseEnd = lazy.New(`[.?!;,)]\s|[。？！；，（）\n]|\s\(|\s-+>?\s`)

// hits are what is nearest to a question in a library, best first.
func hits(lib *library.Library, question string, n int) []index.Hit {
	list := lib.Index.Search(question, 2*n)
	clauses := strings.Split(clauseEnd.ReplaceAllString(question, "\n"), "\n")
	if len(clauses) == 1 || strings.Contains(question, turnEnd) {
		return list[:min(len(list), n)]
	}
	best := map[int]float64{} // of the clauses, by Doc
	for _, c := range clauses {
		if len(index.Terms(c)) < clauseLeast {
			continue
		}
		for _, h := range lib.Index.Search(c, 2*n) {
			best[h.Doc] = max(best[h.Doc], h.Score)
		}
	}
	if len(best) > 0 {
		for i, h := range list {
			list[i].Score = (h.Score + clauseShare*best[h.Doc]) / (1 + clauseShare)
		}
		slices.SortStableFunc(list, func(a, b index.Hit) int { return cmp.Compare(b.Score, a.Score) })
	}
	return list[:min(len(list), n)]
}

// textSite is the title of a passage of the site's own pages.
var textSite = lang.Text{EN: "Your site's page %s › %s", ZH: "本站点的页面 %s › %s"}

// ownTalk finds that a question is about this program.
var ownTalk = lazy.New(`(?i)megatron[-_ ]?ops|\b(?:this|the|slack) bot\b|/megatron\b|\bmcp\b|job\.ya?ml|\bspecification\b` +
	`|failure class|\brule id|\brule [a-z0-9]+(?:[.-][a-z0-9]+)+|knowledge gaps|\bidempotency` +
	`|机器人|作业规格|规格(?:字段|文件)|(?:故障|失败)类别|规则 ?id|幂等`)

// found are the nearest passages of one library, which may be nil.
func found(lib *library.Library, question string, l lang.Lang, n int, share float64) []Passage {
	if lib == nil {
		return nil
	}
	var list []Passage
	for _, h := range hits(lib, question, n) {
		list = append(list, passage(lib.Cards[h.Doc], l, share*h.Score))
	}
	return list
}

func passage(c cards.Card, l lang.Lang, score float64) Passage {
	p := Passage{Title: c.Title.In(l), Text: c.Text.In(l), URL: c.URL, Score: score, Card: CardScheme + c.ID, skill: c.Skill, id: c.ID}
	if l == lang.ZH {
		p.Title, p.Text = lang.FullWidth(p.Title), lang.FullWidth(p.Text)
	}
	return p
}

// Card is the card of an id, of those built in and of those that operators have
// added.
func (a *Answerer) Card(id string) (cards.Card, bool) {
	if lib := a.added.current(); lib != nil {
		if c, ok := lib.Find(id); ok {
			return c, true
		}
	}
	return library.BuiltIn().Find(id)
}

// added are the cards that operators have added, indexed again when they change.
type added struct {
	list func() []cards.Card

	mu    sync.Mutex
	stamp string
	lib   *library.Library
}

func (a *added) current() *library.Library {
	if a.list == nil {
		return nil
	}
	list := a.list()
	var stamp strings.Builder
	for _, c := range list {
		stamp.WriteString(c.ID + "\x00" + c.Title.EN + c.Text.EN + c.Text.ZH + strings.Join(c.Asks, "|") + "\x00")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if stamp.String() != a.stamp {
		a.stamp, a.lib = stamp.String(), nil
		if len(list) > 0 {
			a.lib = library.Make(list)
		}
	}
	return a.lib
}

var (
	optionForm  = lazy.New(`(?:^|[^\w-])(--[a-zA-Z][\w-]+)`)
	defaultTalk = lazy.New(`(?i)\bdefaults?\b|\bchoices?\b|\btype\b|\bvalues?\b|默认|取值|可选|类型`)
)

// flagPassage tells of the one Megatron flag that a question names, from the
// table of flags: where its default or choices are asked for, or no passage
// speaks of it.
func flagPassage(question string, l lang.Lang, near []Passage) (Passage, bool) {
	named := optionForm.FindAllStringSubmatch(question, -1)
	if len(named) != 1 || strings.Contains(question, ":") {
		return Passage{}, false
	}
	f, ok := megatron.LookupFlag(strings.ReplaceAll(strings.ToLower(named[0][1]), "_", "-"))
	if !ok {
		return Passage{}, false
	}
	told := slices.ContainsFunc(near[:min(len(near), maxShown)], func(p Passage) bool { return strings.Contains(p.Text, f.Name) })
	wanted := defaultTalk.MatchString(question)
	if told && !wanted {
		return Passage{}, false
	}
	kind := lang.Text{EN: "takes a value of type " + string(f.Type), ZH: "取值类型 " + string(f.Type)}
	switch {
	case f.Type == megatron.Switch || f.Action != megatron.Store:
		kind = lang.Text{EN: "a switch without a value", ZH: "开关，不带值"}
	case len(f.Choices) > 0:
		kind = lang.Text{EN: "one of " + strings.Join(f.Choices, ", "), ZH: "可选值 " + strings.Join(f.Choices, "、")}
	}
	def := lang.Same(f.Default)
	if f.Default == "" {
		def = lang.Text{EN: "none", ZH: "无"}
	}
	also := lang.Text{}
	if len(f.Aliases) > 0 {
		also = lang.Text{EN: "; also %s", ZH: "；别名 %s"}.With(strings.Join(f.Aliases, ", "))
	}
	text := lang.Text{
		EN: "`%s`: a flag of Megatron-LM, %s; default %s; group %s%s. `megatron-ops plan` checks it together with your other arguments.",
		ZH: "`%s`：Megatron-LM 的参数，%s；默认 %s；分组 %s%s。`megatron-ops plan` 会结合其他参数检查。",
	}.With(f.Name, kind, def, f.Group, also)
	score := 1.0
	switch {
	case len(near) > 0 && wanted && !saysMore(question):
		score = max(score, near[0].Score)
	case len(near) > 0: // the question is about more than the flag: what is near stands beside
		score = max(minScore, near[0].Score)
	}
	return Passage{Title: f.Name, Text: text.In(l), Score: score, skill: "parallel-layout", id: "flag." + f.Name}, true
}
