package diagnose

import (
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
