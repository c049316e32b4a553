package typed

import (
	"slices"
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
	// Questions in the past tense are about this run; those about Megatron are in the present tense.
	pronoun = lazy.New(`(?i)\b(?:it|this|that|the job|the run|this job|the training)\b|\b(?:was|were) the\b|它|这个|该作业|这次|作业|任务|训练`)

	askedLogs    = lazy.New(`(?i)\b(?:show|see|get|read|give|print|tail)\b.*\b(?:logs?|output)\b|(?:看|给|显示|读).*(?:日志|输出|log)`)
	askedNumbers = lazy.New(`(?i)\b(?:loss|curve|throughput|tflops?|mfu|how fast|metrics)\b|损失|曲线|吞吐|多快|慢(?:吗|不慢)|速度|指标`)
	askedMemory  = lazy.New(`(?i)\bhow much (?:\w+ )?memory\b|^(?:它|(?:这个?|该)?(?:作业|任务|训练))?(?:需|会|占|使)?[要用][了掉]?多少(?:显存|内存)`)
	askedStop    = lazy.New(`(?i)^(?:(?:please|pls|can you|could you|would you|go|now)[ ,]+)*(?:cancel|kill|stop|end|abort|terminate)\b` +
		`|^(?:请|麻烦|能不能|可以)*(?:帮我|给我)?(?:把.{1,40}?)?(?:取消|停止|终止|停掉|停了|杀掉)`)
	askedAgain = lazy.New(`(?i)^(?:(?:please|pls|can you|could you|would you|just)[ ,]+)*` +
		`(?:re-?(?:run|try|start|submit|launch)|(?:run|try|start|submit|launch)\b.*\bagain)\b|^(?:请|麻烦)*(?:帮我|给我)?(?:把.{1,40}?)?(?:再|重新?)(?:跑|试|提交|启动|运行|来|训)`)
	askedSaved = lazy.New(`(?i)\b(?:did|has|have|was|were|is there|any)\b.*\b(?:saved?|checkpoints?|ckpt)\b` +
		`|(?:有没有|有|存了?|保存了?)[^a-z]{0,4}(?:checkpoint|ckpt|检查点).*(?:吗|没有?)?[?？]?$|(?:checkpoint|ckpt|检查点).*(?:存|保存)了?(?:吗|没)`)
	// Asks on which nodes, of no other subject.
	askedWhere = lazy.New(`(?i)^(?:on )?(?:what|which) (?:nodes?|hosts?|machines?)(?: (?:is it|does it run) on)?[?!. ]*$|^(?:它)?(?:跑?在)?哪(?:个|些|几个|台|几台)?(?:节点|机器)(?:上)?(?:跑|运行)?[?？。]?$`)
	// Asks whether there are errors, of no other subject.
	askedErrors = lazy.New(`(?i)^(?:(?:are|is|were|was) there |did you see )?any (?:errors?|exceptions?|tracebacks?|problems?|issues?|trouble)(?: (?:so far|yet|now|here|at all))?[?!. ]*$` +
		`|^(?:目前|现在)?有(?:没有|无)?(?:什么|任何)?(?:报错|错误|异常|问题)(?:吗|没有?)?[?？。]?$`)
	askedLeft = lazy.New(`(?i)\b(?:how (?:long|much longer)|eta|when .*\b(?:done|finish|end|ready|start))\b|还(?:要|有)多久|多久|何时|几点`)

	// The next two are asked of a job only where the sentence names it; without a name they would
	// match general questions.
	askedState = lazy.New(`(?i)\b(?:doing|status|state|progress|ok(?:ay)?|alright)\b|\b(?:what|which) nodes?\b|\bhow (?:many|far)\b.*\b(?:iterations?|steps?)\b` +
		`|状态|情况|哪(?:个|些|几个)?节点|正常|第几步|多少[步轮]`)
	askedTrouble = lazy.New(`(?i)\bwhy\b|\bwarum\b|\bwrong\b|fail|crash|broke|\bdied\b|\berrors?\b|\bhang|\bhung\b|\bstuck\b|\bslow|\bdoes(?:n't| not) work` +
		`|怎么了|为什么|为啥|失败|原因|挂了|报错|错误|卡住|卡死|卡了|慢`)
)

var (
	askedWhich = lazy.New(`(?i)\b(?:which|who|first)\b|哪|第几|几个|谁|先`)
	askedTaken = lazy.New(`(?i)\bwho(?:(?:'|’)?s| is| are|se)?\b.*\b(?:look(?:s|ing)? (?:at|after|into)|on (?:it|this)|handl(?:es|ing)|work(?:s|ing) on|fix(?:es|ing)|` +
		`tak(?:es|ing) care|owns?)\b|谁(?:在|来|正在)?(?:处理|看|跟进|修)`)
	avoidsNode = lazy.New(`(?i)\b(?:without|avoid\w*|exclud\w*|skip\w*|except|not on)\b.*\b(?:nodes?|hosts?|machines?)\b` +
		`|\b(?:re-?(?:run|try)|run|try)\b.*\b(?:another|other|different) (?:nodes?|hosts?|machines?)\b` +
		`|(?:不带|不用|不要|排除|避开|去掉|跳过|换).{0,5}(?:节点|机器)`)
)

// AsksWhich reports whether text asks which one of several something is, which a diagnosis as a
// whole does not say at once.
func AsksWhich(text string) bool { return askedWhich.MatchString(text) }

// AsksWhoTook reports whether text asks who takes care of a failure.
func AsksWhoTook(text string) bool { return askedTaken.MatchString(text) }

// AvoidsNode reports whether text asks to run again without the node that failed.
func AvoidsNode(text string) bool { return avoidsNode.MatchString(text) && !asksHow.MatchString(text) }

// Again is what askedOperations call the wish to run a job once more, which two operations fulfil.
const Again = "again"

// An askedOperation is an operation and the words that ask for it of a job; an empty name means that
// the words ask for something else.
type askedOperation struct {
	re   *lazy.Pattern
	name string
}

var (
	// askedOfAnyJob is asked of the job of the conversation too. The first row that matches counts.
	askedOfAnyJob = []askedOperation{
		{tellWhen, ""},
		{askedStop, "cancel"},
		{askedAgain, Again},
		{askedLogs, "logs"},
		{askedSaved, "status"},
		{askedLeft, "status"},
		{askedHow, "status"},
		{askedWhy, "diagnose"},
		{askedErrors, "diagnose"},
		{askedWhere, "status"},
		{askedNumbers, "metrics"},
		{askedMemory, "memory"},
	}
	// askedOfNamedJob is asked only of a job that the sentence names.
	askedOfNamedJob = slices.Concat(askedOfAnyJob, []askedOperation{{asksHow, ""}, {askedTail, "logs"}, {askedTrouble, "diagnose"}, {askedState, "status"}})
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
	if !bare && !pronoun.MatchString(text) && !LastJob(text) && !askedErrors.MatchString(text) {
		return "", false
	}
	return operationAsked(text, askedOfAnyJob)
}

// operationAsked returns the operation that a sentence asks for, whichever job it is about.
func operationAsked(text string, rows []askedOperation) (name string, ok bool) {
	for _, row := range rows {
		if row.re.MatchString(text) {
			return row.name, row.name != ""
		}
	}
	return "", false
}

// PossibleJobNames returns the words of a sentence that could be a job's name. Chinese may follow a
// name without a space.
func PossibleJobNames(text string) (words []string) {
	for w := range strings.FieldsSeq(text) {
		if w = strings.Trim(w, `?？!！.,，。:：;"'“”‘’()（）`); len(w) >= 3 {
			words = append(words, w)
		}
		if lang.Of(w) == lang.ZH {
			words = append(words, nameBesideChinese.FindAllString(w, -1)...)
		}
	}
	return words
}

var (
	nameBesideChinese = lazy.New(`[A-Za-z0-9][A-Za-z0-9_.-]{2,}`)
	// particular matches a name that is no word of a language, such as moe-30b.
	particular = lazy.New(`[0-9_.-]`)
)

// AskedOfNamed returns the operation that a sentence asks for about the job that it calls name. A
// name that is a word, such as gpt, may stand in a general question, which asks less of the job.
func AskedOfNamed(text, name string) (op string, ok bool) {
	text = strings.TrimSpace(text)
	switch {
	case isLonger(text):
		return "", false
	case particular.MatchString(name):
		return operationAsked(text, askedOfNamedJob)
	}
	return operationAsked(text, askedOfAnyJob)
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
