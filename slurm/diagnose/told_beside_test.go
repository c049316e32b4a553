package diagnose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// An exception after the message that all work is done counts, unless it ended only a thread.
func TestAThreadThatDiesAfterItsProgramIsDone(t *testing.T) {
	const (
		done   = "Reading a shard\nThe learning rate is 0.01\nTraining finished.\n"
		begins = "Traceback (most recent call last):\n"
		thread = "  File \"/v/lib/python3.12/threading.py\", line 1073, in _bootstrap_inner\n    self.run()\n"
		within = "  File \"/w/events.py\", line 7, in write\n"
		raised = "OSError: [Errno 9] Bad file descriptor\n"
	)
	for name, c := range map[string]struct {
		log   string
		fails bool
	}{
		"a thread":                               {done + begins + thread + within + raised, false},
		"the program itself":                     {done + begins + within + raised, true},
		"a thread before that":                   {"Reading a shard\n" + begins + thread + within + raised, true},
		"two threads, one within the other":      {done + begins + thread + within + raised + raised, false},
		"a thread, and other words of another":   {done + begins + thread + within + raised + "KeyError: 'loss'\n", true},
		"two of the program, one without frames": {done + begins + within + raised + raised, true},
	} {
		r := diagnosetest.Old(t, c.log)
		require.Equal(t, c.fails, r.Class != outcome.Success, "%s: %s %s: %s", name, r.Class, r.Why, r.RootLine)
	}
}

// torchelastic's messages about its worker group give the number of attempts.
func TestHowManyAttemptsAnAgentMade(t *testing.T) {
	const again, last = "[default] Worker group FAILED. 1/3 attempts left; will restart worker group\n", "[default] Worker group FAILED. 0/3 attempts left\n"
	for log, attempts := range map[string]int{"": 1, again: 2, again + again: 3, last: 1} {
		r := diagnosetest.With(t, "Reading a shard\n"+log+diagnosetest.Raised("KeyError: 'loss'"), diagnose.Context{JobState: "FAILED"})
		require.Equal(t, attempts, r.Attempts, log)
		require.Equal(t, outcome.UserException, r.Class, log)
	}
}

// The start lines in two files, for a job whose network failed.
func TestNodesThatStartedWithOtherThings(t *testing.T) {
	const late = "[rank1]:[E ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, " +
		"Timeout(ms)=600000) ran for 600091 milliseconds before timing out.\n"
	for name, c := range map[string]struct {
		other   string
		differs []string
	}{
		"the same":       {"commit: aaaa\nargv: x\n", nil},
		"another commit": {"commit: bbbb\nargv: x\n", []string{"commit"}},
		"both":           {"commit: bbbb\nargv: y\n", []string{"argv", "commit"}},
		"a file silent":  {"loading\n", nil},
	} {
		dir := t.TempDir()
		writeLog(t, filepath.Join(dir, "rank0.log"), time.Now(), c.other+"step 1")
		writeLog(t, filepath.Join(dir, "rank1.log"), time.Now(), "commit: aaaa\nargv: x\n"+late)
		r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "FAILED"})
		require.NoError(t, err)
		require.Equal(t, outcome.NCCLTimeout, r.Class, name)
		require.Equal(t, c.differs, r.Differs, name)
	}
}

// The last words of a rank that died in the second attempt come from that attempt's folder.
func TestARankOfAnEarlierAttemptHasNoLastWords(t *testing.T) {
	dir := t.TempDir()
	for attempt, which := range []string{"first", "second"} {
		folder := filepath.Join(dir, fmt.Sprintf("7/attempt-%d/a/none/attempt_0/1", attempt))
		require.NoError(t, os.MkdirAll(folder, 0o755))
		writeLog(t, filepath.Join(folder, "stderr.log"), time.Now(), "The "+which+" attempt reads", diagnosetest.Raised("KeyError: '"+which+"'"))
	}
	r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Contains(t, r.RootLine, "second")
	for _, e := range r.Evidence {
		require.NotContains(t, e.Text, "The first attempt reads")
	}
}

// A rank logged why it left into its own file, and its launcher wrote its exit code into another one.
func TestWhyARankLeftStandsInItsOwnFile(t *testing.T) {
	dir := t.TempDir()
	const joined = "INFO torch.distributed.distributed_c10d: Rank %d: Completed store-based barrier for key:store_based_barrier_key:1 with 3 nodes."
	for rank, says := range []string{diagnosetest.Raised(lostPeer), "2026-03-01 10:00:05,565 CRITICAL store: the access token expired, giving up", diagnosetest.Raised(lostPeer)} {
		folder := filepath.Join(dir, fmt.Sprintf("none_ab12cd34/attempt_0/%d", rank))
		require.NoError(t, os.MkdirAll(folder, 0o755))
		writeLog(t, filepath.Join(folder, "stderr.log"), time.Now(), fmt.Sprintf(joined, rank), says)
	}
	summary := "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
	for rank, code := range []int{1, 3, 1} {
		summary += fmt.Sprintf("  host      : gpu1\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: %d)\n", rank, rank, code, 100+rank)
	}
	writeLog(t, filepath.Join(dir, "slurm-7.out"), time.Now(), summary)
	r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, 1, *r.RootRank)
	require.Equal(t, "none_ab12cd34/attempt_0/1/stderr.log", r.RootFile)
	require.Contains(t, r.RootLine, "access token expired")
	for rank, says := range []string{diagnosetest.Raised(lostPeer), "", diagnosetest.Raised(lostPeer)} {
		folder := filepath.Join(dir, fmt.Sprintf("none_ab12cd34/attempt_1/%d", rank))
		require.NoError(t, os.MkdirAll(folder, 0o755))
		writeLog(t, filepath.Join(folder, "stderr.log"), time.Now(), fmt.Sprintf(joined, rank), says)
	}
	r, err = diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.NotContains(t, r.RootLine, "access token expired", "that was an earlier attempt")
}

// The ranks of two nodes only lost those of the third, whose log is not there. With its log nothing is claimed.
func TestTheLogOfOneNodeIsMissing(t *testing.T) {
	dir := t.TempDir()
	srun := ""
	for node := range 3 {
		srun += fmt.Sprintf("srun: error: gpu%d: task %d: Exited with exit code 1\n", node+1, node)
	}
	writeLog(t, filepath.Join(dir, "slurm-7.out"), time.Now(), srun)
	log := func(node int) {
		writeLog(t, filepath.Join(dir, fmt.Sprintf("node_%d.txt", node)), time.Now(), strings.Repeat(diagnosetest.Raised(lostPeer), 2)+
			fmt.Sprintf("  host      : gpu%d\n  rank      : %d (local_rank: 0)\n  exitcode  : 1 (pid: 100)\n", node+1, 2*node))
	}
	log(0)
	log(1)
	r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.NotNil(t, r.RootNode)
	require.Equal(t, "gpu3", *r.RootNode)
	require.Contains(t, r.Summary, "No log of this node is here")
	log(2)
	r, err = diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.NotContains(t, r.Summary, "No log of this node")
}

// A node with a launcher's report of two processes, of which one lost a peer, lacks the word of the other. That outweighs a
// node that says nothing.
func TestAMissingWordOutweighsAQuietNode(t *testing.T) {
	logs := map[string]string{"out-7-gpu1.log": "loading the data\n"}
	logs["out-7-gpu2.log"] = "loading the data\n" + diagnosetest.Raised(lostPeer) + exitedWith("gpu2", 1, 2, 3)
	logs["out-7-gpu3.log"] = "loading the data\n" + strings.Repeat(diagnosetest.Raised(lostPeer), 2) + exitedWith("gpu3", 1, 4, 5)
	r := ofFolder(t, logs)
	require.Equal(t, "unprefixed", r.Laggard, r.Summary)
	require.Equal(t, "gpu2", *r.RootNode)
}

// Files of ranks that are numbered behind a word, such as that for a GPU, are no hosts'.
func TestNumberedFilesAreNoHosts(t *testing.T) {
	for _, word := range []string{"gpu", "attempt", "p"} {
		logs := map[string]string{}
		for n := range 4 {
			logs[fmt.Sprintf("train_%s%d.log", word, n)] = "loading the data\n" + diagnosetest.Raised(lostPeer)
		}
		logs["train_"+word+"3.log"] = "loading the data\n" + diagnosetest.Raised("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered")
		r := ofFolder(t, logs)
		require.Equal(t, outcome.GPUHardware, r.Class, word)
		require.Nil(t, r.RootNode, word)
		require.Empty(t, r.ExcludeNodes, word)
	}
}

// All that is known of one of three nodes stops in silence: its two processes have logs of their own, as has each launcher.
func TestOneNodeStopsInSilence(t *testing.T) {
	const world = "using world size: 6, data-parallel size: 6, tensor-model-parallel size: 1\n"
	for name, c := range map[string]struct {
		quiet  int // node
		change func(logs map[string]string)
		node   any
	}{
		"the first":                      {0, func(map[string]string) {}, "gpu1"},
		"in the middle":                  {1, func(map[string]string) {}, "gpu2"},
		"the last, if it is one":         {2, func(map[string]string) {}, nil},
		"the last of a known world":      {2, func(logs map[string]string) { logs["node0.log"] = world + logs["node0.log"] }, "gpu3"},
		"and a launcher reports nothing": {0, func(logs map[string]string) { logs["node1.log"] = "" }, nil},
		"two do": {0, func(logs map[string]string) {
			logs["node1.log"] = ""
			delete(logs, "l/gpu2/r/attempt_0/0/stderr.log")
			delete(logs, "l/gpu2/r/attempt_0/1/stderr.log")
		}, nil},
		"another node's are missing": {0, func(logs map[string]string) { logs["node2.log"] = exitedWith("gpu3", 1, 6, 7) }, nil},
		"its standard error is missing": {0, func(logs map[string]string) {
			delete(logs, "l/gpu1/r/attempt_0/0/stderr.log")
			delete(logs, "l/gpu1/r/attempt_0/1/stderr.log")
		}, nil},
		"its launcher left": {0, func(logs map[string]string) {
			logs["slurm-7.out"] = "srun: error: gpu1: task 0: Exited with exit code 1\n"
		}, nil},
		"it was done": {0, func(logs map[string]string) { logs["l/gpu1/r/attempt_0/0/stdout.log"] += "Training finished.\n" }, nil},
		"another node's do not complain": {0, func(logs map[string]string) {
			logs["l/gpu2/r/attempt_0/0/stderr.log"] = ""
			logs["l/gpu2/r/attempt_0/1/stderr.log"] = ""
		}, nil},
	} {
		logs := map[string]string{}
		for node := range 3 {
			logs[fmt.Sprintf("node%d.log", node)], logs[fmt.Sprintf("l/gpu%d/r/attempt_0/0/stderr.log", node+1)] = "", ""
			for local := range 2 {
				folder := fmt.Sprintf("l/gpu%d/r/attempt_0/%d/", node+1, local)
				if logs[folder+"stdout.log"], logs[folder+"stderr.log"] = "loading\nthe data are read\n", ""; node != c.quiet {
					logs[folder+"stderr.log"] = diagnosetest.Raised(lostPeer)
				}
			}
			if node != c.quiet {
				logs[fmt.Sprintf("node%d.log", node)] = exitedWith(fmt.Sprint("gpu", node+1), 1, 2*node, 2*node+1)
			}
		}
		c.change(logs)
		r := ofFolder(t, logs)
		require.Nil(t, r.RootRank, name)
		if c.node == nil {
			require.NotEqual(t, "quiet", r.Laggard, name)
			continue
		}
		require.Equal(t, outcome.UnknownExit, r.Class, name)
		require.NotNil(t, r.RootNode, name)
		require.Equal(t, c.node, *r.RootNode, name)
		require.Contains(t, r.Summary, "stopped without a word", name)
	}
}

// All nodes write into one log, and only srun's words are apart: a node whose launcher was ended before it could report
// is not one without a log.
func TestANodeMayShareItsLog(t *testing.T) {
	for nodes := 2; nodes <= 3; nodes++ {
		dir, srun, log := t.TempDir(), "", strings.Repeat(diagnosetest.Raised(lostPeer), 4)
		for node := range nodes {
			srun += fmt.Sprintf("srun: error: gpu%d: task %d: Exited with exit code 1\n", node+1, node)
			if node > 0 {
				log += fmt.Sprintf("  host      : gpu%d\n  rank      : %d (local_rank: 0)\n  exitcode  : 1 (pid: 100)\n", node, 2*node-2)
			}
		}
		writeLog(t, filepath.Join(dir, "slurm-7.out"), time.Now(), srun)
		writeLog(t, filepath.Join(dir, "train.log"), time.Now(), log)
		r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "FAILED"})
		require.NoError(t, err)
		require.NotContains(t, r.Summary, "No log of this node", nodes)
	}
}

// The recordings of four ranks alone show which rank is behind, but not its node.
func TestDumpsWithoutALogNameNoNode(t *testing.T) {
	dir := t.TempDir()
	for rank, enqueued := range []int{813, 811, 813, 813} {
		diagnosetest.Dump(t, dir, rank, enqueued, 811)
	}
	r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "RUNNING"})
	require.NoError(t, err)
	require.Equal(t, 1, *r.RootRank)
	require.Nil(t, r.RootNode)
}
