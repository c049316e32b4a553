package knowledge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// Questions that use the field's words for something else are declined.
func TestNeighboursOfTheFieldAreDeclined(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	for _, q := range []string{
		"how do I add a GPU node to gres.conf", "upgrade the firmware of the InfiniBand switches", "how do I run LAMMPS on eight nodes",
		"write a CUDA kernel that sorts an array", "which framework is better, this or Ray", "my loss is stuck at 3, which learning rate is the best for it",
		"find me a job as cluster engineer in Munich", "how many GPUs does Meta have", "start a Quarkus service on a GPU node",
		"gres.conf 怎么配置", "节点的网卡驱动怎么升级", "怎么在节点上跑 LAMMPS", "你觉得哪家公司的训练平台更好", "模型效果怎么提升", "暑假作业写不完怎么办", "帮我把 /lustre/team/old 下面三个月前的检查点都删了",
	} {
		ans, err := a.Ask(t.Context(), knowledge.Question{Text: q})
		require.NoError(t, err)
		require.True(t, ans.Refused, "%s: %s", q, ans.Answer)
	}
	for _, q := range []string{
		"which knob stops the scheduler from landing me on gpu-13 again", "the kill switch file stops even a hung job at once, right?",
		"how do I coax slurm into emailing me when training croaks", "where do I plonk the sqsh image so every machine sees it",
		"the image needs a newer CUDA driver than the node has, error at start", "脚本老起不来,容器里死活找不到 uv", "机器老出毛病,怎么绕开它",
		// One word of something else beside a question that a card surely answers.
		"does slurm forecast when a waiting job starts", "who is the head node of my job, from a variable", "VPN 断了 salloc 的分配会被收回吗",
	} {
		ans, err := a.Ask(t.Context(), knowledge.Question{Text: q})
		require.NoError(t, err)
		require.False(t, ans.Refused, q)
	}
}
