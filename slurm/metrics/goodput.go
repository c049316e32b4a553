package metrics

import (
	"slices"
	"time"
)

// A Goodput is what became of the time for which a job held its GPUs, in seconds.
type Goodput struct {
	// Startup is until the first iteration began, Productive the training whose result
	// was kept, Lost the training since the last checkpoint of a job that did not
	// complete, and Idle the time after the last iteration.
	Startup    float64 `json:"startup_s"`
	Productive float64 `json:"productive_s"`
	Lost       float64 `json:"lost_s"`
	Idle       float64 `json:"idle_s"`
}

// clockSlack is how far the clocks of nodes and controller may differ.
const clockSlack = 30 * time.Second

// Goodput tells what became of the time from start to end, from the run's own
// iterations and checkpoints; ok is false where they do not tell. kept reports that
// all that was trained is of use: the job completed.
func (r Run) Goodput(start, end time.Time, kept bool) (g Goodput, ok bool) {
	total := end.Sub(start).Seconds()
	if total <= 0 {
		return g, false
	}
	its, shift, ok := r.within(start, end)
	if !ok {
		return g, false
	}
	if len(its) == 0 {
		g.Startup = total
		return g, true
	}
	first, last := its[0], its[len(its)-1]
	each := quantile(values(its, Elapsed), 0.5)
	stride := 1
	if len(its) > 1 {
		stride = max(1, its[1].N-first.N)
	}
	began := first.Time.Add(shift)
	if first.ElapsedMS != nil {
		began = began.Add(-time.Duration(*first.ElapsedMS * float64(stride) * float64(time.Millisecond)))
	}
	if began.Before(start) {
		began = start
	}
	// After the last iteration come a checkpoint and an evaluation, or nothing.
	grace := time.Minute
	if each != nil {
		grace += 2 * time.Duration(*each*float64(stride)*float64(time.Millisecond))
	}
	tail := end.Sub(last.Time.Add(shift))
	idle := max(0, tail-grace)
	trained := end.Sub(began) - idle
	g.Startup, g.Idle = began.Sub(start).Seconds(), idle.Seconds()
	if kept {
		g.Productive = trained.Seconds()
		return g, true
	}
	upTo := began
	for _, n := range r.Saved {
		for _, it := range its {
			if it.N <= n && n <= last.N && it.Time.Add(shift).After(upTo) {
				upTo = it.Time.Add(shift)
			}
		}
	}
	if slices.Contains(r.Saved, last.N) { // saved at its end, as by a signal
		upTo = began.Add(trained)
	}
	g.Productive = upTo.Sub(began).Seconds()
	g.Lost = (trained - upTo.Sub(began)).Seconds()
	return g, true
}

// within are the iterations between start and end, and what is added to their times: a
// log tells no zone. That of this machine is taken where the last iteration lies there
// by it, else the only one by which it does; false where several could be meant.
func (r Run) within(start, end time.Time) (its []Iteration, shift time.Duration, ok bool) {
	var timed []Iteration
	for _, it := range r.Iterations {
		if it.Time != nil {
			timed = append(timed, it)
		}
	}
	if len(timed) == 0 {
		return nil, 0, len(r.Iterations) == 0
	}
	newest := *slices.MaxFunc(timed, func(a, b Iteration) int { return a.Time.Compare(*b.Time) }).Time
	fits := func(shift time.Duration) bool {
		at := newest.Add(shift)
		return !at.Before(start.Add(-clockSlack)) && !at.After(end.Add(clockSlack))
	}
	y, m, d := newest.Date()
	shift = time.Date(y, m, d, newest.Hour(), newest.Minute(), newest.Second(), newest.Nanosecond(), time.Local).Sub(newest)
	if !fits(shift) {
		found := 0
		for z := -14 * time.Hour; z <= 12*time.Hour; z += 30 * time.Minute {
			if fits(z) {
				shift = z
				found++
			}
		}
		if found != 1 {
			return nil, 0, false
		}
	}
	for _, it := range timed {
		if !it.Time.Add(shift).Before(start.Add(-clockSlack)) {
			its = append(its, it)
		}
	}
	slices.SortFunc(its, func(a, b Iteration) int { return a.Time.Compare(*b.Time) })
	return its, shift, true
}
