package diagnose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A traceback whose every line a logger wrote as a warning was caught.
func TestATracebackLoggedAsAWarning(t *testing.T) {
	const raised = "Traceback (most recent call last):\n  File \"/w/data.py\", line 61, in fetch\n    return a[i]\nIndexError: list index out of range\n"
	for level, class := range map[string]string{"warn": outcome.UnknownExit, "WRN": outcome.UnknownExit, "FATAL": outcome.UserException} {
		r := diagnosetest.Old(t, diagnosetest.Rounds(9, "[10:00:0{n}] note: {n} peers are there\n")+of("[10:00:11] "+level+": ", raised)+"[10:00:12] note: all peers left\n")
		require.Equal(t, class, r.Class, level)
	}
}

// Structured loggers have several names for their fields.
func TestTheFieldsOfStructuredLoggers(t *testing.T) {
	for _, fields := range []string{`"sev": "critical", "rank": 3, "text"`, `"level": "error", "rank": 3, "msg"`, `"loglevel": "FATAL", "rank": 3, "event"`} {
		r := diagnosetest.Old(t, "{"+strings.Replace(fields, "critical", "info", 1)+`: "batch 5 of 20"}`+"\n{"+fields+
			`: "run aborted by FileNotFoundError: [Errno 2] No such file or directory: '/data/seg9.bin'"}`+"\n")
		require.Equal(t, outcome.DatasetMissing, r.Class, fields)
		namesRank(t, 3, r, fields)
	}
}

// Ranks that all waited in vain but one. One of those that waited aborts as it leaves.
func TestARankThatWaitedIsNotTheMissingOne(t *testing.T) {
	waited := "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 60000ms for recv operation to complete"
	log := "using world size: 4, data-parallel size: 4, tensor-model-parallel size: 1\n"
	for _, rank := range []string{"0", "1", "3"} {
		log += of("[rank"+rank+"]: ", diagnosetest.Raised(waited))
	}
	log += "terminate called without an active exception\n" + strings.Replace(exitedWith("gpu1", 1, 0, 1), "exitcode  : 1 (pid: 4712)", "exitcode  : -6 (pid: 4712)", 1)
	r := diagnosetest.Old(t, log)
	require.Equal(t, outcome.NCCLTimeout, r.Class, r.RootLine)
	namesRank(t, 2, r, log)
}

// The launcher of one node starts its processes again, which the other node's log shows with times, and the first one's by its own words.
func TestANodeWhoseLogIsQuietAfterARestart(t *testing.T) {
	const (
		started = "[default0]:2026-11-28 07:06:51,883 INFO world of 4, model ready to go\n[default0]:2026-11-28 07:06:51,983 INFO loading the words\n"
		steps   = "[default0]:2026-11-28 07:06:52,{n}00 INFO step {n}/20 loss=1.1546\n"
		report  = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 70) of binary: /usr/bin/python3\n"
	)
	lost, later := of("[default1]:", diagnosetest.Raised(lostPeer)), strings.NewReplacer("07:06:51", "07:07:10", "07:06:52", "07:07:12")
	r := ofFolder(t, map[string]string{
		"n_0.out": started + diagnosetest.Rounds(8, steps) + lost + report + later.Replace(started+diagnosetest.Rounds(9, steps)) +
			"[default0]:2026-11-28 07:07:13,448 INFO training finished\n",
		"n_1.out": "[default1]:2026-11-28 07:06:52,926 WARNING the queue ran dry once\n" + of("[default0]:", diagnosetest.Raised("RuntimeError: stream closed by remote end")) +
			lost + report + "[default1]:2026-11-28 07:07:11,478 WARNING the queue ran dry once\n",
	})
	require.Equal(t, outcome.Success, r.Class, r.RootLine)
	require.Equal(t, 2, r.Attempts)

	again := of("[default1]:", diagnosetest.Raised("KeyError: 'tokens'")) + report
	r = ofFolder(t, map[string]string{
		"n_0.out": started + diagnosetest.Rounds(8, steps) + lost + report + later.Replace(started+diagnosetest.Rounds(9, steps)) + lost + report,
		"n_1.out": "[default1]:2026-11-28 07:06:52,926 WARNING the queue ran dry once\n" + of("[default0]:", diagnosetest.Raised("RuntimeError: stream closed by remote end")) +
			lost + report + again + "[default1]:2026-11-28 07:07:14,478 WARNING the queue ran dry once\n",
	})
	require.Contains(t, r.RootLine, "KeyError", "the second attempt failed, too")
}
