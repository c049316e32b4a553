package diagnose

import (
	"path"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// placeByReports sets the node of each file whose launchers report on ranks of one node only, if other files
// have the reports of other nodes: then each node writes files of its own, whatever their names are. Its standard output and
// error may be two, which differ in their extensions.
func (j *job) placeByReports() {
	nodes, byStem := map[string]struct{}{}, map[string]string{}
	for i, f := range j.files {
		hosts := map[string]struct{}{}
		for _, e := range f.Elastic {
			if e.Host != "" {
				hosts[e.Host], nodes[e.Host], byStem[stem(j.src.Logs[i].Name)] = struct{}{}, struct{}{}, e.Host
			}
		}
		if len(hosts) > 1 {
			return // a file of several nodes
		}
	}
	for i := range j.files {
		if len(nodes) > 1 && j.fileNode[i] == "" {
			j.fileNode[i] = byStem[stem(j.src.Logs[i].Name)]
		}
	}
}

// hostAtEnd matches a file's name without its extension that ends with a host's name: behind an underscore, which no host's name
// has, or a word with a number.
var hostAtEnd = lazy.New(`^(.*_)([A-Za-z][A-Za-z\d.-]*)$|^(.*[-.])([A-Za-z]+\d+)$`)

// placeByEnds sets the node of files whose names differ only in a host's name at their end, if no log names a host, and if processes
// of two or more, and of all but one at most, complain of lost or awaited peers: such ends are no seeds or stages.
func (j *job) placeByEnds() {
	type series struct {
		hosts    map[string][]int // the files
		complain map[string]bool
	}
	all := map[string]*series{} // by what stands before the hosts
	for i, f := range j.files {
		name := stem(j.src.Logs[i].Name)
		m := hostAtEnd.FindStringSubmatch(path.Base(name))
		if m == nil || j.fileNode[i] != "" || j.fileRank[i] >= 0 || len(j.nodes) > 0 {
			continue
		}
		before, host := path.Dir(name)+"/"+m[1]+m[3], m[2]+m[4]
		if !logline.HasDigit(host) || rankPath.MatchString(host) || indexAlone.MatchString(host) {
			continue
		}
		s := all[before]
		if s == nil {
			s = &series{map[string][]int{}, map[string]bool{}}
			all[before] = s
		}
		if s.hosts[host] = append(s.hosts[host], i); len(complaintsOfPeers(f.Events)) > 0 {
			s.complain[host] = true
		}
	}
	for _, s := range all {
		for host, files := range s.hosts {
			for _, i := range files {
				if len(s.complain) >= max(2, len(s.hosts)-1) {
					j.fileNode[i] = host
				}
			}
		}
	}
}
