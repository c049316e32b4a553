package typed

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// People also refer to a job without its number: as "my last job", or as "it" in the thread of
// the job's card.

var (
	lastJob = lazy.New(`(?i)\bof my (?:job|run|training)[.!?]?$|\b(?:my |the )?(?:last|latest|newest|most recent|previous)(?: \w+)? (?:jobs?|runs?|training)\b` +
		`|(?:上一?[个次]|最近[的一]?[个次]?|最后[的一]?[个次]?|刚才的?|刚刚的?)(?:那个)?(?:作业|任务|训练|运行)`)
	// pronoun matches a word for a job that is known from the conversation.
	pronoun = lazy.New(`(?i)\b(?:it|this|that|the job|the run|this job|the training)\b|它|这个|该作业|这次|作业|任务|训练`)

	askedLogs    = lazy.New(`(?i)\b(?:show|see|get|read|give|print|tail)\b.*\b(?:logs?|output)\b|(?:看|给|显示|读).*(?:日志|输出)`)
	askedNumbers = lazy.New(`(?i)\b(?:loss|curve|throughput|tflops?|mfu|how fast|metrics)\b|损失|曲线|吞吐|多快|速度|指标`)
	askedStop    = lazy.New(`(?i)^(?:please )?(?:cancel|kill|stop|end)\b|^(?:请)?(?:取消|停止|终止|停掉)`)
	askedLeft    = lazy.New(`(?i)\b(?:how (?:long|much longer)|eta|when .*\b(?:done|finish|end|ready|start))\b|还(?:要|有)多久|多久|何时|几点`)
)

// shortQuestion is the greatest length, in characters, of a Chinese question that may leave its
// subject out and so be about the job of the thread.
const shortQuestion = 24

// LastJob reports whether text speaks of the person's newest job.
func LastJob(text string) bool { return len([]rune(text)) <= mostAsked && lastJob.MatchString(text) }

// AskedOfIt returns the operation that a sentence asks for about a job that it does not name,
// such as "why did it fail?"; ok is false where the sentence is about something else.
func AskedOfIt(text string) (name string, ok bool) {
	text = strings.TrimSpace(text)
	if isLonger(text) {
		return "", false
	}
	bare := lang.Of(text) == lang.ZH && len([]rune(text)) <= shortQuestion || len(strings.Fields(text)) <= 3
	if !bare && !pronoun.MatchString(text) && !LastJob(text) {
		return "", false
	}
	return operationAsked(text)
}

// operationAsked returns the operation that a sentence asks for, whichever job it is about.
func operationAsked(text string) (name string, ok bool) {
	for _, row := range []struct {
		re   *lazy.Pattern
		name string
	}{
		{askedStop, "cancel"}, {askedLogs, "logs"}, {askedLeft, "status"}, {askedHow, "status"}, {askedWhy, "diagnose"}, {askedNumbers, "metrics"},
	} {
		if row.re.MatchString(text) {
			return row.name, true
		}
	}
	return "", false
}

// PossibleJobNames returns the words of a sentence that could be a job's name.
func PossibleJobNames(text string) (words []string) {
	for w := range strings.FieldsSeq(text) {
		if w = strings.Trim(w, `?？!！.,，。:：;"'“”‘’()（）`); len(w) >= 3 {
			words = append(words, w)
		}
	}
	return words
}

// AskedOfNamed returns the operation that a sentence asks for about a job that one of its words
// names.
func AskedOfNamed(text string) (name string, ok bool) {
	if isLonger(text) {
		return "", false
	}
	return operationAsked(text)
}

// identifier matches a word that names something particular: a flag, a variable, or a job's
// number.
var identifier = lazy.New(`--|[A-Za-z0-9]_[A-Za-z0-9]|[0-9]{3,}`)

// AsksOn reports whether text may be a follow-up question in a thread: a short text without an
// identifier.
func AsksOn(text string) bool {
	text = strings.TrimSpace(text)
	short := len(strings.Fields(text)) <= 9
	if lang.Of(text) == lang.ZH {
		short = len([]rune(text)) <= shortQuestion
	}
	return short && !strings.Contains(text, "\n") && !identifier.MatchString(text)
}
