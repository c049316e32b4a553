package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// manyCaught is how often a program must have gone on after an exception that shows that it catches all of the kind.
const manyCaught = 10

// catchesOften reports whether a job of one process raised the same exception at the same place many times and wrote on
// after each, and after this one as after the others. The last one may be the one after which it gave up.
func (j *job) catchesOften(e *scan.Event) bool {
	if e.Stack == nil || e.Stack.Uncaught || e.Tag != logline.NoTag {
		return false
	}
	frame, _ := e.Stack.Innermost()
	often, last := false, e
	for _, o := range j.events {
		if o.File != e.File || o.Stack == nil || o.Kind != e.Kind || o.Caught == 0 {
			continue
		}
		if of, _ := o.Stack.Innermost(); of == frame {
			often = often || o.Caught >= manyCaught
			if o.Off > last.Off {
				last = o
			}
		}
	}
	if !often || j.manyProcesses() || j.ranks() > 1 {
		return false
	}
	return last != e || j.files[e.File].WentOnAsBefore(e.Off)
}

// skips reports whether a rank with a log of its own says each time that it goes on after the same exception, which it raised
// several times, and the other logs end as those of a job that completed.
func (j *job) skips(e *scan.Event) bool {
	if !e.Doubted || e.Outermost() || j.fileRank[e.File] < 0 || j.deathSeen() || j.slurmFailed() {
		return false
	}
	frame, _ := e.Stack.Innermost()
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		of, _ := o.Stack.Innermost()
		return o.File == e.File && o.Doubted && o.Kind == e.Kind && of == frame && o.Caught >= scan.Enough
	}) && j.readsWell(e.File)
}
