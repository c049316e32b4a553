package rules

import "github.com/megatron-ops/megatron-ops/knowledge/megatron"

func dataRows() []row {
	return topics("data", []row{
		{
			// Seen on a GPU: every rank of 0.19.0 ended in get_train_valid_test_num_samples.
			id: "eval-interval-given", flags: "--eval-interval --train-iters --train-samples", source: "megatron/training/training.py:5436", severity: Warning,
			when: t("training, without --full-validation, and from 0.16 on without --skip-train", "训练且未用 --full-validation，0.16 起也未用 --skip-train"),
			must: t("--eval-interval must be given (0.16 and later) and not be 0: every rank ends before the first step, with a TypeError about int and NoneType or a ZeroDivisionError",
				"必须给 --eval-interval（0.16 及以后），且不能为 0：否则各 rank 会在第一步之前因 int 与 NoneType 的 TypeError 或 ZeroDivisionError 退出"),
			why: t("Megatron-LM divides the length of the run by it, also with --eval-iters 0; 1000 was its default up to 0.15",
				"Megatron-LM 用训练长度除以它，--eval-iters 0 时也一样；0.15 及以前默认值为 1000"),
			do: t("give --eval-interval 1000; --eval-iters 0 switches evaluation off", "给 --eval-interval 1000；--eval-iters 0 可关闭验证"),
			broken: func(c *cfg) bool {
				skips := c.SkipTrain && c.Release >= megatron.V016 // then the number of evaluations is --eval-iters
				return (c.TrainIters.Or(0) != 0 || c.TrainSamples.Or(0) != 0) && c.EvalInterval.Or(0) == 0 && !c.FullValidation && !skips && !c.PerformRlStep
			},
		},
		{
			id: "data-path-or-args-file", flags: "--data-args-path --data-path", source: inArgs + "677",
			when: t("--data-path", ""), must: t("--data-args-path must not be given as well", "不能同时给 --data-args-path"),
			why: t("both name the blend; the assertion has no text", "两者都在指定数据混合；该断言没有文字说明"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.DataPath != nil && c.DataArgsPath.OK },
		},
		{
			id: "split-path-or-args-file", flags: "--per-split-data-args-path --train-data-path --valid-data-path --test-data-path", source: inArgs + "684",
			when: t("--train-data-path, --valid-data-path or --test-data-path", ""), must: t("--per-split-data-args-path must not be given as well", "不能同时给 --per-split-data-args-path"),
			why: t("both name the blends; the assertion has no text", "两者都在指定数据混合；该断言没有文字说明"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool {
				return (c.TrainDataPath != nil || c.ValidDataPath != nil || c.TestDataPath != nil) && c.PerSplitDataArgsPath.OK
			},
		},
		{
			id: "dataset-threads", flags: "--num-dataset-builder-threads", source: inArgs + "1258",
			when: t("always", "任何情况"), must: t("--num-dataset-builder-threads must be above 0", "--num-dataset-builder-threads 必须大于 0"),
			why: t("at least one thread must build the index", "总要有线程来构建索引"), do: t("leave it at 1", "保持为 1"),
			broken: func(c *cfg) bool { return c.NumDatasetBuilderThreads <= 0 },
		},
		{
			id: "one-data-source", flags: "--data-path --mock-data --train-data-path --valid-data-path --test-data-path", source: inArgs + "1679",
			when: t("always", "任何情况"), must: t("at most one of --mock-data, --data-path and the split paths may be given", "--mock-data、--data-path 与分集路径最多给一种"),
			why: t("a run reads one source", "一次训练只读一种来源"), do: t("keep one", "只保留一种"),
			broken: func(c *cfg) bool {
				n := 0
				for _, given := range []bool{c.MockData, len(c.DataPath) > 0, len(c.TrainDataPath)+len(c.ValidDataPath)+len(c.TestDataPath) > 0} {
					if given {
						n++
					}
				}
				return n > 1
			},
		},
		{
			id: "fim-no-mock-data", flags: "--mock-data --fim-data", source: inArgs + "1692",
			when: t("--fim-data", ""), must: t("--mock-data must not be given", "不能使用 --mock-data"),
			why: t("made-up tokens have no middle to fill", "伪造数据没有可填的中段"), do: t("drop one of the two", "去掉其中一个"),
			broken: func(c *cfg) bool { return c.FimData && c.MockData },
		},
		{
			id: "fim-no-legacy-tokenizer", flags: "--legacy-tokenizer --fim-data", source: inArgs + "1067", until: megatron.V016, effect: ChangesExperiment,
			when: t("--fim-data", ""), must: t("--legacy-tokenizer must not be given", "不能使用 --legacy-tokenizer"),
			why: t("the old tokenizers have no tokens for the middle", "旧分词器没有填充中间所需的词元"), do: t("drop --legacy-tokenizer", "去掉 --legacy-tokenizer"),
			broken: func(c *cfg) bool { return c.FimData && c.LegacyTokenizer },
		},
		{
			id: "fim-rate", flags: "--fim-rate --fim-data", source: inArgs + "1693",
			when: t("--fim-data", ""), must: t("--fim-rate must be given and not 0", "必须给非 0 的 --fim-rate"),
			why: t("it is the share of samples that are rearranged", "它是被重排的样本比例"), do: t("add --fim-rate 0.5", "加上 --fim-rate 0.5"),
			broken: func(c *cfg) bool { return c.FimData && !hasRate(valueOf(c, "--fim-rate", "")) },
		},
		{
			id: "fim-spm-rate", flags: "--fim-spm-rate --fim-data", source: inArgs + "1694",
			when: t("--fim-data", ""), must: t("--fim-spm-rate must be given and not 0", "必须给非 0 的 --fim-spm-rate"),
			why: t("it is the share of suffix-first samples", "它是后缀在前的样本比例"), do: t("add --fim-spm-rate 0.5", "加上 --fim-spm-rate 0.5"),
			broken: func(c *cfg) bool { return c.FimData && !hasRate(valueOf(c, "--fim-spm-rate", "")) },
		},
		{
			id: "fim-tokens", flags: "--fim-prefix-token --fim-middle-token --fim-suffix-token --fim-pad-token --fim-eod-token", source: inArgs + "1695",
			when: t("--fim-data", ""), must: t("all five fill-in-the-middle tokens must be given", "五个 FIM 标记必须全部给出"),
			why: t("they mark the parts of a sample", "它们标出样本的各部分"), do: t("add the missing ones", "补上缺少的"),
			broken: func(c *cfg) bool {
				for _, f := range []string{"--fim-prefix-token", "--fim-middle-token", "--fim-suffix-token", "--fim-pad-token", "--fim-eod-token"} {
					if c.FimData && valueOf(c, f, "") == "" {
						return true
					}
				}
				return false
			},
		},
	})
}

func hasRate(v string) bool { return v != "" && v != "0" }

// noteRows are about Megatron's silent changes, and about flags that it accepts and
// ignores.
func noteRows() []row {
	note := func(id, flags, line string, when, must, why [2]string, effect string, broken func(*cfg) bool) row {
		return row{
			id: id, flags: flags, source: inArgs + line, severity: Note, effect: effect,
			when: t(when[0], when[1]), must: t(must[0], must[1]), why: t(why[0], why[1]), do: t("no change is needed; if this is not what you want, set the flag yourself", "无需改动；若并非本意请写明"),
			broken: broken,
		}
	}
	dead := func(id, flag, line, instead, zh string, broken func(*cfg) bool) row {
		return row{
			id: id, flags: flag, source: inArgs + line, severity: Note,
			when: t(flag, ""), must: t(flag+" has no effect", flag+" 不起任何作用"),
			why: t("Megatron parses it for old scripts and then ignores it", "它只为兼容旧脚本而解析，之后无人使用"), do: t(instead, zh),
			broken: broken,
		}
	}
	return topics("silent changes", []row{
		note("sequence-parallel-switched-off", "--sequence-parallel "+tpFlag, "1436",
			[2]string{"--sequence-parallel with TP 1", "--sequence-parallel 且 TP 为 1"}, [2]string{"--sequence-parallel is switched off: TP is 1", "--sequence-parallel 会被关闭：TP 为 1"}, [2]string{"it divides the sequence over the tensor-parallel ranks", "它把序列切分到张量并行的各 rank"}, PerformanceOnly,
			func(c *cfg) bool { return c.Asked.SequenceParallel && c.TP == 1 }),
		note("global-batch-from-micro-batch", "--global-batch-size --micro-batch-size DP", "704",
			[2]string{"--global-batch-size not given", "未给 --global-batch-size"}, [2]string{"the global batch becomes micro batch × DP: one microbatch, so a pipeline runs nearly empty", "全局批变为微批 × DP：只有一个微批，流水线几乎空转"}, [2]string{"nothing else says how large a step is", "没有其他参数说明每步大小"}, ChangesExperiment,
			func(c *cfg) bool {
				return !c.Asked.GlobalBatchSize.OK && !c.StepBatchSizeSchedule.OK && c.MicroBatchSize.OK
			}),
		note("p2p-overlap-switched-off", "--no-overlap-p2p-communication "+ppFlag+" "+vpStages, "1012",
			[2]string{"PP above 1 without virtual stages", "PP 大于 1 且没有虚拟流水级"}, [2]string{"the overlap of p2p communication and aligned parameter gathers are switched off", "p2p 通信重叠与对齐的参数收集会被关闭"}, [2]string{"only an interleaved schedule has work to hide them behind", "只有交错调度才有计算可以掩盖它们"}, PerformanceOnly,
			func(c *cfg) bool { return c.PP > 1 && !c.VP.OK && c.Asked.OverlapP2pComm }),
		note("layers-from-pattern", "--num-layers --hybrid-layer-pattern", "793",
			[2]string{"--hybrid-layer-pattern", ""}, [2]string{"--num-layers is replaced by the length of the pattern", "--num-layers 会被模式长度取代"}, [2]string{"the pattern has one letter for each layer", "模式每层一个字母"}, ChangesExperiment,
			func(c *cfg) bool {
				return c.Hybrid != nil && c.Asked.NumLayers.OK && c.Asked.NumLayers.V != c.Hybrid.Layers
			}),
		note("fp32-accumulation-switched-on", "--bf16 --accumulate-allreduce-grads-in-fp32", "1216",
			[2]string{"--bf16", ""}, [2]string{"gradients are summed in fp32: --bf16 switches --accumulate-allreduce-grads-in-fp32 on", "梯度以 fp32 累加：--bf16 会打开 --accumulate-allreduce-grads-in-fp32"}, [2]string{"bf16 sums lose small gradients; --grad-reduce-in-bf16 keeps them narrow", "bf16 累加会丢失小梯度；--grad-reduce-in-bf16 可保持窄精度"}, ChangesExperiment,
			func(c *cfg) bool {
				return c.Bf16 && c.AccumulateAllreduceGradsInFp32 && !c.Asked.AccumulateAllreduceGradsInFp32
			}),
		note("nan-check-switched-off", "--fp16 --loss-scale", "1201",
			[2]string{"--fp16 with dynamic loss scaling", "--fp16 且动态损失缩放"}, [2]string{"the NaN check is switched off", "NaN 检查会被关闭"}, [2]string{"the loss scaler uses NaNs as its signal", "损失缩放器以 NaN 为信号"}, PerformanceOnly,
			func(c *cfg) bool { return c.Fp16 && c.Asked.CheckForNanInLossAndGrad && !c.CheckForNanInLossAndGrad }),
		note("distributed-optimizer-switched-on", "--use-megatron-fsdp --use-distributed-optimizer", "1137",
			[2]string{"Megatron-FSDP version 1", "Megatron-FSDP 版本 1"}, [2]string{"--use-distributed-optimizer is switched on", "会自动打开 --use-distributed-optimizer"}, [2]string{"version 1 is built on it", "版本 1 建立在它之上"}, PerformanceOnly,
			func(c *cfg) bool {
				return c.UseMegatronFsdp && c.UseDistributedOptimizer && !c.Asked.UseDistributedOptimizer
			}),
		note("async-save-dropped", "--async-save --use-persistent-ckpt-worker", "1817",
			[2]string{"--async-save without --use-persistent-ckpt-worker", "--async-save 而没有 --use-persistent-ckpt-worker"}, [2]string{"--async-save is dropped: saving blocks training", "--async-save 会被丢弃：保存将阻塞训练"}, [2]string{"the asynchronous save needs the persistent worker; add --use-persistent-ckpt-worker", "异步保存需要常驻进程；请加 --use-persistent-ckpt-worker"}, PerformanceOnly,
			func(c *cfg) bool { return c.Asked.AsyncSave && !c.AsyncSave }),
		note("freeze-switches-off-sharding", "--freeze-all-layers --use-distributed-optimizer", "1842",
			[2]string{"--freeze-all-layers", ""}, [2]string{"the distributed optimizer and the parameter gather are switched off", "分布式优化器与参数收集会被关闭"}, [2]string{"a frozen model has no optimizer to shard", "冻结的模型没有可切分的优化器"}, PerformanceOnly,
			func(c *cfg) bool {
				return c.FreezeAllLayers && (c.Asked.UseDistributedOptimizer || c.Asked.OverlapParamGather)
			}),
		note("zero-experts-is-dense", "--num-experts", "1648",
			[2]string{"--num-experts 0", ""}, [2]string{"the model is dense", "模型为稠密模型"}, [2]string{"0 counts as not given", "0 等于没给"}, ChangesExperiment,
			func(c *cfg) bool { return c.Asked.NumExperts.OK && c.Asked.NumExperts.V == 0 }),
		note("one-virtual-stage-is-none", vpStages+" "+vpLayers, "978",
			[2]string{"a virtual stage count of 1", "虚拟级数为 1"}, [2]string{"the schedule is not interleaved", "调度不会交错"}, [2]string{"one virtual stage means none", "1 个虚拟级等于没有"}, PerformanceOnly,
			func(c *cfg) bool {
				return !c.VP.OK &&
					(c.NumVirtualStagesPerPipelineRank.V == 1 ||
						c.NumLayersPerVirtualPipelineStage.OK && c.PP > 0 && c.SplitLayers/c.PP == c.NumLayersPerVirtualPipelineStage.V)
			}),
		note("onnx-safe-is-true", "--onnx-safe", "2454",
			[2]string{"--onnx-safe with any word", "--onnx-safe 后跟任意词"}, [2]string{"the value counts as true, the word False too", "取值一律为真，写 False 也是真"}, [2]string{"the parser applies Python's bool to the word", "解析器对该词用 Python 的 bool()"}, PerformanceOnly,
			func(c *cfg) bool { return c.OnnxSafe.OK && c.OnnxSafe.V }),
		{
			id: "decrease-rounds-batch-down", flags: "--global-batch-size --decrease-batch-size-if-needed", source: inBatch + "372", severity: Note, effect: ChangesExperiment,
			when: t("--decrease-batch-size-if-needed", ""), must: t("the global batch is rounded down to a multiple of micro batch × DP", "全局批会被向下取整为微批 × DP 的倍数"),
			why: t("the evaluation check still uses the number as given, so the flag alone does not make an odd batch legal", "评估检查仍用原值，因此仅靠该参数不能让不整除的批大小合法"), do: t("give a multiple", "直接给出倍数"),
			broken: func(c *cfg) bool {
				return c.DecreaseBatchSizeIfNeeded && c.Microbatches > 0 && c.Batch > c.Microbatches*c.MicroBatchSize.V*c.DP*c.GTP
			},
		},
		dead("rampup-has-no-effect", "--rampup-batch-size", "699", "use --step-batch-size-schedule", "改用 --step-batch-size-schedule", func(c *cfg) bool { return c.RampupBatchSize != nil }),
		dead("use-dist-ckpt-has-no-effect", "--use-dist-ckpt", "1778", "use --ckpt-format", "改用 --ckpt-format", func(c *cfg) bool { return c.UseDistCkptDeprecated }),
		dead("dist-ckpt-format-has-no-effect", "--dist-ckpt-format", "1781", "use --ckpt-format", "改用 --ckpt-format", func(c *cfg) bool { return c.DistCkptFormatDeprecated.OK }),
		dead("fully-parallel-save-has-no-effect", "--ckpt-fully-parallel-save", "1766", "drop it: parallel saving is the default", "去掉它：并行保存是默认行为", func(c *cfg) bool { return c.CkptFullyParallelSaveDeprecated }),
		dead("use-mcore-models-has-no-effect", "--use-mcore-models", "2949", "drop it: they are the default", "去掉它：默认即是", func(c *cfg) bool { return c.Flag("--use-mcore-models") }),
	})
}
