package launch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
)

func TestEachPointOfASweepIsPlanned(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	given := append([]string{"--sweep", "global-batch-size=64,63", "--sweep", "lr=1e-4,3e-4"}, opstest.GoodJob...)
	out, err := opstest.Do(t, c, Plan(), given...)
	require.NoError(t, err)
	p := out.(PlanOut)
	require.False(t, p.OK)
	said := map[string]string{}
	for _, x := range p.Problems {
		require.Empty(t, said[x.Rule], "%s is told once", x.Rule)
		said[x.Rule] = x.Message
	}
	require.Contains(t, said["global-batch-divisible"], "global-batch-size=63 lr=1e-4 (2 of 4 points): ")
	require.NotContains(t, said["half-precision"], "points", "what is wrong with all is said as of one job")

	c.Lang = lang.ZH
	out, err = opstest.Do(t, c, Plan(), given...)
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.ZH), "（2/4 个点）：")

	s := &opstest.Site{}
	c = opstest.NewCall(t, s)
	_, err = opstest.Do(t, c, Submit(), append([]string{"--yes", "--sweep", "lr=1e-4,3e-4"}, opstest.GoodJob...)...)
	require.NoError(t, err)
	require.Len(t, s.Submitted, 1, "one array")
	require.Contains(t, s.Submitted[0].Script, "#SBATCH --array=0-1\n")
}
