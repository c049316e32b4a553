package diagnose

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// readsWell reports whether the last lines of the logs are those of a program that completed: they say
// so, or a counter reached its end.
func (j *job) readsWell() bool {
	var all scan.Ending
	for i, f := range j.files {
		if j.old[i] {
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

// doneBeside reports whether only a program tells, in a file of standard error, of a process that failed, and the file of its
// standard output says that the run completed.
func (j *job) doneBeside(file int) bool {
	name := j.src.Logs[file].Name
	if !j.finished() || !standardError.MatchString(name) || pattern.AgentLine(j.files[file].Failed.Text) {
		return false
	}
	output := strings.NewReplacer(".err", ".out", "stderr", "stdout").Replace(name)
	for i, l := range j.src.Logs {
		if l.Name == output {
			return j.files[i].Finished != nil
		}
	}
	return false
}
