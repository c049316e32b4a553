package joblogs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// TestAQuestionIsAnsweredInItsLanguage asks in both languages on a surface that uses
// one.
func TestAQuestionIsAnsweredInItsLanguage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	log := filepath.Join(root, "a.log")
	require.NoError(t, os.WriteFile(log, fmt.Appendf(nil, doomed, "1.25"), 0o600))
	c := &ops.Call{Service: &ops.Service{}, Who: ops.Caller{Surface: ops.Shell, User: "ada"}, Lang: lang.EN}
	for question, answer := range map[string]string{
		"which rank was it?": "Rank 0", "哪个 rank？": "rank 0。", "能直接重跑吗？": "不必：原样重跑还会失败。",
	} {
		out, err := Diagnose().Run(t.Context(), c, &DiagnoseIn{Target: log, Question: question})
		require.NoError(t, err)
		require.Contains(t, out.(DiagnoseOut).Answer, answer, question)
	}
}
