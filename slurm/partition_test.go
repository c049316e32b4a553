package slurm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParsePartitionLimits(t *testing.T) {
	p := ParsePartitionLimits("PartitionName=dev AllowGroups=ALL AllowAccounts=research,infra AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A DefaultTime=00:10:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=2 MaxTime=01:00:00 MinNodes=1 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=gpu[1-4] PreemptMode=OFF OverSubscribe=EXCLUSIVE DefMemPerCPU=1000 MaxMemPerNode=UNLIMITED\n" +
		"PartitionName=prod AllowGroups=ml AllowAccounts=ALL AllowQos=normal QoS=part_prod DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 MaxMemPerNode=512000 PreemptMode=REQUEUE\n")
	require.Len(t, p, 2)
	require.Equal(t, PartitionLimits{
		Name: "dev", DefaultTimeS: new(int64(600)), MaxTimeS: new(int64(3600)), MinNodes: 1, MaxNodes: 2,
		DefMemory: "1000 MB per CPU", Accounts: []string{"research", "infra"}, Exclusive: true,
	}, p[0])
	require.Equal(t, PartitionLimits{
		Name: "prod", MaxMemory: "512000 MB per node", Groups: []string{"ml"}, QOS: []string{"normal"}, OwnQOS: "part_prod", Preempt: "REQUEUE",
	}, p[1])
	require.Empty(t, ParsePartitionLimits("slurm_load_partitions: No such partition\n"))
}

func TestParseQOS(t *testing.T) {
	q := ParseQOS("short|20|00:30:00|||||gres/gpu=64|normal,scavenge|DenyOnLimit|00:02:00\nbad line\n")
	require.Equal(t, []QOS{{
		Name: "short", Priority: 20, MaxWall: "00:30:00", GrpTRES: "gres/gpu=64", Preempts: []string{"normal", "scavenge"},
		Flags: []string{"DenyOnLimit"}, GraceTimeS: 120,
	}}, q)
}
