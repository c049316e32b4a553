package pattern

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines of each form, and lines that differ from them only in the deciding sign.
func TestEveryLineHasItsForm(t *testing.T) {
	for form, lines := range map[Form][]string{
		Statement: {
			"/usr/bin/ld: cannot find -lcuda",
			"python: can't open file 'train.py': [Errno 2] No such file or directory",
			"sshd[812]: fatal: no hostkeys available",
			"2018-07-10 10:32:56.210914: E tensorflow/core/common_runtime/direct_session.cc:154] Internal: failed call: CUDA_ERROR_ECC_UNCORRECTABLE",
			"train.py:12: it broke here",
			"pair.cc(144) said so",
			"2026-06-11 10:11:12 ERROR it broke",
			"my fatal: it broke",
			"E0611 10:11:12.000000 77 api.py:869] it broke",
			"[E ProcessGroupNCCL.cpp:632] it broke",
			"n1:12:99 [0] init.cc:77 NCCL WARN it broke",
			"[ 8123.4] it broke",
			"terminate called without an active exception",
			"Killed",
			"   Killed",
			"*** JOB 991 CANCELLED",
			"--- died of signal 9: error: it broke",
			"ERROR learning_rate=0.1",
			"ERROR: loss: 0",
			"cp error : ..... broke off",
			"slurmstepd: error: waiting for all tasks to end...",
			"Error: it broke, and now …",
			"[  512.1] RIP: 0010:f+0x1 no errors sp:7ffe",
			"ValueError: max retries exceeded: giving up, 3 of them ignored",
			"error: " + strings.Repeat("long ", 100),
		},
		Bare: {
			"the loss went up",
			"| a lone rule at its start",
			"|",
			"+",
			"$",
			"+x",
			"  + torchrun train.py",
			"=-= not a rule",
			"--not a rule",
			"** not a frame",
			"-f FILE",
			"--file FILE",
			"  -",
			"  -f",
			"  -file FILE",
			"frame 0 of 12",
			"[1/3] done",
			"[1/3] /usr/bin/g++ compiled",
			"the words File \"/w/train.py\"",
			"path=/w",
			"learning_rate . 0.1",
			"learning_rate=fast",
			"Loss: low",
			"'loss' 2.1",
			"•no bullet",
			"*no bullet",
			"xids 79",
			strings.Repeat("long ", 32) + "[INFO] too far behind to be its level",
			strings.Repeat("long ", 80) + "error: too far behind to be stated",
		},
		Report: {
			"INFO: the loss went up",
			"[WARNING] out of memory",
			"2026-06-11 10:11:12,123 - INFO - an error",
			"I0611 10:11:12.000000 77 api.py:869] failed",
			"n1:12:99 [0] NCCL INFO failed to open",
			"training ...",
			"building the index…",
			"- the first thing",
			"  • the first thing",
			"* the first thing",
			"found 0 errors", "val: Scanning /data/labels/val.cache... 1522 images, 1 backgrounds, 0 corrupt: 100% 1523/1523", "Error(s) in loading state_dict: missing: []", "load_state_dict unexpected_keys = []",
			"no failures so far",
			"GPU 3 has Xids: 0 since the start",
			"CUDA out of memory (ignored)",
			"guard: warning: error: it broke",
		},
		Inert: {
			"|   0  NVIDIA H200   On  | 00000000:1A:00.0 Off |",
			"||",
			"+-----------------------------------+",
			"+=====+",
			"=== error ===",
			"--- error: below",
			"**** error ****",
			"│ error: in a box │",
			"└── error.py",
			"━━━━━━━━ error: below",
			"++ error: a command",
			"+ echo 'error: it broke'",
			"$ echo 'error: it broke'",
			"# error: a comment",
			"  # error: a comment",
			"  --file FILE  error: where there is none",
			"  -f FILE  where it is read from",
			"  -f, --file FILE",
			"  -- error: what follows",
			"frame #0: c10::Error::Error(c10::SourceLocation, std::string)",
			`File "/w/train.py", line 12, in error:`,
			`    File "/w/train.py", line 12, in step`,
			"[1/3] /usr/bin/g++ -MMD -o error.o",
			"export NCCL_DEBUG=error:",
			"declare -x PATH=/bin",
			"SLURM_JOB_ID=12",
			"  error_injection_rate ............................ 0",
			"ECC Errors ..... 3",
			"    Xid Errors                        : 79",
			"    GPU Fatal Errors  :",
			"'error': 'it broke',",
			`"error": "it broke"`,
			"{'error': 'it broke'}",
			"fatal: True,",
			"error=None",
			"loss=2.1",
			"Xid: 0",
			"learning_rate .. 0.1",
			"fast._C           not built correctly: /v/_C.so: undefined symbol: _ZN3c10",
			"Compiler ($CXX)   c++ 7.5.0",
		},
	} {
		for _, line := range lines {
			require.Equal(t, form, FormOf(line), "%q", line)
		}
	}
}

// NCCL's own count shows the last retry; other words show it where NCCL does not count.
func TestALastRetryIsToldFromTheOthers(t *testing.T) {
	for line, want := range map[string]bool{
		"n1:1:2 [0] NCCL INFO socketPollConnect: connect returned Connection refused, retrying (34/34) after sleep":     true,
		"n1:1:2 [0] NCCL INFO socketPollConnect: connect returned Connection refused, retrying (3/34) after sleep":      false,
		"n1:1:2 [0] NCCL INFO socketStartConnect: Connect to 10.0.0.1<45123> failed : Software caused connection abort": true,
		"n1:1:2 [0] NCCL INFO socketPollConnect: Connect to 10.0.0.1<45123> returned 111":                               true,
		"n1:1:2 [0] NCCL INFO Connected all rings":                                                                      false,
		"n1:1:2 [0] NCCL INFO Call to open failed : No such file or directory":                                          false,
		"n1:1:2 [0] NCCL INFO socketTryAccept: Connect: accept failed : too many open files":                            false,
		"n1:1:2 [0] NCCL WARN socketStartConnect: Connect to 10.0.0.1<45123> failed : Software caused connection abort": false,
	} {
		require.Equal(t, want, LastRetry(line), line)
	}
}

// A caught error needs words for both: that something was handled, and that it was an error.
func TestACaughtErrorIsIntroducedAsOne(t *testing.T) {
	require.True(t, IntroducesCaught("could not import apex, which is optional:"))
	require.True(t, IntroducesCaught("Exception ignored in: <function f>"))
	require.True(t, IntroducesCaught("malformed document 9, skipping it"))
	require.False(t, IntroducesCaught("continuing with step 3"))
	require.False(t, IntroducesCaught("the step failed for good"))
	require.False(t, IntroducesCaught("error of rank 3:"))
}

// TestWhoSpeaksOfOthers distinguishes Slurm's and the launcher's lines from a rank's.
func TestWhoSpeaksOfOthers(t *testing.T) {
	require.True(t, AgentLine("srun: error: n1: task 3: Killed"))
	require.True(t, AgentLine("slurmstepd: error: *** STEP 1.0 CANCELLED ***"))
	require.True(t, AgentLine("failed (exitcode: -9) local_rank: 5 (pid: 98) of binary: /venv/bin/python"))
	require.False(t, AgentLine("RuntimeError: srun: what is that?"))
}
