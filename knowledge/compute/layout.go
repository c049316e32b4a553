package compute

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// orOne returns n, or 1 where the question does not give it.
func orOne(n int) int { return max(n, 1) }

// product returns the number of GPUs of a model replica and its factors as text, such as
// "TP 4 × PP 3".
func (c config) product() (int, string) {
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

func divisors(n, limit int) string {
	var list []string
	for d := 1; d <= min(n, limit); d++ {
		if n%d == 0 {
			list = append(list, fmt.Sprint(d))
		}
	}
	return strings.Join(list, ", ")
}

// multiplesAround lists the multiples of m just below and above n.
func multiplesAround(n, m int) string {
	if n < m {
		return fmt.Sprint(m)
	}
	return fmt.Sprintf("%d, %d", n/m*m, (n/m+1)*m)
}

// defaultPerNode is the assumed number of GPUs of a node where the question gives none.
const defaultPerNode = 8

// replicasAsked matches questions for the number of replicas, not for the size of one.
var replicasAsked = lazy.New(`number of (?:model |data[- ]parallel )?(?:replicas|copies)|how many (?:model |data[- ]parallel )?(?:replicas` +
	`|copies)|(?:几|多少) ?[份个]? ?(?:模型)?副本|副本(?:有|是|一共|总共)? ?(?:几|多少)`)

// layout answers with the data-parallel size or the number of GPUs, or that the layout
// does not divide.
func layout(q *question) string {
	c := q.cfg
	if c.TP+c.PP+c.CP+c.EP+c.ETP == 0 || q.asksForCommand() || c.TP+c.PP+c.CP == 0 && c.World+c.Nodes > 0 {
		return ""
	}
	if _, ok := multiply(orOne(c.TP), orOne(c.PP), orOne(c.CP), orOne(c.DP)); !ok {
		return q.beyond()
	}
	size, factors := c.product()
	if c.World == 0 && c.Nodes > 0 && c.PerNode == 0 && c.DP == 0 && c.GBS == 0 && !q.has("per node", "每节点", "每台") {
		with := *q
		with.cfg.PerNode, with.cfg.World = defaultPerNode, c.Nodes*defaultPerNode
		t := layout(&with)
		q.refused = with.invalid
		return t + q.say(" (Taking %d GPUs on each node.)", "(按每节点 %d 张 GPU 计算。)", defaultPerNode)
	}
	if c.World == 0 {
		if c.DP > 0 { // the question asks for the number of GPUs
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
			return q.fewest(size, factors)
		}
		return ""
	}
	if c.World%size != 0 {
		return q.sayInvalid("Not valid: WORLD_SIZE %[1]d is not divisible by %[2]s = %[3]d (%[1]d %% %[3]d = %[4]d), so DP would not be a whole number "+
			"and Megatron refuses to start. Use %[5]s GPUs, or change TP/PP/CP so that their product divides %[1]d.",
			"不合法:WORLD_SIZE %[1]d 不能被 %[2]s = %[3]d 整除(%[1]d %% %[3]d = %[4]d,余 %[4]d),DP 不是整数,Megatron 会拒绝启动。改用 %[5]s 张 GPU,或调整 TP/PP/CP(张量/流水线/上下文并行)使乘积整除 %[1]d。",
			c.World, factors, size, c.World%size, c.worldsAround(size))
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
			return q.sayInvalid("Not valid: WORLD_SIZE %[1]d is not divisible by ETP %[2]d × EP %[3]d × PP %[4]d = %[5]d (remainder %[6]d), which the "+
				"experts need, and Megatron refuses to start (ETP is TP where --expert-tensor-parallel-size is not given). TP × PP × CP alone would "+
				"divide: DP = %[7]d. Use %[8]s GPUs, a smaller EP, or a smaller --expert-tensor-parallel-size.",
				"不合法:WORLD_SIZE %[1]d 不能被 ETP %[2]d × EP %[3]d × PP %[4]d = %[5]d 整除(余 %[6]d),专家并行需要整除,Megatron 会拒绝启动(没给 --expert-tensor-parallel-size 时 ETP 等于 TP)。只看 TP × PP × CP 是能整除的:DP = %[7]d。改用 %[8]s 张 GPU,或减小 EP,或减小 --expert-tensor-parallel-size。",
				c.World, cmp.Or(c.ETP, orOne(c.TP)), c.EP, orOne(c.PP), n, c.World%n, dp, c.worldsAround(n))
		}
	}
	if q.has("not divisible", "不能整除", "无法整除") {
		return "" // Megatron said otherwise, because of something that the question omits
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

// worldsAround lists the numbers of GPUs below and above the given one that all parallel sizes
// divide. It is multiplesAround of size where they have no such number.
func (c *config) worldsAround(size int) string {
	if least, ok := c.leastWorld(); ok {
		size = least
	}
	return multiplesAround(c.World, size)
}

// beyond answers where the product of the sizes is larger than any cluster.
func (q *question) beyond() string {
	return q.sayInvalid("Not valid: the product of these sizes is beyond any cluster.", "不合法:这些并行度的乘积超过任何集群。")
}

// fewest answers with the least number of GPUs of a layout.
func (q *question) fewest(size int, factors string) string {
	c := q.cfg
	least, ok := c.leastWorld()
	if !ok {
		return q.beyond()
	}
	t := q.say("At least %[1]d GPUs: one model replica takes %[2]s = %[1]d (DP = 1); the total must be a multiple of %[1]d.",
		"至少 %[1]d 张 GPU:一个模型副本占 %[2]s = %[1]d 张(DP = 1);总数必须是 %[1]d 的倍数。", least, factors)
	if c.EP > 0 || c.ETP > 0 {
		etp := cmp.Or(c.ETP, orOne(c.TP))
		t = q.say("At least %[1]d GPUs: the total must be a multiple both of TP × PP × CP = %[2]d and of ETP %[3]d × EP %[4]d × PP %[5]d = %[6]d, which the "+
			"experts need (ETP is TP where not given), so of their least common multiple %[1]d.",
			"至少 %[1]d 张 GPU:总数必须同时是 TP × PP × CP = %[2]d 和专家所需的 ETP %[3]d × EP %[4]d × PP %[5]d = %[6]d 的倍数(不给 ETP 时等于 TP),即最小公倍数 %[1]d 的倍数。",
			least, size, etp, orOne(c.EP), orOne(c.PP), etp*orOne(c.EP)*orOne(c.PP))
	}
	if g := c.PerNode; g > 0 {
		t += q.say(" That is %d nodes of %d GPUs.", " 即 %d 个节点,每节点 %d 张。", (least+g-1)/g, g)
	}
	return t
}

// expertRanks returns the number of ranks of one replica of the experts: ETP × EP × PP,
// where ETP defaults to TP.
// Source: megatron/core/parallel_state.py, initialize_model_parallel.
func (c *config) expertRanks() int { return cmp.Or(c.ETP, orOne(c.TP)) * c.EP * orOne(c.PP) }

// asksForCommand reports whether the question asks for a command or a script, not for a
// number.
func (q *question) asksForCommand() bool {
	return q.has("how do i run", "how to run", "how do i write", "command", "cmd", "flags", "script", "example", "怎么写", "怎么跑", "怎么启动", "命令", "脚本", "参数怎么", "示例", "怎么起", "怎么敲", "怎么打", "by hand", "手动", "type") &&
		!q.has("how many", "几个", "多少", "valid", "合法", "dp=?", "dp =", "行不行", "可以吗")
}

// perNodeAsked matches questions for the GPUs of each node.
var perNodeAsked = lazy.New(`(?:per|each|every|a) (?:node|machine|box|host|server)\b|每 ?个?(?:节点|台|机)|nproc`)

// nodesFor matches questions for the number of nodes without "how many".
var nodesFor = lazy.New(`\b(?:nodes?|machines|boxes|hosts|servers) (?:for|to hold|to get|to reach)\b|\b(?:nodes|machines|boxes|hosts|servers)\s*\?`)

// worldAsked matches questions for the number of ranks.
var worldAsked = lazy.New(`world|\branks?\b|process|\bprocs\b|进程|total|in all|altogether|总|一共|\bworkers?\b|nproc|nnodes|how many` +
	`|number of|count|多少|几 ?张|几个?卡|\b(?:gpus|cards)\s*[?=]|[卡数]\s*[?=]|=\s*\??$`)

// tasksAsked matches questions for the number of tasks that srun starts.
var tasksAsked = lazy.New(`how many (?:\w+ )?(?:tasks|process(?:es)?|procs|ranks|workers)|(?:[几\d]|多少) ?个(?:进程|任务|task)`)

// tasks answers with the number of tasks that srun starts on all nodes.
func tasks(q *question) string {
	each, ok := q.capture(`ntasks-per-node[= ]+(\d+)`)
	n := q.cfg.Nodes
	if !ok || n == 0 || q.asksForCommand() || !tasksAsked.MatchString(q.low) {
		return ""
	}
	return q.say("%[3]d tasks: --nodes %[1]d × --ntasks-per-node %[2]d = %[3]d, and the GPUs of --gres or --gpus-per-node are each node's too. "+
		"With torchrun in each task it is --ntasks-per-node=1: torchrun itself starts one process per GPU.",
		"%[3]d 个任务:--nodes %[1]d × --ntasks-per-node %[2]d = %[3]d,--gres、--gpus-per-node 的 GPU 数也是每个节点的。"+
			"如果每个任务里再用 torchrun,则应为 --ntasks-per-node=1:由 torchrun 为每张 GPU 起一个进程。", n, each, n*each)
}

// world answers with the number of nodes, of GPUs per node, or of all GPUs.
func world(q *question) string {
	c := q.cfg
	if q.asksForCommand() || q.has("slurm-ntasks", "ntasks-per-node", "task 8", "right?", "对吗", "对吧") {
		return ""
	}
	visible, _ := q.capture(`\b(?:only|just|visible)\D{0,16}(\d+)`, `(?:只|仅)\D{0,8}(\d+)`, `(\d+)\D{0,8}(?:visible|可见)`)
	switch {
	case visible > 0 && visible < c.PerNode && q.has("nproc", "每节点进程数", "processes per node"):
		return q.say("`--nproc-per-node=%[1]d`: the number of visible GPUs (CUDA_VISIBLE_DEVICES, what the job was given), not the %[2]d in the "+
			"machine; one worker per visible GPU.",
			"`--nproc-per-node=%[1]d`:填可见(visible)的 GPU 数(CUDA_VISIBLE_DEVICES,即作业分到的),不是机器里的 %[2]d 张;每张可见 GPU 一个 worker。", visible, c.PerNode)
	case c.Nodes > 0 && c.PerNode > 0 && worldAsked.MatchString(q.low):
		return q.say("%[3]d: WORLD_SIZE = nodes × GPUs per node = %[1]d × %[2]d = %[3]d (one rank per GPU; --nnodes=%[1]d --nproc-per-node=%[2]d).",
			"%[3]d:WORLD_SIZE = 节点数 × 每节点 GPU 数 = %[1]d × %[2]d = %[3]d(每张 GPU 一个 rank;--nnodes=%[1]d --nproc-per-node=%[2]d)。", c.Nodes, c.PerNode, c.Nodes*c.PerNode)
	case c.World > 0 && c.PerNode > 0 && c.Nodes == 0 && q.has("node", "节点", "机", "台", "box", "server", "machine", "host") &&
		(nodesFor.MatchString(q.low) || q.has("how many", "number of", "--nodes", "nodes=", "nnodes", "need", "几", "多少", "需要", "要")):
		n := (c.World + c.PerNode - 1) / c.PerNode
		t := q.say("%[1]d nodes: %[2]d / %[3]d GPUs per node = %[1]d (`--nodes=%[1]d`; torchrun: `--nnodes=%[1]d --nproc-per-node=%[3]d`).",
			"%[1]d 个节点:%[2]d / 每节点 %[3]d 张 GPU = %[1]d(`--nodes=%[1]d`;torchrun:`--nnodes=%[1]d --nproc-per-node=%[3]d`)。", n, c.World, c.PerNode)
		if c.World%c.PerNode != 0 {
			t = q.say("%[1]d nodes: %[2]d is not a multiple of %[3]d, so the last node would have idle GPUs (%[1]d × %[3]d = %[4]d).",
				"%[1]d 个节点:%[2]d 不是 %[3]d 的倍数,最后一个节点会有空闲 GPU(%[1]d × %[3]d = %[4]d)。", n, c.World, c.PerNode, n*c.PerNode)
		}
		return t
	case c.World > 0 && c.Nodes > 0 && c.PerNode == 0 && perNodeAsked.MatchString(q.low):
		if c.World%c.Nodes != 0 {
			return q.say("%d GPUs cannot be spread evenly over %d nodes (remainder %d).", "%d 张 GPU 不能平均分到 %d 个节点(余 %d)。", c.World, c.Nodes, c.World%c.Nodes)
		}
		return q.say("%[3]d GPUs per node: %[1]d / %[2]d nodes = %[3]d (`--gpus-per-node=%[3]d`).",
			"每节点 %[3]d 张 GPU:%[1]d / %[2]d 个节点 = %[3]d(`--gpus-per-node=%[3]d`)。", c.World, c.Nodes, c.World/c.Nodes)
	}
	return ""
}

// unaccumulated matches that a step has one micro batch.
var unaccumulated = lazy.New(`\b(?:no|without|w/o|zero) (?:any )?(?:gradient |grad )?accum\w*|(?:don't|do not|not) (?:want to )?accumulate` +
	`|(?:不做|不用|没有|无|不开|不)(?:梯度)?累[积加]`)

// validAsked matches questions that expect a yes or a no.
var validAsked = lazy.New(`\b(?:valid|legal|ok|okay|fine|allowed|accepted|divisible|works?)\b|合法|可以|行吗|行不行|能不能|能否|能跑|整除|对吗`)

// microbatches answers with the gradient accumulation steps, with the missing size of a
// batch, or that the batch does not divide.
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
			return q.say("DP = %[1]d: global batch %[2]d / (micro batch %[3]d × %[4]d accumulation steps) = %[1]d.",
				"DP = %[1]d:global batch %[2]d / (micro batch %[3]d × 累积 %[4]d 步) = %[1]d。", c.GBS/part, c.GBS, c.MBS, c.Accum)
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
			q.refused = true
			return q.say("Not possible: global batch %[1]d is not divisible by DP × accumulation steps = %[2]d (remainder %[3]d). %[4]s.",
				"不行:global batch %[1]d 不能被 DP × 累积步数 = %[2]d 整除(余 %[3]d)。%[4]s。", c.GBS, part, c.GBS%part, how)
		}
		return q.say("Micro batch %[1]d: global batch %[2]d / (DP %[3]d × %[4]d accumulation steps) = %[1]d (`--micro-batch-size %[1]d`). %[5]s.",
			"微批(micro batch)%[1]d:global batch %[2]d / (DP %[3]d × 累积 %[4]d 步) = %[1]d(`--micro-batch-size %[1]d`)。%[5]s。", c.GBS/(dp*c.Accum), c.GBS, dp, c.Accum, how)
	}
	step := c.MBS * dp
	if c.GBS%step != 0 {
		q.refused = true
		return q.say("Not accepted: global batch %[1]d is not divisible by micro batch × DP = %[2]d × %[3]d = %[4]d (%[1]d %% %[4]d = %[5]d). "+
			"%[6]s. Use a global batch of %[7]s, or another micro batch.",
			"不行,不会被接受:global batch %[1]d 不能被 micro batch × DP = %[2]d × %[3]d = %[4]d 整除(%[1]d %% %[4]d = %[5]d,余 %[5]d)。%[6]s。把 global batch 改为 %[7]s,或换 micro batch(批次)。",
			c.GBS, c.MBS, dp, step, c.GBS%step, how, multiplesAround(c.GBS, step))
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
