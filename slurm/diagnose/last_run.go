package diagnose

import (
	"path"
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// manyProcesses reports whether several processes of the job may write into one file: the run says so,
// srun names a second task, or a process lost another.
func (j *job) manyProcesses() bool {
	return j.world > 1 || slices.ContainsFunc(j.files, func(f *scan.Facts) bool {
		return slices.ContainsFunc(f.Events, func(e *scan.Event) bool {
			return slices.ContainsFunc(e.Tasks, func(t int) bool { return t > 0 }) || e.Class == outcome.NCCLConnection && e.Weight < pattern.Specific
		})
	})
}

// lastRun finds the offset of the last run in a file with several runs, and their number; -1 for one
// run. Each run ended with a failure of one program: for another reason than its failure before, or so many
// lines after a failure that the programs between did not need the one that failed. Or a person interrupted
// it after another program had ended.
func (j *job) lastRun(i int) (from int64, runs int) {
	from, runs = -1, 1
	f := j.files[i]
	if len(f.Ranks)+len(f.Labels)+len(f.Locals)+len(f.Elastic) > 0 || j.manyProcesses() {
		return // the apparent runs may be ranks
	}
	var before *scan.Event
	ran := "" // the program that failed in the run
	for _, e := range f.Events {
		program := scan.ProgramOf(e)
		if e.Counts() && e.Stack != nil && len(e.Stack.Frames) > 0 && path.Base(e.Stack.Frames[0].File) == ran {
			program = ran // Hydra prints the stack from the program's own function on
		}
		if program == "" {
			continue
		}
		if before != nil && scan.Complaint.MatchString(e.Text) && logline.Template(before.Text) == logline.Template(e.Text) {
			continue // another rank refuses the same
		}
		if before != nil && (program == ran && before.Text != e.Text || program != ran && python.Outside.MatchString(e.Kind) ||
			e.Ran.Sentences-before.Ran.Sentences >= scan.LongTail && !lacks(e)) {
			from, runs = before.Off+1, runs+1
		}
		before, ran = e, program
	}
	return from, runs
}
