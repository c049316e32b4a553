package scan

import (
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// notZero matches an exit status other than zero, where no decimal point and no unit makes it another
// number ("12 layers"). The status of an HTTP request is none.
const notZero = `(?:-\d{1,3}|[1-9]\d?|1\d\d|255)(?:[^\w\s.,/%-]|[.,]?(?:\s*$|\s+(?:[^\sa-z]|\w+[=:]|(?:in|on|at|after|for|from|by|and|but)\b))|[.,]\s)`

// statusName matches the names that scripts give an exit status, statusZH those in Chinese.
const (
	statusName = `(?:rc|(?:exit|return)[ _-]?(?:code|status|value)|` + statusZH + `)`
	statusZH   = `(?:退出|返回)(?:码|值|状态|代码)`
)

// badEnd matches words of an end with a status that is not zero, or with the word for a failure: the
// program is over, and its work is not done.
var badEnd = lazy.New(`(?i)\b(?:done|finish(?:ed)?|completed?|ended|exited|terminated|over)\b.{0,40}?` +
	`\b(?:` + statusName + `|(?:with (?:an? )?)?(?:status|state|code)(?: code)?)\b` +
	`[\s:=,'"(]*(?:(?:is|of|was)[\s:='"]*)?` +
	`(?:` + notZero + `|(?:err(?:or)?|fail(?:ed|ure)?|abort(?:ed)?|cancel\w*|timeout|killed|non-?zero)\b)` +
	`|(?:完成|结束|完毕).{0,12}(?:退出|返回|状态)(?:码|值)[\s:=：为是]*(?:-\d|[1-9])` +
	`|(?:完成|结束|完毕)[^\p{Han}]{1,3}但?(?:其中 ?)?(?:失败|(?:有|出现|发生|存在)了?(?:错误|失败|问题)|[1-9]\d* ?个(?:任务|实验|作业)?失败)(?:$|[^\p{Han}\s\d:：])` +
	`|异常(?:结束|退出|终止|中断|停止)|\b(?:ended|terminated|finished|exited) (?:abnormally|unsuccessfully)\b` +
	`|\b(?:done|finish(?:ed)?|completed?|ended|stop(?:ped)?)\b.{0,24}?\b(?:with|because of|due to)(?: an?| [1-9]\d*)? (?:errors?|failures?|exceptions?)\W*$` +
	`|\bfailed (?:steps?|stages?|jobs?|tasks?|runs?|seeds?|experiments?) *: *[\['"]*[a-z]`) // and names them

// bareStatus matches a line that a script writes about a status that is not zero.
var bareStatus = lazy.New(`(?i)^\W*(?:\[[^\]]{0,40}\]\W*)?(?:\w+_)?(?:(?:` + statusName + `|exit) ?[:=：] ?|` + statusZH + ` )` + notZero +
	`|^\W*[\w./-]+ returned (?:-\d{1,3}|[1-9]\d?|1\d\d|255)\W*$`)

// saysFailed reports whether a line says that the program failed. The last line of a log may say it by
// the status alone, which amid the log is one of many settings.
func saysFailed(text string, last bool) bool {
	return (failing.MatchString(text) && !ofPart.MatchString(text) ||
		badEnd.MatchString(text) || last && bareStatus.MatchString(text)) && !pattern.ZeroOf.MatchString(text)
}

// wentWrong reports whether a last line says that something went wrong, in whatever words: by a logger's level, the name of an
// exception or a signal, the loss of a part, or a limit on what failed. One that says that nothing did, or that it goes on, does not.
func wentWrong(line string) bool {
	text := message(line)
	return (ErrorLevel.MatchString(line[:min(len(line), 160)]) || trouble.MatchString(text) || denied.MatchString(text) && !whole.MatchString(text)) &&
		!aNumber.MatchString(text) && !measured.MatchString(text) && !nothing.MatchString(text) && !pattern.ZeroOf.MatchString(text) &&
		!pattern.GoesOn(text) && !pattern.WarningLevel.MatchString(line)
}

var (
	trouble = lazy.New(`\b(?:[A-Z]\w*(?:Error|Exception)|SIG(?:TERM|KILL|SEGV|ABRT|INT|HUP|BUS|FPE|ILL|PIPE|QUIT|USR[12]))\W*$` +
		`|(?i:^\W*(?:failed|unable) to (?:reach|save|write|connect)\b` +
		`|\b(?:because|due to|after|on) (?:\w+ ){0,2}(?:errors?|failures?|crash|signal|exception|died|lost)\W*$` +
		`|\b(?:lost (?:the )?(?:connection|worker|peer|node|rank)|(?:connection|heartbeat|worker|peer|node|rank|process) (?:was )?(?:lost|died|crashed)` +
		`|timed out|giving up|unexpectedly|is nan)\b|\breached (?:the )?max\w*[ _](?:retr|restart|error|fail)|\bmemory reached\W*$)` +
		`|为 ?nan\b|崩溃|丢失|超时`)
	nothing = lazy.New(`(?i)\b(?:no|nothing|none|never|0)\b.{0,24}\b(?:un\w+|lost|died|crashed|timed out)\b|\bimprove\b|(?:[无未]|没有?)\p{Han}{0,4}(?:崩溃|丢失|超时)`)
)

// aNumber matches a line whose last word is the number that its other words name: "Error rate: 0.03".
var aNumber = lazy.New(`[:=] *-?[\d.]+(?:e[+-]?\d+)? ?%?\W*$`)

// undoesEnd reports whether the last line of a log tells of a failure of the whole run, after whatever words of an end. What
// could not be done on the way, or was not saved, undoes none.
func undoesEnd(text string) bool {
	return saysFailed(text, true) || notRun.MatchString(text) || (failed.MatchString(text) && !aNumber.MatchString(text) && !measured.MatchString(text) ||
		someFailed.MatchString(text) || lostAtEnd.MatchString(text) || statusField.MatchString(text) ||
		badStatus.MatchString(text) || fatal.MatchString(text)) && !pattern.ZeroOf.MatchString(text)
}

// notRun matches words that deny the end of the whole run, or tell that all of its parts failed.
var notRun = lazy.New(`(?i)^\W*(?:the )?` + wholeRun + ` (?:(?:has|was|did|is|could) ?(?:not|n['’]t)|not)(?: been| be| fully)? (?:finish|complet)` +
	`|^\W*all (?:\d+ )?\w+ failed\W*$`)

// badStatus matches a field with the word for a failure, anywhere in a line, such as one of JSON. noSuccess matches one that denies
// a success, and a count of successes that is zero.
var (
	badStatus = lazy.New(`(?i)(?:\b(?:status|state|result|outcome|conclusion)['"]?|状态['"]?|结果['"]?) *[:=：] *['"]?` +
		`(?:(?:fail(?:ed|ure)?|abort(?:ed)?|crashed|cancell?ed|killed|timeout|interrupted)(?:$|[^\w=:])|` +
		`out_of_memory|node_fail|error(?:['"]|\W*$)|(?:失败|异常|错误)[^\p{Han}\d]*$)`)
	noSuccess = lazy.New(`(?i)\bsuccess['"]? *[:=] *['"]?false\b|\b` + succeeded + ` *[:=] *0(?:[^\d.]|$)` +
		`|\b0(?: ?(?:/|of|out of) ?\d+)?(?: \w+)? ` + succeeded + `\b` +
		`|成功[:：]? *0(?:[^\d.%]|$)|完成[:：]? *0 ?/`)
)

const succeeded = `(?:succeeded|successful|completed)`

// reports reports whether a line that tells of a failure begins with a level, or counts failed tests. A text that a program
// generated may begin with such a word, too: "Failed attempts taught her patience".
func reports(text string) bool {
	return levelFirst.MatchString(text) || someFailed.MatchString(text) || badStatus.MatchString(text) || fatal.MatchString(text)
}

var levelFirst = lazy.New(`^[\W\d]*(?:(?:FAILED|FAILURE|ERROR|FATAL)\b|(?i:fail(?:ed|ure)|(?:fatal )?error|fatal) ?:)`)

// someFailed matches a count of tests of which some failed.
var someFailed = lazy.New(`(?i)^\W*[1-9]\d* (?:tests? )?failed, \d+ (?:tests? )?passed\b|(?-i:^FAILED \(\w)`)

// noneFailed matches a line that counts what failed and finds none. Behind a count of what passed it is a program's last word.
var (
	noneFailed = lazy.New(`(?i)^\W*failed *[:=] *(?:0|none)\W*$`)
	somePassed = lazy.New(`(?i)^\W*passed *[:=] *[1-9]`)
)

// measured matches a line about errors that a program measured: "Error bars are in a.png".
var measured = lazy.New(`(?i)^\W*error (?:rates?|bars?|analys[ei]s|estimates?|margins?|metrics?|counts?|statistics|summary)\b`)

// SaysOver reports whether the last line says that the program is over, and that its work is not done. A program says
// this once, and neither of one of many parts of its work nor of one that it will try again. Of a program that has been
// silent for long, any word of a failure says it.
func (f *Facts) SaysOver(silent bool) bool {
	if len(f.Last) == 0 {
		return false
	}
	m := f.Last[len(f.Last)-1]
	if n := len(f.Progress); n > 0 && f.Progress[n-1].Off > m.Off {
		return false
	}
	_, text := logline.CutTag(m.Text)
	times := f.rows[form32(m.Tag, text)].times
	if text = message(text); times > 1 || pattern.ZeroOf.MatchString(text) ||
		ofPart.MatchString(text) || partDone.MatchString(text) || ofRound.MatchString(text) {
		return false
	}
	if badEnd.MatchString(text) {
		return true
	}
	if goesOn(text) {
		return false
	}
	return silent && tellsFailure(text) || bareStatus.MatchString(text) || leavesFailed.MatchString(text) || python.Alone(text) ||
		runFailed.MatchString(text) || fatal.MatchString(text) && !aNumber.MatchString(text)
}

// wholeJob matches the words for all of a job. A training evaluates and tests on its way, so that an evaluation is a part.
const wholeJob = `(?:job|run|script|training|pipeline|program|workflow|experiment)`

// runFailed matches a line that says of the whole job that it failed, and nothing of a part or of what comes next.
var runFailed = lazy.New(`(?i)^\W*(?:(?:error|fatal|critical)\W+)?(?:(?:the|this|your) )?` + wholeJob + `(?: ` + wholeJob + `)? (?:has )?failed` +
	`(?:\W*$| with (?:an? )?(?:error|exception|exit|status|code|rc)\b)`)

// ofPart matches words for one of many parts, or for what comes after a failure.
var ofPart = lazy.New(`(?i)\b` + wholeRun + ` #?\d|\d+ (?:of|out of) \d|\b(?:will|skipped|ignored|next|again|attempt|goes on|non-?fatal|so far)\b` +
	`|跳过|忽略|继续|重试|下一|第 ?\d`)

// goesOn reports whether a line says what its program does in spite of a failure: "…, using the slow path".
func goesOn(text string) bool {
	g := doesNext.FindStringSubmatch(text)
	return g != nil && !ending.MatchString(g[1])
}

// doesNext matches the act that a clause behind a comma names; ending matches those with which a program ends.
var (
	doesNext = lazy.New(`(?i)(?:[,;(]|\s[–—-]+) *(?:(?:and|so|now|then) )*([a-z-]+ing)\b`)
	ending   = lazy.New(`(?i)^(?:exit|abort|giv|terminat|stopp|quitt?|leav|shutt|clean|kill|bail|miss)ing$`)
)

// fatal matches a last line with the level with which programs end, before two words at least, or the word for an aborted run.
var fatal = lazy.New(`^[\W\d]*FATAL\b\W+(?:[\w.-]+: )?[A-Za-z][\w'.-]*,? [A-Za-z]|(?i:^\W*(?:aborted|exiting with (?:an )?error|` +
	wholeJob + `.{0,24} (?:was |been )?(?:aborted|cancelled|canceled))\W*$)` +
	`|(?:(?:训练|任务|作业|程序|实验|运行)(?:已经?|被)?(?:失败|取消|中止|中断)|(?:(?:训练|任务|作业|实验|运行)(?:已经?)?|被)终止)了?(?:$|[^\p{Han}])`)
