package diagnose

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A failure identifies a failed process in one launcher's log lines and summary.
type failure struct {
	file int
	pid  string
	exit int
}

// placeEvents determines each event's rank and node.
func (j *job) placeEvents() {
	byPid := map[string]int{}                   // node and process id, as in NCCL's lines → rank
	summed := map[failure][]scan.ElasticEntry{} // the summaries' entries for failures in log lines
	for i, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank >= 0 && e.Pid != "" {
				byPid[e.Host+":"+e.Pid] = e.Rank
				summed[failure{i, e.Pid, e.Exit}] = append(summed[failure{i, e.Pid, e.Exit}], e)
			}
		}
	}
	nodeOfRank, lost := j.nodesOfRanks(), j.lostNode()
	nodeOfTask := j.nodesOfTasks()
	for _, list := range [][]*scan.Event{j.events, j.earlier} {
		for _, e := range list {
			e.Rank = j.rankOf(e.File, e.Tag)
			if r, ok := logline.Number(e.Writer); ok && e.Tag.Rank < 0 && j.mayHave(r) {
				e.Rank = r
			}
			if e.Child && len(j.nodes) > 1 {
				e.Rank = -1 // each node has a child with this number
			}
			// srun labels slurmstepd's lines with the first task of its node.
			daemon := strings.HasPrefix(e.Text, "slurmstepd") || strings.HasPrefix(e.Text, "srun:")
			if daemon {
				e.Rank = -1
				if !strings.HasPrefix(e.Text, "srun:") && e.Tag.Label >= 0 && j.taskRank && e.Class == outcome.Container {
					e.Rank = e.Tag.Label
				}
			}
			if len(e.Tasks) > 0 && j.taskRank {
				e.Rank = e.Tasks[0]
			}
			if of := summed[failure{e.File, e.Pid, e.Exit}]; len(of) == 1 && e.Node == "" {
				e.Rank, e.Node = of[0].Rank, of[0].Host
			}
			if e.Rank < 0 {
				e.Rank = ncclRankOf(e.Text, byPid, j.firstRank)
			}
			if e.Rank < 0 {
				e.Rank = j.rankOfProcess(e)
			}
			if e.Rank < 0 && !e.Agent {
				e.Rank = j.ownRank(e)
			}
			switch {
			case e.Quoted:
				e.Node = nodeOfRank[e.Rank]
			case e.Node != "" && (daemon || e.Class == outcome.SlurmNodeFail || j.nodes[e.Node] > 1):
			case e.Tag.Host != "":
				e.Node = e.Tag.Host
			case j.fileNode[e.File] != "":
				e.Node = j.fileNode[e.File]
			case e.Rank >= 0 && nodeOfRank[e.Rank] != "":
				e.Node = nodeOfRank[e.Rank]
			case e.Node == "":
				e.Node = j.files[e.File].HostOf[e.Tag]
			}
			if e.Node == "" && e.Rank >= 0 {
				e.Node = j.nodeByRank(e.Rank, nodeOfRank)
			}
			if e.Node == "" && e.Tag.Label >= 0 && !j.taskRank {
				e.Node = nodeOfTask[e.Tag.Label]
			}
			if e.Node == "" && e.Tag == logline.NoTag {
				e.Node = lost
			}
			if kernels.MatchString(e.Text) {
				e.Rank = j.rankOfKernels(e, byPid)
			}
		}
		placeChains(list)
	}
}

// placeChains gives an exception without a rank that of the exception that its process raised from it, or, if the next one reports
// a child's exit, that of the rank which had started the child.
func placeChains(events []*scan.Event) {
	var before *scan.Event
	for _, e := range events {
		if g := childOfRank.FindStringSubmatch(e.Text); g != nil && before != nil && before.Rank < 0 && before.File == e.File && before.Tag == e.Tag {
			before.Rank, _ = strconv.Atoi(g[1])
			e.Rank = before.Rank
		}
		if e.Kind != "" {
			before = e
		}
		if e.Rank >= 0 || e.Kind == "" || e.Tag == logline.NoTag {
			continue
		}
		if o := raisedFrom(e, events); o != nil && o.Rank >= 0 {
			e.Rank, e.Node = o.Rank, cmp.Or(e.Node, o.Node)
		}
	}
}

// nodesOfTasks returns the nodes of srun's tasks, by NCCL's lines and launchers' summaries below a task's
// label, by start lines, and by srun's reports on the tasks' exits.
func (j *job) nodesOfTasks() map[int]string {
	nodes := map[int]string{}
	for _, f := range j.files {
		for t, h := range f.HostOf {
			if h != "" {
				nodes[t.Label] = h
			}
		}
	}
	for _, n := range j.nodeStarts() {
		nodes[n.Task] = n.Host
	}
	for _, f := range j.files {
		for _, e := range f.Elastic {
			if e.Host != "" {
				nodes[e.Task] = e.Host
			}
		}
	}
	for _, e := range j.events {
		for _, t := range e.Tasks {
			nodes[t] = cmp.Or(e.Node, nodes[t]) // mpirun does not name it
		}
	}
	delete(nodes, -1) // from lines without a label
	return nodes
}

// lostNode returns the only node on which tasks failed by themselves, by srun and launchers' summaries, or the
// empty string. An event that names no node happened there.
func (j *job) lostNode() string {
	lost := map[string]struct{}{}
	for _, e := range j.events {
		if e.Node != "" && len(e.Tasks) > 0 && !scan.ToldToEnd(e.Exit) {
			lost[e.Node] = struct{}{}
		}
	}
	for _, f := range j.files {
		for _, e := range f.Elastic {
			if e.Host != "" {
				lost[e.Host] = struct{}{}
			}
		}
	}
	for node := range lost {
		if len(lost) == 1 {
			return node
		}
	}
	return ""
}

// nodesOfRanks returns the nodes of ranks, by start lines, NCCL's lines, launchers' summaries, srun and
// files' names.
func (j *job) nodesOfRanks() map[int]string {
	nodes := j.startedOn()
	set := func(rank int, node string) {
		if rank >= 0 && node != "" {
			nodes[rank] = node
		}
	}
	nodeOfTask := map[int]string{}
	if !j.taskRank {
		nodeOfTask = j.nodesOfTasks()
	}
	for i, f := range j.files {
		for t := range f.LastBy {
			set(j.rankOf(i, t), cmp.Or(j.fileNode[i], t.Host, nodeOfTask[t.Label]))
		}
		for t, h := range f.HostOf {
			set(j.rankOf(i, t), h)
		}
		for _, e := range f.Elastic {
			set(e.Rank, e.Host)
		}
	}
	for _, e := range j.events {
		for _, t := range e.Tasks {
			if j.taskRank {
				set(t, e.Node)
			}
		}
	}
	return nodes
}

// ownRank returns the rank that an event's own text tells, by a rank's field before the message, "AssertionError: [Rank 2] …", or
// as the one that failed; or -1. A setting of an exception's message, "ValueError: rank=16 is too large", is LoRA's.
func (j *job) ownRank(e *scan.Event) int {
	r := -1
	if _, f, ok := logline.CutRank(e.Text); ok && (e.Kind == "" || f.Form != logline.AsSetting) {
		r = f.Rank
	} else if g := rankWithin.FindStringSubmatch(e.Text); g != nil && !ofPeer.MatchString(e.Text) &&
		(g[1] == "" || e.Kind != "" && e.Weight >= pattern.Generic-1 && j.manyProcesses()) {
		r, _ = strconv.Atoi(g[1] + g[2] + g[3] + g[4])
	}
	if !j.mayHave(r) {
		return -1
	}
	return r
}

// mayHave reports whether the job may have a rank: what is said of another is said of a matrix or of LoRA.
func (j *job) mayHave(r int) bool { return j.world == 0 || r < j.world }

// rankWithin matches a message that ends with the rank that raised it, or that Megatron's rerun_state_machine.py writes with it;
// ofPeer one that ends with another rank.
var (
	rankWithin = lazy.New(`^[\w.]+: .* \((?i:rank)[ =:]?(\d{1,6})\)[.!]?$|\bUnexpected result \S+ on rank (\d{1,6}) at iteration |[-|>\]] rank (\d{1,6}) failed: |` +
		`\[RankMon\w*(?:@[\w.-]+)?:(\d{1,6})\] `)
	ofPeer = lazy.New(`(?i)\b(?:peer|from|to|with|lost|for)\b[^(]{0,24}\(rank`)
)

// childOfRank matches the exception by which a rank reports the exit of a process that it had started.
var childOfRank = lazy.New(`\bof rank (\d{1,6}) (?:left|exited|ended|died|failed|terminated)\b.{0,30}\b(?:exit ?code|status|signal)\b`)

// firstRanks returns the first rank of each node, by its start line or a launcher's summary.
func (j *job) firstRanks() map[string]int {
	base := map[string]int{}
	for _, n := range j.nodeStarts() {
		base[n.Host] = n.First
	}
	for _, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank >= 0 && e.Local >= 0 && e.Host != "" {
				base[e.Host] = e.Rank - e.Local
			}
		}
	}
	return base
}

// ncclRankOf returns the rank of NCCL's "node:pid:tid [device]", or -1: by the process, which a
// launcher's summary names, or by the device, which is the local rank.
func ncclRankOf(text string, byPid, firstRanks map[string]int) int {
	g := scan.NCCLHost.FindStringSubmatch(text)
	if g == nil {
		return -1
	}
	if r, ok := byPid[g[1]+":"+g[2]]; ok {
		return r
	}
	if base, ok := firstRanks[g[1]]; ok {
		if device, isNumber := logline.Number(g[3]); isNumber {
			return base + device
		}
	}
	return -1
}

// rankOfProcess returns the rank of the process in an event, by the file or a launcher's summary, or
// -1.
func (j *job) rankOfProcess(e *scan.Event) int {
	pid := e.Process()
	if pid == "" {
		return -1
	}
	if r, ok := j.files[e.File].RankOfPid[pid]; ok {
		return r
	}
	rank := -1
	for _, s := range j.files[e.File].Elastic {
		if s.Pid == pid && s.Rank >= 0 {
			if rank >= 0 && rank != s.Rank {
				return -1
			}
			rank = s.Rank
		}
	}
	return rank
}

// nodeByRank returns the node of a rank, by its neighbours on the same node.
func (j *job) nodeByRank(rank int, nodeOfRank map[int]string) string {
	if h := nodeOfRank[rank]; h != "" {
		return h
	}
	per := j.perNode
	if per == 0 {
		per = 8
		if n := len(j.given.Nodes); n > 0 && j.ranks() > 0 {
			per = max(1, j.ranks()/n)
		}
	}
	below, above := "", ""
	for r := rank; r >= rank/per*per && below == ""; r-- {
		below = nodeOfRank[r]
	}
	for r := rank; r < (rank/per+1)*per && above == ""; r++ {
		above = nodeOfRank[r]
	}
	switch {
	case below != "" && above != "" && below != above:
		// Nodes may have fewer ranks than usual, so it may be either node, unless launchers say which ranks are theirs.
		from, known := j.firstRank[below]
		next, alsoKnown := j.firstRank[above]
		switch {
		case alsoKnown && next <= rank:
			return above
		case known && alsoKnown && rank <= from+j.mostLocal():
			return below
		}
		return ""
	case below+above != "":
		if from, known := j.firstRank[cmp.Or(below, above)]; known && rank < from {
			return "" // a launcher says that this node's ranks begin above it
		}
		return cmp.Or(below, above)
	}
	if k := rank / per; k < len(j.given.Nodes) {
		return j.given.Nodes[k]
	}
	return ""
}

// mostLocal returns the highest local rank on whose exit a launcher reports, or -1.
func (j *job) mostLocal() int {
	most := -1
	for _, f := range j.files {
		for _, e := range f.Elastic {
			most = max(most, e.Local)
		}
	}
	return most
}

// hasSeveralNodes reports whether a file has lines of ranks on several nodes: a launcher's summary
// names a rank above its local rank.
func hasSeveralNodes(f *scan.Facts) bool {
	return slices.ContainsFunc(f.Elastic, func(e scan.ElasticEntry) bool { return e.Local >= 0 && e.Rank > e.Local })
}

// placeLocals determines the global rank of local rank 0 by the ranks with which lines name their local ranks: that of a file only if
// all of them agree, since processes of several nodes may write into it.
func (j *job) placeLocals() {
	j.localBases = make([]map[logline.Tag]int, len(j.files))
	for i, f := range j.files {
		j.localBases[i] = map[logline.Tag]int{}
		several := false
		for t, rank := range f.Bases {
			if t.Local < 0 {
				continue
			}
			base := rank - t.Local
			j.localBases[i][withoutLocal(t)] = base
			if t.Label < 0 && (t.Host == "" || t.Host == j.fileNode[i]) {
				several = several || j.baseRank[i] >= 0 && j.baseRank[i] != base
				j.baseRank[i] = base
			}
		}
		if several {
			j.baseRank[i] = -1
		}
	}
}

// withoutLocal returns the task and the node of a tag.
func withoutLocal(t logline.Tag) logline.Tag {
	return logline.Tag{Label: t.Label, Local: -1, Rank: -1, Host: t.Host}
}

// rankOf returns the global rank of a tag in a file, or -1.
func (j *job) rankOf(file int, t logline.Tag) int {
	if t.Rank >= 0 {
		return t.Rank
	}
	f := j.files[file]
	if r, ok := f.Bases[logline.Tag{Label: t.Label, Local: t.Local, Rank: -1, Host: t.Host}]; ok {
		return r
	}
	if t.Local >= 0 {
		if b, ok := j.firstRank[t.Host]; ok {
			return b + t.Local
		}
		if b, ok := j.localBases[file][withoutLocal(t)]; ok && (t.Label >= 0 || t.Host != "") {
			return b + t.Local
		}
		if t.Label >= 0 && j.perNode > 0 {
			return t.Label*j.perNode + t.Local
		}
		if b := j.baseRank[file]; b >= 0 {
			return b + t.Local
		}
		if b, ok := j.firstRank[j.fileNode[file]]; ok {
			return b + t.Local
		}
		if j.world > 0 && j.world == j.perNode ||
			(len(j.files) == 1 || len(j.nodes) == 1) && t.Label < 0 && (j.world == 0 || j.world <= j.perNode) && !hasSeveralNodes(f) {
			return t.Local
		}
		return -1
	}
	if t.Label >= 0 {
		if j.taskRank {
			return t.Label
		}
		return -1
	}
	if j.fileRank[file] >= 0 {
		return j.fileRank[file]
	}
	if m := logfile.AttemptPath.FindStringSubmatch(j.src.Logs[file].Name); m != nil {
		l, _ := strconv.Atoi(m[2])
		if b, ok := j.firstRank[j.fileNode[file]]; ok {
			return b + l
		}
		if b := j.baseRank[file]; b >= 0 {
			return b + l
		}
	}
	if j.world == 1 {
		return 0
	}
	return -1
}
