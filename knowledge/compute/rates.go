package compute

import (
	"slices"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// What was measured of a run, and what follows from it: how long so many tokens
// take at so many a second, which rate a step of so many seconds comes to.

var (
	tflopsGiven = lazy.New(`(\d+(?:\.\d+)?) ?(?:tflop|tf/s|tf\b)`)
	mfuGiven    = lazy.New(`(\d+(?:\.\d+)?) ?(?:%|percent) ?(?:的 ?)?(?:mfu|model flops|利用率|算力利用率)|(?:mfu|利用率) ?(?:of|is|at|=|:|为|是|按|取|约|有|达到|到)? ?(?:about |约)?(\d+(?:\.\d+)?) ?(?:%|percent)`)
	mfuAsked    = lazy.New(`\bmfu\b|利用率|\butili[sz]ation\b`)
	rateAsked   = lazy.New(`\btflop|\bmfu\b|利用率`)
	// tokenRate finds how many tokens a second there are, ofEachGPU that it is one GPU's.
	tokenRate = lazy.New(`(\d+(?:\.\d+)?) ?(k|m|thousand|million|万|百万|亿)? ?(?:个 ?)?tok(?:en)?s? ?(?:/|per|a|each|every|每|一) ?(?:s\b|sec\w*|秒)|(?:每|一)秒(?:钟)?(?:能|可以|可)?(?:处理|训练?|跑|吞吐?|出|过)?(?:约|大约|大概)? ?(\d+(?:\.\d+)?) ?(k|m|万|百万|亿)? ?(?:个 ?)?tok|吞吐(?:量|率)? ?(?:是|为|有|约|=|:)? ?(\d+(?:\.\d+)?) ?(k|m|万|百万|亿)? ?(?:个 ?)?tok\w* ?(?:/|每) ?(?:s\b|秒)`)
	ofEachGPU = lazy.New(`(?:/|per|every|each|a|one) ?(?:gpu|card)\b|\b(?:gpus?|cards?|[abh]\d00s?)\b.{0,24}\beach\b|(?:s|sec\w*) each\b|(?:每|单|一)(?:张|块|个)?(?:卡|gpu)`)
	// timeAsked finds that a time is asked for.
	timeAsked = lazy.New(`\bhow long\b|\bhow (?:many|much) (?:days|hours|time|minutes|weeks)\b|\bin (?:days|hours|weeks)\b|\b(?:days|weeks|hours|duration|wall[- ]?(?:clock|time)|training time|run ?time)\b|多久|多长时间|(?:多少|几) ?个?(?:天|小时|周|星期)|(?:天|小时)数|总?(?:时长|耗时)`)
)

// tflops is the rate of one GPU that a question gives: as such, or as a share of
// the GPU's peak.
func (q *question) tflops() float64 {
	if m := tflopsGiven.FindStringSubmatch(q.low); m != nil {
		n, _ := strconv.ParseFloat(m[1], 64)
		return n
	}
	m := mfuGiven.FindStringSubmatch(q.low)
	g, ok := megatron.LookupGPU(q.cfg.GPU)
	if m == nil || !ok {
		return 0
	}
	n, _ := strconv.ParseFloat(m[1]+m[2], 64)
	return n / 100 * g.TFLOPS
}

// measured reports whether a question gives what its answer is worked out of.
func (q *question) measured(section string) bool {
	if !slices.Contains([]string{"Length of a run", "GPU hours", "Model size"}, section) {
		return false
	}
	l := q.runLength()
	return l.step > 0 || q.tflops() > 0 || tokenRate.MatchString(q.low) || section == "GPU hours" && l.longest > 0
}

// atRate tells how long so many tokens take at so many a second.
func atRate(q *question, l length) string {
	at := tokenRate.FindStringSubmatchIndex(q.low)
	if at == nil {
		return ""
	}
	rate := counted(pairs(tokenRate.FindStringSubmatch(q.low)))
	rest := *q
	rest.low = blank(q.low, at[0], at[1])
	l = rest.runLength()
	total := max(l.tokens, l.dataset)
	if rate == 0 || total <= rate {
		return ""
	}
	each := q.say("%s tokens/s", "每秒 %s 个", whole(rate))
	if l.gpus > 1 && ofEachGPU.MatchString(q.low) {
		each = q.say("(%[1]s tokens/s × %[2]s GPUs)", "(每卡每秒 %[1]s 个 × %[2]s 张卡)", whole(rate), whole(l.gpus))
		rate *= l.gpus
	}
	sec := total / rate
	return q.say("%[1]s days (%[2]s hours): %[3]s tokens / %[4]s, at that rate all the time; restarts and evaluation come on top.", "%[1]s 天(%[2]s 小时):%[3]s 个 token / %[4]s,按一直保持该速度计,重启和评估另计。",
		short(sec/86400), hours(sec), scientific(total), each)
}

// achieved is the rate of each GPU that follows from the time of a step.
func achieved(q *question) string {
	n, name := q.modelSize()
	l := q.runLength()
	if n == 0 || l.step == 0 || l.gbs == 0 || l.seq == 0 || l.gpus == 0 || !rateAsked.MatchString(q.low) || q.tflops() > 0 {
		return ""
	}
	rate := flopsPerToken * n * l.gbs * l.seq / l.step / l.gpus / 1e12
	t := q.say("About %[1]s TFLOP/s per GPU: 6 × %[2]s parameters × (global batch %[3]s × sequence %[4]s) tokens / %[5]s s / %[6]s GPUs, without the attention scores.", "每卡约 %[1]s TFLOP/s:6 × %[2]s 参数 ×(global batch %[3]s × 序列 %[4]s)个 token / %[5]s 秒 / %[6]s 张卡,未计注意力分数。",
		short(rate), name, whole(l.gbs), whole(l.seq), short(l.step), whole(l.gpus))
	if g, ok := megatron.LookupGPU(q.cfg.GPU); ok && rate < g.TFLOPS && mfuAsked.MatchString(q.low) {
		t = q.say("About %[1]s MFU. ", "MFU 约 %[1]s。", percent(rate/g.TFLOPS)) + t
	}
	return t
}
