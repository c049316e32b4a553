package outbox

// These suffixes, added to the lane of a job's card, name the lane of the card's thread and the
// lane of the files in that thread. Files have a lane of their own so that a slow upload never
// delays the thread's messages.
const (
	LaneOfThread = "/thread"
	LaneOfFiles  = "/files"
)
