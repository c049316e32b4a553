package scan

import (
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// measures match a trainer's summary, and what an evaluation or a network test prints at its end.
var measures = lazy.New(`'train_runtime': |\btrain_runtime +=|^# (?:Avg bus bandwidth|Collective test concluded)|` +
	`^\|.*\|(?:↑|↓| ) *\| *[\d.]+\|± *\|` + // lm-evaluation-harness
	`|\bEpoch\(test\) +\[\d+/\d+\] +(?:[^e\s]|e[^t])`) // OpenMMLab; its reports before the end begin with an ETA

// summary begins the summary that the Trainer of transformers prints when its training is over.
const summary = "{'train_runtime': "

// figures match a dictionary of named numbers, which evaluations and tests print at their end, unless one
// follows each round.
var figures = lazy.New(`^\{.*(?:['"][\d_@/ -]*[A-Za-z][\w@/ -]*['"]: -?[\d.e+-]+,? ?){3,}\}$`)

// ofStep matches the number of a step, of which such a dictionary then tells.
var ofStep = lazy.New(`['"](?:global_?)?(?:step|iter(?:ation)?)['"]: `)

// ofTrainer reports whether transformers' Trainer prints such a dictionary, with the epoch, during its training. It prints its
// summary at the end.
func (f *Facts) ofTrainer(text string) bool {
	return strings.HasPrefix(text, "{'loss': ") || strings.Contains(text, "'epoch': ") && len(f.Progress) > 0
}

// leavesFailed matches the command, as "set -x" shows it, with which a script leaves because something
// failed.
var leavesFailed = lazy.New(`^\+ (?:exit [1-9]|return [1-9]|false\b)`)

// reachedTotal reports whether the last iteration that the log reports is the last one that the trainer
// was to do, as Megatron's reports have it.
func (f *Facts) reachedTotal() bool {
	if len(f.Progress) == 0 {
		return false
	}
	g := ofTotal.FindStringSubmatch(f.Progress[len(f.Progress)-1].Text)
	return g != nil && g[1] == g[2]
}

// ofTotal matches the number of an iteration and the number of iterations, in columns.
var ofTotal = lazy.New(`\biteration +(\d+)/ *(\d+) \|`)

// An Ending is what the last lines of one log tell about the end of its program.
type Ending struct {
	Said    bool // they have words of an end
	Counted bool // they have progress bars or counts
	Full    bool // the last bar or count reached its end
	Short   bool // a count of epochs did not reach its end, whatever the bars within it show
	Sure    bool // the other files do not matter
}

// Ending evaluates the last lines of a log.
func (f *Facts) Ending() (e Ending) {
	if f.SaidDone() && !f.beginsNext() {
		return Ending{Said: !f.failedSince(f.wholeTold), Sure: true}
	}
	if f.torn || slices.ContainsFunc(tail(f.Last, lastLines), func(m Mark) bool { return accountedLost.MatchString(m.Text) }) {
		return Ending{Sure: true}
	}
	if f.raisedAmid() || f.brokeDown() {
		return Ending{Sure: true}
	}
	var bar Mark // the last bar or count
	var before time.Time
	amid := false // the last line belongs to something unfinished
	// A trainer's summary says more than the bars before it, and only the bars after it count.
	summed := f.summed > 0 && f.told-f.drawn-f.summed <= lastLines
	e.Said = summed || f.synced != nil && f.Ran.Phases == f.synced.Phases && f.Ran.Sentences-f.synced.Sentences <= Farewell ||
		f.fitted > 0 && f.told-f.fitted <= LongTail || f.plan.over(f.told-f.drawn) || f.leftLoop()
	last := append(tail(f.Progress, 1), tail(f.talk(), lastLines)...)
	for k, m := range last {
		_, line := logline.CutTag(m.Text)
		if m.told < f.served || summed && m.told < f.summedAt || f.told-m.told > LongTail || f.iteratedSince(m.Off) {
			continue // after a server's line or so many others it is not the last bar, nor the last word
		}
		if m.told < f.fitted {
			continue // the trainer's own message outweighs its bars
		}
		at, dated := logline.ParseTime(line)
		if dated && at.Year() == logline.Yearless {
			at, dated = before, false // times with and without a year cannot be compared
		}
		if dated && !before.IsZero() && at.Sub(before) > LongAfter {
			e.Said, e.Full = false, false // something new begins
		}
		if dated {
			before = at
		}
		text := line
		if c, counted := tallyIn(text); counted {
			if c.bar && f.inRow(m.Tag, barName(text)) && !summed && !(f.full.outer() && c.of == f.full.of) {
				continue // a bar that reached its end again and again
			}
			complete := c.of > 0 && !c.within && (reached(c.n, c.of) || c.n == c.of-1 && c.of == f.fromZero && k < len(last)-1)
			switch {
			case setUp.MatchString(text), warmUp.MatchString(text), c.bar && inEpoch.MatchString(text):
				continue
			case stepNamed.MatchString(text) && !endWords(text): // words of an end before it are of another part
				e.Said, amid = false, true
				continue
			case c.epoch:
				complete = complete && !(k == len(last)-1 && beginsEpoch(text)) && !f.epochs.opened(f.told, last[k+1:])
				e.Short = !complete
			}
			if m.Off >= bar.Off {
				bar, e.Full = m, complete
			}
			e.Counted, amid = true, !complete
			continue
		}
		text = message(line)
		if amid = transfer.MatchString(text); amid { // not at its end
			e.Said, e.Full = false, false
			continue
		}
		if ofParts(text) {
			e.Counted, e.Full, e.Short = true, false, true
			continue
		}
		if saysFailed(text, k == len(last)-1) {
			return Ending{Sure: true}
		}
		if measures.MatchString(text) || lastBreath.MatchString(line) ||
			figures.MatchString(text) && !f.ofTrainer(text) && !ofStep.MatchString(text) && !f.inRow(m.Tag, line) {
			e.Said = true
		}
		if strings.Contains(line, " NCCL INFO ") {
			continue // of its own set-up
		}
		if k == len(last)-1 {
			_, _, raised := python.ParseException(text, false)
			switch {
			case raised, strings.Contains(text, python.Header), strings.HasPrefix(strings.TrimLeft(text, " "), `File "`), Killed.MatchString(text):
				return Ending{Sure: true}
			case (closes(text) || onlyTime.MatchString(text) || f.saysEnd(m, line)) && f.failedBefore(last[:k]):
				return Ending{Sure: true} // the script says that it is at its end
			// With "set -x", a shell shows the script's next command when the one before it has returned.
			case strings.HasPrefix(text, "+ ") && !leavesFailed.MatchString(text) && f.reachedTotal():
				return Ending{Said: true, Sure: true}
			case closes(text) && !(e.Counted && !e.Full && f.inRow(m.Tag, line)),
				f.clockedIn > 0 && f.told-f.clockedIn > Farewell && onlyTime.MatchString(text),
				k > 0 && noneFailed.MatchString(text) && somePassed.MatchString(last[k-1].Text),
				(score.MatchString(text) && !tellsOfRound(text) && !(e.Short && soFar.MatchString(text)) || timeTaken.MatchString(text)) &&
					!f.repeats(m, line) && !f.inRow(m.Tag, line):
				return Ending{Said: true, Sure: true}
			case heads.MatchString(text), opens.MatchString(text) && !endWords(text):
				e.Said, e.Full, amid = false, false, true
			case doneWords.MatchString(text) && f.saysEnd(m, line) && f.onlyOnce(m.Tag, line): // onlyOnce looks at every form
				return Ending{Said: true, Sure: true}
			case undoesEnd(text) && !pattern.AgentLine(text):
				e.Said, e.Full, amid = false, e.Full && !reports(text) && !wentWrong(line), true
			case wentWrong(line) && !pattern.AgentLine(text):
				e.Full, amid = false, true
			case beginning.MatchString(text) && !endWords(text):
				e.Said, amid = false, true
			case timeLeft.MatchString(text) && !f.plan.over(f.told-f.drawn):
				e.Said, e.Full, amid = false, false, true
			case announced.MatchString(text) && !endWords(text) && !lastAct.MatchString(text):
				e.Said, e.Full, amid = false, false, true
			}
		}
		if pattern.WarningLevel.MatchString(text) {
			continue
		}
		if k < len(last)-1 && nextPart(text) {
			e.Said = false
		}
		if !new(usage).has(text) && (k < len(last)-1 || !heads.MatchString(text)) && (pattern.FormOf(text) != pattern.Inert || banner(text)) {
			e.Said = e.Said || f.saysEnd(m, line)
		}
	}
	if f.epochs.complete(f.told, f.fromZero) && !amid {
		e.Full, e.Short = true, false
	}
	return e
}

// message returns a line without what a logger wrote before it, if anything is left. A time that stands alone is whole: "2024-03-01 10:11:12 UTC".
func message(line string) string {
	if said := logline.CutLogger(line); said != "" && !onlyTime.MatchString(line) {
		return said
	}
	return line
}

// failedBefore reports whether the last line before those with which a script ends tells of a failure, or is one of a traceback.
func (f *Facts) failedBefore(lines []Mark) bool {
	amid := false // in the code of a frame
	for _, m := range slices.Backward(lines) {
		_, text := logline.CutTag(m.Text)
		text = message(text)
		if f.iteratedSince(m.Off) {
			return false
		}
		if _, _, raised := python.ParseException(text, false); raised || strings.HasPrefix(text, `  File "`) || Killed.MatchString(text) {
			return true
		}
		if amid = amid || strings.HasPrefix(text, "    "); !amid && !closes(text) && !onlyTime.MatchString(text) {
			return tellsFailure(text) && !pattern.AgentLine(text) && (reports(text) || !failed.MatchString(text))
		}
	}
	return false
}

// iteratedSince reports whether so many iterations were reported after a place that no word there is one of
// the end.
func (f *Facts) iteratedSince(off int64) bool {
	n := len(f.Progress)
	return n >= Enough && f.Progress[n-Enough].Off > off
}

// raisedAmid reports whether only bars that are not full follow a traceback: a bar is drawn once more as an
// exception leaves its loop.
func (f *Facts) raisedAmid() bool {
	talk := f.talk()
	for i, m := range slices.Backward(talk) {
		_, text := logline.CutTag(m.Text)
		if c, ok := tallyIn(text); ok && c.bar && c.n < c.of {
			continue
		}
		_, _, raised := python.ParseException(text, false)
		return raised && i < len(talk)-1 && slices.ContainsFunc(talk[:i], func(m Mark) bool {
			return strings.HasPrefix(strings.TrimLeft(m.Text, " "), `File "`)
		})
	}
	return false
}

// brokeDown reports whether a server shut down right behind an exception: no one had asked it to, or it would say so.
func (f *Facts) brokeDown() bool {
	talk := f.talk()
	for k, m := range talk {
		if _, text := logline.CutTag(m.Text); k > 0 && shutsDown.MatchString(text) {
			return slices.ContainsFunc(f.Events, func(e *Event) bool { return e.Kind != "" && e.Off == talk[k-1].Off })
		}
	}
	return false
}

// shutsDown matches the word with which uvicorn begins to shut down.
var shutsDown = lazy.New(`\bINFO: +Shutting down$`)

// inEpoch matches the name of a bar within an epoch, if the name does not say how many epochs there
// are.
var inEpoch = lazy.New(`(?i)^[^|[=]{0,24}\bepochs?\b\W{0,3}\d+(?:[^\d/% ]| +[^\d/o ])`)

// failing matches lines near the end that say that the work failed.
var failing = lazy.New(`(?i)\b(?:` + wholeRun + `|process)\b.{0,16}\bfailed\b` +
	`|\bjob ['"]?[\w./:-]+['"]? failed\b|\bfatal (?:\w+ )?error\b` +
	`|^Command '.*' (?:died with <Signals\.SIG|returned non-zero exit status )` + // subprocess
	`|^\*\*\* SIG[A-Z]+ received at ` + // glog and Abseil
	`|^:::MLL.*\brun_stop\b.*"status": ?"aborted"`) // MLPerf

// failedSince reports whether one of the last lines after the told-th line says so. The starter
// of a program writes this after the program's own words, and the script its times after that.
func (f *Facts) failedSince(told int) bool {
	last := tail(f.talk(), lastLines)
	for n := len(last) - 1; n > 0 && (closes(last[n].Text) || onlyTime.MatchString(last[n].Text) || onlyDone.MatchString(last[n].Text)); n-- {
		last = last[:n]
	}
	for k, m := range last {
		_, text := logline.CutTag(m.Text)
		if text = message(text); m.told > told && (saysFailed(text, k == len(last)-1) || k == len(last)-1 && undoesEnd(text)) {
			return true
		}
	}
	return false
}

// failed matches the beginning of a last line that reports a failure.
var failed = lazy.New(`(?i)^(?:[\W\d]*\d\d:\d\d[\W\d]*)?\W*(?:failed|failure|error|fatal|cannot|could not|unable)\b|^\W*(?:致命)?错误[:：] *[^\s无]`)

// announced matches further forms of an announcement.
var announced = lazy.New(`(?i)^` + levelled + `[a-z]+ing\b.*(?:\.\.\.|…)$`)

// timeLeft matches an estimate of the remaining time of a minute or more.
var timeLeft = lazy.On("eta|ETA|emaining", `(?i)\b(?:eta|remaining(?: time)?)\b *[:=]? *(?:\d+ days?, *)?(?:\d+:)?\d*[1-9]\d*:\d\d\b`)

// heads matches a heading, whose text is missing if it is the last line.
var heads = lazy.New(`^\s*[A-Z]\w*(?: \w+){0,5}:\s*$`)

// lastAct matches announcements of a program that has done its work.
var lastAct = lazy.New(`(?i)\b(?:saving|exiting|stopping|(?:deactivat|clos|shutt|releas|terminat|disconnect)ing|cleaning up)\b|` +
	`\b(?:push|copy|upload|sync)ing\b.*\b(?:results?|outputs?|artifacts?|git\w*|hub)\b`)

// lastBreath matches messages of a process that ends by itself: the interpreter destroys its
// communicators when it exits. They are aborted after an exception too, but then the exception is in
// the other file.
var lastBreath = lazy.New(`(?:process group has NOT been destroyed before|destroy_process_group\(\) was not called before)|` +
	`Unable to destroy server_ object, so releasing instead|` + // TensorFlow
	` NCCL INFO comm \S+ .* - Destroy COMPLETE`)

// Killed matches a shell's message about the end by a signal of the program that it waited for, which may
// have written the time and nothing else of its last line.
var Killed = lazy.New(`^(?:\S+: line \d+: +\d+ |\[?[\d-]+[ T][\d:.,]+(?:Z|[+-][\d:]+)?\]?:? +)?(?:` +
	`Killed|Segmentation fault|Bus error|Aborted|Illegal instruction|Floating point exception|` +
	`Trace/breakpoint trap|Terminated|Hangup|Quit|Alarm clock|User defined signal [12])` +
	`(?: +\(core dumped\))?(?:$|  )` +
	`|^(?:\S+[:：] ?行 ?\d+[:：] *\d+ )?(?:已杀死|已终止|段错误|总线错误|已放弃|已中止|非法指令|浮点数例外)(?: *[(（]核心已转储[)）])?(?:$|  )`)

// ready matches the beginnings of words for preparations.
const ready = `(?:load|initiali[sz]|connect|import|install|creat|register|modif|start|open|log(?:ged|in)|authenticat|download|fetch|mount|pars|read|restor|resolv|push|upload|listen)`

// denied matches words of an end with one that negates them.
var denied = lazy.New(`(?i)(?:(?:\b(?:not|never|unable|fail(?:ed|s)?)|^[\W\d]*(?:nothing|none|no \w+)|n['’]t)(?:[ -]\w+){0,3}[ -]|\bun-?|\bin-?)` +
	`(?:done|finish(?:ed)?|complet\w*|succe(?:ss\w*|ed(?:ed)?)|saved|written)\b|(?:没有?|未)(?:能够?|被|成功|全部|正常|顺利)*(?:完成|结束|成功|保存|跑完|通过)`)

// unfinished matches other words that take back the words of an end beside them.
var unfinished = lazy.New(`(?i)` +
	`\b(?:will|would|to|can|should) be\b|\bpartial\b|\b(?:start-?up|warm-?up|set-?up|initiali[sz]ation) (?:complete|done|finish)|` +
	`\b` + ready + `\w*(?: [\w.-]+(?::\d+)?){0,3} success(?:ful(?:ly)?)?\b|` +
	`\b(?:successfully|finished|done|completed?) ` + ready + `|(?-i:^Done \(t=[\d.]+s\))|` + // pycocotools, about an index
	`\b(?:before|without) (?:the )?max[ _\w]* reached\b|` +
	` on hooks\)$|` + // detectron2 writes it however its loop ended
	`<All keys matched successfully>|` + // load_state_dict
	settingsSaved + `|\bfinished with status 'done'|\bwritten (?:in|by)\b|Run data is saved|Adding directory to artifact|未|失败|fail|error|(?:^|[^-])\bfatal|cannot|could not`)

// settingsSaved matches a line that says that settings were written, and nothing else, as a program does before its work.
const settingsSaved = `^` + levelled + `(?:(?:saved|wrote|written) ` + settings + `(?:[^\w/]|$)|` + settings + ` (?:file )?(?:saved|written)\b)`

const settings = `(?:(?:the|all|full|run|model|training|experiment) )?(?:config(?:uration|s|\.\w+)?|settings|hparams|hyper-?parameters|arg(?:ument)?s)`

// readIn matches what was read in successfully, where the work begins, and all before "successfully". Words
// of an end there outweigh it: "model loaded, training completed successfully".
var readIn = lazy.New(`(?i)^(.*\b(?:loaded|restored|initiali[sz]ed)\b.*)\bsuccess(?:ful(?:ly)?)?\b`)

// levelled matches what loggers write before a message: a time, names and a level.
const levelled = `[\W\dTZ]*(?:` + logged + `)?`

// logged matches those with a level.
const logged = `[\W\dTZ]*(?:[\w.]+\W[\W\d]*){0,2}(?:INFO|SUCCESS)\b[\W\d]*(?:[\w.]+(?::| -)[\W\d]*)?`

// elsewhere matches such messages in Korean, which tell of the whole work and of nothing before it, such as a reason.
const elsewhere = `(?:(?:모든|전체|모델|파라미터) )?(?:학습|훈련|실험|스위핑)[이가을를]? ?(?:모두 )?(?:종료|완료|끝)(?:되었습니다|됐습니다|했습니다|됨)?`

// whole matches messages that all work is done. Programs and scripts may write notes on the results
// after them.
var whole = lazy.New(`(?i)^` + levelled + `(?:` +
	`all\b[\w ]{0,40}\b(?:completed?|done|finished|passed|processed)` +
	`|` + wholeRun + `(?: \w+)? (?:completed?|finished|done)(?: \d+ \w+(?:\(s\))?)?` +
	`|(?:finished|completed) (?:pre-?)?` + wholeRun +
	`|finished after \d[\d,]* \w+` +
	`|end(?:ed)?(?: of)? training` +
	`|reached (?:the )?(?:--)?max(?:imum)?[ _-](?:time|seconds|minutes|hours|epochs|iter(?:ation)?s|steps|updates)\b[^,;]*[,;] stopp(?:ing|ed)` +
	`|stop(?:ped)? training` +
	`)(?: successfully)?[^\w/]*(?:$|[.!:|]|(?:in|after|at) \d|\w+ (?:saved|written)\b)` +
	`|^Job ['"]?[\w./:-]+['"]? succeeded\W*$` + // Ray, about a job that it ran
	`|^(?:\S+[: ])?(?:pre-?)?training time:? (?:\d+ days?, )?\d+:\d\d:\d\d(?:\.\d+)?$` + // DETR and its derivatives, after the last epoch
	`|\bearly[ -]?stop(?:ping|ped)?(?:\W*$|,? (?:triggered|at|after|due)\b)` +
	`|^Epoch \d+: early stopping\b` + // Keras
	`|\btraining stop(?:s|ped)\b|\bstopp(?:ing|ed)[ _]early\b` +
	`|^\[titan\] .* - INFO - process group destroyed$` + // torchtitan, behind the training and nothing else
	`|^(?:[^\pL]|INFO)*` + elsewhere + `[^\pL\pN]*$` +
	`|^(?:[^\p{Han}\pL]|INFO)*(?:所有|全部|模型)?(?:训练|评估|推理|测试|任务|实验|作业)(?:任务|流程)?(?:已|全部|已经|正常|成功)?(?:结束|完成|完毕)(?:$|[^\p{Han}])`)

// allDone takes in a message that all work is done: the program's, its trainer's, or a batch system's.
func (s *scanner) allDone(t logline.Tag, text string, off int64, h pattern.Hits) {
	if h.Ask&pattern.AskWhole == 0 || s.trap.ran(s.told) {
		return
	}
	if fitted.MatchString(message(text)) {
		s.fitted = s.told
	}
	if partDone.MatchString(text) && s.rows[form32(t, text)].times > 1 {
		s.whole = nil // what was said of a part before is of one now, too
		return
	}
	if account := accounted.MatchString(text); account || s.matches(whole, text) && !ofRound.MatchString(text) && !badEnd.MatchString(text) &&
		!denied.MatchString(whole.FindString(text)) && !noSuccess.MatchString(text) && !ErrorLevel.MatchString(text[:min(len(text), 160)]) {
		ran := s.Ran
		s.whole, s.wholeAt, s.wholeOff, s.wholeTold, s.accounted = &ran, s.now, off, s.told, account
	}
}

// SaidDone reports whether a program in the file said that all its work was done, and little came after it.
func (f *Facts) SaidDone() bool {
	undated := f.wholeAt.IsZero() || f.wholeAt.Year() == logline.Yearless
	soon := undated || f.LastTime.Sub(f.wholeAt) <= LongAfter
	farewell := Farewell
	if f.accounted {
		farewell = 2 * LongTail // the epilogue goes on about quotas, budgets and whom to thank
	}
	m := f.whole
	return m != nil && f.Ran.Phases == m.Phases && f.Ran.Sentences-m.Sentences <= farewell && soon && !f.iteratedSince(f.wholeOff)
}

// DoneBefore reports whether a program in the file said before an event that all its work was done.
func (f *Facts) DoneBefore(e *Event) bool {
	return f.whole != nil && f.whole.Sentences <= e.Ran.Sentences
}

// fitted matches Lightning's message after its last epoch. Lightning then draws its bars once more, and
// the program goes on.
var fitted = lazy.New("^`Trainer\\.fit` stopped: `max_epochs=\\d+` reached")

// lastLines is the number of lines, without the bars that were not yet full, in which a program may say how
// it ended.
const lastLines = 6

// Farewell is the number of lines that may follow such a message.
const Farewell = 12

// beginning matches announcements of work that is about to begin.
var beginning = lazy.New(`^` + levelled + `(?:(?:Running|Start(?:ing)?|Begin(?:ning)?|Generating|Loading|Building|Processing|Computing|Training|Evaluating|` +
	`Testing|Executing|Launching|Initializing|Downloading|Preparing|Creating)\b|` + begun + `)`)

// soFar matches words for a measure that the next epoch may improve.
var soFar = lazy.New(`(?i)\b(?:best|improved)\b`)

// measure is a word for a measure of an evaluation.
const measure = `(?:accuracy|acc|precision|recall|f1(?:[ _-]?\w+)?|bleu(?:[ _-]score)?|perplexity|ppl)`

// score matches the measures of a completed evaluation.
var score = lazy.New(`(?i)^\W*(?:[\w@-]+[ _]){0,4}` + measure + ` *[=:]{1,2} *-?[\d.]+%?\W*$` +
	`|(?i)^(?:[\w /()@-]{1,40}[=:] *-?[\d.]+(?:e[+-]?\d+)?%?[\s,;|]+){0,11}[\w /()@-]{0,30}\b` + measure + `[=:] *-?[\d.]+%?\W*$` +
	`|^weighted avg(?: +[\d.]+){3} +\d+$` + // scikit-learn's report on a classification
	`|^\S* ?.*(?:准确率|精度|召回率|得分) *[=:：] *[\d.]+%?(?: ?± ?[\d.]+)?$`)

// rowOf matches a row, the header or the size of a data frame as pandas prints it, a line of JSON, and what git says of the files
// in a commit. They belong to the line before them.
var rowOf = lazy.New(`^(?:\d+ {2,}\S.*  .*| {2,}\S+ {2,}\S.*|\[\d+ rows x \d+ columns\]|\s*[\]\[{}]+,?|\s+"[\w /@.-]+": .*` +
	`| \d+ files? changed, .*| (?:rewrite|create mode|delete mode|mode change|rename) \S.*)$`)

// talk returns the last lines without what a trap wrote, rows of data frames, shell prompts, bars of files that were transferred,
// Python's warnings with their lines of code, which it writes at any end, PyTorch's about processes that exit one after the other,
// MLPerf's records of anything but the end of the run, and a time that stands alone, unless the script began with one.
func (f *Facts) talk() (lines []Mark) {
	warned := false
	for _, m := range f.Last {
		if f.trap.ran(f.told) && m.told > f.trap.at {
			break
		}
		_, text := logline.CutTag(m.Text)
		warned = pythonWarns.MatchString(text) || warned && strings.HasPrefix(text, "  ")
		if !warned && !(f.clockedIn == 0 && onlyTime.MatchString(text) && !endWords(text)) &&
			!rowOf.MatchString(text) && !prompt.MatchString(text) && !transferred.MatchString(text) &&
			!(ofTorch.MatchString(text) && pattern.WarningLevel.MatchString(text)) && // a peer exited first
			!(strings.HasPrefix(text, ":::MLL") && !strings.Contains(text, "run_stop")) {
			lines = append(lines, m)
		}
	}
	return lines
}

// clockIn is the number of lines that may precede the date with which a script begins. Such a script
// prints the date again when its work is done.
const clockIn = 10

// timeTaken matches a program's report of its run time.
var timeTaken = lazy.New(`(?i)^\W*time: \d+[\d.]*:\d[\d.]*:\d[\d.]*$|^\W*(?:(?:execution|run(?:ning)?|wall(?:[- ]?clock)?) ?time` +
	`|tempo de execu[cç][aã]o|tiempo total|laufzeit|(?:总|运行|执行)时间|(?:总|运行)?(?:耗时|用时)) *[:=：] *\d[\d.:,]* ?\w*\W*$` +
	`|(?:^\W*|, )elapsed time *[:=] *\d[\d.]* ?\w*(?:\W*$|, )`)

// repeats reports whether a line of the same form is among the lines before it, so that it belongs to a
// series that goes on.
func (f *Facts) repeats(m Mark, text string) bool {
	form := logline.Template(text)
	for _, o := range tail(f.Last, 13) {
		if _, earlier := logline.CutTag(o.Text); o.Off < m.Off && logline.Template(earlier) == form {
			return true
		}
	}
	return false
}

// ends records a line as one of the last lines. Consecutive rows of a table, such as nvidia-smi's, or
// of an array count as one line.
func (s *scanner) ends(m Mark, text string) {
	s.trap.read(text, s.told)
	if n := len(s.Last); n > 0 && (drawnRow(text) && drawnRow(strings.TrimLeft(s.Last[n-1].Text, " \t")) ||
		transfer.MatchString(text) && transfer.MatchString(s.Last[n-1].Text)) {
		s.Last = s.Last[:n-1]
	}
	if strings.HasPrefix(text, summary) {
		s.summed, s.summedAt = s.told-s.drawn, s.told
	}
	if s.told <= clockIn && s.clockedIn == 0 && onlyTime.MatchString(text) {
		s.clockedIn = s.told
	}
	s.note(&s.Last, m, 16)
}

// drawnRow reports whether a line is a row of a table or of an array.
func drawnRow(text string) bool { return framed(text) || arrayRow.MatchString(text) }

// framed reports whether a line is a row or a rule of a table.
func framed(text string) bool {
	return strings.HasPrefix(text, "|") || strings.HasPrefix(text, "+-")
}
