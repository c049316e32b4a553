package diagnose_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// A job hangs if it writes on without iterations, but not if only another program logs in another time
// zone.
func TestAJobThatOnlyChattersHangs(t *testing.T) {
	fresh := int64(20)
	for after, want := range map[time.Duration]string{
		2*time.Hour + 5*time.Minute: outcome.Hang, 8*time.Hour + 30*time.Second: outcome.Running, 10 * time.Minute: outcome.Running,
		8*time.Hour - time.Minute: outcome.Running, 8*time.Hour + 3*time.Minute: outcome.Hang, 8*time.Hour - 3*time.Minute: outcome.Hang,
		5*time.Hour + 45*time.Minute: outcome.Running,
	} {
		var b strings.Builder
		at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
		for i := 1; i <= 60; i++ {
			at = at.Add(4 * time.Second)
			fmt.Fprintf(&b, "[%s] iteration %8d/    1000 | consumed samples: 64 | elapsed time per iteration (ms): 4000.0 | lm loss: 2.000000E+00 "+
				"| grad norm: 0.5 |\n", at.Format("2006-01-02 15:04:05.000000"), i)
		}
		fmt.Fprintf(&b, "%s heartbeat: the exporter is alive\n", at.Add(after).Format("2006-01-02 15:04:05"))
		src, err := logfile.Read("a.log", strings.NewReader(b.String()))
		require.NoError(t, err)
		got, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &fresh})
		require.NoError(t, err)
		require.Equal(t, want, got.Class, after)
	}
}

// A run whose evaluation takes half an hour each time does not hang in it.
func TestAPauseThatTheRunKnowsIsNoHang(t *testing.T) {
	var b strings.Builder
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for i := 1; i <= 60; i++ {
		at = at.Add(4 * time.Second)
		if i%20 == 0 {
			at = at.Add(30 * time.Minute)
		}
		fmt.Fprintf(&b, "[%s] iteration %8d/    1000 | consumed samples: 64 | elapsed time per iteration (ms): 4000.0 | lm loss: 2.000000E+00 "+
			"| grad norm: 0.5 |\n", at.Format("2006-01-02 15:04:05.000000"), i)
	}
	for silent, want := range map[int64]string{40 * 60: outcome.Running, 70 * 60: outcome.Hang} {
		src, err := logfile.Read("a.log", strings.NewReader(b.String()))
		require.NoError(t, err)
		got, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent})
		require.NoError(t, err)
		require.Equal(t, want, got.Class, silent)
	}
}

// The prefixes of pdsh and of Ray's workers.
func TestPrefixesOfOtherLaunchers(t *testing.T) {
	r := diagnosetest.Text(t, "c000001: Traceback (most recent call last):\nc000002: starting\n"+
		"c000001:   File \"/w/gpt_dataset.py\", line 148, in build\nc000002: [rank9]: KeyError\n"+
		"c000001: FileNotFoundError: [Errno 2] No such file or directory: '/d/43d5_doc_idx.npy'\n")
	require.Equal(t, outcome.DatasetMissing, r.Class)
	require.Equal(t, "c000001", *r.RootNode)
	r = diagnosetest.Text(t, "(head, rank=3, pid=4773) Traceback (most recent call last):\n"+
		"(head, rank=3, pid=4773)   File \"/w/megatron/core/datasets/indexed_dataset.py\", line 293, in __init__\n(worker1, rank=4, pid=12)  fine\n"+
		"(head, rank=3, pid=4773) AssertionError\n")
	require.Equal(t, outcome.DatasetMissing, r.Class, "an index that contradicts itself")
	require.Equal(t, 3, *r.RootRank)
}
