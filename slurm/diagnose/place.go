package diagnose

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A failure is a process that failed, as the log line and the summary of one launcher
// both name it.
type failure struct {
	file int
	pid  string
	exit int
}

// placeEvents gives each event its rank and node.
func (j *job) placeEvents() {
	hostBase := j.hostBase()
	byPid := map[string]int{}              // node and process, as NCCL's lines name both
	summed := map[failure][]elasticEntry{} // what summaries say of the processes of log lines
	for i, f := range j.files {
		for _, e := range f.elastic {
			if e.rank >= 0 && e.pid != "" {
				byPid[e.host+":"+e.pid] = e.rank
				summed[failure{i, e.pid, e.exit}] = append(summed[failure{i, e.pid, e.exit}], e)
			}
			if e.rank >= 0 && e.local >= 0 && e.host != "" {
				hostBase[e.host] = e.rank - e.local
			}
		}
	}
	nodeOfRank, lost := j.nodesOfRanks(), j.lostNode()
	nodeOfTask := map[int]string{} // as srun's words on the tasks' ends name both
	for _, e := range j.events {
		for _, t := range e.tasks {
			nodeOfTask[t] = e.node
		}
	}
	for _, list := range [][]*event{j.events, j.earlier} {
		for _, e := range list {
			e.rank = j.rankOf(e.file, e.tag, hostBase)
			// slurmstepd is labelled with the first task of its node.
			daemon := strings.HasPrefix(e.text, "slurmstepd") || strings.HasPrefix(e.text, "srun:")
			if daemon {
				e.rank = -1
				if !strings.HasPrefix(e.text, "srun:") && e.tag.label >= 0 && j.taskRank && e.class == Container {
					e.rank = e.tag.label
				}
			}
			if len(e.tasks) > 0 && j.taskRank {
				e.rank = e.tasks[0]
			}
			if of := summed[failure{e.file, e.pid, e.exit}]; len(of) == 1 && e.node == "" {
				e.rank, e.node = of[0].rank, of[0].host
			}
			if e.rank < 0 {
				e.rank = ncclRankOf(e.text, byPid, hostBase)
			}
			if g := ofItself.FindStringSubmatch(e.text); g != nil && e.rank < 0 && !e.agent {
				e.rank, _ = strconv.Atoi(g[1] + g[2])
			}
			switch {
			case e.node != "" && (daemon || e.class == SlurmNodeFail || j.nodes[e.node] > 1):
			case e.tag.host != "":
				e.node = e.tag.host
			case j.fileNode[e.file] != "":
				e.node = j.fileNode[e.file]
			case e.rank >= 0 && nodeOfRank[e.rank] != "":
				e.node = nodeOfRank[e.rank]
			case e.node == "":
				e.node = j.files[e.file].hostOf[e.tag]
			}
			if e.node == "" && e.rank >= 0 {
				e.node = j.nodeByRank(e.rank, nodeOfRank)
			}
			if e.node == "" && e.tag.label >= 0 && !j.taskRank {
				e.node = nodeOfTask[e.tag.label]
			}
			if e.node == "" && e.tag == noTag {
				e.node = lost
			}
		}
	}
}

// lostNode is the node of which srun and the launcher's summaries say that its
// tasks failed, where it is one only: what names no node happened there.
func (j *job) lostNode() string {
	lost := map[string]bool{}
	for _, e := range j.events {
		if e.node != "" && len(e.tasks) > 0 {
			lost[e.node] = true
		}
	}
	for _, f := range j.files {
		for _, e := range f.elastic {
			if e.host != "" {
				lost[e.host] = true
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

// nodesOfRanks are the nodes of ranks, as start lines, NCCL's lines, launchers'
// summaries, srun and the files' names tell them.
func (j *job) nodesOfRanks() map[int]string {
	nodes := j.startedOn()
	set := func(rank int, node string) {
		if rank >= 0 && node != "" {
			nodes[rank] = node
		}
	}
	hostBase := j.hostBase()
	for i, f := range j.files {
		for t := range f.lastBy {
			set(j.rankOf(i, t, nil), j.fileNode[i])
		}
		for t, h := range f.hostOf {
			set(j.rankOf(i, t, hostBase), h)
		}
		for _, e := range f.elastic {
			set(e.rank, e.host)
		}
	}
	for _, e := range j.events {
		for _, t := range e.tasks {
			if j.taskRank {
				set(t, e.node)
			}
		}
	}
	return nodes
}

// ofItself matches messages that begin with the rank that speaks: "Rank 2: found
// NaN in …", "AssertionError: [Rank 2] …".
var ofItself = lazy.New(`^(?:[\w.]+(?:Error|Exception): )?\[?(?i:rank)[ =:]?(\d{1,6})\]?[:,)]? |[-|>\]] rank (\d{1,6}) failed: `)

// hostBase gives the first rank of nodes that said so at their start.
func (j *job) hostBase() map[string]int {
	base := map[string]int{}
	for _, n := range j.nodeStarts() {
		base[n.host] = n.first
	}
	return base
}

// ncclRankOf finds the rank behind NCCL's "node:pid:tid [device]": by the
// process, which a launcher's summary names, or by the device, which is the
// local rank.
func ncclRankOf(text string, byPid, hostBase map[string]int) int {
	g := ncclHost.FindStringSubmatch(text)
	if g == nil {
		return -1
	}
	if r, ok := byPid[g[1]+":"+g[2]]; ok {
		return r
	}
	if base, ok := hostBase[g[1]]; ok {
		if device, isNumber := number(g[3]); isNumber {
			return base + device
		}
	}
	return -1
}

// nodeByRank finds the node of a rank from its neighbours on the same node.
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
	for r := rank / per * per; r < (rank/per+1)*per; r++ {
		if h := nodeOfRank[r]; h != "" {
			return h
		}
	}
	if k := rank / per; k < len(j.given.Nodes) {
		return j.given.Nodes[k]
	}
	return ""
}

// ranks is the world size, or how many ranks the logs show where it is not said.
func (j *job) ranks() int {
	if j.world > 0 {
		return j.world
	}
	most := -1
	for i, f := range j.files {
		most = max(most, j.fileRank[i])
		if j.taskRank {
			for l := range f.labels {
				most = max(most, l)
			}
		}
	}
	return max(most+1, j.ranksToldOf())
}

// ranksToldOf is how many ranks launchers tell of, where they tell of all up to the
// highest.
func (j *job) ranksToldOf() int {
	told, most := map[int]bool{}, -1
	for _, f := range j.files {
		for _, e := range f.elastic {
			if e.rank >= 0 {
				told[e.rank], most = true, max(most, e.rank)
			}
		}
		for _, e := range f.events {
			for _, t := range e.tasks {
				if j.taskRank {
					told[t], most = true, max(most, t)
				}
			}
		}
	}
	if len(told) <= most {
		return 0
	}
	return most + 1
}

// rankOf returns the global rank that a tag in a file stands for, or -1.
func (j *job) rankOf(file int, t tag, hostBase map[string]int) int {
	if t.rank >= 0 {
		return t.rank
	}
	f := j.files[file]
	if r, ok := f.bases[tag{label: t.label, local: t.local, rank: -1, host: t.host}]; ok {
		return r
	}
	if t.local >= 0 {
		if b, ok := j.bases[t.host]; ok {
			return b + t.local
		}
		if t.label >= 0 {
			for k, r := range f.bases {
				if k.label == t.label && k.local >= 0 {
					return r - k.local + t.local
				}
			}
			if j.perNode > 0 {
				return t.label*j.perNode + t.local
			}
		}
		if b := j.baseRank[file]; b >= 0 {
			return b + t.local
		}
		if b, ok := hostBase[j.fileNode[file]]; ok && j.fileNode[file] != "" {
			return b + t.local
		}
		if j.world > 0 && j.world == j.perNode || len(j.files) == 1 && t.label < 0 && (j.world == 0 || j.world <= j.perNode) {
			return t.local
		}
		return -1
	}
	if t.label >= 0 {
		if j.taskRank {
			return t.label
		}
		return -1
	}
	if j.fileRank[file] >= 0 {
		return j.fileRank[file]
	}
	if m := attemptPath.FindStringSubmatch(j.src.files[file].name); m != nil {
		l, _ := strconv.Atoi(m[2])
		if b, ok := j.bases[j.fileNode[file]]; ok {
			return b + l
		}
		if b := j.baseRank[file]; b >= 0 {
			return b + l
		}
		if b, ok := hostBase[j.fileNode[file]]; ok {
			return b + l
		}
	}
	if j.world == 1 {
		return 0
	}
	return -1
}
