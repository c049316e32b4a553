package compute

import (
	"cmp"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// heads answers whether TP divides the attention heads and fits the query groups.
func heads(q *question) string {
	c := q.cfg
	badGroups := func() string {
		return q.sayInvalid("Not valid: num_query_groups %[1]d is neither a multiple nor a divisor of TP %[2]d (remainder %[3]d).",
			"不行:num_query_groups %[1]d 既不是 TP %[2]d 的倍数也不是约数(余 %[3]d)。", c.Groups, c.TP, c.Groups%c.TP)
	}
	groupsFit := c.Groups == 0 || c.TP == 0 || c.Groups%c.TP == 0 || c.TP%c.Groups == 0
	if c.Heads == 0 && c.Groups > 0 && c.TP > 0 {
		if !groupsFit {
			return badGroups()
		}
		if c.TP > c.Groups {
			return q.say("Valid, allowed: TP %[2]d is a multiple of the %[1]d query groups (KV heads), so %[3]d ranks keep a copy of each; one of the "+
				"two must be a multiple of the other.",
				"合法,可以:TP %[2]d 是 %[1]d 个 query group(KV 头)的倍数,每组在 %[3]d 个 rank 上各存一份;二者只要互为倍数或约数即可。", c.Groups, c.TP, c.TP/c.Groups)
		}
		return q.say("Valid: %[1]d %% %[2]d == 0, so the %[1]d query groups (KV heads) are divisible by TP %[2]d: %[3]d on each rank.",
			"合法,可以:%[1]d %% %[2]d == 0,%[1]d 个 query group(KV 头)能被 TP %[2]d 整除,每个 rank %[3]d 组。", c.Groups, c.TP, c.Groups/c.TP)
	}
	if c.Heads == 0 || c.TP == 0 {
		if c.Heads > 0 && c.TP == 0 && q.has("tp", "tensor", "张量") && q.has("which", "what", "valid", "allowed", "legal", "possible", "choices",
			"options", "values", "can ", "could ", "哪些", "可以", "几", "能取", "合法", "可选", "可用", "能设") {
			return q.say("TP must divide the %d attention heads: TP can be %s (keep it within a node).",
				"TP 必须整除 %d 个注意力头:TP 可取 %s(不要超过单节点卡数)。", c.Heads, divisors(c.Heads, 64))
		}
		return ""
	}
	if c.Heads%c.TP != 0 {
		return q.sayInvalid("Not valid: %[1]d attention heads are not divisible by TP %[2]d (num_attention_heads %% TP: %[1]d %% %[2]d = %[3]d, must be "+
			"0), so Megatron stops with an error. TP can be %[4]s.",
			"不行:注意力头数 %[1]d 不能被张量并行度 TP=%[2]d 整除(num_attention_heads %% TP:%[1]d %% %[2]d = %[3]d,必须为 0),Megatron 会报错退出。TP 可取 %[4]s。",
			c.Heads, c.TP, c.Heads%c.TP, divisors(c.Heads, 64))
	}
	if !groupsFit {
		return badGroups()
	}
	return q.say("Valid: %[1]d %% %[2]d == 0, so %[1]d heads are divisible by TP %[2]d: %[3]d heads on each tensor parallel rank.",
		"合法,可以:%[1]d %% %[2]d == 0,%[1]d 个注意力头能被 TP %[2]d 整除,每个张量并行 rank 上 %[3]d 个头。", c.Heads, c.TP, c.Heads/c.TP)
}

// wholeSequence matches questions for the whole sequence, given a rank's part.
var wholeSequence = lazy.New(`(?:each|every|per|a) (?:context[- ]parallel )?(?:rank|gpu)\b.{0,60}(?:total|whole|full|how long)|(?:total` +
	`|whole|full).{0,40}(?:each|every|per) (?:rank|gpu)\b.{0,24}\d|每(?:个|张)? ?(?:rank|卡|gpu).{0,24}\d.{0,24}(?:总|整条` +
	`|全长|完整|序列多长)`)

// partAsked matches questions for a rank's part of the sequence.
var partAsked = lazy.New(`\btokens? (?:per|on each|on every|for each|does each|of each|in each) (?:\w+ )?(?:gpu|rank|card)|每(?:个` +
	`|张)? ?(?:cp ?)?(?:rank|卡|gpu).{0,8}(?:多少|几) ?个? ?token`)

// contextParallel answers whether the sequence is divisible by 2 × CP.
func contextParallel(q *question) string {
	c := q.cfg
	if c.Seq > 0 && c.CP == 0 && c.TP > 0 && c.SP {
		if c.Seq%c.TP != 0 {
			return q.sayInvalid("Not valid: with sequence parallelism seq-length %[1]d is not divisible by TP %[2]d (%[1]d %% %[2]d = %[3]d).",
				"不行:开序列并行时序列长度 %[1]d 不能被 TP %[2]d 整除(余 %[3]d)。", c.Seq, c.TP, c.Seq%c.TP)
		}
		return q.say("Valid: with sequence parallelism seq-length %[1]d is divisible by TP %[2]d (%[1]d %% %[2]d == 0), %[3]d tokens on each rank.",
			"合法,可以:开序列并行时序列长度 %[1]d 能被 TP %[2]d 整除(%[1]d %% %[2]d == 0),每个 rank %[3]d 个 token。", c.Seq, c.TP, c.Seq/c.TP)
	}
	if c.Seq == 0 || c.CP == 0 {
		return ""
	}
	if wholeSequence.MatchString(q.low) {
		return q.say("%[1]d tokens: %[2]d on each rank × CP %[3]d = %[1]d (`--seq-length %[1]d`).",
			"总序列长度 %[1]d:每个 rank %[2]d × CP %[3]d = %[1]d(`--seq-length %[1]d`)。", c.Seq*c.CP, c.Seq, c.CP)
	}
	if c.CP == 1 {
		return q.say("Valid: with CP = 1 the sequence is not split; any length is valid.", "合法:CP = 1 不切分序列,任何长度都可以。")
	}
	if c.Seq%(2*c.CP) != 0 {
		return q.sayInvalid("Not valid: seq-length %[1]d is not divisible by 2 × CP = %[2]d (%[1]d %% %[2]d = %[3]d). Use %[4]s, or another CP.",
			"不行:序列长度 %[1]d 不能被 2 × CP = %[2]d 整除(%[1]d %% %[2]d = %[3]d,余 %[3]d)。改用 %[4]s,或换 CP。", c.Seq, 2*c.CP, c.Seq%(2*c.CP), multiplesAround(c.Seq, 2*c.CP))
	}
	if partAsked.MatchString(q.low) && !validAsked.MatchString(q.low) {
		return q.say("%[1]d tokens on each context parallel rank: seq-length %[2]d / CP %[3]d = %[1]d, in two chunks of %[4]d (divisible by 2 × "+
			"CP, so valid).",
			"每个上下文并行 rank %[1]d 个 token:序列 %[2]d / CP %[3]d = %[1]d,分两段各 %[4]d(能被 2 × CP 整除,合法)。", c.Seq/c.CP, c.Seq, c.CP, c.Seq/c.CP/2)
	}
	return q.say("Valid: seq-length %[1]d is divisible by 2 × CP = %[2]d (%[1]d %% %[2]d == 0); each context parallel rank holds %[3]d tokens, "+
		"in two chunks of %[4]d.",
		"合法,可以:序列长度 %[1]d 能被 2 × CP = %[2]d 整除(%[1]d %% %[2]d == 0);每个上下文并行 rank 处理 %[3]d 个 token,分两段各 %[4]d。", c.Seq, 2*c.CP, c.Seq/c.CP, c.Seq/c.CP/2)
}

// vocabularyNamed matches words for a vocabulary, entries its number of entries.
var vocabularyNamed = lazy.New(`\bvocab|词表|词汇表|\btokeni[sz]er|分词器|\bembedding`)

const entries = `\b(\d{4,7}) ?(?:个 ?)?(?:bpe |distinct |unique |real )?(?:tokens?|entries|words|pieces|ids|词|vocab)`

// vocabulary answers with Megatron's padded vocabulary size.
func vocabulary(q *question) string {
	c := q.cfg
	if !q.has("pad", "补齐", "补到", "补成", "填充", "对齐", "rounded", "round up", "divisible-by", "divisible by") {
		return ""
	}
	by := 128
	if n, ok := q.capture(`divisible[- ]by\D{0,6}(\d+)`, `(?:multiples? of|倍数) ?(\d+)`, `(\d+) ?的倍数`); ok && n > 0 {
		by = n
	}
	if c.Vocab == 0 && vocabularyNamed.MatchString(q.low) { // word and number may be apart
		c.Vocab, _ = q.capture(entries, `\b(\d{5,7})\b`)
	}
	if c.Vocab <= by {
		return ""
	}
	unit := by * orOne(c.TP)
	padded := (c.Vocab + unit - 1) / unit * unit
	return q.say("%[1]d: the vocabulary of %[2]d is padded to a multiple of --make-vocab-size-divisible-by (%[5]d) × TP %[3]d = %[4]d.",
		"%[1]d:词表 %[2]d 补齐到 --make-vocab-size-divisible-by(%[5]d)× TP %[3]d = %[4]d 的倍数。", padded, c.Vocab, orOne(c.TP), unit, by)
}

// experts answers how many experts a rank has, or with the expert data-parallel size.
func experts(q *question) string {
	c := q.cfg
	if c.World > 0 && c.EP > 0 && q.has("expert data", "expert dp", "edp", "专家数据并行", "专家 dp", "专家的数据并行") {
		etp, n := cmp.Or(c.ETP, orOne(c.TP)), c.expertRanks()
		if c.World%n != 0 {
			return q.sayInvalid("Not valid: %[1]d GPUs are not divisible by ETP %[2]d × EP %[3]d × PP %[4]d = %[5]d (remainder %[6]d).",
				"不行:%[1]d 张 GPU 不能被 ETP %[2]d × EP %[3]d × PP %[4]d = %[5]d 整除(余 %[6]d)。", c.World, etp, c.EP, orOne(c.PP), n, c.World%n)
		}
		return q.say("Expert data parallel size %[6]d: WORLD_SIZE / (ETP %[2]d × EP %[3]d × PP %[4]d) = %[1]d / %[5]d = %[6]d (ETP is TP where "+
			"not given; CP does not count).",
			"专家数据并行度为 %[6]d:WORLD_SIZE / (ETP %[2]d × EP %[3]d × PP %[4]d) = %[1]d / %[5]d = %[6]d(不给 ETP 时等于 TP;CP 不参与)。", c.World, etp, c.EP,
			orOne(c.PP), n, c.World/n)
	}
	if c.Experts == 0 || c.EP == 0 {
		return ""
	}
	if c.Experts%c.EP != 0 {
		return q.sayInvalid("Not valid: %[1]d experts are not divisible by EP %[2]d (%[1]d %% %[2]d = %[3]d). EP can be %[4]s.",
			"不行:专家数 %[1]d 不能被 EP %[2]d 整除(%[1]d %% %[2]d = %[3]d,余 %[3]d)。EP 可取 %[4]s。", c.Experts, c.EP, c.Experts%c.EP, divisors(c.Experts, 256))
	}
	return q.say("%[3]d experts on each expert parallel rank: %[1]d / EP %[2]d = %[3]d (divisible, so valid).",
		"每个专家并行 rank 上 %[3]d 个专家:%[1]d / EP %[2]d = %[3]d(能整除,合法)。", c.Experts, c.EP, c.Experts/c.EP)
}

var stageLayers = lazy.New(`\b(?:which|what) layers\b.{0,48}\b(?:stage|pp rank|pipeline rank) (\d+)\b|(?:stage|pp rank` +
	`|第) ?(\d+) ?个?(?:流水线?)?(?:阶段|[段级]|stage|上)?.{0,6}(?:哪些|哪几|什么) ?个?层`)

// unevenSplit matches flags that split the layers otherwise than evenly: the rules judge those.
var unevenSplit = lazy.New(`--(?:decoder-(?:first|last)-pipeline-num-layers|account-for-(?:embedding|loss)-in-pipeline-split|pipeline-model-parallel-layout|hybrid-layer-pattern)`)

// layers answers how many layers a pipeline stage has, or which.
func layers(q *question) string {
	c := q.cfg
	if c.Layers == 0 || c.PP == 0 || unevenSplit.MatchString(q.low) {
		return ""
	}
	if c.Layers%c.PP != 0 {
		return q.sayInvalid("Not valid as it is: %[1]d layers are not divisible by PP %[2]d (%[1]d %% %[2]d = %[3]d). PP can be %[4]s, or give the split "+
			"with --decoder-first-pipeline-num-layers / --decoder-last-pipeline-num-layers.",
			"不行:%[1]d 层不能被 PP %[2]d 整除(%[1]d %% %[2]d = %[3]d,余 %[3]d)。PP 可取 %[4]s,或用 --decoder-first-pipeline-num-layers / "+
				"--decoder-last-pipeline-num-layers 指定切法。", c.Layers, c.PP, c.Layers%c.PP, divisors(c.Layers, 64))
	}
	per := c.Layers / c.PP
	if c.Chunk > 0 && c.VPP == 0 {
		if per%c.Chunk != 0 {
			return q.sayInvalid("Not valid: %[1]d layers per pipeline stage (%[2]d / PP %[3]d) are not divisible by %[4]d layers per virtual stage "+
				"(remainder %[5]d).",
				"不行:每个流水线阶段 %[1]d 层(%[2]d / PP %[3]d)不能被每个虚拟阶段 %[4]d 层整除(余 %[5]d)。", per, c.Layers, c.PP, c.Chunk, per%c.Chunk)
		}
		return q.say("VPP = %[1]d: %[2]d layers / PP %[3]d = %[4]d per stage, / %[5]d per virtual stage = %[1]d virtual stages.",
			"VPP = %[1]d:%[2]d 层 / PP %[3]d = 每阶段 %[4]d 层,/ 每个虚拟阶段 %[5]d 层 = %[1]d 个虚拟阶段。", per/c.Chunk, c.Layers, c.PP, per, c.Chunk)
	}
	if m := stageLayers.FindStringSubmatch(q.low); m != nil && c.VPP < 2 {
		if k := firstCount(m[:3]); k < c.PP {
			return q.say("Layers %[1]d to %[2]d, counted from 0: pipeline stage %[3]d of %[4]d holds %[5]d layers (%[6]d / PP %[4]d).",
				"第 %[1]d 到 %[2]d 层(从 0 数):PP %[4]d 的第 %[3]d 个阶段(从 0 数)放 %[5]d 层(%[6]d / PP %[4]d)。",
				k*per, k*per+per-1, k, c.PP, per, c.Layers)
		}
	}
	t := q.say("%[3]d layers per pipeline stage: %[1]d / PP %[2]d = %[3]d (divisible).", "每个流水线阶段 %[3]d 层:%[1]d / PP %[2]d = %[3]d(能整除)。", c.Layers, c.PP, per)
	if c.VPP > 1 {
		if per%c.VPP != 0 {
			return q.sayInvalid("Not valid: %d layers per stage are not divisible by %d virtual stages (remainder %d).",
				"不行:每阶段 %d 层不能被 %d 个虚拟阶段整除(余 %d)。", per, c.VPP, per%c.VPP)
		}
		t += q.say(" With %d virtual stages: %d layers in each.", " %d 个虚拟阶段时每个 %d 层。", c.VPP, per/c.VPP)
	}
	return t
}
