package knowledge

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
	"github.com/megatron-ops/megatron-ops/knowledge/names"
)

// asksForUnknown reports whether a question is about an option, a variable, a
// state or a subcommand that there is not: a table that holds all of them can
// tell.
func asksForUnknown(text string) bool {
	return asksForUnknownName(text) || asksForUnknownState(text) || asksForUnknownVerb(strings.ToLower(text))
}

// scontrolForm captures what a question takes for a subcommand of scontrol, and
// scontrolVerbs are those that scontrol(1) has.
var (
	scontrolForm  = lazy.New("(?:^|[^\\w-])scontrol ([a-z_]+)(?:[^\\w']|$)")
	scontrolTalk  = lazy.New(`syntax|usage|\bwhat (?:does|is)\b|meaning|options? (?:of|for)|参数|用法|作用|什么意思|干什么|怎么用|选项`)
	scontrolVerbs = lazy.New(`^(?:abort|cancel_reboot|completing|create|delete|errnumstr|exit|fsdampeningfactor|getaddrs|getent|gethost|help|hide|u?hold|hostlist|hostlistsorted|hostnames?|licenses|listjobs|listpids|liststeps|notify|oneliner|pidinfo|ping|power|quiet|quit|reboot|reconfig\w*|release|requeue\w*|resume|schedloglevel|setdebug|setdebugflags|show|suspend|takeover|token|top|update\w*|verbose|version|wait_job|write|` +
		`and|command|do|for|in|is|on|or|to)$`)
)

// asksForUnknownVerb reports whether a question is about a subcommand that
// scontrol does not have.
func asksForUnknownVerb(low string) bool {
	if pasted.MatchString(low) || !scontrolTalk.MatchString(low) {
		return false
	}
	m := scontrolForm.FindStringSubmatch(low)
	return m != nil && !scontrolVerbs.MatchString(m[1])
}

var (
	optionForm   = lazy.New(`(?:^|[^\w-])(--[a-zA-Z][\w-]+)`)
	variableForm = lazy.New(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
	variableTalk = lazy.New(`env|variable|export|\bset\b|setting|value|what (?:does|is)|use|default|环境变量|变量|设|取值|作用|是什么|干什么|多少|怎么用`)
	pasted       = lazy.New(`(?i)unrecogni[sz]ed|not (?:accepted|recogni[sz]ed|known)|不认|error:|traceback|no such option|invalid choice|exception`)
)

// asksForUnknownName reports whether the question is about an option or a
// variable that no table knows. A pasted error message is no such question.
func asksForUnknownName(text string) bool {
	if pasted.MatchString(text) {
		return false
	}
	known, strange := 0, 0
	for _, m := range optionForm.FindAllStringSubmatch(text, -1) {
		if names.Option(m[1]) || names.Begins(m[1]) {
			known++
		} else {
			strange++
		}
	}
	if variableTalk.MatchString(strings.ToLower(text)) {
		for _, v := range variableForm.FindAllString(text, -1) {
			if names.Variable(v) || names.Tail(v) {
				known++
			} else {
				strange++
			}
		}
	}
	return strange > 0 && known == 0
}

// stateNamed captures what a question calls a state of a job or a node.
var stateNamed = lazy.New("(?:\\b(?:[Jj]ob|[Nn]ode|[Ss]lurm|[Ee]xit|[Ee]nd|[Ff]inal) (?:state|status)(?: code)?|\\bST column(?: says| shows)?|(?:作业|节点|[Ss]lurm|sacct|sinfo|squeue) ?(?:里)?(?:的)?状态(?:码|代码)?)(?:\\s*(?:is|shows?|says|of|called|named|是|为|显示|叫))?\\s*[`'\"“]?([A-Z][A-Z_]{1,18})\\b")

// asksForUnknownState reports whether the question is about a state that Slurm
// does not have.
func asksForUnknownState(text string) bool {
	m := stateNamed.FindStringSubmatch(text)
	if m == nil || notStates[m[1]] {
		return false
	}
	for _, c := range compute.Codes() {
		if m[1] == c.Short || m[1] == c.Long {
			return false
		}
	}
	return true
}

// notStates are what stands in capitals behind "state" and is no state that a job
// is said to have: plain words, and states of nodes.
var notStates = map[string]bool{"ST": true, "STATE": true, "REASON": true, "CODE": true, "JOB": true, "NODE": true, "JSON": true, "OK": true, "DRAIN": true, "MIX": true, "ALLOC": true, "IDLE": true, "DOWN": true, "COMP": true, "RESV": true, "API": true, "ID": true, "GPU": true, "CI": true, "PENDING_REASON": true}
