package diagnose_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

// TestLogThatBeginsWithinATraceback holds logs whose head is gone, as `tail`
// leaves them, and stacks that are printed without an exception.
func TestLogThatBeginsWithinATraceback(t *testing.T) {
	for name, c := range map[string]struct{ log, class string }{
		"bare assertion": {"  File \"/w/megatron/training/arguments.py\", line 441, in validate_args\n    assert args.save_interval is not None\nAssertionError\n", diagnose.BadArgs},
		"place decides":  {"  File \"/w/megatron/training/checkpointing.py\", line 1430, in load_checkpoint\n    model[0].load_state_dict(state['model'])\nKeyError: 'model'\n", diagnose.CheckpointLoad},
		"printed stack":  {"Call stack:\n  File \"/w/t.py\", line 9, in <module>\n    main()\nMessage: 'a warning'\nArguments: ()\n", diagnose.Success},
		"print_stack":    {"  File \"/w/t.py\", line 9, in <module>\n    main()\nINFO: going on\n", diagnose.Success},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := diagnose.Read("slurm-1.out", strings.NewReader(c.log))
			require.NoError(t, err)
			r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "ENDED"})
			require.NoError(t, err)
			require.Equal(t, c.class, r.Class)
		})
	}
}
