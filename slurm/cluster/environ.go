package cluster

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// secretVariables names variables that a job must not inherit from this program: whole names, or
// prefixes that end in "_". Slurm before 26.05 passes SLURM_JWT on to the job.
var secretVariables = []string{"SLURM_JWT", "SLACK_", "OPENAI_", "MEGATRON_OPS_"}

// JobEnviron returns environ without SLURM_JWT and this program's secrets.
func JobEnviron(environ []string) []string {
	return slurm.WithoutVariables(environ, secretVariables)
}

// narrowingPrefixes are prefixes of variables with which a person's shell would change the
// result of a query, such as SQUEUE_USERS.
var narrowingPrefixes = []string{"SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SCANCEL_", "SPRIO_", "SSHARE_"}

// queryEnviron returns the environment of a query: a fixed language and time format,
// and none of the variables that narrow the result.
func queryEnviron(environ []string) []string {
	kept := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return slices.ContainsFunc(narrowingPrefixes, func(p string) bool { return strings.HasPrefix(entry, p) })
	})
	// By default Slurm cuts a list of array tasks to 64 characters.
	return append(kept, "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0")
}

// withDefaults adds the variables names from environ to entries where entries lacks
// them. sbatch itself needs them where the caller gives the job's whole environment.
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
