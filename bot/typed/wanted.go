package typed

import (
	"strings"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// People also ask in a sentence for what a command does: please show me my jobs, how many GPUs
// are free? A question about how one does something oneself goes to ask.

var (
	asksHow = lazy.New(`(?i)\bhow (?:do|can|to|should|does)\b|\bcommand\b|squeue|sinfo|sacct|怎么|怎样|如何|命令`)
	wanted  = []struct {
		re   *lazy.Pattern
		name string
	}{
		{lazy.New(`(?i)\b(?:show|list|see|give|get|which|what)\b.*\bmy (?:\w+ )?jobs\b|(?:看|列出|显示|有哪些).*我的.*作业|我的?(?:作业|任务)(?:列表)?[?？。]?$`), "list"},
		{lazy.New(`(?i)\b(?:gpus?|nodes?)\b.*\b(?:free|idle|available)\b|\b(?:free|idle|available)\b.*\b(?:gpus?|nodes?)\b` +
			`|(?:空闲|可用|空着).*(?:gpu|节点|卡)|(?:gpu|节点|卡).*(?:空闲|可用|空着)`), "nodes"},
		{lazy.New(`(?i)^(?:which|any|are|list|show)\b(?:.*\bnodes?\b.*\b(?:down|drained|draining|broken|bad)\b|.*\b(?:down|drained|broken|bad)\b.*\bnodes?\b)` +
			`|(?:哪些|哪个|有没有|有)节点.*(?:问题|故障|下线|坏|挂|不可用)|有哪些(?:故障|坏|下线|不可用)的?节点`), "nodes --drained"},
		{lazy.New(`(?i)\bwhich\b.*\bjobs? (?:have )?(?:failed|died|crashed)\b|^what (?:has )?failed\b|(?:哪些|有什么).*(?:作业|任务).*(?:失败|挂)` +
			`|^(?:please )?(?:show|list|see|give)\b.*\bfailed (?:jobs?|runs?)|(?:失败|挂)了?的(?:那个|那些)?(?:作业|任务|训练)(?:呢|是?哪[个些]|(?:都)?有哪些|列表)?[?？。]?$`), "list --all --state FAILED,TIMEOUT,NODE_FAIL,OUT_OF_MEMORY"},
		{lazy.New(`(?i)^who(?:(?:'|’)?s| is| are)\b.*\b(?:using|running|hogging|occupying)\b` +
			`|^(?:show|list|see)\b.*\b(?:everyone|everybody|all users)(?:(?:'|’)?s)? (?:jobs|runs)\b` +
			`|谁.{0,4}(?:用|跑|占).*(?:卡|gpu|节点|集群)|谁在跑|(?:看|列出|显示).*(?:所有人|大家)的(?:作业|任务)`), "list --user all"},
		{lazy.New(`(?i)^is (?:the |our )?cluster\b.*\b(?:down|up|ok|okay|dead|broken|full|busy|free)\b|^集群.{0,4}(?:挂|坏|正常|忙|满|空)`), "nodes"},
		{lazy.New(`(?i)^(?:which|what) partitions\b.*\b(?:use|there|have)\b|(?:有哪些|可用的?)分区`), "partitions"},
		{lazy.New(`(?i)^(?:please )?(?:open|show|change|see|edit)(?: me)?(?: my| the)? settings\b|^(?:打开|修改|查看)(?:我的)?设置`), "settings"},
		{lazy.New(`(?i)^(?:hi|hello|hey)?[, ]*what (?:can|do) you do\b|^(?:can you )?help me[.!?]?$|你(?:能|会|可以)(?:做|干)(?:什么|啥)`), "help"},
	}
	jobNumber    = lazy.New(`(?:^|[^0-9A-Za-z_.=/:-])([0-9]{3,10}(?:_[0-9]+)?)(?:$|[^0-9A-Za-z_.=/:-]|[.:](?:\s|$))`)
	askedTail    = lazy.New(`(?i)\b(?:last|latest|newest) lines?\b|\b(?:logs?|output|tail)\b|日志|输出`)
	askedCompare = lazy.New(`(?i)\b(?:compare|difference|differ|versus|vs)\b|对比|比较|区别`)
)

// whoseJobs matches a question about what another person runs.
var whoseJobs = lazy.New(`(?i)^(?:what|which jobs?) (?:is|does|has) ([a-z_][a-z0-9_.-]{1,31}) (?:running|run|have running)\b[?.!]?$|^([a-z_][a-z0-9_.-]{1,31})\s*(?:现在)?在跑(?:什么|哪些)`)

// tellWhen matches a sentence that asks to be notified. Groups 1 and 3 are what to follow, in
// English and Chinese; groups 2 and 4 are the event.
var tellWhen = lazy.New(`(?i)^(?:please )?(?:tell|ping|notify|alert)(?: (?:me|us|this channel))?(?: here)? (?:when|if|once) ([\w.*-]+) ` +
	`(fails|completes|starts|is cancelled|ends|finishes|is done|is finished)[.!]?$|^([\w.*-]+?)\s*(失败|完成|开始|取消)(?:时|了|后)?(?:请)?(?:告诉|通知|提醒)(?:我|我们)?[。！]?$`)

// statesOfEvent maps such an event to states in the words of subscribe; a run ends in either of
// two states.
var statesOfEvent = map[string]string{"ends": "failed completed", "finishes": "failed completed", "is done": "failed completed", "is finished": "failed completed", "is cancelled": "cancelled"}

// thanksOnly matches a message that only says thanks.
var thanksOnly = lazy.New(`(?i)^(?:(?:ok|okay|great|perfect|nice|cool|got it)[,.! ]*)?(?:many )?(?:thanks?(?: you)?(?: so much| a lot)?|thx|ty|cheers)(?: man| mate| all| bot)?[ !.~]*$` +
	`|^(?:好的?[，, ]*)?(?:非常)?(?:谢谢|多谢|感谢|谢了|谢啦)(?:您|你)?(?:了|啦|哈)?[！!。~～ ]*$`)

// Thanks reports whether text only says thanks.
func Thanks(text string) bool { return thanksOnly.MatchString(strings.TrimSpace(text)) }

var (
	emojiName = lazy.New(`:[a-z0-9_+'-]+:`)
	greeting  = lazy.New(`:wave:|👋`)
)

// Wordless reports whether text is of emoji and punctuation alone. greets is true for a greeting
// and for a call for help, such as "???".
func Wordless(text string) (ok, greets bool) {
	rest := emojiName.ReplaceAllString(text, "")
	if strings.TrimSpace(text) == "" || strings.ContainsFunc(rest, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return false, false
	}
	return true, greeting.MatchString(text) || strings.ContainsAny(text, "?？")
}

var wantsRun = lazy.New(`(?i)^(?:(?:hi|hello|hey|please|pls|can you|could you|would you|i (?:want|need) to|i(?:(?:'|’)d| would) like to|let(?:(?:'|’)?s| us))[ ,]+)*` +
	`(?:run|start|train|launch|submit|pre-?train)\b|^(?:请|麻烦|我想|我要|我需要|能不能|可以)*(?:帮我|给我|帮忙)?(?:再)?(?:跑|训练?|预训练|启动|提交|开始)`)

// asksOfRun matches what asks or says something of a run: why train X is slow.
var asksOfRun = lazy.New(`(?i)\b(?:how|why|what|when|which|is|are|was|does|did|needs?|takes?|fail\w*|crash\w*|hangs?|hung)\b` +
	`|为什么|为啥|多少|多久|多慢|什么|需要|失败|报错|出错|卡住|卡死|挂了`)

// WantsRun reports whether text asks to start a run, and not how one does so or what comes of it.
func WantsRun(text string) bool {
	text = strings.TrimSpace(text)
	wish := wantsRun.FindString(text)
	return wish != "" && !isLonger(text) && !asksHow.MatchString(text) && !asksOfRun.MatchString(text[len(wish):])
}

// TheJob is what a subscription follows that is asked for with a pronoun: tell me when it fails.
const TheJob = "it"

var pronounOnly = lazy.New(`(?i)^(?:it|this|that)$`)

// WantedSubscription returns the words of the subscription that a sentence asks for; ok is
// false for any other sentence.
func WantedSubscription(text string) (words []string, ok bool) {
	m := tellWhen.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return nil, false
	}
	what, when := m[1]+m[3], strings.ToLower(m[2]+m[4])
	switch {
	case slurm.IsJobID(what):
	case pronounOnly.MatchString(what):
		what = TheJob
	default:
		what = "name=" + what
	}
	if states := statesOfEvent[when]; states != "" {
		when = states
	}
	return append([]string{what}, strings.Fields(when)...), true
}

// WantedCommand returns the command that a sentence asks for; ok is false for any other
// sentence.
func WantedCommand(text string) (command string, ok bool) {
	text = strings.TrimSpace(text)
	if isLonger(text) || strings.Contains(text, "`") || asksHow.MatchString(text) {
		return "", false
	}
	if m := whoseJobs.FindStringSubmatch(text); m != nil {
		return "list --user " + m[1] + m[2], true
	}
	for _, row := range wanted {
		if row.re.MatchString(text) {
			return row.name, true
		}
	}
	return "", false
}

// PossibleJobIDs returns the numbers in a text that could be job ids.
func PossibleJobIDs(text string) (ids []string) {
	for i := 0; ; {
		m := jobNumber.FindStringSubmatch(text[i:])
		if m == nil {
			return ids
		}
		if slurm.IsJobID(m[1]) {
			ids = append(ids, m[1])
		}
		i += strings.Index(text[i:], m[1]) + len(m[1])
	}
}

// JobNumbers returns the numbers in a sentence that could be job ids, and the operation that
// the sentence asks for; without such an operation it returns none.
func JobNumbers(text string) (name string, ids []string) {
	text = Narrow(strings.TrimSpace(text))
	if isLonger(text) {
		return "", nil
	}
	ids = PossibleJobIDs(text)
	if len(ids) > 1 && askedCompare.MatchString(text) {
		return "compare", ids
	}
	if name, ok := operationAsked(text, askedOfNamedJob); ok {
		return name, ids
	}
	if jobInText.MatchString(text) {
		return "status", ids
	}
	return "", nil // a number such as 4096 is more often a sequence length than a job
}
