package diagnose

import (
	"maps"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// portFault matches InfiniBand's errors about a port of the node itself. A connection that times out
// may be the peer's fault.
var portFault = lazy.New(`(?i)async (?:fatal )?event|port (?:error|down)|catastrophic|device fatal|link.*down|local (?:protection|qp|length) |hardware`)

// retrying bounds the time between the fault of a port and its peers' complaints: queue pairs try again before they give up, and NCCL's
// lines carry no time, so that the complaints may also stand first.
const retrying = 2 * time.Minute

// ownFault returns the first error about a node's own port near a complaint about the network, or else the complaint itself: what goes
// through that port fails for its peers, too.
func (j *job) ownFault(complaint *scan.Event, live []*scan.Event) *scan.Event {
	if portFault.MatchString(complaint.Text) {
		return complaint
	}
	own := complaint
	for _, e := range live {
		if e.Class != outcome.NCCLIB || e.Form == pattern.Bare || !portFault.MatchString(e.Text) || own != complaint && !j.precedes(e, own) {
			continue
		}
		a, b := e.When(), complaint.When()
		if near := a.IsZero() || b.IsZero() || a.Sub(b).Abs() <= retrying; near {
			own = e
		}
	}
	return own
}

// lostPeer returns the first of the complaints about the peer that several nodes could not reach, more of them than could not reach
// another one, with the peer's node instead of its writer; or nil. What that node itself complains of does not count.
func (j *job) lostPeer(live []*scan.Event) *scan.Event {
	first, nodes := map[string]*scan.Event{}, map[string]map[string]bool{} // by address: the first complaint, and who complains
	for _, e := range live {
		address := unreachable(e.Text)
		if e.Class != outcome.NCCLIB || e.Form == pattern.Bare || e.Node == "" || address == "" {
			continue
		}
		if nodes[address] == nil {
			nodes[address] = map[string]bool{}
		}
		nodes[address][e.Node] = true
		if o := first[address]; o == nil || j.precedes(e, o) {
			first[address] = e
		}
	}
	most, others := "", map[string]bool{}
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		if len(nodes[address]) > len(nodes[most]) {
			most = address
		}
	}
	if len(nodes[most]) < 2 {
		return nil
	}
	e := *first[most]
	e.Rank, e.Node = -1, j.nodeOfAddress(most)
	for address, by := range nodes {
		if address != most && len(by) == len(nodes[most]) {
			return nil
		}
		for n := range by {
			if address != most && n != e.Node {
				others[n] = true
			}
		}
	}
	if len(others) >= len(nodes[most]) {
		return nil
	}
	return &e
}
