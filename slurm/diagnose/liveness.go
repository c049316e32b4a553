package diagnose

import (
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// liveness adds how a running job progresses.
func (j *job) liveness(r *report.Report) {
	if step := j.iterationTime(); step > 0 {
		s := float64(step.Milliseconds()) / 1000
		r.StepS = &s
	}
	if age, known := j.age(now()); known {
		s := int64(age.Seconds())
		r.AgeS = &s
	}
	r.MayHang = r.Class == outcome.Running && j.mayHang()
}
