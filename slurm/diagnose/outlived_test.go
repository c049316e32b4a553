package diagnose_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// caughtIn returns a traceback that begins with a function that caught the exception, and not with the program's module.
func caughtIn(line string) string {
	return strings.Replace(diagnosetest.Raised(line), "<module>", "build", 1)
}

// The line before or behind a traceback says what its program does next.
func TestAnExceptionWhoseProgramSaysThatItGoesOn(t *testing.T) {
	const oom = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB"
	const files = "OSError: [Errno 24] Too many open files: 'x'"
	ends := caughtIn(files) + diagnosetest.Raised(lostPeer) + exitedWith("gpu1", 1, 0, 1)
	for log, line := range map[string]string{
		"micro batch 16 does not fit, trying 8\n" + caughtIn(oom):               files,
		"[rank 1] WARNING: no room, trying with half\n" + caughtIn(oom):         files,
		"no room, attempt 1 of 5\n" + caughtIn(oom):                             files,
		"申请显存失败，改用更小的批\n" + caughtIn(oom):                                       files,
		caughtIn(oom) + "the fused kernel is away, going on without it\n":       files,
		caughtIn(oom) + "no room, attempt 2 of 5\n" + caughtIn(oom):             files,
		"no room, attempt 5 of 5\n" + caughtIn(oom):                             oom,
		"no room\n" + caughtIn(oom):                                             oom,
		"no room, please try again\n" + caughtIn(oom):                           oom,
		"从检查点继续训练\n" + caughtIn(oom):                                            oom,
		"attempt 1 of 5\n" + diagnosetest.Raised(oom):                           oom, // a script started the program again
		caughtIn(oom) + "trying 8 times was not enough, giving up\n":            oom,
		"micro batch 16 does not fit, trying 8\n" + caughtIn(oom) + "loading\n": files,
	} {
		r := diagnosetest.Text(t, log+ends)
		require.Equal(t, line, r.RootLine, log)
	}
	refused := caughtIn("ConnectionRefusedError: [Errno 111] Connection refused")
	r := diagnosetest.Text(t, "no store, attempt 1 of 5\n"+refused+exitedWith("gpu1", 1, 0, 1))
	require.Equal(t, outcome.UnknownExit, r.Class, r.RootLine)
	r = diagnosetest.Text(t, "no store\n"+refused+exitedWith("gpu1", 1, 0, 1))
	require.Equal(t, outcome.UserException, r.Class, "nothing says that it went on")
}

// Several launchers write into one file without a name before their lines, and a signal ends one of them: the others report as many
// failed ranks as complain.
func TestASignalEndsALauncherAmongOthersInItsFile(t *testing.T) {
	const told = "WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers\n"
	lost := diagnosetest.Raised(lostPeer)
	exit := "ERROR:torch.distributed.elastic.agent.server.api:Error waiting on exit barrier. Elapsed: 300.1 seconds\nTraceback (most recent call last):\n" +
		"  File \"/x/torch/distributed/elastic/agent/server/api.py\", line 906, in _exit_barrier\n    store_util.barrier(\nRuntimeError: Socket Timeout\n"
	const failed = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 4711) of binary: /usr/bin/python3\n"
	left := failed + exit + exitedWith("gpu1", 1, 0, 0) + exit + exitedWith("gpu3", 1, 2, 2)
	r := diagnosetest.Text(t, told+lost+lost+left)
	require.Equal(t, outcome.UnknownExit, r.Class)
	require.Contains(t, r.RootLine, "15 death signal")
	r = diagnosetest.Text(t, told+lost+lost+lost+left)
	require.NotContains(t, r.RootLine, "death signal", "its own ranks may have complained")
	r = diagnosetest.Text(t, lost+told+lost+left)
	require.NotContains(t, r.RootLine, "death signal", "a rank had complained before")
}

// The launchers of two nodes wait for that of the third one before they leave.
func TestALauncherForWhichTheOthersWaitInVain(t *testing.T) {
	const barrier = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 4711) of binary: /usr/bin/python3\n" +
		"ERROR:torch.distributed.elastic.agent.server.api:Error waiting on exit barrier. Elapsed: 300.1 seconds\nTraceback (most recent call last):\n" +
		"  File \"/x/torch/distributed/elastic/agent/server/api.py\", line 906, in _exit_barrier\n    store_util.barrier(\nRuntimeError: Socket Timeout\n"
	left := func(first, to int, said string) string {
		return strings.Repeat(said, to-first+1) + barrier + exitedWith("gpu"+strconv.Itoa(first), 1, first, to)
	}
	const unknown, sizes = -2, ", data-parallel size: 1, context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
	for name, c := range map[string]struct {
		world, a, b, c string // what the nodes gpu0, gpu2 and gpu4, or gpu0, gpu1 and gpu2 write
		class, node    string
		rank           int
	}{
		"it has one rank":    {"3", left(0, 0, caughtIn(lostPeer)), "loading\n", left(2, 2, caughtIn(lostPeer)), outcome.UnknownExit, "gpu1", 1},
		"nobody complains":   {"6", "loading\n", left(2, 3, ""), left(4, 5, ""), outcome.UnknownExit, "", unknown}, // one of them left first
		"the others waited":  {"6", "loading\n", left(2, 3, caughtIn(timedOut)), left(4, 5, caughtIn(timedOut)), outcome.NCCLTimeout, "gpu0", -1},
		"the others lost it": {"6", "loading\n", left(2, 3, caughtIn(lostPeer)), left(4, 5, caughtIn(lostPeer)), outcome.UnknownExit, "gpu0", -1},
		"two are missing":    {"8", "loading\n", left(2, 3, caughtIn(timedOut)), left(4, 5, caughtIn(timedOut)), outcome.NCCLTimeout, "", unknown},
		"it has no log":      {"6", "", left(2, 3, caughtIn(timedOut)), left(4, 5, caughtIn(timedOut)), outcome.NCCLTimeout, "", unknown},
		"nobody waited": {
			"6", "loading\n", strings.ReplaceAll(left(2, 3, caughtIn(timedOut)), "_exit_barrier", "close"),
			strings.ReplaceAll(left(4, 5, caughtIn(timedOut)), "_exit_barrier", "close"), outcome.NCCLTimeout, "", unknown,
		},
		"one of its ranks speaks": {"6", "[rank1]: " + lostPeer + "\n", left(2, 3, ""), left(4, 5, ""), outcome.NCCLConnection, "", unknown},
	} {
		step := map[bool]int{true: 1, false: 2}[c.world == "3"]
		r := ofFolder(t, map[string]string{
			"slurm-7.out":      "using world size: " + c.world + sizes,
			"train-7-gpu0.log": c.a, fmt.Sprintf("train-7-gpu%d.log", step): c.b, fmt.Sprintf("train-7-gpu%d.log", 2*step): c.c,
		})
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
		require.Equal(t, c.rank != unknown, r.Laggard == "absent", "%s: %s", name, r.Laggard)
		if c.rank != unknown {
			namesRank(t, c.rank, r, name)
			require.NotNil(t, r.RootNode, name)
			require.Equal(t, c.node, *r.RootNode, name)
		}
	}
}

const timedOut = "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 15000ms for recv operation to complete"
