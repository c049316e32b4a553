package diagnose

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A StackGroup is the ranks whose main threads stand at the same place, by the
// output of `py-spy dump`, innermost frame first.
type StackGroup struct {
	Ranks  []int    `json:"ranks"` // -1 for a rank that is not known
	Frames []string `json:"frames"`
}

// maxStack bounds the frames that tell two stacks apart and are shown.
const maxStack = 8

var (
	spyThread = lazy.New(`^Thread (?:0x)?[0-9A-Fa-f]+ \([^)]*\): "MainThread"|^Thread (?:0x)?[0-9A-Fa-f]+ \([^)]*\)$`)
	spyFrame  = lazy.New(`^ {4}(\S.*) \((.+):\d+\)$`)
)

// A spied is one main thread's stack as py-spy printed it.
type spied struct {
	tag    tag
	frames []string
}

// spy collects the frames of a main thread. It reports whether the line is
// one of them.
func (s *scanner) spy(st *stream, t tag, text string) bool {
	if strings.HasPrefix(text, "Thread ") && spyThread.MatchString(text) && len(s.spied) < 1<<14 {
		s.spied = append(s.spied, spied{tag: t})
		st.spying = len(s.spied)
		return true
	}
	if st.spying == 0 {
		return false
	}
	m := spyFrame.FindStringSubmatch(text)
	if m == nil {
		st.spying = 0
		return false
	}
	if one := &s.spied[st.spying-1]; len(one.frames) < maxStack {
		one.frames = append(one.frames, m[1]+" ("+m[2]+")")
	}
	return true
}

// stacks groups the ranks by where their main threads stand, the smallest
// group first: who stands alone is who the others may wait for.
func (j *job) stacks() (groups []StackGroup) {
	byFrames := map[string]*StackGroup{}
	var order []string
	for i, f := range j.files {
		for _, s := range f.spied {
			if len(s.frames) == 0 {
				continue
			}
			key := strings.Join(s.frames, "\n")
			if byFrames[key] == nil {
				byFrames[key] = &StackGroup{}
				order = append(order, key)
				for _, frame := range s.frames {
					byFrames[key].Frames = append(byFrames[key].Frames, show(frame))
				}
			}
			byFrames[key].Ranks = append(byFrames[key].Ranks, j.rankOf(i, s.tag, nil))
		}
	}
	for _, key := range order {
		g := byFrames[key]
		slices.Sort(g.Ranks)
		groups = append(groups, *g)
	}
	slices.SortStableFunc(groups, func(a, b StackGroup) int { return len(a.Ranks) - len(b.Ranks) })
	return groups
}
