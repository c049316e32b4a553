package joblogs

import (
	"cmp"
	"io"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// How much of the two ends of a log is looked at: a tracker tells of its run when
// training begins, and again at its end.
const (
	trackedHead = 4 << 20
	trackedTail = 256 << 10
)

// TextTracked is what the address is called.
var TextTracked = lang.Text{EN: "tracked at", ZH: "实验记录"}

// trackedBy is the address of a job's run at its tracker of experiments, as its own
// output has it; empty where it has none, or cannot be read from here.
func trackedBy(folders *within.Folders, paths []string, j slurm.Job) string {
	at := ""
	for _, p := range paths {
		if p == j.Stdout || p == j.Stderr {
			at = cmp.Or(trackedIn(folders, p), at)
		}
	}
	return at
}

// trackedIn looks at the two ends of a log.
func trackedIn(folders *within.Folders, path string) string {
	f, err := folders.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	at := ""
	for _, part := range []struct{ from, most int64 }{{0, trackedHead}, {max(info.Size()-trackedTail, trackedHead), trackedTail}} {
		text, err := io.ReadAll(io.NewSectionReader(f, part.from, part.most))
		if err != nil {
			return at
		}
		at = cmp.Or(metrics.TrackedIn(text), at)
	}
	return at
}
