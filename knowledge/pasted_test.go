package knowledge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

func TestAPastedMessageIsAnsweredInTheAskersTongue(t *testing.T) {
	a := New(Options{})
	pasted := "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error."

	ans, err := a.Ask(t.Context(), Question{Text: pasted, Usual: lang.ZH})
	require.NoError(t, err)
	require.Equal(t, lang.ZH, lang.Of(ans.Answer))

	ans, err = a.Ask(t.Context(), Question{Text: pasted})
	require.NoError(t, err)
	require.Contains(t, ans.Answer, "/dev/shm is too small")
	require.Contains(t, ans.Answer, "需要中文回答", "who pasted it is not known: the answer says how to have it in Chinese")

	for text, want := range map[string]lang.Lang{
		"why " + pasted:       lang.EN,
		pasted + " 怎么办":       lang.ZH,
		"what is MASTER_ADDR": lang.EN,
	} {
		ans, err = a.Ask(t.Context(), Question{Text: text, Usual: lang.ZH})
		require.NoError(t, err)
		require.Equal(t, want, lang.Of(ans.Answer), text)
		require.NotContains(t, ans.Answer, "需要中文回答")
	}
}

func TestAFalsePremiseIsDenied(t *testing.T) {
	a := New(Options{})
	for text, want := range map[string]string{
		"B200 will deadlock unless CUDA_DEVICE_MAX_CONNECTIONS is 1, right?": "No",
		"--time=24 gives me a whole day, right?":                             "minutes, not hours",
		"8 卡 TP2 PP2 就是 4 个副本对吧":                                             "2",
		"日志里 rank 0 报 NCCL 超时,根因就是 rank 0 对吧":                                "不能只看 rank 0",
	} {
		ans, err := a.Ask(t.Context(), Question{Text: text})
		require.NoError(t, err)
		require.Contains(t, ans.Answer, want, text)
	}
}
