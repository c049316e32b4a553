package diagnose_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// rankAtFault returns the rank that a diagnosis names, or -1.
func rankAtFault(t *testing.T, files map[string]string) int {
	t.Helper()
	r := ofFolder(t, files)
	require.Equal(t, outcome.UserException, r.Class, "%v: %s", files, r.RootLine)
	if r.RootRank == nil {
		return -1
	}
	return *r.RootRank
}

// A logger writes the rank's field before every line. The ranks' lines are mixed, and the others only lost a peer.
func TestTheRankBeforeEveryLine(t *testing.T) {
	log := func(field string) string {
		var lines []string
		cause, lost := strings.Split(diagnosetest.Raised("KeyError: 'tokens'"), "\n"), strings.Split(diagnosetest.Raised(lostPeer), "\n")
		say := func(rank, line string) { lines = append(lines, strings.ReplaceAll(field, "{r}", rank)+line) }
		for _, r := range []string{"0", "1", "2", "3"} {
			say(r, "ready")
		}
		for i := range cause[:4] {
			say("2", cause[i])
			say("3", lost[i])
		}
		for i := range lost[:4] {
			say("1", lost[i])
			say("0", lost[i])
		}
		return strings.Join(lines, "\n") + "\n"
	}
	for _, field := range []string{
		"[rank {r}] ", "[Rank {r}]: ", "rank {r}: ", "rank{r}: ", "rank={r} ", "[rank:{r}] ", "(rank {r}/4) ", "[Rank {r} @ gpu1] ", "[gpu-a:rank{r}] ", "rank {r}> ",
		"[global_rank {r}] ", "[进程 {r}] ", "进程{r}: ", "gpu1: [rank {r}] ", "[rank {r}] [megatron] ", "2026-06-11 10:09:00,123 [rank{r}] ERROR train: ",
		"2026-06-11 10:09:00,123 - rank {r} - ERROR - ", "2026-06-11 10:09:00.123 | ERROR    | rank={r} | ", "[2026-06-11 10:09:00][ERROR][rank={r}] ",
		"E1127 20:38:30.123456 rank{r} train.py:33] ", "E 1127 20:38:30 [rank {r}/4] ", "ERROR:rank{r}:",
	} {
		require.Equal(t, 2, rankAtFault(t, map[string]string{"train.log": log(field)}), field)
	}
}

// The record above an exception tells whose it is.
func TestTheRecordAboveAnExceptionTellsItsRank(t *testing.T) {
	for record, rank := range map[string]int{
		"E1127 20:38:30.123456 rank2 train.py:88] it failed":  2,
		"E1127 20:38:30.123456 4711 train.py:88] [rank 2] no": 2,
		"ERROR: uncaught exception on rank 2":                 2,
		"[Rank 2] Uncaught exception:":                        2,
		"rank 2: exception in training loop":                  2,
		"ERROR: process 2 of 4 failed":                        2,
		"ERROR 第 2 号进程训练失败":                                   2,
		"ERROR 进程 2/4 异常退出:":                                  2,
		"ERROR: lost the connection to rank 2":                -1,
		"进程 2/4 正常退出":                                         -1,
	} {
		log := "rank 0 is ready\nrank 1 is ready\n" + record + "\n" + diagnosetest.RaisedIn("step", "KeyError: 'tokens'")
		require.Equal(t, rank, rankAtFault(t, map[string]string{"train.log": log}), record)
	}
}

// The folder of a file, or a number that is the whole of its name, is the rank's.
func TestTheFolderOrTheNumberOfAFileIsItsRank(t *testing.T) {
	for _, name := range []string{"{r}.log", "{r}/stderr", "rank_{r}/stderr", "logs/{r}/train.log", "logs/global_rank{r}/err.txt", "task-{r}/out"} {
		files := map[string]string{}
		for _, r := range []string{"0", "1", "2", "3"} {
			files[strings.ReplaceAll(name, "{r}", r)] = diagnosetest.Raised(lostPeer)
		}
		files[strings.ReplaceAll(name, "{r}", "2")] = diagnosetest.Raised("KeyError: 'tokens'")
		require.Equal(t, 2, rankAtFault(t, files), name)
	}
	files := map[string]string{"slurm-7.out": "using world size: 8, data-parallel size: 8, tensor-model-parallel size: 1\n"}
	for _, r := range []string{"0", "1", "2"} {
		files["run/"+r+"/train.log"] = diagnosetest.Raised("KeyError: 'tokens'")
	}
	require.Equal(t, -1, rankAtFault(t, files), "attempts of a run of eight ranks")
	delete(files, "slurm-7.out")
	require.Equal(t, -1, rankAtFault(t, files), "seeds")
}

// The end of an exception's message tells its rank, but not that of a peer; so does the report of a child's exit, and a rank's
// greeting in a file of its own.
func TestWhatIsSaidOfARankTellsIt(t *testing.T) {
	ready := "using world size: 4, data-parallel size: 4, tensor-model-parallel size: 1\nready\n"
	for log, rank := range map[string]int{
		diagnosetest.Raised("ValueError: rank 2 on gpu1: theta must be above zero"):                                                                         2,
		diagnosetest.Raised("ValueError: theta must be above zero (rank 2)"):                                                                                2,
		diagnosetest.Raised("ValueError: theta must be above zero (rank of a matrix: 2)"):                                                                   -1,
		diagnosetest.Raised("ValueError: the matrix is singular (rank 7)"):                                                                                  -1,
		diagnosetest.Raised("ValueError: rank=2 is too small for this layer"):                                                                               -1,
		"ERROR lora: rank=64 is too large\n" + diagnosetest.RaisedIn("step", "ValueError: no such rank"):                                                    -1,
		diagnosetest.Raised("ValueError: nothing came from the peer (rank 2)"):                                                                              -1,
		diagnosetest.RaisedIn("_bootstrap", "KeyError: 'tokens'") + diagnosetest.RaisedIn("save", "RuntimeError: writer 0 of rank 2 left with exit code 1"): 2,
	} {
		require.Equal(t, rank, rankAtFault(t, map[string]string{"train.log": ready + log}), log)
	}
	for _, greeting := range []string{
		"process 2 of 4 up, device 0", "INFO:torch.distributed.distributed_c10d:Added key: store_based_barrier_key:1 to store for rank: 2",
	} {
		require.Equal(t, 2, rankAtFault(t, map[string]string{
			"run/none_x1/attempt_0/0/stdout.log": greeting + "\n", "run/none_x1/attempt_0/0/stderr.log": greeting + "\n" + diagnosetest.Raised("KeyError: 'tokens'"),
		}), greeting)
	}
}
