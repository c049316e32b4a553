package diagnose

import (
	"maps"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// nodeWithoutLog returns srun's report on the only node that has no log while each other node has one of its
// own, or nil. What ended the node's ranks cannot be known.
func (j *job) nodeWithoutLog() *scan.Event {
	failed, logged := map[string]*scan.Event{}, map[string]bool{} // by nodes
	sruns := map[int]bool{}                                       // files with srun's reports
	for _, e := range j.events {
		if len(e.Tasks) > 0 && e.Node != "" && !j.taskRank {
			failed[e.Node], sruns[e.File] = e, true
		}
	}
	named := false
	for i, f := range j.files {
		of := map[string]bool{} // the nodes that write into the file
		for _, e := range f.Elastic {
			if e.Host != "" {
				of[e.Host] = true
			}
		}
		if j.fileNode[i] != "" {
			named = true
			if len(of) == 0 {
				of[j.fileNode[i]] = true
			}
		}
		if sruns[i] && len(f.Elastic) == 0 {
			continue
		}
		if sruns[i] || len(of) != 1 {
			return nil // several nodes write into one log, or it may be any node's
		}
		maps.Copy(logged, of)
	}
	if len(logged) == 0 || len(logged) == 1 && !named {
		return nil // the only log may be that of all nodes
	}
	var without *scan.Event
	for node, e := range failed {
		switch {
		case logged[node]:
		case without != nil:
			return nil
		default:
			without = e
		}
	}
	return without
}
