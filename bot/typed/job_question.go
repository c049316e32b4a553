package typed

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// People ask about a job in a sentence: what is wrong with job 4711, 作业 4711 怎么了. The functions
// below find the operation that answers such a sentence. A general question about Slurm or
// Megatron goes to ask.

var (
	jobInText = lazy.New(`(?i)(?:\bjobs?|\b(?:cancel|kill|stop|logs?|output|error) (?:of |for |from )?|作业号?|任务|日志|取消|停掉|把|#)\s*#?\s*([0-9]{1,10}(?:_[0-9]+)?)`)
	idInText  = lazy.New(`[0-9]+(?:_[0-9]+)?`)

	// Asks what went wrong: diagnose.
	askedWhy = lazy.New(`(?i)\b(what(?:'|’)?s? (?:is |was |went )?wrong|what happened|why (?:did|has|is|was) .*\b(?:fail|die|crash|` +
		`stop|end|hang|hung|stuck|dead)|(?:fail|crash|di)ed|died|dead|crash|broke)` +
		`|怎么(?:了|回事|挂|失败|死)|为(?:什么|何|啥).*(?:失败|挂|死|崩|退出|停|卡|报错|出错)|出了?什么(?:问题|错)|(?:失败|报错|出错|崩溃|挂掉?)(?:了|的)?(?:原因)?[?？。]?$|失败原因`)
	// Asks for the state: status.
	askedHow = lazy.New(`(?i)\b(how(?: is|(?:'|’)?s) |where is |when (?:does|will|is) .*\b(?:start|run|end|finish|done)|why (?:is|` +
		`does) .*\b(?:pending|wait|queue|start|run)|is .*\b(?:running|done|finished|alive|still))` +
		`|怎么样|如何了|跑到哪|到哪(?:了|一步)|进[展度]|还在(?:跑|运行|排队)|(?:好|完|跑完|结束)了(?:吗|没)|什么时候(?:能)?(?:开始|启动|跑|结束|完)|为(?:什么|何|啥).*(?:排队|等待|不(?:启动|开始|跑))`)
)

// mostAsked is the greatest length of a question about a job, in characters; a longer text says
// more than a question does.
const mostAsked = 80

// isLonger reports whether text is more than a short question about a job.
func isLonger(text string) bool {
	return len([]rune(text)) > mostAsked || strings.Contains(text, "\n") || strings.Contains(text, "--")
}

// AboutJob returns the operation that answers a question about one job, and the job's id; ok is
// false for any other text.
func AboutJob(text string) (name, id string, ok bool) {
	text = Narrow(strings.TrimSpace(text))
	m := jobInText.FindStringSubmatch(text)
	if m == nil || isLonger(text) {
		return "", "", false
	}
	for _, n := range idInText.FindAllString(text, -1) {
		if n != m[1] {
			return "", "", false // with more than one number the sentence asks for something else too
		}
	}
	if id = m[1]; !slurm.IsJobID(id) {
		return "", "", false
	}
	if name, ok = operationAsked(text, askedOfNamedJob); !ok {
		return "", "", false
	}
	return name, id, true
}
