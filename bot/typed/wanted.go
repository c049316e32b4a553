package typed

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// People ask for what a command does without its words: please show me my jobs, how
// many GPUs are free? A question for how one does it oneself goes to ask.

var (
	asksHow = lazy.New(`(?i)\bhow (?:do|can|to|should|does)\b|\bcommand\b|squeue|sinfo|sacct|怎么|怎样|如何|命令`)
	wanted  = []struct {
		re   *lazy.Pattern
		name string
	}{
		{lazy.New(`(?i)\b(?:show|list|see|give|get|which|what)\b.*\bmy (?:\w+ )?jobs\b|(?:看|列出|显示|有哪些).*我的.*作业|我的?(?:作业|任务)(?:列表)?[?？。]?$`), "list"},
		{lazy.New(`(?i)\b(?:gpus?|nodes?)\b.*\b(?:free|idle|available)\b|\b(?:free|idle|available)\b.*\b(?:gpus?|nodes?)\b` +
			`|(?:空闲|可用|空着).*(?:gpu|节点|卡)|(?:gpu|节点|卡).*(?:空闲|可用|空着)`), "nodes"},
		{lazy.New(`(?i)^(?:hi|hello|hey)?[, ]*what (?:can|do) you do\b|^(?:can you )?help me[.!?]?$|你(?:能|会|可以)(?:做|干)(?:什么|啥)`), "help"},
	}
	jobNumber    = lazy.New(`(?:^|[^0-9A-Za-z_.=/:-])([0-9]{3,10}(?:_[0-9]+)?)(?:$|[^0-9A-Za-z_.=/:-]|[.:](?:\s|$))`)
	askedTail    = lazy.New(`(?i)\b(?:last|latest|newest) lines?\b|\b(?:logs?|output|tail)\b|日志|输出`)
	askedCompare = lazy.New(`(?i)\b(?:compare|difference|differ|versus|vs)\b|对比|比较|区别`)
	askedTrouble = lazy.New(`(?i)\bwhy\b|\bwrong\b|fail|crash|broke|\bdied\b|怎么了|为什么|失败|原因|挂了|报错`)
)

// Wanted is the command that a sentence asks for; ok is false for any other.
func Wanted(text string) (name string, ok bool) {
	text = strings.TrimSpace(text)
	if len([]rune(text)) > mostAsked || strings.ContainsAny(text, "\n`") || strings.Contains(text, "--") || asksHow.MatchString(text) {
		return "", false
	}
	for _, row := range wanted {
		if row.re.MatchString(text) {
			return row.name, true
		}
	}
	return "", false
}

// JobNumbers are the numbers in a sentence that could be jobs, and the operation that
// it asks for of them.
func JobNumbers(text string) (name string, ids []string) {
	text = strings.TrimSpace(text)
	if len([]rune(text)) > mostAsked || strings.Contains(text, "\n") || strings.Contains(text, "--") {
		return "", nil
	}
	for i := 0; ; {
		m := jobNumber.FindStringSubmatch(text[i:])
		if m == nil {
			break
		}
		if slurm.IsJobID(m[1]) {
			ids = append(ids, m[1])
		}
		i += strings.Index(text[i:], m[1]) + len(m[1])
	}
	switch {
	case len(ids) > 1 && askedCompare.MatchString(text):
		return "compare", ids
	case askedTail.MatchString(text):
		return "logs", ids
	case askedNumbers.MatchString(text):
		return "metrics", ids
	case askedHow.MatchString(text):
		return "status", ids
	case askedTrouble.MatchString(text):
		return "diagnose", ids
	case jobInText.MatchString(text):
		return "status", ids
	}
	return "", nil // 4096 is a sequence length more often than a job
}
