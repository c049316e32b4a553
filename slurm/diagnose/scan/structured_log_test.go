package scan_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestStructuredLogs has what structured loggers print, one JSON object a line.
func TestStructuredLogs(t *testing.T) {
	const steps = `{"ts": "2026-02-03T04:05:06.5Z", "level": "info", "rank": 0, "event": "train", "step": 4, "of": 9, "loss": 2.5}` + "\n"
	none := -1
	for name, c := range map[string]struct {
		log, class string
		rank       int
	}{
		"a traceback in a field": {
			steps + `{"timestamp": "2026-02-03T04:05:07Z", "levelname": "ERROR", "rank": 5, "message": "crashed", "exc_info": "Traceback (most recent call last):\n` +
				`  File \"/w/train.py\", line 3, in step\n    f()\nRuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 9x9)"}` + "\n",
			outcome.ShapeMismatch, 5,
		},
		"an exception without one": {
			steps + `{"time": "2026-02-03T04:05:07Z", "severity": "error", "msg": "failed", "rank": "2", "exception": "torch.OutOfMemoryError: CUDA out of memory."}` + "\n",
			outcome.CUDAOOM, 2,
		},
		"other names of the fields": {
			`{"ts": "2026-02-03T04:05:07", "lvl": "error", "rank": 2, "msg": "crashed", "exc_info": "Traceback (most recent call last):\n` +
				`  File \"/w/train.py\", line 3, in step\n    f()\nKeyError: 'x'"}` + "\n", outcome.UserException, 2,
		},
		"the log is cut within the traceback": {
			steps + `{"ts": "2026-02-03T04:05:07Z", "level": "error", "rank": 4, "msg": "crashed", "exc": "tokens", "stack": "Traceback (most recent call last):\n` +
				`  File \"/w/train.py\", line 3, in step\n    f()\nKeyError: 'tok`, outcome.UserException, 4,
		},
		"it names no rank": {
			`{"ts": 1770091506.5, "level": "error", "event": "failed", "error": "OSError: [Errno 28] No space left on device"}` + "\n", outcome.DiskFull, none,
		},
		"its farewell": {steps + `{"ts": "2026-02-03T04:05:08Z", "level": "info", "msg": "Training completed successfully."}` + "\n", outcome.Success, none},
		"a result, not a logger's entry": {
			"Training\n" + `{"message": "OSError: [Errno 28] No space left on device"}` + "\nAll jobs completed.\n", outcome.Success, none,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			if c.rank == none {
				require.Nil(t, r.RootRank)
				return
			}
			require.NotNil(t, r.RootRank)
			require.Equal(t, c.rank, *r.RootRank)
		})
	}
}
