package metrics

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Slowest is one report of the slowest rank. Share is its speed divided by the fastest rank's.
type Slowest struct {
	Iteration int     `json:"iteration"` // the last iteration logged before the report
	Rank      int     `json:"rank"`
	Share     float64 `json:"share"`
	// Judged says that the training program itself called the rank a straggler.
	Judged bool `json:"judged,omitempty"`
}

// keptReports bounds how many of the newest timers and straggler reports are kept.
const keptReports = 16

var (
	// "    batch-generator ......: (3.25, 812.40)" or ": 812.40"
	// (megatron/core/timers.py _get_global_min_max_time_string).
	timerMax = regexp.MustCompile(`([\w-]+) \.+: (?:\([\d.]+, ([\d.]+)\)|([\d.]+)\s*$)`)
	// "     rank  3: 812.40" below "  forward-compute:" (_get_all_ranks_time_string).
	timerName = regexp.MustCompile(`^(?:.*[:\]])?\s+([a-z][\w-]+):\s*$`)
	timerRank = regexp.MustCompile(`\brank +(\d+): ([\d.]+)\s*$`)
	// "MnEtpt/Rnk: 560.82TF/30 | MxEtpt/Rnk: 608.83TF/13", which the straggler
	// detector writes (megatron/core/utils.py StragglerDetector.report).
	leastTFLOPs = regexp.MustCompile(`MnEtpt/Rnk: ([\d.]+)TF/(\d+)`)
	mostTFLOPs  = regexp.MustCompile(`MxEtpt/Rnk: ([\d.]+)TF/(\d+)`)
	// nvidia-resiliency-ext's straggler detector writes these words.
	judgedRanks = regexp.MustCompile(`(?i)straggler.*affected ranks: [^\d]*(\d+)`)
)

// speedLine parses a line of Megatron's timers or of a straggler detector.
func (r *reader) speedLine(line string) {
	switch {
	case strings.Contains(line, "Etpt/Rnk: "):
		least, most := leastTFLOPs.FindStringSubmatch(line), mostTFLOPs.FindStringSubmatch(line)
		if least == nil || most == nil {
			return
		}
		a, _ := strconv.ParseFloat(least[1], 64)
		b, _ := strconv.ParseFloat(most[1], 64)
		rank, _ := strconv.Atoi(least[2])
		if b > 0 {
			r.slowest(Slowest{Iteration: r.last, Rank: rank, Share: a / b})
		}
	case strings.Contains(line, "traggler") || strings.Contains(line, "STRAGGLER"):
		if m := judgedRanks.FindStringSubmatch(line); m != nil {
			rank, _ := strconv.Atoi(m[1])
			r.slowest(Slowest{Iteration: r.last, Rank: rank, Judged: true})
		}
	case strings.Contains(line, "across ranks (ms):"):
		r.inTimers = true
		r.timer = ""
	case r.inTimers:
		r.timerLine(line)
	}
}

// timerLine parses a line of a list of timers, or ends the list.
func (r *reader) timerLine(line string) {
	if m := timerMax.FindStringSubmatch(line); m != nil {
		v, _ := strconv.ParseFloat(m[2]+m[3], 64)
		r.longest(m[1], v)
		return
	}
	if m := timerRank.FindStringSubmatch(line); m != nil && r.timer != "" {
		rank, _ := strconv.Atoi(m[1])
		v, _ := strconv.ParseFloat(m[2], 64)
		r.byRank[rank] = v
		return
	}
	r.finishRankTimer()
	m := timerName.FindStringSubmatch(line)
	if r.inTimers = m != nil; r.inTimers {
		r.timer = m[1]
	}
}

// longest adds a report of a timer: its largest value over all ranks, in milliseconds.
func (r *reader) longest(name string, v float64) {
	if r.run.Timers == nil {
		r.run.Timers = map[string][]float64{}
	}
	r.run.Timers[name] = append(r.run.Timers[name], v)
	r.run.Timers[name] = r.run.Timers[name][max(0, len(r.run.Timers[name])-keptReports):]
}

func (r *reader) slowest(s Slowest) {
	r.run.Slowest = append(r.run.Slowest, s)
	r.run.Slowest = r.run.Slowest[max(0, len(r.run.Slowest)-keptReports):]
}

// finishRankTimer summarises the timer whose values were listed rank by rank. For the forward-compute
// timer it also records the slowest rank, compared with the median one.
func (r *reader) finishRankTimer() {
	name, values := r.timer, r.byRank
	r.timer, r.byRank = "", map[int]float64{}
	if len(values) == 0 {
		return
	}
	ranks := slices.Sorted(maps.Keys(values))
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	middle, last := ranks[len(ranks)/2], ranks[len(ranks)-1]
	r.longest(name, values[last])
	if name == "forward-compute" && len(ranks) > 2 && values[last] > 0 {
		r.slowest(Slowest{Iteration: r.last, Rank: last, Share: values[middle] / values[last]})
	}
}

// timer returns the median, in ms, of a timer's newest maxima; 0 where the run does not log the timer.
func (r Run) timer(name string) float64 {
	if v := quantile(r.Timers[name], 0.5); v != nil {
		return *v
	}
	return 0
}
