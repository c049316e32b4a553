package rules

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func batchRows() []row {
	gone := func(id, flag, successor, line string, given func(*cfg) bool) row {
		return row{
			id: id, flags: flag, source: inArgs + line,
			when:   t(flag, ""),
			must:   t(flag+" must not be given: use "+successor, "不能使用 "+flag+"，请改用 "+successor),
			why:    t("Megatron still parses the flag, but only to refuse it", "该参数虽能解析，但随后即被拒绝"),
			do:     t("write "+successor, "改写为 "+successor),
			broken: given,
		}
	}
	return topics("batch and schedule", []row{
		gone("batch-size-gone", "--batch-size", "--micro-batch-size", "591", func(c *cfg) bool { return c.BatchSize.OK }),
		gone("warmup-gone", "--warmup", "--lr-warmup-fraction", "594", func(c *cfg) bool { return c.Warmup.OK }),
		gone("model-parallel-size-gone", "--model-parallel-size", "--tensor-model-parallel-size", "597", func(c *cfg) bool { return c.ModelParallelSize.OK }),
		{
			id: "phase-transitions-whole", flags: "--phase-transition-iterations", source: inArgs + "690", effect: ChangesExperiment,
			when:   t("--phase-transition-iterations", ""),
			must:   t("the iterations must be whole numbers with commas between them", "迭代步数必须是用逗号分隔的整数"),
			why:    t("Megatron converts each part to a number", "Megatron 会把每一段转换成整数"),
			do:     t("write 1000,2000", "写成 1000,2000"),
			broken: func(c *cfg) bool { return !wholeNumbers(c.PhaseTransitionIterations) },
		},
		{
			id: "micro-batch-given", flags: "--micro-batch-size", source: inArgs + "693", effect: ChangesExperiment,
			when:   t("always", "任何情况"),
			must:   t("--micro-batch-size must be given", "必须给 --micro-batch-size"),
			why:    t("it has no default; the assertion has no text", "它没有默认值；该断言没有文字说明"),
			do:     t("add --micro-batch-size 1 and raise it as memory allows", "加 --micro-batch-size 1，再按显存增大"),
			broken: func(c *cfg) bool { return !c.MicroBatchSize.OK },
		},
		{
			id: "micro-batch-positive", flags: "--micro-batch-size", source: inArgs + "694", effect: PerformanceOnly,
			when:   t("always", "任何情况"),
			must:   t("--micro-batch-size must be above 0", "--micro-batch-size 必须大于 0"),
			why:    t("a microbatch holds at least one sample; the assertion has no text", "一个微批至少含一个样本；该断言没有文字说明"),
			do:     t("give 1 or more", "取 1 或更大"),
			broken: func(c *cfg) bool { return c.MicroBatchSize.OK && c.MicroBatchSize.V <= 0 },
		},
		{
			id: "step-schedule-no-global-batch", flags: "--step-batch-size-schedule --global-batch-size", source: inArgs + "699", effect: ChangesExperiment,
			when:   t("--step-batch-size-schedule", ""),
			must:   t("--global-batch-size must not be given as well", "不能同时给 --global-batch-size"),
			why:    t("the schedule decides the batch size of every step", "每一步的批大小由计划决定"),
			do:     t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.StepBatchSizeSchedule.OK && c.Asked.GlobalBatchSize.OK },
		},
		{
			id: "global-batch-positive", flags: "--global-batch-size", source: inArgs + "705", effect: ChangesExperiment,
			when:   t("always", "任何情况"),
			must:   t("--global-batch-size must be above 0", "--global-batch-size 必须大于 0"),
			why:    t("a step takes at least one sample", "每步至少一个样本"),
			do:     t("leave it out for one microbatch a step, or give a multiple of micro batch × DP", "去掉即每步一个微批，或取微批 × DP 的倍数"),
			broken: func(c *cfg) bool { return c.Asked.GlobalBatchSize.OK && c.Asked.GlobalBatchSize.V <= 0 },
		},
		{
			id: "eval-batch-divisible", flags: "--global-batch-size --eval-global-batch-size --eval-micro-batch-size --micro-batch-size DP", source: inArgs + "715", effect: ChangesExperiment,
			when: t("always; the evaluation batch is the global batch unless given", "任何情况；评估批大小不给时等于全局批大小"),
			must: t("the evaluation global batch must be a multiple of evaluation micro batch × DP", "评估全局批大小必须是评估微批 × DP 的整数倍"),
			why:  t("each data-parallel rank runs a whole number of microbatches; this check comes first, so an uneven --global-batch-size is reported under the name eval_global_batch_size", "每个数据并行 rank 要跑整数个微批；该检查最先执行，因此不整除的 --global-batch-size 会以 eval_global_batch_size 的名义报出"),
			do:   t("choose a global batch that is a multiple of micro batch × DP", "让全局批大小是微批 × DP 的倍数"),
			broken: func(c *cfg) bool {
				return c.DP > 0 && c.EvalMicroBatchSize.OK && c.EvalGlobalBatchSize.OK && !multiple(c.EvalGlobalBatchSize.V, c.EvalMicroBatchSize.V*c.DP*c.GTP)
			},
			fix: func(c *cfg) lang.Text {
				return fixBatch(c.EvalGlobalBatchSize.V, c.EvalMicroBatchSize.V*c.DP*c.GTP)
			}, after: "micro-batch-positive",
		},
		{
			id: "schedule-no-decrease", flags: "--step-batch-size-schedule --decrease-batch-size-if-needed", source: inBatch + "266",
			when:   t("--step-batch-size-schedule", ""),
			must:   t("--decrease-batch-size-if-needed must not be given as well", "不能同时给 --decrease-batch-size-if-needed"),
			why:    t("a schedule is never rounded", "计划中的批大小不做取整"),
			do:     t("drop --decrease-batch-size-if-needed", "去掉 --decrease-batch-size-if-needed"),
			broken: func(c *cfg) bool { return c.StepBatchSizeSchedule.OK && c.DecreaseBatchSizeIfNeeded },
		},
		{
			id: "global-batch-divisible", flags: "--global-batch-size --micro-batch-size DP", source: inBatch + "381", effect: ChangesExperiment,
			when: t("always", "任何情况"),
			must: t("--global-batch-size must be a multiple of micro batch × DP", "--global-batch-size 必须是微批 × DP 的整数倍"),
			why:  t("each data-parallel rank runs a whole number of microbatches", "每个数据并行 rank 要跑整数个微批"),
			do:   t("choose a multiple of micro batch × DP", "取微批 × DP 的倍数"),
			broken: func(c *cfg) bool {
				return !c.StepBatchSizeSchedule.OK && !rampsUp(c) && !c.DecreaseBatchSizeIfNeeded && c.DP > 0 && c.MicroBatchSize.V > 0 &&
					!multiple(c.GlobalBatchSize.V, c.MicroBatchSize.V*c.DP*c.GTP)
			},
			fix: func(c *cfg) lang.Text { return fixBatch(c.GlobalBatchSize.V, c.MicroBatchSize.V*c.DP*c.GTP) }, after: "eval-batch-divisible",
		},
		{
			id: "at-least-one-microbatch", flags: "--global-batch-size --micro-batch-size DP", source: inBatch + "389", effect: ChangesExperiment,
			when: t("--decrease-batch-size-if-needed", ""),
			must: t("a step must hold at least one microbatch for each rank", "每步每个 rank 至少要有一个微批"),
			why:  t("rounding down may leave nothing", "向下取整后可能一个不剩"),
			do:   t("raise the global batch, or lower the micro batch or DP", "增大全局批，或减小微批、DP"),
			broken: func(c *cfg) bool {
				return !c.StepBatchSizeSchedule.OK && !rampsUp(c) && c.DP > 0 && c.MicroBatchSize.V > 0 && c.GlobalBatchSize.V > 0 && c.Microbatches < 1 &&
					(c.DecreaseBatchSizeIfNeeded || multiple(c.GlobalBatchSize.V, c.MicroBatchSize.V*c.DP*c.GTP))
			},
		},
		{
			id: "schedule-number", flags: "--step-batch-size-schedule", source: inBatch + "499", at: 0, effect: ChangesExperiment,
			when:   t("--step-batch-size-schedule", ""),
			must:   t("thresholds and sizes must be numbers, with K, M, B or T at most", "阈值和批大小必须是数字，最多带 K、M、B、T 后缀"),
			why:    t("a bad number ends in a plain Python error", "写错的数字会直接抛出 Python 错误"),
			do:     t(`write it like "0:256 100B:512"`, `写成 "0:256 100B:512" 的形式`),
			broken: func(c *cfg) bool { return c.Schedule.BadNumber != "" },
		},
		{
			id: "schedule-entry-colon", flags: "--step-batch-size-schedule", source: inBatch + "517", effect: ChangesExperiment,
			when:   t("--step-batch-size-schedule", ""),
			must:   t("each entry must be THRESHOLD:SIZE", "每一项必须是 阈值:批大小"),
			why:    t("the colon separates the two", "两者以冒号分隔"),
			do:     t(`write it like "0:256 100B:512"`, `写成 "0:256 100B:512" 的形式`),
			broken: func(c *cfg) bool { return c.Schedule.NoColon != "" },
		},
		{
			id: "schedule-not-empty", flags: "--step-batch-size-schedule", source: inBatch + "538", effect: ChangesExperiment,
			when: t("--step-batch-size-schedule", ""),
			must: t("the schedule must have an entry", "计划不能为空"),
			why:  t("without one there is no batch size", "否则没有批大小"),
			do:   t(`give at least "0:SIZE"`, `至少给 "0:批大小"`),
			broken: func(c *cfg) bool {
				return c.StepBatchSizeSchedule.OK && len(c.Schedule.Steps) == 0 && c.Schedule.NoColon == "" && c.Schedule.BadNumber == ""
			},
		},
		{
			id: "schedule-starts-at-zero", flags: "--step-batch-size-schedule", source: inBatch + "539", effect: ChangesExperiment,
			when:   t("--step-batch-size-schedule", ""),
			must:   t("the first threshold must be 0", "第一个阈值必须是 0"),
			why:    t("training starts at zero tokens", "训练从 0 token 开始"),
			do:     t("begin the schedule with 0:SIZE", "计划以 0:批大小 开头"),
			broken: func(c *cfg) bool { s := c.Schedule; return readable(c) && s.Steps[0].Threshold != 0 },
		},
		{
			id: "schedule-rises", flags: "--step-batch-size-schedule --seq-length", source: inBatch + "545", effect: ChangesExperiment,
			when: t("--step-batch-size-schedule", ""),
			must: t("the thresholds must still rise strictly after division by the sequence length", "阈值除以序列长度之后仍须严格递增"),
			why:  t("thresholds are tokens and are turned into samples, rounded down", "阈值以 token 计，换算成样本数时向下取整"),
			do:   t("set the thresholds further apart", "把阈值拉开"),
			broken: func(c *cfg) bool {
				for i := 1; i < len(c.Schedule.Steps) && readable(c); i++ {
					if c.Schedule.Steps[i].Threshold <= c.Schedule.Steps[i-1].Threshold {
						return true
					}
				}
				return false
			},
		},
		{
			id: "schedule-sizes-positive", flags: "--step-batch-size-schedule", source: inBatch + "556", effect: ChangesExperiment,
			when: t("--step-batch-size-schedule", ""),
			must: t("every batch size must be above 0", "每个批大小必须大于 0"),
			why:  t("a step takes at least one sample", "每步至少一个样本"),
			do:   t("give positive sizes", "改成正数"),
			broken: func(c *cfg) bool {
				for _, s := range c.Schedule.Steps {
					if s.Size <= 0 {
						return readable(c)
					}
				}
				return false
			},
		},
	})
}

// readable reports whether all entries of the batch schedule could be parsed.
func readable(c *cfg) bool {
	return len(c.Schedule.Steps) > 0 && c.Schedule.NoColon == "" && c.Schedule.BadNumber == ""
}

func fixBatch(batch, step int) lang.Text {
	if step <= 0 {
		return lang.Text{}
	}
	below, above := batch/step*step, (batch/step+1)*step
	if below <= 0 {
		return t("use %d (a multiple of %d)", "改用 %d（%d 的倍数）").With(above, step)
	}
	return t("use %d or %d (multiples of %d)", "改用 %d 或 %d（%d 的倍数）").With(below, above, step)
}

// wholeNumbers reports whether a list with commas has whole numbers only. A list that
// is not given or empty is not read.
func wholeNumbers(list megatron.Opt[string]) bool {
	return list.V == "" || !slices.ContainsFunc(strings.Split(list.V, ","), func(part string) bool {
		return !wholeNumber.MatchString(strings.TrimSpace(part))
	})
}

// wholeNumber matches what Python's int takes.
var wholeNumber = lazy.New(`^[+-]?\d+(?:_\d+)*$`)
