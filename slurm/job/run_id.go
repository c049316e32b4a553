package job

import (
	"slices"
	"strings"
)

// runID returns the exports that make an experiment tracker record one run for jobs
// that continue one another: the attempts of a requeued job, the jobs of a chain, and
// the elements of an array that run one at a time. Each point of a sweep is a separate
// run, and so is each element of an array whose elements can run in parallel. A name
// that the user sets is kept.
func (r *rendering) runID() string {
	id := quote(r.Name) + "-$SLURM_JOB_ID"
	if r.Array != "" {
		id = quote(r.Name) + "-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}"
		if _, most, _ := strings.Cut(r.Array, "%"); most != "1" || len(r.Sweep) > 0 {
			id += "_$SLURM_ARRAY_TASK_ID"
		}
	}
	var lines []string
	for _, name := range r.runNames() {
		value := "${" + name + ":-" + id + "}"
		if name == "WANDB_RESUME" {
			value = "${WANDB_RESUME:-allow}"
		}
		lines = append(lines, "export "+name+"="+value)
	}
	if len(lines) == 0 {
		return ""
	}
	return "# One run for whoever tracks it, over requeues and the jobs of a chain.\n" + strings.Join(lines, "\n")
}

// runNames returns the variables that name the run for the trackers that the job uses,
// without those that the specification or a preset sets.
func (r *rendering) runNames() []string {
	if r.Minimal {
		return nil
	}
	uses := func(flag, prefix string) bool {
		return slices.ContainsFunc(r.Args, func(a string) bool { return strings.HasPrefix(a, flag) }) ||
			slices.ContainsFunc(append(sorted(r.Env), sorted(r.Container.Env)...), func(n string) bool { return strings.HasPrefix(n, prefix) })
	}
	var names []string
	if uses("--wandb-", "WANDB_") {
		names = append(names, "WANDB_RUN_ID", "WANDB_RESUME")
	}
	if uses("--mlflow-", "MLFLOW_") {
		names = append(names, "MLFLOW_RUN_NAME")
	}
	return slices.DeleteFunc(names, r.given)
}
