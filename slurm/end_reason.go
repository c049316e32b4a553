package slurm

import "strings"

// endReasons are the patterns of Reasons that say how a job ended; all other reasons
// say why a job waits. Slurm leaves the last waiting reason in the record of a job that
// has ended, even if the job was cancelled while it waited.
var endReasons = []string{
	"TimeLimit", "InactiveLimit", "NonZeroExitCode", "RaisedSignal*", "OutOfMemory", "JobLaunchFailure", "SystemFailure", "PrologFailed", "NodeDown",
	"BootFailure", "NetworkError", "DependencyNeverSatisfied", "DeadLine", "Unable to load job *", "MaxRequeue",
	"Reservation *, which this job was running under, has ended", "Job is at or exceeds *", ReasonUnsettled, ReasonVanished,
}

// Why returns the reason why the job waits or how it ended. It is empty where Slurm
// gives no reason, or where a job that has ended still carries only the reason for
// which it once waited.
func (j Job) Why() string {
	if j.Reason == "None" {
		return ""
	}
	if _, known := KnownReason(j.Reason); !known || !j.State.Ended() {
		return j.Reason
	}
	word, _, _ := strings.Cut(j.Reason, ",")
	for _, end := range endReasons {
		if matchesPattern(end, j.Reason) || end == word {
			return j.Reason
		}
	}
	return ""
}

// CancelledBy returns who cancelled the job, as the accounts tell: "uid 1001", or a name.
// It is empty where they do not, and for any other job.
func (j Job) CancelledBy() string {
	who, told := strings.CutPrefix(j.Reason, "by ")
	if !told || j.State != Cancelled {
		return ""
	}
	return who
}
