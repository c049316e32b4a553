package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// ownReason returns the first line in which a process itself says why it exited, if the launcher's
// report only repeats that, or the error that the process logged before it; else the launcher's report.
func (j *job) ownReason(launchers *scan.Event, live []*scan.Event) *scan.Event {
	first := launchers
	for _, e := range live {
		same := e.Rank < 0 || launchers.Rank < 0 || e.Rank == launchers.Rank
		if launchers.Agent && !e.Agent && same && e.Class == launchers.Class && e.Class != outcome.UnknownExit && j.precedes(e, first) {
			first = e
		}
	}
	left := launchers.Agent && launchers.Weight == pattern.Exited && launchers.Class == outcome.UnknownExit
	if first != launchers || !left {
		return first
	}
	if own, _ := j.departure(launchers.Rank, launchers); own != nil {
		return own
	}
	if own := j.files[launchers.File].Complained(launchers, launchers.File); own != nil {
		return own
	}
	last := logfile.LastAttempts(j.src.Files())
	for i, f := range j.files {
		if launchers.Rank < 0 || i == launchers.File || logfile.Earlier(j.src.Logs[i].Name, last) || j.rankOf(i, logline.NoTag) != launchers.Rank {
			continue
		}
		if own := f.Complained(launchers, i); own != nil {
			return own
		}
	}
	return first
}

// departure returns what a rank wrote just before its process ended by itself, as an event like another
// one, or nil; and whether the process ended by itself.
func (j *job) departure(rank int, like *scan.Event) (said *scan.Event, left bool) {
	for i, f := range j.files {
		for _, d := range f.Departures {
			if rank < 0 || j.rankOf(i, d.Tag) != rank {
				continue
			}
			if left = true; d.Said.Text != "" {
				e := *like
				t, text := logline.CutTag(d.Said.Text)
				e.File, e.Off, e.Raw, e.Text, e.Tag, e.Agent, e.Exit = i, d.Said.Off, d.Said.Text, strings.TrimSpace(text), t, false, 0
				e.Class, e.Rank, e.Node, e.Before, e.After = outcome.UnknownExit, rank, j.nodeByRank(rank, j.nodesOfRanks()), d.Said.At, d.Said.At
				return &e, true
			}
		}
	}
	return nil, left
}

// logged judges the end of a process whose last statement is an error that it logged. It is an exception if the error
// has Python's words for one, or is nothing but its name; or if a launcher reports that the process then left by itself, unless it tells of an outside cause.
func (j *job) logged(v verdict) verdict {
	if v.class != outcome.UnknownExit || v.event == nil || v.event.Agent {
		return v
	}
	says := python.Says(v.event.Text)
	fatal := v.why == "nothing says why" && scan.ErrorLevel.MatchString(v.event.Text) && !outside.MatchString(v.event.Text) &&
		(v.event.Tag.Rank < 0 || v.event.Tag.Rank == v.event.Rank)
	switch {
	case python.Alone(v.event.Text) && !peerErrors.MatchString(v.event.Text):
		v.class, v.why, v.onlyLast = outcome.UserException, "first cause", false
	case !says && !fatal, pattern.FormOf(v.event.Text) != pattern.Statement:
	case says && !j.loggedBefore(v.event):
		v.class, v.why, v.onlyLast = outcome.UserException, "first cause", false
	case fatal:
		v.class, v.why, v.onlyLast = outcome.UserException, report.OwnWords, false
	}
	return v
}

// outside matches what happens to a process from outside, or to another one: its watcher may log that as fatal.
var outside = lazy.New(`(?i)\b(?:signal|SIG[A-Z]{2,5}|kill(?:ed|ing)?|died|dead|lost|losing|gone|vanished|crash(?:ed)?|unreachable|unresponsive|` +
	`not respond\w*|disconnect\w*|heartbeats?|timeout|timed[ -]out|preempt\w*|evict\w*|peers?|nodes?|workers?|child(?:ren)?|subprocess|nccl|xid|ecc|` +
	`exit(?:ed)?[ _-]?(?:code|status|with)|return(?:ed)?(?:[ _-]code)? -?\d+|out of memory|oom|connect\w*|unavailable)\b|信号|杀死|终止|超时|节点|断开|失联|内存不足|抢占`)

// loggedBefore reports whether a program logged such an error before and went on, as one does that skips the
// items it cannot process.
func (j *job) loggedBefore(e *scan.Event) bool {
	between := false
	for _, m := range slices.Backward(j.files[e.File].Last) {
		switch {
		case m.Off >= e.Off:
		case !python.Says(m.Text):
			between = true
		case between:
			return true
		}
	}
	return false
}

// saidLast judges a rank of which its launcher only reports that it left with 1, as after Python's sys.exit("message"), by
// the sentence with which its own lines end. A rank whose standard error has a file of its own wrote the message there, and
// so did the only rank of a node that left in silence, into the node's.
func (j *job) saidLast(v verdict) verdict {
	left := v.event
	if left == nil || !left.Agent || left.Exit != 1 || v.class != outcome.UnknownExit {
		return v
	}
	if left.Rank < 0 {
		m := j.files[left.File].LastSentence()
		if m == nil || left.Node == "" || !standardError.MatchString(j.src.Logs[left.File].Name) || !saidBefore(m, left) {
			return v
		}
		return ownWords(v, eventOf(left.File, *m))
	}
	var last, ofErrors *scan.Event
	for i, f := range j.files {
		for t, m := range f.LastBy {
			if j.old[i] || j.rankOf(i, t) != left.Rank {
				continue
			}
			switch e := eventOf(i, m); {
			case t == logline.NoTag && standardError.MatchString(j.src.Logs[i].Name):
				ofErrors = e
			case last == nil || last.Before.Before(m.At):
				last = e
			}
		}
	}
	e := cmp.Or(ofErrors, last)
	if e == nil || !j.files[e.File].SaidOnce(e.Tag, e.Text) || j.partingWords(left.Rank) == nil {
		return v
	}
	return ownWords(v, e)
}

// ownWords makes a sentence the cause of an exit, instead of a launcher's report.
func ownWords(v verdict, said *scan.Event) verdict {
	said.Rank, said.Node, said.Class, said.Weight = v.event.Rank, v.event.Node, outcome.UserException, pattern.Generic
	v.class, v.event, v.others, v.why = outcome.UserException, said, nil, report.OwnWords
	return v
}

// partingWords returns the last line of a rank on whose exit nobody reports, unless another rank's last line is the
// same but for its numbers; nil without one.
func (j *job) partingWords(rank int) (words *scan.Event) {
	common := map[string]struct{}{} // forms of the others' last lines
	for i, f := range j.files {
		for t, m := range f.LastBy {
			_, text := logline.CutTag(m.Text)
			switch r := j.rankOf(i, t); {
			case j.old[i] || r < 0 || pattern.AgentLine(text), slices.ContainsFunc(f.Departures, func(d scan.Departure) bool { return d.Off == m.Off }):
			case r != rank:
				common[logline.Template(text)] = struct{}{}
			case words == nil || words.Before.Before(m.At) || words.File == i && words.Off < m.Off:
				words = eventOf(i, m)
				words.Rank, words.Node = rank, j.nodeByRank(rank, j.nodesOfRanks())
			}
		}
	}
	if words == nil {
		return nil
	}
	if _, same := common[logline.Template(words.Text)]; same {
		return nil
	}
	return words
}
