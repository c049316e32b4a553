package megatron

import (
	"fmt"
	"strings"
)

// A Layout holds the parallel sizes of a job. VPP is 0 without virtual pipeline
// stages.
type Layout struct {
	TP, PP, VPP, CP, EP, ETP, DP int
	// EDP is the data-parallel size of the expert layers.
	EDP int
}

// String returns the layout as text, such as "TP 8, PP 4, DP 2". It omits CP, EP
// and VPP of one, and an ETP that equals TP.
func (l Layout) String() string {
	var parts []string
	for _, s := range []struct {
		name  string
		size  int
		shown bool
	}{
		{"TP", l.TP, true},
		{"PP", l.PP, true},
		{"VPP", l.VPP, l.VPP > 1},
		{"CP", l.CP, l.CP > 1},
		{"EP", l.EP, l.EP > 1},
		{"ETP", l.ETP, l.ETP != l.TP && l.ETP > 0 && l.EP > 1},
		{"DP", l.DP, true},
	} {
		if s.shown {
			parts = append(parts, fmt.Sprintf("%s %d", s.name, s.size))
		}
	}
	return strings.Join(parts, ", ")
}

// Flags returns the layout as Megatron's flags.
func (l Layout) Flags() []string {
	flags := []string{"--tensor-model-parallel-size", fmt.Sprint(l.TP), "--pipeline-model-parallel-size", fmt.Sprint(l.PP)}
	for _, s := range []struct {
		flag  string
		size  int
		shown bool
	}{
		{"--num-virtual-stages-per-pipeline-rank", l.VPP, l.VPP > 1},
		{"--context-parallel-size", l.CP, l.CP > 1},
		{"--expert-model-parallel-size", l.EP, l.EP > 1},
		{"--expert-tensor-parallel-size", l.ETP, l.ETP > 0 && l.ETP != l.TP},
	} {
		if s.shown {
			flags = append(flags, s.flag, fmt.Sprint(s.size))
		}
	}
	return flags
}

// Stages is a parsed --pipeline-model-parallel-layout: for each stage, including
// virtual stages, one string of the letters E (embedding), t (decoder layer),
// m (MTP layer) and L (loss).
type Stages []string

// Count returns how often the letter occurs in all stages.
func (s Stages) Count(letter byte) int {
	n := 0
	for _, stage := range s {
		n += strings.Count(stage, string(letter))
	}
	return n
}

// Flat returns every letter in layer order.
func (s Stages) Flat() string { return strings.Join(s, "") }

// maxStages limits the length of a layout after its repetitions are expanded.
const maxStages = 1 << 16

// ParseStages parses a layout such as "Ettt|(tt|)*29,m|L". bad is the first
// letter other than E, t, m and L, or 0.
func ParseStages(layout string) (stages Stages, bad rune) {
	layout = strings.ReplaceAll(layout, ",", "")
	layout = unrollGroups(layout)
	layout = unrollLetters(layout)
	if len(layout) > maxStages {
		return nil, '*'
	}
	for _, r := range layout {
		if !strings.ContainsRune("EtmL|", r) {
			bad = r
			break
		}
	}
	return strings.Split(layout, "|"), bad
}

// unrollGroups replaces (ab)*3 by ababab. Groups do not nest.
func unrollGroups(s string) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(s, '(')
		if open < 0 {
			break
		}
		end := strings.IndexByte(s[open:], ')')
		if end < 0 {
			break
		}
		end += open
		times, rest, ok := repeatCount(s[end+1:])
		if !ok || end == open+1 {
			b.WriteString(s[:open+1])
			s = s[open+1:]
			continue
		}
		b.WriteString(s[:open])
		repeatInto(&b, s[open+1:end], times)
		s = rest
	}
	b.WriteString(s)
	return b.String()
}

// unrollLetters replaces t*3 by ttt.
func unrollLetters(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if times, rest, ok := repeatCount(s[i+1:]); ok {
			repeatInto(&b, s[i:i+1], times)
			s, i = rest, -1
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// repeatCount parses the *N at the start of s.
func repeatCount(s string) (n int, rest string, ok bool) {
	if !strings.HasPrefix(s, "*") {
		return 0, s, false
	}
	i := 1
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		n = min(n*10+int(s[i]-'0'), maxStages+1)
		i++
	}
	return n, s[i:], i > 1
}

func repeatInto(b *strings.Builder, what string, times int) {
	if b.Len()+len(what)*times > 4*maxStages {
		times = 4 * maxStages / max(len(what), 1)
	}
	for range times {
		b.WriteString(what)
	}
}

// A HybridPattern is a parsed --hybrid-layer-pattern. The pattern has a letter
// for each layer, | between pipeline segments, and / before each depth of
// multi-token prediction.
type HybridPattern struct {
	Main     string
	MTP      string
	Depths   int
	Segments int
	Layers   int
	// Bad is the first letter that names no layer, or 0.
	Bad rune
	// Mixed reports that plain attention is combined with MLA or DSA.
	Mixed bool
	// Uneven reports that the MTP depths differ from each other.
	Uneven bool
}

// hybridLayers are the letters of a hybrid pattern, in this order: Mamba, gated
// delta net, attention, DeepSeek sparse attention, MLA, MLP, mixture of experts
// (megatron/core/models/hybrid/hybrid_layer_allocation.py:17).
const hybridLayers = "MG*D+-E"

func parseHybrid(pattern string) HybridPattern {
	parts := strings.Split(pattern, "/")
	h := HybridPattern{Main: parts[0]}
	h.Segments = strings.Count(h.Main, "|") + 1
	h.Layers = len(h.Main) - strings.Count(h.Main, "|")
	check := func(s, allowed string) {
		for _, r := range s {
			if !strings.ContainsRune(allowed, r) && h.Bad == 0 {
				h.Bad = r
			}
		}
		h.Mixed = h.Mixed || strings.Contains(s, "*") && strings.ContainsAny(s, "D+")
	}
	check(h.Main, hybridLayers+"|")
	if mtp := parts[1:]; strings.Join(mtp, "") != "" {
		h.MTP, h.Depths = mtp[0], len(mtp)
		for _, m := range mtp {
			h.Uneven = h.Uneven || m != h.MTP
		}
		check(h.MTP, hybridLayers)
	}
	return h
}
