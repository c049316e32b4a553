package compute

import (
	"math"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

var (
	paramsAsked = lazy.New(`\b(?:how many|number of|count of|total|what are the|the)? ?(?:parameters|params)\b|\bhow (?:big|large)\b.{0,24}\bmodel\b|\bmodel size\b|参数 ?(?:量|数|总数)|(?:多少|几)(?:亿|个)? ?(?:的)?参数|参数(?:是|有)?多少|模型(?:有)?多大`)
	flopsAsked  = lazy.New(`\bflops?\b(?:[^/]|$)|计算量|算力总量`)
	ckptAsked   = lazy.New(`\bcheckpoints?\b|\bckpts?\b|检查点|存档`)
	sizeAsked   = lazy.New(`\b(?:how (?:big|large|much)|size|disk|storage|space|gb|tb|gib|weighs?)\b|多大|大小|磁盘|存储|空间|多少 ?(?:gb|tb|g\b|t\b)|占`)
	weightsOnly = lazy.New(`no-save-optim|without (?:the )?optimi[sz]er|weights?[- ]only|only (?:the )?weights|(?:不|没有?)(?:带|存|含|要)?优化器|(?:只|仅)(?:存|有|保存|含)?(?:模型)?权重`)
	kept        = lazy.New(`\b(?:keep(?:s|ing)?|retain\w*|last|of|store|stor\w+|hold\w*) (?:the )?(?:last )?(\d{1,4}) ?(?:of them|checkpoints|ckpts|copies|$|[,;:?])|\b(\d{1,4}) (?:checkpoints|ckpts|of them|saves)|(?:保留|存|留|放) ?(?:最近)?(?:的)? ?(\d{1,4}) ?(?:个|份)|(\d{1,4}) ?(?:个|份) ?(?:checkpoint|ckpt|检查点)`)
	eachParam   = lazy.New(`\bbytes? (?:per|for each|a|each|for every) (?:parameter|param|weight)|每个?参数.{0,8}(?:字节|bytes?|多少)|(?:字节|bytes?).{0,4}每个?参数`)
	topK        = lazy.New(`top-?k? ?(?:=|of|is|为|是)? ?-?(\d+)|topk[= ]+(\d+)`)
	shareAsked  = lazy.New(`\b(?:share|fraction|percent\w*|proportion|part|ratio)\b|比例|百分|占比|几分之`)
	perRank     = lazy.New(`\b(?:samples|sequences)\b.{0,24}\b(?:per|each|every|on each) (?:\w+[- ]){0,3}(?:rank|replica|gpu|dp)\b|\b(?:per|each|every)[- ](?:\w+[- ]){0,3}(?:rank|replica)\b.{0,16}\b(?:samples|sequences|batch)|每个? ?(?:dp|数据并行)? ?(?:rank|副本|组).{0,10}(?:多少|几) ?(?:个|条)? ?样本`)
	stagesAsked = lazy.New(`\b(?:how many|number of|total)\b(?: \w+){0,3} (?:stages|chunks)\b|\b(?:stages|chunks) (?:altogether|in (?:all|total))|(?:多少|几) ?个? ?(?:虚拟|模型)?(?:流水线?)?(?:阶段|段|块|级|chunk|stage)`)
)

// Bytes that a parameter takes in a checkpoint: the bf16 weight, and with the
// optimizer its fp32 copy and two moments.
const (
	bytesSaved      = bytesWeight + bytesOptimizer
	flopsPerToken   = 6 // of each parameter: 2 forward, 4 backward
	feedForward     = 4 // --ffn-hidden-size is 4 × hidden unless given
	leastParameters = 1e6
)

// modelSize is how many parameters a question says that a model has.
func (q *question) modelSize() (n float64, name string) {
	for _, m := range parameters.FindAllStringSubmatch(q.low, -1) {
		if v := counted(m[1], m[2]); v >= leastParameters && m[2] != "t" && !strings.Contains(m[0], "token") {
			if at := strings.Index(q.low, m[0]) + len(m[0]); strings.HasPrefix(strings.TrimLeft(q.low[at:], " 个"), "token") {
				continue
			}
			return v, strings.ToUpper(m[1] + m[2])
		}
	}
	return 0, ""
}

// model answers what follows from a model's shape or size.
func model(q *question) string {
	if q.beside() {
		return ""
	}
	for _, a := range []func(*question) string{activeShare, samplesPerRank, virtualStages, microTokens, paramsPerRank, utilization, achieved, optimizerBytes, checkpointSize, flops, parameterCount} {
		if t := a(q); t != "" {
			return t
		}
	}
	return ""
}

// parameterCount counts out a GPT of a given shape.
func parameterCount(q *question) string {
	c := q.cfg
	if c.Layers == 0 || c.Hidden == 0 || c.Experts > 0 || !paramsAsked.MatchString(q.low) || q.has("memory", "显存") {
		return ""
	}
	ffn := c.Hidden * feedForward
	if n, ok := q.after(`ffn(?:[- ]hidden)?(?:[- ]size)? ?(?:=|of|is|为|是|:)? ?(\d+)`); ok {
		ffn = n
	}
	h := float64(c.Hidden)
	s := megatron.Shape{
		Layers: c.Layers, Hidden: c.Hidden, FFN: ffn, Vocab: c.Vocab, NormSize: 2, AttentionParams: 4 * h * h,
		Gated: q.has("swiglu", "gated"), Untied: q.has("untie", "untied", "不共享"),
	}
	all, _ := s.Params()
	size := short(all/1e9) + q.say(" billion", "B")
	if all < 1e9 {
		size = short(all/1e6) + q.say(" million", "M")
	}
	embedding := q.say("no vocabulary was given, so without the embedding", "没有给词表,未计 embedding")
	if c.Vocab > 0 {
		embedding = q.say("with an embedding of %d × %d", "含 embedding %d × %d", c.Vocab, c.Hidden)
	}
	return q.say("About %[1]s parameters (%[2]s): %[3]d layers × (4 × %[4]d² attention + feed-forward of width %[5]d), %[6]s. Roughly 12 × layers × hidden².",
		"约 %[1]s 参数(%[2]s):%[3]d 层 ×(注意力 4 × %[4]d² + 宽 %[5]d 的 FFN),%[6]s。粗算 12 × 层数 × hidden²。", size, whole(all), c.Layers, c.Hidden, ffn, embedding)
}

// scientific writes a large number as 4.2e22.
func scientific(n float64) string {
	return strings.Replace(strconv.FormatFloat(n, 'g', 3, 64), "e+", "e", 1)
}

// flops counts the operations of a training, and how long GPUs of a given rate
// take for them.
func flops(q *question) string {
	n, name := q.modelSize()
	tokens := q.runLength()
	total := math.Max(tokens.tokens, tokens.dataset)
	if n == 0 || total == 0 || !flopsAsked.MatchString(q.low) && !q.has("tflop") && (q.tflops() == 0 || !timeAsked.MatchString(q.low)) {
		return ""
	}
	work := flopsPerToken * n * total
	if rate, g := q.tflops(), q.cfg.World; g > 0 && rate > 0 {
		sec := work / (rate * 1e12 * float64(g))
		return q.say("%[1]s days (%[2]s hours): 6 × %[3]s parameters × %[4]s tokens = %[5]s FLOP / (%[6]d GPUs × %[7]s TFLOP/s), at that rate all the time.", "%[1]s 天(%[2]s 小时):6 × %[3]s 参数 × %[4]s token = %[5]s FLOP /(%[6]d 张卡 × %[7]s TFLOP/s),按一直保持该速度计。",
			short(sec/86400), hours(sec), name, scientific(total), scientific(work), g, short(rate))
	}
	return q.say("%[1]s FLOP: 6 × %[2]s parameters × %[3]s tokens (2 forward, 4 backward; attention scores and recomputation come on top).", "%[1]s FLOP:6 × %[2]s 参数 × %[3]s token(前向 2、反向 4;注意力分数和重计算另计)。",
		scientific(work), name, scientific(total))
}

// checkpointSize tells how large a checkpoint is, and so many of them.
func checkpointSize(q *question) string {
	n, name := q.modelSize()
	if n == 0 || !ckptAsked.MatchString(q.low) || !sizeAsked.MatchString(q.low) {
		return ""
	}
	each, how := float64(bytesSaved), q.say("14 bytes a parameter (2 bf16 weight + 12 optimizer)", "每参数 14 字节(bf16 权重 2 + 优化器 12)")
	if weightsOnly.MatchString(q.low) {
		each, how = bytesWeight, q.say("2 bytes a parameter (bf16 weights, --no-save-optim)", "每参数 2 字节(bf16 权重,--no-save-optim)")
	}
	one := each * n
	said := func(b float64) string {
		if b >= 1e12 {
			return short(b/1e12) + " TB"
		}
		return short(b/1e9) + " GB"
	}
	if m := kept.FindStringSubmatch(q.low); m != nil && first(m) > 1 {
		k := first(m)
		return q.say("%[1]s: %[2]d checkpoints × %[3]s each = %[4]s parameters × %[5]s.", "%[1]s:%[2]d 个检查点 × 每个 %[3]s = %[4]s 参数 × %[5]s。", said(one*float64(k)), k, said(one), name, how)
	}
	return q.say("About %[1]s: %[2]s parameters × %[3]s, whatever the number of GPUs.", "约 %[1]s:%[2]s 参数 × %[3]s,与卡数无关。", said(one), name, how)
}

// optimizerBytes tells the bytes of a parameter with the distributed optimizer.
func optimizerBytes(q *question) string {
	dp := q.cfg.DP
	if dp == 0 || !eachParam.MatchString(q.low) || !q.has("distributed", "dist-opt", "dist opt", "zero", "分布式", "shard", "切分") {
		return ""
	}
	return q.say("%[1]s bytes a parameter: 6 + 12 / DP %[2]d (bf16 weight 2 + gradient 4, and the optimizer's 12 spread over DP); without it 18.", "每参数 %[1]s 字节:6 + 12 / DP %[2]d(bf16 权重 2 + 梯度 4,优化器的 12 分摊到 DP);不用时为 18。",
		short(bytesWeight+bytesGradient+bytesOptimizer/float64(dp)), dp)
}

// activeShare tells which part of the experts a token uses.
func activeShare(q *question) string {
	m := topK.FindStringSubmatch(q.low)
	if m == nil || q.cfg.Experts == 0 || !shareAsked.MatchString(q.low) || first(m) > q.cfg.Experts {
		return ""
	}
	k := first(m)
	return q.say("%[1]s (%[2]d of %[3]d experts) of the expert parameters are active for a token; attention and shared parts always are.", "%[1]s(%[3]d 个专家中的 %[2]d 个):每个 token 激活的专家参数比例;注意力和共享部分始终激活。", percent(float64(k)/float64(q.cfg.Experts)), k, q.cfg.Experts)
}

// samplesPerRank divides the global batch among the replicas.
func samplesPerRank(q *question) string {
	c := q.cfg
	if c.GBS == 0 || c.DP == 0 || c.MBS > 0 || c.GBS%c.DP != 0 || !perRank.MatchString(q.low) {
		return ""
	}
	return q.say("%[3]d samples on each data parallel rank per step: global batch %[1]d / DP %[2]d = %[3]d, taken in micro batches.", "每个数据并行 rank 每步 %[3]d 个样本:global batch %[1]d / DP %[2]d = %[3]d,按微批次依次处理。", c.GBS, c.DP, c.GBS/c.DP)
}

// virtualStages counts the model chunks of a whole pipeline.
func virtualStages(q *question) string {
	c := q.cfg
	if c.PP < 2 || c.VPP < 2 || c.Layers > 0 || !stagesAsked.MatchString(q.low) || q.has("bubble", "气泡") {
		return ""
	}
	return q.say("%[3]d virtual stages: PP %[1]d × VPP %[2]d = %[3]d, of which each pipeline rank holds %[2]d.", "共 %[3]d 个虚拟阶段:PP %[1]d × VPP %[2]d = %[3]d,每个流水线 rank 放 %[2]d 个。", c.PP, c.VPP, c.PP*c.VPP)
}

// microTokens counts the tokens of a micro batch.
func microTokens(q *question) string {
	c := q.cfg
	if c.MBS == 0 || c.Seq == 0 || !compiled(`\btokens? (?:per|in (?:a|one|each)|of (?:a|one|each)|a) (?:micro|mbs)|(?:每个?|一个?) ?(?:微批|micro)[^,]{0,12}token`).MatchString(q.low) {
		return ""
	}
	return q.say("%[3]d tokens: micro batch %[1]d × sequence %[2]d.", "%[3]d 个 token:micro batch %[1]d × 序列 %[2]d。", c.MBS, c.Seq, c.MBS*c.Seq)
}

// paramsPerRank divides a model among the ranks of a replica.
func paramsPerRank(q *question) string {
	n, name := q.modelSize()
	c := q.cfg
	split := one(c.TP) * one(c.PP)
	if n == 0 || split == 1 || !compiled(`\b(?:parameters|params) (?:does |are |is )?(?:per|on each|on every|on one|of each|held by each|for each|a) (?:gpu|rank|card)|(?:每|单)(?:张|个|块)? ?(?:卡|gpu|rank).{0,6}参数`).MatchString(q.low) {
		return ""
	}
	return q.say("About %[1]s billion parameters on each GPU: %[2]s / (TP %[3]d × PP %[4]d); stages with the embedding hold more.", "每张卡约 %[1]sB 参数:%[2]s /(TP %[3]d × PP %[4]d);带 embedding 的阶段更多。", short(n/float64(split)/1e9), name, one(c.TP), one(c.PP))
}

// utilization is the share of a GPU's dense bf16 peak that a run reaches.
func utilization(q *question) string {
	m := compiled(`(\d+(?:\.\d+)?) ?(?:tflop|tf/s)`).FindStringSubmatch(q.low)
	if m == nil || !q.has("mfu", "利用率", "utilization") {
		return ""
	}
	g, ok := megatron.LookupGPU(q.cfg.GPU)
	rate, err := strconv.ParseFloat(m[1], 64)
	if !ok || err != nil || rate >= g.TFLOPS {
		return ""
	}
	return q.say("%[1]s MFU: %[2]s TFLOP/s per GPU / dense bf16 peak %[3]s of %[4]s (without sparsity).", "MFU %[1]s:每卡 %[2]s TFLOP/s / %[4]s 的稠密 bf16 峰值 %[3]s(不含稀疏)。",
		percent(rate/g.TFLOPS), short(rate), short(g.TFLOPS), strings.ToUpper(q.cfg.GPU))
}
