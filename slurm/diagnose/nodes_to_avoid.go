package diagnose

import (
	"maps"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// nodesToExclude adds the nodes that a retry should avoid.
func (j *job) nodesToExclude(r *report.Report, v verdict) {
	if r.RootNode == nil || *r.RootNode == "" {
		return
	}
	node := *r.RootNode
	switch v.class {
	case outcome.GPUHardware, outcome.SlurmNodeFail:
		seen := map[string]struct{}{node: {}}
		for _, e := range v.others {
			if e.Node != "" && e.Weight >= pattern.Specific {
				seen[e.Node] = struct{}{}
			}
		}
		if v.class == outcome.SlurmNodeFail {
			named := map[string]struct{}{}
			for _, e := range j.events {
				if e.Class == outcome.SlurmNodeFail && scan.FailureOn.MatchString(e.Text) && e.Node != "" {
					named[e.Node] = struct{}{}
				}
			}
			if len(named) > 0 { // another node's daemon reports the failure too
				seen = named
			}
		}
		r.ExcludeNodes = slices.Sorted(maps.Keys(seen))
	case outcome.NCCLIB:
		if portFault.MatchString(v.event.Text) || v.laggard != nil {
			r.ExcludeNodes = []string{node}
		}
	case outcome.CUDADriver, outcome.Container, outcome.Filesystem:
		if !permission.MatchString(v.event.Text) && j.oneOfManyNodes(v) && (v.class != outcome.Container || nodeContainer.MatchString(v.event.Text)) {
			r.ExcludeNodes = []string{node}
		}
	}
}

// nodeContainer matches container failures that are the node's fault, not the image's or the command
// line's.
var nodeContainer = lazy.New(`(?i)nvidia-container|libnvidia|nvml|driver|cgroup|initialization error|input/output|no space|stale|squashfuse|` +
	`mount: .*(?:resource|busy)|daemon is not running|couldn't (?:create|remove)|timed out`)

// oneOfManyNodes reports whether only one node shows the cause although others took part.
func (j *job) oneOfManyNodes(v verdict) bool {
	bad := map[string]struct{}{}
	for _, e := range append([]*scan.Event{v.event}, v.others...) {
		if e.Node != "" {
			bad[e.Node] = struct{}{}
		}
	}
	named := map[string]struct{}{}
	for _, n := range j.fileNode {
		if n != "" {
			named[n] = struct{}{}
		}
	}
	nodes := max(len(j.nodes), len(named))
	if n := len(j.given.Nodes); n > 0 {
		nodes = n
	}
	return len(bad) == 1 && (nodes > 1 || j.perNode > 0 && j.world > j.perNode)
}
