package metrics

import (
	"fmt"
	"math"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Finding is something about a running job's numbers that a person should
// hear of once. ID stays the same for the same thing.
type Finding struct {
	ID        string    `json:"id"` // not_finite, loss_spike, slower, slow_start
	Iteration int       `json:"iteration"`
	What      lang.Text `json:"what"`
	Fix       lang.Text `json:"fix"`
}

// Bounds of the checks: how many iterations are compared, and by how much
// they must differ. They leave room for evaluation, checkpoints and warm-up.
const (
	enough       = 20   // iterations before anything is said
	runLength    = 3    // in a row, for values that are not finite
	spikeWindow  = 5    // iterations that must all be above
	spikeFactor  = 1.5  // times the median before
	slowerWindow = 15   // iterations whose median is compared
	slowerFactor = 1.25 // times the median before
	slowMFU      = 0.20 // below which a run is slow from the start
)

// Check looks at a run's latest iterations as they stand now.
func (r Run) Check() (found []Finding) {
	for _, check := range []func(Run) (Finding, bool){notFinite, lossSpike, slower, slowStart} {
		if f, ok := check(r); ok {
			found = append(found, f)
		}
	}
	return found
}

// notFinite finds losses or gradients that stay NaN or infinite. A
// loss-scaled run begins with a few infinite gradients, which it skips.
func notFinite(r Run) (Finding, bool) {
	n := len(r.Iterations)
	run := 0
	for run < n && bad(r.Iterations[n-1-run]) {
		run++
	}
	if run < runLength {
		return Finding{}, false
	}
	at := r.Iterations[n-run].N
	return Finding{
		"not_finite", at,
		lang.Text{EN: fmt.Sprintf("Loss or gradient norm has been NaN or infinite since iteration %d.", at), ZH: fmt.Sprintf("自第 %d 次迭代起，损失或梯度范数一直为 NaN 或无穷大。", at)},
		lang.Text{EN: "Stop it and go back to a checkpoint before that iteration, with a lower learning rate or without that data.", ZH: "停止作业，回退到该迭代之前的检查点，降低学习率或跳过这些数据。"},
	}, true
}

func bad(it Iteration) bool {
	for _, v := range []*float64{it.Loss, it.GradNorm} {
		if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
			return true
		}
	}
	return false
}

// lossSpike finds a loss that has jumped and stays up.
func lossSpike(r Run) (Finding, bool) {
	ps := r.Points(Loss)
	if len(ps) < enough {
		return Finding{}, false
	}
	recent, before := ps[len(ps)-spikeWindow:], ps[max(0, len(ps)-spikeWindow-200):len(ps)-spikeWindow]
	median := *quantile(plain(before), 0.5)
	for _, p := range recent {
		if p.V < spikeFactor*median || median <= 0 {
			return Finding{}, false
		}
	}
	at := recent[0].N
	return Finding{
		"loss_spike", at,
		lang.Text{EN: fmt.Sprintf("The loss jumped from about %.3g to %.3g at iteration %d and stays there.", median, recent[0].V, at), ZH: fmt.Sprintf("损失在第 %d 次迭代从约 %.3g 跳升到 %.3g，且没有回落。", at, median, recent[0].V)},
		lang.Text{EN: "If it does not come back, restart from a checkpoint before it and skip that data or lower the learning rate.", ZH: "若不回落，从之前的检查点重启，跳过这些数据或降低学习率。"},
	}, true
}

// slower finds iterations that take longer than earlier ones did.
func slower(r Run) (Finding, bool) {
	ps := r.Points(Elapsed)
	if len(ps) < enough+slowerWindow {
		return Finding{}, false
	}
	recent, before := ps[len(ps)-slowerWindow:], ps[min(10, len(ps)-slowerWindow-10):len(ps)-slowerWindow]
	was, is := *quantile(plain(before), 0.5), *quantile(plain(recent), 0.5)
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
	return Finding{
		"slower", at,
		lang.Text{EN: fmt.Sprintf("Iterations take %.0f ms now, %.0f %% longer than the %.0f ms before.", is, 100*(is/was-1), was), ZH: fmt.Sprintf("当前每次迭代 %.0f 毫秒，比之前的 %.0f 毫秒慢 %.0f%%。", is, was, 100*(is/was-1))},
		lang.Text{EN: "Look for a throttled or failing GPU, a flapping link or slow storage; --log-straggler names the slow rank.", ZH: "检查是否有 GPU 降频或故障、链路抖动或存储变慢；--log-straggler 可指出慢的 rank。"},
	}, true
}

// slowStart finds a run that never reached a fair share of its GPUs' peak.
func slowStart(r Run) (Finding, bool) {
	vs := plain(r.Points(Utilization))
	if len(vs) < enough {
		return Finding{}, false
	}
	mfu := *quantile(vs, 0.9)
	if mfu >= slowMFU {
		return Finding{}, false
	}
	return Finding{
		"slow_start", r.Iterations[0].N,
		lang.Text{EN: fmt.Sprintf("The run reaches %.0f %% of its GPUs' peak, less than expected from the start.", 100*mfu), ZH: fmt.Sprintf("从一开始就只达到 GPU 峰值的 %.0f%%，低于预期。", 100*mfu)},
		r.slowFix(),
	}, true
}

// slowFix names the flag that the run's own numbers point at.
func (r Run) slowFix() lang.Text {
	for _, m := range r.Memory {
		if m.MaxMB > 0 && m.MaxReserveMB > 0 && m.MaxMB < 0.6*m.MaxReserveMB {
			return lang.Text{EN: "Memory is left: raise --micro-batch-size or turn recomputation off.", ZH: "显存仍有富余：提高 --micro-batch-size 或关闭重计算。"}
		}
	}
	return lang.Text{EN: "Check data loading (--num-workers, the batch-generator timer), then --overlap-grad-reduce, --overlap-param-gather and the smallest TP and PP that fit.", ZH: "先检查数据读取（--num-workers 与 batch-generator 计时），再检查 --overlap-grad-reduce、--overlap-param-gather，并采用能放下的最小 TP 与 PP。"}
}

func plain(ps []Point) (vs []float64) {
	for _, p := range ps {
		vs = append(vs, p.V)
	}
	return vs
}
