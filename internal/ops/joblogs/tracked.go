package joblogs

import (
	"cmp"
	"io"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// How much of both ends of a log is read, in bytes: a tracker prints its run's address
// when training begins, and again at its end.
const (
	trackedHead = 4 << 20
	trackedTail = 256 << 10
)

// TextTracked is the label of the address.
var TextTracked = lang.Text{EN: "tracked at", ZH: "实验记录"}

// trackedBy returns the address of a job's run at its experiment tracker, as the job's
// own output prints it; "" where it prints none, or cannot be read from here.
func trackedBy(folders *within.Folders, paths []string, j slurm.Job) string {
	at := ""
	for _, p := range paths {
		if p == j.Stdout || p == j.Stderr {
			at = cmp.Or(trackedIn(folders, p), at)
		}
	}
	return at
}

// trackedIn searches both ends of a log.
func trackedIn(folders *within.Folders, path string) (at string) {
	readParts(folders, path, func(f io.ReaderAt, size int64) {
		at = metrics.TrackedIn([]byte(partOf(f, 0, trackedHead)))
		at = cmp.Or(metrics.TrackedIn([]byte(partOf(f, max(size-trackedTail, trackedHead), trackedTail))), at)
	})
	return at
}
