package ops

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Each kind of word is told by the table that knows it, not by a search.
func TestExplainKnowsEachKindOfWord(t *testing.T) {
	c := newCall(t, &site{})
	for word, want := range map[string][2]string{
		"heads-multiple-of-tp":         {"rule", "multiple of TP"},
		"limit-waits":                  {"rule", "what is left"},
		"--tensor-model-parallel-size": {"flag", "matrices"},
		"--batch-size":                 {"flag", "--micro-batch-size"},
		"--train-steps":                {"flag", "--train-iters"},
		"--gradient-clip-val":          {"flag", "--clip-grad"},
		"--ntasks-per-node":            {"option of sbatch or srun", "1 with torch.distributed.run"},
		"-N":                           {"option of sbatch or srun", "number of nodes"},
		"--dependency 4711":            {"option of sbatch or srun", "a bare id means afterany"},
		"SLURM_NTASKS":                 {"variable of Slurm's", "not of GPUs"},
		"SLURM_GPUS_PER_NODE":          {"variable of Slurm's", "SLURM_GPUS_ON_NODE"},
		"PD":                           {"job state", "waits"},
		"NODE_FAIL":                    {"job state", "node"},
		"(Resources)":                  {"pending reason", "first in line"},
		"drain":                        {"node state", "takes no"},
		"IDLE+DRAIN":                   {"node state", "is free; takes no"},
		"missing-srun":                 {"lint rule", "first node only"},
		"worktree":                     {"field of the job specification", "checkout"},
	} {
		out, err := do(t, c, "explain", strings.Fields(word)...)
		require.NoError(t, err, word)
		o := out.(ExplainOut)
		require.Equal(t, want[0], o.Kind, word)
		require.Contains(t, o.Says, want[1], word)
		zh := *c
		zh.Lang = lang.ZH
		out, err = do(t, &zh, "explain", strings.Fields(word)...)
		require.NoError(t, err, word)
		require.Equal(t, lang.ZH, lang.Of(out.(ExplainOut).Says), word)
	}
	_, err := do(t, c, "explain", "SLURM_NO_SUCH")
	require.Equal(t, NotFound, AsError(err).Code)
}
