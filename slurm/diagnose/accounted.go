package diagnose

import (
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// readAccount takes the state of the job from Slurm's account at the end of a log, if the caller does not
// know it.
func (j *job) readAccount() {
	if j.given.slurmSays() || j.given.Array {
		return
	}
	for i, f := range j.files {
		a, ok := ownAccount(path.Base(j.src.Logs[i].Name), f.Accounts())
		if !ok {
			continue
		}
		state, ok := slurm.KnownState(a.State)
		if !ok || !state.Explain().Ended {
			continue
		}
		j.given.JobState, j.account = string(state), eventOf(i, a.Mark)
		if j.given.ExitCode == "" {
			j.given.ExitCode = a.Exit
		}
	}
}

// ownAccount returns the account of the job that wrote a log: the one whose id is in the log's name. A name
// without a number that may be an id leaves the only job that there are accounts of, if most of the log comes
// before its account: a run that continues another one's work may begin with that one's.
func ownAccount(name string, all []scan.Account) (own scan.Account, ok bool) {
	numbers := idInName.FindAllString(name, -1)
	long := func(n string) bool { return len(n) >= 4 }
	others := false
	for _, a := range all {
		if slices.ContainsFunc(a.Jobs, func(id string) bool {
			return slices.Contains(numbers, id) || strings.Contains(name, id) && strings.Contains(id, "_")
		}) {
			own, ok = a, true
		}
		others = others || !slices.Equal(a.Jobs, all[0].Jobs)
	}
	if ok || len(all) == 0 || others || len(all[0].Jobs) > 0 && slices.ContainsFunc(numbers, long) {
		return own, ok
	}
	last := all[len(all)-1]
	return last, last.Behind <= last.Before
}

// lastBeforeAccount reports whether an event is the last that a log tells before Slurm's account of a job,
// which is no word of the program's own.
func (j *job) lastBeforeAccount(e *scan.Event) bool {
	return slices.ContainsFunc(j.files[e.File].Accounts(), func(a scan.Account) bool {
		return a.Off > e.Off && a.Before-e.Ran.Sentences < scan.Enough
	})
}

// idInName matches the numbers in a log's name.
var idInName = lazy.New(`\d+`)
