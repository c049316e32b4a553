package diagnose_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// PyTorch's watchdog ends its process by SIGABRT. Whoever reports that, the timeout is the failure. A
// process that aborts before anybody waited in vain failed for its own reason.
func TestAnAbortOfTheWatchdogIsItsTimeout(t *testing.T) {
	const (
		steps = "[rank0]: step 10 loss 2.5\n[rank1]: step 10 loss 2.5\n[rank0]: step 20 loss 2.4\n[rank1]: step 20 loss 2.4\n"
		waits = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600017 milliseconds before timing out.\n"
		zero  = "[rank0]:[E216 22:03:58.405763850 ProcessGroupNCCL.cpp:568] [Rank 0] " + waits
		one   = "[rank1]:[E216 22:03:58.405763850 ProcessGroupNCCL.cpp:568] [Rank 1] " + waits
		down  = "[E ProcessGroupNCCL.cpp:461] To avoid data inconsistency, we are taking the entire process down.\n"
		ends  = "terminate called after throwing an instance of 'std::runtime_error'\n"
		shell = "bash: line 3: 469511 Aborted                 python train.py --tp 4\nsrun: error: gpu1: task 1: Exited with exit code 134\n"
	)
	for name, c := range map[string]struct{ log, class, line string }{
		"a shell tells of it":               {steps + zero + one + shell, outcome.NCCLTimeout, "Watchdog caught"},
		"its reason stands behind":          {"step 10\n" + ends + "  what():  [Rank 1] " + waits, outcome.NCCLTimeout, "Watchdog caught"},
		"it had told that it would":         {"step 10\n[E ProcessGroupNCCL.cpp:821] [Rank 1] " + waits + down + ends, outcome.NCCLTimeout, "Watchdog caught"},
		"for a reason of its own":           {"step 10\n" + ends + "  what():  vector::_M_range_check: __n (which is 9)\n" + zero, outcome.Segfault, "terminate called"},
		"before another had waited in vain": {steps + shell + zero, outcome.Segfault, "Aborted"},
		"of a rank that waited for nobody":  {steps + "[rank1]: " + ends + "[rank1]:   what():  no room\n" + zero, outcome.Segfault, "terminate called"},
	} {
		r := diagnosetest.Text(t, c.log)
		require.Equal(t, c.class, r.Class, name)
		require.Contains(t, r.RootLine, c.line, name)
	}
}

// The rank that its watchdog ended first was there: it waited like the others. A rank that waited for nobody is not.
func TestTheFirstThatGaveUpIsNotTheMissingOne(t *testing.T) {
	const told = "srun: error: gpu1: tasks 0-1: Terminated\nsrun: error: gpu2: task 2: Terminated\n"
	waits := func(ranks ...int) (b string) {
		for _, r := range ranks {
			b += fmt.Sprintf("%d: [rank%d]:[E216 22:03:58.405763850 ProcessGroupNCCL.cpp:568] [Rank %d] Watchdog caught collective operation timeout: "+
				"WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600017 milliseconds before timing out.\n", r, r, r)
		}
		return b
	}
	for name, c := range map[string]struct{ log, place string }{
		"it waited":                   {waits(0, 1, 2, 3) + "srun: error: gpu2: task 3: Aborted (core dumped)\n" + told, "- -"},
		"it waited, by its exit code": {waits(0, 1, 2, 3) + "srun: error: gpu2: task 3: Exited with exit code 134\n" + told, "- -"},
		"it waited, and one did not":  {waits(0, 1, 3) + "srun: error: gpu2: task 3: Aborted (core dumped)\n" + told, "2 gpu2"},
		"it did not wait":             {waits(0, 1, 2) + "srun: error: gpu2: task 3: Aborted (core dumped)\n" + told, "3 gpu2"},
		"it waited, and was killed":   {waits(0, 1, 2, 3) + "srun: error: gpu2: task 3: Exited with exit code 135\n" + told, "3 gpu2"},
	} {
		r := diagnosetest.Old(t, "  world_size ...................................... 4\n"+c.log)
		require.Equal(t, c.place, place(r), name)
		if name != "it waited, and was killed" {
			require.Equal(t, outcome.NCCLTimeout, r.Class, name)
		}
	}
}
