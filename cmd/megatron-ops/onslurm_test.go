package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// writeRun writes the logs of 48 ranks, one of which fails, some of them with
// more lines than a diagnosis looks at.
func writeRun(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for rank := range 48 {
		var b strings.Builder
		fmt.Fprintf(&b, "[rank%d]: using %s\n", rank, strings.Repeat("x", rank))
		for i := 1; i <= 2000; i++ {
			fmt.Fprintf(&b, " [%s] iteration %8d/    9000 | consumed samples: 64 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.000000E+00 | grad norm: 0.5 |\n", at.Add(time.Duration(i)*time.Second).Format("2006-01-02 15:04:05.000000"), i)
		}
		if rank == 29 {
			b.WriteString("[2026-06-11 10:33:30] Traceback (most recent call last):\n  File \"/w/pretrain_gpt.py\", line 12, in forward_step\n    out = model(tokens)\n  File \"/w/megatron/core/tensor_parallel/layers.py\", line 700, in forward\n    raise ValueError(msg)\nValueError: the rotary table has no row for position 4097\n")
		} else {
			fmt.Fprintf(&b, "[rank%d]:[E ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600091 milliseconds before timing out.\n", rank, rank)
		}
		name := fmt.Sprintf("train_gpu%d_rank%04d.out", 1+rank/12, rank)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644))
	}
}

// A diagnosis as a job on the cluster must say what a local one says.
func TestADiagnosisOnSlurmEqualsTheLocalOne(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	p := person{t: t}
	for _, e := range real.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "SLURM") {
			t.Setenv(name, value)
		}
	}
	t.Setenv("MEGATRON_OPS_STATE_DIR", filepath.Join(real.Work, "state"))
	t.Setenv("MEGATRON_OPS_CLUSTER", slurmCluster)
	t.Chdir(real.Work)
	logs := filepath.Join(real.Work, "run-logs")
	writeRun(t, logs)

	var here, there json.RawMessage
	p.must(3, &here, "diagnose", logs)
	p.must(3, &there, "diagnose", logs, "--on-slurm", "--shards", "5")
	require.Contains(t, string(here), `"root_rank": 29`)
	require.JSONEq(t, string(here), string(there))

	left, err := filepath.Glob(filepath.Join(real.Work, ".megatron-ops-diagnose-*"))
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left behind")

	code, out := p.do("diagnose", logs, "--on-slurm", "--partition", "nosuch")
	require.Equal(t, 1, code)
	require.Contains(t, out, "invalid partition")
	code, out = p.do("diagnose", filepath.Join(real.Work, "nothing"), "--on-slurm")
	require.Equal(t, 2, code, out)
}
