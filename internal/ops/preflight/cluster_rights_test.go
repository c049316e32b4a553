package preflight

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
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

	r = request{spec: r.spec}
	r.accounts([]slurm.Association{{Account: "research"}})
	require.Empty(t, ids(r.ps), "a cluster that tells of no QOS lets every one be asked for")
}

// One of several partitions with enough room suffices: Slurm starts the job there.
func TestOnePartitionThatFitsIsEnough(t *testing.T) {
	hour, day, two := int64(3600), int64(86400), 2
	parts := []slurm.Partition{
		{Name: "short", Up: true, TimeLimitS: &hour, Total: 8},
		{Name: "small", Up: true, Total: 1},
		{Name: "long", Up: true, TimeLimitS: &day, Total: 8},
		{Name: "closed", State: "down", Total: 8},
	}
	for asked, want := range map[string]rules.Severity{
		"short": rules.Error, "small": rules.Error, "short,small": rules.Error, "short,long": rules.Warning, "long,small": rules.Warning, "long": "",
	} {
		r := request{spec: job.Spec{Partition: asked, Time: "2:00:00", Nodes: &two}.WithDefaults()}
		r.partition(parts)
		require.Equal(t, want != "", len(r.ps) > 0, asked)
		for _, p := range r.ps {
			require.Equal(t, want, p.Severity, "%s: %s", asked, p.Rule)
		}
	}
	r := request{spec: job.Spec{Partition: "short,closed", Time: "2:00:00", Nodes: &two}.WithDefaults()}
	r.partition(parts)
	require.True(t, rules.Blocking(r.ps), "one that is closed has no room")
}

func TestARequestIsToldWhichLimitItBreaksAndHowMuchIsLeft(t *testing.T) {
	two, eight := 2, 8
	r := request{spec: job.Spec{Nodes: &two, GPUsPerNode: &eight, Time: "3:00:00"}.WithDefaults()}
	r.limits([]slurm.Limit{
		{Of: "account research", Name: "GrpTRES", TRES: "gres/gpu", Max: 24, Used: 12},
		{Of: "alice in research", Name: "MaxWallPJ", Max: 120},
		{Of: "alice in research", Name: "MaxSubmitJobs", Max: 4, Used: 4},
		{Of: "alice under QOS short", Name: "MaxTRESPU", TRES: "gres/gpu", Max: 8},
		{Of: "account research", Name: "GrpTRESMins", TRES: "gres/gpu", Max: 10000, Used: 9000},
		{Of: "account research", Name: "GrpJobs", Max: 10, Used: 2},
	}, nil)
	var got [][3]string
	for _, p := range r.ps {
		got = append(got, [3]string{p.Rule, p.Field, p.Message})
		require.NotEmpty(t, p.Fix)
	}
	require.Equal(t, [][3]string{
		{"limit-waits", "gpus_per_node", "GrpTRES gres/gpu of account research: 24 at most, 12 taken, 12 left, and the job asks for 16"},
		{"limit-never", "time", "MaxWallPJ of alice in research: 02:00:00 at most, and the job asks for 03:00:00"},
		{"limit-never", "account", "MaxSubmitJobs of alice in research: 4 at most, 4 taken, 0 left, and the job asks for 1"},
		{"limit-never", "gpus_per_node", "MaxTRESPU gres/gpu of alice under QOS short: 8 at most, 0 taken, 8 left, and the job asks for 16"},
		{"limit-waits", "time", "GrpTRESMins gres/gpu of account research: 10000 at most, 9000 taken, 1000 left, and the job asks for 2880"},
	}, got)
}

func TestAPartitionSaysWhomItLetsIn(t *testing.T) {
	cpus := 96
	r := request{spec: job.Spec{Partition: "big", Account: "research", QOS: "short", CPUsPerTask: &cpus}.WithDefaults()}
	r.checkAdmission([]slurm.PartitionLimits{
		{Name: "big", Accounts: []string{"infra"}, QOS: []string{"normal"}, MinNodes: 4, MaxCPUs: 64},
		{Name: "other", Accounts: []string{"nobody"}},
	}, nil)
	require.Equal(t, []string{"partition-account", "partition-qos", "partition-nodes", "cpus-over-node"}, ids(r.ps))

	r = request{spec: job.Spec{Partition: "big"}.WithDefaults()}
	r.checkAdmission([]slurm.PartitionLimits{{Name: "big", Accounts: []string{"research"}, QOS: []string{"normal"}}},
		[]slurm.Association{{Account: "research", DefaultQOS: "normal"}})
	require.Empty(t, r.ps, "one's only account and its default QOS hold where nothing is asked for")
}

func ids(ps []rules.Problem) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Rule)
	}
	return out
}

// A strictSite tells everything about its partitions and people, and counts the questions.
type strictSite struct {
	opstest.Site
	asked atomic.Int32
}

func (s *strictSite) Partitions(context.Context) ([]slurm.Partition, error) {
	s.asked.Add(1)
	hour := int64(3600)
	return []slurm.Partition{{Name: "dev", Default: true, Up: true, TimeLimitS: &hour, Total: 8}}, nil
}

func (s *strictSite) PartitionLimits(context.Context) ([]slurm.PartitionLimits, error) {
	return []slurm.PartitionLimits{{Name: "dev"}}, nil
}

func (s *strictSite) Associations(_ context.Context, user string) ([]slurm.Association, error) {
	return []slurm.Association{{Account: "research", User: user, QOS: []string{"normal"}}}, nil
}

func (s *strictSite) Limits(_ context.Context, user, account, _ string) ([]slurm.Limit, error) {
	return []slurm.Limit{{Of: user + " in " + account, Name: "MaxTRESPU", TRES: "gres/gpu", Max: 4}}, nil
}

// All that the cluster would deny is found, of each component of a heterogeneous job, and what
// components share is told once. The embedded back end denies nothing, and is not asked.
func TestWhatTheClusterWouldDeny(t *testing.T) {
	one, eight := 1, 8
	s := job.Spec{Time: "2:00:00", Account: "other", GPUsPerNode: &eight, Nodes: &one}
	deny := func(kind string, s job.Spec) ([]string, int32) {
		cl := &strictSite{Site: opstest.Site{OfKind: kind}}
		c := opstest.NewCall(t, &cl.Site)
		return ids(rights(t.Context(), c, cl, s.WithDefaults())), cl.asked.Load()
	}
	found, asked := deny("cli", s)
	require.Equal(t, []string{"partition-time", "account-not-yours", "limit-never"}, found)
	require.Equal(t, int32(1), asked)
	s.Components = []string{"nodes=1", "nodes=1 account=research"}
	found, asked = deny("cli", s)
	require.Equal(t, []string{"partition-time", "account-not-yours", "limit-never", "limit-never"}, found)
	require.Equal(t, int32(1), asked, "the cluster is asked once for all")
	found, asked = deny("local", s)
	require.Empty(t, found)
	require.Zero(t, asked)
}
