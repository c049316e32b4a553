package metrics

import (
	"slices"
	"time"
)

// Goodput says how a job used the time for which it held its GPUs, in seconds.
type Goodput struct {
	// Startup is the time until the first iteration began. Productive is the training whose result was
	// kept. Lost is the training since the last checkpoint of a job that did not complete. Idle is the
	// time after the last iteration.
	Startup    float64 `json:"startup_s"`
	Productive float64 `json:"productive_s"`
	Lost       float64 `json:"lost_s"`
	Idle       float64 `json:"idle_s"`
}

// clockSlack is how far the clocks of the nodes and of Slurm's controller may differ.
const clockSlack = 30 * time.Second

// Goodput says how the job used the time from start to end, by the times of its iterations and
// checkpoints; ok is false where these do not tell. kept says that no training was lost, because the
// job completed.
func (r Run) Goodput(start, end time.Time, kept bool) (g Goodput, ok bool) {
	total := end.Sub(start).Seconds()
	if total <= 0 {
		return g, false
	}
	its, shift, ok := r.iterationsBetween(start, end)
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
	// A checkpoint and an evaluation may follow the last iteration.
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
	if slices.Contains(r.Saved, last.N) { // saved at the end of the job, such as after a signal
		upTo = began.Add(trained)
	}
	g.Productive = upTo.Sub(began).Seconds()
	g.Lost = (trained - upTo.Sub(began)).Seconds()
	return g, true
}

// iterationsBetween returns the iterations between start and end, and the shift to add to their times,
// since log lines name no time zone. It tries this machine's zone first: the last iteration must fall
// between start and end. Else it takes the only zone that meets this condition; ok is false where
// several zones do, or none.
func (r Run) iterationsBetween(start, end time.Time) (its []Iteration, shift time.Duration, ok bool) {
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
