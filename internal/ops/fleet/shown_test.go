package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// leftThere holds nodes with leftover processes, and one that could not be checked.
var leftThere = []NodeOut{
	{Node: slurm.Node{Name: "gpu1", State: "drained", Reason: "Kill task failed", ReasonBy: "root", GPUs: 8, GPUsUsed: 1, CPUs: 64, CPUsUsed: 2}, checked: true},
	{Node: slurm.Node{Name: "gpu2", State: "down", GPUs: 8}, Meaning: "it does not answer", checked: true, Unseen: "no route"},
	{Node: slurm.Node{Name: "gpu3", State: "drained", Reason: "Kill task failed"}, checked: true, Left: []slurm.Process{
		{User: "ada", PID: 1, State: "D", Command: "a"},
		{User: "ada", PID: 2, State: "S", Command: "b"},
		{User: "ada", PID: 3, State: "S", Command: "c"},
		{User: "ada", PID: 4, State: "S", Command: "d"},
		{User: "ada", PID: 5, State: "S", Command: "e"},
		{User: "ada", PID: 6, State: "S", Command: "f"},
	}},
	{Node: slurm.Node{Name: "gpu4", State: "idle"}, Blamed: []Blame{
		{Job: "7", Name: "gpt", User: "ada", Class: "ecc", At: time.Unix(0, 0).UTC()},
		{Job: "8", Name: "gpt", User: "ada", Class: "xid", At: time.Unix(60, 0).UTC(), Line: "Xid 79", File: "/w/8.log"},
	}},
}

// The answers are pinned in both languages.
func TestAnswersAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	hour, at := int64(3600), time.Unix(0, 0).UTC()
	whole := slurm.PartitionLimits{
		Name: "prod", DefaultTimeS: &hour, MinNodes: 1, DefMemory: "1 GB", MaxMemory: "2 GB", Accounts: []string{"a", "b"}, Groups: []string{"g"},
		QOS: []string{"q"}, OwnQOS: "own", Preempt: "REQUEUE", Exclusive: true, RootOnly: true,
	}
	prod := slurm.Partition{
		Name: "prod", State: "up", Default: true, TimeLimitS: &hour, Nodes: "gpu[1-4]", MaxNodes: 2,
		Allocated: 1, Idle: 2, Other: 1, Total: 4, GPUs: 8, Features: []string{"h100", "ib"},
	}
	here := slurm.Partition{Name: "here", State: "up", Nodes: "here[1-2]", Total: 2, Features: []string{slurm.Embedded}}
	checked := judged("a,b,c", `nodecheck {"node":"a","check":"shm","ok":true,"value":64,"unit":"GiB"}
nodecheck {"node":"a","check":"cuda","ok":false,"value":7,"given":8}
nodecheck {"node":"b","check":"barrier","ok":false,"backend":"nccl","error":"timeout"}
nodecheck {"node":"a","check":"ecc","skipped":"no-nvidia-smi"}
nodecheck {"node":"a","check":"xid","skipped":"kernel-log"}
nodecheck {"node":"b","check":"xid","skipped":"kernel-log"}
nodecheck {"node":"b","check":"inside","skipped":"its own \u001b[31mwords"}
nodecheck {"node":"a","check":"compute","skipped":"no-torch","error":"/v/python"}
nodecheck {"node":"b","check":"compute","skipped":"no-torch","error":"/w/python"}
nodecheck {"node":"a","check":"memory","skipped":"no-gpu"}
nodecheck {"node":"a","check":"allreduce","skipped":"no-gpu"}`)
	opstest.Pinned(t, *update, []opstest.Answer{
		{Name: "nodes that were looked into", Out: NodesOut{Nodes: leftThere, Listed: true, reason: "kill", mayResume: true}},
		{Name: "nodes that this person may not resume", Out: NodesOut{Nodes: leftThere[:1], Listed: true, reason: "kill"}},
		{Name: "many nodes", Out: NodesOut{Nodes: leftThere[:1], Partitions: []PartitionFree{{Partition: prod, FreeGPUs: 8, TotalGPUs: 32}, {Partition: here}}}},
		{Name: "avoided nodes", Out: NodesOut{Nodes: leftThere[3:], Listed: true, Avoided: []Avoided{
			{Node: "gpu2", Until: at, Reason: "slow"},
			{Node: "gpu1", Until: at, Owner: "ada"},
			{Node: "gpu1", Until: at},
			{Node: "gpu3", Spare: true, Until: at},
		}}},
		{Name: "a spare alone", Out: AvoidOut{Nodes: []Avoided{{Node: "gpu3", Spare: true, Until: at}}}},
		{Name: "one partition", Out: PartitionsOut{Partitions: []PartitionOut{{Partition: prod, Limits: &whole}}}},
		{Name: "partitions", Out: PartitionsOut{Partitions: []PartitionOut{{Partition: prod, Limits: &whole}, {Partition: here}}}},
		{Name: "the embedded one", Out: PartitionsOut{Partitions: []PartitionOut{{Partition: here}}}},
		{Name: "checked nodes", Out: checked},
		{Name: "nodes that hold", Out: judged("a,b", "")},
		{Name: "nodes given back", Out: ResumeOut{Nodes: []slurm.Node{leftThere[0].Node}, Resumed: true}},
		{Name: "nodes to give back", Out: ResumeOut{Nodes: []slurm.Node{leftThere[0].Node}}},
		{Name: "processes to end", Out: CleanupOut{Nodes: "gpu1", Processes: []Leftover{{Node: "gpu1", PID: 8, JobID: "7", ElapsedS: 3700, Command: "sleep"}}}},
		{Name: "a hostlist", Out: HostlistOut{Nodes: []string{"gpu1", "gpu2"}, Hostlist: "gpu[1-2]", Count: 2}},
	}, Nodes(), Partitions(), NodeCheck(), Resume(), Cleanup(), RunCommand(), Avoid(), Hostlist())
}

// A checkableNodes is a threeNodes whose nodes can be checked, except the last.
type checkableNodes struct{ threeNodes }

func (*checkableNodes) NodeProcesses(_ context.Context, node string) ([]slurm.Process, error) {
	if node == "cpu1" {
		return nil, errors.New("no route by http://ada:hunter22@proxy")
	}
	return []slurm.Process{{User: "ada", PID: 9, State: "D", Command: node + " http://ada:hunter22@git"}}, nil
}

func TestOperatorsLookIntoNodesThatAreOut(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = &checkableNodes{}
	c.As = func(cl ops.Cluster, _ string) (ops.Cluster, error) { return cl, nil }
	for who, code := range map[ops.Caller]ops.Code{
		{Surface: ops.Shell, ID: "ada", User: "ada"}:                       "",
		{Surface: ops.Slack, ID: "T/U", User: "ada", Operator: true}:       "",
		{Surface: ops.Slack, ID: "T/U", User: "ada"}:                       ops.NotAllowed,
		{Surface: ops.MCPHTTP, ID: "ada-agent", User: "ada", Agent: "any"}: ops.NotAllowed,
	} {
		c.Who = who
		out, err := opstest.Do(t, c, Nodes(), "--drained", "--check")
		if code != "" {
			require.Equal(t, code, ops.AsError(err).Code, who)
			_, err = opstest.Do(t, c, Resume(), "gpu2", "--yes")
			require.Equal(t, code, ops.AsError(err).Code, who)
			continue
		}
		require.NoError(t, err, who)
		text := opstest.Text(t, out, lang.EN)
		require.Contains(t, text, "1 left: ada 9 D gpu2")
		require.Contains(t, text, "not checked: no route")
		raw, err := json.Marshal(out)
		require.NoError(t, err)
		require.Contains(t, string(raw), `"command":"gpu2 http`)
		require.NotContains(t, text+string(raw), "hunter22")
	}
	c.Clusters["test"] = &threeNodes{}
	c.Who = ops.Caller{Surface: ops.Shell, ID: "ada", User: "ada"}
	_, err := opstest.Do(t, c, Nodes(), "--drained", "--check")
	require.Error(t, err, "this cluster does not tell of processes")
}

// Taking a node off the list removes the caller's own entry; only an operator, or a
// person in their own shell, also removes the entry for everybody.
func TestNodesComeOffTheList(t *testing.T) {
	t.Parallel()
	for who, left := range map[ops.Caller]int{
		{Surface: ops.Shell, ID: "ada", User: "ada"}:                 1,
		{Surface: ops.Slack, ID: "T/U", User: "ada", Operator: true}: 1,
		{Surface: ops.Slack, ID: "T/U", User: "ada"}:                 3,
	} {
		c := opstest.NewCall(t, &opstest.Site{})
		c.Who = who
		c.As = func(cl ops.Cluster, _ string) (ops.Cluster, error) { return cl, nil }
		until := c.Now().Add(time.Hour)
		for _, owner := range []string{"", "ada"} {
			for _, n := range []string{"gpu1", "gpu2"} {
				require.NoError(t, PutAvoided(t.Context(), c.Service, "test", Avoided{Node: n, Owner: owner, Until: until}))
			}
		}
		require.NoError(t, PutAvoided(t.Context(), c.Service, "test", Avoided{Node: "gpu3", Until: until}))
		require.NoError(t, PutAvoided(t.Context(), c.Service, "other", Avoided{Node: "gpu4", Until: until}))
		out, err := opstest.Do(t, c, Avoid(), "gpu[1-2]", "--drop")
		require.NoError(t, err)
		require.Len(t, out.(AvoidOut).Nodes, left, who)
	}
}

// A list that was asked for and is empty is said to be empty: the table of the partitions
// alone would leave it open.
func TestNoNodeIsLikeThat(t *testing.T) {
	out := NodesOut{Partitions: []PartitionFree{{}}, Listed: true}
	require.Equal(t, "no node is like that", out.View(lang.EN).Title)
	out.Listed = false
	require.Empty(t, out.View(lang.EN).Title)
}
