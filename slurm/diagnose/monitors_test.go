package diagnose_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// The monitor of a rank kills it because it hung; nobody ran out of memory.
func TestAMonitorKillsTheRankThatHangs(t *testing.T) {
	const (
		missed = "[2026-06-11 10:07:52,763] [WARNING] [RankMonServer63097@gpu2:9] Did not get subsequent heartbeat. Waited 171.92 seconds.\n"
		older  = "[WARNING] [RankMonitorServer:9] Section 'step' has been open for 180.12 seconds. Timeout is 180.00 seconds.\n"
		other  = "[2026-06-11 10:07:52,790] [WARNING] [RankMonServer61001@gpu1:3] Did not get subsequent heartbeat. Waited 171.92 seconds.\n"
		failed = "[2026-06-11 10:07:54,977] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -9) local_rank: 1 (pid: 58097) of binary: python3\n"
		told   = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nFailures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n[0]:\n" +
			"  time      : 2026-06-11_10:07:54\n  host      : gpu2\n  rank      : 9 (local_rank: 1)\n  exitcode  : -9 (pid: 58097)\n"
		lost  = "[rank3]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
		port  = "[2026-06-11 10:05:00] gpu1:4001:5001 [0] transport/net_ib.cc:210 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error\n"
		oom   = "[ 5123.456789] Out of memory: Killed process 58097 (python3) total-vm:912345678kB, anon-rss:501234567kB, file-rss:120kB\n"
		debug = "[2026-06-11 10:07:52,763] [DEBUG] [RankMonServer63097@gpu2:9] Updated heartbeat timeouts: initial=600 subsequent=171\n"
	)
	const world = "  world_size ...................................... 16\n"
	for name, c := range map[string]struct{ log, class, place string }{
		"one rank":                      {missed + failed + told + lost, outcome.Hang, "9 gpu2"},
		"an older monitor":              {older + failed + told, outcome.Hang, "9 gpu2"},
		"the launcher does not name it": {missed + failed, outcome.Hang, "9 -"},
		"several ranks":                 {missed + other + failed + told, outcome.Hang, "- -"},
		"no monitor said so":            {failed + told + lost, outcome.HostOOM, "9 gpu2"},
		"a monitor said nothing of it":  {debug + failed + told, outcome.HostOOM, "9 gpu2"},
		"it had hung for a port":        {port + missed + failed + told, outcome.NCCLIB, "- gpu1"},
		"it had raised an exception":    {of("[rank9]: ", diagnosetest.Raised("KeyError: 'tokens'")) + missed + failed + told, outcome.UserException, "9 gpu2"},
		"the kernel had killed it":      {oom + missed + failed + told, outcome.HostOOM, "9 gpu2"},
	} {
		r := diagnosetest.Old(t, world+c.log)
		require.Equal(t, c.class, r.Class, name)
		require.Equal(t, c.place, place(r), name)
		if c.class == outcome.Hang {
			require.Contains(t, r.RootLine, "[RankMon", name)
			require.True(t, r.Retry, name)
		}
	}
	r := diagnosetest.Old(t, world+missed+failed+told)
	require.Equal(t, "No error and no progress on rank 9, node gpu2. Its monitor heard nothing of it for too long, and killed it.", r.Summary)
	text := r.View(lang.ZH)
	require.True(t, strings.Contains(text.Sections[0].Text, "监控进程"), text.Sections[0].Text)
	_, runs := r.Pulse()
	require.False(t, runs)
}
