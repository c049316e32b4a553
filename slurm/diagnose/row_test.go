package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

// rounds repeats lines with the number of the round in them.
func rounds(n int, lines string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(lines, "{n}", fmt.Sprint(i+1)))
	}
	return b.String()
}

// TestWhatIsSaidAgainIsNoEnd has what a program says in every round: the round
// after it shows that neither the words of an end nor those of an error are the
// job's end. What is said once, at the end, is.
func TestWhatIsSaidAgainIsNoEnd(t *testing.T) {
	const (
		work      = "Reading a shard\nThe learning rate is 0.01\nShuffled the samples\n"
		iteration = " iteration {n}/ 900 | elapsed time per iteration (ms): 900.1 | lm loss: 2.1 |\n"
		bar       = "Loading checkpoint shards: 100%|####| 2/2 [00:04<00:00, 2.17s/it]\n"
	)
	for name, c := range map[string]struct{ log, class string }{
		"a model is saved in every round": {rounds(9, work+"Saved the best model of round {n}\n"), diagnose.UnknownExit},
		"the model is saved at the end":   {rounds(9, work) + "Saved the best model\n", diagnose.Success},
		"each rank says it once":          {rounds(9, work) + rounds(8, "{n}: done\n"), diagnose.Success},
		"a list ends the log":             {rounds(9, work) + rounds(9, "wrote part {n}\n"), diagnose.Success},
		"every run says that all is done": {rounds(9, work+"Training finished\n"), diagnose.Success},
		"only the model was loaded":       {"Model loaded successfully\n" + work, diagnose.UnknownExit},
		"a bar was full long ago":         {bar + rounds(40, work), diagnose.UnknownExit},
		"a bar is full at the end":        {rounds(40, work) + bar, diagnose.Success},
		"an error of every round":         {rounds(9, rounds(4, iteration)+"ValueError: sample {n} is empty\n") + rounds(2, iteration), diagnose.UnknownExit},
		"an error at the end":             {rounds(9, rounds(4, iteration)) + "ValueError: sample 9 is empty\n", diagnose.UserException},
		"a traceback at the end": {
			rounds(9, rounds(4, iteration)+"ValueError: sample {n} is empty\n") + raised("ValueError: sample 10 is empty"), diagnose.UserException,
		},
		"an error of every round, and a process died": {
			rounds(9, rounds(4, iteration)+"ValueError: sample {n} is empty\n") + "srun: error: gpu7: task 3: Exited with exit code 1\n", diagnose.UserException,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnoseOld(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}
