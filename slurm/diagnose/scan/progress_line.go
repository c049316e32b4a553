package scan

import (
	"bytes"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
)

var (
	iterationWord = []byte("iteration")
	elapsedWord   = []byte("elapsed time per iteration")
)

// IsProgress reports whether a line is a trainer's report of an iteration.
func IsProgress(line []byte) bool {
	head := line[:min(len(line), 320)]
	if bytes.Contains(head, iterationWord) && bytes.Contains(head, elapsedWord) {
		return true
	}
	return false
}

// otherProgress matches the reports of trainers other than Megatron's own loop.
var otherProgress = lazy.New(`(?i)(?:^|[\s|\[(])(?:global_?step|step|iter|iteration)[ :=]+\d+ *(?:/|of) *\d+.*(?:loss|lr|s/it|it/s|time)|` +
	`(?:^|[\s|\[(])(?:global_?step|steps?|iters?|iteration|epoch)[ :=#]+\[?\d+\b.*\b(?:loss|lr|eta|time)(?: \w+)?(?:\W{1,4}\d|\W{1,12}(?:nan|inf)\b)|` +
	`^\{'loss': .*'epoch': |time \(ms\) \| fwd_microstep: |train_step_timing in s|` +
	`\d+/\d+ \[[\d:]+<[\d:?]+,.*(?:(?:it|step|batch|epoch)/s|s/(?:it|step|batch|epoch))|` +
	`^\| +(?:total_timesteps|iterations) +\| \d|^(?:\[epoch=\d+(?:/\d+)?\])?\[batch=\d+/\d+\]:$` + // Stable Baselines and Composer
	`|\] \[\d+\] (?:\w+=[^ ,]+, )*\w*loss=\d`) // clu

// healthy reports whether a piece of a log shows progress in its first three quarters, so that nothing
// before the piece matters for the end.
func healthy(piece []byte) bool {
	first := bytes.Index(piece, elapsedWord)
	return first >= 0 && first < len(piece)*3/4
}

// noteRecent keeps the last of the window's iteration lines.
func (s *scanner) noteRecent() {
	for _, p := range s.recent[max(0, len(s.recent)-s.keep):] {
		s.note(&s.Progress, Mark{Off: p.off, Text: string(s.window[p.from:min(p.to, p.from+logfile.MaxLineLength)])}, s.keep)
	}
	s.recent = s.recent[:0]
}

// How many iteration lines are kept, for detecting spikes and intervals: of one file at least and at
// most, and of all files together.
const (
	minProgress = 12
	maxProgress = 256
	allProgress = 16384
)
