package diagnose_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// words are what ranks of PyTorch 2.11 write around a lost or silent rank; "%" is the rank.
var words = struct{ steps, signal, told, lost, watchdog, timeout, leaves, limit string }{
	steps: "using world size: 4, data-parallel size: 4, context-parallel size: 1, hierarchical context-parallel sizes: None, tensor-model-parallel size: 1, " +
		"pipeline-model-parallel size: 1\n" + diagnosetest.Rounds(4, " [2026-03-02 14:54:1{n}.000000] iteration        {n}/      10 | consumed samples:            8 | "+
		"elapsed time per iteration (ms): 998.2 | lm loss: 1.03E+01 | number of nan iterations:   0 |\n"),
	signal: "[rank%]:[E0302 14:55:15.620073 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank %] Received a dump signal due to a collective timeout from " +
		"this local rank and we will try our best to dump the debug info. Last enqueued NCCL work: 34, last completed NCCL work: 34.\n",
	told: "[rank%]:[E0302 14:55:16.620073 ProcessGroupNCCL.cpp:1849] [PG ID 0 PG GUID 0(default_pg) Rank %] Observed flight recorder dump signal from another rank via TCPStore.\n" +
		"[rank%]:[E0302 14:55:16.620173 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank %] Received a dump signal due to a collective timeout from " +
		" rank 2 and we will try our best to dump the debug info. Last enqueued NCCL work: 34, last completed NCCL work: 34.\n",
	lost: "[rank%]:[E0302 14:55:14.034165 ProcessGroupNCCL.cpp:612] [Rank %] Collective WorkNCCL(SeqNum=7, OpType=COALESCED, NumelIn=292, NumelOut=292, " +
		"Timeout(ms)=600000) raised the following async exception: NCCL error: remote process exited or there was a network error, NCCL version 2.28.9\n" +
		"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\n" +
		"socketProgress: Connection closed by remote peer localhost<58670>\n",
	watchdog: "[rank%]:[E0302 14:56:15.668571 ProcessGroupNCCL.cpp:2119] [PG ID 2 PG GUID 5(DATA_PARALLEL_GROUP_WITH_CP) Rank %] Process group watchdog thread " +
		"terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.28.9\n" +
		"terminate called after throwing an instance of 'c10::DistBackendError'\n",
	timeout: "[rank%]:[E0302 14:55:14.415547 ProcessGroupNCCL.cpp:689] [Rank %] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=COALESCED, " +
		"NumelIn=292, NumelOut=292, Timeout(ms)=60000) ran for 60024 milliseconds before timing out.\n",
	leaves: "[rank%]:[W0302 14:55:13.116756 ProcessGroupNCCL.cpp:1575] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources.\n",
	limit:  "slurmstepd: error: *** JOB 13 ON gpu1 CANCELLED AT 2026-03-02T14:59:47 DUE TO TIME LIMIT ***\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n",
}

// byRanks returns a text as it is written by ranks.
func byRanks(text string, ranks ...int) (all string) {
	for _, r := range ranks {
		all += strings.ReplaceAll(text, "%", strconv.Itoa(r))
	}
	return all
}

// agentSees returns what torchelastic writes at the exit of its process.
func agentSees(second, code string, local, rank int, node string) string {
	pid := strconv.Itoa(500 + rank)
	return "E0302 14:5" + second + ".856000 18819 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: " + code + ") local_rank: " +
		strconv.Itoa(local) + " (pid: " + pid + ") of binary: /venv/bin/python3\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-03-02_14:5" + second +
		"\n  host      : " + node + "\n  rank      : " + strconv.Itoa(rank) + " (local_rank: " + strconv.Itoa(local) + ")\n  exitcode  : " + code + " (pid: " + pid + ")\n"
}

// Every rank that lives tells of a request for dumps, with the word "timeout" whatever the reason is.
func TestARequestForDumpsIsNoTimeout(t *testing.T) {
	exits := func(node string, code string) string {
		return "srun: error: " + node + ": task 0: Exited with exit code " + code + "\n"
	}
	for name, c := range map[string]struct {
		log, class string
		rank       int
		line       string
	}{
		"a rank aborts": {
			byRanks(words.lost, 0, 1) + agentSees("5:14", "-6", 0, 2, "gpu2") + byRanks(words.signal, 0, 1) + exits("gpu2", "1"), outcome.Segfault, 2, "exitcode: -6",
		},
		"a rank exits, and the watchdogs of the others abort them later": {
			byRanks(words.lost, 3, 1, 2) + agentSees("5:13", "7", 0, 0, "gpu1") + byRanks(words.signal, 3, 2) + exits("gpu1", "1") +
				byRanks(words.watchdog, 2) + agentSees("6:15", "-6", 0, 2, "gpu2") + exits("gpu2", "1"), outcome.UnknownExit, 0, "exitcode: 7",
		},
		"a rank leaves with a word, and the rest hangs until it is cancelled": {
			"no room in the feature store, stopping\n" + byRanks(words.leaves, 1) + byRanks(words.signal, 1) + byRanks(words.told, 0, 3) + byRanks(words.lost, 0, 2, 3) +
				"slurmstepd: error: *** JOB 13 ON gpu1 CANCELLED AT 2026-03-02T14:59:47 ***\n", outcome.UnknownExit, 1, "no room in the feature store",
		},
	} {
		r := diagnosetest.Text(t, words.steps+c.log)
		require.Equal(t, c.class, r.Class, name)
		require.NotNil(t, r.RootRank, name)
		require.Equal(t, c.rank, *r.RootRank, name)
		require.Contains(t, r.RootLine, c.line, name)
	}
}

// A job whose collective timed out did nothing more until its time limit.
func TestATimeLimitAfterATimeout(t *testing.T) {
	start := words.steps + byRanks(words.timeout, 0, 3, 2)
	r := diagnosetest.Text(t, start+byRanks(words.told, 1)+byRanks(words.signal, 0, 2, 3)+words.limit)
	require.Equal(t, outcome.NCCLTimeout, r.Class)
	require.Equal(t, 1, *r.RootRank)

	_, steps, _ := strings.Cut(words.steps, "\n")
	r = diagnosetest.Text(t, start+strings.ReplaceAll(steps, "14:54", "14:58")+words.limit)
	require.Equal(t, outcome.SlurmTimeLimit, r.Class, "the run went on")

	evaluates := diagnosetest.Rounds(9, "[rank0]: Evaluating iter {n}/100\n")
	r = diagnosetest.Text(t, words.steps+byRanks(words.timeout, 0)+evaluates+words.limit)
	require.Equal(t, outcome.SlurmTimeLimit, r.Class, "the rank went on to evaluate")
}

// What another process wrote before a rank's exit is no reason of the rank.
func TestTheLineBeforeAnExitThatIsNoReason(t *testing.T) {
	ends := byRanks(words.leaves, 1) + byRanks(words.lost, 0, 2, 3) + agentSees("5:20", "1", 1, 1, "gpu1") + "srun: error: gpu1: task 0: Exited with exit code 1\n"
	iterations := words.steps[strings.Index(words.steps, "\n")+1:]
	for _, before := range []string{
		"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n", "------------------------------------\n",
		"gpu1:500:612 [1] NCCL INFO comm 0x5 rank 1 nranks 4 - Abort COMPLETE\n", "2026-03-02 14:55:12 [INFO] saved the tokenizer\n",
		"[rank1]:[W302 14:55:12.116756 Utils.cpp:75] Warning: the variable is deprecated (function operator())\n", "the data has 3 parts\n" + iterations,
	} {
		r := diagnosetest.Text(t, words.steps+before+ends)
		require.Equal(t, outcome.UnknownExit, r.Class, before)
		require.Equal(t, 1, *r.RootRank, before)
		require.Contains(t, r.RootLine, "exitcode: 1", before)
	}
	r := diagnosetest.Text(t, words.steps+"the vocabulary has 3 tokens, leaving\n"+ends)
	require.Equal(t, "the vocabulary has 3 tokens, leaving", r.RootLine)
}

// A rank left with a word, and the next attempt in the same file ends for something else.
func TestTheWordOfAnEarlierAttempt(t *testing.T) {
	again := "W0302 14:55:22.000000 18819 torch/distributed/elastic/agent/server/api.py:900] [default] Worker group FAILED. 2/3 attempts left; will restart worker group\n"
	r := diagnosetest.Text(t, words.steps+"no room in the feature store, stopping\n"+byRanks(words.leaves, 2)+byRanks(words.lost, 0, 1)+agentSees("5:20", "1", 2, 2, "gpu1")+again+
		strings.ReplaceAll(words.steps+byRanks(words.lost, 0, 1, 3), "14:5", "15:5")+strings.ReplaceAll(agentSees("5:20", "7", 2, 2, "gpu1"), "14:5", "15:5")+
		"srun: error: gpu1: task 0: Exited with exit code 1\n")
	require.Equal(t, outcome.UnknownExit, r.Class)
	require.Equal(t, 2, *r.RootRank)
	require.Contains(t, r.RootLine, "exitcode: 7")
}

// No launcher tells where a rank was that is below the first one of the only node that reported.
func TestTheNodeOfARankBelowThoseOfTheNodeThatReports(t *testing.T) {
	log := words.steps + "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/w/train.py\", line 38, in step\n" +
		"[rank1]:     x = f()\n[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 25.33 GiB is free.\n" +
		byRanks(words.lost, 2) + agentSees("7:55", "-6", 0, 2, "gpu2") + "srun: error: gpu2: task 1: Exited with exit code 1\n" + words.limit
	r := diagnosetest.Text(t, log)
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Equal(t, 1, *r.RootRank)
	require.Empty(t, r.RootNode)
}
