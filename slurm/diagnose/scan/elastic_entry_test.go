package scan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

const leftOf = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 3 (pid: 77) of binary: /usr/bin/python3\n"

// TestALaunchersReportHasItsTime: torchelastic's summary gives the time of the failure, which may be long
// before the line; its log line without a time takes the time around it.
func TestALaunchersReportHasItsTime(t *testing.T) {
	f := factsOf(t, "[2026-11-20 12:00:00] step 1\n"+leftOf+"Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-20_11:30:00\n"+
		"  host      : gpu1\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 77)\n[2026-11-20 12:05:00] over\n")
	require.Len(t, f.Events, 2)
	require.Equal(t, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), f.Events[0].Before.UTC())
	require.False(t, f.Events[0].After.IsZero())
	for _, at := range []time.Time{f.Events[1].Before, f.Events[1].After} {
		require.Equal(t, time.Date(2026, 11, 20, 11, 30, 0, 0, time.UTC), at.UTC())
	}
	require.Equal(t, "gpu1", f.Events[1].Node)
}

// TestWhatAProgramComplainedOfLast has lines between an error that a program logged and its launcher's
// report. A statement takes the error back, other lines do not.
func TestWhatAProgramComplainedOfLast(t *testing.T) {
	for between, stays := range map[string]bool{
		"":                               true,
		"  in the second shard\n":        true,
		"| GPU | 3 |\n":                  true,
		"exit code: 1\n":                 true,
		"The next shard is read\n":       false,
		"ERROR:root: the disk is slow\n": false,
	} {
		f := factsOf(t, "ERROR:root: no shard can be read\n"+between+leftOf)
		var left *scan.Event
		for _, e := range f.Events {
			if e.Agent {
				left = e
			}
		}
		own := f.Complained(left, left.File)
		require.Equal(t, stays, own != nil && own.Text == "ERROR:root: no shard can be read", between)
	}
}

// TestANameAloneEndsALabelledTraceback: srun passes on a traceback in pieces, of which one is the name.
func TestANameAloneEndsALabelledTraceback(t *testing.T) {
	const header, frame = "0: Traceback (most recent call last):\n", "0:   File \"/w/a.py\", line 3, in <module>\n"
	f := factsOf(t, header+frame+"0: KeyError\n0: : 'loss'\n")
	require.Len(t, f.Events, 1)
	require.Equal(t, "KeyError: 'loss'", f.Events[0].Text)
	require.Empty(t, factsOf(t, header+"0: Loading\n0: : 'loss'\n").Events, "a word, and no frame before it")
}
