package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestARequestIsHeldAgainstTheCluster(t *testing.T) {
	hour, nodes, cpus, gpus := int64(3600), 9, 96, 16
	r := request{spec: job.Spec{
		Partition: "dev,nosuch", Time: "2:00:00", Nodes: &nodes, CPUsPerTask: &cpus, GPUsPerNode: &gpus, Hint: "nomultithread", Account: "other", QOS: "urgent",
	}.WithDefaults()}
	r.partition([]slurm.Partition{{Name: "dev", Up: true, TimeLimitS: &hour, MaxNodes: 4, Total: 8}})
	r.nodes([]slurm.Node{{Name: "n1", Partitions: []string{"dev"}, CPUs: 96, GPUs: 8}}, 2)
	r.accounts([]slurm.Association{{Account: "research", QOS: []string{"normal"}}})
	require.ElementsMatch(t, []string{
		"partition-unknown", "partition-time", "partition-nodes", "cpus-over-node", "gpus-over-node", "account-not-yours",
	}, ids(r.ps))

	r = request{spec: job.Spec{Partition: "dev", Time: "1:00:00", Account: "research", QOS: "urgent"}.WithDefaults()}
	r.partition([]slurm.Partition{{Name: "dev", Up: true, TimeLimitS: &hour, Total: 8}})
	r.accounts([]slurm.Association{{Account: "research", QOS: []string{"normal"}}})
	require.Equal(t, []string{"qos-not-yours"}, ids(r.ps))
}

func ids(ps []rules.Problem) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Rule)
	}
	return out
}

func TestALiteralWorldSizeMustAgree(t *testing.T) {
	c := newCall(t, &site{})
	own := []string{"--nodes", "2", "--gpus-per-node", "4", "--time", "10", "--worktree", "/w", "--script", "train.py", "--"}
	for args, want := range map[string]bool{"--world-size=8": false, "--world-size=2": true} {
		out, err := do(t, c, "plan", append(append([]string{}, own...), args)...)
		require.NoError(t, err)
		require.Equal(t, want, rules.Blocking(out.(PlanOut).Problems), args)
	}
	out, err := do(t, c, "plan", append(own, "--init-method", "tcp://10.0.0.1:29500")...)
	require.NoError(t, err)
	require.Contains(t, ids(out.(PlanOut).Problems), "init-method-literal")
}
