package diagnose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

func TestAPeersAddressBecomesItsNode(t *testing.T) {
	names := map[string][]string{"10.1.2.3": {"gpu07-ib0.cluster.example."}, "10.1.2.4": {"storage1.example."}}
	c := diagnose.Context{JobState: "FAILED", Nodes: []string{"gpu06", "gpu07"}, Resolve: func(a string) []string { return names[a] }}
	for address, want := range map[string]string{"10.1.2.3": "gpu07 (10.1.2.3)", "10.1.2.4": "10.1.2.4", "10.9.9.9": "10.9.9.9"} {
		r := diagnosetest.With(t, "gpu06:12:99 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to "+address+"<45123> failed : No route to host\n", c)
		require.Equal(t, outcome.NCCLConnection, r.Class)
		require.Equal(t, want, r.Peer)
		require.Contains(t, strings.Join(r.Advice, " "), "--exclude")
	}
	r := diagnosetest.With(t, "[rank0]: RuntimeError: [../gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.1.2.3]:34227\n", c)
	require.Equal(t, "gpu07 (10.1.2.3)", r.Peer)
	require.Contains(t, strings.Join(r.Advice, " "), "The lost peer is gpu07")
	require.NotContains(t, strings.Join(r.Advice, " "), "--exclude", "it says nothing against the node")
	require.Contains(t, r.Summary, "connection to a peer was lost")
	r = diagnosetest.With(t, "torch.distributed.DistBackendError: NCCL error in: x, remote process exited or there was a network error\n"+
		"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n", c)
	require.Contains(t, strings.Join(r.Advice, " "), "debug-nccl", "without detail, how to get it")
	r = diagnosetest.With(t, "[rank0]: RuntimeError: [../gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:34227\n", c)
	require.Empty(t, r.Peer, "every node calls itself so")
}

// A diverged run that somebody cancels is classified as diverged.
func TestADivergedRunThatIsCancelledDiverged(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		loss := "2.1E+00"
		if i >= 20 {
			loss = "nan"
		}
		fmt.Fprintf(&b, " [2026-03-01 10:%02d:00] iteration %8d/   60000 | elapsed time per iteration (ms): 5000.0 | lm loss: %s | grad norm: %s |\n", i,
			100+i, loss, loss)
	}
	cancelled := "slurmstepd: error: *** JOB 4711 ON gpu7 CANCELLED AT 2026-03-01T10:41:00 ***\n"
	require.Equal(t, outcome.NaNLoss, diagnosetest.With(t, b.String()+cancelled, diagnose.Context{JobState: "CANCELLED"}).Class)
	require.Equal(t, outcome.SlurmCancelled, diagnosetest.With(t, b.String()[:600]+"\n"+cancelled, diagnose.Context{JobState: "CANCELLED"}).Class)
}

// A retry avoids the only node that lost its mount.
func TestAStaleMountOfOneNodeIsExcluded(t *testing.T) {
	dir := t.TempDir()
	stale := "[rank6]: Traceback (most recent call last):\n[rank6]:   File \"/w/a.py\", line 1, in f\n[rank6]:     g()\n" +
		"[rank6]: OSError: [Errno 116] Stale file handle: '/lustre/ckpt/iter_0000400'\n"
	victim := "[rank%d]:[E1107 12:14:04.220011 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0 Rank %d] Process group watchdog thread terminated with " +
		"exception: NCCL error: remote process exited or there was a network error\n"
	for node, text := range map[string]string{"a301": fmt.Sprintf(victim, 0, 0), "a302": stale, "a303": fmt.Sprintf(victim, 9, 9)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "run-44-"+node+".err"), []byte(text), 0o600))
	}
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	r, err := diagnose.Run(t.Context(), src, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, outcome.Filesystem, r.Class)
	require.Equal(t, []string{"a302"}, r.ExcludeNodes)
	require.True(t, r.Retry)
}

// The estimate for a change of flags agrees with the run's own memory: what it held and what it tried
// to allocate.
func TestTheEstimateAgreesWithTheRun(t *testing.T) {
	const tried = "Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in step\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s GiB. " +
		"GPU 0 has a total capacity of 79.00 GiB of which %s GiB is free.\n"
	fit := func(asked, free string) float64 {
		r := diagnosetest.Text(t, diagnosetest.PrintedArguments+fmt.Sprintf(tried, asked, free))
		require.NotNil(t, r.Fit)
		return r.Fit.EstimateGiB
	}
	require.Greater(t, fit("20.00", "1.00"), fit("2.00", "1.00"), "it tried to take more")
	require.Less(t, fit("2.00", "30.00"), fit("2.00", "1.00"), "it held less")
}

// No change is advised where the run held many times what the arguments explain, as with another
// model on the same GPU: the change would not reach that memory.
func TestAnEstimateOfASmallPartAdvisesNothing(t *testing.T) {
	small := strings.NewReplacer(
		"hidden_size ..................................... 4096", "hidden_size ..................................... 512",
		"attention_heads ............................. 32", "attention_heads ............................. 8",
		"micro_batch_size ................................ 4", "micro_batch_size ................................ 1",
	).Replace(diagnosetest.PrintedArguments)
	r := diagnosetest.Text(t, small+"Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in step\ntorch.OutOfMemoryError: CUDA out of memory. "+
		"Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.00 GiB of which 1.00 GiB is free.\n")
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Nil(t, r.Fit)
}

// The advice doubles the tensor parallelism, unless the heads cannot be split so far.
func TestNoChangeThatMegatronRefusesIsAdvised(t *testing.T) {
	const micro = "micro_batch_size ................................ "
	arguments := strings.Replace(diagnosetest.PrintedArguments, micro+"4", micro+"1", 1) +
		"  recompute_granularity ........................... full\n  recompute_method ................................ uniform\n" +
		"  recompute_num_layers ............................ 1\n"
	odd := strings.NewReplacer(
		"hidden_size ..................................... 4096", "hidden_size ..................................... 3840",
		"attention_heads ............................. 32", "attention_heads ............................. 30",
		"query_groups ................................ 8", "query_groups ................................ 2",
	).Replace(arguments)
	const raised = "Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in step\ntorch.OutOfMemoryError: CUDA out of memory. " +
		"Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.00 GiB of which 1.00 GiB is free.\n"
	for printed, flag := range map[string]string{arguments: "--tensor-model-parallel-size", odd: "--pipeline-model-parallel-size"} {
		r := diagnosetest.Text(t, printed+raised)
		require.NotNil(t, r.Fit)
		require.Equal(t, flag, r.Fit.Flags[0])
	}
}
