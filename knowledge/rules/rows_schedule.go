package rules

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func scheduleRows() []row {
	iters := t("training is counted in iterations here; its learning rate must be too", "此处按迭代计数训练，学习率也必须按迭代计数")
	samples := t("training is counted in samples here; its learning rate must be too", "此处按样本计数训练，学习率也必须按样本计数")
	byIters := t("--train-iters", "")
	bySamples := t("--train-samples", "")
	return topics("learning rate", []row{
		{
			id: "iters-no-train-samples", flags: "--train-samples --train-iters", source: inArgs + "1279", effect: ChangesExperiment,
			when: byIters, must: t("--train-samples must not be given as well", "不能同时给 --train-samples"),
			why: t("a run has one length", "一次训练只有一个长度"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return byIterations(c) && c.TrainSamples.OK },
		},
		{
			id: "iters-no-decay-samples", flags: "--lr-decay-samples --train-iters", source: inArgs + "1281", effect: ChangesExperiment,
			when: byIters, must: t("--lr-decay-samples must not be given", "不能使用 --lr-decay-samples"),
			why: iters, do: t("use --lr-decay-iters", "改用 --lr-decay-iters"),
			broken: func(c *cfg) bool { return byIterations(c) && c.LrDecaySamples.OK },
		},
		{
			id: "iters-no-warmup-samples", flags: "--lr-warmup-samples --train-iters", source: inArgs + "1283", effect: ChangesExperiment,
			when: byIters, must: t("--lr-warmup-samples must not be given", "不能使用 --lr-warmup-samples"),
			why: iters, do: t("use --lr-warmup-iters", "改用 --lr-warmup-iters"),
			broken: func(c *cfg) bool { return byIterations(c) && c.LrWarmupSamples != 0 },
		},
		{
			id: "warmup-fraction-or-iters", flags: "--lr-warmup-iters --lr-warmup-fraction", source: inArgs + "1286", effect: ChangesExperiment,
			when: t("--train-iters with --lr-warmup-fraction", "--train-iters 与 --lr-warmup-fraction"), must: t("--lr-warmup-iters must not be given as well", "不能同时给 --lr-warmup-iters"),
			why: t("both say how long the warm-up is", "两者都在规定预热长度"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return byIterations(c) && c.LrWarmupFraction.OK && c.LrWarmupIters != 0 },
		},
		{
			id: "samples-no-train-iters", flags: "--train-iters --train-samples", source: inArgs + "1293", effect: ChangesExperiment,
			when: bySamples, must: t("--train-iters must not be given as well", "不能同时给 --train-iters"),
			why: t("a run has one length", "一次训练只有一个长度"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return bySampling(c) && c.TrainIters.OK }, after: "iters-no-train-samples",
		},
		{
			id: "samples-no-decay-iters", flags: "--lr-decay-iters --train-samples", source: inArgs + "1295", effect: ChangesExperiment,
			when: bySamples, must: t("--lr-decay-iters must not be given", "不能使用 --lr-decay-iters"),
			why: samples, do: t("use --lr-decay-samples", "改用 --lr-decay-samples"),
			broken: func(c *cfg) bool { return bySampling(c) && c.LrDecayIters.OK },
		},
		{
			id: "samples-no-warmup-iters", flags: "--lr-warmup-iters --train-samples", source: inArgs + "1297", effect: ChangesExperiment,
			when: bySamples, must: t("--lr-warmup-iters must not be given", "不能使用 --lr-warmup-iters"),
			why: samples, do: t("use --lr-warmup-samples", "改用 --lr-warmup-samples"),
			broken: func(c *cfg) bool { return bySampling(c) && c.LrWarmupIters != 0 },
		},
		{
			id: "warmup-fraction-or-samples", flags: "--lr-warmup-samples --lr-warmup-fraction", source: inArgs + "1300", effect: ChangesExperiment,
			when: t("--train-samples with --lr-warmup-fraction", "--train-samples 与 --lr-warmup-fraction"), must: t("--lr-warmup-samples must not be given as well", "不能同时给 --lr-warmup-samples"),
			why: t("both say how long the warm-up is", "两者都在规定预热长度"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return bySampling(c) && c.LrWarmupFraction.OK && c.LrWarmupSamples != 0 },
		},
		{
			id: "min-lr-below-lr", flags: "--min-lr --lr", source: inArgs + "1360", effect: ChangesExperiment,
			when: t("--lr", ""), must: t("--min-lr must not be above --lr", "--min-lr 不能大于 --lr"),
			why: t("the rate decays from --lr down to --min-lr; the assertion has no text", "学习率由 --lr 衰减到 --min-lr；该断言没有文字说明"), do: t("lower --min-lr", "减小 --min-lr"),
			broken: func(c *cfg) bool { return c.Lr.OK && c.MinLr > c.Lr.V },
		},
		{
			id: "constant-weight-decay-no-start", flags: "--start-weight-decay --weight-decay-incr-style", source: inArgs + "1394", effect: ChangesExperiment,
			when: t("--weight-decay-incr-style constant (the default)", "--weight-decay-incr-style constant（默认）"), must: t("--start-weight-decay must not be given", "不能使用 --start-weight-decay"),
			why: t("a constant weight decay does not start anywhere; the assertion has no text", "恒定的权重衰减没有起点；该断言没有文字说明"), do: t("drop it, or choose --weight-decay-incr-style linear or cosine", "去掉它，或选 --weight-decay-incr-style linear / cosine"),
			broken: func(c *cfg) bool { return c.WeightDecayIncrStyle == "constant" && c.StartWeightDecay.OK },
		},
		{
			id: "constant-weight-decay-no-end", flags: "--end-weight-decay --weight-decay-incr-style", source: inArgs + "1395", effect: ChangesExperiment,
			when: t("--weight-decay-incr-style constant (the default)", "--weight-decay-incr-style constant（默认）"), must: t("--end-weight-decay must not be given", "不能使用 --end-weight-decay"),
			why: t("a constant weight decay does not end anywhere; the assertion has no text", "恒定的权重衰减没有终点；该断言没有文字说明"), do: t("drop it, or choose --weight-decay-incr-style linear or cosine", "去掉它，或选 --weight-decay-incr-style linear / cosine"),
			broken: func(c *cfg) bool { return c.WeightDecayIncrStyle == "constant" && c.EndWeightDecay.OK },
		},
		{
			id: "weight-decay-start-given", flags: "--start-weight-decay --weight-decay-incr-style", source: inArgs + "1399", effect: ChangesExperiment,
			when: t("--weight-decay-incr-style linear or cosine", "--weight-decay-incr-style 为 linear 或 cosine"), must: t("--start-weight-decay must be given", "必须给 --start-weight-decay"),
			why: t("the decay moves from start to end; the assertion has no text", "权重衰减由起点变到终点；该断言没有文字说明"), do: t("add --start-weight-decay and --end-weight-decay", "加上 --start-weight-decay 与 --end-weight-decay"),
			broken: func(c *cfg) bool { return c.WeightDecayIncrStyle != "constant" && !c.StartWeightDecay.OK },
		},
		{
			id: "weight-decay-end-given", flags: "--end-weight-decay --weight-decay-incr-style", source: inArgs + "1400", effect: ChangesExperiment,
			when: t("--weight-decay-incr-style linear or cosine", "--weight-decay-incr-style 为 linear 或 cosine"), must: t("--end-weight-decay must be given", "必须给 --end-weight-decay"),
			why: t("the decay moves from start to end; the assertion has no text", "权重衰减由起点变到终点；该断言没有文字说明"), do: t("add --start-weight-decay and --end-weight-decay", "加上 --start-weight-decay 与 --end-weight-decay"),
			broken: func(c *cfg) bool { return c.WeightDecayIncrStyle != "constant" && !c.EndWeightDecay.OK },
		},
		{
			id: "training-length-given", flags: "--train-iters --train-samples", source: "megatron/training/training.py:2586", stage: optimizing, at: 1, effect: ChangesExperiment,
			when: t("training", "训练"), must: t("--train-iters or --train-samples must be given", "必须给 --train-iters 或 --train-samples"),
			why: t("found only when the schedule is made, after every rank is up", "要到所有 rank 都起来、建立学习率计划时才发现"), do: t("add --train-iters", "加上 --train-iters"),
			broken: func(c *cfg) bool { return c.Trains() && c.TrainIters.Or(0) == 0 && c.TrainSamples.Or(0) == 0 },
		},
		{
			id: "lr-given", flags: "--lr", source: inSchedule + "148", effect: ChangesExperiment,
			when: t("training", "训练"), must: t("--lr must be given", "必须给 --lr"),
			why: t("it has no default; the job dies in a TypeError after the process groups and the model are up", "它没有默认值；等通信组和模型都建好之后才以 TypeError 结束"), do: t("add --lr", "加上 --lr"),
			broken: func(c *cfg) bool { return c.Trains() && hasLength(c) && !c.Lr.OK },
		},
		{
			id: "min-lr-not-negative", flags: "--min-lr", source: inSchedule + "150", effect: ChangesExperiment,
			when: t("training", "训练"), must: t("--min-lr must not be negative", "--min-lr 不能为负"),
			why: t("a negative rate would climb the loss", "负学习率会让损失上升"), do: t("give 0 or more", "取 0 或正数"),
			broken: func(c *cfg) bool { return c.Trains() && hasLength(c) && c.MinLr < 0 },
		},
		{
			id: "warmup-init-below-lr", flags: "--lr-warmup-init --lr", source: inSchedule + "152", effect: ChangesExperiment,
			when: t("training", "训练"), must: t("--lr-warmup-init must not be above --lr", "--lr-warmup-init 不能大于 --lr"),
			why: t("the warm-up rises to --lr; the assertion has no text", "预热是升到 --lr；该断言没有文字说明"), do: t("lower --lr-warmup-init", "减小 --lr-warmup-init"),
			broken: func(c *cfg) bool { return c.Trains() && hasLength(c) && c.Lr.OK && c.LrWarmupInit > c.Lr.V },
		},
		{
			id: "decay-positive", flags: "--lr-decay-iters --lr-decay-samples", source: inSchedule + "159", effect: ChangesExperiment,
			when: t("training", "训练"), must: t("the decay must be longer than 0", "衰减长度必须大于 0"),
			why: t("the schedule divides by it", "学习率计划要除以它"), do: t("leave it out: it defaults to the length of training", "去掉它：默认等于训练长度"),
			broken: func(c *cfg) bool { s, ok := lrSpan(c); return ok && s.decay <= 0 },
			after:  "micro-batch-given micro-batch-positive global-batch-positive",
		},
		{
			id: "warmup-shorter-than-decay", flags: "--lr-warmup-iters --lr-warmup-samples --lr-warmup-fraction --lr-decay-iters --train-iters --train-samples", source: inSchedule + "160", effect: ChangesExperiment,
			when: t("training; the decay defaults to the length of training", "训练；衰减长度默认等于训练长度"), must: t("the warm-up must be shorter than the decay", "预热必须短于衰减"),
			why: t("a short smoke run of a long recipe fails here, and the assertion has no text", "把长配方拿来做短测试时常在此失败，且断言没有文字说明"), do: t("shorten the warm-up, or give a longer --lr-decay-iters", "缩短预热，或给更大的 --lr-decay-iters"),
			broken: func(c *cfg) bool { s, ok := lrSpan(c); return ok && s.warmup >= s.decay },
			fix: func(c *cfg) lang.Text {
				if c.TrainIters.OK && c.LrWarmupIters > 0 {
					return t("use --lr-warmup-iters %d, or --lr-decay-iters above %d", "改用 --lr-warmup-iters %d，或让 --lr-decay-iters 大于 %d").With(max(c.TrainIters.V/10, 0), c.LrWarmupIters)
				}
				return lang.Text{}
			}, after: "decay-positive micro-batch-given micro-batch-positive global-batch-positive",
		},
		{
			id: "wsd-needs-decay", flags: "--lr-wsd-decay-iters --lr-wsd-decay-samples --lr-decay-style", source: inSchedule + "164", effect: ChangesExperiment,
			when: t("--lr-decay-style WSD", ""), must: t("--lr-wsd-decay-iters (or --lr-wsd-decay-samples) must be given", "必须给 --lr-wsd-decay-iters（或 --lr-wsd-decay-samples）"),
			why: t("the length of the last phase has no default; the assertion has no text", "最后衰减阶段的长度没有默认值；该断言没有文字说明"), do: t("add --lr-wsd-decay-iters", "加上 --lr-wsd-decay-iters"),
			broken: func(c *cfg) bool { s, ok := lrSpan(c); return ok && c.LrDecayStyle == "WSD" && !s.wsd },
		},
		{
			id: "weight-decay-not-negative", flags: "--start-weight-decay --weight-decay", source: inSchedule + "168", effect: ChangesExperiment,
			when: t("training", "训练"), must: t("the weight decay must not be negative", "权重衰减不能为负"),
			why: t("it would push the weights outwards", "否则权重会不断增大"), do: t("give 0 or more", "取 0 或正数"),
			broken: func(c *cfg) bool { start, _ := weightDecay(c); return c.Trains() && hasLength(c) && start < 0 },
		},
		{
			id: "weight-decay-rises", flags: "--end-weight-decay --start-weight-decay", source: inSchedule + "169", effect: ChangesExperiment,
			when: t("training", "训练"), must: t("--end-weight-decay must not be below --start-weight-decay", "--end-weight-decay 不能小于 --start-weight-decay"),
			why: t("the decay only rises; the assertion has no text", "权重衰减只增不减；该断言没有文字说明"), do: t("raise --end-weight-decay", "增大 --end-weight-decay"),
			broken: func(c *cfg) bool { start, end := weightDecay(c); return c.Trains() && hasLength(c) && end < start },
		},
		{
			id: "scheduler-override-or-checkpoint", flags: "--override-opt_param-scheduler --use-checkpoint-opt_param-scheduler", source: inSchedule + "176", effect: ChangesExperiment,
			when: t("--override-opt_param-scheduler", ""), must: t("--use-checkpoint-opt_param-scheduler must not be given as well", "不能同时给 --use-checkpoint-opt_param-scheduler"),
			why: t("the values come from the command line or from the checkpoint, not from both", "取值要么来自命令行，要么来自检查点"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool {
				return c.Trains() && hasLength(c) && c.OverrideOptParamScheduler && c.UseCheckpointOptParamScheduler
			},
		},
	})
}

func byIterations(c *cfg) bool {
	return c.TrainIters.Or(0) != 0 && (!c.SkipTrain || c.Release < megatron.V017)
}

func bySampling(c *cfg) bool {
	return c.TrainSamples.Or(0) != 0 && (!c.SkipTrain || c.Release < megatron.V017)
}

// hasLength reports whether Megatron makes a learning-rate schedule at all.
func hasLength(c *cfg) bool { return c.TrainIters.Or(0) != 0 || c.TrainSamples.Or(0) != 0 }

// A span is the schedule of the learning rate in samples.
type span struct {
	decay, warmup float64
	wsd           bool
}

// lrSpan follows get_optimizer_param_scheduler (megatron/training/training.py:2553).
func lrSpan(c *cfg) (s span, ok bool) {
	if !c.Trains() || !hasLength(c) {
		return s, false
	}
	if iters := c.TrainIters.Or(0); iters != 0 {
		batch := float64(c.GlobalBatchSize.V)
		s.decay = float64(c.LrDecayIters.Or(iters)) * batch
		s.warmup = float64(c.LrWarmupIters) * batch
		s.wsd = c.LrWsdDecayIters.OK
	} else {
		s.decay = float64(c.LrDecaySamples.Or(c.TrainSamples.V))
		s.warmup = float64(c.LrWarmupSamples)
		s.wsd = c.LrWsdDecaySamples.OK
	}
	if c.LrWarmupFraction.OK {
		s.warmup = c.LrWarmupFraction.V * s.decay
	}
	return s, true
}

// weightDecay returns the first and the last value of the weight decay.
func weightDecay(c *cfg) (start, end float64) {
	if c.WeightDecayIncrStyle == "constant" {
		return c.WeightDecay, c.WeightDecay
	}
	return c.StartWeightDecay.V, c.EndWeightDecay.V
}
