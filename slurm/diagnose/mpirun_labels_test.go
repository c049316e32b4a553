package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
)

// mpirun -prepend-rank (MPICH, Intel MPI) labels lines with ranks, as srun --label does in another
// form.
func TestMpirunsLabelsAreRanks(t *testing.T) {
	ranks := [][]string{
		{"loading the data", "step 1 loss 2.5", "step 2 loss 2.4"},
		{"loading the data", "step 1 loss 2.5", "step 2 loss 2.4"},
		{"loading the data", "step 1 loss 2.5", "Traceback (most recent call last):", `  File "/w/train.py", line 9, in <module>`, "    main()", "KeyError: 'rope'"},
	}
	labelled := func(form string) string {
		var b strings.Builder
		for n := range 6 {
			for r, lines := range ranks {
				if n < len(lines) {
					fmt.Fprintf(&b, form+"%s\n", r, lines[n])
				}
			}
		}
		return b.String()
	}
	r := diagnosetest.Text(t, labelled("[%d] "))
	require.NotNil(t, r.RootRank)
	require.Equal(t, 2, *r.RootRank)
	require.Equal(t, diagnosetest.Verdict("", diagnosetest.Text(t, labelled("%d: "))), diagnosetest.Verdict("", r))

	// The numbers of a shell's jobs, or of one writer's list, are not ranks.
	list := "jobs:\n[1] 4711\n[2] 4712\n" + strings.Repeat("step 1 loss 2.5\n", 9) + diagnosetest.Raised("KeyError: 'rope'")
	require.Nil(t, diagnosetest.Text(t, list).RootRank)
}

// mpirun's own tag stands before the lines of the process that it started, which may be a rank or the launcher of several.
func TestMpirunsTagOfALauncherIsNoRank(t *testing.T) {
	log := func(task string) string {
		text := diagnosetest.Raised("OSError: [Errno 37] No locks available") +
			"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 1 (pid: 4712) of binary: /usr/bin/python3\n" +
			"Root Cause (first observed failure):\n[0]:\n" +
			"  time      : 2026-11-23_10:00:05\n  host      : gpu3\n  rank      : 5 (local_rank: 1)\n  exitcode  : 1 (pid: 4712)\n"
		return task + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+task) + "\n"
	}
	r := diagnosetest.Text(t, log("[1,2]<stderr>:"))
	require.NotNil(t, r.RootRank)
	require.Equal(t, 5, *r.RootRank)
	require.Equal(t, "gpu3", *r.RootNode)
	require.Equal(t, diagnosetest.Verdict("", diagnosetest.Text(t, log("2: "))), diagnosetest.Verdict("", r))
}
