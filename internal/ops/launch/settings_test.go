package launch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A remedy becomes a setting where its words start with a flag of Megatron's and a
// number.
func TestWhatARemedySets(t *testing.T) {
	for fix, want := range map[string]string{
		"use --micro-batch-size 2, or a smaller model": "--micro-batch-size 2",
		"add --use-distributed-optimizer":              "--use-distributed-optimizer",
		"set --micro-batch-size lower":                 "",
		"set --no-such-flag 3":                         "",
		"use TP 4: 36 heads are not divisible by TP 8": "--tensor-model-parallel-size 4",
		"use CP 1, or EP 2":                            "--context-parallel-size 1",
		"ask whoever wrote it":                         "",
	} {
		require.Equal(t, want, strings.Join(settings(fix), " "), fix)
	}
}

// Where no layout is legal, the error names the rule that prevents all of them.
func TestWhichRuleStandsInTheWay(t *testing.T) {
	const model = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --lr 1e-4 --train-iters 1"
	run := func(more string) megatron.Run {
		return megatron.Run{WorldSize: 8, Arch: 9, Argv: strings.Fields(model + more)}
	}
	require.ErrorContains(t, notLegal(run("")), "no layout that fits is legal")
	err := notLegal(run(" --tensor-model-parallel-size 3"))
	require.ErrorContains(t, err, "no layout that fits is legal: ")
	require.ErrorContains(t, err, "3")
}

// A call for a layout may leave out flags that no layout depends on; given ones stay.
func TestALayoutIsFoundBeforeALearningRateIsChosen(t *testing.T) {
	t.Parallel()
	require.Equal(t, "--lr 3e-5 --train-iters 1000 --micro-batch-size 1", strings.Join(withRequiredFlags(megatron.Run{Argv: []string{"--lr", "3e-5"}}), " "))
}
