package chart

import (
	"math"
	"strconv"
)

// An axis maps values from low to high onto pixels from from to to.
type axis struct {
	low, high float64
	from, to  int
}

// drawable returns an axis that can be drawn, even if the range is empty or not finite.
func (a axis) drawable() axis {
	if math.IsInf(a.low, 0) || math.IsNaN(a.low) || math.IsInf(a.high, 0) || math.IsNaN(a.high) {
		a.low, a.high = 0, 1
	}
	if a.low >= a.high {
		half := max(math.Abs(a.low)*0.01, 0.5)
		a.low, a.high = a.low-half, a.low+half
	}
	return a
}

// position is the pixel of v, with its fraction.
func (a axis) position(v float64) float64 {
	return float64(a.from) + (v-a.low)/(a.high-a.low)*float64(a.to-a.from)
}

func (a axis) at(v float64) int { return int(math.Round(a.position(v))) }

// ticks returns about five round values within the axis, in steps of 1, 2 or 5 times a
// power of ten.
func (a axis) ticks() []float64 {
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/4)))
	for _, m := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (a.high-a.low)/step <= 6 {
			break
		}
		step *= m
	}
	var at []float64
	for i := math.Ceil(a.low / step); i*step <= a.high; i++ {
		at = append(at, i*step)
	}
	return at
}

// number formats a tick's value briefly: 20000 is 20k.
func number(v float64) string {
	size := math.Abs(v)
	switch {
	case size >= 1e9:
		return short(v/1e9) + "G"
	case size >= 1e6:
		return short(v/1e6) + "M"
	case size >= 1e4:
		return short(v/1e3) + "k"
	}
	return short(v)
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
