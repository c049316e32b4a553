package scan_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

func TestListsOfTasksAndNodesAreReadOut(t *testing.T) {
	for list, want := range map[string][]int{
		"3": {3}, "0,2": {0, 2}, "0-3,7": {0, 1, 2, 3, 7}, "[0-1]": {0, 1}, "5-5": {5}, "5-4": nil, "": nil, "a-3": nil, "1-b": nil, "1,x,2": {1, 2},
	} {
		require.Equal(t, want, scan.TaskList(list), list)
	}
	require.Len(t, scan.TaskList("0-99999999"), 1<<14)
	require.Len(t, scan.TaskList("0-16383,1-9"), 1<<14)
	for list, want := range map[string][]string{
		"n1": {"n1"}, "n1,n2.cluster": {"n1", "n2.cluster"}, "n[08-10]": {"n08", "n09", "n10"}, "a[1,3-4]b,c": {"a1b", "a3b", "a4b", "c"},
		"n[3-2]": nil, "n[x-2],m": {"m"}, "n[1-y]": nil, "n 1": nil, "": nil, "n[1": {"n1"}, "n[9-11]": {"n9", "n10", "n11"},
	} {
		require.Equal(t, want, scan.ExpandNodes(list), list)
	}
	require.Len(t, scan.ExpandNodes("n[0-99999]"), 4096)
	require.Len(t, scan.ExpandNodes("n[0-4095],m"), 4096)
}
