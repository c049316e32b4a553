package metrics

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// GPUQuery is the command that prints the state of a node's GPUs; ReadGPUs parses its output.
var GPUQuery = []string{"nvidia-smi", "--query-gpu=index,memory.used,memory.total,utilization.gpu", "--format=csv,noheader,nounits"}

// A GPUUse is the memory that one GPU of a node used over time, in MiB, oldest sample first.
type GPUUse struct {
	Node    string    `json:"node"`
	GPU     int       `json:"gpu"`
	UsedMB  []float64 `json:"used_mb"`
	PeakMB  float64   `json:"peak_mb"`
	TotalMB float64   `json:"total_mb"`
	// BusyPct is the GPU's utilization in the last sample, in percent.
	BusyPct float64 `json:"busy_pct"`
}

// ReadGPUs parses the output of one or several runs of GPUQuery on a node. It skips lines of another
// form.
func ReadGPUs(node, out string) []GPUUse {
	byGPU := map[int]GPUUse{}
	for line := range strings.Lines(out) {
		f := strings.Split(line, ",")
		if len(f) != 4 {
			continue
		}
		gpu, err := strconv.Atoi(strings.TrimSpace(f[0]))
		used, err2 := strconv.ParseFloat(strings.TrimSpace(f[1]), 64)
		if err != nil || err2 != nil {
			continue
		}
		u := byGPU[gpu]
		u.Node, u.GPU = node, gpu
		u.UsedMB = append(u.UsedMB, used)
		u.PeakMB = max(u.PeakMB, used)
		u.TotalMB, _ = strconv.ParseFloat(strings.TrimSpace(f[2]), 64)
		u.BusyPct, _ = strconv.ParseFloat(strings.TrimSpace(f[3]), 64) // [N/A] with MIG
		byGPU[gpu] = u
	}
	return slices.SortedFunc(maps.Values(byGPU), func(a, b GPUUse) int { return a.GPU - b.GPU })
}

// Trend draws the samples as one line of at most width characters.
func (u GPUUse) Trend(width int) string {
	ps := make([]Point, len(u.UsedMB))
	for i, v := range u.UsedMB {
		ps[i] = Point{i, v}
	}
	return Sparkline(ps, width)
}
