package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func modelRows() []row {
	return topics("model", []row{
		{
			id: "layers-given-once", flags: "--num-layers --encoder-num-layers", source: inArgs + "1305", effect: ChangesExperiment,
			when:   t("--num-layers", ""),
			must:   t("--encoder-num-layers must not be given as well", "不能同时给 --encoder-num-layers"),
			why:    t("both name the same number", "两者指同一个数"),
			do:     t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return (c.Asked.NumLayers.OK || c.Hybrid != nil) && c.EncoderNumLayers.OK },
		},
		{
			id: "layers-given", flags: "--num-layers --encoder-num-layers", source: inArgs + "1309", effect: ChangesExperiment,
			when:   t("always", "任何情况"),
			must:   t("--num-layers (or --encoder-num-layers) must be given", "必须给 --num-layers（或 --encoder-num-layers）"),
			why:    t("the number of layers has no default", "层数没有默认值"),
			do:     t("add --num-layers", "加上 --num-layers"),
			broken: func(c *cfg) bool { return !c.NumLayers.OK },
		},
		{
			id: "layers-positive", flags: "--num-layers", source: "megatron/core/utils.py:869", stage: configuring, effect: ChangesExperiment, after: "layers-given",
			when:   t("always", "任何情况"),
			must:   t("--num-layers must be above 0", "--num-layers 必须大于 0"),
			why:    t("the standard deviation of the output weights' initialisation is divided by a root of the number of layers", "输出权重初始化的标准差要除以层数的平方根"),
			do:     t("give the model's number of layers", "给出模型的层数"),
			broken: func(c *cfg) bool { return c.NumLayers.OK && c.NumLayers.V < 1 && c.Hybrid == nil },
		},
		required("hidden-size-given", "--hidden-size", func(c *cfg) bool { return c.HiddenSize.OK }),
		required("attention-heads-given", "--num-attention-heads", func(c *cfg) bool { return c.NumAttentionHeads.OK }),
		required("max-position-given", "--max-position-embeddings", func(c *cfg) bool { return c.MaxPositionEmbeddings.OK }),
		{
			id: "hidden-multiple-of-heads", flags: "--hidden-size --num-attention-heads --kv-channels", source: inArgs + "1332", effect: ChangesExperiment,
			when: t("--kv-channels not given", "未给 --kv-channels"),
			must: t("--hidden-size must be a multiple of --num-attention-heads", "--hidden-size 必须是 --num-attention-heads 的整数倍"),
			why:  t("the width of a head is hidden size / heads; the assertion has no text", "每个头的宽度是 hidden size / 头数；该断言没有文字说明"),
			do:   t("change one of the two, or give --kv-channels", "改其中之一，或给出 --kv-channels"),
			broken: func(c *cfg) bool {
				return !c.Asked.KvChannels.OK && c.HiddenSize.OK && c.NumAttentionHeads.OK && !multiple(c.HiddenSize.V, c.NumAttentionHeads.V)
			},
			fix: func(c *cfg) lang.Text {
				h, n := c.HiddenSize.V, max(c.NumAttentionHeads.V, 1)
				return t("use --hidden-size %d, or %s heads, or give --kv-channels", "改用 --hidden-size %d，或 %s 个头，或给出 --kv-channels").With((h/n+1)*n, nearDivisors(h, n))
			},
		},
		{
			id: "seq-length-for-cp", flags: "--seq-length " + cpFlag, source: inArgs + "1336", effect: ChangesExperiment,
			when:   t("CP > 1", ""),
			must:   t("--seq-length must be a multiple of 2 × CP", "--seq-length 必须是 2 × CP 的整数倍"),
			why:    t("each rank takes one piece from the front and one from the back, to balance the causal mask", "为平衡因果掩码，每个 rank 从前后各取一段"),
			do:     t("change --seq-length or CP", "调整 --seq-length 或 CP"),
			broken: func(c *cfg) bool { return c.CP > 1 && c.Asked.SeqLength.OK && !multiple(c.Asked.SeqLength.V, 2*c.CP) },
			fix:    fixSequence,
		},
		{
			id: "seq-length-given-once", flags: "--seq-length --encoder-seq-length", source: inArgs + "1347", effect: ChangesExperiment,
			when:   t("--seq-length", ""),
			must:   t("--encoder-seq-length must not be given as well", "不能同时给 --encoder-seq-length"),
			why:    t("both name the same number", "两者指同一个数"),
			do:     t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.Asked.SeqLength.OK && c.EncoderSeqLength.OK },
		},
		{
			id: "seq-length-given", flags: "--seq-length --encoder-seq-length", source: inArgs + "1350", effect: ChangesExperiment,
			when:   t("always", "任何情况"),
			must:   t("--seq-length (or --encoder-seq-length) must be given", "必须给 --seq-length（或 --encoder-seq-length）"),
			why:    t("the sequence length has no default", "序列长度没有默认值"),
			do:     t("add --seq-length", "加上 --seq-length"),
			broken: func(c *cfg) bool { return !c.SeqLength.OK },
		},
		{
			id: "max-position-covers-seq", flags: "--max-position-embeddings --seq-length", source: inArgs + "1354",
			when: t("always, for rotary positions too", "任何情况，使用 RoPE 时也一样"),
			must: t("--max-position-embeddings must be at least --seq-length", "--max-position-embeddings 不能小于 --seq-length"),
			why:  t("a learned table needs a row for each position; for rotary positions the value is otherwise unused but still checked", "可学习位置表每个位置都要有一行；RoPE 虽不用该值，仍会检查"),
			do:   t("raise --max-position-embeddings", "增大 --max-position-embeddings"),
			broken: func(c *cfg) bool {
				return c.SeqLength.OK && c.MaxPositionEmbeddings.OK && c.MaxPositionEmbeddings.V < c.SeqLength.V
			},
			fix: func(c *cfg) lang.Text {
				return t("use --max-position-embeddings %d", "改用 --max-position-embeddings %d").With(c.SeqLength.V)
			},
		},
		{
			id: "max-position-covers-decoder", flags: "--max-position-embeddings --decoder-seq-length", source: inArgs + "1358",
			when: t("--decoder-seq-length", ""),
			must: t("--max-position-embeddings must be at least --decoder-seq-length", "--max-position-embeddings 不能小于 --decoder-seq-length"),
			why:  t("the decoder's positions come from the same table; the assertion has no text", "解码器的位置来自同一张表；该断言没有文字说明"),
			do:   t("raise --max-position-embeddings", "增大 --max-position-embeddings"),
			broken: func(c *cfg) bool {
				return c.DecoderSeqLength.OK && c.MaxPositionEmbeddings.OK && c.MaxPositionEmbeddings.V < c.DecoderSeqLength.V
			},
		},
		{
			id: "no-position-embedding-gone", flags: "--no-position-embedding --position-embedding-type", source: inArgs + "1634",
			when:   t("--no-position-embedding", ""),
			must:   t("the position embedding must be rope", "位置编码类型必须是 rope"),
			why:    t("the flag is from an older Megatron and is only allowed with rope", "该参数来自旧版本，如今只允许与 rope 同用"),
			do:     t("drop --no-position-embedding and give --position-embedding-type", "去掉 --no-position-embedding，改给 --position-embedding-type"),
			broken: func(c *cfg) bool { return !c.AddPositionEmbedding && c.PositionEmbeddingType != "rope" },
		},
		{
			id: "relative-needs-te", flags: "--position-embedding-type --transformer-impl", source: inArgs + "1638", effect: ChangesExperiment,
			when: t("--position-embedding-type relative", ""),
			must: t("--transformer-impl must be transformer_engine", "--transformer-impl 必须是 transformer_engine"),
			why:  t("the local attention takes no bias", "local 实现的注意力不支持偏置"),
			do:   t("use --transformer-impl transformer_engine", "改用 --transformer-impl transformer_engine"),
			broken: func(c *cfg) bool {
				return c.PositionEmbeddingType == "relative" && c.TransformerImpl != "transformer_engine"
			},
		},
		{
			id: "mrope-needs-section", flags: "--mrope-section --position-embedding-type", source: inArgs + "1644", effect: ChangesExperiment,
			when:   t("--position-embedding-type mrope", ""),
			must:   t("--mrope-section must be given", "必须给 --mrope-section"),
			why:    t("the sections say which channels turn with time, height and width", "它规定哪些通道分别随时间、高、宽旋转"),
			do:     t("add --mrope-section", "加上 --mrope-section"),
			broken: func(c *cfg) bool { return c.PositionEmbeddingType == "mrope" && c.MropeSection == nil },
		},
		{
			id: "mtp-position-type", flags: "--mtp-num-layers --position-embedding-type", source: inArgs + "883", effect: ChangesExperiment,
			when: t("--mtp-num-layers above 0", "--mtp-num-layers 大于 0"),
			must: t("the position embedding must be rope or none", "位置编码类型必须是 rope 或 none"),
			why:  t("multi-token prediction shifts the tokens and supports no learned positions", "多 token 预测要平移 token，不支持可学习位置编码"),
			do:   t("use --position-embedding-type rope, or drop --mtp-num-layers", "改用 --position-embedding-type rope，或去掉 --mtp-num-layers"),
			broken: func(c *cfg) bool {
				// Megatron checks before --use-rotary-position-embeddings takes effect.
				p := c.Asked.PositionEmbeddingType
				return c.MtpNumLayers.Or(0) != 0 && p != "rope" && p != "none"
			},
		},
		{
			id: "qk-clip-alpha", flags: "--qk-clip-alpha --qk-clip", source: inArgs + "1615", effect: ChangesExperiment,
			when:   t("--qk-clip", ""),
			must:   t("--qk-clip-alpha must lie between 0 and 1", "--qk-clip-alpha 必须在 0 与 1 之间"),
			why:    t("it shares the clipping between query and key weights", "它在 query 与 key 权重之间分配裁剪"),
			do:     t("give --qk-clip-alpha 0.5", "改成 --qk-clip-alpha 0.5"),
			broken: func(c *cfg) bool { return c.QkClip && !(c.QkClipAlpha > 0 && c.QkClipAlpha < 1) },
		},
		{
			id: "qk-clip-threshold", flags: "--qk-clip-threshold --qk-clip", source: inArgs + "1617", effect: ChangesExperiment,
			when:   t("--qk-clip", ""),
			must:   t("--qk-clip-threshold must be above 0", "--qk-clip-threshold 必须大于 0"),
			why:    t("logits are clipped down to it", "logits 会被裁剪到该值"),
			do:     t("give a positive threshold", "给一个正的阈值"),
			broken: func(c *cfg) bool { return c.QkClip && c.QkClipThreshold <= 0 },
		},
		{
			id: "mla-no-gqa", flags: "--group-query-attention --multi-latent-attention", source: inArgs + "1974", effect: ChangesExperiment,
			when:   t("--multi-latent-attention (a hybrid pattern with + or D switches it on)", "--multi-latent-attention（混合层模式含 + 或 D 时会自动打开）"),
			must:   t("--group-query-attention must not be given", "不能使用 --group-query-attention"),
			why:    t("latent attention replaces grouped queries", "潜变量注意力取代了分组查询"),
			do:     t("drop --group-query-attention", "去掉 --group-query-attention"),
			broken: func(c *cfg) bool { return c.MultiLatentAttention && c.GroupQueryAttention },
		},
		{
			id: "mla-down-proj-fusion-needs-mla", flags: "--mla-down-proj-fusion --multi-latent-attention", source: inArgs + "1977",
			when:   t("--mla-down-proj-fusion", ""),
			must:   t("--multi-latent-attention must be given", "必须使用 --multi-latent-attention"),
			why:    t("it fuses projections that only latent attention has", "它融合的是潜变量注意力才有的投影"),
			do:     t("drop --mla-down-proj-fusion", "去掉 --mla-down-proj-fusion"),
			broken: func(c *cfg) bool { return c.MlaDownProjFusion && !c.MultiLatentAttention },
		},
		{
			id: "squared-relu-no-swiglu", flags: "--squared-relu --swiglu", source: inUtils + "321", effect: ChangesExperiment,
			when:   t("--squared-relu", ""),
			must:   t("--swiglu must not be given", "不能使用 --swiglu"),
			why:    t("a layer has one activation; the assertion has no text", "一层只有一种激活函数；该断言没有文字说明"),
			do:     t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.SquaredRelu && c.Swiglu },
		},
		{
			id: "quick-geglu-no-swiglu", flags: "--quick-geglu --swiglu", source: inUtils + "324", effect: ChangesExperiment,
			when:   t("--quick-geglu", ""),
			must:   t("--swiglu must not be given", "不能使用 --swiglu"),
			why:    t("a layer has one activation; the assertion has no text", "一层只有一种激活函数；该断言没有文字说明"),
			do:     t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.QuickGeglu && !c.SquaredRelu && c.Swiglu },
		},
		{
			id: "rope-type-needs-mla", flags: "--rope-type --multi-latent-attention", source: inUtils + "339", effect: ChangesExperiment,
			when:   t("--rope-type other than rope", "--rope-type 不是 rope"),
			must:   t("--multi-latent-attention must be given", "必须使用 --multi-latent-attention"),
			why:    t("common attention reads --position-embedding-type instead", "普通注意力看的是 --position-embedding-type"),
			do:     t("drop --rope-type, or use --position-embedding-type yarn", "去掉 --rope-type，或改用 --position-embedding-type yarn"),
			broken: func(c *cfg) bool { return c.RopeType.OK && c.RopeType.V != "rope" && !c.MultiLatentAttention },
		},
		{
			id: "heads-multiple-of-tp", flags: tpFlag + " --num-attention-heads", source: inConfig + "1447",
			when:   t("TP > 1", ""),
			must:   t("--num-attention-heads must be a multiple of TP", "--num-attention-heads 必须是 TP 的整数倍"),
			why:    t("each tensor-parallel rank holds the same number of heads", "每个张量并行 rank 持有同样多的注意力头"),
			do:     t("use a TP that divides the heads", "选能整除头数的 TP"),
			broken: func(c *cfg) bool { return c.NumAttentionHeads.OK && c.TP > 0 && !multiple(c.NumAttentionHeads.V, c.TP) },
			fix: func(c *cfg) lang.Text {
				n := c.NumAttentionHeads.V
				best := 1
				for d := 1; d < min(c.TP, largest); d++ {
					if multiple(n, d) && multiple(c.World, d*c.PP*c.CP) {
						best = d
					}
				}
				return t("use TP %d: %d heads are divisible by %s", "改用 TP %d：%d 个头可被 %s 整除").With(best, n, divisors(n))
			},
		},
		{
			id: "query-groups-fit-tp", flags: "--num-query-groups " + tpFlag + " --group-query-attention", source: inConfig + "1465", effect: ChangesExperiment,
			when: t("--group-query-attention", ""),
			must: t("--num-query-groups must be a multiple or a divisor of TP", "--num-query-groups 必须是 TP 的倍数或约数"),
			why:  t("groups are spread over the ranks, or each copied to as many ranks", "各组要么均分到 rank 上，要么各自复制到同样多的 rank 上"),
			do:   t("change --num-query-groups or TP", "调整 --num-query-groups 或 TP"),
			broken: func(c *cfg) bool {
				// From 0.16 on a divisor of TP is allowed too.
				return c.GroupQueryAttention && c.TP > 0 && !multiple(c.NumQueryGroups, c.TP) &&
					(c.Release < megatron.V016 || !multiple(c.TP, c.NumQueryGroups))
			},
		},
		{
			// Seen on a GPU: the first forward pass ends with "shape ... is invalid for input of size ...".
			id: "heads-multiple-of-query-groups", flags: "--num-query-groups --num-attention-heads --group-query-attention", source: "megatron/core/transformer/attention.py:1844", effect: ChangesExperiment,
			when: t("--group-query-attention, without multi-latent attention", "--group-query-attention 且未用多潜注意力"),
			must: t("--num-attention-heads must be a multiple of --num-query-groups", "--num-attention-heads 必须是 --num-query-groups 的倍数"),
			why: t("every group serves the same number of heads; Megatron-LM checks nothing and ends in the first forward pass, at a shape that does not fit",
				"每组服务同样多的头；Megatron-LM 并不检查，在第一次前向计算时因形状不符而退出"),
			do: t("change --num-query-groups", "调整 --num-query-groups"),
			broken: func(c *cfg) bool {
				heads := c.NumAttentionHeads.Or(0)
				return c.GroupQueryAttention && !c.MultiLatentAttention && heads > 0 && c.NumQueryGroups > 0 && !multiple(heads, c.NumQueryGroups)
			},
			fix: func(c *cfg) lang.Text {
				return t("--num-query-groups: %s divide %d heads", "--num-query-groups：%s 可整除 %d 个头").With(divisors(c.NumAttentionHeads.V), c.NumAttentionHeads.V)
			},
		},
		{
			id: "gdn-needs-frequency", flags: "--linear-attention-freq --experimental-attention-variant", source: inConfig + "1475", effect: ChangesExperiment,
			when:   t("--experimental-attention-variant gdn", ""),
			must:   t("--linear-attention-freq must be given", "必须给 --linear-attention-freq"),
			why:    t("it says which layers are linear", "它决定哪些层使用线性注意力"),
			do:     t("add --linear-attention-freq 4", "加上 --linear-attention-freq 4"),
			broken: func(c *cfg) bool { return c.Variant == "gdn" && !c.LinearAttentionFreq.OK },
		},
		{
			id: "gdn-value-heads", flags: "--linear-num-value-heads --linear-num-key-heads", source: inConfig + "1495", effect: ChangesExperiment,
			when:   t("a gated delta net", "门控 delta 网络"),
			must:   t("--linear-num-value-heads must be a multiple of --linear-num-key-heads", "--linear-num-value-heads 必须是 --linear-num-key-heads 的整数倍"),
			why:    t("each key head serves a whole number of value heads", "每个 key 头对应整数个 value 头"),
			do:     t("change one of the two", "调整其中之一"),
			broken: func(c *cfg) bool { return gatedDelta(c) && !multiple(c.LinearNumValueHeads, c.LinearNumKeyHeads) },
		},
		{
			id: "gdn-key-heads-fit-tp", flags: "--linear-num-key-heads " + tpFlag + " " + cpFlag, source: inConfig + "1502", effect: ChangesExperiment,
			when: t("a gated delta net", "门控 delta 网络"),
			must: t("--linear-num-key-heads must be a multiple of TP × CP", "--linear-num-key-heads 必须是 TP × CP 的整数倍"),
			why:  t("the heads are spread over both axes", "这些头分布在两个并行维度上"),
			do:   t("use smaller TP × CP, or more key heads", "减小 TP × CP，或增加 key 头"),
			broken: func(c *cfg) bool {
				n := gatedDeltaSplit(c)
				return gatedDelta(c) && n > 0 && !multiple(c.LinearNumKeyHeads, n)
			},
		},
		{
			id: "gdn-value-heads-fit-tp", flags: "--linear-num-value-heads " + tpFlag + " " + cpFlag, source: inConfig + "1506", effect: ChangesExperiment,
			when: t("a gated delta net", "门控 delta 网络"),
			must: t("--linear-num-value-heads must be a multiple of TP × CP", "--linear-num-value-heads 必须是 TP × CP 的整数倍"),
			why:  t("the heads are spread over both axes", "这些头分布在两个并行维度上"),
			do:   t("use smaller TP × CP, or more value heads", "减小 TP × CP，或增加 value 头"),
			broken: func(c *cfg) bool {
				n := gatedDeltaSplit(c)
				return gatedDelta(c) && n > 0 && !multiple(c.LinearNumValueHeads, n)
			},
			after: "gdn-key-heads-fit-tp",
		},
		{
			id: "gdp-householder", flags: "--gdp-num-householder", source: inConfig + "1438", effect: ChangesExperiment,
			when:   t("always", "任何情况"),
			must:   t("--gdp-num-householder must be at least 1", "--gdp-num-householder 必须不小于 1"),
			why:    t("it counts the reflections of a delta product", "它是 delta product 的反射次数"),
			do:     t("leave it at the default", "用默认值"),
			broken: func(c *cfg) bool { return c.GdpNumHouseholder < 1 },
		},
		{
			id: "dsa-no-bias", flags: "--disable-bias-linear --experimental-attention-variant", source: inConfig + "1513", effect: ChangesExperiment,
			when:   t("DeepSeek sparse attention", "DeepSeek 稀疏注意力（DSA）"),
			must:   t("--disable-bias-linear must be given", "必须加 --disable-bias-linear"),
			why:    t("its absorbed projections have no bias", "其吸收式投影没有偏置"),
			do:     t("add --disable-bias-linear", "加上 --disable-bias-linear"),
			broken: func(c *cfg) bool { return c.Variant == "dsa" && c.AddBiasLinear },
		},
		{
			id: "dsa-topk-freq", flags: "--dsa-indexer-topk-freq", source: inConfig + "1518", effect: ChangesExperiment,
			when:   t("DeepSeek sparse attention", "DeepSeek 稀疏注意力（DSA）"),
			must:   t("--dsa-indexer-topk-freq must be at least 1", "--dsa-indexer-topk-freq 必须不小于 1"),
			why:    t("it counts layers between two index computations", "它是两次索引计算之间的层数"),
			do:     t("give 1", "改成 1"),
			broken: func(c *cfg) bool { return c.Variant == "dsa" && c.DsaIndexerTopkFreq < 1 },
		},
		{
			id: "dsa-topk-offset", flags: "--dsa-indexer-skip-topk-offset", source: inConfig + "1522", effect: ChangesExperiment,
			when:   t("DeepSeek sparse attention", "DeepSeek 稀疏注意力（DSA）"),
			must:   t("--dsa-indexer-skip-topk-offset must not be negative", "--dsa-indexer-skip-topk-offset 不能为负"),
			why:    t("it counts layers from the first", "它从首层开始计数"),
			do:     t("give 0", "改成 0"),
			broken: func(c *cfg) bool { return c.Variant == "dsa" && c.DsaIndexerSkipTopkOffset < 0 },
		},
		{
			id: "dsa-no-rope-fusion", flags: "--no-rope-fusion --experimental-attention-variant", source: inConfig + "3163",
			when:   t("DeepSeek sparse attention", "DeepSeek 稀疏注意力（DSA）"),
			must:   t("--no-rope-fusion must be given", "必须加 --no-rope-fusion"),
			why:    t("the fused rotary kernel does not know the indexer's layout", "融合 RoPE 内核不认识索引器的布局"),
			do:     t("add --no-rope-fusion", "加上 --no-rope-fusion"),
			broken: func(c *cfg) bool { return c.Variant == "dsa" && c.ApplyRopeFusion },
		},
		{
			id: "dsa-cp-allgather", flags: "--cp-comm-type " + cpFlag + " --experimental-attention-variant", source: inConfig + "3170",
			when: t("DeepSeek sparse attention and CP > 1", "DeepSeek 稀疏注意力（DSA）且 CP > 1"),
			must: t("--cp-comm-type must be allgather", "--cp-comm-type 必须是 allgather"),
			why:  t("the indexer needs all keys", "索引器需要全部 key"),
			do:   t("use --cp-comm-type allgather", "改用 --cp-comm-type allgather"),
			broken: func(c *cfg) bool {
				return c.Variant == "dsa" && c.CP > 1 && (c.Release < megatron.V019 || slices.ContainsFunc(c.CpCommType, func(s string) bool {
					return strings.ToLower(strings.ReplaceAll(s, "_", "")) != "allgather"
				}))
			},
		},
		{
			id: "cp-comm-type-per-layer", flags: "--cp-comm-type --num-layers " + cpFlag, source: inConfig + "3105",
			when:   t("CP > 1 and several values of --cp-comm-type", "CP > 1 且 --cp-comm-type 给了多个值"),
			must:   t("there must be one value, or one for each layer", "只能给一个值，或每层一个值"),
			why:    t("a list is read layer by layer", "列表按层读取"),
			do:     t("give one value", "只给一个值"),
			broken: func(c *cfg) bool { return c.CP > 1 && len(c.CpCommType) > 1 && len(c.CpCommType) != c.Layers },
		},
		{
			id: "mtp-hsm-depth", flags: "--mtp-hsm --mtp-num-layers", source: inArgs + "888", severity: Note, effect: ChangesExperiment,
			when:   t("--mtp-hsm with fewer than two MTP layers", "--mtp-hsm 且 MTP 层少于两层"),
			must:   t("--mtp-hsm is switched off silently", "--mtp-hsm 会被静默关闭"),
			why:    t("hidden-state mixing needs two layers to mix", "隐状态混合至少需要两层"),
			do:     t("drop --mtp-hsm, or give --mtp-num-layers 2", "去掉 --mtp-hsm，或给 --mtp-num-layers 2"),
			broken: func(c *cfg) bool { return c.Asked.MtpHsm && !c.MtpHsm },
		},
		{
			id: "mla-no-rotary-interleaved", flags: "--rotary-interleaved --multi-latent-attention", source: inConfig + "2527", effect: ChangesExperiment,
			when:   t("--multi-latent-attention", ""),
			must:   t("--rotary-interleaved must not be given", "不能使用 --rotary-interleaved"),
			why:    t("latent attention has its own layout of rotary channels", "潜变量注意力有自己的 RoPE 通道排布"),
			do:     t("drop --rotary-interleaved", "去掉 --rotary-interleaved"),
			broken: func(c *cfg) bool { return c.MultiLatentAttention && c.RotaryInterleaved },
		},
		{
			id: "cached-latents-no-rope-fusion", flags: "--no-rope-fusion --cache-mla-latents --multi-latent-attention", source: inConfig + "3352",
			when: t("--cache-mla-latents with --multi-latent-attention", "--cache-mla-latents 且 --multi-latent-attention"),
			must: t("--no-rope-fusion must be given", "必须加 --no-rope-fusion"),
			why:  t("the fused rope kernel, on by default, has no form for cached latents", "默认启用的融合 rope 内核不支持缓存的潜变量"),
			do:   t("add --no-rope-fusion, or drop --cache-mla-latents, which training does not use", "加 --no-rope-fusion，或去掉训练用不到的 --cache-mla-latents"),
			broken: func(c *cfg) bool {
				return c.MultiLatentAttention && c.ApplyRopeFusion && c.CacheMlaLatents
			},
		},
		{
			id: "no-xavier-init", flags: "--init-method-xavier-uniform", source: inUtils + "376", effect: ChangesExperiment,
			when: t("always", "任何情况"), must: t("--init-method-xavier-uniform must not be given", "不能使用 --init-method-xavier-uniform"),
			why: t("it sets scaled_init_method, a field that the model configuration does not have: the job ends with a TypeError",
				"它会设置模型配置中不存在的字段 scaled_init_method，作业以 TypeError 结束"),
			do:     t("drop it, and choose the width of the normal initialisation with --init-method-std", "去掉它，用 --init-method-std 选择正态初始化的宽度"),
			broken: func(c *cfg) bool { return c.InitMethodXavierUniform },
		},
		specWords("spec-module-and-name", Error), chunkRow(),
		{
			id: "mla-rope-fusion-needs-yarn", flags: "--no-rope-fusion --rope-type --multi-latent-attention", source: inConfig + "3346",
			when: t("--multi-latent-attention with rope fusion (the default)", "--multi-latent-attention 且启用 RoPE 融合（默认）"),
			must: t("--rope-type must be yarn (the default)", "--rope-type 必须是 yarn（默认）"),
			why:  t("the fused kernel is written for YaRN", "融合内核只为 YaRN 编写"),
			do:   t("add --no-rope-fusion", "加上 --no-rope-fusion"),
			broken: func(c *cfg) bool {
				return c.MultiLatentAttention && c.ApplyRopeFusion && c.RopeType.OK && c.RopeType.V != "yarn"
			},
		},
		{
			id: "mla-no-output-gate", flags: "--attention-output-gate --multi-latent-attention", source: inConfig + "3349", effect: ChangesExperiment,
			when:   t("--multi-latent-attention", ""),
			must:   t("--attention-output-gate must not be given", "不能使用 --attention-output-gate"),
			why:    t("latent attention has no output gate yet", "潜变量注意力尚不支持输出门"),
			do:     t("drop --attention-output-gate", "去掉 --attention-output-gate"),
			broken: func(c *cfg) bool { return c.MultiLatentAttention && c.AttentionOutputGate },
		},
		{
			id: "mup-base-positive", flags: "--mup-base-hidden-size --use-mup", source: inConfig + "2534", effect: ChangesExperiment,
			when:   t("--use-mup", ""),
			must:   t("--mup-base-hidden-size must be above 0", "--mup-base-hidden-size 必须大于 0"),
			why:    t("widths are scaled by it", "宽度按它缩放"),
			do:     t("give the base model's hidden size", "给出基准模型的 hidden size"),
			broken: func(c *cfg) bool { return c.UseMup && c.MupBaseHiddenSize.OK && c.MupBaseHiddenSize.V <= 0 },
		},
		{
			id: "no-rope-divides-layers", flags: "--no-rope-freq --num-layers", source: inConfig + "3141", effect: ChangesExperiment,
			when: t("--no-rope-freq N", ""),
			must: t("--num-layers must be a multiple of N", "--num-layers 必须是 N 的整数倍"),
			why:  t("the pattern repeats a whole number of times (Megatron's message says it the wrong way round)", "该模式要重复整数次（Megatron 的报错把关系说反了）"),
			do:   t("use a divisor of the layers, or a list", "改成层数的约数，或给出列表"),
			broken: func(c *cfg) bool {
				f := c.NoRopeFreq
				return f.OK && !f.V.IsList && f.V.N != 0 && !multiple(c.Layers, f.V.N)
			},
		},
		{
			id: "no-rope-list-length", flags: "--no-rope-freq --num-layers", source: inConfig + "3150", effect: ChangesExperiment,
			when: t("--no-rope-freq with a list", "--no-rope-freq 给列表"),
			must: t("the list must have one entry for each layer", "列表必须每层一项"),
			why:  t("it is read layer by layer", "它按层读取"),
			do:   t("make the list as long as --num-layers", "让列表长度等于 --num-layers"),
			broken: func(c *cfg) bool {
				f := c.NoRopeFreq
				return f.OK && f.V.IsList && len(f.V.List) > 0 && len(f.V.List) != c.Layers
			},
		},
		{
			id: "no-rope-no-flash-decode", flags: "--flash-decode --no-rope-freq", source: inConfig + "3139",
			when: t("--no-rope-freq", ""),
			must: t("--flash-decode must not be given", "不能使用 --flash-decode"),
			why:  t("flash decoding rotates the keys of every layer", "flash decode 会旋转每一层的 key"),
			do:   t("drop --flash-decode", "去掉 --flash-decode"),
			broken: func(c *cfg) bool {
				f := c.NoRopeFreq
				return f.OK && (f.V.N != 0 || len(f.V.List) > 0) && c.FlashDecode
			},
		},
		{
			id: "flash-attention-version", flags: "--flash-attention-version", source: inConfig + "3195",
			when:   t("--flash-attention-version", ""),
			must:   t("the version must be 2, 3 or 4", "版本必须是 2、3 或 4"),
			why:    t("Megatron supports no other version", "没有绑定其他版本"),
			do:     t("leave it out", "去掉该参数"),
			broken: func(c *cfg) bool { v := c.FlashAttentionVersion; return v.OK && (v.V < 2 || v.V > 4) },
		},
	})
}

func required(id, flag string, given func(*cfg) bool) row {
	return row{
		id: id, flags: flag, source: inArgs + "2005", at: 1316, effect: ChangesExperiment,
		when:   t("always", "任何情况"),
		must:   t(flag+" must be given", "必须给 "+flag),
		why:    t("it has no default", "它没有默认值"),
		do:     t("add "+flag, "加上 "+flag),
		broken: func(c *cfg) bool { return !given(c) },
	}
}

// gatedDeltaSplit returns the number of ranks over which the heads of a gated delta
// net are split. From 0.18 on context parallelism splits them too.
func gatedDeltaSplit(c *cfg) int {
	if c.Release < megatron.V018 {
		return c.TP
	}
	return c.TP * c.CP
}

func gatedDelta(c *cfg) bool { return c.Variant == "gdn" || c.Variant == "gdn2" }

func clampedSwiglu(c *cfg) bool {
	return c.ActivationFuncClampValue.OK && c.Activation == "silu" && c.Gated
}

// nearDivisors returns the divisors of n next to near, below and above it.
func nearDivisors(n, near int) string {
	if near > largest || n < 1 {
		return divisors(n)
	}
	below, above := 0, 0
	for d := near; d > 0; d-- {
		if n%d == 0 {
			below = d
			break
		}
	}
	for d := near; d <= n && d < 4*near; d++ {
		if n%d == 0 {
			above = d
			break
		}
	}
	if above == 0 || above == below {
		return fmt.Sprint(below)
	}
	return fmt.Sprintf("%d / %d", below, above)
}
