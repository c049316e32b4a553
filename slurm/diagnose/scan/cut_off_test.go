package scan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// TestWhatALogShowsOfAFailure has logs whose failure shows in an unusual place, or whose errors are none.
func TestWhatALogShowsOfAFailure(t *testing.T) {
	const head = "Traceback (most recent call last):\n  File \"/w/train.py\", line 9, in <module>\n"
	steps := diagnosetest.Rounds(5, "step {n} loss 2.{n}\n")
	for name, c := range map[string]struct{ log, class, line string }{
		"a traceback that was cut off behind assert": {head + "    assert args.seq is not None", outcome.UserException, "assert args.seq"},
		"and behind raise":                           {head + "    raise ValueError(f'no {x}')", outcome.UserException, "raise ValueError"},
		"and before the statement":                   {head + "    assert f(x)\n  File \"/w/train.py\", line 3, in f\n", outcome.UnknownExit, "line 3"},
		"two ranks that refuse the same option, of which the first counts": {
			"main.py: error: unrecognized arguments: --local-rank=0\nmain.py: error: unrecognized arguments: --local-rank=1\n", outcome.BadArgs, "rank=0",
		},
		"two ranks with their usage texts": {
			"                [--a A] [--b B]\nmain.py: error: unrecognized arguments: --local-rank=1\nusage: main.py [-h]\n                [--a A] [--b B]\n" +
				"main.py: error: unrecognized arguments: --local-rank=5\n", outcome.BadArgs, "rank=1",
		},
		"slurmstepd without a TMPDIR": {
			"slurmstepd: error: Unable to create TMPDIR [/t/u]: Permission denied\nslurmstepd: error: Setting TMPDIR to /tmp\n" + steps + "All done!\n", outcome.Success, "",
		},
		"a GPU that needs no recovery any more": {
			"n3 kernel: NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)\n" +
				diagnosetest.Raised("KeyError: 'tokens'"), outcome.UserException, "KeyError",
		},
	} {
		r := diagnosetest.Old(t, c.log)
		require.Equal(t, c.class, r.Class, name)
		require.Contains(t, r.RootLine, c.line, name)
	}
}
