package scan

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// Which words of a line are those of an end, and of what: of the run, or of a round or a part of it.

// doneWords match words with which programs and scripts report success, at their end or after each
// round of a loop.
var doneWords = lazy.New(`(?i)\b(?:done|finish(?:ed)?|completed?|success(?:ful(?:ly)?)?|succeeded|saved|written|wrote|ended|generated|` +
	`(?-i:PASSED)|(?:\d+|checks?|` + wholeRun + `) passed|ran for \d[\d.]* ?[smh]\w*)\b` + // a verdict, no participle
	`|完成|结束|完毕|已保存|成功|com sucesso|\bguardad[oa]s?\b|\bto completion\b` +
	`|\breached (?:the )?(?:end of training|` + most + `)\b|\b` + most + ` reached\b`)

// most matches the number of rounds after which a training ends.
const most = `(?:max\w*|final|last)[ _](?:(?:number|amount) of )?(?:training )?` + round + `s?`

// over and round are the words for the end of one round of a loop.
const (
	over  = `(?:done|finish(?:ed|ing)|completed?|end(?:ed|ing)?)`
	round = `(?:epoch|step|iter(?:ation)?|round|batch|fold|trial)`
)

// ofRound matches words of an end together with the round of a loop that ended.
var ofRound = lazy.New(`(?i)\b` + over + `\b[^\w/]{0,3}(?:(?:for|of|the|training|simulation) ){0,3}` +
	`(?:` + round + `|data)s? ?(?:#?\d|(?:\w+ )?reached\b)|\b` + round + `(?: #?\d+)?[^\w/]{0,3}` + over + `\b`)

// partOf matches words of an end with a count.
var partOf = lazy.New(`(?i)\b(?:done|finished|completed?) (\d+) ?/ ?(\d+)\b`)

// inPart reports whether a line says that only a part of something is done.
func inPart(text string) bool {
	g := partOf.FindStringSubmatch(text)
	return g != nil && g[1] != g[2]
}

// ofParts reports whether a line names one of several parts of the work that is not the last one.
func ofParts(text string) bool {
	g := partOfMany.FindStringSubmatch(text)
	return g != nil && !reached(atoi(g[1]), atoi(g[2])) && !doneWords.MatchString(text)
}

var partOfMany = lazy.New(`(?i)\b(?:` + wholeRun + `|` + round + `|seed|task|part|shard|chunk|dataset|model|config)s? #?(\d+) ?(?:of|/) ?(\d+)\b`)

// atoi returns a number that an expression matched.
func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// partDone matches the end of one numbered round of a loop. Process ids have more digits.
var partDone = lazy.New(`(?i)\b[a-z]+ #?\d{1,4}\b[^\w/]{0,3}(?:\w+ )?` + over + `\b`)

// results match words for a run's results. A program that writes them again and again is still running.
var results = lazy.New(`(?i)\b(?:final|best|test|validation|val|eval(?:uation)?)\b[\w\s,-]{0,24}(?:\b|_)` +
	`(?:accuracy|loss|score|perplexity|metrics?|value)\b` +
	`|\baccuracy\b[\w\s,-]{0,40}\btest\b[^\d]{0,20}[:=] *\d` +
	`|最终\w*结果\s*[:：]`)

// setUp matches progress bars of the preparation before the work.
var setUp = lazy.New(`(?i)^\W*(?:(?:down|pre)?load|initiali[sz]|set(?:ting)?[ -]?up\b|fetch|map\b|filter\b|tokeni[sz]|resolving|casting|` +
	`preprocess|extracting|sanity|capturing (?:cuda )?(?:graph|batch)|compiling|autotun|generating \w+ split)[^|]*\d%`)

// banner reports whether a line has words between rules, or in a box of one column.
func banner(text string) bool {
	text = strings.TrimLeft(text, " \t")
	if boxed, ok := strings.CutPrefix(text, "│"); ok {
		return !strings.Contains(strings.TrimRight(boxed, " │"), "│")
	}
	return text[0] == '#' || strings.HasPrefix(text, "***") || strings.HasPrefix(text, "===") || strings.HasPrefix(text, "---")
}

// closing matches words that occur only at an end.
var closing = lazy.New(`(?i)\b(?:end|finish(?:ed)?)[ _]?(?:time|at)\b|(?:结束|完成)时间|\bend(?:ed|ing) at:|\b` + wholeRun + ` ends?\b` +
	`|\bexit(?:ed with)? (?:code|status)\b.{0,5}\b0\b|^\W*(?:exit|return)_(?:code|status): ?0$` +
	`|^\W*finishing [a-z ]{1,30}\d?\d (?:[a-z]{3} )?\d\d:\d\d:\d\d\b` + // with a date
	`|(?:^|[\]:>-] )\W*total (?:\w+ )?time\b` +
	`|^\W*(?:good[ -]?)?bye\b.{0,24}$|\bsamples are ready and waiting for you here\b` + // Stable Diffusion's scripts, before "Enjoy."
	`|\bexiting ` + wholeRun + `\b|\b` + wholeRun + ` took \d|^\W*end of (?:the )?(?:output|do-file|` + wholeRun + `)\b` +
	`|\[NbConvertApp\] Writing \d+ bytes|^(?:real|user|sys)\s+\d+m|^OK(?: \(\w+=\d+\))?$` + // time(1)
	`|^[\w./-]+ terminated on \d` +
	`|^\[100%\] Built target |\bEpilog(?:ue)?\b|^RESULT,[A-Z0-9_]+,\d*,\d+,`) // MLPerf's run_and_time.sh

// endWords reports whether a line has words of an end.
func endWords(text string) bool {
	return closing.MatchString(text) || doneWords.MatchString(text) && !inPart(text) || results.MatchString(text)
}

// wholeRun matches the words for all that a script or a program does.
const wholeRun = `(?:job|run|script|training|evaluation|inference|benchmark|tests?|testing|pipeline|experiments?|program|simulation|` +
	`workflow|calculation|optimi[sz]ation)`

// drawn are the characters of rules, alone or around words.
const drawn = "-=*#|~_+ \t"

// closes reports whether a line has words that occur only at an end, and none that negate them.
func closes(text string) bool {
	bare := strings.Trim(text, drawn)
	return closing.MatchString(bare) && !takenBack(bare)
}

// takenBack reports whether a line says that something is not done, or only that a round is; or is an
// echo command, which a workflow prints before it runs the command.
func takenBack(text string) bool {
	read := readIn.FindStringSubmatch(text)
	rest := pattern.ZeroOf.ReplaceAllString(text, "")
	return read != nil && !doneWords.MatchString(read[1]) || unfinished.MatchString(rest) || denied.MatchString(rest) || noSuccess.MatchString(rest) ||
		badEnd.MatchString(text) || ofRound.MatchString(text) || strings.HasPrefix(text, "echo ") || strings.HasPrefix(text, "printf ")
}

// saysEnd reports whether a line, without the rules around it, says that the run ended, as opposed to a
// round.
func (f *Facts) saysEnd(m Mark, text string) bool {
	bare := strings.Trim(text, drawn)
	n, of := headCounted(bare)
	switch {
	case bare == "" || takenBack(bare) || pattern.AgentLine(bare):
		return false
	case closing.MatchString(bare), whole.MatchString(bare):
		return true
	case f.inRow(m.Tag, text) && (of == 0 || n < of), tellsOfRound(bare): // a part of the work, and not the last one
		return false
	case ofLibrary.MatchString(bare):
		return whole.MatchString(logline.CutLogger(bare))
	}
	bare = attribute.ReplaceAllString(bare, "")
	return doneWords.MatchString(bare) && (of > 0 || !partDone.MatchString(bare)) && !inPart(bare) &&
		!(f.atStart(m) && destination.MatchString(bare) && !ofAll.MatchString(bare)) ||
		results.MatchString(bare) && f.rows[form32(m.Tag, text)].times < Enough
}

// ofLibrary matches a record of glog, by its file of C++: the steps of a library, unless it says that the whole work is done.
var ofLibrary = lazy.New(`^[IWEF]\d{4} [\d:.]+ +\d+ [\w./-]+\.(?:cc|cpp|cu|cuh|h|hpp):\d+\]`)

// attribute matches a participle that only says what something is that the program is about to use: "a generated seed".
var attribute = lazy.New(`(?i)\ban? (?:generated|saved|written|completed|finished)\b`)

// tellsOfRound reports whether a line tells of one round of a loop: it begins with the round's number, or with a count that is
// not at its end ("[2/15] - accuracy 0.3"), or says that a measure got better, which the next round may do again.
func tellsOfRound(text string) bool {
	n, of := headCounted(text)
	return inRound.MatchString(text) || n+1 < of // it may count from 0
}

// headCounted returns the count with which a line begins, or zeros.
func headCounted(text string) (n, of int) {
	if g := headCount.FindStringSubmatch(text); g != nil {
		return atoi(g[1] + g[3]), atoi(g[2] + g[4])
	}
	return 0, 0
}

var headCount = lazy.New(`^` + levelled + `[\[(] *(\d{1,9}) ?(?:/|of) ?(\d{1,9}) *[\])]|^[>\s]*(\d{1,9})/(\d{1,9}) ->`)

var inRound = lazy.New(`(?i)^` + levelled + round + `s?\W{0,3}\d|\b(?:improved|new best)\b`)

// onlyDone matches the word with which a script ends, whatever came before.
var onlyDone = lazy.New(`(?i)^\W*(?:done|finished|完成)\W*$`)

// opens matches a line that says that a round begins: "Epoch 34 started".
var opens = lazy.New(`(?i)^` + levelled + round + `s?\W{0,3}\d+(?: ?(?:/|of) ?\d+)?\W{0,3}(?:has )?(?:start(?:ed|s|ing)?|beg[aiu]ns?|beginning)\b`)

// beginsNext reports whether the last line, behind the message that all work is done, says that the next work begins.
func (f *Facts) beginsNext() bool {
	for _, m := range tail(f.talk(), 1) {
		_, line := logline.CutTag(m.Text)
		return m.Tag == logline.NoTag && m.told > f.wholeTold && nextWork.MatchString(message(line)) && !endWords(line)
	}
	return false
}

// nextWork matches the announcement of work on something that has a name.
var nextWork = lazy.New(`^` + levelled + begun)

const begun = `开始(?:跑|运行|训练|评估|推理|处理) ?[A-Za-z\d]`
