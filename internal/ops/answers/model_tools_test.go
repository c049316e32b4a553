package answers

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// some operations: tools that a model gets, and tools that it does not get.
var some = []ops.Op{
	Constants(), Rules(), Explain(), launch.Plan(), launch.Memory(), launch.Recommend(), jobcontrol.Status(), jobcontrol.List(), jobcontrol.Queue(),
	joblogs.Logs(), joblogs.Diagnose(),
	fleet.Nodes(), jobcontrol.Cancel(), launch.Submit(), fleet.Hostlist(),
}

func TestAModelReadsWithTheAskersRightsAndChangesNothing(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"4711": {ID: "4711", Name: "gpt", User: "alice", State: "RUNNING"}}})
	tools := map[string]func(args string) (string, error){}
	for _, tool := range modelTools(c, some) {
		require.True(t, json.Valid(tool.Schema), tool.Name)
		tools[tool.Name] = func(args string) (string, error) { return tool.Call(t.Context(), json.RawMessage(args)) }
	}
	require.Contains(t, tools, "plan")
	require.Contains(t, tools, "status")
	require.NotContains(t, tools, "cancel")
	require.NotContains(t, tools, "submit")

	for _, name := range []string{"memory", "recommend", "rules", "explain", "logs", "diagnose"} {
		require.Contains(t, tools, name)
	}

	out, err := tools["constants"](`{"nodes":2,"gpus_per_node":8,"gpu":"h100","tp":4}`)
	require.NoError(t, err)
	require.Contains(t, out, "CUDA_DEVICE_MAX_CONNECTIONS")
	out, err = tools["status"](`{"job":"4711"}`)
	require.NoError(t, err)
	require.Contains(t, out, "RUNNING")
	_, err = tools["constants"](`{"bogus":1}`)
	require.ErrorContains(t, err, "bogus")
}

func TestAModelSeesNoClusterOfWhoeverIsNotLinked(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	c.Who = ops.Caller{Surface: ops.Slack, ID: "T/U1"}
	var names []string
	for _, tool := range modelTools(c, some) {
		names = append(names, tool.Name)
	}
	require.ElementsMatch(t, []string{"plan", "memory", "recommend", "constants", "rules", "explain"}, names)
}
