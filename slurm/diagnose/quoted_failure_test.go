package diagnose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
)

// A rank may quote another rank's failure, which happened elsewhere: the quoting rank's file and node
// say nothing about it.
func TestAQuotedFailureIsOnTheNodeOfItsRank(t *testing.T) {
	said := func(own, other string) string {
		return "[rank" + own + "]: loading the data\n[rank" + own + "]: " + strings.ReplaceAll(strings.TrimSuffix(diagnosetest.Raised(
			"RuntimeError: DDP expects same model across all ranks, but Rank "+own+" has 27 params, while rank "+other+" has inconsistent 39 params."), "\n"),
			"\n", "\n[rank"+own+"]: ") + "\n"
	}
	const n1, n2 = "logs/gpu-n1/none_ab12cd34/attempt_0/0/stderr.log", "logs/gpu-n2/none_cd34ab12/attempt_0/0/stderr.log"
	for name, c := range map[string]struct {
		logs map[string]string
		node any
	}{
		"whose log is there": {map[string]string{n1: said("0", "1"), n2: said("1", "0")}, "gpu-n2"},
		"whose log is not":   {map[string]string{n1: said("0", "9")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := ofFolder(t, c.logs)
			require.NotNil(t, r.RootRank)
			require.NotEqual(t, 0, *r.RootRank)
			if c.node == nil {
				require.Nil(t, r.RootNode)
				return
			}
			require.NotNil(t, r.RootNode)
			require.Equal(t, c.node, *r.RootNode)
		})
	}
}
