package knowledge

import (
	"strings"
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
		"2 nodes x 8 cards so --nproc-per-node=16, correct?":                 "No. ",
		"--time=1-12 is 13 hours, right?":                                    "No. ",
		"8 GPUs TP2 PP2 makes 4 replicas, right?":                            "That does not fit",
		"日志里 rank 0 报 NCCL 超时,根因就是 rank 0 对吧":                                "不能只看 rank 0",
	} {
		ans, err := a.Ask(t.Context(), Question{Text: text})
		require.NoError(t, err)
		require.Contains(t, ans.Answer, want, text)
	}
}

// Whether a statement that nobody wrote down is right can not be told from its
// words; then the answer neither denies nor confirms it, and says so.
func TestWhatCannotBeConfirmedIsSaidToBeOpen(t *testing.T) {
	a := New(Options{})
	for _, q := range []struct{ text, holds string }{
		{"squeue keeps finished jobs for good, so yesterday's exit code is there, ok?", "sacct"},
		{"afterok:123 waits until 123 exits with 0, correct?", "afterok"},
		{"NCCL_SOCKET_IFNAME=eth1 只会选 eth1 不会选 eth10 对吧", "前缀"},
		{"sinfo -s 是 597/0/15/612，所以空闲的有 15 个 对吧", "空闲"},
	} {
		ans, err := a.Ask(t.Context(), Question{Text: q.text})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(ans.Answer, textUnsettled.In(lang.Of(q.text))), "%s: %s", q.text, ans.Answer)
		require.Contains(t, ans.Answer, q.holds, q.text)
	}
	for _, plain := range []string{"--time=1-12 is 36 hours, right?", "8 GPUs TP2 PP2 makes 2 replicas, right?", "which prefix does NCCL_SOCKET_IFNAME take", "how do I see the exit code of a finished job"} {
		ans, err := a.Ask(t.Context(), Question{Text: plain})
		require.NoError(t, err)
		require.NotContains(t, ans.Answer, "cannot confirm", plain)
	}
}

func TestASecondCardIsNeverADenial(t *testing.T) {
	a := New(Options{})
	for _, q := range []string{"afterok:123 就是 123 成功结束才启动 是吧", "salloc ... bash, ssh drops overnight, the allocation is still mine, right?", "日志里 %j 替换成作业名 对不"} {
		ans, err := a.Ask(t.Context(), Question{Text: q})
		require.NoError(t, err)
		_, second, _ := strings.Cut(ans.Answer, "\n\n")
		require.NotRegexp(t, `(?m)^(?:No\. |不是这样。)`, second, q)
		for i, src := range ans.Sources {
			require.NotContains(t, ans.Sources[:i], src, "%s: no card twice", q)
		}
	}
}
