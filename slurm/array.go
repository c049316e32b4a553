package slurm

import (
	"slices"
	"strconv"
	"strings"
)

// MostIndices is the highest index that Slurm's MaxArraySize can be set to allow.
const MostIndices = 4_000_000

// ParseArray reads the indices of --array, such as "0-31:4,40", and returns them in order. ok is
// false for a list that Slurm refuses, for an index above most, and for ranges that name more than
// twice as many indices as there are: a short text must not take all memory.
func ParseArray(list string, most int) (indices []int, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		span, step, stepped := strings.Cut(part, ":")
		from, to, isRange := strings.Cut(span, "-")
		if !isRange {
			to = from
		}
		if !stepped {
			step = "1"
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		by, err3 := strconv.Atoi(step)
		if err1 != nil || err2 != nil || err3 != nil || first < 0 || last < first || by < 1 || last > most {
			return nil, false
		}
		if (last-first)/by >= 2*(most+1)-len(indices) {
			return nil, false
		}
		for n := first; n <= last; n += by {
			indices = append(indices, n)
		}
	}
	slices.Sort(indices)
	return slices.Compact(indices), true
}
