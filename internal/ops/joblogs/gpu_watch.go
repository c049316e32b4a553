package joblogs

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// A GPUWatch says how busy a running job's GPUs are, from samples that the job itself
// writes (the preset gpu-use).
type GPUWatch struct {
	GPUs      int     `json:"gpus"`              // GPUs with samples
	AgeS      int64   `json:"age_s"`             // of the newest sample
	MedianPct float64 `json:"median_busy_pct"`   // of each GPU's newest sample
	LowestPct float64 `json:"lowest_busy_pct"`   //
	Idle      int     `json:"idle_gpus"`         // GPUs that were idle in every sample for a while
	IdleAt    string  `json:"idle_at,omitempty"` // such as gpu3:4-5 gpu[7-8]:0-7
	IdleForS  int64   `json:"idle_for_s,omitempty"`
	// Unheld is how many of the idle GPUs also hold no memory, so no rank runs on them.
	Unheld int `json:"idle_without_memory,omitempty"`

	idleNodes []string
}

// Bounds of what is read of a job's GPU samples.
const (
	lookBytes = 16 << 10         // the end of a node's file: some hours
	lookStale = 15 * time.Minute // three samples are missing, so the last ones are no longer valid
	heldMB    = 2000             // a GPU with less memory in use, in MB, counts as free, as in the guards
)

// gpuWatch sums up the GPU samples of a running job's current attempt. It returns nil
// where the job takes none, or they cannot be read from here.
func gpuWatch(folders *within.Folders, paths []string, j slurm.Job, now time.Time) *GPUWatch {
	if j.State != slurm.Running {
		return nil
	}
	attempt := fmt.Sprintf("attempt-%d", j.Restarts)
	if slurm.IsStepID(string(j.ID)) { // each launch in an allocation has its own mark
		attempt = "attempt-*"
	}
	var all []metrics.WatchedGPU
	newest := time.Time{}
	for _, p := range paths {
		files, _ := folders.Glob(filepath.Join(p, attempt, "gpus-*.csv")) // a path that is not a valid pattern has no samples
		for _, f := range files {
			node := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "gpus-"), ".csv")
			if !slices.Contains(j.Nodes, node) { // a job can create files with any name
				continue
			}
			for _, g := range metrics.ReadGPULooks(node, readEnd(folders, f)) {
				all = append(all, g)
				if at := g.Last().At; at.After(newest) {
					newest = at
				}
			}
		}
	}
	all = slices.DeleteFunc(all, func(g metrics.WatchedGPU) bool { return newest.Sub(g.Last().At) > lookStale })
	if len(all) == 0 {
		return nil
	}
	return watchOf(all, now, newest)
}

// watchOf sums up samples, of which the newest was taken at newest.
func watchOf(all []metrics.WatchedGPU, now, newest time.Time) *GPUWatch {
	age := max(now.Sub(newest), 0)
	w := &GPUWatch{GPUs: len(all), AgeS: int64(age.Seconds())}
	busy := make([]float64, len(all))
	idle, since := map[string][]int{}, time.Time{}
	for i, g := range all {
		busy[i] = g.Last().BusyPct
		from, is := g.Idle()
		if !is || age > lookStale {
			continue
		}
		w.Idle++
		idle[g.Node] = append(idle[g.Node], g.GPU)
		if g.Last().UsedMB < heldMB {
			w.Unheld++
		}
		if from.After(since) { // all idle GPUs have been idle at least since then
			since = from
		}
	}
	slices.Sort(busy)
	w.MedianPct, w.LowestPct = busy[len(busy)/2], busy[0]
	if w.Idle > 0 {
		w.IdleForS = int64(newest.Sub(since).Seconds())
		w.idleNodes = slices.Sorted(maps.Keys(idle))
		w.IdleAt = gpuPlaces(idle)
	}
	return w
}

// gpuPlaces names GPUs by node, and joins nodes with the same GPUs: gpu3:4-5
// gpu[7-8]:0-7.
func gpuPlaces(gpus map[string][]int) string {
	same := map[string][]string{}
	for node, numbers := range gpus {
		key := ranges(numbers)
		same[key] = append(same[key], node)
	}
	var all []string
	for numbers, nodes := range same {
		slices.Sort(nodes)
		all = append(all, hostlist.Compress(nodes)+":"+numbers)
	}
	slices.Sort(all)
	const most = 8
	if len(all) > most {
		all = append(all[:most:most], "…")
	}
	return strings.Join(all, " ")
}

// ranges joins consecutive numbers: 0,4-7.
func ranges(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Trim(hostlist.Compress(words), "[]")
}

// readEnd returns the newest part of a node's samples; "" where it cannot be read.
func readEnd(folders *within.Folders, path string) (whole string) {
	readParts(folders, path, func(f io.ReaderAt, size int64) {
		from := max(size-lookBytes, 0)
		if whole = partOf(f, from, lookBytes); from > 0 {
			_, whole, _ = strings.Cut(whole, "\n") // the first line may be cut
		}
	})
	return whole
}

// Says describes how busy the GPUs are, and which of them are idle.
func (w GPUWatch) Says() lang.Text {
	t := lang.Text{
		EN: "%s, looked at %s ago: %.0f %% busy (median), the least busy %.0f %%", ZH: "%s（%s 前查看）：利用率中位数 %.0f%%，最低 %.0f%%",
	}.With(ops.Counted(w.GPUs, "GPU"), ops.Duration(w.AgeS), w.MedianPct, w.LowestPct)
	if w.Idle > 0 {
		idle := w.idleWords()
		t.EN, t.ZH = t.EN+". "+idle.EN, t.ZH+"。"+idle.ZH
	}
	return t
}

// idleWords says which GPUs are idle, for how long, and whether a rank holds their
// memory.
func (w GPUWatch) idleWords() lang.Text {
	span := inWords(w.IdleForS)
	t := lang.Text{
		EN: "%d of %s did nothing at any look for %s: %s.", ZH: "%[2]s 中有 %[1]d 张在 %[3]s内每次查看都没有计算：%[4]s。",
	}.With(w.Idle, ops.Counted(w.GPUs, "GPU"), span, w.IdleAt)
	switch {
	case w.Unheld == w.Idle:
		t.EN, t.ZH = t.EN+" No rank holds memory there.", t.ZH+"其上也没有 rank 占用显存。"
	case w.Unheld > 0:
		held := lang.Text{EN: " On %d of them no rank holds memory.", ZH: "其中 %d 张上没有 rank 占用显存。"}.With(w.Unheld)
		t.EN, t.ZH = t.EN+held.EN, t.ZH+held.ZH
	}
	return t
}

// idleAlarm returns the alarm of idle GPUs; ok is false where there is none. A job that
// is still starting causes no alarm, as long as none of its GPUs works.
func (w *GPUWatch) idleAlarm(j slurm.Job) (Alarm, bool) {
	if w == nil || w.Idle == 0 || w.Idle == w.GPUs && time.Duration(j.ElapsedS)*time.Second < unusedAfter {
		return Alarm{}, false
	}
	a := Alarm{
		ID: "gpus_idle", Job: j.ID, Node: hostlist.Compress(w.idleNodes), What: w.idleWords(),
		Fix: lang.Text{
			EN: "`logs %[1]s --node %[2]s --tail 20` shows what their ranks do; `cancel %[1]s` gives them back.",
			ZH: "`logs %[1]s --node %[2]s --tail 20` 可查看其上 rank 的输出；`cancel %[1]s` 可归还。",
		}.With(j.ID, w.idleNodes[0]),
	}
	if w.Unheld == w.Idle {
		a.Fix = lang.Text{
			EN: "Start a rank on every GPU, or ask for fewer (--gpus-per-node); `run %[1]s -- nvidia-smi` shows what runs on them.",
			ZH: "请在每张 GPU 上启动一个 rank，或申请更少的 GPU（--gpus-per-node）；`run %[1]s -- nvidia-smi` 可查看其上运行的进程。",
		}.With(j.ID)
	}
	return a, true
}
