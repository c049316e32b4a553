package scan

import (
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// Some lines have words of an end, and are none by their place in the log.

// destination matches a line that says where something is or was written. One that begins with "Written to"
// reports what the program just did.
var destination = lazy.New(`(?i)[a-z)'"] (?:saved|stored|written|logged|generated) (?:in(?:to)?|to|at|under)\b[\w ]{0,16}:? *['"]?[^\s'"]*[/\\.]\S*$`)

// ofAll matches what only a program says that has written all it was to write.
var ofAll = lazy.New(`(?i)^` + levelled + `all (?:\w+ )?results (?:were |have been )?(?:saved|written|stored)\b`)

// atStart reports whether a line is among the first ones of a log that shows no work, in its first minute: a
// program that begins tells where its results will be.
func (f *Facts) atStart(m Mark) bool {
	return m.told <= clockIn && len(f.Progress) == 0 && !f.reports && m.At.Sub(f.Last[0].At) < time.Minute // so short a log is in Last
}

// serves matches the address at which a program says that it serves, and the access log of a server.
var serves = lazy.New(`(?i)\b(?:running|serving|listening|available|server|tensorboard [\d.]+)\b.{0,60}?\b(?:on|at)\b.{0,40}?https?://` +
	`|"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) \S+ HTTP/\d(?:\.\d)?" \d{3}\b`)

// serving takes in a line of a server. A program that serves has no end of its own: all before such a line
// belongs to its start or to a request.
func (s *scanner) serving(t logline.Tag, text string, h pattern.Hits) {
	if h.Ask&pattern.AskServe == 0 || !serves.MatchString(text) {
		return
	}
	s.served = s.told + 1
	if st := s.streams[t]; st != nil && st.raised != nil && s.Ran.Sentences-st.raised.Ran.Sentences < Enough && refuses.MatchString(text) {
		st.raised.Answered = true
	}
}

// refuses matches the answer to a request in uvicorn's access log that says that what was sent was wrong. A client that lacks
// a file or a right, and what else serves beside a training, writes other numbers or forms.
var refuses = lazy.New(`\d:\d+ - "POST \S+ HTTP/\d(?:\.\d)?" 4(?:00|22)\b`)

// A trap is a command that a script runs at its end, whatever ended it, as "set -x" shows it.
type trap struct {
	command string // as "set -x" writes it in the shell that set the trap
	at      int    // the value of Facts.told when it ran
}

// trapTalk is the number of lines that a trap may write. A script may run its command before its work, too.
const trapTalk = 12

// ran reports whether the trap was run near the told-th line.
func (t trap) ran(told int) bool { return t.at > 0 && told-t.at <= trapTalk }

// setsTrap matches the command that sets a trap for the end of a script or for a signal that ends it.
var setsTrap = lazy.New(`^(\++ )trap (?:-- )?(?:'([^';&|]+)[^']*'|(\S+)) (?:\S+ )*(?:SIG)?(?:EXIT|TERM|INT|HUP|0|1|2|15)\b`)

// read takes in the told-th line.
func (t *trap) read(text string, told int) {
	if !strings.HasPrefix(text, "+") {
		return
	}
	switch g := setsTrap.FindStringSubmatch(text); {
	case g != nil:
		*t = trap{command: strings.TrimSpace(g[1] + g[2] + g[3])}
	case text == "+ exit 0":
		*t = trap{} // the script reached its own end
	case text == t.command:
		t.at = told
	}
}

// LastWithoutEnd returns the last of the closing lines that meets a condition, if what was written after it has no words of
// an end and was written once: a process that is told to end still saves a part of its work.
func (f *Facts) LastWithoutEnd(meets func(text string) bool) (Mark, bool) {
	for _, m := range slices.Backward(tail(f.talk(), lastLines)) {
		_, text := logline.CutTag(m.Text)
		if meets(text) {
			return m, !f.iteratedSince(m.Off)
		}
		if f.saysEnd(m, text) || f.rows[form32(m.Tag, text)].times > 1 {
			break
		}
	}
	return Mark{}, false
}

// DoneBeforeSignal reports whether the last line, by which a process was told to end, tells nothing of the work: the
// script's own command sent the signal, the run had written its results, or a server says so behind words of an end.
func (f *Facts) DoneBeforeSignal(last string) bool {
	if ofServer.MatchString(last) && f.Ending().Said {
		return true
	}
	loop, _ := f.lastOfLoop() // what each round of a loop writes is no result of the run
	return slices.ContainsFunc(tail(f.talk(), lastLines), func(m Mark) bool {
		_, text := logline.CutTag(m.Text)
		return killsOwn.MatchString(text) ||
			keptResults.MatchString(text) && !takenBack(text) && !f.iteratedSince(m.Off) && f.rows[form32(m.Tag, text)].first > loop
	})
}

// ofServer matches the name of a server at the beginning of a line that it writes.
var ofServer = lazy.New(`(?i)^.{0,60}?\b(?:\w*server|tensorboard|uvicorn|gunicorn|hypercorn|nginx|redis|raylet)\b`)

// killsOwn matches the command, as "set -x" shows it, with which a script ends a process that it started. Signal 0 only asks.
var killsOwn = lazy.New(`^\++ (?:kill|pkill|killall) (?:-[^0]|[^-])`)

// keptResults matches words with which a program says that it wrote what it was run for. Settings and checkpoints are not that.
var keptResults = lazy.New(`(?i)\b(?:results?|metrics|scores|predictions?|generations|summary)\b.{0,24}\b(?:saved|written|stored)\b|` +
	`\b(?:saved|wrote|written|stored)\b.{0,24}\b(?:results?|metrics|scores|predictions?|generations|summary)\b|结果.{0,8}保存`)

// prompt matches a shell prompt, and how a person leaves the shell there. The shell prints it after its program ended, well or
// not; the line before it tells which.
var prompt = lazy.New(`^(?:\([\w.-]+\) ?)?(?:(?:\[[\w.-]+@[\w.-]+ [^\]]+\]|[\w.-]+@[\w.-]+:[^ $#]+) ?[$#]|(?:PS )?[A-Z]:\\[^<>|"]*>)\s*(?:exit)?$` +
	`|^(?:exit|logout)$`)

// AtPrompt reports whether the last line is a shell prompt, so that the shell's program has ended.
func (f *Facts) AtPrompt() bool {
	if len(f.Last) == 0 {
		return false
	}
	_, text := logline.CutTag(f.Last[len(f.Last)-1].Text)
	return prompt.MatchString(text)
}

// tail returns the last n of all.
func tail[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }
