package slurm

import "strings"

// endReasons are the known reasons that tell how a job ended, in the words of
// Reasons; the others tell why one waits. Slurm leaves the last of those in the
// record of a job that has ended, also of one that was cancelled as it waited.
var endReasons = []string{
	"TimeLimit", "InactiveLimit", "NonZeroExitCode", "RaisedSignal*", "OutOfMemory", "JobLaunchFailure", "SystemFailure", "PrologFailed", "NodeDown",
	"BootFailure", "NetworkError", "DependencyNeverSatisfied", "DeadLine", "Unable to load job *", "MaxRequeue",
	"Reservation *, which this job was running under, has ended", "Job is at or exceeds *", ReasonUnsettled, ReasonVanished,
}

// Why is the reason why the job waits or how it ended; empty where none is given,
// or where a job that has ended only has the one that it once waited for.
func (j Job) Why() string {
	if j.Reason == "None" {
		return ""
	}
	if _, known := KnownReason(j.Reason); !known || !j.State.Ended() {
		return j.Reason
	}
	word, _, _ := strings.Cut(j.Reason, ",")
	for _, end := range endReasons {
		if fits(end, j.Reason) || end == word {
			return j.Reason
		}
	}
	return ""
}
