package megatron

import (
	"sort"
	"strconv"
	"strings"
)

// A Step is one entry of a batch-size schedule: from Threshold samples on, a
// step takes Size samples.
type Step struct{ Threshold, Size int }

// A Schedule is a parsed --step-batch-size-schedule, sorted by threshold.
type Schedule struct {
	Steps []Step
	// NoColon is the first entry without a colon, BadNumber the first that is
	// not a number.
	NoColon, BadNumber string
}

// First is the batch size at the start.
func (s Schedule) First() int {
	if len(s.Steps) == 0 {
		return 0
	}
	return s.Steps[0].Size
}

// parseSchedule reads entries THRESHOLD:SIZE with the suffixes K, M, B and T.
// Thresholds are tokens, turned into samples by the sequence length where it is
// known (megatron/core/num_microbatches_calculator.py:500).
func parseSchedule(text string, seqLength int) Schedule {
	var s Schedule
	for _, entry := range strings.Fields(strings.ReplaceAll(text, ",", " ")) {
		threshold, size, ok := strings.Cut(entry, ":")
		if !ok {
			s.NoColon = entry
			return s
		}
		t, okT := amount(threshold)
		n, okN := amount(size)
		if !okT || !okN {
			s.BadNumber = entry
			return s
		}
		if seqLength > 0 {
			t /= seqLength
		}
		s.Steps = append(s.Steps, Step{t, n})
	}
	sort.SliceStable(s.Steps, func(i, j int) bool { return s.Steps[i].Threshold < s.Steps[j].Threshold })
	return s
}

var suffixes = map[byte]float64{'K': 1e3, 'M': 1e6, 'B': 1e9, 'T': 1e12}

func amount(text string) (int, bool) {
	text = strings.ToUpper(strings.TrimSpace(text))
	scale := 1.0
	if text != "" {
		if f, ok := suffixes[text[len(text)-1]]; ok {
			scale, text = f, text[:len(text)-1]
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v*scale > 1<<53 || v != v {
		return 0, false
	}
	return int(v * scale), true
}
