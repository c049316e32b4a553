package knowledge

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// People tell why they ask: the kids have to be fetched, the boss is waiting, the
// wifi is gone. Such a clause is no part of the question, and its words bring it
// near to those about something else. Where one speaks of life, the question is
// looked at once more without it.

// life finds what people tell of themselves: family, meals, journeys, health,
// home, leisure, those who press them.
var life = lazy.New(`(?i)\b(?:wife|husband|kids?|son|daughter|bab(?:y|ies)|toddler|mom|mum|mommy|dad|daddy|(?:grand)?(?:mother|father)s?|grand(?:ma|pa)|granny|in[- ]laws?|aunt|uncle|cousin|sister|brother|family|my (?:child|children|parents?)|girlfriend|boyfriend|fianc[eé]e?|roommate|flatmate|room mate|neighbou?rs?|landlord|babysit\w*|nanny|kindergarten|school run|` +
	`wedding|maternity|paternity|mov(?:e|ing) (?:house|flat)|birthday|anniversary|funeral|christmas|holidays?|vacation|honeymoon|party|marriage|married|divorce\w*|date night|` +
	`dinner|lunch|breakfast|supper|cook(?:ing)?|baking|soup|pizza|noodles|coffee|espressos?|drinks?|hangover|tea|beer|wine|pub|restaurant|canteen|hungry|kitchen|microwave|groceries|bakery|supermarket|barber|hairdresser|` +
	`flight|airport|(?:on|catch|missed?|board(?:ing)?) (?:a |the |my |an )?(?:train|plane|bus)|hotel|hiking|taxi|uber|commut(?:e|ing)|camping|beach|ski(?:ing)?|trip|travel(?:ing|ling)?|road trip|driving|` +
	`dentist|doctor|hospital|clinic|fever|(?:i'm|i am|feel|feeling|calling in|home|off) sick|flu|a cold|headache|migraine|(?:go|going|fall|get|no|my|some) (?:to )?sleep|asleep|insomnia|tired|exhausted|nap|my bed|to bed|` +
	`recital|gym|yoga|jogging|football|soccer|tennis|basketball|cinema|movies?|concert|netflix|video games?|guitar|piano|choir|` +
	`(?:the|my|our|his|her) (?:cat|dog|car|flat|house|apartment|garden|phone|bike|laptop|keyboard|wifi|internet)|wifi|no internet|(?:only|just) (?:my |a )?phone|rent|laundry|painting|playground|on zoom|plumber|power cut|` +
	`boss(?:es)?|my manager|professor|supervisor|advisor|intern|customer|ceo|meeting|payday|paycheck|tears|crying|swears?|laughs?|laughing|drunk|hungover)\b|` +
	`孩子|小孩|宝宝|娃|儿子|女儿|闺女|老婆|老公|媳妇|妻子|丈夫|对象|女朋友|男朋友|女友|男友|老妈|老爸|爸妈|我[爸妈爷奶姐哥弟妹]|妈妈|爸爸|父母|爷爷|奶奶|姥姥|丈母娘|岳母|婆婆|亲戚|室友|邻居|隔壁|吹牛|大爷|大妈|房东|保姆|幼儿园|家长会|家里|回家|` +
	`婚礼|结婚|生日|纪念日|过年|春节|放假|假期|休假|度假|请假|产假|年假|聚会|聚餐|约会|离婚|相亲|年会|` +
	`做饭|吃饭|晚饭|午饭|早饭|早餐|午餐|晚餐|外卖|食堂|火锅|烧烤|咖啡|奶茶|喝.{0,2}酒|啤酒|喝茶|餐厅|饿|` +
	`飞机|机场|高铁|火车|地铁|航班|酒店|旅游|旅行|出差|爬山|露营|海边|自驾|开车|堵车|` +
	`牙医|医生|医院|发烧|感冒|生病|头疼|头痛|失眠|困死|好困|睡觉|睡着|睡前|熬夜|累死|体检|疫苗|[胃牙腰]疼|肚子疼|` +
	`健身房|瑜伽|足球|篮球|球赛|看球|电影|演唱会|追剧|打游戏|钢琴|我家|猫|狗|遛|洗澡|洗衣|装修|搬家|房租|停电|断网|宽带|吵架|心情|` +
	`老板|领导|经理|导师|主管|甲方|客户|开会|下班|加班|工资|奖金|骂|催我|在催|哭|崩溃边缘|闲聊`)

// asks finds a clause that asks for something, wants one that only says what it
// wants, and reports one that tells what somebody else wants.
var (
	asks    = lazy.New(`(?i)\b(?:how|what|what's|which|where|why|who|when (?:do|does|will|is|can)|should|shall|recommend|suggest|write|compose|translate|tell me|explain|give me|can (?:i|you|we|one)|could (?:i|you|we)|is (?:it|there|that)|are there|do (?:i|you|we)|does|any (?:idea|tips?|advice)|(?:order|book|buy|get|bring|make|find|play|sing|give|remind|e?-?mail|notify|ping|text|warn) (?:me|us))\b|[?？]|怎么|怎样|如何|咋|什么|啥|哪|多久|多少|几[个点号天]|为什么|为何|吗|呢|推荐|建议|办法|写(?:一|首|个|篇)|点(?:个|杯|份)|来(?:一|首|杯|份)|翻译|讲讲|介绍|该|要不要|能不能|可不可以|是不是|有没有`)
	wants   = lazy.New(`(?i)\b(?:i|we) (?:need|want|have to|would like)\b|\bi'd like\b|\b(?:pls|plz|please)\b|想|要`)
	reports = lazy.New(`(?i)\b(?:asks?|asking|asked|wonders?|wants?|needs?|says?|told|tells|swears?|thinks?|believes?|insists?|keeps)\b|问|要看|要我|非要|说|催|让我|叫我`)
)

// pause finds where one clause ends and the next begins: what it is made of goes
// with the clause before, joined finds words that go with the one behind.
var (
	pauses = lazy.New(`[,.;:!?()]+\s+|[,!?]+$|\.{2,}|\s[-—–]+\s|[，。；：！？、…（）\n]+`)
	joins  = lazy.New(`(?i)\s(?:because|so|and|but|while|before|after|although|though|since|until|anyway|meanwhile)\b|\s(?:i|we) (?:want|need|have to|must|still|would|cannot|can't)\b|\s(?:i'd|i would) (?:like|love)\b|但是|但|可是|不过|所以|因为|话说|我想|想问|请问|顺便`)
)

// clauses cuts a text where its sentences pause, before what joins them on, and
// at the spaces between Han; with fine also at those between Han and others. Put
// together again the pieces are the text.
func clauses(text string, fine bool) []string {
	var cuts []int
	for _, at := range pauses.FindAllStringIndex(text, -1) {
		cuts = append(cuts, at[1])
	}
	for _, at := range joins.FindAllStringIndex(text, -1) {
		cuts = append(cuts, at[0])
	}
	var before rune
	for i, r := range text {
		if before == ' ' && i > 1 {
			last, _ := utf8.DecodeLastRuneInString(text[:i-1])
			from, to := unicode.Is(unicode.Han, last), unicode.Is(unicode.Han, r)
			if from && to || fine && (from || to) {
				cuts = append(cuts, i)
			}
		}
		before = r
	}
	slices.Sort(cuts)
	var list []string
	from := 0
	for _, to := range append(cuts, len(text)) {
		if strings.TrimSpace(text[from:to]) != "" {
			list = append(list, text[from:to])
			from = to
		}
	}
	return list
}

// together is a question of some clauses.
func together(list []string) string {
	return strings.Trim(strings.Join(list, ""), " \t\r\n,.;:，。；：、…")
}

// hearsay finds who wants, asks or says what follows.
var hearsay = lazy.New(`(?i)^.{0,24}?\b(?:asks?|asking|wants?|swears?|says?|thinks?|believes?|insists?|claims?)(?: me| us)?(?: to know| that| if)?[ :,]+`)

// withoutStory is what is left of a question without the clauses that tell of
// somebody's life, in pieces; none where there is nothing else, or one of them
// asks for something itself: then that is what is asked.
func withoutStory(text string) (rest []string, dropped string) {
	for _, c := range clauses(text, false) {
		if !life.MatchString(c) {
			rest = append(rest, c)
			continue
		}
		if said := hearsay.FindString(c); said != "" && !life.MatchString(c[len(said):]) {
			rest = append(rest, c[len(said):])
			continue
		}
		for _, c := range clauses(c, true) {
			switch {
			case !life.MatchString(c):
				rest = append(rest, c)
			case asks.MatchString(c) && !reports.MatchString(c):
				return nil, ""
			default:
				dropped += c
			}
		}
	}
	return rest, dropped
}

// Without its story a question is answered by a card that fits it so well: less
// where it has a word that only the field uses.
const (
	restScore     = 0.50
	restScoreFirm = 0.40
	restCover     = 0.38
	restSounds    = -4.0
	restSure      = -6.0
	restConcepts  = 3
	// punScore holds where the story has a word of the field: then it may be the
	// story that the question is about (a queue at the dentist's).
	punScore = 0.45
)

// puns finds words of the field that are of everyday life as well, and punned
// holds such concepts of the lexicon.
var (
	puns   = lazy.New(`(?i)\b(?:train(?:s|ed|ing)?|runs?|running|queues?|queueing|jobs?|nodes?|partitions?|batch|cards?|flags?|reserv\w+|cancel\w*|order\w*|lines?)\b|训练|排队|作业|任务|节点|跑|取消|预订|预约`)
	punned = map[string]bool{"=job": true, "=node": true, "=gpu": true, "=partition": true, "=account": true, "=training": true, "=hold": true, "=step": true, "=begin": true}
)

// technical finds what is hardly written in a story.
var technical = lazy.New(`--\w|[a-z][A-Z]|[A-Z]_[A-Z]|=\w|(?i)\b(?:gpus?|cuda|iteration|ranks?|loss|checkpoints?|errors?|ssh|scripts?)\b|显存|报错|脚本`)

// natives are everyday concepts of the lexicon that a story hardly holds.
var natives = map[string]bool{
	"=array": true, "=priority": true, "=script": true, "=port": true, "=parallel": true, "=precision": true,
	"=timeout": true, "=requeue": true, "=resubmit": true, "=warmup": true, "=epochs": true, "=layers": true,
	"=image": true, "=export": true, "=cache": true, "=disk": true, "=config": true, "=commit": true, "=repo": true,
	"=scheduler": true, "=output": true, "=command": true, "=process": true, "=program": true, "=crash": true,
	"=error": true, "=hang": true,
}

// native reports whether a text has such a concept.
func native(text string) bool {
	return slices.ContainsFunc(index.Terms(text), func(t index.Term) bool { return natives[t.Key] })
}

// ours reports whether a text has a word of the field.
func (lib *library) ours(text string) bool {
	return trade.MatchString(text) || lib.index.Field(index.Terms(text))
}

// firm reports whether a text has a word that only the field uses.
func (lib *library) firm(text string) bool {
	if trade.MatchString(text) {
		return true
	}
	return lib.index.Field(slices.DeleteFunc(index.Terms(text), func(t index.Term) bool { return punned[t.Key] }))
}

// despite looks once more at a question that tells a story: where a card surely
// fits what it asks besides, and better than the whole, that answers. What is
// declined as a deed, a secret, an order to the program or a matter of today
// stays declined; and a card that fits a story badly is no answer.
func (a *Answerer) despite(q Question, whole finding) finding {
	if whole.computed || !life.MatchString(q.Text) {
		if whole.Refused && !whole.closed && outOfScope(q.Text) == "" {
			if f, ok := a.ending(q); ok {
				return f
			}
		}
		return whole
	}
	switch outOfScope(q.Text) {
	case "", foreign, figure, somebody, person:
	default:
		return whole
	}
	rest, dropped := withoutStory(q.Text)
	if f, ok := a.besides(q, rest, dropped); ok && (whole.Refused || len(whole.hits) == 0 || whole.hits[0].Score <= f.hits[0].Score) {
		return f
	}
	if lib := a.ready(); !whole.Refused && len(whole.hits) > 0 && whole.hits[0].Score < restScore && !technical.MatchString(q.Text) && !trade.MatchString(q.Text) && len(whole.Sources) > 0 {
		return finding{Answer: lib.decline(q.Text, whole.hits, q.Lang, unknown), hits: whole.hits}
	}
	return whole
}

// besides answers what is left of a question without its story: all of it, or
// what is behind its first clauses, up to the first that asks.
func (a *Answerer) besides(q Question, rest []string, dropped string) (finding, bool) {
	if outOfScope(strings.Join(rest, "")) != "" || outOfScope(life.ReplaceAllString(dropped, "")) != "" {
		return finding{}, false
	}
	pun := puns.MatchString(dropped)
	for from, first := range rest {
		q.Text = together(rest[from:])
		if f, ok := a.plainly(q, pun); ok {
			return f, true
		}
		if asks.MatchString(first) || a.ready().ours(first) {
			break
		}
	}
	return finding{}, false
}

// endScore is how well a card has to fit the last clauses of a question whose
// first ones are not understood.
const endScore = 0.55

// ending answers the last clauses of a question that as a whole is not known, if
// they ask for something of the field by themselves and what stands before
// neither asks nor names anything.
func (a *Answerer) ending(q Question) (finding, bool) {
	lib, list := a.ready(), clauses(q.Text, false)
	for from := 1; from < len(list); from++ {
		before := strings.Join(list[:from], "")
		if asks.MatchString(list[from-1]) || lib.ours(before) || outOfScope(before) != "" {
			break
		}
		if slices.ContainsFunc(lib.index.Strangers(before, -1), func(s index.Stranger) bool { return s.Name }) {
			break
		}
		q.Text = together(list[from:])
		if !asks.MatchString(q.Text) || pronoun.MatchString(q.Text) || !lib.firm(q.Text) || len(lib.index.Strangers(q.Text, -1)) > 0 {
			continue
		}
		if f, ok := a.plainly(q, true); ok && !f.computed && f.hits[0].Score >= endScore {
			return f, true
		}
	}
	return finding{}, false
}

// plainly answers what a card surely fits.
func (a *Answerer) plainly(q Question, pun bool) (finding, bool) {
	if q.Text == "" || outOfScope(q.Text) != "" {
		return finding{}, false
	}
	f := a.find(q)
	if f.Refused || len(f.hits) == 0 {
		return f, false
	}
	lib, h := a.ready(), f.hits[0]
	firm := lib.firm(q.Text)
	switch {
	case f.computed:
		return f, firm
	case h.Cover < restCover || lib.sounds(q.Text, f.hits) > restSounds:
		return f, false
	case firm && pun:
		return f, h.Score >= punScore && !pronoun.MatchString(q.Text)
	case firm:
		return f, h.Score >= restScoreFirm
	case pun || !asks.MatchString(q.Text) && !wants.MatchString(q.Text) || !lib.ours(q.Text) && !native(q.Text):
		return f, false
	}
	switch n := index.Concepts(index.Terms(q.Text)); {
	case n < restConcepts && pronoun.MatchString(q.Text):
		return f, false
	case h.Score >= minScoreForeign:
		return f, n > 1
	case h.Score >= restScore || h.Score >= restScoreFirm && lib.sounds(q.Text, f.hits) < restSure:
		return f, n >= restConcepts
	}
	return f, false
}

// pronoun finds a question about what was told before.
var pronoun = lazy.New(`(?i)\b(?:it|them|that|this|one|there)\W*$`)
