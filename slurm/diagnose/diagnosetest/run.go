package diagnosetest

import (
	"fmt"
	"strings"
	"time"
)

// A Line is a line that a rank writes at a time after Start. Rank -1 is Slurm; a rank at or above Agent
// is the launcher of a node.
type Line struct {
	At   time.Duration
	Rank int
	Text string
}

// Agent plus a node's index is the Rank of that node's launcher.
const Agent = 1 << 20

// A Run is an invented job and the lines that its processes write.
type Run struct {
	World, PerNode int
	Skew           bool // the nodes' clocks differ by seconds
	Lines          []Line
}

// Start is the time at which a run begins.
var Start = time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)

// nodeName is the name of the nth node.
func nodeName(n int) string { return fmt.Sprintf("gpu%03d", 40+3*n) }

// Node is the node of a rank.
func (r *Run) Node(rank int) string { return nodeName(rank / r.PerNode) }

// Say adds lines. It replaces {stamp} by the time in PyTorch's format, {time} by the time in
// Megatron's, {host} by the rank's node, {rank} by the rank and {local} by its local rank.
func (r *Run) Say(at time.Duration, rank int, lines ...string) {
	for _, text := range lines {
		when := Start.Add(at)
		n := rank / r.PerNode
		if rank >= Agent {
			n = rank - Agent
		}
		if r.Skew && rank >= 0 {
			when = when.Add(time.Duration(n%5-2) * time.Second)
		}
		local := 0
		if rank >= 0 && rank < Agent {
			local = rank % r.PerNode
		}
		text = strings.NewReplacer("{stamp}", when.Format("0102 15:04:05.000000"), "{host}", nodeName(max(n, 0)), "{local}", fmt.Sprint(local), "{rank}",
			fmt.Sprint(rank), "{time}", when.Format("2006-01-02 15:04:05")).Replace(text)
		r.Lines = append(r.Lines, Line{at, rank, text})
	}
}

// Healthy adds the lines of a start and one iteration every ten seconds until a time.
func (r *Run) Healthy(from, until time.Duration) {
	r.Say(from, 0, fmt.Sprintf("using world size: %d, data-parallel size: %d, context-parallel size: 1, hierarchical context-parallel sizes: None, "+
		"tensor-model-parallel size: 1, pipeline-model-parallel size: 1", r.World, r.World),
		"------------------------ arguments ------------------------", "  micro_batch_size ................................ 4",
		"  seq_length ...................................... 4096", fmt.Sprintf("  world_size ...................................... %d", r.World),
		"training ...", "[before the start of training step] datetime: {time} ")
	r.Say(from+time.Second, 1, "WARNING:root:could not import fast_thing (optional), falling back to torch", "Traceback (most recent call last):",
		`  File "/w/megatron/core/fast.py", line 3, in <module>`, "    import fast_thing", "ModuleNotFoundError: No module named 'fast_thing'")
	i := 100
	for at := from + 10*time.Second; at <= until; at += 10 * time.Second {
		r.Say(at, r.World-1, fmt.Sprintf(" [{time}] iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): 10000.0 "+
			"| learning rate: 1.000000E-04 | global batch size:    64 | lm loss: 2.%d00000E+00 | loss scale: 1.0 | grad norm: 0.500 "+
			"| number of skipped iterations:   0 | number of nan iterations:   0 |", i, 64*i, 9-i%5))
		i++
	}
}

// Raise adds a traceback of a rank.
func (r *Run) Raise(at time.Duration, rank int, function, text string) {
	p := fmt.Sprintf("[rank%d]: ", rank)
	r.Say(at, rank, p+"Traceback (most recent call last):", p+`  File "/w/pretrain_gpt.py", line 90, in <module>`, p+"    pretrain(", p+`  File "/w/megatron/training/training.py", line 12, in `+
		function, p+"    "+function+"()", p+text)
}

// Victims adds the NCCL errors of all ranks that are not dead.
func (r *Run) Victims(at time.Duration, dead map[int]bool) {
	for rank := range r.World {
		if dead[rank] {
			continue
		}
		when := at + time.Duration(rank%7)*300*time.Millisecond
		r.Say(when, rank, "{host}:{rank}1:{rank}2 [{local}] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer gpu099<41000>",
			"[rank{rank}]:[E{stamp} ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with "+
				"exception: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5",
			"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", "Last error:",
			"terminate called after throwing an instance of 'c10::DistBackendError'")
	}
}

// Summaries adds torchelastic's summary for each node, which names the node's first process to fail. On
// nodes without an entry in code that is a victim.
func (r *Run) Summaries(at time.Duration, code map[int]int) {
	for n := range r.World / r.PerNode {
		who := n * r.PerNode
		exit := -6
		for rank, c := range code {
			if rank/r.PerNode == n {
				who, exit = rank, c
			}
		}
		a := Agent + n
		r.Say(at, a, fmt.Sprintf("E{stamp} 77 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: %d) local_rank: %d (pid: %d) of "+
			"binary: /v/bin/python", exit, who%r.PerNode, 1000+who),
			"Traceback (most recent call last):", `  File "/v/bin/torchrun", line 8, in <module>`, "    sys.exit(main())",
			"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "pretrain_gpt.py FAILED", "Failures:", "  <NO_OTHER_FAILURES>",
			"Root Cause (first observed failure):", "[0]:",
			"  time      : "+Start.Add(at).Format("2006-01-02_15:04:05"), "  host      : {host}", fmt.Sprintf("  rank      : %d (local_rank: %d)", who,
				who%r.PerNode), fmt.Sprintf("  exitcode  : %d (pid: %d)", exit, 1000+who),
			"  error_file: <N/A>", "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html")
	}
	r.Say(at+time.Second, -1, "srun: error: gpu040: task 0: Exited with exit code 1", "srun: Terminating StepId=77.0")
}
