package compute

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A question may give numbers and want a value worked out of them, or it may
// give them only as the setting of something else: a failure, a pasted message,
// the way to do a thing, a reason. What it wants shows in its own words, not in
// its numbers.

var (
	// trouble finds that something goes wrong.
	trouble = lazy.New(`\b(?:die[sd]?|dying|dead|kill(?:s|ed|ing)?|crash\w*|hang(?:s|ing)?|hung|stuck|refus\w+|reject\w*|complain\w*|fail(?:s|ed|ing|ure)?|errors?|oom|bug|broke(?:n)?|wrong|never|forever|for ever|won't|doesn't|does not|isn't|is not|didn't|did not|can't|cannot|could not|couldn't|aborts?|aborted|assert\w*|exits at|stops at|quits?|trouble|issue|problem|mismatch)\b` +
		`|out of memory|no such|only sees?|炸了|撑不住|溢出|不够|报错|出错|错误|报了|报 ?[a-z(（"“:：]|断言|崩|挂了|挂掉|被杀|杀掉|卡住|卡死|卡在|起不来|起不了|启动不了|跑不起来|爆|失败|退出了|直接退|不动|没反应|收不到|没收到|没来得及|一直|老是|总是|不生效|没生效|没起作用|不对劲|有问题|不认|找不到|打不开|冲突`)
	// harmless finds what sounds like trouble and is none.
	harmless = lazy.New(`\b(?:no|never|not) (?:more|less|fewer) than|(?:does not|doesn't|don't|do not) (?:matter|care|want|use|need)|\bno (?:problem|issue|trouble)|没有?问题|有问题吗|有没有问题|会不会(?:报错|失败|出错)|会(?:报错|失败|出错)吗`)
	// printed finds what a program wrote.
	printed = lazy.New(`\w+error\b|traceback|exception|\bnccl(?:invalid|internal|system|remote|unhandled)\w*|\bdetected ?:|\bassert\b|nccl warn|\bwarn(?:ing)?\b[: ]|slurmstepd|(?:srun|sbatch|scancel|salloc): |error: |\(partition\w+\)|\(assoc\w+\)|\(qos\w+\)|must be (?:a )?(?:multiple|divisible|divisor|greater|less|equal)|not divisible by|larg(?:e|er) than one`)
	// way finds that a way to do something is wanted. How to write a value is none.
	way = lazy.New(`\bhow (?:do|can|should|would|could|must|to|might)\b|\bway to\b|\bwhat (?:to do|should i do|do i do|can i do|now|next)\b|\bwhat else\b|\b(?:launch|full|command|start|torchrun|srun|sbatch|cmd) (?:line|call|invocation)\b|\bcommands?\b|\bscripts?\b|\brecipe\b|\bexample\b|\bwhich (?:knobs?|flags?|options?|settings?|fields?|variables?|args?|arguments?|commands?)\b|\bwhere (?:do|is|are|can|should|to|does|in)\b|\b(?:now|but) (?:i |we )?(?:want|need)\b|\bwant (?:it|to|\d+)\b|\b(?:is|it's|already|still|being|currently) (?:running|queued|submitted|pending|waiting)\b|\bsubmitted,|os\.environ|\bbashrc\b|\b(?:from|in) python\b|\binteractive\b|\b(?:fix|solve|solution|work ?around|get rid|prevent|avoid|freez\w*|froze\w*|pause|resume|restore|undo|check|inspect|find out|look up|see (?:whether|if))\b` +
		`|怎么|如何|咋|怎样|怎麼|办法|有没有(?:命令|工具|选项)|命令|脚本|在哪|哪里|何处|哪个(?:参数|选项|命令|变量)|改哪|解决|排查|避免|防止|先?(?:改|动|调)哪|该(?:改|动|调)|已经(?:提交|在跑|在排队|开始)|正在(?:跑|运行|排队)|交互|查一?下|查看|想(?:进|登|看|查|停|暂停|换|让)`)
	// reason finds that a reason is wanted.
	reason = lazy.New(`\bwhy\b|\bhow come\b|\breasons?\b|\bwhat for\b|\bexplain\b|为什么|为啥|为何|凭什么|原因|图啥|图什么|原理|何必|道理|怎么回事|咋回事`)
	// writing finds that the value itself is to be written down, worked out or read:
	// a way that asks for nothing but the value.
	writing = lazy.New(`\bhow (?:do|can|should|would|to|could)(?: i| we| you| one)? (?:\w+ )?(?:write|spell|express|specify|say|put|give|read|compute|calculate|work out|expand|compress|convert|interpret|translate|make|ask for|limit|tell)\b|(?:差|差别|差异|区别|不同|不一样) ?(?:都|到底|究竟|是|就)?在 ?(?:哪|什么)(?:里|儿)?|(?:怎么|如何|咋|怎样) ?(?:写|填|算|计算|表示|表达|换算|理解|展开|拆开|压缩|读|看懂|指定|设|配|取|分|切|解读|念)`)
	// wanting finds that a number, a name or a verdict is asked for.
	wanting = lazy.New(`\bhow (?:many|much|long|big|large|wide|far|often)\b|\b(?:which|what) (?:is |are |would |will |does |do |should |the |my |our |a |an |of |its |be |global |local |first |node |max |gpu )*(?:ranks?|nodes?|hosts?|gpus?|values?|numbers?|sizes?|counts?|indices|index|elements?|tasks?|steps?|degree|dp|tp|pp|cp|ep|edp|gbs|mbs|world|batch|micro\w*|limit|time|percent\w*|share|accum\w*|data|memory|head|--?\w[\w-]*)\b|\bmean(?:s|ing)?\b|\bstands? for\b|\b(?:in|as) (?:hours|minutes|seconds|days)\b` +
		`|\b(?:valid|legal|allowed|accepted|permitted|divisible|possible|enough)\b\s*\?|\b(?:ok|okay|fine|right|correct|work|works|good|go)\s*\?|= ?\?|\?\?|->|(?:^|[,.;:] ?)(?:and |but |so |then )*(?:can|could|may|will|would|does|do|is|are) (?:i|we|it|that|this|they|my|the|megatron|there|an?|our|\d+|gbs|mbs|tp|pp|cp|dp|ep|gqa|seq\w*|heads|global|micro|num-\w+)\b|\b(?:per|each|every) (?:iteration|step|stage|rank|gpu|node|batch|chunk)\s*\?*$|\b(?:needed|required|necessary|must be|at all)\b` +
		`|\b(?:dp|tp|pp|edp|vpp|world[- ]?size|gbs|values?|accum\w*(?: steps)?|micro-?batch\w*|hours|nodes|ranks|tokens|memory|sizes?|replicas|max[- ]connections)\s*[?=]*\s*$|(?:dp|度|步数|取值|world[- ]?size|max[- ]connections)\s*[?=]*\s*$|多少|(?:^|[^好])几(?:[^乎]|$)|多大|多长|多久|多宽|哪个 ?(?:节点|node|rank|local|机器|卡|值)|哪几|哪些|哪台|哪一台|哪号|谁|合法|合规|能整除|整除吗|能不能|可不可以|能否|行不行|行吗|行么|可以吗|可以么|会不会|对吗|对吧|是吧|吗\s*[?？]?$|等于|啥意思|什么意思|含义|代表|指的是`)
)

// told reports whether the question tells of a failure, or wants a way or a
// reason: its numbers may then be the setting only. A dependency is itself a way,
// for which a failure may be the condition ("run it if job 7 fails"): only what was
// printed or a reason is beside it.
func (q *question) told(answer string) bool {
	low := harmless.ReplaceAllString(writing.ReplaceAllString(q.low, " "), " ")
	if strings.Contains(answer, "--dependency=") {
		return printed.MatchString(low) || reason.MatchString(low)
	}
	return trouble.MatchString(low) || printed.MatchString(low) || way.MatchString(low) || reason.MatchString(low)
}

// wants reports whether the question asks for a value. A mere "what" does where
// nothing else is told.
func (q *question) wants(told bool) bool {
	return wanting.MatchString(q.low) || writing.MatchString(q.low) || !told && meaning.MatchString(q.low)
}

var (
	// meaning finds a question after what something is.
	meaning = lazy.New(`\bwhat(?:'s|s)?\b|\bdifferen(?:ce|t)\b|\bdiffers?\b|\bcompared?\b|\bmeaning\b|是啥|是什么|什么是|啥叫|干嘛|干啥|区别|差别|差异|不同|不一样|表示|\bvs\b|\bversus\b`)
	// concludes and impossible find a question that takes it for settled that
	// something does not work.
	concludes  = lazy.New(`\b(?:therefore|thus|hence|so|means?|right|correct|true|agree|no)\b|所以|那就|因此|说明|是不是|吧|对吗|是吗`)
	impossible = lazy.New(`\bimpossible\b|\bcan(?:no|')t\b|\bnot (?:be )?(?:allowed|possible|valid|legal|ok|work|run|start)|\b(?:invalid|illegal|forbidden)\b|不(?:可能|行|能|可以|合法|允许)|没法|跑不了`)
	// works finds a computed answer that says that it does.
	works = lazy.New(`^(?:Valid|DP = |合法)`)
)

// denied puts a no before the answer to a question that takes a thing for
// impossible which works.
func (q *question) denied(text string) string {
	if !works.MatchString(text) || !impossible.MatchString(q.low) || !concludes.MatchString(q.low) || compiled(`能不能|行不行|可不可以`).MatchString(q.low) {
		return text
	}
	return q.say("No, it works. ", "不是这样,可以。") + text
}
