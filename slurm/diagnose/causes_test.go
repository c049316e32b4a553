package diagnose_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

func given(t *testing.T, text string, c diagnose.Context) report.Report {
	t.Helper()
	src, err := logfile.Read("slurm-1.out", strings.NewReader(text))
	require.NoError(t, err)
	r, err := diagnose.Run(context.Background(), src, c)
	require.NoError(t, err)
	return r
}

func TestAnXidSaysWhatItMeans(t *testing.T) {
	for line, want := range map[string][2]string{
		"kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, name=python, GPU has fallen off the bus.": {
			"Xid 79 on gpu7: the GPU has fallen off the bus",
			"Xid 79：GPU 已从总线掉线",
		},
		"kernel: NVRM: Xid (PCI:0000:19:00): 94, pid=3, name=python, Contained: SM (0x1)": {"Xid 94 on gpu7: contained ECC error", "受控的 ECC 错误"},
		"kernel: NVRM: Xid (PCI:0000:19:00): 74, NVLink: fatal error detected on link 6":  {"check the NVLink bridge", "检查 NVLink"},
	} {
		r := given(t, "gpu7:1:2 [0] NCCL INFO x\n"+line+"\n[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/a.py\", line 1, in f\n"+
			"[rank0]:     g()\n[rank0]: RuntimeError: CUDA error: unspecified launch failure\n", diagnose.Context{JobState: "FAILED", Nodes: []string{"gpu7"}})
		require.Equal(t, outcome.GPUHardware, r.Class, line)
		all := strings.Join(r.Advice, " ")
		require.Contains(t, strings.ReplaceAll(all, "NODE", "gpu7"), want[0])
		require.Contains(t, all, "drain")
		zh := ""
		for _, s := range r.View(lang.ZH).Sections {
			zh += strings.Join(s.Items, " ")
		}
		require.Contains(t, zh, want[1])
	}
	r := given(t, "Traceback (most recent call last):\n  File \"/w/a.py\", line 1, in f\n    g()\n"+
		"RuntimeError: CUDA error: uncorrectable ECC error encountered\n", diagnose.Context{JobState: "FAILED"})
	require.Contains(t, strings.Join(r.Advice, " "), "ROW_REMAPPER")
}

func TestAPeersAddressBecomesItsNode(t *testing.T) {
	names := map[string][]string{"10.1.2.3": {"gpu07-ib0.cluster.example."}, "10.1.2.4": {"storage1.example."}}
	c := diagnose.Context{JobState: "FAILED", Nodes: []string{"gpu06", "gpu07"}, Resolve: func(a string) []string { return names[a] }}
	for address, want := range map[string]string{"10.1.2.3": "gpu07 (10.1.2.3)", "10.1.2.4": "10.1.2.4", "10.9.9.9": "10.9.9.9"} {
		r := given(t, "gpu06:12:99 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to "+address+"<45123> failed : No route to host\n", c)
		require.Equal(t, outcome.NCCLConnection, r.Class)
		require.Equal(t, want, r.Peer)
		require.Contains(t, strings.Join(r.Advice, " "), "--exclude")
	}
	r := given(t, "torch.distributed.DistBackendError: NCCL error in: x, remote process exited or there was a network error\n"+
		"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n", c)
	require.Contains(t, strings.Join(r.Advice, " "), "debug-nccl", "without detail, how to get it")
}

func TestAnImportErrorSaysWhichKindItIs(t *testing.T) {
	from := func(script, inner, said string) string {
		return "Traceback (most recent call last):\n  File \"" + script +
			"/pretrain_gpt.py\", line 9, in <module>\n    from megatron.training import pretrain\n  File \"" + inner +
			"\", line 3, in <module>\n    import x\n" + said + "\n"
	}
	for name, c := range map[string]struct {
		log, worktree, root string
		kind                report.ImportKind
	}{
		"another worktree": {from("/home/a/old-megatron", "/home/a/old-megatron/megatron/training/__init__.py",
			"ModuleNotFoundError: No module named 'megatron.core.optimizer'"), "/home/a/megatron", "/home/a/old-megatron", report.WrongWorktree},
		"a stale PYTHONPATH": {from("/home/a/megatron", "/scratch/old/megatron/training/__init__.py",
			"ModuleNotFoundError: No module named 'megatron.core.optimizer'"), "/home/a/megatron", "/scratch/old/", report.StalePath},
		"a name from a stale": {from("/home/a/megatron", "/home/a/megatron/megatron/training/a.py",
			"ImportError: cannot import name 'f' from 'megatron.core' (/scratch/old/megatron/core/__init__.py)"), "", "/scratch/old/", report.StalePath},
		"an old commit": {from("/home/a/megatron", "/home/a/megatron/megatron/training/a.py",
			"ModuleNotFoundError: No module named 'megatron.core.optimizer'"), "/home/a/megatron", "/home/a/megatron", report.OldCheckout},
		"no uv sync": {
			from("/home/a/megatron", "/home/a/megatron/megatron/training/a.py", "ModuleNotFoundError: No module named 'einops'"),
			"/home/a/megatron", "uv sync", report.NoSync,
		},
	} {
		r := given(t, c.log, diagnose.Context{JobState: "FAILED", Worktree: c.worktree})
		require.Equal(t, outcome.ImportError, r.Class, name)
		require.Equal(t, c.kind, r.ImportKind, name)
		require.Contains(t, r.Advice[0], c.root, name)
		require.NotEqual(t, r.Advice[0], r.View(lang.ZH).Sections[3].Items[0], name)
	}
}

// Whoever watches the loss ends a diverged run by hand: that is not why it ended.
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
	require.Equal(t, outcome.NaNLoss, given(t, b.String()+cancelled, diagnose.Context{JobState: "CANCELLED"}).Class)
	require.Equal(t, outcome.SlurmCancelled, given(t, b.String()[:600]+"\n"+cancelled, diagnose.Context{JobState: "CANCELLED"}).Class)
}

// A mount that one node alone has lost is left out of the next try.
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
