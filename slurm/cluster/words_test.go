package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// scontrol gets only the fields that change, and minutes are rounded up.
func TestWhatAChangeAsksFor(t *testing.T) {
	for want, u := range map[string]slurm.Update{
		"": {}, "Partition=dev": {Partition: "dev"}, "TimeLimit=90": {TimeLimit: 90 * time.Minute}, "TimeLimit=2": {TimeLimit: 61 * time.Second},
		"NumNodes=2 QOS=high": {NumNodes: 2, QOS: "high"}, "ExcNodeList=gpu[1-2]": {Exclude: []string{"gpu1", "gpu2"}},
	} {
		require.Equal(t, strings.TrimSpace("update JobId=7 "+want), strings.Join(updateArgs("7", u), " "))
	}
	for _, c := range []struct {
		shown string
		nodes int
		want  string
	}{
		{"NumNodes=4 NumCPUs=96 NumTasks=32", 2, "NumNodes=2-2 NumTasks=16 NumCPUs=48"},
		{"NumNodes=4-4 NumCPUs=96-96 NumTasks=32", 2, "NumNodes=2-2 NumTasks=16 NumCPUs=48"},
		{"NumNodes=4 NumCPUs=96 NumTasks=30", 2, "NumNodes=2"},
		{"NumNodes=4 NumCPUs=95 NumTasks=32", 2, "NumNodes=2"},
		{"NumNodes=4 NumTasks=4", 3, "NumNodes=3-3 NumTasks=3"},
		{"NumNodes=4 NumNodes=8 NumTasks=4", 3, "NumNodes=3-3 NumTasks=3"},
		{"", 2, "NumNodes=2"},
	} {
		require.Equal(t, c.want, strings.Join(sizeArgs(c.shown, c.nodes), " "), c.shown)
	}
}

// The change of an array is successful where scontrol reports besides only elements that
// have ended, or wait already.
func TestWhetherAllThatIsLeftWasChanged(t *testing.T) {
	for said, done := range map[string]bool{
		"": false, "6_2-3: No error\n": true, "6_1: Job has already finished\n": false, "6_1: Job has already finished\n\n6_2-3: No error\n": true,
		"6_2: No error\n6_3: Access denied\n": false, "6_1: No error\n6_2-3: Job is pending execution\n": true, "6_2-3: Job is pending execution\n": false,
	} {
		require.Equal(t, done, allUnfinishedDone(said), said)
	}
}
