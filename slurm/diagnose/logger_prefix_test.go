package diagnose_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Megatron's marks are the same behind a logger's prefix, below the tags of launchers.
func TestMarksBehindALogger(t *testing.T) {
	const done = "[after training is done] datetime: 2026-06-11 10:09:00\n"
	for prefix, class := range map[string]string{
		"[default1]:2026-06-11 10:09:00,123 - megatron.training - INFO - ":         outcome.Success,
		"[default1]:INFO:megatron.training:":                                       outcome.Success,
		"[default1]:2026-06-11 10:09:00,123 [rank 3] INFO: ":                       outcome.Success,
		"[default1]:I 1127 20:38:30 [rank 0/4] ":                                   outcome.Success,
		"[default1]:[rank 0] ":                                                     outcome.Success,
		"[default1]:[INFO|training.py:72] 2026-11-28 00:00:42,011 >> (rank=0) ":    outcome.Success,
		"[default1]:[NeMo I 2026-11-28 00:00:42 training:72] ":                     outcome.Success,
		"[default1]:INFO 11-28 00:00:42 loop.py:72] ":                              outcome.Success,
		"[default1]:[2026-11-28 00:00:42,011] [INFO] [engine.py:72:say] [Rank 0] ": outcome.Success,
		"[default1]:ValueError: the mark \"":                                       outcome.UserException,
		"[default1]:E 1127 20:38:30 [rank 0/4] not ":                               outcome.UserException,
		"[default1]:2026-06-11 10:09:00,123 - train - ERROR - not yet ":            outcome.UserException,
	} {
		log := "[default0]:Traceback (most recent call last):\n[default0]:  File \"/w/t.py\", line 4, in misc\n[default0]:    x[k]\n" +
			"[default0]:KeyError: 'tokens'\n" + prefix + done
		r := diagnosetest.Old(t, log)
		require.Equal(t, class, r.Class, "%q: %s", prefix, r.RootLine)
	}
}

// What the ranks had printed before may reach the log only when they leave, behind the mark of the end.
func TestSetUpThatArrivesBehindTheEnd(t *testing.T) {
	const prefix = "0: I 1127 20:39:06 [rank 0/4] "
	step := prefix + "iteration {n}/ 9 | elapsed time per iteration (ms): 56.1 | lm loss: 6.2E+00 |\n"
	late := "0: [default0]:  train_iters ................................. 9\n0: [default0]:> initializing torch distributed ...\n"
	require.Equal(t, outcome.Success, diagnosetest.Old(t, diagnosetest.Rounds(9, step)+prefix+"[after training is done]\n"+late).Class)
	require.NotEqual(t, outcome.Success, diagnosetest.Old(t, diagnosetest.Rounds(8, step)+late).Class)
}
