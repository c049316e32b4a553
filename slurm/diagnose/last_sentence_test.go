package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

const (
	dated    = "2026-11-23 10:00:01,530 INFO distributed_c10d: Rank 2: Completed store-based barrier for key:k:1 with 4 nodes.\n"
	sentence = "vocabulary of 32001 tokens does not fit the embedding of 32000 rows\n"
	closing  = "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4711 closing signal SIGTERM\n"
	failed   = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 1 (pid: 4714) of binary: /v/python\n"
)

// The standard errors of two nodes: one rank leaves by sys.exit with a message, and the others lose it.
func TestARankThatLeavesWithAMessage(t *testing.T) {
	lost := diagnosetest.Raised(lostPeer)
	other := dated + lost + lost + exitedWith("gpu1", 1, 0, 1)
	own := closing + failed + exitedWith("gpu2", 1, 3, 3)
	for name, c := range map[string]struct {
		file, log string
		said      bool
	}{
		"the others lose it after that":         {"p-7-gpu2.err", dated + sentence + lost + own, true},
		"PyTorch warns of its end":              {"p-7-gpu2.err", dated + sentence + byRanks(words.leaves, 3) + lost + own, true},
		"all of the node complain":              {"p-7-gpu2.err", dated + sentence + lost + lost + own, false},
		"it wrote on":                           {"p-7-gpu2.err", dated + sentence + dated + lost + own, false},
		"two processes wrote it":                {"p-7-gpu2.err", dated + sentence + sentence + lost + own, false},
		"it was written long before":            {"p-7-gpu2.err", strings.Replace(dated, "10:", "09:", 1) + sentence + lost + own, false},
		"a logger's line":                       {"p-7-gpu2.err", dated + "INFO:root:" + sentence + lost + own, false},
		"a file that holds both streams":        {"p-7-gpu2.out", dated + sentence + lost + own, false},
		"an announcement":                       {"p-7-gpu2.err", dated + "Loading the vocabulary of 32001 tokens\n" + lost + own, false},
		"success":                               {"p-7-gpu2.err", dated + "Checkpoint of step 9 was saved\n" + lost + own, false},
		"a message of a library before its bar": {"p-7-gpu2.err", dated + sentence + " 40%|####      | 4/10 [00:01<00:02,  2.9it/s]\n" + lost + own, false},
	} {
		r := ofFolder(t, map[string]string{"logs/p-7-gpu1.err": other, "logs/" + c.file: c.log})
		if !c.said {
			require.NotEqual(t, outcome.UserException, r.Class, name)
			continue
		}
		require.Equal(t, outcome.UserException, r.Class, name)
		require.Equal(t, strings.TrimSpace(sentence), r.RootLine, name)
		require.Equal(t, 3, *r.RootRank, name)
		require.Contains(t, r.Summary, "said why", name)
		require.NotContains(t, strings.Join(r.Advice, " "), "innermost frame", "there is none: %s", name)
	}
}

// The sentence may be a library's notice: something else ended a rank of the other node, or nobody there says why it failed.
func TestANoticeIsNoReasonIfAnotherRankMayHaveLeftFirst(t *testing.T) {
	lost := diagnosetest.Raised(lostPeer)
	own := dated + sentence + lost + closing + failed + exitedWith("gpu2", 1, 3, 3)
	timedOut := diagnosetest.Raised("torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (gpu1, 29500).")
	for name, other := range map[string]string{
		"a rank left with 3":                dated + lost + exitedWith("gpu1", 3, 0, 0),
		"a rank aborted":                    dated + lost + exitedWith("gpu1", -6, 0, 0),
		"a rank left in silence":            dated + exitedWith("gpu1", 1, 0, 0),
		"a signal ended the other launcher": dated + "WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers\n",
		"no connection was made":            dated + timedOut + timedOut + exitedWith("gpu1", 1, 0, 1),
	} {
		r := ofFolder(t, map[string]string{"logs/p-7-gpu1.err": other, "logs/p-7-gpu2.err": own})
		require.NotEqual(t, outcome.UserException, r.Class, name)
		require.True(t, r.Retry, name)
	}
}

// A rank's own standard error, and the launcher's report on it.
func TestARanksOwnStandardErrorEndsWithItsReason(t *testing.T) {
	const exits = "srun: error: gpu2: task 3: Exited with exit code 1\nsrun: error: gpu1: tasks 0-2: Terminated\n"
	lost := diagnosetest.Raised(lostPeer)
	for name, c := range map[string]struct {
		log, said string
	}{
		"a sentence":                     {sentence, strings.TrimSpace(sentence)},
		"a sentence after a lost peer":   {lost + sentence, ""},
		"a lost peer after the sentence": {sentence + lost, ""},
	} {
		r := ofFolder(t, map[string]string{
			"slurm-7.out": "step 1\n" + exits, "logs/rank0.err": dated, "logs/rank1.err": lost, "logs/rank2.err": lost, "logs/rank3.err": c.log,
		})
		if c.said == "" {
			require.NotEqual(t, outcome.UserException, r.Class, name)
			continue
		}
		require.Equal(t, outcome.UserException, r.Class, name)
		require.Equal(t, c.said, r.RootLine, name)
		require.Equal(t, 3, *r.RootRank, name)
	}
}

// A program that leaves right after it logged an error said why it leaves; one that went on did not.
func TestALastErrorThatIsCritical(t *testing.T) {
	const exits = "srun: error: gpu7: task 0: Exited with exit code 3\n"
	for level, class := range map[string]string{"CRITICAL": outcome.UserException, "FATAL": outcome.UserException, "ERROR": outcome.UserException} {
		line := "2026-06-01 10:00:01,200 [" + level + "] store: the access token expired; giving up\n"
		r := diagnosetest.Text(t, "[INFO] reading the settings of the run\n"+line+exits)
		require.Equal(t, class, r.Class, level)
		require.Equal(t, strings.TrimSpace(line), r.RootLine, level)
		require.Contains(t, r.Summary, "said why", level)
		r = diagnosetest.Text(t, "[INFO] reading the settings of the run\n"+line+"[INFO] epoch 2 begins\n"+exits)
		require.Equal(t, outcome.UnknownExit, r.Class, "%s, and it went on", level)
	}
}

// A watcher logs as critical what happened to another process, or from outside: that is worth another try.
func TestACriticalErrorThatTellsOfAnOutsideCause(t *testing.T) {
	const exits = "srun: error: gpu7: task 0: Exited with exit code 1\n"
	for _, says := range []string{
		"lost contact with node gpu12", "worker 3 is gone", "received signal 15, exiting", "heartbeat timeout", "the trainer was killed, giving up",
		"child returned 137", "engine core died unexpectedly", "master unreachable", "节点失联，退出",
	} {
		line := "2026-06-01 10:00:01,200 [CRITICAL] watch: " + says + "\n"
		r := diagnosetest.Text(t, "[INFO] reading the settings of the run\n"+line+exits)
		require.Equal(t, outcome.UnknownExit, r.Class, says)
		require.Equal(t, strings.TrimSpace(line), r.RootLine, says)
		require.True(t, r.Retry, says)
	}
	const failed = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: %d (pid: 4714) of binary: /v/python\n"
	for rank, class := range map[int]string{0: outcome.UserException, 1: outcome.UnknownExit} {
		r := diagnosetest.Text(t, "[INFO] reading the settings of the run\n[rank0]: 2026-06-01 10:00:01,200 [CRITICAL] store: the access token expired\n"+
			fmt.Sprintf(failed, rank))
		require.Equal(t, class, r.Class, "the last words of rank 0, and rank %d left", rank)
	}
}

// A rank leaves without an error, and no launcher reports on it: its own last line says more than the others' complaint.
func TestTheLastLineOfARankThatLeftSilently(t *testing.T) {
	lost := dated + diagnosetest.Raised(lostPeer)
	for name, c := range map[string]struct{ log, line string }{
		"a line of its own": {dated + "2026-11-23 10:00:09,130 INFO pretrain: data exhausted after 5 batches, stopping\n", "data exhausted"},
		"PyTorch warns of its end": {
			dated + "2026-11-23 10:00:09,130 INFO pretrain: data exhausted after 5 batches, stopping\n" + byRanks(words.leaves, 3), "data exhausted",
		},
		"one that others end with": {"2026-11-23 10:00:09,130 INFO pretrain: loaded shard 3\n", lostPeer},
		"no line":                  {"", lostPeer},
	} {
		r := ofFolder(t, map[string]string{
			"logs/rank0.log": lost, "logs/rank1.log": lost, "logs/rank2.log": lost, "logs/rank3.log": c.log,
			"logs/rank4.log": "2026-11-23 10:00:09,150 INFO pretrain: loaded shard 4\n" + diagnosetest.Raised(lostPeer),
			"slurm-7.out":    "srun: error: gpu1: tasks 0-2,4: Exited with exit code 1\n",
		})
		require.Equal(t, outcome.UnknownExit, r.Class, name)
		require.Equal(t, 3, *r.RootRank, name)
		require.Contains(t, r.RootLine, c.line, name)
	}
	r := ofFolder(t, map[string]string{
		"logs/rank0.log": lost, "logs/rank1.log": lost, "logs/rank2.log": dated + "2026-11-23 10:00:09,130 CRITICAL pretrain: the vocabulary has 3 tokens\n",
		"slurm-7.out": "srun: error: gpu1: tasks 0-1: Exited with exit code 1\n",
	})
	require.Equal(t, outcome.UserException, r.Class)
	require.Equal(t, "cause", r.Evidence[0].Why)
}
