package outbox

// The lanes below a card's message: its thread, and the files in that thread,
// which never hold the news up.
const (
	LaneOfThread = "/thread"
	LaneOfFiles  = "/files"
)
