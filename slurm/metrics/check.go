package metrics

import (
	"slices"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A Finding is a problem in a running job's numbers of which a person should be told once. The same
// problem keeps its ID.
type Finding struct {
	ID        string    `json:"id"` // not_finite, loss_spike, slower, straggler, slow_start
	Iteration int       `json:"iteration"`
	Rank      *int      `json:"rank,omitempty"` // the rank at fault, where one is
	What      lang.Text `json:"what"`
	Fix       lang.Text `json:"fix"`
}

// Thresholds of the checks: how many iterations they compare, and by how much these must differ. The
// thresholds tolerate evaluation, checkpoints and warm-up.
const (
	minIterations = 20   // iterations before a check reports anything
	nonFiniteRun  = 3    // consecutive iterations with values that are not finite
	spikeWindow   = 5    // consecutive iterations with a high loss
	spikeFactor   = 1.5  // high: this many times the earlier median
	slowerWindow  = 15   // newest iterations, whose median time is compared with the earlier ones'
	slowerFactor  = 1.25 // slower: this many times the earlier median
	slowMFU       = 0.20 // model FLOP utilization below which a run is slow from the start
	dataShare     = 0.10 // share of an iteration's time spent in the batch generator from which data loading is slow
	fullShare     = 0.70 // share of a GPU's memory below which the run could use more of it
	slowReports   = 3    // consecutive reports that call the same rank the slowest
	slowShare     = 0.85 // share of the fastest rank's speed below which a rank is slow
)

// Check runs all checks on the run's newest iterations.
func (r Run) Check() (found []Finding) {
	for _, check := range []func(Run) (Finding, bool){notFinite, lossSpike, straggler, slower, slowStart} {
		if f, ok := check(r); ok {
			found = append(found, f)
		}
	}
	return found
}

// notFinite finds losses or gradient norms that stay NaN or infinite. A run with loss scaling begins
// with a few infinite gradients, which Megatron skips.
func notFinite(r Run) (Finding, bool) {
	n := len(r.Iterations)
	run := 0
	for run < n && (nonFinite(r.Iterations[n-1-run].Loss) || nonFinite(r.Iterations[n-1-run].GradNorm)) {
		run++
	}
	lossToo := slices.ContainsFunc(r.Iterations[n-run:], func(it Iteration) bool { return nonFinite(it.Loss) })
	if run < nonFiniteRun || !lossToo && n < minIterations {
		return Finding{}, false
	}
	at := r.Iterations[n-run].N
	return Finding{
		"not_finite", at, nil,
		lang.Text{EN: "Loss or gradient norm has been NaN or infinite since iteration %d.", ZH: "自第 %d 次迭代起，损失或梯度范数一直为 NaN 或无穷大。"}.With(at),
		lang.Text{
			EN: "Stop it and go back to a checkpoint before that iteration, with a lower learning rate or without that data.",
			ZH: "停止作业，回退到该迭代之前的检查点，降低学习率或跳过这些数据。",
		},
	}, true
}

func nonFinite(v *float64) bool { return v != nil && Finite(v) == nil }

// lossSpike finds a loss that has jumped and stays high.
func lossSpike(r Run) (Finding, bool) {
	ps := r.Points(Loss)
	if len(ps) < minIterations {
		return Finding{}, false
	}
	recent, before := ps[len(ps)-spikeWindow:], ps[max(0, len(ps)-spikeWindow-200):len(ps)-spikeWindow]
	median := *quantile(pointValues(before), 0.5)
	for _, p := range recent {
		if p.V < spikeFactor*median || median <= 0 {
			return Finding{}, false
		}
	}
	at := recent[0].N
	return Finding{
		"loss_spike", at, nil,
		lang.Text{
			EN: "The loss jumped from about %.3g to %.3g at iteration %d and stays there.",
			ZH: "损失在第 %[3]d 次迭代从约 %.3[1]g 跳升到 %.3[2]g，且没有回落。",
		}.With(median, recent[0].V, at),
		lang.Text{
			EN: "If it does not come back, restart from a checkpoint before it and skip that data or lower the learning rate.",
			ZH: "若不回落，从之前的检查点重启，跳过这些数据或降低学习率。",
		},
	}, true
}

// slower finds iterations that take longer than earlier ones. It compares the time per sample, since
// the batch size may grow by plan.
func slower(r Run) (Finding, bool) {
	ps := r.Points(sampleTime)
	if len(ps) < minIterations+slowerWindow {
		return Finding{}, false
	}
	recent, before := ps[len(ps)-slowerWindow:], ps[min(10, len(ps)-slowerWindow-10):len(ps)-slowerWindow]
	was, is := *quantile(pointValues(before), 0.5), *quantile(pointValues(recent), 0.5)
	slow := 0
	for _, p := range recent {
		if p.V > slowerFactor*was {
			slow++
		}
	}
	if is < slowerFactor*was || slow < slowerWindow*4/5 {
		return Finding{}, false
	}
	at := recent[0].N
	// The message gives the milliseconds of one iteration at the present batch size.
	now := *quantile(values(r.Iterations[max(0, len(r.Iterations)-slowerWindow):], Elapsed), 0.5)
	f := Finding{
		"slower", at, nil,
		lang.Text{
			EN: "Iterations take %.0f ms now, %.0f %% longer than the %.0f ms before.",
			ZH: "当前每次迭代 %.0[1]f 毫秒，比之前的 %.0[3]f 毫秒慢 %.0[2]f%%。",
		}.With(now, 100*(is/was-1), now*was/is),
		lang.Text{
			EN: "Look for a throttled or failing GPU, a flapping link or slow storage; --log-straggler names the slow rank.",
			ZH: "检查是否有 GPU 降频或故障、链路抖动或存储变慢；--log-straggler 可指出慢的 rank。",
		},
	}
	if data, ok := r.slowData(); ok {
		f.Fix = data
	}
	return f, true
}

// sampleTime is the time of an iteration divided by its batch size, or the whole time where the batch
// size is not known.
var sampleTime = Series{"sample_ms", "", func(i Iteration) *float64 {
	if i.ElapsedMS == nil || i.GlobalBatch == nil || *i.GlobalBatch <= 0 {
		return i.ElapsedMS
	}
	return new(*i.ElapsedMS / float64(*i.GlobalBatch))
}}

// straggler finds a rank that all the latest reports call by far the slowest. Small differences between
// pipeline stages are normal.
func straggler(r Run) (Finding, bool) {
	n := len(r.Slowest)
	if n == 0 {
		return Finding{}, false
	}
	last := r.Slowest[n-1]
	if !last.Judged {
		if n < slowReports {
			return Finding{}, false
		}
		for _, s := range r.Slowest[n-slowReports:] {
			if s.Rank != last.Rank || s.Share > slowShare {
				return Finding{}, false
			}
		}
	}
	if len(r.Iterations) > 0 && r.Iterations[len(r.Iterations)-1].N-last.Iteration > 100 {
		return Finding{}, false // the report is out of date
	}
	f := Finding{
		"straggler", last.Iteration, &last.Rank,
		lang.Text{EN: "Rank %d is a straggler: all others wait for it.", ZH: "rank %d 明显偏慢，其他 rank 都在等它。"}.With(last.Rank),
		lang.Text{EN: "Look at that GPU's clocks, temperature and links (nvidia-smi -q -d PERFORMANCE,CLOCK; `megatron-ops run JOB -- nvidia-smi`); if " +
			"it stays slow, go on from the last checkpoint with its node in --exclude.", ZH: "检查该 GPU 的频率、温度与链路（nvidia-smi -q -d PERFORMANCE,CLOCK；" +
			"`megatron-ops run JOB -- nvidia-smi`）；若持续偏慢，从最近的检查点继续，并用 --exclude 排除该节点。"},
	}
	if last.Share > 0 {
		f.What = lang.Text{
			EN: "Rank %d is a straggler: it reaches %.0f %% of the others' speed, and all wait for it.",
			ZH: "rank %d 明显偏慢：只有其他 rank 的 %.0f%%，所有 rank 都在等它。",
		}.With(last.Rank, 100*last.Share)
	}
	return f, true
}

// slowStart finds a run that never reached a fair share of its GPUs' peak.
func slowStart(r Run) (Finding, bool) {
	vs := pointValues(r.Points(Utilization))
	if len(vs) < minIterations {
		return Finding{}, false
	}
	mfu := *quantile(vs, 0.9)
	if mfu >= slowMFU {
		return Finding{}, false
	}
	return Finding{
		"slow_start", r.Iterations[0].N, nil,
		lang.Text{
			EN: "The run reaches %.0f %% of its GPUs' peak, less than expected from the start.",
			ZH: "从一开始就只达到 GPU 峰值的 %.0f%%，低于预期。",
		}.With(100 * mfu),
		r.slowFix(),
	}, true
}

// slowFix returns advice that fits the run's own numbers: on data loading where the timers show that to
// be slow, else on unused memory, else on the layout.
func (r Run) slowFix() lang.Text {
	if data, ok := r.slowData(); ok {
		return data
	}
	if left, ok := r.unusedMemory(); ok {
		gib := left / 1024
		if r.args["recompute_granularity"] == "full" {
			return lang.Text{
				EN: "About %.0f GiB of each GPU are not used: recompute less, --recompute-granularity selective instead of full.",
				ZH: "每张 GPU 约有 %.0f GiB 显存未使用：减少重计算，用 --recompute-granularity selective 代替 full。",
			}.With(gib)
		}
		larger := ""
		if n, err := strconv.Atoi(r.args["micro_batch_size"]); err == nil {
			larger = " " + strconv.Itoa(2*n)
		}
		return lang.Text{
			EN: "About %.0f GiB of each GPU are not used: --micro-batch-size%s, or less TP and PP.",
			ZH: "每张 GPU 约有 %.0f GiB 显存未使用：--micro-batch-size%s，或减小 TP 与 PP。",
		}.With(gib, larger)
	}
	if tp, _ := strconv.Atoi(r.args["tensor_model_parallel_size"]); tp > 8 {
		return lang.Text{
			EN: "Tensor parallelism of %d leaves the node: --tensor-model-parallel-size 8 and more --pipeline-model-parallel-size.",
			ZH: "张量并行度 %d 跨越了节点：改用 --tensor-model-parallel-size 8，并增大 --pipeline-model-parallel-size。",
		}.With(tp)
	}
	if r.args["overlap_grad_reduce"] == "False" {
		return lang.Text{
			EN: "Communication is not overlapped: --overlap-grad-reduce --overlap-param-gather --use-distributed-optimizer.",
			ZH: "通信没有与计算重叠：--overlap-grad-reduce --overlap-param-gather --use-distributed-optimizer。",
		}
	}
	return lang.Text{EN: "Check data loading (--num-workers, the batch-generator timer), then --overlap-grad-reduce, --overlap-param-gather and the " +
		"smallest TP and PP that fit.", ZH: "先检查数据读取（--num-workers 与 batch-generator 计时），再检查 --overlap-grad-reduce、--overlap-param-gather，并采用能放下的最小 TP " +
		"与 PP。"}
}

// slowData reports whether the timers show that ranks wait for their batches, and returns the flags to
// change.
func (r Run) slowData() (lang.Text, bool) {
	data := r.timer("batch-generator")
	all := quantile(values(r.Iterations[max(0, len(r.Iterations)-20):], Elapsed), 0.5)
	if all == nil || data < dataShare**all {
		return lang.Text{}, false
	}
	workers, _ := strconv.Atoi(r.args["num_workers"])
	workers = max(2*workers, 4)
	return lang.Text{
		EN: "The batch-generator timer takes %.0f %% of an iteration, so data loading is slow: --num-workers %d, and --data-cache-path on fast storage.",
		ZH: "batch-generator 计时占每次迭代的 %.0f%%，说明数据读取慢：--num-workers %d，并把 --data-cache-path 放到快速存储。",
	}.With(100*data / *all, workers), true
}

// unusedMemory returns how many MB of each GPU no rank has ever used; ok is false where that is little
// or not known.
func (r Run) unusedMemory() (mb float64, ok bool) {
	gpu, known := megatron.LookupGPU(r.GPU)
	most := 0.0
	for _, m := range r.Memory {
		most = max(most, m.MaxReserveMB, m.MaxMB)
	}
	total := gpu.MemoryGiB * 1024
	if !known || most == 0 || total == 0 || most > fullShare*total {
		return 0, false
	}
	return total - most, true
}

func pointValues(ps []Point) (vs []float64) {
	for _, p := range ps {
		vs = append(vs, p.V)
	}
	return vs
}
