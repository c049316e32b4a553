package scan

import (
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

var (
	// ranksProcess and processesRank match lines of launchers and programs with both the process id and
	// the rank of a process: "started rank 4 (pid 11358)".
	ranksProcess  = lazy.New(`(?i)\brank[ =:]{1,3}(\d{1,6})\b[^\d]{1,24}\bpid[ =:]{1,3}(\d{2,8})\b`)
	processesRank = lazy.New(`(?i)\bpid[ =:]{1,3}(\d{2,8})\b[^\d]{1,24}\brank[ =:]{1,3}(\d{1,6})\b`)
	// cameAsRank matches a process's report of its rank and the world size when it joins the others: in
	// torch's words, in Lightning's (lightning/fabric/utilities/distributed.py), and in those of torch's
	// first barrier (_store_based_barrier in distributed_c10d.py).
	cameAsRank = lazy.New(`(?i)\brank["']?[ =:]{1,3}(\d{1,6})\b[^\d]{1,16}\bworld[ _]size["']?[ =:]{1,3}(\d{1,6})\b` +
		`|\bGLOBAL_RANK: (\d{1,6}), MEMBER: \d{1,6}/(\d{1,6})\b` +
		`|\bRank (\d{1,6}): Completed store-based barrier for key:\S+ with (\d{1,6}) (?:nodes|workers)\b` +
		`|^\W{0,3}process (\d{1,6}) of (\d{1,6})\b(?: is)? (?:up|ready|started|joined)\b` +
		`|\bAdded key: store_based_barrier_key:1 to store for rank: (\d{1,6})$`)
	// deepSpeedNode and deepSpeedChild match lines that DeepSpeed's launcher writes on each node.
	// Source: deepspeed/launcher/launch.py.
	deepSpeedNode  = lazy.New(`\bnum_local_procs=(\d{1,4}), node_rank=(\d{1,5})\b`)
	deepSpeedChild = lazy.New(`\bprocess (\d{2,8}) spawned with command: .*--local_rank=(\d{1,4})\b`)
	// ofProcess matches the process id in a line: bash's about a process that a signal ended, or in the
	// name of torch's shared memory.
	ofProcess = lazy.New(`: line \d+: +(\d{2,8}) [A-Z]|/torch_(\d{2,8})_`)
)

// processes records the ranks of processes, and the ranks that joined.
func (s *scanner) processes(t logline.Tag, text string) {
	if g := cameAsRank.FindStringSubmatch(text); g != nil && len(s.Came) < 1<<16 {
		rank, _ := strconv.Atoi(g[1] + g[3] + g[5] + g[7] + g[9])
		of, _ := strconv.Atoi(g[2] + g[4] + g[6] + g[8])
		s.Came[rank] = max(of, s.Came[rank])
	}
	if g := deepSpeedNode.FindStringSubmatch(text); g != nil {
		local, _ := strconv.Atoi(g[1])
		node, _ := strconv.Atoi(g[2])
		s.deepSpeed[t] = local * node
	} else if g := deepSpeedChild.FindStringSubmatch(text); g != nil {
		if base, ok := s.deepSpeed[t]; ok {
			local, _ := strconv.Atoi(g[2])
			s.named(g[1], base+local)
		}
	} else if g := ranksProcess.FindStringSubmatch(text); g != nil {
		rank, _ := strconv.Atoi(g[1])
		s.named(g[2], rank)
	} else if g := processesRank.FindStringSubmatch(text); g != nil {
		rank, _ := strconv.Atoi(g[2])
		s.named(g[1], rank)
	}
}

// named records the rank of a process id. Processes on different nodes may have the same id; an id with
// two ranks has rank -1.
func (s *scanner) named(pid string, rank int) {
	if known, ok := s.RankOfPid[pid]; ok && known != rank {
		rank = -1
	}
	if len(s.RankOfPid) < 1<<16 {
		s.RankOfPid[pid] = rank
	}
}

// Process returns the id of the process that an event is about, or the empty string.
func (e *Event) Process() string {
	if e.Pid != "" {
		return e.Pid
	}
	if g := ofProcess.FindStringSubmatch(e.Text); g != nil {
		return g[1] + g[2]
	}
	return ""
}
