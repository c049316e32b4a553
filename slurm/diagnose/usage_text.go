package diagnose

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A usage is a usage text within a stream: what a program prints that was called
// wrongly, or was asked for help.
type usage struct {
	lines int  // so far; 0: the stream is in none
	bare  bool // the last line was the word alone: how to call it comes next
	head  mark
}

// usageSection heads a part of a usage text.
var usageSection = lazy.New(`^[\w -]+:$`)

// has reports whether the stream's next line belongs to a usage text.
func (u *usage) has(text string) bool {
	trimmed := strings.TrimLeft(text, " \t")
	if word := trimmed[:min(len(trimmed), 6)]; strings.EqualFold(word, "usage:") && !strings.Contains(trimmed, "error:") {
		*u = usage{lines: 1, bare: len(trimmed) == len(word)}
		return true
	}
	if u.lines == 0 {
		return false
	}
	if u.bare || len(trimmed) < len(text) || strings.HasPrefix(trimmed, "[-") || strings.HasPrefix(trimmed, "-") || usageSection.MatchString(trimmed) {
		u.lines, u.bare = u.lines+1, false
		return true
	}
	*u = usage{}
	return false
}

// usageAtEnd notes the usage text with which a stream ends.
func (s *scanner) usageAtEnd(u usage) {
	if u.lines >= enough {
		s.facts.usage = &u.head
	}
}

// calledWrongly is for a job that ended, of which nothing else is known than
// that a program printed at last how it is to be called.
func (j *job) calledWrongly(live []*event) (verdict, bool) {
	running, known := j.given.running()
	if known && running || j.didWell() || j.leftOtherwise(live) {
		return verdict{}, false
	}
	for i, f := range j.files {
		if m := f.usage; m != nil && len(f.progress) == 0 {
			t, text := untag(m.text)
			e := &event{file: i, off: m.off, raw: m.text, text: text, tag: t, class: BadArgs, weight: generic, rank: -1, node: j.fileNode[i], before: m.at}
			return verdict{class: BadArgs, event: e, why: "a usage text"}, true
		}
	}
	return verdict{}, false
}

// leftOtherwise reports whether launchers tell with which codes processes left, and
// none is the one of a wrong call. A script says 1 for others, unless they had worked.
func (j *job) leftOtherwise(live []*event) (told bool) {
	worked := j.launched(live)
	for _, e := range live {
		if e.exit == badUsage {
			return false
		}
		told = told || e.agent && e.exit != 0 && (e.exit != 1 || e.pid != "" || worked) && (e.first || !toldToEnd(e.exit))
	}
	return told
}

// badUsage is argparse's exit code, and that of most commands.
const badUsage = 2
