package answers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// Each kind of word is explained by its own table, not by a search.
func TestExplainKnowsEachKindOfWord(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for word, want := range map[string][2]string{
		"heads-multiple-of-tp":         {"rule", "multiple of TP"},
		"limit-waits":                  {"rule", "what is left"},
		"--tensor-model-parallel-size": {"flag", "matrices"},
		"--batch-size":                 {"flag", "--micro-batch-size"},
		"--train-steps":                {"flag", "--train-iters"},
		"--gradient-clip-val":          {"flag", "--clip-grad"},
		"--wgrad-deferral-limit":       {"flag", "of type int"},
		"--no-initialization":          {"flag", "takes no value"},
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
		"cuda_oom":                     {"failure class", "memory"},
		"CUDA-OOM":                     {"failure class", "memory"},
		"missing-srun":                 {"lint rule", "first node only"},
		"worktree":                     {"field of the job specification", "checkout"},
	} {
		out, err := opstest.Do(t, c, Explain(), strings.Fields(word)...)
		require.NoError(t, err, word)
		o := out.(ExplainOut)
		require.Equal(t, want[0], o.Kind, word)
		require.Contains(t, o.Says, want[1], word)
		zh := *c
		zh.Lang = lang.ZH
		out, err = opstest.Do(t, &zh, Explain(), strings.Fields(word)...)
		require.NoError(t, err, word)
		require.Equal(t, lang.ZH, lang.Of(out.(ExplainOut).Says), word)
	}
	out, err := opstest.Do(t, c, Explain(), "heads-multiple-of-tp")
	require.NoError(t, err)
	require.Regexp(t, `when +TP > 1`, opstest.Text(t, out, lang.EN))
	for typed, meant := range map[string]string{"cuda_omm": "cuda_oom", "PENDNG": "PENDING", "Resorces": "Resources", "head-multiple-of-tp": "heads-multiple-of-tp", "kil_switch": "kill_switch"} {
		_, err = opstest.Do(t, c, Explain(), typed)
		require.Equal(t, "did you mean "+meant+"?", ops.AsError(err).Fix.EN)
	}
	// A card that does not contain the name is no explanation of a misspelt one; ordinary words with a hyphen are.
	c.Answerer = func() *knowledge.Answerer { return knowledge.New(knowledge.Options{}) }
	for _, typed := range []string{"tensor-model-paralle-size", "micro-bach-size", "heads-multiple-tp", "checkpont-load"} {
		_, err = opstest.Do(t, c, Explain(), typed)
		require.Contains(t, ops.AsError(err).Fix.EN, "did you mean ", typed)
	}
	for _, typed := range []string{"flash-attention", "all-reduce"} {
		out, err = opstest.Do(t, c, Explain(), typed)
		require.NoError(t, err, typed)
		require.Equal(t, "knowledge", out.(ExplainOut).Kind, typed)
	}
	c.Answerer = nil
	_, err = opstest.Do(t, c, Explain(), "zzz")
	require.Contains(t, ops.AsError(err).Fix.EN, "a rule id, ")
	_, err = opstest.Do(t, c, Explain(), "SLURM_NO_SUCH")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
}

// A card may explain a word that no table has, unless the card is about another name.
func TestExplainFallsBackToTheCards(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	answerer := knowledge.New(knowledge.Options{})
	c.Answerer = func() *knowledge.Answerer { return answerer }
	out, err := opstest.Do(t, c, Explain(), "MASTER_ADDR")
	require.NoError(t, err)
	require.Equal(t, "knowledge", out.(ExplainOut).Kind)
	require.Contains(t, out.(ExplainOut).Says, "MASTER_ADDR")
	_, err = opstest.Do(t, c, Explain(), "MASTER_ADDRX_NO_SUCH")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
}

func TestExplainShowsAFlagOverTheReleases(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for word, want := range map[string]string{
		"--tensor-model-parallel-size": "all that are known, 0.15.3 to main",
		"--hybrid-layer-pattern":       "since 0.17.1",
		"--use-legacy-models":          "up to 0.17.1; gone since",
		"--qk-clip":                    "since 0.16.1",
		"--langrl-external-server":     "0.16.1; gone since",
		"--muon-tp-mode":               "default blockwise → duplicated",
		"--lazy-mpu-init":              "type",
		"--moe-extended-tp":            "releases with --moe-extended-tp  up to 0.16.1; gone since",
	} {
		for _, words := range [][]string{{word}, {"--flag", word}} {
			out, err := opstest.Do(t, c, Explain(), words...)
			require.NoError(t, err, word)
			require.Contains(t, opstest.Text(t, out, lang.EN), want, word)
		}
	}
}
