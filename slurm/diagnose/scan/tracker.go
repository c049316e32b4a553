package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// trackers begin the lines of experiment trackers. They report on the record of the run, not on the
// program.
var trackers = []string{"wandb:", "swanlab:", "COMET ", "[neptune] ", "ClearML ", "🏃 View run ", "🧪 View experiment "}

func ofTracker(text string) bool {
	for _, t := range trackers {
		if strings.HasPrefix(text, t) {
			return true
		}
	}
	return false
}

// recordClosed matches a tracker's last lines about a run, however it ended.
var recordClosed = lazy.New(`^wandb: (?:Synced|.*process to finish.*\(success\)|Find logs at|.*View run .*at: |.*wandb sync )|^swanlab: .*(?:complete|finished)|^COMET INFO: +Uploading|` +
	`^\[neptune\] .*(?:stopped|synced)|^🏃 `)

// tracked handles a tracker's line.
func (s *scanner) tracked(text string, off int64) {
	s.lastOff = off
	if recordClosed.MatchString(text) {
		ran := s.Ran
		s.synced, s.opening.over = &ran, true
	}
}
