package answers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

func TestExitCodesAndSignalsAreExplained(t *testing.T) {
	t.Parallel()
	for word, want := range map[string][3]string{ // the kind, a part of the explanation, and a part of the advice
		"137":           {"signal", "128 + 9: signal 9 ended it", "OUT_OF_MEMORY"},
		"0:9":           {"signal", "signal 9 ended it", "OUT_OF_MEMORY"},
		"SIGKILL":       {"signal", "killed, without a chance to save", "OUT_OF_MEMORY"},
		"kill":          {"signal", "killed", ""},
		"exit code 139": {"signal", "signal 11 ended it", "diagnose"},
		"sigbus":        {"signal", "/dev/shm", "shm-size"},
		"signal 15":     {"signal", "scancel", "diagnose"},
		"0:15":          {"signal", "time limit", ""},
		"190":           {"signal", "signal 62 ended it", ""},
		"1":             {"exit code", "exception", "diagnose"},
		"1:0":           {"exit code", "exception", "diagnose"},
		"0:0":           {"exit code", "ended well", ""},
		"2":             {"exit code", "argparse", "plan"},
		"127":           {"exit code", "not found", "PATH"},
		"0:53":          {"exit code", "could not be opened", "folder"},
		"53":            {"exit code", "could not be opened", "folder"},
		"0:125":         {"exit code", "OUT_OF_MEMORY", "raise mem"},
		"17":            {"exit code", "of the program's own", "diagnose"},
	} {
		out, err := explain(t.Context(), &ops.Call{Service: &ops.Service{}, Lang: lang.EN}, ExplainIn{Word: word})
		require.NoError(t, err, word)
		require.Equal(t, want[0], out.Kind, word)
		require.Contains(t, out.Says, want[1], word)
		require.Contains(t, out.Do, want[2], word)
	}
	for _, word := range []string{"256", "999", "0:63:1", "SIGNOTHING"} {
		out, err := explain(t.Context(), &ops.Call{Service: &ops.Service{}, Lang: lang.EN}, ExplainIn{Word: word})
		require.Error(t, err, "%s: %+v", word, out)
	}
	out, err := explain(t.Context(), &ops.Call{Service: &ops.Service{}, Lang: lang.ZH}, ExplainIn{Word: "0:9"})
	require.NoError(t, err)
	require.Contains(t, out.Says, "被信号 9 终止")
	require.Contains(t, out.Facts[1].Name, "退出码")
	require.Equal(t, "137", out.Facts[1].Value)
}

// A flag is also found without its dashes and with the underscores of its variable.
func TestExplainKnowsABareFlag(t *testing.T) {
	for _, word := range []string{"hybrid-layer-pattern", "--flag hybrid-layer-pattern", "hybrid_layer_pattern"} {
		out, err := explain(t.Context(), &ops.Call{Service: &ops.Service{}, Lang: lang.EN}, ExplainIn{Word: word})
		require.NoError(t, err, word)
		require.Equal(t, "--hybrid-layer-pattern", out.Word)
	}
}

// The severity of a rule is a word of the reader's language.
func TestSeverityInTheReadersLanguage(t *testing.T) {
	for l, want := range map[lang.Lang]string{lang.EN: "error", lang.ZH: "错误"} {
		out, err := explain(t.Context(), &ops.Call{Service: &ops.Service{}, Lang: l}, ExplainIn{Word: "heads-multiple-of-tp"})
		require.NoError(t, err)
		require.Contains(t, out.Facts, view.Fact{Name: lang.Text{EN: "severity", ZH: "严重程度"}.In(l), Value: want})
	}
}
