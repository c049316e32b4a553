package diagnose

import (
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// wrongUsage judges a job that ended and whose logs show nothing but a program's usage text at the end.
func (j *job) wrongUsage(live []*scan.Event) (verdict, bool) {
	running, known := j.given.running()
	if known && running || j.succeeded() || j.exitedOtherwise(live) {
		return verdict{}, false
	}
	for i, f := range j.files {
		if m := f.Usage; m != nil && len(f.Progress) == 0 {
			e := eventOf(i, *m)
			e.Class, e.Weight, e.Node = outcome.BadArgs, pattern.Generic, j.fileNode[i]
			return verdict{class: outcome.BadArgs, event: e, why: "a usage text"}, true
		}
	}
	return verdict{}, false
}

// exitedOtherwise reports whether launchers report exit codes and none of them is that of a wrong call.
// Exit code 1 counts only if the processes had worked or the report names a process, since scripts use
// it for others' failures.
func (j *job) exitedOtherwise(live []*scan.Event) (told bool) {
	worked := j.launched(live)
	for _, e := range live {
		if e.Exit == badUsageExit {
			return false
		}
		told = told || e.Agent && e.Exit != 0 && (e.Exit != 1 || e.Pid != "" || worked) && (e.First || !scan.ToldToEnd(e.Exit))
	}
	return told
}

// badUsageExit is the exit code of argparse and of most commands for a wrong command line.
const badUsageExit = 2
