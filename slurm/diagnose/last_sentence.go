package diagnose

import (
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// lastSentence judges a job of which a launcher reports that exactly one rank of a standard error left with 1, and of
// which that standard error ends with a sentence that no logger wrote, as after Python's sys.exit("message"). The
// others only miss that rank.
func (j *job) lastSentence(live []*scan.Event) (v verdict, ok bool) {
	for i, f := range j.files {
		m := f.LastSentence()
		if m == nil || j.old[i] || !standardError.MatchString(j.src.Logs[i].Name) {
			continue
		}
		left := j.leftWithOne(i, live)
		if left == nil || !j.wroteBefore(i, m, left, live) {
			continue
		}
		if ok && v.event.Rank != left.Rank {
			return verdict{}, false
		}
		e := eventOf(i, *m)
		e.Rank, e.Node, e.Class, e.Weight = left.Rank, left.Node, outcome.UserException, pattern.Generic
		v, ok = verdict{class: outcome.UserException, event: e, why: report.OwnWords}, true
	}
	return v, ok
}

// standardError matches the names of files that hold the standard error alone.
var standardError = lazy.New(`(?:\.err|stderr(?:\.log|\.txt)?)(?:\.gz|\.zst)?$`)

// leftWithOne returns a launcher's report on the only rank that left with exit code 1 by itself: of those in a file, or
// the rank to which the file belongs.
func (j *job) leftWithOne(file int, live []*scan.Event) (only *scan.Event) {
	own := j.rankOf(file, logline.NoTag)
	for _, e := range live {
		switch {
		case !e.Agent || e.Exit == 0 || scan.ToldToEnd(e.Exit) || e.Rank < 0 || len(e.Tasks) > 1,
			own >= 0 && e.Rank != own, own < 0 && e.File != file:
		case e.Exit != 1 || only != nil && only.Rank != e.Rank:
			return nil
		default:
			only = e
		}
	}
	return only
}

// wroteBefore reports whether the process that left wrote the sentence, and left first. Its own standard error shows the
// former if it complains of no other rank. One of several ranks shows it if not all of them complain, and the sentence is
// recent; it may still be another rank's, so that nothing else may explain the end.
func (j *job) wroteBefore(file int, m *scan.Mark, left *scan.Event, live []*scan.Event) bool {
	complaints, closings, all := map[int]int{}, 0, complaintsOfPeers(live) // complaints by file
	for _, e := range all {
		complaints[e.File]++
	}
	if leftOtherwise(left, live) {
		return false
	}
	if j.rankOf(file, logline.NoTag) >= 0 {
		return complaints[file] == 0
	}
	for _, e := range j.events {
		if e.File == file && strings.Contains(e.Text, " closing signal ") {
			closings++
		}
	}
	return saidBefore(m, left) && complaints[file] <= closings &&
		allClosed(all) && j.allComplain(file, complaints, live) && j.nodeWithoutLog() == nil
}

// saidBefore reports whether a sentence was written before a launcher's report, and not long before.
func saidBefore(m *scan.Mark, left *scan.Event) bool {
	return m.Off < left.Off && !m.At.IsZero() && left.When().Sub(m.At) < 2*time.Minute
}

// leftOtherwise reports whether a rank other than the one that left with 1 ended by another exit code, which the loss of a
// rank does not explain.
func leftOtherwise(left *scan.Event, live []*scan.Event) bool {
	return firstEvent(live, func(e *scan.Event) bool {
		return e.Agent && e.Exit != 0 && e.Exit != 1 && !scan.ToldToEnd(e.Exit) && e.Rank != left.Rank
	}) != nil
}

// allComplain reports whether each other launcher that tells of failed ranks, or that a signal ended it, has as many
// complaints in its file: none of its ranks left in silence.
func (j *job) allComplain(file int, complaints map[int]int, live []*scan.Event) bool {
	failed := map[int]map[int]struct{}{} // ranks by file
	for _, e := range live {
		told := scan.DeathSignal.MatchString(e.Text)
		if e.File == file || len(e.Tasks) > 0 || !told && (!e.Agent || e.Exit == 0 || scan.ToldToEnd(e.Exit)) {
			continue
		}
		if failed[e.File] == nil {
			failed[e.File] = map[int]struct{}{}
		}
		failed[e.File][e.Rank] = struct{}{}
	}
	for f, ranks := range failed {
		if len(ranks) > complaints[f] {
			return false
		}
	}
	return true
}
