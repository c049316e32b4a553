package typed

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// OwnWords are the commands that only the bot has. All other commands are operations.
var OwnWords = []string{"help", "link", "unlink", "whoami", "web", "settings", "subscribe", "unsubscribe", "mute", "unmute"}

// synonyms are other words for commands: in English, in Chinese, and Slurm's.
var synonyms = map[string]string{
	"?": "help", "h": "help", "man": "help", "start": "help", "hi": "help", "hello": "help",
	"run": "submit", "launch": "submit", "sbatch": "submit", "train": "submit",
	"st": "status", "stat": "status", "job": "status", "show": "status",
	"ls": "list", "ps": "list", "jobs": "list", "queue": "list", "squeue": "queue", "mine": "list",
	"kill": "cancel", "stop": "cancel", "scancel": "cancel", "abort": "cancel",
	"log": "logs", "tail": "logs", "output": "logs",
	"why": "diagnose", "debug": "diagnose", "diag": "diagnose", "diagnosis": "diagnose",
	"curve": "metrics", "curves": "metrics", "eta": "status",
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
	"节点": "nodes", "审计": "audit", "暂停": "hold", "挂起": "hold", "保持": "hold", "释放": "release", "恢复": "release",
	"指标": "metrics", "曲线": "metrics", "历史": "history", "分区": "partitions", "优先级": "priority", "账户": "accounts", "配额": "accounts",
	"显存": "memory", "推荐": "recommend", "对比": "compare", "比较": "compare", "差异": "diff", "修改": "update", "重新排队": "requeue",
	"等待": "wait", "解释": "explain", "停止开关": "killswitch", "清理": "cleanup", "恢复节点": "resume", "试跑": "smoke", "镜像": "image",
	"导入": "import", "规则": "rules", "检查脚本": "lint", "节点检测": "nodecheck", "避开": "avoid", "执行": "run", "知识": "knowledge", "搜索": "search", "卡片": "card", "节点列表": "hostlist",
	"绑定": "link", "关联": "link", "解绑": "unlink", "我是谁": "whoami", "设置": "settings",
	"订阅": "subscribe", "退订": "unsubscribe", "静音": "mute", "取消静音": "unmute",
}

// Resolve returns the operation or the bot's own command that word means.
func Resolve(word string) (name string, ok bool) {
	word = strings.ToLower(strings.Trim(word, "/:：,，。!！"))
	if Known(word) {
		return word, true
	}
	if name, ok := synonyms[word]; ok && Known(name) {
		return name, true
	}
	return "", false
}

// Known reports whether name is an operation or one of the bot's own commands.
func Known(name string) bool {
	_, ok := operations.Lookup(name)
	return ok || slices.Contains(OwnWords, name)
}

// fillers are words that people put between a command and a job's id.
var fillers = map[string]bool{"job": true, "of": true, "for": true, "the": true, "my": true, "from": true, "作业": true, "任务": true, "作业号": true}

// withoutFillers removes what is between a command and a job's id: cancel job #4711 becomes
// cancel 4711.
func withoutFillers(words []string) []string {
	i := 1
	for i < len(words) && fillers[strings.ToLower(words[i])] {
		i++
	}
	if i >= len(words) {
		return words
	}
	id := strings.TrimPrefix(words[i], "#")
	if name, ok := Resolve(words[0]); !ok || name == "ask" || !slurm.IsJobID(id) {
		return words
	}
	return slices.Concat(words[:1], []string{id}, words[i+1:])
}

// Unglue splits a Chinese command word from an id that is typed right after it: 状态4711 becomes
// 状态 4711. It also applies withoutFillers.
func Unglue(words []string) []string {
	if len(words) == 0 {
		return words
	}
	words = withoutFillers(words)
	i := strings.IndexFunc(words[0], func(r rune) bool { return r < 0x80 })
	if i <= 0 {
		return words
	}
	if _, ok := synonyms[words[0][:i]]; !ok {
		return words
	}
	return append([]string{words[0][:i], words[0][i:]}, words[1:]...)
}

// DidYouMean returns the commands that are nearest to word, at most three.
func DidYouMean(word string) []string {
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
	for _, w := range OwnWords {
		add(w, w)
	}
	for w, name := range synonyms {
		if Known(name) && len([]rune(w)) > 2 {
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
