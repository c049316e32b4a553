package fleet

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A threeNodes is a cluster of three nodes that records its commands.
type threeNodes struct {
	opstest.Site
	left    string // the output of a visit
	did     []string
	visited slurm.Visit
	ran     slurm.Exec
}

func (*threeNodes) Nodes(context.Context) ([]slurm.Node, error) {
	return []slurm.Node{
		{Name: "gpu1", State: "mixed", Partitions: []string{"prod"}, GPUs: 8, GPUsUsed: 6, CPUs: 64, CPUsUsed: 10},
		{Name: "gpu2", State: "drained", Partitions: []string{"prod"}, GPUs: 8, Reason: "Kill task failed", ReasonBy: "root"},
		{Name: "cpu1", State: "down*", Partitions: []string{"cpu"}, Reason: "Not responding"},
	}, nil
}

func (*threeNodes) Partitions(context.Context) ([]slurm.Partition, error) {
	day := int64(86400)
	return []slurm.Partition{{Name: "prod", Default: true, TimeLimitS: &day, GPUs: 8, Total: 2}, {Name: "cpu", Total: 1, MaxNodes: 4}}, nil
}

func (*threeNodes) PartitionLimits(context.Context) ([]slurm.PartitionLimits, error) {
	hour := int64(3600)
	return []slurm.PartitionLimits{{Name: "cpu", DefaultTimeS: &hour, MinNodes: 2, Accounts: []string{"a", "b"}, Exclusive: true}}, nil
}

func (y *threeNodes) ResumeNodes(_ context.Context, names []string) error {
	y.did = append(y.did, "resume "+strings.Join(names, ","))
	return nil
}

func (y *threeNodes) Visit(_ context.Context, v slurm.Visit) (string, error) {
	y.visited = v
	y.did = append(y.did, "visit "+v.Argv[4])
	return y.left, nil
}

func (y *threeNodes) Exec(_ context.Context, e slurm.Exec) ([]slurm.NodeOutput, error) {
	y.ran = e
	return []slurm.NodeOutput{{Node: "gpu1", Text: "same"}, {Node: "gpu2", Text: "same"}, {Node: "gpu4", Text: "other"}}, nil
}

func TestWhichNodesAreShown(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	_, err := opstest.Do(t, c, Nodes())
	require.ErrorContains(t, err, "not supported by this kind of cluster")
	c.Clusters["test"] = &threeNodes{}
	for words, want := range map[string]string{
		"":                   "gpu1 gpu2 cpu1",
		"--partition prod":   "gpu1 gpu2",
		"--drained":          "gpu2 cpu1",
		"--reason kill":      "gpu2",
		"gpu[1-2]":           "gpu1 gpu2",
		"gpu[1-2] --drained": "gpu2",
	} {
		out, err := opstest.Do(t, c, Nodes(), strings.Fields(words)...)
		require.NoError(t, err, words)
		var names []string
		for _, n := range out.(NodesOut).Nodes {
			names = append(names, n.Name)
		}
		require.Equal(t, want, strings.Join(names, " "), words)
	}
	out, err := opstest.Do(t, c, Nodes(), "--partition", "prod")
	require.NoError(t, err)
	require.Equal(t, []int{2, 16}, []int{out.(NodesOut).Partitions[0].FreeGPUs, out.(NodesOut).Partitions[0].TotalGPUs}, "a drained node has none that is free")
	for words, fails := range map[string]string{"--partition none": "prod, cpu", "gpu9": "`nodes` lists them", "gpu[1": "gpu[01-04,07]", "--check": "Kill task failed"} {
		_, err := opstest.Do(t, c, Nodes(), strings.Fields(words)...)
		require.Contains(t, ops.AsError(err).Fix.EN, fails, words)
	}
	out, err = opstest.Do(t, c, Nodes(), "--reason", "kill")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), `resume --reason "kill"`)
	require.Contains(t, opstest.Text(t, out, lang.EN), "Kill task failed (root)")
}

// standIns is an embedded back end of three nodes: a GPU of this machine, a running job, and nothing.
type standIns struct{ *opstest.Site }

func (standIns) Nodes(context.Context) ([]slurm.Node, error) {
	node := func(name, state string, gpus, used int) slurm.Node {
		return slurm.Node{Name: name, State: state, Partitions: []string{"local"}, Features: []string{slurm.Embedded}, GPUs: gpus, GPUsUsed: used}
	}
	return []slurm.Node{node("local1", "idle", 1, 0), node("local2", "allocated", 8, 8), node("local3", "idle", 0, 0)}, nil
}

func (standIns) Partitions(context.Context) ([]slurm.Partition, error) {
	return []slurm.Partition{{Name: "local", Up: true, Total: 3, Idle: 2, Allocated: 1, GPUs: 8, Features: []string{slurm.Embedded}}}, nil
}

// The GPUs that a stand-in's job is told it has do not make the machine full.
func TestStandInsAreNeverFull(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = standIns{&opstest.Site{}}
	out, err := opstest.Do(t, c, Nodes())
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{out.(NodesOut).Partitions[0].FreeGPUs, out.(NodesOut).Partitions[0].TotalGPUs})
}

func TestAPartitionWithoutGPUsHasNoneToBeFree(t *testing.T) {
	t.Parallel()
	o := NodesOut{Partitions: []PartitionFree{{Partition: slurm.Partition{Name: "cpu"}}, {Partition: slurm.Partition{Name: "gpu"}, TotalGPUs: 8}}}
	text := opstest.Text(t, o, lang.EN)
	require.NotContains(t, text, "0 / 0")
	require.Contains(t, text, "0 / 8", "all of which are in use")
}

func TestAPartitionIsShownWithWhatItAllows(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = &threeNodes{}
	out, err := opstest.Do(t, c, Partitions(), "cpu")
	require.NoError(t, err)
	text := opstest.Text(t, out, lang.EN)
	for _, said := range []string{"≤ 4", "01:00:00", "minimum nodes", "a, b", "whole nodes only"} {
		require.Contains(t, text, said)
	}
	require.NotContains(t, text, "operators only")
	all, err := opstest.Do(t, c, Partitions())
	require.NoError(t, err)
	require.NotContains(t, opstest.Text(t, all, lang.EN), "minimum nodes", "of several only the table is shown")
	require.Contains(t, opstest.Text(t, all, lang.EN), "prod*")
	_, err = opstest.Do(t, c, Partitions(), "none")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
}

func TestNodesAreResumedByOperatorsOnceAgreed(t *testing.T) {
	t.Parallel()
	y := &threeNodes{}
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = y
	for words, code := range map[string]ops.Code{"": ops.BadInput, "gpu[": ops.BadInput, "gpu1": ops.NotFound, "gpu2": ops.NotAllowed} {
		_, err := opstest.Do(t, c, Resume(), strings.Fields(words)...)
		require.Equal(t, code, ops.AsError(err).Code, words)
	}
	_, err := opstest.Do(t, c, Resume(), "--reason", "KILL")
	require.True(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "gpu2 (drained: Kill task failed)")
	require.Empty(t, y.did)
	out, err := opstest.Do(t, c, Resume(), "--reason", "KILL", "--yes")
	require.NoError(t, err)
	require.Equal(t, []string{"resume gpu2"}, y.did)
	require.Contains(t, opstest.Text(t, out, lang.ZH), "恢复接收作业的节点")
}

// The leftover processes of one's own ended jobs are shown before they are ended, in
// one language. Those of a running job are spared, an array's task included, whose processes
// carry its own number.
func TestLeftProcessesAreShownBeforeTheyAreEnded(t *testing.T) {
	t.Parallel()
	y := &threeNodes{left: "motd\ngpu2\t9\t4711\t70\tpython b\ngpu1\tx\t1\t1\tno pid\ngpu1\t8\t\t3700\tsleep\tinf\n"}
	y.KnownJobs = map[slurm.JobID]slurm.Job{"4720_3": {ID: "4720_3", RawID: "4723", User: "alice", State: slurm.Running}}
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = y
	out, err := opstest.Do(t, c, Cleanup(), "gpu[1-2]", "--match", "x", "--loose")
	require.True(t, ops.AsError(err).Confirm)
	require.Equal(t, "this ends 2 processes of alice on gpu[1-2]: gpu1 8 sleep\tinf, gpu2 9 python b", ops.AsError(err).Message.EN)
	require.Contains(t, ops.AsError(err).Message.ZH, "将结束 alice 在 gpu[1-2] 上的 2 个进程：")
	require.False(t, out.(CleanupOut).Ended)
	require.Equal(t, []string{"4720_3 4723", "x", "1"}, y.visited.Argv[6:])
	require.Equal(t, Leftover{Node: "gpu2", PID: 9, JobID: "4711", ElapsedS: 70, Command: "python b"}, out.(CleanupOut).Processes[1])
	require.Equal(t, []string{"visit list"}, y.did)
	out, err = opstest.Do(t, c, Cleanup(), "gpu1", "--yes")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "processes ended: 2")
	require.Equal(t, []string{"visit list", "visit end"}, y.did)
	y.left = strings.Repeat("gpu1\t8\t\t70\tsleep\n", 7)
	_, err = opstest.Do(t, c, Cleanup(), "gpu1")
	require.Contains(t, ops.AsError(err).Message.EN, ", and 2 more")
	require.Contains(t, ops.AsError(err).Message.ZH, "，另有 2 个")
	c.Confirmed, c.Shown = true, "gpu1:8/71,gpu1:9/72,gpu2:8/73"
	_, err = opstest.Do(t, c, Cleanup(), "gpu[1-2]")
	require.NoError(t, err)
	require.Equal(t, []string{"gpu1:8/71,9/72", "gpu2:8/73"}, y.visited.Argv[9:], "short enough for each argument, of however many nodes")
	c.Confirmed, c.Shown = false, ""
	y.left = ""
	out, err = opstest.Do(t, c, Cleanup(), "gpu1")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "no leftover processes of yours")
	for _, bad := range []string{"gpu[1", "$(id)", ""} {
		_, err = opstest.Do(t, c, Cleanup(), bad)
		require.Equal(t, ops.BadInput, ops.AsError(err).Code, bad)
	}
	c.Who.User = "root"
	_, err = opstest.Do(t, c, Cleanup(), "gpu1", "--yes")
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
}

func TestACommandRunsBesideARunningJobOfOnesOwn(t *testing.T) {
	t.Parallel()
	y := &threeNodes{Site: opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"1": {ID: "1", User: "alice", State: slurm.Running}, "2": {ID: "2", User: "alice", State: slurm.Pending}, "3": {ID: "3", User: "ben", State: slurm.Running},
	}}}
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = y
	for words, code := range map[string]ops.Code{"1": ops.BadInput, "1 --limit -1 -- id": ops.BadInput, "2 -- id": ops.Failed, "3 -- id": ops.NotAllowed, "4 -- id": ops.NotFound, "1 --nodes gpu[ -- id": ops.BadInput} {
		_, err := opstest.Do(t, c, RunCommand(), strings.Fields(words)...)
		require.Equal(t, code, ops.AsError(err).Code, "%s: %v", words, err)
	}
	out, err := opstest.Do(t, c, RunCommand(), "1", "--gpus", "--limit", "5", "-w", "gpu[1-2]", "--", "df", "-h")
	require.NoError(t, err)
	require.Equal(t, slurm.Exec{Job: "1", Nodes: []string{"gpu1", "gpu2"}, Argv: []string{"df", "-h"}, GPUs: true, Limit: 5 * time.Second}, y.ran)
	text := opstest.Text(t, out, lang.EN)
	require.Equal(t, 1, strings.Count(text, "same"), "nodes that said the same share a place")
	require.Contains(t, text, "gpu[1-2]")
}

func TestAvoidedNodesAreOnesOwnOrEverybodys(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	c.Now = func() time.Time { return now }
	empty, err := opstest.Do(t, c, Avoid(), "gpu1", "--drop")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, empty, lang.EN), "no node is avoided")
	for list, says := range map[string]string{"(null)": "is no list of nodes", "gpu[1": "missing ']'", "gpu 1": "is no list of nodes"} {
		_, err = opstest.Do(t, c, Avoid(), list)
		require.ErrorContains(t, err, says, list)
	}
	_, err = opstest.Do(t, c, Avoid(), "gpu[1-2]", "--hours", "2", "--reason", "slow")
	require.NoError(t, err)
	require.NoError(t, PutAvoided(t.Context(), c.Service, "test", Avoided{Node: "gpu3", Until: now.Add(time.Hour)}))
	require.NoError(t, PutAvoided(t.Context(), c.Service, "test", Avoided{Node: "gpu4", Owner: "ben", Until: now.Add(time.Hour)}))
	out, err := opstest.Do(t, c, Avoid(), "gpu9", "--spare")
	require.NoError(t, err)
	text := opstest.Text(t, out, lang.EN)
	require.Contains(t, text, "--exclude gpu[1-3]", "not ben's, and no spare")
	require.Contains(t, text, "everybody")
	require.Equal(t, now.Add(24*time.Hour), out.(AvoidOut).Nodes[3].Until.UTC())
	now = now.Add(3 * time.Hour)
	all, err := AvoidedNodes(t.Context(), c.Service, "test", "alice")
	require.NoError(t, err)
	require.Len(t, all, 1, "the others' time is over")
	for _, bad := range []string{"gpu[1", "a b", "gpu1 --hours 2161"} {
		_, err = opstest.Do(t, c, Avoid(), strings.Fields(bad)...)
		require.Equal(t, ops.BadInput, ops.AsError(err).Code, bad)
	}
}

func TestHostlistsAreWrittenInEveryForm(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	for words, want := range map[string]string{
		"gpu[1-3]":                  "gpu1\ngpu2\ngpu3\n",
		"gpu1 gpu2,gpu3":            "gpu1\ngpu2\ngpu3\n",
		"gpu1 gpu2 --compress":      "gpu[1-2]\n",
		"gpu[1-2] --slots 8":        "gpu1 slots=8\ngpu2 slots=8\n",
		"gpu[1":                     "",
		"gpu1 --slots -1":           "",
		"gpu1 --slots 8 --compress": "",
	} {
		out, err := opstest.Do(t, c, Hostlist(), strings.Fields(words)...)
		if want == "" {
			require.Equal(t, ops.BadInput, ops.AsError(err).Code, words)
			continue
		}
		require.NoError(t, err, words)
		require.Equal(t, want, out.(HostlistOut).Verbatim(), words)
	}
}

// A failure counts once for a node, and only the newest of many are kept.
func TestAFailureIsHeldAgainstANodeOnce(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	for i, b := range []Blame{{Job: "1", Class: "ecc"}, {Job: "1", Class: "ecc"}, {Job: "1", Class: "xid"}, {Job: "2", Class: "ecc"}} {
		all, err := RecordBlame(t.Context(), c.Service, "test", "gpu1", b)
		require.NoError(t, err)
		require.Len(t, all, []int{1, 1, 2, 3}[i])
	}
	for i := range mostBlames {
		_, err := RecordBlame(t.Context(), c.Service, "test", "gpu1", Blame{Job: slurm.JobID(strconv.Itoa(100 + i)), Class: "ecc"})
		require.NoError(t, err)
	}
	all := BlamesOf(t.Context(), c.Service, "test", "gpu1")
	require.Len(t, all, mostBlames)
	require.Equal(t, slurm.JobID("100"), all[0].Job)
	require.Empty(t, BlamesOf(t.Context(), c.Service, "test", "gpu2"))
}

// Nodes that accept no jobs are reported without a question; the others are tested once
// the caller agrees.
func TestNodesThatTakeJobsAreChecked(t *testing.T) {
	t.Parallel()
	y := &threeNodes{left: `nodecheck {"node":"gpu1","check":"end","ok":true}`}
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = y
	for words, code := range map[string]ops.Code{"gpu[": ops.BadInput, "a;b": ops.BadInput, "gpu1 --gpus=-1": ops.BadInput, "gpu9": ops.NotFound, "gpu[1-2]": ops.NotAllowed} {
		_, err := opstest.Do(t, c, NodeCheck(), strings.Fields(words)...)
		require.Equal(t, code, ops.AsError(err).Code, "%s: %v", words, err)
	}
	_, err := opstest.Do(t, c, NodeCheck(), "gpu[1-2]")
	require.Equal(t, "this takes 1 node of test for some minutes, with 8 GPUs each", ops.AsError(err).Message.EN)
	out, err := opstest.Do(t, c, NodeCheck(), "gpu2")
	require.NoError(t, err)
	require.Contains(t, out.(NodeCheckOut).Nodes[0].Findings[0], "Kill task failed")
	require.Empty(t, y.did)
	for words, want := range map[string]slurm.Visit{
		"gpu[1-2] --yes":      {Nodes: []string{"gpu1"}, GPUs: 8, CPUs: 8, Memory: "36G"},
		"gpu1 --yes --gpus 0": {Nodes: []string{"gpu1"}, CPUs: 1, Memory: "4G"},
	} {
		out, err = opstest.Do(t, c, NodeCheck(), strings.Fields(words)...)
		require.NoError(t, err)
		got := y.visited
		require.Equal(t, want, slurm.Visit{Nodes: got.Nodes, GPUs: got.GPUs, CPUs: got.CPUs, Memory: got.Memory}, words)
		require.Equal(t, strings.Contains(words, "gpu[1-2]"), out.(NodeCheckOut).Exclude == "gpu2", words)
	}
	n := NodeReport(t.Context(), c, "test", "gpu2", []Blame{{Job: "1", Class: "ecc", At: time.Unix(7, 0)}, {Job: "2", Class: "xid", At: time.Unix(9, 0), Line: "Xid 79"}})
	require.Contains(t, n.Text.EN, "Slurm says: drained Kill task failed")
	require.Contains(t, n.Text.ZH, "Slurm 状态：drained Kill task failed")
	require.Contains(t, n.Text.EN, `State=DRAIN Reason="xid"`)
	require.Contains(t, n.Text.EN, "Xid 79")
	require.Contains(t, n.Title.EN, "2 failures")
}
