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

// wroteBefore reports whether the process that left wrote the sentence. Its own standard error shows that if it
// complains of no other rank. One of several ranks shows it if not all of them complain, and the sentence is recent.
func (j *job) wroteBefore(file int, m *scan.Mark, left *scan.Event, live []*scan.Event) bool {
	complaints, closed := 0, 0
	for _, e := range live {
		if e.File == file && misses(e) && !launcherRaised(e) && e.Class != outcome.UnknownExit {
			complaints++
		}
	}
	if j.rankOf(file, logline.NoTag) >= 0 {
		return complaints == 0
	}
	for _, e := range j.events {
		if e.File == file && strings.Contains(e.Text, " closing signal ") {
			closed++
		}
	}
	return m.Off < left.Off && complaints <= closed && !m.At.IsZero() && left.When().Sub(m.At) < 2*time.Minute
}
