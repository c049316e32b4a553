package report_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// Each kind of import error has its own advice. Without a kind, the advice for Megatron's own modules
// names the worktree.
func TestAnImportErrorsAdviceNamesWhatToChange(t *testing.T) {
	for _, tt := range []struct {
		kind       report.ImportKind
		line, want string
	}{
		{report.WrongWorktree, "", "The script that ran lies in /root, not"},
		{report.StalePath, "", "imported from /root, another checkout"},
		{report.OldCheckout, "", "checkout in /root has no such module"},
		{report.NoSync, "ModuleNotFoundError: No module named 'einops'", "`einops` is not in the environment"},
		{report.NoSync, "ModuleNotFoundError: No module named einops.", "`einops` is not in the environment"},
		{report.NoSync, "ImportError: libcuda.so.1", ""},
		{"", "ModuleNotFoundError: No module named 'megatron'", "`megatron` is part of the worktree"},
		{"", "ModuleNotFoundError: No module named 'megatron.core'", "`megatron.core` is part of the worktree"},
		{"", "ModuleNotFoundError: No module named 'megatron_fsdp'", ""},
		{"", "ImportError: libcuda.so.1", ""},
	} {
		advice, ok := report.Report{ImportKind: tt.kind, ImportRoot: "/root", RootLine: tt.line}.ImportAdvice()
		require.Equal(t, tt.want != "", ok, "%s %s", tt.kind, tt.line)
		require.Contains(t, advice.EN, tt.want)
		require.Equal(t, tt.want != "", advice.ZH != "", tt.line)
	}
}
