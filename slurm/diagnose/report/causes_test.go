package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

func TestAnXidSaysWhatItMeans(t *testing.T) {
	for line, want := range map[string][2]string{
		"kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, name=python, GPU has fallen off the bus.": {
			"Xid 79 on gpu7: the GPU has fallen off the bus",
			"Xid 79：GPU 已从总线掉线",
		},
		"kernel: NVRM: Xid (PCI:0000:19:00): 94, pid=3, name=python, Contained: SM (0x1)": {"Xid 94 on gpu7: contained ECC error", "受控的 ECC 错误"},
		"kernel: NVRM: Xid (PCI:0000:19:00): 74, NVLink: fatal error detected on link 6":  {"check the NVLink bridge", "检查 NVLink"},
	} {
		r := diagnosetest.With(t, "gpu7:1:2 [0] NCCL INFO x\n"+line+"\n[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/a.py\", line 1, in f\n"+
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
	r := diagnosetest.With(t, "Traceback (most recent call last):\n  File \"/w/a.py\", line 1, in f\n    g()\n"+
		"RuntimeError: CUDA error: uncorrectable ECC error encountered\n", diagnose.Context{JobState: "FAILED"})
	require.Contains(t, strings.Join(r.Advice, " "), "ROW_REMAPPER")
}
