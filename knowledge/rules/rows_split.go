package rules

import (
	"fmt"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// splitRows are rules for what tensor parallelism cannot split. No check of Megatron's arguments finds
// it: the job ends when it builds the model, or in the first forward pass.
func splitRows() []row {
	return topics("parallel sizes", []row{
		{
			id: "ffn-multiple-of-tp", flags: "--ffn-hidden-size " + tpFlag, source: "megatron/core/utils.py:592", stage: building, effect: ChangesExperiment,
			when: t("TP > 1 and no experts", "TP > 1 且没有专家"), must: t("--ffn-hidden-size must be a multiple of TP", "--ffn-hidden-size 必须是 TP 的整数倍"),
			why: t("each rank holds an equal part of the MLP; found only when the model is built", "每个 rank 持有 MLP 的等份；要到构建模型时才发现"),
			do:  t("change --ffn-hidden-size or TP", "调整 --ffn-hidden-size 或 TP"),
			broken: func(c *cfg) bool {
				return c.TP > 1 && c.Experts == 0 && c.Hybrid == nil && c.FfnHiddenSize.OK && !multiple(c.FfnHiddenSize.V, c.TP)
			},
			fix: func(c *cfg) lang.Text {
				return t("use --ffn-hidden-size %d", "改用 --ffn-hidden-size %d").With((c.FfnHiddenSize.V/c.TP + 1) * c.TP)
			},
		},
		{
			id: "sequence-multiple-of-tp-cp", flags: "--seq-length " + tpFlag + " " + cpFlag, stage: advising, effect: ChangesExperiment,
			source: "megatron/core/tensor_parallel/mappings.py:178",
			when:   t("--sequence-parallel and TP > 1", "--sequence-parallel 且 TP > 1"), must: t("--seq-length must be a multiple of TP × CP", "--seq-length 必须是 TP × CP 的整数倍"),
			why: t("the ranks of a group share the sequence; found only in the first forward pass", "同组各 rank 均分序列；要到第一次前向计算时才发现"),
			do:  t("change --seq-length, TP or CP", "调整 --seq-length、TP 或 CP"), broken: splitsUnevenly,
			fix: fixSequence,
		},
	})
}

// splitsUnevenly reports whether sequence parallelism cannot share a sequence evenly.
func splitsUnevenly(c *cfg) bool {
	return c.SequenceParallel && c.TP > 1 && c.CP > 0 && c.SeqLength.OK && !multiple(c.SeqLength.V, c.TP*c.CP)
}

// fixSequence proposes the nearest sequence length that all ranks of the layout can share, and the
// largest smaller CP that needs no other length.
func fixSequence(c *cfg) lang.Text {
	seq := c.SeqLength.V
	if seq < 1 || max(c.TP, c.CP, c.PP, c.GTP) > largest || min(c.TP, c.CP, c.PP, c.GTP) < 1 {
		return lang.Text{}
	}
	part := parts(c, c.CP)
	length := seq / part * part
	if up := length + part; length == 0 || up <= c.MaxPositionEmbeddings.Or(up) {
		length = up
	}
	en, zh := fmt.Sprintf("use --seq-length %d", length), fmt.Sprintf("改用 --seq-length %d", length)
	if cp := smallerCP(c); cp > 0 {
		return t(fmt.Sprintf("use CP %d, or %s", cp, en[len("use "):]), fmt.Sprintf("改用 CP %d，或%s", cp, zh))
	}
	return t(en, zh)
}

// smallerCP returns the largest smaller CP that fits the number of GPUs and the sequence; 0 for none.
func smallerCP(c *cfg) int {
	for cp := min(c.CP, largest) - 1; cp > 0; cp-- {
		if multiple(c.World, c.TP*c.PP*cp*c.GTP) && multiple(c.SeqLength.Or(0), parts(c, cp)) {
			return cp
		}
	}
	return 0
}

// parts returns the least number of equal pieces that a sequence must consist of with a context-parallel
// size: two for each of its ranks, and a multiple of the ranks of sequence parallelism.
func parts(c *cfg, cp int) int {
	switch {
	case cp == 1 && !c.SequenceParallel:
		return 1
	case cp == 1:
		return c.TP
	case !c.SequenceParallel:
		return 2 * cp
	case c.TP%2 == 0:
		return c.TP * cp
	}
	return 2 * c.TP * cp
}
