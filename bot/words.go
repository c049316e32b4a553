package bot

import (
	"html"
	"slices"
	"strings"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Typed is what a person typed, taken apart.
type Typed struct {
	// Words are the command's words, with quotes and Slack's markup undone.
	Words []string
	// Blocks are code blocks of several lines: a YAML specification, a script, a
	// log. They are not part of Words.
	Blocks []string
	// Rest is the text after the first word as it was typed, for questions.
	Rest string
}

// Slack and the keyboards of phones and Macs change what is typed: links get
// angle brackets, quotes become curly, two dashes become one long one.
var (
	codeBlock  = lazy.New("(?s)```(?:[a-zA-Z]*\n)?(.*?)```")
	slackLink  = lazy.New(`<((?:https?|mailto|tel|slack):[^|>]+)(?:\|([^>]*))?>`)
	slackRef   = lazy.New(`<([@#!])([^|>]+)(?:\|([^>]*))?>`)
	lineJoin   = lazy.New(`\\[ \t]*\n`)
	longDash   = lazy.New(`(^|[\s])(?:[—―]|–(\p{L}[\p{L}\p{N}-]))`)
	softSpaces = strings.NewReplacer("\u00a0", " ", "\u3000", " ", "\u2007", " ", "\u202f", " ", "\u200b", "", "\ufeff", "", "\r\n", "\n", "\r", "\n")
	curly      = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "＂", `"`, "‘", "'", "’", "'", "‚", "'", "＇", "'", "－", "-", "＝", "=")
)

// Type takes text from Slack apart. It never fails: a quote that is not closed
// reaches to the end.
func Type(text string) Typed {
	var t Typed
	text = softSpaces.Replace(text)
	text = codeBlock.ReplaceAllStringFunc(text, func(m string) string {
		body := unescape(codeBlock.FindStringSubmatch(m)[1])
		body = strings.Trim(body, "\n")
		if strings.Contains(lineJoin.ReplaceAllString(body, " "), "\n") {
			t.Blocks = append(t.Blocks, body)
			return " "
		}
		return " " + body + " "
	})
	text = lineJoin.ReplaceAllString(text, " ")
	text = strings.TrimSpace(unescape(text))
	text = dropTicks(text)
	if _, rest, ok := cutWord(text); ok {
		t.Rest = rest
	}
	t.Words = split(dashes(curly.Replace(text)))
	return t
}

// unescape undoes Slack's markup: <http://x|x> is x again, &lt; is <.
func unescape(s string) string {
	s = slackLink.ReplaceAllStringFunc(s, func(m string) string {
		sub := slackLink.FindStringSubmatch(m)
		if sub[2] != "" {
			return sub[2]
		}
		return strings.TrimPrefix(strings.TrimPrefix(sub[1], "mailto:"), "tel:")
	})
	s = slackRef.ReplaceAllStringFunc(s, func(m string) string {
		sub := slackRef.FindStringSubmatch(m)
		if sub[1] == "!" {
			return "" // nobody commands with a broadcast
		}
		return sub[1] + sub[2]
	})
	return html.UnescapeString(s)
}

// dropTicks takes `…` away from around a whole command or one of its words.
func dropTicks(s string) string {
	if strings.Count(s, "`")%2 != 0 {
		return s
	}
	return strings.ReplaceAll(s, "`", "")
}

// dashes gives a flag its dashes back. A dash inside of a word stays.
func dashes(s string) string { return longDash.ReplaceAllString(s, "${1}--${2}") }

func cutWord(s string) (word, rest string, ok bool) {
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, "", s != ""
	}
	return s[:i], strings.TrimSpace(s[i:]), true
}

// split cuts text into words at spaces and line ends. A quote opens only where
// a word or a flag's value begins, so that don't is one word.
func split(s string) []string {
	var words []string
	var w strings.Builder
	in, open := false, rune(0)
	prev := ' '
	for _, r := range s {
		switch {
		case open != 0 && r == open:
			open = 0
		case open != 0:
			w.WriteRune(r)
		case (r == '"' || r == '\'') && (!in || prev == '='):
			open, in = r, true
		case unicode.IsSpace(r):
			if in {
				words = append(words, w.String())
			}
			w.Reset()
			in = false
		default:
			w.WriteRune(r)
			in = true
		}
		prev = r
	}
	if in {
		words = append(words, w.String())
	}
	return words
}

// The bot's own words: what only a chat needs. Everything else is the table.
var ownWords = []string{"help", "link", "unlink", "whoami", "settings", "subscribe", "unsubscribe", "mute", "unmute"}

// synonyms are other words for operations, in the two languages and in Slurm's.
var synonyms = map[string]string{
	"?": "help", "h": "help", "man": "help", "start": "help", "hi": "help", "hello": "help",
	"run": "submit", "launch": "submit", "sbatch": "submit", "train": "submit",
	"st": "status", "stat": "status", "job": "status", "show": "status",
	"ls": "list", "ps": "list", "jobs": "list", "queue": "list", "squeue": "queue", "mine": "list",
	"kill": "cancel", "stop": "cancel", "scancel": "cancel", "abort": "cancel",
	"log": "logs", "tail": "logs", "output": "logs",
	"why": "diagnose", "debug": "diagnose", "diag": "diagnose", "diagnosis": "diagnose",
	"question": "ask", "explain": "ask", "q": "ask",
	"preflight": "plan", "check": "plan", "validate": "plan",
	"script": "render", "const": "constants", "env": "constants",
	"sinfo": "nodes", "connect": "link", "login": "link", "who": "whoami", "config": "settings",

	"帮助": "help", "你好": "help", "菜单": "help",
	"提交": "submit", "运行": "submit", "启动": "submit", "训练": "submit",
	"状态": "status", "查看": "status", "查询": "status",
	"列表": "list", "任务": "list", "作业": "list", "队列": "queue",
	"取消": "cancel", "停止": "cancel", "终止": "cancel",
	"日志": "logs", "输出": "logs",
	"诊断": "diagnose", "分析": "diagnose", "排查": "diagnose",
	"问": "ask", "提问": "ask", "请问": "ask",
	"计划": "plan", "规划": "plan", "预检": "plan", "检查": "plan",
	"渲染": "render", "脚本": "render", "常量": "constants", "常数": "constants", "环境变量": "constants",
	"节点": "nodes", "审计": "audit", "暂停": "hold", "挂起": "hold", "保持": "hold", "释放": "release", "恢复": "release", "重新提交": "resubmit",
	"指标": "metrics", "曲线": "metrics", "历史": "history", "分区": "partitions", "优先级": "priority", "账户": "accounts", "配额": "accounts",
	"显存": "memory", "推荐": "recommend", "对比": "compare", "比较": "compare", "差异": "diff", "修改": "update", "重新排队": "requeue",
	"等待": "wait", "解释": "explain", "停止开关": "killswitch", "清理": "cleanup", "恢复节点": "resume", "试跑": "smoke", "镜像": "image",
	"导入": "import", "规则": "rules", "检查脚本": "lint", "节点检测": "nodecheck", "避开": "avoid", "执行": "run", "知识": "knowledge", "节点列表": "hostlist",
	"绑定": "link", "关联": "link", "解绑": "unlink", "我是谁": "whoami", "设置": "settings",
	"订阅": "subscribe", "退订": "unsubscribe", "静音": "mute", "取消静音": "unmute",
}

// resolve names the operation, or the word of the bot's own, that word means.
func resolve(word string) (name string, ok bool) {
	word = strings.ToLower(strings.Trim(word, "/:：,，。!！"))
	if known(word) {
		return word, true
	}
	if name, ok := synonyms[word]; ok && known(name) {
		return name, true
	}
	return "", false
}

func known(name string) bool {
	_, ok := operations.Lookup(name)
	return ok || slices.Contains(ownWords, name)
}

// fillers are what people put between a command and a job's id.
var fillers = map[string]bool{"job": true, "of": true, "for": true, "the": true, "my": true, "from": true, "作业": true, "任务": true, "作业号": true}

// plainID leaves out what stands between a command and the id of a job: cancel
// job #4711 is cancel 4711.
func plainID(words []string) []string {
	i := 1
	for i < len(words) && fillers[strings.ToLower(words[i])] {
		i++
	}
	if i >= len(words) {
		return words
	}
	id := strings.TrimPrefix(words[i], "#")
	if name, ok := resolve(words[0]); !ok || name == "ask" || !slurm.IsJobID(id) {
		return words
	}
	return slices.Concat(words[:1], []string{id}, words[i+1:])
}

// unglue splits a Chinese command word from an id typed right after it:
// 状态4711 is 状态 4711.
func unglue(words []string) []string {
	if len(words) == 0 {
		return words
	}
	words = plainID(words)
	i := strings.IndexFunc(words[0], func(r rune) bool { return r < 0x80 })
	if i <= 0 {
		return words
	}
	if _, ok := synonyms[words[0][:i]]; !ok {
		return words
	}
	return append([]string{words[0][:i], words[0][i:]}, words[1:]...)
}

// didYouMean lists the commands that are nearest to word, at most three.
func didYouMean(word string) []string {
	word = strings.ToLower(word)
	type similar struct {
		name string
		d    int
	}
	var all []similar
	add := func(name, shown string) {
		d := near.Distance(word, name)
		if strings.HasPrefix(name, word) && len(word) >= 2 {
			d = 0
		}
		if d <= max(1, len([]rune(name))/3) && !slices.ContainsFunc(all, func(n similar) bool { return n.name == shown }) {
			all = append(all, similar{shown, d})
		}
	}
	for _, o := range operations.All() {
		add(o.Name, o.Name)
	}
	for _, w := range ownWords {
		add(w, w)
	}
	for w, name := range synonyms {
		if known(name) && len([]rune(w)) > 2 {
			add(w, name)
		}
	}
	slices.SortFunc(all, func(a, b similar) int {
		if a.d != b.d {
			return a.d - b.d
		}
		return strings.Compare(a.name, b.name)
	})
	var names []string
	for _, n := range all[:min(3, len(all))] {
		names = append(names, n.name)
	}
	return names
}
