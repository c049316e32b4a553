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
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// When the best card answers a question. Its score must be at least minScore, and the
// score of the nearest off-topic question may be at most offTopicShare of it. Stricter
// limits (NotField) apply to a question without a term of the field.
const (
	minScore              = 0.20
	offTopicShare         = 1
	offTopicShareOurs     = 1.7 // for a question that names one of our programs
	minScoreNotField      = 0.30
	offTopicShareNotField = 0.70
	unknownWordsRaise     = 0.25 // added to minScore in proportion to words that no card has
	foreignMost           = 0.30 // the share of words that only off-topic questions have
)

// nearestCount is the number of passages to choose an answer from.
const nearestCount = 8

// In a question with several clauses, one clause may ask and the others describe the
// situation. So each clause with at least clauseLeast terms is also searched alone,
// with the weight clauseShare. The whole question has the weight 1.
const (
	clauseLeast = 4
	clauseShare = 0.2
)

// rowShare is the factor on the score of a table row, which explains a name, where a
// question contains more than the name.
const rowShare = 0.8

// Some cards are meant for certain questions only. For other questions their score has
// the factor narrowShare, because cards on the subject in general answer them better.
const narrowShare = 0.85

// A question that quotes a message has at least the share quotedLeast of its terms, by
// weight, and the share quotedWordsLeast of its words without options and variables. Who
// names the variables that a message mentions does not quote it.
const (
	quotedLeast      = 0.6
	quotedWordsLeast = 0.5
)

// narrow lists cards by their skill and title, and the questions that they are meant for.
var narrow = []struct{ card, question *lazy.Pattern }{
	{lazy.New(`^ci-test-system `), lazy.New(`(?i)\bci\b|test|pipeline|git(?:hub|lab)|\bpr\b|pull request|runner|golden|workflow|cherry|merge|recipe|测试|流水线|合并`)},
	{lazy.New(` .*\bDocker\b`), lazy.New(`(?i)docker|contain|image|mount|template|容器|镜像|挂载|模板`)},
}

// quotable matches the ids of the rows of Slurm's messages, whose titles are the messages.
var quotable = lazy.New(`^slurm-message\.`)

// meantFor reports whether a card is meant for a question with these keys of terms. A card
// about a message is meant for a question that quotes it.
func meantFor(c cards.Card, question string, keys map[string]bool) bool {
	message, ok := library.Message(c)
	if quotable.MatchString(c.ID) {
		message, ok = c.Title.EN, true
	}
	if ok {
		terms := index.Terms(message)
		return index.Shared(terms, keys) >= quotedLeast && index.Shared(index.Words(terms), keys) >= quotedWordsLeast
	}
	for _, n := range narrow {
		if n.card.MatchString(c.Skill+" "+c.Title.EN) && !n.question.MatchString(question) {
			return false
		}
	}
	return true
}

// Factors that rank a site's pages and the operators' cards before the built-in cards.
const (
	siteShare  = 1.25
	addedShare = 1.15
)

// jobNumber matches the number behind the word job. It says nothing of what is asked about its job, and
// is a rare word, which the example of one card would win by.
var jobNumber = lazy.New(`(?i)(\bjob(?: ?id)?s?[ :#]+|(?:作业号?|任务)[ :#]*)\d{3,}(?:[_.+]\d+)*`)

func withoutJobNumbers(question string) string { return jobNumber.ReplaceAllString(question, "$1") }

// Search returns up to n passages, those nearest to a question, best first, whatever
// their scores.
func (a *Answerer) Search(ctx context.Context, question string, l lang.Lang, n int) []Passage {
	question = withoutJobNumbers(excerpt(strings.TrimSpace(question)))
	if l == "" {
		l = lang.Of(question)
	}
	near, _ := a.rank(ctx, question, l, n)
	return near
}

// nearest returns the passages to choose from, and whether the best fits well enough
// to be shown.
func (a *Answerer) nearest(ctx context.Context, question string, l lang.Lang) (near []Passage, sure bool) {
	question = withoutJobNumbers(question)
	near, other := a.rank(ctx, question, l, 2*nearestCount)
	asked, _ := namesIn(question)
	near = distinct(near, nearestCount, asked)
	if len(near) == 0 {
		return near, false
	}
	least, share := minScoreNotField, offTopicShareNotField
	switch {
	case near[0].local:
		least, share = minScore, 1 // the site's own text is on topic, whatever its subject
	case near[0].Score >= clearScore || library.BuiltIn().HasFieldTerm(question):
		least, share = minScore, offTopicShare
	}
	ours := namesOurs(question)
	if ours {
		share = max(share, offTopicShareOurs)
	}
	if built := library.BuiltIn(); !near[0].local {
		least += unknownWordsRaise * built.UnknownShare(question)
		// The library does not have the words of the program's own passages, which have no card.
		if near[0].Card != "" && built.ForeignShare(question) >= foreignMost && !ours {
			return near, false
		}
	}
	return near, near[0].Score >= least && other <= share*near[0].Score
}

// sameShare is the share of a passage's terms, by weight, above which an earlier
// passage with the same terms makes it redundant.
const sameShare = 0.6

// distinct returns the first n passages without redundant ones. The site's own
// passages and those that have an asked name as their title are never redundant. Of the
// passages about Megatron's error messages only the first is kept, because they are
// worded alike.
func distinct(near []Passage, n int, asked []string) []Passage {
	var list []Passage
	var kept []map[string]bool // the terms of each passage in list
	checks := 0
	for _, p := range near {
		if len(list) == n {
			break
		}
		if strings.HasPrefix(p.id, library.MessagePrefix) {
			if checks++; checks > 1 {
				continue
			}
		}
		terms := p.terms()
		own := p.local || slices.Contains(asked, joined(p.Title))
		if !own && slices.ContainsFunc(kept, func(earlier map[string]bool) bool { return index.Shared(terms, earlier) > sameShare }) {
			continue
		}
		list, kept = append(list, p), append(kept, index.Keys(terms))
	}
	return list
}

// builtInTerms caches the terms of built-in passages by text. Without the cache,
// finding the terms would be the slowest part of answering.
var builtInTerms sync.Map

func (p Passage) terms() []index.Term {
	if p.local || p.Card == "" {
		return index.Terms(p.Text) // such texts are few and may change
	}
	if known, ok := builtInTerms.Load(p.Text); ok {
		return known.([]index.Term) //nolint:forcetypeassert // nothing else is stored
	}
	terms := index.Terms(p.Text)
	builtInTerms.Store(p.Text, terms)
	return terms
}

// rank searches all libraries together. other is the score of the nearest off-topic
// question.
func (a *Answerer) rank(ctx context.Context, question string, l lang.Lang, n int) (near []Passage, other float64) {
	built := library.BuiltIn()
	more, keys := saysMore(question), index.Keys(index.Terms(question))
	for _, h := range nearestHits(built, question, 2*n) {
		if built.OffTopic(h) {
			other = max(other, h.Score)
			continue
		}
		p := passage(built.Cards[h.Doc], l, h.Score)
		if more && tableRow.MatchString(p.id) {
			p.Score *= rowShare
		}
		if !meantFor(built.Cards[h.Doc], question, keys) {
			p.Score *= narrowShare
		}
		near = append(near, p)
	}
	if a.own != nil && aboutProgram.MatchString(question) {
		for _, p := range passagesOf(a.own(), question, l, n, 1) {
			p.Card = "" // made from one of the program's tables
			near = append(near, p)
		}
	}
	for _, p := range passagesOf(a.added.current(), question, l, n, addedShare) {
		p.local = true
		near = append(near, p)
	}
	for _, p := range passagesOf(a.site.current(), question, l, n, siteShare) {
		p.local, p.Card = true, "" // other machines may not have the page
		p.Title = textSite.With(filepath.Base(p.URL), p.Title).In(l)
		near = append(near, p)
	}
	slices.SortStableFunc(near, func(a, b Passage) int { return cmp.Compare(b.Score, a.Score) })
	if a.near != nil {
		near = a.near.rerank(ctx, question, near, l)
	}
	if p, ok := flagPassage(question, l, near); ok {
		if i := slices.IndexFunc(near, func(row Passage) bool { return row.id == p.id }); i >= 0 {
			p.Text, p.URL, p.Card = near[i].Text+"\n"+p.Text, near[i].URL, near[i].Card
			near = slices.Delete(near, i, i+1)
		}
		near, other = append([]Passage{p}, near...), 0
	}
	return near[:min(len(near), n)], other
}

// saysMore reports whether a question contains more than a name. In the result of
// inContext only the newest question counts.
func saysMore(question string) bool {
	newest, _, _ := strings.Cut(question, turnEnd)
	return len(index.Terms(newest)) > bareTerms
}

// tableRow matches the ids of cards that are rows of a table.
var tableRow = lazy.New(`^(?:conf\.|field\.|flag\.--|option\.|variable\.)`)

// clauseEnd separates the clauses of a question.
var clauseEnd = lazy.New(`[.?!;,)]\s|[。？！；，（）\n]|\s\(|\s-+>?\s`)

// nearestHits returns a library's n nearest hits for a question, best first.
func nearestHits(lib *library.Library, question string, n int) []index.Hit {
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

var aboutProgram = lazy.New(`(?i)megatron[-_ ]?ops|\b(?:this|the|slack) bot\b|/megatron\b|\bmcp\b|job\.ya?ml|\bspecification\b` +
	`|failure class|\brule id|\brule [a-z0-9]+(?:[.-][a-z0-9]+)+|knowledge gaps|\bidempotency` +
	`|机器人|作业规格|规格(?:字段|文件)|(?:故障|失败)类别|规则 ?id|幂等`)

// passagesOf returns a library's n nearest passages. lib may be nil. share is a factor
// on the scores.
func passagesOf(lib *library.Library, question string, l lang.Lang, n int, share float64) []Passage {
	if lib == nil {
		return nil
	}
	var list []Passage
	for _, h := range nearestHits(lib, question, n) {
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

// Card returns the built-in or added card with the id.
func (a *Answerer) Card(id string) (cards.Card, bool) {
	if lib := a.added.current(); lib != nil {
		if c, ok := lib.Find(id); ok {
			return c, true
		}
	}
	return library.BuiltIn().Find(id)
}

// added holds the cards that operators have added, indexed again when they change.
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
	optionPattern  = lazy.New(`(?:^|[^\w-])(--[a-zA-Z][\w-]+)`)
	asksForDefault = lazy.New(`(?i)\bdefaults?\b|\bchoices?\b|\btype\b|\bvalues?\b|默认|取值|可选|类型`)
)

// maxRules bounds the text about a flag: no further rule is named beyond it.
const maxRules = 400

// flagPassage returns a passage from the flag table where a question names exactly
// one Megatron flag, and asks for its default or choices, or no shown passage mentions
// the flag.
func flagPassage(question string, l lang.Lang, near []Passage) (Passage, bool) {
	named := optionPattern.FindAllStringSubmatch(question, -1)
	if len(named) != 1 || strings.Contains(question, ":") {
		return Passage{}, false
	}
	f, ok := megatron.LookupFlag(strings.ReplaceAll(strings.ToLower(named[0][1]), "_", "-"))
	if !ok {
		return Passage{}, false
	}
	mentioned := slices.ContainsFunc(near[:min(len(near), maxShown)], func(p Passage) bool { return strings.Contains(p.Text, f.Name) })
	wanted := asksForDefault.MatchString(question)
	if mentioned && !wanted {
		return Passage{}, false
	}
	kind := lang.Text{EN: "takes a value of type " + string(f.Type), ZH: "取值类型 " + string(f.Type)}
	switch {
	case f.Type == megatron.Switch || f.Action != megatron.Store:
		kind = lang.Text{EN: "a switch without a value", ZH: "开关，不带值"}
	case len(f.Choices) > 0:
		kind = lang.Text{EN: "one of " + strings.Join(f.Choices, ", "), ZH: "可选值 " + strings.Join(f.Choices, "、")}
	}
	also := lang.Text{}
	if len(f.Aliases) > 0 {
		also = lang.Text{EN: "; also %s", ZH: "；别名 %s"}.With(strings.Join(f.Aliases, ", "))
	}
	about, ok := rules.About(f.Name)
	if ok {
		about = lang.Text{EN: " What it does: %s.", ZH: "作用：%s。"}.With(about)
	}
	for _, r := range rules.Table() {
		if slices.Contains(r.Flags, f.Name) && len(about.EN) < maxRules {
			about = lang.Text{EN: "%s Rule %s: %s.", ZH: "%s规则 %s：%s。"}.With(about, r.ID, r.Requirement)
		}
	}
	if since := megatron.FlagHistory(f.Name)[0].Since; since != megatron.Releases()[0] {
		about = lang.Text{EN: " Since release %s.%s", ZH: "自 %s 版起有。%s"}.With(since.String(), about)
	}
	text := lang.Text{
		EN: "`%s`: a flag of Megatron-LM, %s; default %s; group %s%s.%s `megatron-ops plan` checks it together with your other arguments.",
		ZH: "`%s`：Megatron-LM 的参数，%s；默认 %s；分组 %s%s。%s`megatron-ops plan` 会结合其他参数检查。",
	}.With(f.Name, kind, library.Default(f), f.Group, also, about)
	score := 1.0
	switch {
	case len(near) > 0 && onlyNames(question):
		score = max(score, near[0].Score)
	case len(near) > 0: // the question is about more than the flag: rank below the nearest passage
		score = max(minScore, near[0].Score)
	}
	return Passage{Title: f.Name, Text: text.In(l), Score: score, skill: "parallel-layout", id: "flag." + f.Name}, true
}
