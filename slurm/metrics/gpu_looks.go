package metrics

import (
	"strconv"
	"strings"
	"time"
)

// A WatchedGPU is a GPU that a running job looks at itself, now and then: the
// preset gpu-use of its script.
type WatchedGPU struct {
	Node  string
	GPU   int
	Looks []GPULook // oldest first
}

// A GPULook is one look at a GPU. BusyPct is the share of about one second in
// which some kernel ran: a kernel that only waits for other ranks counts too.
type GPULook struct {
	At      time.Time
	BusyPct float64
	UsedMB  float64
}

// What it takes to call a GPU idle: several looks over a time that no checkpoint
// and no evaluation lasts.
const (
	idleLooks = 4
	// idleAfter is for how long every look must have found a GPU doing nothing.
	idleAfter = 20 * time.Minute
)

// ReadGPULooks reads what a job wrote of one node's GPUs: time, GPU, percent and
// MiB. Lines of another form are passed over, such as a first one that is cut.
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

// Last is the newest look.
func (g WatchedGPU) Last() GPULook { return g.Looks[len(g.Looks)-1] }

// Idle returns since when every look found the GPU doing nothing; ok is false
// where that is not long, or too few looks say so.
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
