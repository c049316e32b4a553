package diagnose

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// Times without output after which a running job counts as hung: at least the quiet times below, and
// quietFactor of its own iterations. From doubtFactor iterations on the report says that the job may
// hang.
const (
	quiet       = 10 * time.Minute
	quietPhase  = 20 * time.Minute // while the job saves, loads, evaluates or builds
	quietFactor = 15
	doubtFactor = 5
	doubtFloor  = 10 * time.Second // delay that buffers and file systems may cause
	longGone    = 24 * time.Hour   // a log of this age does not belong to a running job
)

// health judges a job without a failure: finished, running, or hung.
func (j *job) health() verdict {
	running, known := j.given.running()
	age, dated := j.age(now())
	_, iterates := j.lastIteration()
	told := j.lastSignal()
	switch {
	case told != nil:
		return verdict{class: outcome.SlurmCancelled, event: told, why: "nothing says why"}
	case j.given.state() == slurm.Pending:
		return verdict{class: outcome.Running, why: "not started"}
	case j.slurmFailed(): // whatever the program says of its own work
		return j.endedQuietly()
	case j.finished() && !(known && running && (j.stalled() || j.given.suspended())), j.slurmCompleted(), !running && j.endsWell() && j.account == nil:
		return verdict{class: outcome.Success, why: "finished"}
	case known && !running, !known && (!dated || age > longGone || j.stalled() && !iterates || j.saysOver()):
		return j.endedQuietly()
	case j.given.suspended():
		return verdict{class: outcome.Running, why: "suspended", since: age}
	case j.stalled():
		return verdict{class: outcome.Hang, why: "no progress", since: age, event: j.lastSign()}
	}
	return verdict{class: outcome.Running, why: "progress", since: age}
}

// now is the clock. Tests replace it.
var now = time.Now

// endedQuietly judges a job that ended and whose logs show neither a failure nor an end, by Slurm's
// state and the last lines.
func (j *job) endedQuietly() verdict {
	cancelled := firstEvent(j.events, func(e *scan.Event) bool { return e.Class == outcome.SlurmCancelled && e.Agent && !e.StepOnly() })
	switch {
	case j.given.state() == slurm.Cancelled:
		return j.endedAfterLastLine(outcome.SlurmCancelled, "slurm's state")
	case cancelled != nil && !j.slurmFailed(): // an error before it, which might have been the reason, was outlived
		return verdict{class: outcome.SlurmCancelled, event: cancelled, why: "slurm ended it"}
	case j.lastSign() == nil && slurm.NotLaunched(j.given.ExitCode):
		return verdict{class: outcome.EnvLaunch, why: "slurm's state"}
	case j.slurmFailed():
		return j.logged(j.endedAfterLastLine(outcome.UnknownExit, "slurm's state"))
	case strings.HasPrefix(j.given.ExitCode, "0:"), j.given.ExitCode == "0":
		return verdict{class: outcome.Success, why: "finished"}
	}
	return j.logged(j.endedAfterLastLine(outcome.UnknownExit, "nothing says how it ended"))
}

// endedAfterLastLine is the verdict on a job of which the logs show no cause: the last line, or Slurm's
// account of the job.
func (j *job) endedAfterLastLine(class, why string) verdict {
	e := j.lastSign()
	return verdict{class: class, event: e, onlyLast: e != nil && e != j.account, why: why}
}

// stalled reports whether the job has been silent for longer than its own pace explains, or has written
// other lines without progress for twice as long.
func (j *job) stalled() bool {
	age, known := j.age(now())
	if !known {
		return false
	}
	limit := quiet
	if j.inPhase() {
		limit = quietPhase
	}
	usual, longest := j.pace()
	usual = max(usual, j.iterationTime()) // bars and some trainers' lines have no times
	limit = max(limit, quietFactor*usual, min(2*longest, longestPause))
	if age > limit {
		return true
	}
	chatter, known := j.sinceProgress()
	return known && age+chatter > 2*limit
}

// sinceProgress returns how long the job has written other lines after its last iteration, by the times
// in its logs.
func (j *job) sinceProgress() (time.Duration, bool) {
	var progress, newest time.Time
	for _, f := range j.files {
		if f.LastTime.After(newest) {
			newest = f.LastTime
		}
		if n := len(f.Progress); n > 0 {
			if at, ok := logline.ParseTime(f.Progress[n-1].Text); ok && at.Year() != logline.Yearless && at.After(progress) {
				progress = at
			}
		}
	}
	chatter := newest.Sub(progress)
	// Two programs of one job may log in two time zones. Zones differ by whole quarters of an hour.
	const quarter = 15 * time.Minute
	apart := (chatter + quarter/2) % quarter
	zones := chatter > 2*quarter && apart > quarter/2-2*time.Minute && apart < quarter/2+2*time.Minute
	return chatter, !progress.IsZero() && newest.After(progress) && !zones
}

// inPhase reports whether the last line of any file announces a slow phase.
func (j *job) inPhase() bool {
	for _, f := range j.files {
		if f.Doing.Text != "" && (len(f.Progress) == 0 || f.Doing.Off > f.Progress[len(f.Progress)-1].Off) && !strings.Contains(f.Doing.Text, "training ...") {
			return true
		}
	}
	return false
}

// longestPause bounds by how much an earlier pause of the run may extend the limit for silence.
const longestPause = 2 * time.Hour

// readPace returns the median time between two reports of iterations, and the longest, such as over an
// evaluation or a checkpoint.
func (j *job) readPace() (usual, longest time.Duration) {
	var gaps []time.Duration
	for _, f := range j.files {
		var prev time.Time
		for _, m := range f.Progress {
			at, ok := logline.ParseTime(m.Text)
			if ok && !prev.IsZero() && at.After(prev) {
				gaps = append(gaps, at.Sub(prev))
			}
			if ok {
				prev = at
			}
			if ms, ok := numberAfter(m.Text, "elapsed time per iteration (ms): "); ok && prev.IsZero() {
				gaps = append(gaps, time.Duration(ms)*time.Millisecond)
			}
		}
	}
	if len(gaps) == 0 {
		return 0, 0
	}
	sort.Slice(gaps, func(a, b int) bool { return gaps[a] < gaps[b] })
	return gaps[len(gaps)/2], gaps[len(gaps)-1]
}

// iterationTime returns the median time of an iteration as the run reports it, else the median time
// between two reports.
func (j *job) iterationTime() time.Duration {
	var all []time.Duration
	for _, f := range j.files {
		for _, m := range f.Progress {
			if ms, ok := numberAfter(m.Text, "elapsed time per iteration (ms): "); ok {
				all = append(all, time.Duration(ms*float64(time.Millisecond)))
			} else if g := barRate.FindStringSubmatch(m.Text); g != nil {
				v, _ := strconv.ParseFloat(g[1]+g[3], 64)
				if g[2] != "" && v > 0 {
					v = 1 / v
				}
				all = append(all, time.Duration(v*float64(time.Second)))
			}
		}
	}
	if len(all) == 0 {
		return j.timeBetweenSteps()
	}
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	return all[len(all)/2]
}

// barRate matches the speed in a progress bar, or the time of a step that NeMo reports.
var barRate = lazy.New(`([\d.]+) ?(?:(?:it|step|batch|epoch)(/s)|s/(?:it|step|batch|epoch)\b)|\btrain_step_timing in s[:=] ?([\d.]+)`)

// mayHang reports whether a running job has been silent for longer than a few of its reports take.
func (j *job) mayHang() bool {
	age, known := j.age(now())
	usual, _ := j.pace()
	usual = max(usual, j.iterationTime())
	if !known || usual == 0 || j.inPhase() && age < quiet {
		return false
	}
	return age >= max(doubtFactor*usual, doubtFloor)
}

// numberAfter parses the number after a name in an iteration line.
func numberAfter(line, name string) (float64, bool) {
	i := strings.Index(line, name)
	if i < 0 {
		return 0, false
	}
	rest := strings.TrimLeft(line[i+len(name):], " ")
	end := strings.IndexAny(rest, " |")
	if end < 0 {
		end = len(rest)
	}
	v, err := strconv.ParseFloat(rest[:end], 64)
	return v, err == nil
}

// lastSign returns Slurm's account in a log, else the newest line of any rank, as an event. If one of two lines has no time, that of
// a file that reports iterations counts.
func (j *job) lastSign() *scan.Event {
	if j.account != nil {
		return j.account
	}
	var best *scan.Event
	iterates := false // the file of best
	for i, f := range j.files {
		m, reports := lastLine(f), len(f.Progress) > 0
		if m.Text == "" || j.old[i] {
			continue
		}
		better := best == nil || m.At.After(best.Before)
		if best != nil && reports != iterates && (m.At.IsZero() || best.Before.IsZero()) {
			better = reports
		}
		if better {
			best, iterates = eventOf(i, m), reports
		}
	}
	return best
}

// lastLine returns a file's last line, which may report an iteration; without text if there is none.
func lastLine(f *scan.Facts) (m scan.Mark) {
	if n := len(f.Last); n > 0 {
		m = f.Last[n-1]
	}
	if n := len(f.Progress); n > 0 && (f.Progress[n-1].Off > m.Off || m.Text == "") {
		m = f.Progress[n-1]
		m.At, _ = logline.ParseTime(m.Text)
	}
	return m
}

var notANumber = lazy.New(`(?i)(?:loss|grad norm)[^|:]*: *[-+]?(?:nan|inf)\b`)

// badNumbers judges a run that diverged by its own reports: NaN or infinite values that stay, a loss that
// jumped and stayed high, or one that was never a number.
func (j *job) badNumbers([]*scan.Event) (verdict, bool) {
	for i, f := range j.files {
		v, ok := diverged(f.Progress)
		if !ok {
			v, ok = f.NeverANumber()
		}
		if !ok {
			v, ok = f.NoNumberAnyMore()
		}
		if ok {
			e := eventOf(i, scan.Mark{Off: v.Off, Text: v.Text})
			e.Class, e.Node = outcome.NaNLoss, j.fileNode[i]
			return verdict{class: outcome.NaNLoss, why: "the numbers", event: e}, true
		}
	}
	return verdict{}, false
}

// spikeFactor is how many times its median a loss must stay at to count as diverged. A loss that may be
// negative, such as a log-likelihood, must besides rise by so many times the range in which it was.
const spikeFactor = 2

// diverged returns the first iteration line of a divergence that lasts until the end. It requires three
// bad lines in a row, because a run with loss scaling starts with a few infinite gradients.
func diverged(lines []scan.Mark) (scan.Mark, bool) {
	n := len(lines)
	run := 0
	for run < n && notANumber.MatchString(lines[n-1-run].Text) {
		run++
	}
	if run >= 3 || run == n && run >= 2 {
		return lines[n-run], true
	}
	if n < 6 {
		return scan.Mark{}, false
	}
	var losses []float64
	for _, m := range lines {
		if l, ok := numberAfter(m.Text, "lm loss: "); ok {
			losses = append(losses, l)
		}
	}
	if len(losses) != n {
		return scan.Mark{}, false
	}
	for start := n - 3; start >= 3; start-- {
		before := append([]float64(nil), losses[:start]...)
		sort.Float64s(before)
		median := before[len(before)/2]
		least, most := before[0], before[len(before)-1]
		limit := median + (spikeFactor-1)*math.Abs(median)
		if least <= 0 {
			limit = max(limit, median+spikeFactor*(most-least))
		}
		if slices.Min(losses[start:]) > limit {
			for start > 1 && losses[start-1] > limit {
				start--
			}
			return lines[start], true
		}
	}
	return scan.Mark{}, false
}
