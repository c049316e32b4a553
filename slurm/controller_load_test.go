package slurm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

func TestTheControllersLoadIsReadInEveryRelease(t *testing.T) {
	var b strings.Builder
	for _, release := range slurmtest.Releases {
		fmt.Fprintf(&b, "%s %+v\n", release, slurm.ParseLoad(slurmtest.Recorded(t, release, "text/sdiag.txt")))
	}
	require.Equal(t, strings.TrimLeft(`
22.05 {Threads:3 AgentQueue:0 DBDQueue:0 Pending:20 Running:10 CycleMicro:66}
23.11 {Threads:2 AgentQueue:9 DBDQueue:0 Pending:20 Running:11 CycleMicro:60}
24.11 {Threads:1 AgentQueue:13 DBDQueue:0 Pending:20 Running:11 CycleMicro:64}
25.11 {Threads:1 AgentQueue:0 DBDQueue:0 Pending:0 Running:0 CycleMicro:49}
26.05 {Threads:1 AgentQueue:5 DBDQueue:0 Pending:0 Running:0 CycleMicro:84}
`, "\n"), b.String())
	require.True(t, slurm.ControllerLoad{Threads: 204}.Busy())
	require.False(t, slurm.ControllerLoad{Threads: 203}.Busy())
	require.True(t, slurm.ControllerLoad{AgentQueue: 10000}.Busy())
}
