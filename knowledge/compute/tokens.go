package compute

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// amount finds how many tokens or samples there are in all, parameters a model's size.
var (
	amount     = lazy.New(`(\d+(?:\.\d+)?)\s*(k|m|b|bn|t|thousand|million|billion|trillion|千|万亿|百万|十亿|万|亿)?\s*(?:个|条)?\s*(?:training\s*|训练\s*)?(tokens?|samples?|sequences|样本)`)
	stepsGiven = lazy.New(`(\d+(?:\.\d+)?)\s*(k|m|thousand|million|万|千)?\s*(?:个\s*)?(?:training\s*)?(?:steps|iterations|iters|步|次迭代|个迭代)`)
	parameters = lazy.New(`(?:^|[^\w.])(\d+(?:\.\d+)?)\s*(b|bn|billion|m|million|亿|十亿|百亿|千亿|万亿|t|trillion)(?:[ -]*(?:dense\s*)?(?:params?\b|parameters?\b|model\b|weights?\b|llm\b|gpt\b|参数|模型|权重|的)|\b)`)
	// weightsAsked finds that the size of weights in a number format is asked for.
	weightsAsked = lazy.New(`\bweights?\b.{0,40}\b(?:bf16|fp16|fp8|fp32|int8)\b|\b(?:bf16|fp16|fp8|fp32|int8)\b.{0,16}\bweights\b|权重.{0,16}(?:bf16|fp16|fp8|fp32|多大)|(?:bf16|fp16|fp8|fp32).{0,8}权重`)
	// sizeTold finds that a T counts parameters, not bytes.
	sizeTold = lazy.New(`param|model|weights|参数|模型|权重`)
	perStep  = lazy.New(`(?:per|each|every|a|one|in a|in one) (?:optimizer |training |global )?(?:step|iteration|iter|update|batch|global batch)|(?:每|一|每个|每一|单) ?(?:步|个? ?step|次迭代|个? ?迭代|iteration|次更新|个 ?batch|批)`)
	howMany  = lazy.New(`how many|number of|how long|train-iters|多少|几步|步数|几个?|what|iterations\?|steps\?`)
)

// multiples are the words behind a number.
var multiples = map[string]float64{
	"k": 1e3, "thousand": 1e3, "千": 1e3, "万": 1e4, "m": 1e6, "million": 1e6, "百万": 1e6, "亿": 1e8,
	"b": 1e9, "bn": 1e9, "billion": 1e9, "十亿": 1e9, "百亿": 1e10, "千亿": 1e11, "t": 1e12, "trillion": 1e12, "万亿": 1e12,
}

// counted is a number with its multiple.
func counted(digits, multiple string) float64 {
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	if f, ok := multiples[multiple]; ok {
		n *= f
	}
	return n
}

// whole writes a count without a fraction.
func whole(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }

// tokens answers how many tokens a step takes, and how many steps so many
// tokens or samples are.
func tokens(q *question) string {
	c := q.cfg
	if !q.has("token", "sample", "样本", "sequences") || q.has("per rank", "each rank", "每个 rank", "每卡", "per second", "每秒") {
		return ""
	}
	total, unit := 0.0, ""
	for _, m := range amount.FindAllStringSubmatch(q.low, -1) {
		if n := counted(m[1], m[2]); n > total {
			total, unit = n, m[3]
		}
	}
	bySample := unit != "" && !strings.HasPrefix(unit, "token")
	step := float64(c.GBS) * float64(c.Seq)
	switch {
	case bySample && c.GBS > 0 && total > float64(c.GBS) && howMany.MatchString(q.low) && q.has("step", "iter", "步", "迭代"):
		return q.say("%[1]s iterations: %[2]s samples / global batch %[3]d = %[4]s (`--train-iters %[1]s`, or `--train-samples %[2]s`).",
			"%[1]s 步:%[2]s 个样本 / global batch %[3]d = %[4]s(`--train-iters %[1]s`,或 `--train-samples %[2]s`)。", whole(up(total/float64(c.GBS))), whole(total), c.GBS, short(total/float64(c.GBS)))
	case step > 0 && total > step && q.has("step", "iter", "步", "迭代"):
		return q.say("%[1]s iterations: %[2]s tokens / (global batch %[3]d × sequence %[4]d = %[5]s tokens a step) = %[6]s (`--train-iters %[1]s`).",
			"%[1]s 步:%[2]s 个 token /(global batch %[3]d × 序列 %[4]d = 每步 %[5]s 个 token)= %[6]s(`--train-iters %[1]s`)。", whole(up(total/step)), whole(total), c.GBS, c.Seq, whole(step), short(total/step))
	case step > 0 && stepsGiven.MatchString(q.low) && q.has("token"):
		m := stepsGiven.FindStringSubmatch(q.low)
		n := counted(m[1], m[2])
		return q.say("%[1]s tokens: %[2]s steps × global batch %[3]d × sequence %[4]d.", "%[1]s 个 token:%[2]s 步 × global batch %[3]d × 序列 %[4]d。", whole(n*step), whole(n), c.GBS, c.Seq)
	case step > 0 && perStep.MatchString(q.low):
		return q.say("%[1]s tokens per step: global batch %[2]d × sequence length %[3]d = %[1]s.", "每步 %[1]s 个 token:global batch %[2]d × 序列长度 %[3]d = %[1]s。", whole(step), c.GBS, c.Seq)
	case c.GBS == 0 && c.Seq > 0 && total > float64(2*c.Seq) && !bySample && q.has("batch", "gbs", "批"):
		return q.batchOfTokens(total, c.Seq)
	}
	return ""
}

// batchOfTokens is the global batch that holds so many tokens; where "4M" does
// not divide it is taken as 4 × 1024 × 1024.
func (q *question) batchOfTokens(total float64, seq int) string {
	if int(total)%seq != 0 {
		for _, by := range [][2]float64{{1e6, 1 << 20}, {1e3, 1 << 10}} {
			if n := total / by[0] * by[1]; total >= by[0] && int(n)%seq == 0 {
				total = n
				break
			}
		}
	}
	n := total / float64(seq)
	return q.say("Global batch %[1]s: %[2]s tokens / sequence length %[3]d = %[1]s samples (`--global-batch-size`, then a multiple of micro batch × DP).",
		"global batch %[1]s:%[2]s 个 token / 序列长度 %[3]d = %[1]s 个样本(`--global-batch-size`,并取 micro batch × DP 的倍数)。", short(n), whole(total), seq)
}

func up(n float64) float64 {
	if n != float64(int(n)) {
		return float64(int(n) + 1)
	}
	return n
}

// short writes a number with at most two decimals.
func short(n float64) string {
	s := fmt.Sprintf("%.2f", n)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Bytes that a parameter takes: with Adam and bf16 the weight, the fp32
// gradient, and the optimizer's fp32 copy and two moments.
const (
	bytesWeight    = 2
	bytesGradient  = 4
	bytesOptimizer = 12
)

var (
	// unsharded finds that the optimizer is not spread over the replicas.
	unsharded = lazy.New(`\b(?:without|no|not using|w/o|instead of|un)[- ]?(?:the |a |any )?(?:use of )?(?:distributed[- ]optimi[sz]er|dist[- ]opt|zero|shard)|(?:不用|不开|没开|没有?|未开?|关掉?|无|不带|不使用|不做) ?(?:启用|使用)?(?:分布式优化器|distributed|dist|zero|分片|切分)`)
	// shortGradient finds gradients that are kept in bf16.
	shortGradient = lazy.New(`\bbf16 (?:main )?grad|\bgrad(?:ient)?s? (?:are |kept |also |too )*in bf16|bf16 ?的? ?梯度|梯度(?:也|都)?(?:用|是|为|存)? ?bf16|grad-reduce-in-bf16`)
)

// memory answers how much memory a model's weights, or all its states, take.
func memory(q *question) string {
	m := parameters.FindStringSubmatch(q.low)
	if m == nil || m[2] == "t" && !sizeTold.MatchString(q.low) || !weightsAsked.MatchString(q.low) && !compiled(`\bgb\b`).MatchString(q.low) && !q.has("memory", "vram", "显存", "内存", "gigabyte", "gib", "fit", "装得下", "放得下", "占多", "多大") || len([]rune(q.low)) > 180 || trouble.MatchString(q.low) && !wanting.MatchString(q.low) {
		return ""
	}
	if q.has("throughput", "tflops", "吞吐", "activation", "激活", "checkpoint", "检查点", "why", "为什么", "oom") {
		return ""
	}
	n := counted(m[1], m[2])
	if n < 1e6 {
		return ""
	}
	c, name := q.cfg, strings.ToUpper(m[1]+m[2])
	gb := func(b float64) string {
		return short(b/1e9) + " GB (" + short(b/(1<<30)) + " GiB)"
	}
	states := q.has("optimizer", "adam", "gradient", "state", "train", "优化器", "梯度", "状态", "训练")
	if !states && q.has("weight", "权重", "param", "参数") {
		each, kind := float64(bytesWeight), "bf16"
		switch {
		case q.has("fp32", "float32", "全精度", "单精度"):
			each, kind = 4, "fp32"
		case q.has("fp8", "int8"):
			each, kind = 1, "8 bit"
		}
		size, how := c.product()
		t := q.say("%[1]s: %[2]s parameters × %[3]s bytes (%[4]s) for the weights alone.", "%[1]s:%[2]s 个参数 × %[3]s 字节(%[4]s),仅权重。", gb(n*each), name, short(each), kind)
		if size > 1 {
			t += q.say(" On each GPU, divided by %[1]s: %[2]s.", " 每张 GPU 再除以 %[1]s:%[2]s。", how, gb(n*each/float64(one(c.TP)*one(c.PP))))
		}
		return t + q.say(" Training with Adam takes about 18 bytes a parameter.", " 用 Adam 训练约需每参数 18 字节。")
	}
	split := float64(one(c.TP) * one(c.PP))
	dp := c.DP
	if size, _ := c.product(); dp == 0 && c.World > 0 && c.World%size == 0 {
		dp = c.World / size
	}
	sharded := q.has("distributed optimizer", "distributed-optimizer", "dist opt", "dist-opt", "zero-1", "zero 1", "分布式优化器", "shard", "分片") && !unsharded.MatchString(q.low)
	kept := bytesWeight + bytesGradient // by every rank, whatever is sharded
	if shortGradient.MatchString(q.low) {
		kept = bytesWeight + bytesWeight
	}
	each := float64(kept + bytesOptimizer)
	how := q.say("%[1]s bytes a parameter (2 bf16 weight + %[2]d gradient + 12 optimizer)", "每参数 %[1]s 字节(bf16 权重 2 + 梯度 %[2]d + 优化器 12)", short(each), kept-bytesWeight)
	if sharded && dp > 0 {
		each = float64(kept) + bytesOptimizer/float64(dp)
		how = q.say("%[1]s bytes a parameter (%[3]d + 12 / DP %[2]d, distributed optimizer)", "每参数 %[1]s 字节(%[3]d + 12 / DP %[2]d,分布式优化器)", short(each), dp, kept)
	}
	t := q.say("About %[1]s on each GPU: %[2]s parameters × %[3]s", "每张 GPU 约 %[1]s:%[2]s 个参数 × %[3]s", gb(n*each/split), name, how)
	if split > 1 {
		t += q.say(" / (TP %d × PP %d)", " /(TP %d × PP %d)", one(c.TP), one(c.PP))
	}
	return t + q.say(". Activations come on top; `megatron-ops plan` estimates both, and the distributed optimizer makes it 6 + 12 / DP bytes.", "。激活另算;`megatron-ops plan` 会一并估算,用分布式优化器时为 6 + 12 / DP 字节。")
}

// headSize answers whether the heads divide the hidden size.
func headSize(q *question) string {
	c := q.cfg
	if c.Hidden == 0 || c.Heads == 0 || c.TP > 0 {
		return ""
	}
	if c.Hidden%c.Heads != 0 {
		return q.say("Not valid without --kv-channels: hidden size %[1]d is not divisible by %[2]d attention heads (%[1]d %% %[2]d = %[3]d). Give --kv-channels, or another number of heads.",
			"不写 --kv-channels 时不合法:hidden size %[1]d 不能被 %[2]d 个注意力头整除(%[1]d %% %[2]d = %[3]d,余 %[3]d)。请给出 --kv-channels,或换头数。", c.Hidden, c.Heads, c.Hidden%c.Heads)
	}
	return q.say("Valid, %[3]d per head: hidden size %[1]d / %[2]d heads = %[3]d (%[1]d %% %[2]d == 0), which is --kv-channels unless given.",
		"合法,可以,每头 %[3]d:hidden size %[1]d / %[2]d 个头 = %[3]d(%[1]d %% %[2]d == 0,能整除),即不写 --kv-channels 时的取值。", c.Hidden, c.Heads, c.Hidden/c.Heads)
}
