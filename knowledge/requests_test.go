package knowledge_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// A deed, a state, a person and a price are told from a question on the way by
// what the words are bound to.
func TestDeedsStatesAndPeopleAreToldFromTheWay(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	for _, q := range []string{
		"reboot gpu41 please", "would you release my held run", "move job 55120 to the top for us", "let the team know that node 7 is gone",
		"close the pull request with my patch", "requeue 77123", "could you extend 77123 by a day", "把 node9 下线", "麻烦给咱开几台机器", "跟大家发个通知说集群坏了",
		"has job 90210 failed", "how many people are in line before me", "is carol allowed into partition h100", "77123 跑到第几步了", "gpu17 又挂了吗", "我前面还有几个",
		"whose office is the storage team's", "which of my teammates knows nccl best", "谁能给我开 h100 的权限", "存储的负责人叫什么",
		"how much does a GB200 rack cost", "rent eight H100 for a month", "nvidia stock tips", "一台 H200 服务器多少钱",
		"precise step time of a 30B on 64 H200", "两千张卡一天能训多少 token", "scontrol levitate, what does it do",
	} {
		ans, err := a.Ask(t.Context(), knowledge.Question{Text: q})
		require.NoError(t, err)
		require.True(t, ans.Refused, "%s: %s", q, ans.Answer)
	}
	for _, q := range []string{
		"what does it buy me to share the ipc namespace with docker", "stock torchrun or uv run torchrun", "which port does the stock slurm script take",
		"who may resume a drained node", "节点被 drain 了该找谁恢复", "react to the preemption signal in a script", "my launch is a headache, hangs at init_process_group",
		"stop a teammate's job without root", "recipe for a launch on two nodes", "translate --gres into --gpus-per-node", "where can I read how long job 4455 ran",
		"does 0-15%4 mean a random 4 percent, right?", "作业时限到了 slurm 会自动取消吗",
	} {
		ans, err := a.Ask(t.Context(), knowledge.Question{Text: q})
		require.NoError(t, err)
		require.False(t, ans.Refused, "%s: %s", q, ans.Answer)
	}
}

// A refusal shows what the asker can go by.
func TestARefusalNamesTheWay(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	for q, want := range map[string]string{
		"which of my jobs are running right now": "squeue",
		"is any node of partition h100 idle now": "sinfo",
		"please cancel job 4455 for me":          "scancel",
		"我名下现在有几个任务在排队":                          "squeue",
	} {
		ans, err := a.Ask(t.Context(), knowledge.Question{Text: q})
		require.NoError(t, err)
		require.True(t, ans.Refused, q)
		require.NotEmpty(t, ans.Sources, q)
		_, shown, _ := strings.Cut(ans.Answer, "\n")
		require.Contains(t, shown, want, q)
		require.LessOrEqual(t, len([]rune(ans.Answer)), 900, q)
	}
	ans, err := a.Ask(t.Context(), knowledge.Question{Text: "cancel everybody's jobs on the whole cluster"})
	require.NoError(t, err)
	require.True(t, ans.Refused)
	require.NotContains(t, ans.Answer, "sudo")
	ans, err = a.Ask(t.Context(), knowledge.Question{Text: "what is the root password of node 3"})
	require.NoError(t, err)
	require.Empty(t, ans.Sources)
}
