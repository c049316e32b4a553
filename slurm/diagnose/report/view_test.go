package report_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

func TestTheReportSaysItselfInBothLanguages(t *testing.T) {
	r := diagnosetest.Text(t, "  micro_batch_size ................ 4\n  seq_length ................ 8192\n"+diagnosetest.OOMLog)
	require.Equal(t, 2.5, r.Memory.TriedGiB)
	require.Equal(t, "/w/train.py", r.Traceback.File)
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var back report.Report
	require.NoError(t, json.Unmarshal(b, &back))
	en, zh := back.View(lang.EN), back.View(lang.ZH)
	require.Equal(t, r.View(lang.EN), en, "a report that was sent says the same")
	require.Equal(t, len(en.Sections), len(zh.Sections))
	require.Contains(t, zh.Title, "显存")
	require.Contains(t, strings.Join(en.Sections[3].Items, " "), "--micro-batch-size 2")
}

// What a message does not tell to be free is not told to be nothing.
func TestFreeMemoryThatIsNotToldIsNotSaid(t *testing.T) {
	r := diagnosetest.Text(t, "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.75 GiB. GPU 3 has a total capacity of 79.00 GiB\n")
	require.Contains(t, r.View(lang.EN).Sections[0].Text, "It tried to allocate 3.75 GiB on a GPU of 79.00 GiB.")
	require.Contains(t, r.View(lang.ZH).Sections[0].Text, "试图在 79.00 GiB 的 GPU 上分配 3.75 GiB。")
}

// A truncated message has no capacity, so the summary names none.
func TestWhatAnOutOfMemoryMessageLeavesOutIsNotSaid(t *testing.T) {
	r := diagnosetest.Text(t, diagnosetest.Raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."))
	require.Contains(t, r.Summary, "It tried to allocate 2.00 GiB.")
	require.NotContains(t, r.Summary, "0.00")
	b, err := json.Marshal(r.View(lang.ZH))
	require.NoError(t, err)
	require.Contains(t, string(b), "试图分配 2.00 GiB。")
}
