package cluster

import (
	"slices"
	"strings"
)

// secret names what a job must not inherit from us: a whole name, or a prefix
// that ends in "_". Slurm before 26.05 hands SLURM_JWT on to the job.
var secret = []string{"SLURM_JWT", "SLACK_", "OPENAI_", "MEGATRON_OPS_"}

// JobEnviron returns environ without what a job must not see: SLURM_JWT and our
// own secrets.
func JobEnviron(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(secret, func(s string) bool {
			return name == s || strings.HasSuffix(s, "_") && strings.HasPrefix(name, s)
		})
	})
}

// steering are prefixes of variables by which a person's shell would change what
// a query answers, such as SQUEUE_USERS.
var steering = []string{"SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SCANCEL_", "SPRIO_", "SSHARE_"}

// queryEnviron returns the environment of a command that asks: one language, one
// form of times, and nothing of the person's shell that narrows the answer.
func queryEnviron(environ []string) []string {
	kept := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return slices.ContainsFunc(steering, func(p string) bool { return strings.HasPrefix(entry, p) })
	})
	// Slurm cuts a list of array tasks to 64 characters unless it is told not to.
	return append(kept, "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0")
}

// withDefaults adds those entries of environ whose names entries lacks: what
// sbatch itself needs to run where a job's environment is given whole.
func withDefaults(entries, environ []string, names ...string) []string {
	entries = slices.Clone(entries)
	for _, name := range names {
		has := func(e string) bool { return strings.HasPrefix(e, name+"=") }
		if slices.ContainsFunc(entries, has) {
			continue
		}
		if i := slices.IndexFunc(environ, has); i >= 0 {
			entries = append(entries, environ[i])
		}
	}
	return entries
}
