package megatron

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A Step is one entry of a batch-size schedule. From Threshold samples on, the
// global batch has Size samples.
type Step struct{ Threshold, Size int }

// A Schedule is a parsed --step-batch-size-schedule, sorted by threshold.
type Schedule struct {
	Steps []Step
	// NoColon is the first entry without a colon, BadNumber the first entry with a
	// part that is no number.
	NoColon, BadNumber string
}

// First returns the batch size at the start; 0 for an empty schedule.
func (s Schedule) First() int {
	if len(s.Steps) == 0 {
		return 0
	}
	return s.Steps[0].Size
}

// parseSchedule parses entries THRESHOLD:SIZE with the suffixes K, M, B and T.
// Thresholds are given in tokens; parseSchedule converts them into samples where
// the sequence length is known (megatron/core/num_microbatches_calculator.py:500).
func parseSchedule(text string, seqLength int) Schedule {
	var s Schedule
	for entry := range strings.FieldsSeq(strings.ReplaceAll(text, ",", " ")) {
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
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return cmp.Compare(a.Threshold, b.Threshold) })
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
