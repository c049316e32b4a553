package diagnose

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"

// readsWell reports whether the last lines of the logs, but for one file, are those of a program that completed: they say
// so, or a counter reached its end.
func (j *job) readsWell(but int) bool {
	var all scan.Ending
	for i, f := range j.files {
		if j.old[i] || i == but {
			continue
		}
		e := f.Ending()
		if e.Sure {
			return e.Said
		}
		all.Said, all.Counted, all.Full, all.Short = all.Said || e.Said, all.Counted || e.Counted, all.Full || e.Full, all.Short || e.Short
	}
	return all.Full && !all.Short || all.Said && !all.Counted
}
