package megatron

import (
	"math"
	"strconv"
	"strings"
)

// maxPattern bounds the length of an evaluated layer pattern; no model comes near.
const maxPattern = 1 << 16

// parseFreq reads an integer or a list expression of digits, brackets, commas,
// + and *, such as ([0]*3+[1])*8 (megatron/training/arguments.py:246).
func parseFreq(word string) (Freq, Fault) {
	if !strings.Contains(word, "[") {
		n, fault := parseInt(word)
		return Freq{N: n}, fault
	}
	e := expression{rest: word}
	v, ok := e.sum()
	if !ok || e.rest != "" || !v.isList {
		return Freq{}, BadValue
	}
	return Freq{List: v.list, IsList: true}, ""
}

// A term is a value of a list expression.
type term struct {
	n      int
	list   []int
	isList bool
}

type expression struct {
	rest  string
	depth int
}

func (e *expression) next(c byte) bool {
	if e.rest == "" || e.rest[0] != c {
		return false
	}
	e.rest = e.rest[1:]
	return true
}

func (e *expression) sum() (term, bool) {
	left, ok := e.product()
	for ok && e.next('+') {
		var right term
		if right, ok = e.product(); !ok || left.isList != right.isList {
			return term{}, false
		}
		if left.isList {
			if len(left.list)+len(right.list) > maxPattern {
				return term{}, false
			}
			left.list = append(append([]int{}, left.list...), right.list...)
		} else {
			left.n += right.n
		}
	}
	return left, ok
}

func (e *expression) product() (term, bool) {
	left, ok := e.atom()
	for ok && e.next('*') {
		var right term
		if right, ok = e.atom(); !ok || left.isList && right.isList {
			return term{}, false
		}
		switch {
		case left.isList:
			left, ok = repeat(left, right.n)
		case right.isList:
			left, ok = repeat(right, left.n)
		default:
			left.n *= right.n
		}
	}
	return left, ok
}

func repeat(t term, times int) (term, bool) {
	if times < 0 || times > maxPattern || len(t.list)*times > maxPattern {
		return term{}, false
	}
	out := make([]int, 0, len(t.list)*times)
	for range times {
		out = append(out, t.list...)
	}
	return term{list: out, isList: true}, true
}

func (e *expression) atom() (term, bool) {
	if e.depth++; e.depth > 100 {
		return term{}, false
	}
	defer func() { e.depth-- }()
	switch {
	case e.next('('):
		v, ok := e.sum()
		return v, ok && e.next(')')
	case e.next('['):
		v := term{isList: true}
		for !e.next(']') {
			item, ok := e.sum()
			if !ok || item.isList {
				return term{}, false
			}
			v.list = append(v.list, item.n)
			if !e.next(',') && !strings.HasPrefix(e.rest, "]") {
				return term{}, false
			}
		}
		return v, true
	}
	end := 0
	for end < len(e.rest) && e.rest[end] >= '0' && e.rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(e.rest[:end])
	if err != nil || n > 1<<31 {
		return term{}, false
	}
	e.rest = e.rest[end:]
	return term{n: n}, true
}

// AllocateHybrid spreads attention and MLP layers over a hybrid model by their
// ratios, as releases up to 0.16 do
// (megatron/core/ssm/mamba_hybrid_layer_allocation.py:34).
func AllocateHybrid(layers int, attention, mlp float64) string {
	if layers <= 0 || layers > maxPattern {
		return ""
	}
	pattern := []byte(strings.Repeat("M", layers))
	mamba := layers - place(pattern, '*', int(math.RoundToEven(float64(layers)*attention)), layers, 1)
	place(pattern, '-', int(math.RoundToEven(float64(layers)*mlp)), mamba, 0)
	return string(pattern)
}

// place replaces count of the free Mamba layers, evenly spread with the given
// number of sections more than layers, and returns count.
func place(pattern []byte, letter byte, count, free, more int) int {
	if count <= 0 {
		return 0
	}
	section := float64(free-count) / float64(count+more)
	x := section
	for i := range pattern {
		if pattern[i] != 'M' {
			continue
		}
		if x < 0.5 {
			pattern[i] = letter
			x += section
		} else {
			x--
		}
	}
	return count
}
