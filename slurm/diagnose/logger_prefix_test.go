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
		"[default1]:2026-06-11 10:09:00,123 - megatron.training - INFO - ": outcome.Success,
		"[default1]:INFO:megatron.training:":                               outcome.Success,
		"[default1]:2026-06-11 10:09:00,123 [rank 3] INFO: ":               outcome.Success,
		"[default1]:I 1127 20:38:30 [rank 0/4] ":                           outcome.Success,
		"[default1]:[rank 0] ":                                             outcome.Success,
		"[default1]:E 1127 20:38:30 [rank 0/4] not ":                       outcome.UserException,
		"[default1]:2026-06-11 10:09:00,123 - train - ERROR - not yet ":    outcome.UserException,
	} {
		log := "[default0]:Traceback (most recent call last):\n[default0]:  File \"/w/t.py\", line 4, in misc\n[default0]:    x[k]\n" +
			"[default0]:KeyError: 'tokens'\n" + prefix + done
		r := diagnosetest.Old(t, log)
		require.Equal(t, class, r.Class, "%q: %s", prefix, r.RootLine)
	}
}
