package diagnose

// placeByReports sets the node of each file whose launchers report on ranks of one node only, if other files
// have the reports of other nodes: then each node writes files of its own, whatever their names are. Its standard output and
// error may be two, which differ in their extensions.
func (j *job) placeByReports() {
	nodes, of := map[string]struct{}{}, make([]string, len(j.files))
	for i, f := range j.files {
		hosts := map[string]struct{}{}
		for _, e := range f.Elastic {
			if e.Host != "" {
				hosts[e.Host], of[i] = struct{}{}, e.Host
			}
		}
		switch len(hosts) {
		case 0:
		case 1:
			nodes[of[i]] = struct{}{}
		default:
			return // a file of several nodes
		}
	}
	byStem := map[string]string{}
	for i, node := range of {
		if node != "" {
			byStem[stem(j.src.Logs[i].Name)] = node
		}
	}
	for i := range of {
		if len(nodes) > 1 && j.fileNode[i] == "" {
			j.fileNode[i] = byStem[stem(j.src.Logs[i].Name)]
		}
	}
}
