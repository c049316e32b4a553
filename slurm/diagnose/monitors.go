package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// unheard are the monitors' words that they heard nothing of a rank for too long, by rank and by the stream of the rank's node.
type unheard struct {
	ranks   map[int]bool
	streams map[launcher]*scan.Event // the first of each
}

func (j *job) unheard() unheard {
	u := unheard{map[int]bool{}, map[launcher]*scan.Event{}}
	for _, e := range j.events {
		if e.Class != outcome.Hang {
			continue
		}
		u.ranks[e.Rank] = true
		if l := (launcher{e.File, e.Tag.Label}); u.streams[l] == nil {
			u.streams[l] = e
		}
	}
	delete(u.ranks, -1)
	return u
}

// killed reports whether a launcher's report is that on a rank that its monitor killed because it hung. A launcher may not name the rank.
func (u unheard) killed(e *scan.Event) bool {
	if e.Class != outcome.HostOOM || e.Weight != pattern.Death || !e.Agent || len(e.Tasks) > 0 {
		return false
	}
	first := u.streams[launcher{e.File, e.Tag.Label}]
	return u.ranks[e.Rank] || e.Tag.Rank < 0 && first != nil && first.Off < e.Off && (first.Tag.Host == "" || first.Tag.Host == e.Tag.Host)
}

// beforeMonitors leaves out what ranks complain of after a monitor killed one of them: they lost that one.
func (j *job) beforeMonitors(live []*scan.Event) []*scan.Event {
	var first *scan.Event
	for _, e := range live {
		if e.Class == outcome.Hang && (first == nil || j.precedes(e, first)) {
			first = e
		}
	}
	if first == nil {
		return live
	}
	return slices.DeleteFunc(slices.Clone(live), func(e *scan.Event) bool { return e.Class != outcome.Hang && misses(e) && !j.precedes(e, first) })
}

// quiet reports whether a verdict has no line as its cause: the job ended well, goes on, or just stopped writing.
func (v verdict) quiet() bool {
	return report.QuietClass(v.class) && v.why != "only collectives complained"
}
