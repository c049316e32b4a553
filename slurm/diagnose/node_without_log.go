package diagnose

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"

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
	own := 0
	for i, f := range j.files {
		if j.fileNode[i] != "" {
			logged[j.fileNode[i]] = true
		}
		for _, e := range f.Elastic {
			logged[e.Host] = true
			if sruns[i] {
				return nil // the nodes write into one log
			}
		}
		if !sruns[i] {
			own++
		}
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
	if own == 0 || own >= len(failed) {
		return nil
	}
	return without
}
