package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// liveness adds how a running job progresses.
func (j *job) liveness(r *report.Report) {
	if step := j.iterationTime(); step > 0 {
		s := float64(step.Milliseconds()) / 1000
		r.StepS = &s
	}
	wrote := slices.ContainsFunc(j.src.Logs, func(f *logfile.File) bool { return f.Size > 0 || f.Kept != nil })
	if age, known := j.age(now()); known && (wrote || r.Class == outcome.Hang) { // an empty file has no last line
		s := int64(max(0, age).Seconds()) // the file server's clock may be ahead
		r.AgeS = &s
	}
	r.MayHang = r.Class == outcome.Running && !j.given.suspended() && j.mayHang()
}
