package scan_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// of puts PyTorch's rank before each line of a text, as its excepthook does.
func of(rank, text string) string {
	return rank + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+rank) + "\n"
}

// nativeStack is what PyTorch prints below an error or a warning of its C++ code.
const nativeStack = "Exception raised from recvBytes at ./torch/csrc/distributed/c10d/Utils.hpp:790 (most recent call first):\n" +
	"frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f0a in /usr/lib/libc10.so.2.14)\n" +
	"frame #1: <unknown function> + 0x769db55 (0x7f0b in /usr/lib/libtorch_cpu.so.2.14)\n\n"

// TestFormsOfTorch214 holds what PyTorch 2.14 and Python 3.14 write otherwise than
// those before them.
func TestFormsOfTorch214(t *testing.T) {
	quoted := "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([1])\n" +
		"Traceback (most recent call last): (RANK 1)\n  File \"/v/checkpoint/filesystem.py\", line 524, in create_stream\n    open(p)\n" +
		"OSError: [Errno 28] No space left on device"
	tracker := strings.Repeat("Traceback (most recent call last):\n  File \"/usr/lib/python3.14/multiprocessing/resource_tracker.py\", line 453, in main\n"+
		"    cache[rtype].remove(name)\n    ~~~~~~~~~~~~~~~~~~~^^^^^^\nKeyError: '/mp-x2584z5m'\n", 13)
	trained := "{'loss': '6.25', 'epoch': '0.99'}\n{'train_runtime': '4.214', 'train_loss': '6.247', 'epoch': '1.0'}\n" +
		"***** train metrics *****\n  epoch                    =        1.0\n  train_loss               =     6.2473\n"
	unknown := strings.Repeat("[W1123 08:23:56.980538018 socket.cpp:764] [c10d] The IPv6 network addresses of (gpu9, 22173) cannot be retrieved "+
		"(gai error: -2 - Name or service not known).\n", 5)
	for name, c := range map[string]struct {
		log, class, line string
		rank             any
	}{
		"a warning's native stack is no failure": {
			trained + "[W1123 08:09:43.646423594 TCPStore.cpp:115] [c10d] recvVector failed on SocketImpl(fd=4): Failed to recv, got 0 bytes.\n" +
				nativeStack + "W1123 08:09:43.614000 25804 torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:1298] The node 'n1_25804_0' has failed " +
				"to shutdown the rendezvous '28' due to an error of type RendezvousConnectionError.\nEND Mon Nov 23 08:09:44 UTC 2026 rc=0\n",
			outcome.Success, "", nil,
		},
		"the resource tracker's errors end no job": {trained + tracker, outcome.Success, "", nil},
		"what is ignored at exit, and a rendezvous that others left, are no last words": {
			trained + "Exception ignored in atexit callback: <function update_autotune_table at 0x7f237c37b060>\n" +
				diagnosetest.Raised("FileNotFoundError: [Errno 2] No such file or directory: '/h/.triton/autotune/a.pickle.tmp'") +
				"W0402 16:24:04.073000 523054 torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:1331] The node 'n1_523054_0' has failed to send " +
				"a keep-alive heartbeat to the rendezvous '1353' due to an error of type RendezvousTimeoutError.\n",
			outcome.Success, "", nil,
		},
		"an address that nobody knows, until somebody ends the job": {
			unknown + "slurmstepd: error: *** JOB 69 ON n1 CANCELLED AT 2026-11-23T08:25:18 ***\nsrun: error: n1: task 0: Terminated\n",
			outcome.Rendezvous, "(gpu9, 22173)", nil,
		},
		"an address that was known in the end": {
			unknown + trained + "slurmstepd: error: *** JOB 69 ON n1 CANCELLED AT 2026-11-23T08:25:18 ***\n",
			outcome.SlurmCancelled, "CANCELLED", nil,
		},
		"a rank quotes the failure of another": {
			of("[rank2]: ", diagnosetest.Raised(quoted)) + of("[rank0]: ", diagnosetest.Raised(quoted)),
			outcome.DiskFull, "No space left", 1,
		},
		"DDP names the rank whose model is another": {
			of("[rank0]: ", diagnosetest.Raised("RuntimeError: DDP expects same model across all ranks, but Rank 0 has 27 params, while rank 2 has inconsistent 39 params.")) +
				of("[rank1]: ", diagnosetest.Raised("RuntimeError: DDP expects same model across all ranks, but Rank 1 has 27 params, while rank 2 has inconsistent 39 params.")) +
				of("[rank2]: ", diagnosetest.Raised("RuntimeError: DDP expects same model across all ranks, but Rank 2 has 39 params, while rank 0 has inconsistent 27 params.")),
			outcome.UserException, "DDP expects", 2,
		},
		"accelerate finds its port taken": {
			diagnosetest.Raised("ConnectionError: Tried to launch distributed communication on port `29511`, but another process is utilizing it."),
			outcome.PortInUse, "29511", nil,
		},
		"a rank's traceback ended it, though bars of others came later": {
			of("[rank2]: ", diagnosetest.Raised("ValueError: bad record 17")) +
				" 7%|▋  | 1/14 [00:00<00:03,  4.10it/s]\n 14%|█▍  | 2/14 [00:00<00:02,  4.10it/s]\n 21%|██▏ | 3/14 [00:00<00:02,  4.19it/s]\n" +
				" 29%|██▊ | 4/14 [00:00<00:02,  4.42it/s]\n" +
				of("[rank0]: ", diagnosetest.Raised("RuntimeError: [./gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:9632")) +
				"srun: error: n2: task 2: Exited with exit code 1\n",
			outcome.UserException, "bad record", 2,
		},
		"the name of a step says nothing of its failure": {
			"free(): double free detected in tcache 2\n" +
				diagnosetest.Raised("torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGABRT") +
				"         JobID        JobName          State ExitCode     MaxRSS \n          18.0        unshare         FAILED      1:0   1723776K \n",
			outcome.Segfault, "double free", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
			if want, one := c.rank.(int); one {
				require.NotNil(t, r.RootRank)
				require.Equal(t, want, *r.RootRank)
			}
		})
	}
}

// TestAnAgentsWordsOpenNoRun holds that what torchelastic's agents of two nodes say in
// the same words, one after the other, is not the beginning of another run.
func TestAnAgentsWordsOpenNoRun(t *testing.T) {
	agent := func(pid string) string {
		return "W1123 08:11:28.955000 " + pid + " torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 2174 closing signal SIGTERM\n" +
			"E1123 08:11:29.179000 " + pid + " torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 0 (pid: 2173) of binary: /usr/bin/python3\n" +
			diagnosetest.Raised("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")
	}
	r := diagnosetest.Old(t, of("[rank3]: ", diagnosetest.Raised("FileNotFoundError: [Errno 2] No such file or directory: '/d/part2.idx'"))+
		agent("2115")+"srun: error: n2: task 1: Exited with exit code 1\n"+agent("2116")+"srun: error: n1: task 0: Exited with exit code 1\n")
	require.Equal(t, outcome.DatasetMissing, r.Class, r.RootLine)
	require.Contains(t, r.RootLine, "part2.idx")
}
