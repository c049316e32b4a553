package wording

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A chat spells out Slurm's abbreviations that a shell shows.
func TestAChatSaysInWordsWhatAShellAbbreviates(t *testing.T) {
	t.Parallel()
	day := int64(86400)
	for _, c := range []struct {
		p      slurm.Partition
		en, zh string
	}{
		{
			slurm.Partition{Name: "prod", Up: true, Idle: 3, Allocated: 60, Other: 1, Total: 64, GPUs: 8, TimeLimitS: &day, Default: true},
			"`prod` · the default · 3 nodes idle, 60 nodes in use, 1 node out of service · 8 GPUs a node · at most 1 d",
			"`prod` · 默认 · 3 个节点空闲, 60 个节点使用中, 1 个节点不可用 · 每节点 8 张 GPU · 时限 1 天",
		},
		{slurm.Partition{Name: "dev", Up: true, Idle: 64, Total: 64, MaxNodes: 4}, "`dev` · 64 nodes idle · at most 4 nodes a job", "`dev` · 64 个节点空闲 · 每作业最多 4 个节点"},
		{slurm.Partition{Name: "one", Up: true, Idle: 1, Total: 1, GPUs: 1, MaxNodes: 1}, "`one` · 1 node idle · 1 GPU a node · at most 1 node a job", "`one` · 1 个节点空闲 · 每节点 1 张 GPU · 每作业最多 1 个节点"},
		{slurm.Partition{Name: "old", Total: 64}, "`old` · takes no jobs · 64 nodes", "`old` · 不接受作业 · 64 个节点"},
	} {
		for l, want := range map[lang.Lang]string{lang.EN: c.en, lang.ZH: c.zh} {
			doc := partitionsDoc(fleet.PartitionsOut{Partitions: []fleet.PartitionOut{{Partition: c.p}}}, l)
			require.Equal(t, []string{want}, doc.Sections[0].Items)
			require.Nil(t, doc.Sections[0].Table)
			require.Empty(t, doc.Sections[0].Text, "words need no legend")
		}
	}
	free := nodesDoc(fleet.NodesOut{Partitions: []fleet.PartitionFree{{Partition: slurm.Partition{Name: "prod", Up: true, Idle: 2, Total: 2}, FreeGPUs: 14, TotalGPUs: 16}}}, lang.EN)
	require.Equal(t, []string{"`prod` · 14 of 16 GPUs free · 2 nodes idle"}, free.Sections[0].Items)
	gone := jobcontrol.CancelOut{JobID: "4711", State: slurm.Failed}
	require.Equal(t, "4711 had ended already: failed", cancelDoc(gone, lang.EN).Title)
	require.Equal(t, "4711 此前已结束：失败", cancelDoc(gone, lang.ZH).Title)
	require.Equal(t, gone.View(lang.EN).Tone, cancelDoc(gone, lang.EN).Tone)
	require.True(t, NothingIn(jobcontrol.ListOut{}))
	require.True(t, NothingIn(jobcontrol.QueueOut{}))
	require.False(t, NothingIn(fleet.NodesOut{}), "another answer is something")
	require.False(t, NothingIn(jobcontrol.ListOut{Jobs: []slurm.Job{{ID: "1"}}}))
}
