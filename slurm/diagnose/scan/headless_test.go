package scan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestLogThatBeginsWithinATraceback holds logs whose head is gone, as `tail`
// leaves them, and stacks that are printed without an exception.
func TestLogThatBeginsWithinATraceback(t *testing.T) {
	for name, c := range map[string]struct{ log, class string }{
		"bare assertion": {"  File \"/w/megatron/training/arguments.py\", line 441, in validate_args\n    assert args.save_interval is not None\n" +
			"AssertionError\n", outcome.BadArgs},
		"place decides": {"  File \"/w/megatron/training/checkpointing.py\", line 1430, in load_checkpoint\n" +
			"    model[0].load_state_dict(state['model'])\nKeyError: 'model'\n", outcome.CheckpointLoad},
		"printed stack": {"Call stack:\n  File \"/w/t.py\", line 9, in <module>\n    main()\nMessage: 'a warning'\nArguments: ()\ndone\n", outcome.Success},
		"print_stack":   {"  File \"/w/t.py\", line 9, in <module>\n    main()\nINFO: going on\ndone\n", outcome.Success},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := logfile.Read("slurm-1.out", strings.NewReader(c.log))
			require.NoError(t, err)
			r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "ENDED"})
			require.NoError(t, err)
			require.Equal(t, c.class, r.Class)
		})
	}
}

// summary is torchelastic's account of a node's ranks that failed at a time.
func summary(at, host string, ranks ...int) string {
	var b strings.Builder
	b.WriteString("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + strings.Repeat("=", 60) + "\ntrain.py FAILED\n")
	for i, r := range ranks {
		fmt.Fprintf(&b, "[%d]:\n  time      : %s\n  host      : %s\n  rank      : %d (local_rank: %d)\n  exitcode  : 1 (pid: 17%02d)\n  error_file: <N/A>\n",
			i, at, host, r, i, r)
	}
	return b.String() + strings.Repeat("=", 60) + "\n"
}

// TestSummariesTellTheRankOfACauseWithoutOne has causes whose own lines name no
// rank: where the launchers' summaries decide, and where they do not.
func TestSummariesTellTheRankOfACauseWithoutOne(t *testing.T) {
	failed := "Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in <module>\n    import helpers\n" +
		"ModuleNotFoundError: No module named 'helpers'\n"
	for name, c := range map[string]struct {
		log  string
		rank int // -1: none can be told
	}{
		"one failed well before the others": {failed + summary("2026-06-11_10:00:00", "gpu2", 3) + summary("2026-06-11_10:00:09", "gpu1", 0, 1), 3},
		"all that failed show the cause":    {failed + failed + summary("2026-06-11_10:00:00", "gpu2", 2, 3), 2},
		"too close in time to tell":         {failed + summary("2026-06-11_10:00:00", "gpu2", 3) + summary("2026-06-11_10:00:02", "gpu1", 0, 1), -1},
	} {
		src, err := logfile.Read("slurm-9.out", strings.NewReader(c.log))
		require.NoError(t, err)
		r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "FAILED"})
		require.NoError(t, err)
		require.Equal(t, outcome.ImportError, r.Class, name)
		if c.rank < 0 {
			require.Nil(t, r.RootRank, name)
			continue
		}
		require.NotNil(t, r.RootRank, name)
		require.Equal(t, c.rank, *r.RootRank, name)
		require.Equal(t, "gpu2", *r.RootNode, name)
	}
}

// TestASummaryHoldsWhatARankRaised has a launcher's summary whose entries show what was
// written into error files, and nowhere else: the root's is the cause, on its rank.
func TestASummaryHoldsWhatARankRaised(t *testing.T) {
	entry := func(n, rank, code int, raised string) string {
		return fmt.Sprintf("[%d]:\n  time      : 2026-05-17_14:29:30\n  host      : gpu2\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: 17%02d)\n"+
			"  error_file: /tmp/e/%d/error.json\n  traceback : Traceback (most recent call last):\n"+
			"    File \"/w/torch/distributed/elastic/multiprocessing/errors/__init__.py\", line 362, in wrapper\n      return f(*args, **kwargs)\n"+
			"    File \"/w/train.py\", line 41, in step\n      loss = model(batch)\n             ^^^^^^^^^^^^\n  %s\n  \n", n, rank, rank, code, rank, rank, raised)
	}
	rule := strings.Repeat("-", 60) + "\n"
	for _, code := range []int{1, -6} {
		r := diagnosetest.Old(t, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"+rule+"train FAILED\n"+rule+"Failures:\n"+
			entry(1, 2, 1, "RuntimeError: [gloo/pair.cc:534] Connection closed by peer [10.0.0.2]:3245")+
			rule+"Root Cause (first observed failure):\n"+entry(0, 7, code, "IndexError: list index out of range")+rule)
		require.Equal(t, outcome.UserException, r.Class, code)
		require.Equal(t, "  IndexError: list index out of range", r.RootLine)
		require.Equal(t, 7, *r.RootRank)
		require.Equal(t, "gpu2", *r.RootNode)
	}
}
