package compute

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Slurm has no option to cancel all jobs but some. A question that asks for it has a verb that ends jobs, a
// word for all of them, and a word for an exception beside what is kept. Every word is read: where one says
// anything else, such as "the newest" or "on gpu01", there is no answer, since a wrong one would cancel what
// should be kept.

// A role is what a word says in such a question.
type role int

const (
	unread    role = iota // a word that matters only beside the exception, where it is not understood
	ends                  // cancels jobs
	endsAny               // ends other things too
	all                   // every job
	aJob                  // a job; says nothing beside the exception
	anArray               // an array; likewise
	filling               // says nothing anywhere
	exception             // what follows is kept, or what stands just before it in Chinese
	closing               // what stood since the exception is kept: 除 … 以外
	naming                // a name follows
	inQueue               // a state
	isActive              // another state
	part                  // a partition's name is beside it
)

// roles are the words of each role, in both languages.
var roles = map[role]string{
	ends:    "cancel scancel cancelling canceling kill killing 取消 杀掉 杀",
	endsAny: "stop stopping terminate abort end drop remove delete clear 停掉 停止 停 终止 结束 清掉 清理 删掉 删除 干掉",
	all:     "all every everything anything others other rest else 所有 全部 全都 都 其他 其它 其余 别的 剩下",
	aJob:    "job jobs one ones 作业 任务",
	anArray: "array arrays 数组",
	filling: "the a an my mine me i i'd we you it and or for of to in at with no that those these is are there id ids number numbers task tasks element elements " +
		"alone untouched alive going how what what's which do does can could should would want need like way command use using have please slurm now once " +
		"currently quickly safely let's them " +
		"的 和 与 跟 及 以及 或 号 了 我 我的 自己 个 把 是 为 请 它 这 那 些 两 几 一 正 在 还 编号 元素 里 中 怎么 如何 怎样 咋 想 要 需要 能 可以 帮 下 命令 吗 呢 用 什么 有 " +
		"没有 办法 但 而 就 掉 完 光 当前 现在 一次 性",
	exception: "except excepting exception but besides excluding save without minus not don't keep keeping leave leaving spare sparing " +
		"除了 除去 除 除外 保留 只留 留下 留着 留 不要 别 不 不动 别动 跳过 不包括",
	closing:  "以外 之外 外",
	naming:   "named name names called 名为 名叫 名字 名称 叫",
	inQueue:  "pending waiting queued 排队 等待",
	isActive: "running 运行 在跑",
	part:     "partition partitions 分区",
}

// roleOf maps each word to its role.
var roleOf = sync.OnceValue(func() map[string]role {
	of := map[string]role{}
	for r, words := range roles {
		for _, w := range strings.Fields(words) {
			of[w] = r
		}
	}
	return of
})

// longestHan is the length of the longest Chinese word of roles.
const longestHan = 3

var (
	// keepWord matches a quoted word, a word of Latin letters and digits, a Chinese character, or a mark
	// that ends a clause.
	keepWord   = lazy.New("[`\"'“‘]([\\w.+-]+)[`\"'”’]|\\w(?:[\\w.+'-]*\\w)?|\\p{Han}|[;.?!。；？！]")
	keptID     = lazy.New(`^\d{1,9}(?:_\d{1,7})?$`)
	keptName   = lazy.New(`^[\w.+-]*[A-Za-z][\w.+-]*$`)
	besideThat = lazy.New(`(?i)\b(?:other than|apart from|aside from|with the exception of)\b`)
	// looksNamed matches what no sentence has as a word.
	looksNamed = lazy.New(`[\d_-]`)
)

// A keepToken is a word of a question with its role. A quoted one is a name.
type keepToken struct {
	text   string
	role   role
	quoted bool
}

func keepTokens(text string) (list []keepToken) {
	for rest := text; rest != ""; {
		m := keepWord.FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		word := rest[m[0]:m[1]]
		t := keepToken{text: word, role: roleOf()[strings.ToLower(word)]}
		switch {
		case m[2] >= 0:
			t = keepToken{text: rest[m[2]:m[3]], quoted: true}
		case isHan(word): // the longest word that is known
			run := []rune(rest[m[0]:])
			for n := min(longestHan, len(run)); n > 0; n-- {
				if known, ok := roleOf()[string(run[:n])]; ok {
					t = keepToken{text: string(run[:n]), role: known}
					break
				}
			}
			m[1] = m[0] + len(t.text)
		}
		list, rest = append(list, t), rest[m[1]:]
	}
	return list
}

// A keeping is what a question wants to keep while it cancels all other jobs.
type keeping struct {
	ids, names   []string
	state, array string // of what is kept, where it has no ids; the array whose elements are meant
	flags        string // of squeue, for the jobs that are meant
}

// Keeps reports whether a text asks to cancel all jobs but some, which no operation does.
func Keeps(text string) bool {
	_, ok := keptBy(text)
	return ok
}

// keptBy reads what a text wants to keep.
func keptBy(text string) (k keeping, ok bool) {
	tokens := keepTokens(besideThat.ReplaceAllString(text, " except "))
	said := map[role]bool{}
	var before, outside []string // ids that no exception has taken yet, and those that none will
	open, named, taken := false, false, false
	for i, t := range tokens {
		said[t.role] = true
		id, name := keptID.MatchString(t.text), keptName.MatchString(t.text) && (t.quoted || t.role == unread && (named || looksNamed.MatchString(t.text)))
		switch {
		case t.role == exception:
			if taken = !open && len(before) > 0 && isHan(t.text) && !strings.HasPrefix(t.text, "除") || t.text == "除外"; taken { // 123 别动
				k.ids, before = append(k.ids, before...), nil
			}
			open, named = true, false
		case open && (t.role == ends || t.role == endsAny) && tokens[i-1].role == exception: // 不要取消 123
		case t.role == ends, t.role == endsAny, t.role == all, t.role == closing:
			open, outside, before = false, append(outside, before...), nil
		case t.role == naming:
			named = true
		case open && taken && (id || name): // which of both is kept?
			return k, false
		case open && id:
			k.ids = append(k.ids, t.text)
		case open && name:
			k.names = append(k.names, t.text)
		case open && (t.role == inQueue || t.role == isActive):
			k.state = map[role]string{inQueue: "PENDING", isActive: "RUNNING"}[t.role]
		case clauseEnds[t.text]:
			open = false
		case id && !counts(tokens[i+1:]):
			before = append(before, t.text)
		case t.role == inQueue:
			k.flags += " -t PENDING"
		case t.role == isActive:
			k.flags += " -t RUNNING"
		case t.role == part && !open && partitionAt(tokens, i) != "":
			k.flags += " -p " + partitionAt(tokens, i)
		case t.role == part, t.role == unread && !id && !besidePartition(tokens, i):
			return k, false
		}
	}
	outside = append(outside, before...)
	if said[anArray] && len(outside) == 1 && len(k.names) == 0 {
		k.array = outside[0]
		for i, id := range k.ids {
			if !strings.Contains(id, "_") {
				k.ids[i] = k.array + "_" + id
			}
		}
	} else if len(outside) > 0 {
		return k, false
	}
	meant := said[ends] || said[endsAny] && (said[aJob] || said[anArray])
	return k, meant && (said[all] || said[closing]) && (len(k.ids) > 0 || len(k.names) > 0 || k.state != "")
}

func isHan(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.Is(unicode.Han, r)
}

// clauseEnds are the marks that end a clause.
var clauseEnds = map[string]bool{";": true, ".": true, "?": true, "!": true, "。": true, "；": true, "？": true, "！": true}

// counts reports whether a number counts the jobs behind it.
func counts(next []keepToken) bool {
	for _, t := range next {
		if t.text != "个" {
			return t.role == aJob
		}
	}
	return false
}

// besidePartition reports whether a word is the name of a partition.
func besidePartition(tokens []keepToken, i int) bool {
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < len(tokens) && tokens[j].role == part && partitionAt(tokens, j) == tokens[i].text {
			return true
		}
	}
	return false
}

// partitionAt returns the name beside the word for a partition.
func partitionAt(tokens []keepToken, i int) string {
	for _, j := range []int{i + 1, i - 1} {
		if j >= 0 && j < len(tokens) && tokens[j].role == unread && keptName.MatchString(tokens[j].text) {
			return tokens[j].text
		}
	}
	return ""
}

// keep answers with the command that cancels all jobs but some.
func keep(q *question) string {
	k, ok := keptBy(q.text)
	elements := slices.ContainsFunc(k.ids, func(id string) bool { return strings.Contains(id, "_") })
	kept := slices.Concat(k.ids, k.names)
	switch {
	case !ok || len(kept) == 0 && k.flags != "" || elements && len(k.names) > 0:
		return ""
	case len(kept) == 0:
		state := map[string]string{"PENDING": "RUNNING", "RUNNING": "PENDING"}[k.state]
		return q.say("`scancel -u $USER -t %[1]s`: it cancels your jobs in that state alone; the %[2]s ones go on.",
			"`scancel -u $USER -t %[1]s`:只取消这一状态的作业,%[2]s 的不受影响。", state, k.state)
	}
	whose, column, others := "--me", "-o %F | sort -u", "grep -vxE '"+strings.Join(k.ids, "|")+"'"
	note := [2]string{"%F is the id of an array as a whole, so a kept array keeps all its elements", "%F 是整个数组的作业号,保留数组即保留其全部元素"}
	switch {
	case elements:
		column, others = "-r -o %i", "grep -vxE '"+strings.Join(wholeArrays(k.ids), "|")+"'"
		note = [2]string{"-r lists each element of an array by itself", "-r 逐个列出数组元素"}
	case len(k.names) > 0:
		var those []string
		for _, id := range k.ids {
			those = append(those, `$1 != "`+id+`"`)
		}
		for _, name := range k.names {
			those = append(those, `$2 != "`+name+`"`)
		}
		column, others = "-o '%F %j'", "awk '"+strings.Join(those, " && ")+" {print $1}' | sort -u"
		note = [2]string{"%j is the job's name", "%j 是作业名"}
	}
	if k.array != "" {
		whose = "-j " + k.array
	}
	return q.say("`squeue %[1]s | xargs -r scancel`: it cancels what `squeue` lists, except %[2]s. Without `| xargs -r scancel` it only shows which; %[3]s.",
		"`squeue %[1]s | xargs -r scancel`:取消 `squeue` 列出的作业,保留 %[2]s。去掉 `| xargs -r scancel` 则只列出要取消的;%[4]s。",
		whose+k.flags+" -h "+column+" | "+others, strings.Join(kept, ", "), note[0], note[1])
}

// wholeArrays returns the expressions for ids in a list of elements: an id without an element is kept with
// all its elements.
func wholeArrays(ids []string) (exprs []string) {
	for _, id := range ids {
		if !strings.Contains(id, "_") {
			id += "(_[0-9]+)?"
		}
		exprs = append(exprs, id)
	}
	return exprs
}
