package metrics

import (
	"strconv"
	"strings"
	"time"
)

// A WatchedGPU holds what a running job's script recorded of one GPU at intervals (preset gpu-use).
type WatchedGPU struct {
	Node  string
	GPU   int
	Looks []GPULook // oldest first
}

// A GPULook is one sample of a GPU. BusyPct is the share of about one second in which a kernel ran;
// this includes a kernel that only waits for other ranks.
type GPULook struct {
	At      time.Time
	BusyPct float64
	UsedMB  float64
}

// A GPU counts as idle after several idle samples over a time longer than any checkpoint or evaluation
// takes.
const (
	idleLooks = 4
	// idleAfter is the time over which every sample must show an idle GPU.
	idleAfter = 20 * time.Minute
)

// ReadGPULooks parses the file that a job's script writes for one node: lines of Unix time, GPU index,
// busy percent and used MiB. It skips other lines, such as an incomplete first one.
func ReadGPULooks(node, text string) []WatchedGPU {
	at := map[int]int{}
	var all []WatchedGPU
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 4 {
			continue
		}
		var n [4]int64
		ok := true
		for i, word := range f {
			v, err := strconv.ParseInt(word, 10, 64)
			n[i], ok = v, ok && err == nil && v >= 0
		}
		if !ok || n[1] > 1<<16 || n[2] > 100 {
			continue
		}
		gpu := int(n[1])
		i, seen := at[gpu]
		if !seen {
			i, at[gpu] = len(all), len(all)
			all = append(all, WatchedGPU{Node: node, GPU: gpu})
		}
		all[i].Looks = append(all[i].Looks, GPULook{time.Unix(n[0], 0), float64(n[2]), float64(n[3])})
	}
	return all
}

// Last is the newest sample.
func (g WatchedGPU) Last() GPULook { return g.Looks[len(g.Looks)-1] }

// Idle returns the time since which every sample shows the GPU idle; ok is false where that time is
// short or has too few samples.
func (g WatchedGPU) Idle() (since time.Time, ok bool) {
	i := len(g.Looks)
	for i > 0 && g.Looks[i-1].BusyPct == 0 {
		i--
	}
	if idle := g.Looks[i:]; len(idle) >= idleLooks {
		since = idle[0].At
		return since, g.Last().At.Sub(since) >= idleAfter
	}
	return since, false
}
