package slurm

// Reasons that are ours and not Slurm's.
const (
	// ReasonUnsettled is the reason of a job that has left the queue and whose end
	// the accounts do not have yet: ask again, it has neither failed nor completed.
	ReasonUnsettled = "AccountingPending"
	// ReasonVanished is the reason of an array's element of which Slurm kept no
	// record, as it does when one is cancelled before it starts.
	ReasonVanished = "NoRecord"
)
