package diagnose

import (
	"sort"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// portFault is what InfiniBand says of the port of the node that says it; a
// connection that times out may be the peer's fault.
var portFault = lazy.New(`(?i)async event|port (?:error|down)|catastrophic|device fatal|link.*down|local (?:protection|qp|length) |hardware`)

// placesToAvoid names the nodes that another try should do without.
func (j *job) placesToAvoid(r *Report, v verdict) {
	if r.RootNode == nil || *r.RootNode == "" {
		return
	}
	node := *r.RootNode
	switch v.class {
	case GPUHardware, SlurmNodeFail:
		seen := map[string]bool{node: true}
		for _, e := range v.others {
			if e.node != "" && e.weight >= specific {
				seen[e.node] = true
			}
		}
		if v.class == SlurmNodeFail {
			named := map[string]bool{}
			for _, e := range j.events {
				if e.class == SlurmNodeFail && failureOn.MatchString(e.text) && e.node != "" {
					named[e.node] = true
				}
			}
			if len(named) > 0 { // the daemon of another node tells of the failure too
				seen = named
			}
		}
		for n := range seen {
			r.ExcludeNodes = append(r.ExcludeNodes, n)
		}
		sort.Strings(r.ExcludeNodes)
	case NCCLIB:
		if portFault.MatchString(v.event.text) {
			r.ExcludeNodes = []string{node}
		}
	case CUDADriver, Container, Filesystem:
		if !permission.MatchString(v.event.text) && j.oneOfManyNodes(v) && (v.class != Container || nodeContainer.MatchString(v.event.text)) {
			r.ExcludeNodes = []string{node}
		}
	}
}

// nodeContainer is a container failure that belongs to the node, not to the
// image or the command line.
var nodeContainer = lazy.New(`(?i)nvidia-container|libnvidia|nvml|driver|cgroup|initialization error|input/output|no space|stale|squashfuse|` +
	`mount: .*(?:resource|busy)|daemon is not running|couldn't (?:create|remove)|timed out`)

// oneOfManyNodes reports whether one node alone shows the cause while others
// took part.
func (j *job) oneOfManyNodes(v verdict) bool {
	bad := map[string]bool{}
	for _, e := range append([]*event{v.event}, v.others...) {
		if e.node != "" {
			bad[e.node] = true
		}
	}
	named := map[string]bool{}
	for _, n := range j.fileNode {
		if n != "" {
			named[n] = true
		}
	}
	nodes := max(len(j.nodes), len(named))
	if n := len(j.given.Nodes); n > 0 {
		nodes = n
	}
	return len(bad) == 1 && (nodes > 1 || j.perNode > 0 && j.world > j.perNode)
}
