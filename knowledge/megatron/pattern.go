package megatron

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxPattern limits the length of an evaluated layer pattern. No model comes near.
const maxPattern = 1 << 16

// parseFreq parses an integer or a list expression of digits, brackets, commas,
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

// A term is an integer or a list within a list expression.
type term struct {
	n      int
	list   []int
	isList bool
}

// An expression is a recursive-descent parser of list expressions.
type expression struct {
	rest  string // the text not parsed yet
	depth int    // of nested brackets
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
			left.list = slices.Concat(left.list, right.list)
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
	return term{list: slices.Repeat(t.list, times), isList: true}, true
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

// AllocateHybrid returns the layer pattern of a hybrid model whose attention and
// MLP layers are spread evenly by their ratios, as releases up to 0.16 do
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

// place replaces count of the free Mamba layers by letter and returns count. The
// replaced layers divide the rest into count + extra even sections.
func place(pattern []byte, letter byte, count, free, extra int) int {
	if count <= 0 {
		return 0
	}
	section := float64(free-count) / float64(count+extra)
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
