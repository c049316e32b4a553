package diagnose

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
