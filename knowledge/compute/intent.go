package compute

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A question may ask for a value computed from its numbers. Or the numbers only describe
// the situation, and it asks about a failure, a pasted message, a procedure or a reason.
// The words of the question show its intent, the numbers do not.

// stateNames matches words in capitals, such as job states.
var stateNames = lazy.New(`\b[A-Z_]{3,}\b`)

// Expressions over the folded question.
var (
	// problemWords match a failure, or a message that a program printed.
	problemWords = []string{
		`\b(?:dies?|died|dead|kill(?:s|ed)?|crash\w*|hangs?|hung|stuck|refus\w+|reject\w*|complain\w*|fail(?:s|ed|ure)?)\b`,
		`\b(?:errors?|oom|bug|broken?|wrong|forever|abort\w*|assert\w*|trouble|issue|problem|mismatch|slow\w*)\b`,
		`\b(?:load|loads|loading|checkpoints?|resume|converge\w*)\b|报 |加载|续训`,
		`\bfor (?:hours|ages|days|an hour|a (?:day|long time))\b|\b(?:won't|doesn't|does not|isn't|is not|didn't|did not|can't|cannot|couldn't)\b|out of memory|no such|\btime(?:d|s)? ?-?outs?\b|超时`,
		`\b(?:wasn't|was not|weren't|were not|aren't|are not|there(?:'s| is| are) no)\b`,
		`\b(?:faster|quicker|longer|speed ?-?up)\b|更快|快了|提速|比\S{1,12}(?:快|慢)`,
		`\bt?flops?\b|\btflop/s|\bmfu\b|\bthroughput\b|\btokens? ?(?:/|per) ?s|吞吐|利用率`,
		`\w+error\b|traceback|exception|\bwarn(?:ing)?\b[: ]|slurmstepd|(?:srun|sbatch|scancel|salloc): |error: |\breason\b`,
		`报错|出错|错误|断言|崩|挂了|被杀|卡住|卡死|起不来|跑不起来|爆|失败|退出了|没反应|一直|老是|不生效|不对劲|不够|炸了|冲突|很慢|太慢|很久|迟迟|不结束|不动`,
	}
	// rejectionWords match a message that numbers do not fit together.
	rejectionWords = `\w+error\b|\bassert\w*|\bdivi(?:de|sible)|\bmultiple of\b|整除|断言|报错`
	// howToWords match a question about a procedure or a reason.
	howToWords = []string{
		`\bhow (?:do|can|should|would|could|to)\b|\bway to\b|\bwhat (?:to do|should i|do i do|can i|now|next)\b|\bscripts?\b|\bexample\b`,
		`\b(?:launch|start|run) (?:two|2|\d+ nodes|on)\b|\bwhy\b|\bhow come\b|\bexplain\b|\bdifference\b|\brecommend\w*|\bbest\b|\bfix\b|\bsolve\b`,
		`\bwhich (?:tp|pp|layout|parallel\w*|flags?|options?|commands?|settings?|fields?|args?)\b|\bwhat (?:parallel|layout)\b`,
		`怎么|如何|咋|怎样|办法|命令|脚本|在哪|哪里|哪个(?:参数|选项|命令)|解决|排查|避免|为什么|为啥|原因|区别|选哪|推荐|怎么切|训练?? ?\d+b`,
	}
	// harmlessWords match words that only look like the above: a question how to write a
	// value asks for the value.
	harmlessWords = []string{
		`\bhow (?:do|can|should|would|to)(?: i| we| you)? (?:\w+ )?(?:write|express|specify|give|read|calculate|compute|expand|limit)\b`,
		`在哪 ?[个台张块]? ?(?:节点|机器|node|卡|gpu)`,
		`(?:怎么|如何|咋|怎样) ?(?:写|填|算|计算|表示|换算|展开|设|读|限制)`,
		`\b(?:will|would|does|do) (?:it|this|that|megatron(?:-lm)?) (?:\w+ )?(?:fail|crash|refuse|reject|complain|abort|die)\b`,
		`(?:do not|don't|没有?|会不会) ?(?:use|用|报错|失败|出错)|会(?:报错|失败|出错)吗`,
	}
)

// explainsProblem reports whether the computed answer explains the problem in the
// question: how a program ended, or why the rejected numbers are invalid. Then the answer
// is wanted although the question describes a problem.
func (q *question) explainsProblem(p purpose) bool {
	return p == failure && !q.success || q.invalid && compiled(rejectionWords).MatchString(q.low)
}

func (q *question) any(exprs []string, s string) bool {
	return slices.ContainsFunc(exprs, func(e string) bool { return compiled(e).MatchString(s) })
}

// describesProblem reports whether the question describes a failure, or asks for a
// procedure or a reason, so that its numbers only describe the situation. It is false for
// a command, such as that with a dependency, which is itself a procedure, with a failure as a possible
// condition ("run it if job 7 fails"). A job state that is asked for, such as BOOT_FAIL, is a
// name and describes no failure.
func (q *question) describesProblem(p purpose) bool {
	if p == command {
		return false
	}
	low := q.low
	if p == meaning {
		low = fold(stateNames.ReplaceAllStringFunc(q.text, func(word string) string {
			if slices.ContainsFunc(Codes, func(c Code) bool { return c.Kind == "job" && c.Long == word }) {
				return " "
			}
			return word
		}))
	}
	for _, e := range harmlessWords {
		low = compiled(e).ReplaceAllString(low, " ")
	}
	return q.any(problemWords, low) || q.any(howToWords, low)
}
