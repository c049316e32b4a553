package diagnose

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// The rank and node of an event, by its line, its tag, launchers' summaries and the job's nodes.
func TestWhereAnEventHappened(t *testing.T) {
	tag := func(label, rank int) logline.Tag { return logline.Tag{Label: label, Local: -1, Rank: rank} }
	told := func(rank int, host, pid string, exit int) scan.ElasticEntry {
		return scan.ElasticEntry{Rank: rank, Local: rank % 8, Task: -1, Host: host, Pid: pid, Exit: exit}
	}
	type entries = []scan.ElasticEntry
	two := []string{"gpu1", "gpu2"}
	const shell = "/w/run.sh: line 20:  4711 Killed                  python3 -u train.py"
	for name, c := range map[string]struct {
		e        scan.Event
		told     entries
		taskRank bool
		rank     int
		node     string
	}{
		"its tag":                            {scan.Event{Tag: tag(-1, 9)}, nil, false, 9, "gpu2"},
		"its writer":                         {scan.Event{Tag: logline.NoTag, Writer: "9"}, nil, false, 9, "gpu2"},
		"its tag, not its writer":            {scan.Event{Tag: tag(-1, 0), Writer: "9"}, nil, false, 0, "gpu1"},
		"a child of one of two nodes":        {scan.Event{Tag: tag(-1, 1), Child: true}, nil, false, -1, ""},
		"its words":                          {scan.Event{Tag: logline.NoTag, Text: "Rank 9: found NaN in it"}, nil, false, 9, "gpu2"},
		"its tag, not its words":             {scan.Event{Tag: tag(-1, 0), Text: "Rank 9: found NaN in it"}, nil, false, 0, "gpu1"},
		"a launcher's words":                 {scan.Event{Tag: logline.NoTag, Text: "Rank 9: found NaN in it", Agent: true}, nil, false, -1, ""},
		"a daemon's label, of a task":        {scan.Event{Tag: tag(1, -1), Text: "slurmstepd: error: x"}, nil, true, -1, ""},
		"a daemon's label, of a container":   {scan.Event{Tag: tag(1, -1), Text: "slurmstepd: error: x", Class: outcome.Container}, nil, true, 1, "gpu1"},
		"the first label, of a container":    {scan.Event{Tag: tag(0, -1), Text: "slurmstepd: error: x", Class: outcome.Container}, nil, true, 0, "gpu1"},
		"a container without a label":        {scan.Event{Tag: logline.NoTag, Text: "slurmstepd: error: x", Class: outcome.Container}, nil, true, -1, ""},
		"a container of a task that is none": {scan.Event{Tag: tag(1, -1), Text: "slurmstepd: error: x", Class: outcome.Container}, nil, false, -1, ""},
		"srun's label, of a container":       {scan.Event{Tag: tag(1, -1), Text: "srun: error: x", Class: outcome.Container}, nil, true, -1, ""},
		"srun's task":                        {scan.Event{Tag: logline.NoTag, Text: "srun: error: x", Tasks: []int{9, 10}}, nil, true, 9, "gpu2"},
		"srun's task that is a node":         {scan.Event{Tag: logline.NoTag, Text: "srun: error: x", Tasks: []int{1}}, nil, false, -1, ""},
		"a summary of the process":           {scan.Event{Tag: logline.NoTag, Pid: "4711", Exit: 1}, entries{told(9, "gpu2", "4711", 1)}, false, 9, "gpu2"},
		"two processes, one with its exit": {
			scan.Event{Tag: logline.NoTag, Pid: "4711", Exit: 1}, entries{told(9, "gpu2", "4711", 1), told(0, "gpu1", "4711", 2)}, false, 9, "gpu2",
		},
		"a summary without a node": {
			scan.Event{Tag: tag(1, -1)},
			entries{{Rank: -1, Local: -1, Task: 1, Host: "gpu2"}, {Rank: -1, Local: -1, Task: 1}, {Rank: -1, Local: -1, Task: 0, Host: "gpu1"}},
			false, -1, "gpu2",
		},
		"two summaries of the process": {
			scan.Event{Tag: logline.NoTag, Pid: "4711", Exit: 1}, entries{told(9, "gpu2", "4711", 1), told(0, "gpu1", "4711", 1)}, false, -1, "",
		},
		"NCCL's process": {
			scan.Event{Tag: logline.NoTag, Text: "gpu2:4711:400 [7] socket.cc:58 NCCL WARN x"}, entries{told(9, "gpu2", "4711", 1)}, false, 9, "gpu2",
		},
		"NCCL's process of the first rank": {
			scan.Event{Tag: logline.NoTag, Text: "gpu1:4711:400 [7] socket.cc:58 NCCL WARN x"}, entries{told(0, "gpu1", "4711", 1)}, false, 0, "gpu1",
		},
		"NCCL's device": {
			scan.Event{Tag: logline.NoTag, Text: "gpu2:4712:400 [3] socket.cc:58 NCCL WARN x"}, entries{told(9, "gpu2", "4711", 1)}, false, 11, "gpu2",
		},
		"NCCL's device, its tag says it": {
			scan.Event{Tag: tag(-1, 0), Text: "gpu2:4712:400 [3] socket.cc:58 NCCL WARN x"}, entries{told(9, "gpu2", "4711", 1)}, false, 0, "gpu1",
		},
		"a shell's process":                  {scan.Event{Tag: logline.NoTag, Text: shell}, entries{told(9, "gpu2", "4711", -9)}, false, 9, "gpu2"},
		"a shell's process, its tag says it": {scan.Event{Tag: tag(-1, 0), Text: shell}, entries{told(9, "gpu2", "4711", -9)}, false, 0, "gpu1"},
		"the only node that lost one":        {scan.Event{Tag: logline.NoTag}, entries{told(9, "gpu2", "4711", -9)}, false, -1, "gpu2"},
		"one of two nodes that lost some":    {scan.Event{Tag: logline.NoTag}, entries{told(9, "gpu2", "4711", -9), told(0, "gpu1", "4712", 1)}, false, -1, ""},
		"its task's node, by its summary": {
			scan.Event{Tag: tag(1, -1)}, entries{{Rank: -1, Local: -1, Task: 1, Host: "gpu2"}, {Rank: -1, Local: -1, Task: 0, Host: "gpu1"}}, false, -1, "gpu2",
		},
		"its label is a rank, not a node": {
			scan.Event{Tag: tag(9, -1)}, entries{{Rank: -1, Local: -1, Task: 9, Host: "gpu1"}, {Rank: -1, Local: -1, Task: 0, Host: "gpu2"}}, true, 9, "gpu2",
		},
		"the host of its tag":                {scan.Event{Tag: logline.Tag{Label: -1, Local: -1, Rank: 9, Host: "gpu1"}}, nil, false, 9, "gpu1"},
		"a name in it that is no known node": {scan.Event{Tag: tag(-1, 9), Node: "gpu7"}, nil, false, 9, "gpu7"},
		"a name in it, its rank's is known":  {scan.Event{Tag: tag(-1, 0), Node: "gpu7"}, entries{told(0, "gpu1", "4711", 1)}, false, 0, "gpu1"},
		"a failed node": {
			scan.Event{Tag: logline.Tag{Label: -1, Local: -1, Rank: -1, Host: "gpu1"}, Node: "gpu7", Class: outcome.SlurmNodeFail}, nil, false, -1, "gpu7",
		},
		"a daemon's node": {
			scan.Event{Tag: logline.Tag{Label: -1, Local: -1, Rank: -1, Host: "gpu1"}, Node: "gpu7", Text: "slurmstepd: error: x"}, nil, false, -1, "gpu7",
		},
		"a name in it, and another of itself": {scan.Event{Tag: logline.Tag{Label: -1, Local: -1, Rank: -1, Host: "gpu1"}, Node: "gpu7"}, nil, false, -1, "gpu1"},
		"quoted: not where it was told": {
			scan.Event{Tag: logline.Tag{Label: -1, Local: -1, Rank: 9, Host: "gpu1"}, Quoted: true}, entries{told(9, "gpu2", "4711", 1)}, false, 9, "gpu2",
		},
	} {
		j := newJob(sourceOf("x"), []*scan.Facts{{Elastic: c.told}}, Context{Nodes: two})
		j.world, j.perNode = 16, 8
		j.firstRank = j.firstRanks()
		j.placeFiles()
		j.taskRank, j.events = c.taskRank, []*scan.Event{&c.e}
		j.placeEvents()
		require.Equal(t, c.rank, c.e.Rank, name)
		require.Equal(t, c.node, c.e.Node, name)
	}
}
