package diagnose

// An automaton finds many literals in one pass over a text, without regard to
// the case of ASCII letters (Aho and Corasick, 1975). Bytes are mapped to a
// small alphabet first, so that the whole table stays in the cache.
type automaton struct {
	class [256]uint8
	width int
	next  []int32 // state*width + class → state
	out   [][]int // state → literals that end there
}

func newAutomaton(literals []string) *automaton {
	a := &automaton{width: 1}
	for _, w := range literals {
		for i := 0; i < len(w); i++ {
			if c := w[i]; a.class[c] == 0 {
				a.class[c] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := 'A'; c <= 'Z'; c++ {
		a.class[c] = a.class[c+'a'-'A']
	}
	grow := func() int32 {
		for range a.width {
			a.next = append(a.next, -1)
		}
		a.out = append(a.out, nil)
		return int32(len(a.out) - 1)
	}
	grow()
	for n, w := range literals {
		state := int32(0)
		for i := 0; i < len(w); i++ {
			at := int(state)*a.width + int(a.class[w[i]])
			if a.next[at] < 0 {
				child := grow()
				a.next[at] = child
			}
			state = a.next[at]
		}
		a.out[state] = append(a.out[state], n)
	}
	a.link()
	return a
}

// link turns the trie into a complete automaton: every missing edge leads
// where the longest suffix that is still a prefix of some literal would go.
func (a *automaton) link() {
	fail := make([]int32, len(a.out))
	var queue []int32
	for c := range a.width {
		if child := a.next[c]; child > 0 {
			queue = append(queue, child)
		} else {
			a.next[c] = 0
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		a.out[s] = append(a.out[s], a.out[fail[s]]...)
		for c := range a.width {
			at := int(s)*a.width + c
			if child := a.next[at]; child >= 0 {
				fail[child] = a.next[int(fail[s])*a.width+c]
				queue = append(queue, child)
			} else {
				a.next[at] = a.next[int(fail[s])*a.width+c]
			}
		}
	}
}

// each calls found with every literal that occurs in text, as often as it does.
func (a *automaton) each(text string, found func(literal int)) {
	state := int32(0)
	for i := 0; i < len(text); i++ {
		state = a.next[int(state)*a.width+int(a.class[text[i]])]
		for _, w := range a.out[state] {
			found(w)
		}
	}
}
