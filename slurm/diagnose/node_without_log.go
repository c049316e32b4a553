package diagnose

import (
	"maps"
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// lostWithNode returns a line that shows the node of the processes that the others lost, if nothing tells which process it was, and how
// the node is known, as in report.Report.Laggard. The line is nil if the node is not known.
func (j *job) lostWithNode(heavy *scan.Event, live []*scan.Event) (shown *scan.Event, why string) {
	if e := j.nodeWithoutLog(); e != nil {
		return e, "unlogged"
	}
	if _, e, _ := j.absent(live); e != nil {
		return e, "unprefixed"
	}
	if node := j.quietNode(live); node != "" {
		e := *heavy
		e.Rank, e.Node, e.Stack = -1, node, nil
		return &e, "quiet"
	}
	return nil, ""
}

// quietNode returns the only node whose processes and launcher just stop, while the launcher of each other node reports a failure and
// processes there lost a peer; or "". The logs must be there in which the node would have complained, and the ranks on which no other
// launcher reports must be those of one node, so that no other node's logs are missing.
func (j *job) quietNode(live []*scan.Event) (quiet string) {
	reported, firsts := map[string]bool{}, map[int]bool{}
	for i, f := range j.files {
		for _, e := range f.Elastic {
			if e.Host != "" && e.Local >= 0 && e.Rank >= e.Local && !j.old[i] {
				reported[e.Host], firsts[e.Rank-e.Local] = true, true
			}
		}
	}
	lost, kinds := map[string]bool{}, map[string]bool{}
	for _, e := range complaintsOfPeers(live) {
		lost[e.Node], kinds[j.kindOfFile(e.File, e.Node)] = true, true
	}
	nodes := maps.Clone(j.nodes)
	for _, n := range j.fileNode {
		if n != "" {
			nodes[n]++
		}
	}
	for n := range nodes {
		switch {
		case reported[n] && lost[n]:
		case quiet != "" || reported[n] || lost[n]:
			return ""
		default:
			quiet = n
		}
	}
	if quiet == "" || !j.untoldOfOneNode(firsts) || firstEvent(live, func(e *scan.Event) bool { return e.Node == quiet }) != nil {
		return ""
	}
	for i, f := range j.files {
		if j.fileNode[i] == quiet {
			if delete(kinds, j.kindOfFile(i, quiet)); f.Ending().Said {
				return ""
			}
		}
	}
	if len(kinds) > 0 {
		return ""
	}
	return quiet
}

// kindOfFile returns what the name of a node's file has in common with those of other nodes.
func (j *job) kindOfFile(file int, node string) string {
	return strings.ReplaceAll(path.Base(j.src.Logs[file].Name), node, "*")
}

// untoldOfOneNode reports whether the ranks on whose nodes no launcher reports are as many as one node may have, by the first ranks
// of the nodes of which launchers do.
func (j *job) untoldOfOneNode(firsts map[int]bool) bool {
	per, of, told := max(j.perNode, j.mostLocal()+1), j.world, 0
	for first := range firsts {
		of = max(of, first+per)
		for r := first; r < first+min(per, mostLocals) && (r == first || !firsts[r]); r++ {
			told++
		}
	}
	return len(firsts) > 0 && of > told && of-told <= per
}

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
