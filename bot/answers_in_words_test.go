package bot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A chat says in words what a shell shows in Slurm's short forms.
func TestAChatSaysInWordsWhatAShellAbbreviates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p      slurm.Partition
		en, zh string
	}{
		{slurm.Partition{Idle: 3, Allocated: 60, Other: 1, Total: 64}, "3 idle · 60 in use · 1 out of service · 64 in all", "3 个空闲 · 60 个使用中 · 1 个不可用 · 共 64 个"},
		{slurm.Partition{Idle: 64, Total: 64}, "64 idle", "64 个空闲"},
		{slurm.Partition{Total: 64}, "64 in all", "共 64 个"},
	} {
		for l, want := range map[lang.Lang]string{lang.EN: c.en, lang.ZH: c.zh} {
			doc := partitionsDoc(fleet.PartitionsOut{Partitions: []fleet.PartitionOut{{Partition: c.p}}}, l)
			require.Equal(t, want, doc.Sections[0].Table.Rows[0][2])
			require.Empty(t, doc.Sections[0].Text, "words need no legend")
		}
	}
	gone := jobcontrol.CancelOut{JobID: "4711", State: slurm.Failed}
	require.Equal(t, "4711 had ended already: failed", cancelDoc(gone, lang.EN).Title)
	require.Equal(t, "4711 此前已结束：失败", cancelDoc(gone, lang.ZH).Title)
	require.Equal(t, gone.View(lang.EN).Tone, cancelDoc(gone, lang.EN).Tone)
	require.True(t, nothingIn(jobcontrol.ListOut{}))
	require.False(t, nothingIn(jobcontrol.ListOut{Jobs: []slurm.Job{{ID: "1"}}}))
}
