package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// seen records the rank and node that wrote a line.
func (s *scanner) seen(t logline.Tag, text string, h pattern.Hits) {
	if t.Label >= 0 {
		s.Labels[t.Label] = true
	}
	if t.Local >= 0 {
		s.Locals[t.Local] = true
	}
	if t.Rank >= 0 {
		s.Ranks[t.Rank] = true
		if t.Label >= 0 || t.Local >= 0 {
			s.Bases[logline.Tag{Label: t.Label, Local: t.Local, Rank: -1, Host: t.Host}] = t.Rank
		}
	}
	if h.Ask&(pattern.AskNode|pattern.AskNodes) == 0 {
		return
	}
	if g := NCCLHost.FindStringSubmatch(text); g != nil && g[1] != "localhost" {
		s.Hosts[g[1]]++
		if a := ownAddress.FindStringSubmatch(text); a != nil && len(s.Addresses) < 1<<12 {
			s.Addresses[a[2]] = g[1]
		}
		s.speaksOn(t, g[1])
		if len(s.TagOfPid) < 1<<16 {
			s.TagOfPid[g[1]+":"+g[2]] = t
		}
		return
	}
	if g := find(h.Ask&pattern.AskNodes, nodesLine, text); g != nil {
		for _, n := range ExpandNodes(g[1]) {
			s.Hosts[n]++
		}
		return
	}
	if n := NodeIn(text); n != "" {
		s.Hosts[n]++
	}
}

// speaksOn records the node of a tag. Lines of processes on two nodes may have one tag if it does not name a process of the job; then
// the tag tells no node.
func (s *scanner) speaksOn(t logline.Tag, node string) {
	switch before, known := s.HostOf[t]; {
	case !known && len(s.HostOf) >= 1<<16:
	case known && before != node && t.Label < 0 && t.Rank < 0:
		s.HostOf[t] = ""
	default:
		s.HostOf[t] = node
	}
}

// NodeIn returns the node that a line of NCCL, Slurm or Megatron names as its own or as the one at
// fault.
func NodeIn(text string) string {
	if g := FailureOn.FindStringSubmatch(text); g != nil {
		for _, list := range g[1:] {
			if nodes := ExpandNodes(list); len(nodes) == 1 {
				return nodes[0]
			}
		}
	}
	if g := srunTask.FindStringSubmatch(text); g != nil {
		return g[1]
	}
	if g := NCCLHost.FindStringSubmatch(text); g != nil && g[1] != "localhost" {
		return g[1]
	}
	if g := daemonHost.FindStringSubmatch(text); g != nil {
		return g[1] + g[2]
	}
	if g := onHost.FindStringSubmatch(text); g != nil {
		return strings.TrimRight(g[1]+g[2], ".")
	}
	return ""
}
