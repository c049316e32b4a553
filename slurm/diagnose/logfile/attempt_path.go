package logfile

import (
	"path"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Paths of a rank's output: the folder that a rendered script makes for each attempt, torchrun's
// attempt_0/3/stdout.log below its log folder, and 0/3/stdout.log of PyTorch before 2.
var (
	attemptName = lazy.New(`(?:^|/)attempt-(\d+)/`)
	AttemptPath = lazy.New(`(?:^|/)attempt_(\d+)/(\d+)/(?:stdout|stderr)(?:\.log)?(?:\.gz|\.zst)?$`)
	PlainPath   = lazy.New(`(?:^|/)(\d+)/(\d+)/(?:stdout|stderr)\.log$`)
)

// attemptsOf returns the numbers of the attempts to which a path belongs, the job's and torchrun's
// within it, by the folder that holds those attempts.
func attemptsOf(name string) map[string]int {
	of := map[string]int{}
	for _, re := range []*lazy.Pattern{attemptName, AttemptPath} {
		if m := re.FindStringSubmatchIndex(name); m != nil {
			n, _ := strconv.Atoi(name[m[2]:m[3]])
			of[path.Clean(name[:m[0]])] = n
		}
	}
	return of
}

// LastAttempts returns the number of the newest attempt in each folder that holds attempts.
func LastAttempts(names []string) map[string]int {
	last := map[string]int{}
	for _, name := range names {
		for dir, n := range attemptsOf(name) {
			last[dir] = max(last[dir], n)
		}
	}
	return last
}

// Earlier reports whether a file belongs to an attempt before the last.
func Earlier(name string, last map[string]int) bool {
	for dir, n := range attemptsOf(name) {
		if n < last[dir] {
			return true
		}
	}
	return false
}

// Restarts returns how many times torchrun's agents restarted, all agents added up, by the folders of
// their attempts. When one agent restarts, all do, even those whose ranks wrote nothing afterwards.
func Restarts(names []string) int {
	agents, last := map[string]bool{}, 0
	for _, name := range names {
		if m := AttemptPath.FindStringSubmatchIndex(name); m != nil {
			attempt, _ := strconv.Atoi(name[m[2]:m[3]])
			agents[name[:m[0]]], last = true, max(last, attempt)
		}
	}
	return last * len(agents)
}
