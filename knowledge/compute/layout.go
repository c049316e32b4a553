package compute

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// one is n, or 1 where the question does not say.
func one(n int) int { return max(n, 1) }

// product names the factors of a model replica and their product: "TP 4 × PP 3".
func (c Config) product() (int, string) {
	n, parts := 1, []string{}
	for _, f := range []struct {
		name string
		n    int
	}{{"TP", c.TP}, {"PP", c.PP}, {"CP", c.CP}} {
		if f.n > 0 {
			n *= f.n
			parts = append(parts, fmt.Sprintf("%s %d", f.name, f.n))
		}
	}
	return n, strings.Join(parts, " × ")
}

// divisors of n up to limit.
func divisors(n, limit int) string {
	var list []string
	for d := 1; d <= min(n, limit); d++ {
		if n%d == 0 {
			list = append(list, fmt.Sprint(d))
		}
	}
	return strings.Join(list, ", ")
}

// near are the multiples of m just below and above n.
func near(n, m int) string {
	if n < m {
		return fmt.Sprint(m)
	}
	return fmt.Sprintf("%d, %d", n/m*m, (n/m+1)*m)
}

// usualNode is how many GPUs a node is taken to hold where the question does not say.
const usualNode = 8

// replicasAsked finds that the number of replicas is asked for, not the size of one.
var replicasAsked = lazy.New(`number of (?:model |data[- ]parallel )?(?:replicas|copies)|how many (?:model |data[- ]parallel )?(?:replicas|copies)|(?:几|多少) ?[份个]? ?(?:模型)?副本|副本(?:有|是|一共|总共)? ?(?:几|多少)`)

// layout answers with the data parallel size, or that the layout does not divide.
func layout(q *question) string {
	c := q.cfg
	if c.TP == 0 && c.PP == 0 && c.CP == 0 || q.writes() {
		return ""
	}
	size, factors := c.product()
	if c.World == 0 && c.Nodes > 0 && c.PerNode == 0 && c.DP == 0 && c.GBS == 0 && !q.has("per node", "每节点", "每台") {
		with := *q
		with.cfg.PerNode, with.cfg.World = usualNode, c.Nodes*usualNode
		return layout(&with) + q.say(" (Taking %d GPUs on each node.)", "(按每节点 %d 张 GPU 计算。)", usualNode)
	}
	if c.World == 0 {
		if c.DP > 0 { // how many GPUs are needed
			n := size * c.DP
			t := q.say("WORLD_SIZE = %[1]s × DP %[2]d = %[3]d GPUs", "WORLD_SIZE = %[1]s × DP %[2]d = %[3]d 张 GPU", factors, c.DP, n)
			if c.PerNode > 0 {
				t += q.say(", i.e. %d nodes of %d", ",即 %d 个节点,每节点 %d 张", (n+c.PerNode-1)/c.PerNode, c.PerNode)
			}
			return t + q.say(".", "。")
		}
		if replicasAsked.MatchString(q.low) {
			return ""
		}
		if q.has("how big", "how large", "replica", "how many cards", "副本", "多大", "how many gpu", "minimum", "smallest", "fewest", "least", "at least", "min gpu", "几张", "多少卡", "多少张", "几卡", "至少", "最少", "最小") {
			t := q.say("At least %[1]d GPUs: one model replica takes %[2]s = %[1]d (DP = 1); the total must be a multiple of %[1]d.",
				"至少 %[1]d 张 GPU:一个模型副本占 %[2]s = %[1]d 张(DP = 1);总数必须是 %[1]d 的倍数。", size, factors)
			if g := c.PerNode; g > 0 {
				t += q.say(" That is %d nodes of %d GPUs.", " 即 %d 个节点,每节点 %d 张。", (size+g-1)/g, g)
			}
			return t
		}
		return ""
	}
	if c.World%size != 0 {
		return q.say("Not valid: WORLD_SIZE %[1]d is not divisible by %[2]s = %[3]d (%[1]d %% %[3]d = %[4]d), so DP would not be a whole number and Megatron refuses to start. Use %[5]s GPUs, or change TP/PP/CP so that their product divides %[1]d.",
			"不合法:WORLD_SIZE %[1]d 不能被 %[2]s = %[3]d 整除(%[1]d %% %[3]d = %[4]d,余 %[4]d),DP 不是整数,Megatron 会拒绝启动。改用 %[5]s 张 GPU,或调整 TP/PP/CP(张量/流水线/上下文并行)使乘积整除 %[1]d。",
			c.World, factors, size, c.World%size, near(c.World, size))
	}
	dp := c.World / size
	if c.DP > 0 && c.DP != dp {
		return q.say("That does not fit: %[1]s × DP %[2]d = %[3]d, not %[4]d GPUs. With %[4]d GPUs DP = %[5]d.",
			"对不上:%[1]s × DP %[2]d = %[3]d,不等于 %[4]d 张 GPU。%[4]d 张 GPU 时 DP = %[5]d。", factors, c.DP, size*c.DP, c.World, dp)
	}
	if c.GBS > 0 && c.MBS > 0 {
		return ""
	}
	if c.EP > 1 && c.Experts == 0 {
		if n := c.expertRanks(); c.World%n != 0 {
			return q.say("Not valid: WORLD_SIZE %[1]d is not divisible by ETP %[2]d × EP %[3]d × PP %[4]d = %[5]d (remainder %[6]d), which the experts need, and Megatron refuses to start (ETP is TP where --expert-tensor-parallel-size is not given). TP × PP × CP alone would divide: DP = %[7]d. Use %[8]s GPUs, a smaller EP, or a smaller --expert-tensor-parallel-size.",
				"不合法:WORLD_SIZE %[1]d 不能被 ETP %[2]d × EP %[3]d × PP %[4]d = %[5]d 整除(余 %[6]d),专家并行需要整除,Megatron 会拒绝启动(没给 --expert-tensor-parallel-size 时 ETP 等于 TP)。只看 TP × PP × CP 是能整除的:DP = %[7]d。改用 %[8]s 张 GPU,或减小 EP,或减小 --expert-tensor-parallel-size。",
				c.World, cmp.Or(c.ETP, one(c.TP)), c.EP, one(c.PP), n, c.World%n, dp, near(c.World, n))
		}
	}
	if q.has("not divisible", "不能整除", "无法整除") {
		return "" // it was told otherwise, by what the question does not show
	}
	t := q.say("DP = %[1]d: WORLD_SIZE / (%[2]s) = %[3]d / %[4]d = %[1]d. The layout divides: %[1]d data parallel replicas of %[4]d GPUs each.",
		"DP = %[1]d:WORLD_SIZE / (%[2]s) = %[3]d / %[4]d = %[1]d。可以整除:%[1]d 个数据并行副本,每个占 %[4]d 张 GPU。", dp, factors, c.World, size)
	if c.TP > 8 || c.PerNode > 0 && c.TP > c.PerNode {
		t += q.say(" TP is larger than a node: it will be slow without NVLink between nodes.", " TP 超过单节点卡数,跨节点没有 NVLink 会很慢。")
	}
	if c.Nodes > 0 && c.PerNode > 0 {
		t += q.say(" (%d nodes × %d GPUs = %d.)", "(%d 个节点 × %d 张 = %d。)", c.Nodes, c.PerNode, c.World)
	}
	return t
}

// expertRanks is how many ranks one replica of the experts takes: ETP × EP × PP,
// where ETP is TP unless it is given.
// Source: megatron/core/parallel_state.py, initialize_model_parallel.
func (c *Config) expertRanks() int { return cmp.Or(c.ETP, one(c.TP)) * c.EP * one(c.PP) }

// writes reports whether the question asks for a command or a script and not
// for a number.
func (q *question) writes() bool {
	return q.has("how do i run", "how to run", "how do i write", "command", "cmd", "flags", "script", "example", "怎么写", "怎么跑", "怎么启动", "命令", "脚本", "参数怎么", "示例", "怎么起", "怎么敲", "怎么打", "by hand", "手动", "type") &&
		!q.has("how many", "几个", "多少", "valid", "合法", "dp=?", "dp =", "行不行", "可以吗")
}

// perNodeAsked finds that the GPUs of each node are asked for.
var perNodeAsked = lazy.New(`(?:per|each|every|a) (?:node|machine|box|host|server)\b|每 ?个?(?:节点|台|机)|nproc`)

// nodesFor finds that the number of nodes is asked for without "how many".
var nodesFor = lazy.New(`\b(?:nodes?|machines|boxes|hosts|servers) (?:for|to hold|to get|to reach)\b|\b(?:nodes|machines|boxes|hosts|servers)\s*\?`)

// worldAsked finds that the number of ranks is asked for.
var worldAsked = lazy.New(`world|\branks?\b|process|\bprocs\b|进程|total|in all|altogether|总|一共|\bworkers?\b|nproc|nnodes|how many|number of|count|多少|几 ?张|几个?卡|\b(?:gpus|cards)\s*[?=]|[卡数]\s*[?=]|=\s*\??$`)

// world answers with nodes, GPUs per node and their product.
func world(q *question) string {
	c := q.cfg
	if q.writes() || q.has("slurm-ntasks", "ntasks-per-node", "task 8", "right?", "对吗", "对吧") {
		return ""
	}
	seen, _ := q.after(`\b(?:only|just|visible)\D{0,16}(\d+)`, `(?:只|仅)\D{0,8}(\d+)`, `(\d+)\D{0,8}(?:visible|可见)`)
	switch {
	case seen > 0 && seen < c.PerNode && q.has("nproc", "每节点进程数", "processes per node"):
		return q.say("`--nproc-per-node=%[1]d`: the number of visible GPUs (CUDA_VISIBLE_DEVICES, what the job was given), not the %[2]d in the machine; one worker per visible GPU.",
			"`--nproc-per-node=%[1]d`:填可见(visible)的 GPU 数(CUDA_VISIBLE_DEVICES,即作业分到的),不是机器里的 %[2]d 张;每张可见 GPU 一个 worker。", seen, c.PerNode)
	case c.Nodes > 0 && c.PerNode > 0 && worldAsked.MatchString(q.low):
		return q.say("%[3]d: WORLD_SIZE = nodes × GPUs per node = %[1]d × %[2]d = %[3]d (one rank per GPU; --nnodes=%[1]d --nproc-per-node=%[2]d).",
			"%[3]d:WORLD_SIZE = 节点数 × 每节点 GPU 数 = %[1]d × %[2]d = %[3]d(每张 GPU 一个 rank;--nnodes=%[1]d --nproc-per-node=%[2]d)。", c.Nodes, c.PerNode, c.Nodes*c.PerNode)
	case c.World > 0 && c.PerNode > 0 && c.Nodes == 0 && q.has("node", "节点", "机", "台", "box", "server", "machine", "host") && (nodesFor.MatchString(q.low) || q.has("how many", "number of", "--nodes", "nodes=", "nnodes", "need", "几", "多少", "需要", "要")):
		n := (c.World + c.PerNode - 1) / c.PerNode
		t := q.say("%[1]d nodes: %[2]d / %[3]d GPUs per node = %[1]d (`--nodes=%[1]d`; torchrun: `--nnodes=%[1]d --nproc-per-node=%[3]d`).", "%[1]d 个节点:%[2]d / 每节点 %[3]d 张 GPU = %[1]d(`--nodes=%[1]d`;torchrun:`--nnodes=%[1]d --nproc-per-node=%[3]d`)。", n, c.World, c.PerNode)
		if c.World%c.PerNode != 0 {
			t = q.say("%[1]d nodes: %[2]d is not a multiple of %[3]d, so the last node would have idle GPUs (%[1]d × %[3]d = %[4]d).",
				"%[1]d 个节点:%[2]d 不是 %[3]d 的倍数,最后一个节点会有空闲 GPU(%[1]d × %[3]d = %[4]d)。", n, c.World, c.PerNode, n*c.PerNode)
		}
		return t
	case c.World > 0 && c.Nodes > 0 && c.PerNode == 0 && perNodeAsked.MatchString(q.low):
		if c.World%c.Nodes != 0 {
			return q.say("%d GPUs cannot be spread evenly over %d nodes (remainder %d).", "%d 张 GPU 不能平均分到 %d 个节点(余 %d)。", c.World, c.Nodes, c.World%c.Nodes)
		}
		return q.say("%[3]d GPUs per node: %[1]d / %[2]d nodes = %[3]d (`--gpus-per-node=%[3]d`).", "每节点 %[3]d 张 GPU:%[1]d / %[2]d 个节点 = %[3]d(`--gpus-per-node=%[3]d`)。", c.World, c.Nodes, c.World/c.Nodes)
	}
	return ""
}

// unaccumulated finds that a step is one micro batch.
var unaccumulated = lazy.New(`\b(?:no|without|w/o|zero) (?:any )?(?:gradient |grad )?accum\w*|(?:don't|do not|not) (?:want to )?accumulate|(?:不做|不用|没有|无|不开|不)(?:梯度)?累[积加]`)

// validAsked finds that a question wants a yes or a no.
var validAsked = lazy.New(`\b(?:valid|legal|ok|okay|fine|allowed|accepted|divisible|works?)\b|合法|可以|行吗|行不行|能不能|能否|能跑|整除|对吗`)

// microbatches answers with the gradient accumulation steps, or that the batch
// does not divide.
func microbatches(q *question) string {
	c := q.cfg
	if c.Accum == 0 && (c.MBS == 0 || c.GBS == 0) && unaccumulated.MatchString(q.low) {
		c.Accum = 1
	}
	if c.MBS == 0 && (c.GBS == 0 || c.Accum == 0) || c.GBS == 0 && c.Accum == 0 {
		return ""
	}
	dp, how := c.DP, fmt.Sprintf("DP = %d", c.DP)
	if dp == 0 {
		if part := c.MBS * c.Accum; c.World == 0 && part > 0 && c.GBS > 0 && c.GBS%part == 0 {
			return q.say("DP = %[1]d: global batch %[2]d / (micro batch %[3]d × %[4]d accumulation steps) = %[1]d.", "DP = %[1]d:global batch %[2]d / (micro batch %[3]d × 累积 %[4]d 步) = %[1]d。", c.GBS/part, c.GBS, c.MBS, c.Accum)
		}
		if c.World == 0 {
			return ""
		}
		size, factors := c.product()
		if c.World%size != 0 {
			return ""
		}
		dp = c.World / size
		if factors == "" {
			how = fmt.Sprintf("DP = %d", dp)
		} else {
			how = fmt.Sprintf("DP = %d / (%s) = %d", c.World, factors, dp)
		}
	}
	if c.GBS == 0 {
		return q.say("Global batch %[1]d: micro batch %[2]d × DP %[3]d × %[4]d accumulation steps = %[1]d (`--global-batch-size %[1]d`). %[5]s.",
			"全局批次(global batch)%[1]d:micro batch %[2]d × DP %[3]d × 累积 %[4]d 步 = %[1]d(`--global-batch-size %[1]d`)。%[5]s。", c.MBS*dp*c.Accum, c.MBS, dp, c.Accum, how)
	}
	if c.MBS == 0 {
		if part := dp * c.Accum; c.GBS%part != 0 {
			return q.say("Not possible: global batch %[1]d is not divisible by DP × accumulation steps = %[2]d (remainder %[3]d). %[4]s.", "不行:global batch %[1]d 不能被 DP × 累积步数 = %[2]d 整除(余 %[3]d)。%[4]s。", c.GBS, part, c.GBS%part, how)
		}
		return q.say("Micro batch %[1]d: global batch %[2]d / (DP %[3]d × %[4]d accumulation steps) = %[1]d (`--micro-batch-size %[1]d`). %[5]s.",
			"微批(micro batch)%[1]d:global batch %[2]d / (DP %[3]d × 累积 %[4]d 步) = %[1]d(`--micro-batch-size %[1]d`)。%[5]s。", c.GBS/(dp*c.Accum), c.GBS, dp, c.Accum, how)
	}
	step := c.MBS * dp
	if c.GBS%step != 0 {
		return q.say("Not accepted: global batch %[1]d is not divisible by micro batch × DP = %[2]d × %[3]d = %[4]d (%[1]d %% %[4]d = %[5]d). %[6]s. Use a global batch of %[7]s, or another micro batch.",
			"不行,不会被接受:global batch %[1]d 不能被 micro batch × DP = %[2]d × %[3]d = %[4]d 整除(%[1]d %% %[4]d = %[5]d,余 %[5]d)。%[6]s。把 global batch 改为 %[7]s,或换 micro batch(批次)。",
			c.GBS, c.MBS, dp, step, c.GBS%step, how, near(c.GBS, step))
	}
	valid := ""
	if validAsked.MatchString(q.low) {
		valid = q.say("Valid, divisible: ", "合法,可以整除:")
	}
	t := valid + q.say("%[1]d micro batches (gradient accumulation steps): global batch %[2]d / (micro batch %[3]d × DP %[4]d) = %[1]d. %[5]s.",
		"%[1]d 个微批次(梯度累积步数):global batch %[2]d / (micro batch %[3]d × DP %[4]d) = %[1]d。%[5]s。", c.GBS/step, c.GBS, c.MBS, dp, how)
	if c.PP > 1 {
		t += q.say(" Pipeline bubble about (PP−1)/micro batches = %d/%d.", " 流水线气泡约 (PP−1)/微批次数 = %d/%d。", c.PP-1, c.GBS/step)
	}
	return t
}

// heads answers whether the attention heads divide.
func heads(q *question) string {
	c := q.cfg
	if c.Heads == 0 && c.Groups > 0 && c.TP > 0 {
		if c.Groups%c.TP != 0 && c.TP%c.Groups != 0 {
			return q.say("Not valid: num_query_groups %[1]d is neither a multiple nor a divisor of TP %[2]d (remainder %[3]d).", "不行:num_query_groups %[1]d 既不是 TP %[2]d 的倍数也不是约数(余 %[3]d)。", c.Groups, c.TP, c.Groups%c.TP)
		}
		if c.TP > c.Groups {
			return q.say("Valid, allowed: TP %[2]d is a multiple of the %[1]d query groups (KV heads), so each is kept on %[3]d ranks; one has only to be a multiple or a divisor of the other.", "合法,可以:TP %[2]d 是 %[1]d 个 query group(KV 头)的倍数,每组在 %[3]d 个 rank 上各存一份;二者只要互为倍数或约数即可。", c.Groups, c.TP, c.TP/c.Groups)
		}
		return q.say("Valid: %[1]d %% %[2]d == 0, so the %[1]d query groups (KV heads) are divisible by TP %[2]d: %[3]d on each rank.", "合法,可以:%[1]d %% %[2]d == 0,%[1]d 个 query group(KV 头)能被 TP %[2]d 整除,每个 rank %[3]d 组。", c.Groups, c.TP, c.Groups/c.TP)
	}
	if c.Heads == 0 || c.TP == 0 {
		if c.Heads > 0 && c.TP == 0 && q.has("tp", "tensor", "张量") && q.has("which", "what", "valid", "allowed", "legal", "possible", "choices", "options", "values", "can ", "could ", "哪些", "可以", "几", "能取", "合法", "可选", "可用", "能设") {
			return q.say("TP must divide the %d attention heads: TP can be %s (keep it within a node).", "TP 必须整除 %d 个注意力头:TP 可取 %s(不要超过单节点卡数)。", c.Heads, divisors(c.Heads, 64))
		}
		return ""
	}
	if c.Heads%c.TP != 0 {
		return q.say("Not valid: %[1]d attention heads are not divisible by TP %[2]d (num_attention_heads %% TP: %[1]d %% %[2]d = %[3]d, must be 0), so Megatron stops with an error. TP can be %[4]s.",
			"不行:注意力头数 %[1]d 不能被张量并行度 TP=%[2]d 整除(num_attention_heads %% TP:%[1]d %% %[2]d = %[3]d,必须为 0),Megatron 会报错退出。TP 可取 %[4]s。",
			c.Heads, c.TP, c.Heads%c.TP, divisors(c.Heads, 64))
	}
	t := q.say("Valid: %[1]d %% %[2]d == 0, so %[1]d heads are divisible by TP %[2]d: %[3]d heads on each tensor parallel rank.",
		"合法,可以:%[1]d %% %[2]d == 0,%[1]d 个注意力头能被 TP %[2]d 整除,每个张量并行 rank 上 %[3]d 个头。", c.Heads, c.TP, c.Heads/c.TP)
	if g := c.Groups; g > 0 && g%c.TP != 0 && c.TP%g != 0 {
		t = q.say("Not valid: num_query_groups %[1]d is neither a multiple nor a divisor of TP %[2]d (remainder %[3]d).",
			"不行:num_query_groups %[1]d 既不是 TP %[2]d 的倍数也不是约数(余 %[3]d)。", g, c.TP, g%c.TP)
	}
	return t
}

// wholeSequence finds that what a rank holds is told and the whole is asked for.
var wholeSequence = lazy.New(`(?:each|every|per|a) (?:context[- ]parallel )?(?:rank|gpu)\b.{0,60}(?:total|whole|full|how long)|(?:total|whole|full).{0,40}(?:each|every|per) (?:rank|gpu)\b.{0,24}\d|每(?:个|张)? ?(?:rank|卡|gpu).{0,24}\d.{0,24}(?:总|整条|全长|完整|序列多长)`)

// partAsked finds that the part of a rank is asked for.
var partAsked = lazy.New(`\btokens? (?:per|on each|on every|for each|does each|of each|in each) (?:\w+ )?(?:gpu|rank|card)|每(?:个|张)? ?(?:cp ?)?(?:rank|卡|gpu).{0,8}(?:多少|几) ?个? ?token`)

// contextParallel answers whether the sequence divides by 2 × CP.
func contextParallel(q *question) string {
	c := q.cfg
	if c.Seq > 0 && c.CP == 0 && c.TP > 0 && c.SP {
		if c.Seq%c.TP != 0 {
			return q.say("Not valid: with sequence parallelism seq-length %[1]d is not divisible by TP %[2]d (%[1]d %% %[2]d = %[3]d).", "不行:开序列并行时序列长度 %[1]d 不能被 TP %[2]d 整除(余 %[3]d)。", c.Seq, c.TP, c.Seq%c.TP)
		}
		return q.say("Valid: with sequence parallelism seq-length %[1]d is divisible by TP %[2]d (%[1]d %% %[2]d == 0), %[3]d tokens on each rank.", "合法,可以:开序列并行时序列长度 %[1]d 能被 TP %[2]d 整除(%[1]d %% %[2]d == 0),每个 rank %[3]d 个 token。", c.Seq, c.TP, c.Seq/c.TP)
	}
	if c.Seq == 0 || c.CP == 0 {
		return ""
	}
	if wholeSequence.MatchString(q.low) {
		return q.say("%[1]d tokens: %[2]d on each rank × CP %[3]d = %[1]d (`--seq-length %[1]d`).", "总序列长度 %[1]d:每个 rank %[2]d × CP %[3]d = %[1]d(`--seq-length %[1]d`)。", c.Seq*c.CP, c.Seq, c.CP)
	}
	if c.CP == 1 {
		return q.say("Valid: with CP = 1 the sequence is not split; any length does.", "合法:CP = 1 不切分序列,任何长度都可以。")
	}
	if c.Seq%(2*c.CP) != 0 {
		return q.say("Not valid: seq-length %[1]d is not divisible by 2 × CP = %[2]d (%[1]d %% %[2]d = %[3]d). Use %[4]s, or another CP.",
			"不行:序列长度 %[1]d 不能被 2 × CP = %[2]d 整除(%[1]d %% %[2]d = %[3]d,余 %[3]d)。改用 %[4]s,或换 CP。", c.Seq, 2*c.CP, c.Seq%(2*c.CP), near(c.Seq, 2*c.CP))
	}
	if partAsked.MatchString(q.low) && !validAsked.MatchString(q.low) {
		return q.say("%[1]d tokens on each context parallel rank: seq-length %[2]d / CP %[3]d = %[1]d, in two chunks of %[4]d (divisible by 2 × CP, so valid).",
			"每个上下文并行 rank %[1]d 个 token:序列 %[2]d / CP %[3]d = %[1]d,分两段各 %[4]d(能被 2 × CP 整除,合法)。", c.Seq/c.CP, c.Seq, c.CP, c.Seq/c.CP/2)
	}
	return q.say("Valid: seq-length %[1]d is divisible by 2 × CP = %[2]d (%[1]d %% %[2]d == 0); each context parallel rank holds %[3]d tokens, in two chunks of %[4]d.",
		"合法,可以:序列长度 %[1]d 能被 2 × CP = %[2]d 整除(%[1]d %% %[2]d == 0);每个上下文并行 rank 处理 %[3]d 个 token,分两段各 %[4]d。", c.Seq, 2*c.CP, c.Seq/c.CP, c.Seq/c.CP/2)
}

// vocabularyNamed finds that a vocabulary is spoken of, entries how many it has.
var vocabularyNamed = lazy.New(`\bvocab|词表|词汇表|\btokeni[sz]er|分词器|\bembedding`)

const entries = `\b(\d{4,7}) ?(?:个 ?)?(?:bpe |distinct |unique |real )?(?:tokens?|entries|words|pieces|ids|词|vocab)`

// vocabulary answers with Megatron's padded vocabulary size.
func vocabulary(q *question) string {
	c := q.cfg
	if !q.has("pad", "补齐", "补到", "补成", "填充", "对齐", "rounded", "round up", "divisible-by", "divisible by") {
		return ""
	}
	by := 128
	if n, ok := q.after(`divisible[- ]by\D{0,6}(\d+)`, `(?:multiples? of|倍数) ?(\d+)`, `(\d+) ?的倍数`); ok && n > 0 {
		by = n
	}
	if c.Vocab == 0 && vocabularyNamed.MatchString(q.low) { // the words may stand apart
		c.Vocab, _ = q.after(entries, `\b(\d{5,7})\b`)
	}
	if c.Vocab <= by {
		return ""
	}
	unit := by * one(c.TP)
	padded := (c.Vocab + unit - 1) / unit * unit
	return q.say("%[1]d: the vocabulary of %[2]d is padded to a multiple of --make-vocab-size-divisible-by (%[5]d) × TP %[3]d = %[4]d.", "%[1]d:词表 %[2]d 补齐到 --make-vocab-size-divisible-by(%[5]d)× TP %[3]d = %[4]d 的倍数。", padded, c.Vocab, one(c.TP), unit, by)
}

// experts answers how many experts a rank holds.
func experts(q *question) string {
	c := q.cfg
	if c.World > 0 && c.EP > 0 && q.has("expert data", "expert dp", "edp", "专家数据并行", "专家 dp", "专家的数据并行") {
		etp, n := cmp.Or(c.ETP, one(c.TP)), c.expertRanks()
		if c.World%n != 0 {
			return q.say("Not valid: %[1]d GPUs are not divisible by ETP %[2]d × EP %[3]d × PP %[4]d = %[5]d (remainder %[6]d).", "不行:%[1]d 张 GPU 不能被 ETP %[2]d × EP %[3]d × PP %[4]d = %[5]d 整除(余 %[6]d)。", c.World, etp, c.EP, one(c.PP), n, c.World%n)
		}
		return q.say("Expert data parallel size %[6]d: WORLD_SIZE / (ETP %[2]d × EP %[3]d × PP %[4]d) = %[1]d / %[5]d = %[6]d (ETP is TP where not given; CP takes no part).",
			"专家数据并行度为 %[6]d:WORLD_SIZE / (ETP %[2]d × EP %[3]d × PP %[4]d) = %[1]d / %[5]d = %[6]d(不给 ETP 时等于 TP;CP 不参与)。", c.World, etp, c.EP, one(c.PP), n, c.World/n)
	}
	if c.Experts == 0 || c.EP == 0 {
		return ""
	}
	if c.Experts%c.EP != 0 {
		return q.say("Not valid: %[1]d experts are not divisible by EP %[2]d (%[1]d %% %[2]d = %[3]d). EP can be %[4]s.",
			"不行:专家数 %[1]d 不能被 EP %[2]d 整除(%[1]d %% %[2]d = %[3]d,余 %[3]d)。EP 可取 %[4]s。", c.Experts, c.EP, c.Experts%c.EP, divisors(c.Experts, 256))
	}
	return q.say("%[3]d experts on each expert parallel rank: %[1]d / EP %[2]d = %[3]d (divisible, so valid).",
		"每个专家并行 rank 上 %[3]d 个专家:%[1]d / EP %[2]d = %[3]d(能整除,合法)。", c.Experts, c.EP, c.Experts/c.EP)
}

// stageLayers finds that the layers of one stage are asked for.
var stageLayers = lazy.New(`\b(?:which|what) layers\b.{0,48}\b(?:stage|pp rank|pipeline rank) (\d+)\b|(?:stage|pp rank|第) ?(\d+) ?个?(?:流水线?)?(?:阶段|[段级]|stage|上)?.{0,6}(?:哪些|哪几|什么) ?个?层`)

// layers answers how many layers a pipeline stage holds.
func layers(q *question) string {
	c := q.cfg
	if c.Layers == 0 || c.PP == 0 {
		return ""
	}
	if c.Layers%c.PP != 0 {
		return q.say("Not valid as it is: %[1]d layers are not divisible by PP %[2]d (%[1]d %% %[2]d = %[3]d). PP can be %[4]s, or say the split with --decoder-first-pipeline-num-layers / --decoder-last-pipeline-num-layers.",
			"不行:%[1]d 层不能被 PP %[2]d 整除(%[1]d %% %[2]d = %[3]d,余 %[3]d)。PP 可取 %[4]s,或用 --decoder-first-pipeline-num-layers / --decoder-last-pipeline-num-layers 指定切法。", c.Layers, c.PP, c.Layers%c.PP, divisors(c.Layers, 64))
	}
	per := c.Layers / c.PP
	if c.Chunk > 0 && c.VPP == 0 {
		if per%c.Chunk != 0 {
			return q.say("Not valid: %[1]d layers per pipeline stage (%[2]d / PP %[3]d) are not divisible by %[4]d layers per virtual stage (remainder %[5]d).", "不行:每个流水线阶段 %[1]d 层(%[2]d / PP %[3]d)不能被每个虚拟阶段 %[4]d 层整除(余 %[5]d)。", per, c.Layers, c.PP, c.Chunk, per%c.Chunk)
		}
		return q.say("VPP = %[1]d: %[2]d layers / PP %[3]d = %[4]d per stage, / %[5]d per virtual stage = %[1]d virtual stages.", "VPP = %[1]d:%[2]d 层 / PP %[3]d = 每阶段 %[4]d 层,/ 每个虚拟阶段 %[5]d 层 = %[1]d 个虚拟阶段。", per/c.Chunk, c.Layers, c.PP, per, c.Chunk)
	}
	if m := stageLayers.FindStringSubmatch(q.low); m != nil && c.VPP < 2 {
		if k := first(m[:3]); k < c.PP {
			return q.say("Layers %[1]d to %[2]d, counted from 0: pipeline stage %[3]d of %[4]d holds %[5]d layers (%[6]d / PP %[4]d).", "第 %[1]d 到 %[2]d 层(从 0 数):PP %[4]d 的第 %[3]d 个阶段(从 0 数)放 %[5]d 层(%[6]d / PP %[4]d)。",
				k*per, k*per+per-1, k, c.PP, per, c.Layers)
		}
	}
	t := q.say("%[3]d layers per pipeline stage: %[1]d / PP %[2]d = %[3]d (divisible).", "每个流水线阶段 %[3]d 层:%[1]d / PP %[2]d = %[3]d(能整除)。", c.Layers, c.PP, per)
	if c.VPP > 1 {
		if per%c.VPP != 0 {
			return q.say("Not valid: %d layers per stage are not divisible by %d virtual stages (remainder %d).", "不行:每阶段 %d 层不能被 %d 个虚拟阶段整除(余 %d)。", per, c.VPP, per%c.VPP)
		}
		t += q.say(" With %d virtual stages: %d layers in each.", " %d 个虚拟阶段时每个 %d 层。", c.VPP, per/c.VPP)
	}
	return t
}

// wholeStep finds that the bubble is asked for as a share of all the time, and
// not of the time that computes.
var wholeStep = lazy.New(`\b(?:of|per) (?:the |a |each |every |my |our )*(?:whole |total |entire |full |overall )*(?:step|iteration|run|wall[- ]?clock|training)(?: time)?\b|\b(?:whole|total|entire|overall) (?:step |iteration |run )?time\b|\bidle\b|整个?(?:一?步|step|迭代|iteration)|总(?:时间|耗时|步时)|(?:单步|步|迭代|step|iteration) ?(?:时间|耗时|用时)|空闲|闲着`)

// percent writes a share with at most two decimals.
func percent(n float64) string {
	s := strings.TrimRight(fmt.Sprintf("%.2f", 100*n), "0")
	return strings.TrimSuffix(s, ".") + " %"
}

// bubble answers with the share of the pipeline's bubble.
func bubble(q *question) string {
	c := q.cfg
	if !q.has("bubble", "气泡", "空泡") {
		return ""
	}
	for name, to := range map[string]*int{"p": &c.PP, "v": &c.VPP} { // as papers write it
		if n, ok := q.after(`\b` + name + ` ?= ?(\d+)\b`); ok && *to == 0 {
			*to = n
		}
	}
	if c.PP < 2 {
		return ""
	}
	m := c.Accum
	if n, ok := q.after(`\bm ?=? ?(\d+)\b`); m == 0 && ok {
		m = n
	}
	if dp := c.DP; m == 0 && c.GBS > 0 && c.MBS > 0 {
		if size, _ := c.product(); dp == 0 && c.World%size == 0 {
			dp = c.World / size
		}
		if dp > 0 && c.GBS%(c.MBS*dp) == 0 {
			m = c.GBS / (c.MBS * dp)
		}
	}
	if m == 0 && c.GBS == 0 {
		m = c.MBS // "microbatch 56 个"
	}
	if m == 0 {
		return ""
	}
	v := one(c.VPP)
	chunks := fmt.Sprint(m)
	if v > 1 {
		chunks = fmt.Sprintf("(%d × %d)", m, v)
	}
	lost, work := c.PP-1, m*v
	ideal, whole := percent(float64(lost)/float64(work)), percent(float64(lost)/float64(work+lost))
	if wholeStep.MatchString(q.low) && !q.has("ideal", "理想") {
		return q.say("%[1]s of the whole step: bubble / (work + bubble) = %[3]d/(%[4]d + %[3]d), with work = micro batches × VPP = %[5]s. Relative to the ideal compute time it is (PP − 1) / (micro batches × VPP) = %[3]d/%[4]d = %[2]s.",
			"占整步时间的 %[1]s:气泡 /(计算 + 气泡)= %[3]d/(%[4]d + %[3]d),计算 = 微批次数 × VPP = %[5]s。相对理想计算时间为 (PP − 1) / (微批次数 × VPP) = %[3]d/%[4]d = %[2]s。",
			whole, ideal, lost, work, chunks)
	}
	return q.say("%[1]s: the bubble is (PP − 1) / (micro batches × VPP) = %[3]d / %[5]s = %[3]d/%[4]d of the ideal compute time (%[2]s of the whole step).",
		"%[1]s:流水线气泡 = (PP − 1) / (微批次数 × VPP) = %[3]d / %[5]s = %[3]d/%[4]d,相对理想计算时间(占整步的 %[2]s)。",
		ideal, whole, lost, work, chunks)
}

// rankPlace answers on which node and in which groups a rank is.
func rankPlace(q *question) string {
	for _, a := range []func(*question) string{globalRank, ranksOfNode} {
		if t := a(q); t != "" {
			return t
		}
	}
	r, ok := q.after(`\brank\s*(?:=|is|number|号|为)?\s*(\d+)(?:[^\d/]|$)`, `全局 ?rank ?(?:为|是|=)? ?(\d+)`, `第? ?(\d+) ?号 ?rank`)
	c := q.cfg
	if c.PerNode == 0 && q.has("8-gpu", "dgx") {
		c.PerNode = 8
	}
	if !ok || c.PerNode == 0 || !placeAsked.MatchString(perNodeWord.ReplaceAllString(q.low, " ")) {
		return ""
	}
	return q.say("Global rank %[1]d is on node %[3]d (counted from 0, so the %[5]s node), local rank (GPU) %[4]d: %[1]d / %[2]d = %[3]d remainder %[4]d.",
		"全局 rank %[1]d 在节点 %[3]d(从 0 数,即第 %[6]d 个节点),local rank(GPU)为 %[4]d:%[1]d / %[2]d = %[3]d 余 %[4]d。",
		r, c.PerNode, r/c.PerNode, r%c.PerNode, ordinal(r/c.PerNode+1), r/c.PerNode+1)
}

var (
	// perNodeWord takes out the words that tell how many GPUs a node has.
	perNodeWord = lazy.New(`(?:per|each|every|a)[- ](?:node|machine|host|box|server)|(?:每|一|单)(?:个|台)?(?:节点|机器?)|\d ?卡机器?`)
	// placeAsked finds that the place of a rank is asked for.
	placeAsked = lazy.New(`\bnodes?\b|节点|\blocal|\bhost|\bwhere\b|\bwhich\b|\bwhat (?:machine|box|server)|\b(?:sits|lives|belongs|located|runs on)\b|哪|几号|第几`)
)

// nodeIndex captures a node's number, counted from 0.
const nodeIndex = `(?:slurm-nodeid|node[- ]?rank|node id|node|节点)\s*(?:=|is|号|为|:|number|index)?\s*(\d+)\b`

var (
	ranksAsked = lazy.New(`which (?:global )?ranks|what (?:global )?ranks|ranks? range|range of ranks|list (?:the )?(?:global )?ranks|\branks? (?:are |is |do |does |that |which )?(?:hosted|placed|located|running|run|live|lives|sit|sits) (?:by|on|at|in)|\branks (?:on|of) (?:the )?(?:\w+ )?(?:node|machine|host|box|server)\b|(?:哪些|哪几个|什么) ?(?:全局 ?)?rank|rank ?(?:范围|有哪些|是哪些|从几到几)`)
	lastNode   = lazy.New(`\blast (?:node|machine|host|box|server)|最后一?(?:个|台)`)
	nodeNth    = lazy.New(`\b(?:(first|second|third|fourth|fifth|sixth|seventh|eighth)|(\d+)(?:st|nd|rd|th)) node\b|第 ?(\d+) ?(?:个|台) ?(?:节点|机器?|node)`)
	nth        = map[string]int{"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8}
)

// ranksOfNode answers which ranks a node runs.
func ranksOfNode(q *question) string {
	g := q.cfg.PerNode
	if g == 0 || !ranksAsked.MatchString(q.low) {
		return ""
	}
	n := -1
	if m := nodeNth.FindStringSubmatch(q.low); m != nil {
		n = nth[m[1]] - 1
		if n < 0 {
			n = first(m[1:]) - 1
		}
		if q.has("from 0", "from zero", "zero-based", "0-based", "从 0", "从0", "从零") {
			n++
		}
	} else if w := q.cfg.World; w >= g && lastNode.MatchString(q.low) {
		n = w/g - 1
	} else if k, ok := q.after(nodeIndex); ok {
		n = k
	}
	if n < 0 {
		return ""
	}
	return q.say("Global ranks %[1]d to %[2]d: node rank %[3]d (counted from 0) × %[4]d GPUs per node = %[1]d is its first.", "全局 rank %[1]d 到 %[2]d:节点序号 %[3]d(从 0 数)× 每节点 %[4]d 卡 = %[1]d 是该节点的第一个。", n*g, n*g+g-1, n, g)
}

// globalRank answers with the global rank of a local one.
func globalRank(q *question) string {
	node, okN := q.after(`第 ?(\d+) ?个? ?(?:节点|node)`, `(?:slurm-nodeid|node[- ]?rank|node id|node number|节点 ?rank|节点序号)\s*(?:=|is|号|为|:|number)?\s*(\d+)`, `(?:node|(?:^|[^每])节点)\s*(?:=|is|号|为|:|number)?\s*(\d+)`)
	local, okL := q.after(`(?:local(?:[- ]?rank)?|slurm-localid)\s*(?:=|is|为|:)?\s*(\d+)`, `(?:本地|本机|节点内) ?(?:的|第)? ?(?:rank|序号)? ?(\d+)`, `(?:local|本地) (?:gpu|card) (?:number )?(\d+)`, `\b(?:gpu|card) (?:number |no\.? ?|#)?(\d+) (?:on|of|in) (?:the )?(?:node|machine|host|box)`, `第 ?(\d+) ?(?:张|块|号) ?(?:卡|gpu)`)
	c := q.cfg
	if c.PerNode == 0 && c.World <= largestNode {
		c.PerNode = c.World // "node 4, local rank 6, 8 GPUs"
	}
	if !okN || !okL || c.PerNode == 0 {
		return ""
	}
	return q.say("%[4]d: global rank = node rank × GPUs per node + local rank = %[1]d × %[3]d + %[2]d = %[4]d.", "%[4]d:全局 rank = 节点序号 × 每节点卡数 + local rank = %[1]d × %[3]d + %[2]d = %[4]d。", node, local, c.PerNode, node*c.PerNode+local)
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}
