package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// place is the rank and the node that a report blames, "-" for none.
func place(r report.Report) string {
	rank, node := "-", "-"
	if r.RootRank != nil {
		rank = fmt.Sprint(*r.RootRank)
	}
	if r.RootNode != nil {
		node = *r.RootNode
	}
	return rank + " " + node
}

// A stream of lines tells the rank and the node of a line only if it is one process's, or one node's.
func TestTheStreamOfSeveralProcesses(t *testing.T) {
	const world = "  world_size ...................................... 16\n"
	raised := diagnosetest.Raised("KeyError: 'tokens'")
	nccl := func(node int) string {
		return fmt.Sprintf("gpu%d:40%d:50%d [0] NCCL INFO Connected all rings\n", node, node, node)
	}
	said := func(ranks ...int) (b string) {
		for _, r := range ranks {
			b += fmt.Sprintf("[rank%d]: loading tokens\n", r)
		}
		return b
	}
	labelled := func(task int, log string) string { return of(fmt.Sprintf("%d: ", task), log) }
	for name, c := range map[string]struct{ log, place string }{
		"a task that is a node": {world + labelled(0, nccl(1)+said(0, 1, 2, 3)) + labelled(1, nccl(2)+said(8, 9, 10, 11)+raised), "- gpu2"},
		"a task that is a rank": {
			strings.Replace(world, "16", "2", 1) + labelled(0, nccl(1)+said(0)) + labelled(1, nccl(2)+said(1)+raised), "1 gpu2",
		},
		"one stream of two nodes":  {nccl(1) + nccl(2) + raised, "- -"},
		"one stream of one node":   {nccl(1) + nccl(1) + raised, "- gpu1"},
		"local ranks of two nodes": {world + of("gpu1: [default0]:", "[rank0]: up\n") + of("gpu2: [default1]:", "[rank9]: up\n") + of("gpu2: [default3]:", raised), "11 gpu2"},
		"local ranks of a node that named none": {
			world + of("gpu1: [default0]:", "[rank8]: up\n") + of("gpu2: [default3]:", raised), "- gpu2",
		},
	} {
		require.Equal(t, c.place, place(diagnosetest.Old(t, c.log)), name)
	}
}

// The node of the rank for which the others waited is that of the processes beside it, where its own lines do not name it.
func TestTheNodeOfTheOneWaitedFor(t *testing.T) {
	var b strings.Builder
	for node := range 2 {
		b.WriteString(of(fmt.Sprintf("%d: ", node), fmt.Sprintf("gpu%d:40%d:50%d [0] NCCL INFO Connected all rings\n", node+1, node, node)))
	}
	for rank := range 16 {
		enqueued := 12
		if rank == 11 {
			enqueued = 10
		}
		b.WriteString(of(fmt.Sprintf("%d: ", rank/8), fmt.Sprintf("[rank%d]:[E611 10:15:00.12 ProcessGroupNCCL.cpp:1537] [PG 0 (default_pg) Rank %d] "+
			"Timeout at NCCL work: 12, last enqueued NCCL work: %d, last completed NCCL work: 9.\n", rank, rank, enqueued)))
	}
	require.Equal(t, "11 gpu2", place(diagnosetest.Old(t, b.String()+"srun: error: gpu1: task 0: Exited with exit code 1\n")))
}
