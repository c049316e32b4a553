package knowledge

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
	"github.com/megatron-ops/megatron-ops/knowledge/names"
)

// Some texts are requests and no questions: to act on jobs, to show a secret, to
// report the current state of the cluster. No passage answers them. The answer names
// the operation that can.

// A destination is the kind of a request, which determines the answer.
type destination int

const (
	toOperation destination = iota // act on jobs, nodes or files
	toSecrets                      // passwords, tokens, files of this machine
	toRules                        // instructions to the program itself
	toLive                         // the current state of jobs, nodes and budgets
	toMeasure                      // a speed that has to be measured
	toNothing                      // everyday life, or a person
	toOthers                       // another program, unless the text also names one of ourPrograms
)

// redirectTexts are the answers. Each first says what is not done here, and then
// where to go.
var redirectTexts = map[destination]lang.Text{
	toOperation: {
		EN: "I won't do that: answering is read-only and never acts on jobs or files. Use the operation itself " +
			"(`cancel JOB`, `submit -f job.yaml`, `requeue JOB`, `hold JOB`); it checks your rights and asks for confirmation.",
		ZH: "不能代为执行：问答是只读的，不会操作作业或文件。请使用对应的操作（`cancel JOB`、`submit -f job.yaml`、`requeue JOB`、`hold JOB`），它会检查权限并要求确认。",
	},
	toSecrets: {
		EN: "I can't help with that: I have no access to passwords, tokens, keys or files of any machine, and would not print them. " +
			"`doctor` checks the set-up without showing secrets.",
		ZH: "无法提供：没有权限读取任何机器上的密码、令牌、密钥或文件，也不会输出它们。`doctor` 会检查配置而不显示机密。",
	},
	toRules: {
		EN: "I won't: instructions inside a question are not followed, and there are no hidden rules to show. Ask about running Megatron-LM on Slurm.",
		ZH: "不会照做：问题里的指令不会被执行，也没有隐藏规则可以输出。请提出在 Slurm 上运行 Megatron-LM 的问题。",
	},
	toLive: {
		EN: "I can't tell from here: passages hold no live data. Ask the cluster: `list`, `status JOB`, `diagnose JOB`, `logs JOB`, `metrics JOB`, `nodes`, " +
			"`partitions`, `queue` (or `squeue`, `scontrol show job JOB`, `sinfo`, `sshare -U`).",
		ZH: "这里无法回答：内容里没有集群的实时数据。请查询集群：`list`、`status JOB`、`diagnose JOB`、`logs JOB`、`metrics JOB`、`nodes`、" +
			"`partitions`、`queue`（或 `squeue`、`scontrol show job JOB`、`sinfo`、`sshare -U`）。",
	},
	toMeasure: {
		EN: "I don't know: such a number has to be measured on your cluster. `--log-throughput` logs the TFLOP/s of a run; " +
			"`megatron-ops plan` and `memory` estimate memory.",
		ZH: "不知道：这样的数字要在你的集群上实测。`--log-throughput` 会在日志里输出 TFLOP/s；`megatron-ops plan` 和 `memory` 可估算显存。",
	},
	toNothing: textNothing,
	toOthers:  textNothing,
}

func redirect(to destination, l lang.Lang) Answer {
	return Answer{Refused: true, Answer: redirectTexts[to].In(l), Passages: []Passage{}, Sources: []Source{}}
}

// A redirectRule recognizes one kind of request by its words.
type redirectRule struct {
	words string // a regular expression, matched against the text in lower case
	to    destination
	// howTo reports that the rule applies to how-to questions too.
	howTo bool
	why   string
}

// Parts of the rules' expressions.
const (
	actEN   = `(?:cancel|kill|scancel|stop|terminate|delete|remove|wipe|requeue|resubmit|submit|hold|release|suspend|reboot|drain|replace)`
	actZH   = `(?:取消|停掉|停了|停|杀掉|杀了|删了|删掉|删除|清空|提交|重启|释放|重新排队|排空|下线|挂起|scancel|kill|drain)`
	otherEN = `(?:everyone|everybody|all users|other users?|teammates?|colleagues?|others'|\w+'s jobs?|(?:whole|entire) cluster|of team|belonging to)`
	otherZH = `(?:所有人|别人|其他人|其他用户|全部用户|大家|整个集群)`
	// "token" alone is not a secret: training data consists of tokens.
	keyEN = `(?:passw(?:or)?d|passphrase|private key|id_rsa|api[ _-]?key|secrets?|credentials?` +
		`|(?:bot|api|access|auth|oauth|bearer|slack|slackbot|github|hf|hugging ?face|wandb|jwt|your|bot's` +
		`|slack's)(?: bot)?(?: api| access| auth| app)? tokens?\b)`
	keyZH = `(?:密码|口令|密钥|私钥|令牌|(?:slack|api|bot|hf|github|访问|机器人|你)的? ?token|api ?key|凭据)`
	// Matches a host name such as dgx07, but not fp8 or tp4.
	hostEN  = `(?:node|gpu|dgx|hgx|cn|gn|host|worker|compute|rack|nid|login)[a-z-]*-?\d+`
	ownEN   = `(?:(?:my|our|the) (?:run|job|training)(?: #?\d+)?|(?:run|job) #?\d+)`
	thingEN = `(?:gpus?|nodes?|jobs?|cards?|(?:[abhv]|gb)\d00s?)`
	pastEN  = `last(?: night'?s?| week'?s?)?|latest|previous|yesterday'?s?|this morning'?s?|today'?s?`
	nowEN   = `(?:now|right now|at th(?:e|is) moment|currently|today|yet)`
	nowZH   = `(?:现在|目前|当前|此刻|眼下|今天|我们集群)`
)

// redirectRules are tried in this order.
var redirectRules = []redirectRule{
	{`(?:ignore|disregard|forget|override)\b.{0,30}\b(?:instructions?|rules?|prompts?)`, toRules, true, "an order to drop the rules"},
	{`(?:system|initial|hidden|your) (?:prompt|instructions?)\b|(?:system|initial|hidden) rules\b` +
		`|\b(?:show|print|tell|repeat|reveal|dump|list|what are)\b.{0,30}\byour rules\b`, toRules, true, "asks for the program's own instructions"},
	{`忽略.{0,10}(?:指令|规则|提示|要求)|隐藏(?:的)?(?:规则|指令)|系统(?:提示词|指令)`, toRules, true, "the same in Chinese"},
	{`\bcurl\b.{0,30}\bhttps?://|\boutput pwned`, toRules, true, "an order to send something out"},
	{`(?:print|show|give|tell|dump|reveal|leak|send|read|cat|what(?:'s| is| are)) .{0,30}` + keyEN, toSecrets, false, "asks for a secret"},
	{`\b[a-z_]+_(?:token|secret|password|api_key)\b`, toSecrets, false, "names a variable that holds a secret"},
	{`/etc/(?:passwd|shadow)|/proc/\w+/environ|~/\.ssh|\.env\b`, toSecrets, true, "names a file of secrets"},
	{`\b(?:dump|print|show|list)\b.{0,20}\b(?:your|the bot'?s?)\b.{0,20}\b(?:config\w*|env\w*|secrets?)` +
		`|\benv of the bot`, toSecrets, true, "asks for the program's own environment"},
	{keyZH + `.{0,6}(?:是多少|是什么|是啥|发我|给我|告诉)|(?:打印|输出|告诉我|给我|说出|读出).{0,12}` + keyZH, toSecrets, true, "asks for a secret"},
	{`机器人.{0,8}(?:环境变量|配置|密钥|令牌)`, toSecrets, true, "asks for the program's own environment"},
	{`\b` + actEN + `\b.{0,40}\b` + otherEN + `|\b` + otherEN + `.{0,3} jobs\b.{0,20}\b(?:now|please)`, toOperation, false, "acts on what belongs to others"},
	{`\b` + actEN + `\b.{0,20}\ball (?:running |pending )?jobs (?:of|on)\b`, toOperation, false, "acts on all jobs of a cluster"},
	{`^(?:please |pls |now |just |hey |ok |go |can you |could you )*(?:put|` + actEN +
		`) ?(?:my |the |our )?(?:job|jobs|#)? ?\d{2,}\b.{0,20}(?:$|for me|on hold|now|please)`, toOperation, false, "acts on one job by its number"},
	{
		`^(?:please |pls |now |just |hey |can you |could you )*` + actEN + `\b.{0,40}\b(?:for me|right now|immediately|now|please)[.!]*$`, toOperation,
		false, "an order, now",
	},
	{`^(?:please )?(?:remove|delete|wipe|empty|clean up|replace) (?:all |the |every )|^(?:please )?` + actEN + ` (?:everything|everybody|all)(?: jobs)? (?:that|which) \w+ (?:is|are|has)\b` +
		`|^(?:please )?(?:set|put|mark) (?:node )?` + hostEN + ` .{0,12}\b(?:drain|down|idle|resume)`, toOperation, false, "an order about all, or about a node"},
	{`^(?:please |pls |can you |could you )*` + actEN + ` (?:(?:my|the|our) )?(?:` + pastEN + `) (?:[\w-]+ ){0,2}(?:job|run|training)s?\b`, toOperation, false, "an order about a past job"},
	{`(?:帮我|替我|给我|麻烦|请把|把).{0,16}` + actZH + `|(?:现在|马上|立刻|立即).{0,10}` + actZH + `|^` + actZH + `一下`, toOperation, false, "an order"},
	{actZH + `.{0,6}` + otherZH + `|` + otherZH + `的?.{0,8}` + actZH, toOperation, false, "acts on what belongs to others"},
	{`^(?:清空|删除|删掉|删光).{0,10}(?:文件|检查点|目录|数据|日志)$`, toOperation, false, "an order to remove files"},
	{`\bhow many ` + thingEN + `\b.{0,25}\b(?:free|idle|available|pending|running(?:[.?! ]*$| (?:now|right|currently|on|in|at (?:the|this) moment)\b))` +
		`|\bhow many (?:of (?:my|our|the|their) )?` + thingEN + `(?: do(?:es)?(?: [\w.-]+){1,2} have| (?:of|on|in|under|by|from|for)(?: [\w.-]+){1,3} are| are| of mine are)?` +
		`(?: still| currently| now| actually)? running\b`, toLive, false, "counts what is there now"},
	{`\b(?:is|are) (?:the )?(?:gpu |compute )?(?:(?:node|host) [\w-]+|` + hostEN + `) (?:idle|up|down|free|busy|available` +
		`|drained)\b`, toLive, false, "the state of a named node"},
	{`\bis ` + ownEN + ` (?:still |already )?(?:finished|done|running|over)\b|\bis anyone\b` +
		`|\bdid ` + ownEN + ` (?:finish|end|fail|start|complete|crash)` +
		`|\bare there (?:any |still )?(?:idle|free) |\bwho(?:'s| is) (?:using` +
		`|running|on) (?:the|our|my)\b`, toLive, false, "the state of a job"},
	{`\bmy (?:last|latest|newest|previous|most recent) (?:job|run)\b|我的?(?:上一?个|上次|最近|最新|刚才)的?(?:一个)?(?:作业|任务|训练)`, toLive, true, "a job of one's own"},
	{`\b(?:which|what) (?:nodes?|gpus?|colleague)\b.{0,25}\b` + nowEN + `\b`, toLive, false, "the state of nodes now"},
	{
		`\bwhat(?:'?s| is| was) (?:the |my )?(?:current |latest |last |final )?` +
			`(?:loss|step|iteration|progress|throughput|speed|tflops|mfu|learning rate|grad(?:ient)? norm)\b.{0,12}\b(?:of|for|in) (?:my |the |our )?(?:job|run) #?\d+` +
			`|作业 ?\d+ ?(?:现在|当前)?的? ?(?:loss|损失|进度|步数|速度|吞吐|学习率)|作业 ?\d+ ?(?:跑|训)(?:到|了)`,
		toLive, false, "a value of a numbered job",
	},
	{
		`\bhow (?:busy|full|long) is (?:the|our) (?:cluster|queue)\b|^is (?:the|our) (?:cluster|queue) (?:\w+ )?(?:busy|full|empty|free|idle|down|up)(?: (?:right )?now)?[?？]?$`,
		toLive, false, "the state of the cluster",
	},
	{`^(?:我们)?集群(?:现在)?(?:忙不忙|满不满|(?:忙|满|空|闲|挂了|正常)吗)[?？]?$`, toLive, true, "the state of the cluster"},
	{`\b(?:my|our|team'?s?|i|we)\b.{0,30}\b(?:budget|quota|balance|allocation|gpu[ -]hours?` +
		`|credits)\b.{0,20}\b(?:left|remaining|have)`, toLive, false, "what is left of a budget"},
	{`\bremaining (?:gpu |node )?(?:budget|quota|hours|credits)|\bhow (?:much|many)\b.{0,25}\b(?:budget|quota` +
		`|hours)\b.{0,20}\bleft\b`, toLive, false, "what is left of a budget"},
	{`\baccount balance\b`, toLive, false, "what is left of a budget"},
	{nowZH + `.{0,20}(?:有?多少|几个|哪些|谁|有没有|还有).{0,14}(?:空闲|空着|在跑|排队|可用|被占|占用|占着)` +
		`|` + nowZH + `.{0,12}(?:空闲|在跑|排队|占用).{0,6}(?:多少|几)`, toLive, false, "counts what is there now"},
	{`谁在?(?:用|跑|占)(?:着|了)? ?(?:` + hostEN + `|集群|节点)|我的?(?:作业|任务|训练).{0,2}(?:跑到|训到|进行到)` +
		`|` + nowZH + `.{0,6}谁在(?:用|跑|占)|` + nowZH + `.{0,12}(?:有?多少|几)(?:个|台|张)?(?:节点|作业|卡|gpu)`, toLive, false, "counts what is there now"},
	{`[a-z]+[\w-]*\d+ ?(?:现在)?(?:空闲|挂了|正常)吗`, toLive, true, "the state of a named node"},
	{`(?:还剩|剩余|剩下|余额).{0,6}(?:多少|机时|配额|预算|额度)|(?:机时|配额|预算|额度)(?:还|还剩|剩)`, toLive, false, "what is left of a budget"},
	{`\b(?:phone|email|e-mail|(?:i|we|to) contact|contact (?:of|for|details|info\w*)|number)\b.{0,20}` +
		`\b(?:admin|administrator|operator|owner)|\bwho is (?:our` +
		`|the) (?:admin|boss|owner|maintainer)`, toNothing, true, "people are not known"},
	{`(?:管理员|负责人|老板).{0,8}(?:电话|微信|邮箱|是谁|联系方式|叫什么)|(?:谁|你是谁)开发`, toNothing, true, "people are not known"},
	{`\b(?:guarantee|exact(?:ly)?|precise(?:ly)?|will (?:we|i|it)|will \d+).{0,30}\b(?:mfu|tflops|tokens per second` +
		`|throughput)\b`, toMeasure, true, "foretells a speed"},
	{`\b(?:mfu|tokens per second|throughput)\b.{0,10}\bwill\b|精确.{0,6}(?:mfu|吞吐)|(?:mfu|吞吐).{0,4}(?:精确|能到多少$)`, toMeasure, true, "foretells a speed"},
	{`(?:训练|train).{0,12}(?:需要|要|takes?) ?(?:几天|多少天|how many days)`, toMeasure, true, "foretells a duration"},
	{`\b(?:pbs|qsub|lsf|bsub|bjobs|moab|sge|grid engine|torque|(?:ht)?condor|nomad|kubectl|k8s|kubernetes|helm|kueue|volcano|airflow)\b`, toOthers, true, "another scheduler"},
	{`\b(?:vllm|sglang|ray (?:serve|cluster|to)|ray 集群|tensorflow|keras|paddle|mindspore|colossalai|torchtitan` +
		`|jax|fairseq|llama\.cpp|ollama|comfyui|ultralytics|mmdetection|detectron2)\b|ray ?集群`, toOthers, true, "another framework"},
	{`\b(?:nginx|mysql|redis|portainer|flask|react|django|postgres|pandas|excel|wordpress)\b|博客`, toOthers, true, "another program"},
	{`\b(?:vasp|openfoam|gromacs|lammps|abaqus)\b`, toOthers, true, "another program"},
	{`(?:install|compile|build|编译|安装).{0,16}\bslurm(?:ctld|dbd|d)?\b|\bslurm(?:ctld|dbd)\b.{0,20}(?:from scratch` +
		`|installation)`, toNothing, true, "running Slurm's daemons is not covered"},
	{`\b(?:stocks?|weather|cheesecake|joke|poem|meaning of life|rain)\b|股票|股价|天气|下雨|生命|人生|写一首|讲个`, toNothing, true, "everyday life"},
	{`^(?:what'?s?|solve|计算) ?[\dx(][\d +*/^()x=.-]*[?？]?$|^what time is it`, toNothing, true, "plain sums"},
}

// redirectPatterns are the compiled expressions of redirectRules.
var redirectPatterns = sync.OnceValue(func() []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(redirectRules))
	for i, r := range redirectRules {
		list[i] = regexp.MustCompile(r.words)
	}
	return list
})

// asksHow matches how-to questions, which do not ask us to act.
var asksHow = lazy.New(`\bhow (?:do|does|can|to|should|would|could)\b|^(?:does|do|will) (?:a|an|the|my|it|this|slurm|srun|sbatch` +
	`|scancel)\b|\bwhich (?:command|flag|option|variable|file)\b|\bcommand\b|\bwhere (?:do|does|is|should)\b` +
	`|\bcan (?:i|other|others|users)\b|\bflag\b|\boption\b|\bwhy\b|\bwhen\b|\berror\b|\bfails?\b|\bfailing\b` +
	`|怎么|如何|咋|怎样|命令|哪个参数|参数|选项|为什么|报错|吗$|吧$|被|能不能|会不会`)

// savesFirst matches orders that want the state of the training kept.
var savesFirst = lazy.New(`\b(?:and|then|but|after) sav(?:e|ing)\b|\bsave (?:it |a |the )?(?:first|now|checkpoint|state)|\bgraceful(?:ly)?\b` +
	`|保存(?:[^的]|$)|优雅`)

// aboutOthers matches what belongs to somebody else.
var aboutOthers = lazy.New(otherEN + `|` + otherZH)

// ourPrograms matches the names of programs that we answer questions about.
var ourPrograms = lazy.New(`\bmegatron|\bmcore\b|\bslurm\b|\bsbatch\b|\bsrun\b|\bsqueue\b|\bnccl\b|\btorchrun\b|\bpyxis\b|\benroot\b`)

// namesOurs reports whether a text names one of our programs, or an option or a variable of
// one.
func namesOurs(text string) bool {
	if ourPrograms.MatchString(strings.ToLower(text)) {
		return true
	}
	for _, m := range optionPattern.FindAllStringSubmatch(text, -1) {
		if names.Option(m[1]) {
			return true
		}
	}
	return slices.ContainsFunc(variablePattern.FindAllString(text, -1), names.Variable)
}

// A request is a text that a rule of redirectRules has matched.
type request struct {
	redirectRule
	found string // what the rule has matched
}

// otherWordsLeast is the share, by weight, of a text's words besides the name of another
// program that a passage has to have to answer the text.
const otherWordsLeast = 0.5

// answered reports whether passages answer a request all the same. The name of another
// program sends no one away where the passage that fits the text well has it too, with
// most of what the text says besides: a passage that merely names the program does not.
func (r request) answered(text string, near []Passage) bool {
	if r.to != toOthers || len(near) == 0 || near[0].Score < fitScore {
		return false
	}
	passage := near[0].Title + " " + near[0].Text
	if !strings.Contains(strings.ToLower(passage), r.found) {
		return false
	}
	besides := index.Terms(strings.ReplaceAll(strings.ToLower(text), r.found, " "))
	return index.Shared(besides, index.Keys(index.Terms(passage))) >= otherWordsLeast
}

// findRedirect returns the request that a text is, by the first rule that matches.
func findRedirect(text string) (request, bool) {
	low := strings.ToLower(strings.TrimSpace(text))
	if len(low) > 300 {
		return request{}, false // a long text is a pasted log and no request
	}
	how := asksHow.MatchString(low)
	for i, re := range redirectPatterns() {
		r := redirectRules[i]
		if r.to == toOthers && namesOurs(text) {
			continue // "a Megatron checkpoint for vLLM" is a question about Megatron
		}
		if r.to == toOperation && (savesFirst.MatchString(low) || compute.Keeps(text)) && !aboutOthers.MatchString(low) {
			continue // no operation saves, or spares some jobs, and cancel would lose what is to be kept
		}
		if found := re.FindString(low); found != "" && (r.howTo || !how) {
			return request{r, found}, true
		}
	}
	return request{}, false
}
