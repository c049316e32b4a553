package metrics

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"
)

// A Summary is a run in a few numbers. Those of the pace leave out the first reports (see warmUp), which are slower.
type Summary struct {
	Name         string   `json:"name"`
	Iterations   int      `json:"iterations"`
	Last         int      `json:"last_iteration"`
	Of           int      `json:"train_iters"`
	Loss         *float64 `json:"loss"`
	BestLoss     *float64 `json:"best_loss"`
	GradNorm     *float64 `json:"grad_norm"`
	LearningRate *float64 `json:"learning_rate"`
	IterationMS  *float64 `json:"iteration_ms"`     // median
	IterationP99 *float64 `json:"iteration_ms_p99"` // 99th percentile
	TFLOPs       *float64 `json:"tflops_per_gpu"`
	TokensPerGPU *float64 `json:"tokens_per_s_per_gpu"`
	MFU          *float64 `json:"mfu"`
	MaxMemoryMB  *float64 `json:"max_memory_mb"`
	Validation   *float64 `json:"validation_loss"`
	ETASeconds   *int64   `json:"eta_s"`
	Skipped      int      `json:"skipped_iterations"`
	NaN          int      `json:"nan_iterations"`
	Restarts     int      `json:"restarts"`
	Tracked      string   `json:"tracked,omitempty"`    // the run's address at W&B or MLflow
	OtherJobs    []string `json:"other_jobs,omitempty"` // files of older jobs in the run's folder, not read
}

// MarshalJSON writes null for a number that is not finite, as JSON cannot represent it.
func (s Summary) MarshalJSON() ([]byte, error) {
	type noMethods Summary
	for _, v := range []**float64{&s.Loss, &s.GradNorm, &s.LearningRate, &s.Validation} {
		*v = Finite(*v)
	}
	return json.Marshal(noMethods(s))
}

// Finite returns v, or nil where it is not finite.
func Finite(v *float64) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}

// Summary summarises the run.
func (r Run) Summary() Summary {
	s := Summary{Name: r.Name, Iterations: len(r.Iterations), Of: r.Of, Restarts: r.Restarts, Tracked: r.Tracked, OtherJobs: r.OtherJobs}
	if len(r.Iterations) == 0 {
		return s
	}
	last := r.Iterations[len(r.Iterations)-1]
	s.Last, s.Loss, s.GradNorm, s.LearningRate = last.N, last.Loss, last.GradNorm, last.LearningRate
	steady := r.Iterations[warmUp(len(r.Iterations)):]
	s.IterationMS = quantile(values(steady, Elapsed), 0.5)
	s.IterationP99 = quantile(values(steady, Elapsed), 0.99)
	s.TFLOPs = mean(values(steady, Throughput))
	s.TokensPerGPU = mean(values(steady, Tokens))
	s.MFU = mean(values(steady, Utilization))
	s.BestLoss = quantile(values(r.Iterations, Loss), 0)
	for _, it := range r.Iterations {
		if it.Skipped != nil {
			s.Skipped += *it.Skipped
		}
		if it.NaN != nil {
			s.NaN += *it.NaN
		}
	}
	for _, m := range r.Memory {
		if s.MaxMemoryMB == nil || m.MaxMB > *s.MaxMemoryMB {
			s.MaxMemoryMB = new(m.MaxMB)
		}
	}
	if n := len(r.Validation); n > 0 {
		s.Validation = &r.Validation[n-1].V
	}
	if eta, ok := r.ETA(); ok {
		s.ETASeconds = new(int64(eta.Seconds()))
	}
	return s
}

// warmUp returns how many of n reports of iterations at the beginning say nothing about the pace: a tenth,
// and of four or more at least two. Megatron-LM's second report still counts the time of the first.
func warmUp(n int) int {
	if n < 4 {
		return 0
	}
	return min(max(n/10, 2), 20)
}

// ETA returns how long the remaining iterations take at the run's own pace. Where lines carry times,
// the pace includes evaluation and checkpoints.
func (r Run) ETA() (time.Duration, bool) {
	n := len(r.Iterations)
	if n == 0 || r.Of <= 0 {
		return 0, false
	}
	last := r.Iterations[n-1]
	left := r.Of - last.N
	if left <= 0 {
		return 0, true
	}
	from := r.Iterations[min(n/10, 20)] // the time of the first iteration lies before its report
	if from.Time != nil && last.Time != nil && last.N > from.N && last.Time.After(*from.Time) {
		return time.Duration(float64(last.Time.Sub(*from.Time)) / float64(last.N-from.N) * float64(left)), true
	}
	if ms := quantile(values(r.Iterations[warmUp(n):], Elapsed), 0.5); ms != nil {
		return time.Duration(*ms * float64(left) * float64(time.Millisecond)), true
	}
	return 0, false
}

// Suffices returns how much of its time limit the run will leave unused, given how much is left now:
// negative where the limit is too short. ok is false where that cannot be told.
func (r Run) Suffices(left time.Duration) (spare time.Duration, ok bool) {
	eta, ok := r.ETA()
	return left - eta, ok
}

// A Series selects one of an iteration's values.
type Series struct {
	Name  string // as in commands and files
	title string // in a picture
	of    func(Iteration) *float64
}

// The series that a run can report.
var (
	Loss         = Series{"loss", "Loss", func(i Iteration) *float64 { return i.Loss }}
	GradNorm     = Series{"grad_norm", "Gradient norm", func(i Iteration) *float64 { return i.GradNorm }}
	LearningRate = Series{"learning_rate", "Learning rate", func(i Iteration) *float64 { return i.LearningRate }}
	Elapsed      = Series{"iteration_ms", "Time per iteration (ms)", func(i Iteration) *float64 { return i.ElapsedMS }}
	Throughput   = Series{"tflops", "TFLOP/s/GPU", func(i Iteration) *float64 { return i.TFLOPs }}
	Tokens       = Series{"tokens", "Tokens/s/GPU", func(i Iteration) *float64 { return i.TokensPerGPU }}
	Utilization  = Series{"mfu", "MFU", func(i Iteration) *float64 { return i.MFU }}
	LossScale    = Series{"loss_scale", "Loss scale", func(i Iteration) *float64 { return i.LossScale }}
)

// AllSeries lists the series in the order in which they are shown.
var AllSeries = []Series{Loss, GradNorm, LearningRate, Elapsed, Tokens, Throughput, Utilization, LossScale}

// PeakMemory returns, for each iteration, the largest GPU memory that any rank had allocated, in GiB.
// It needs --log-memory-interval, or TensorBoard's mem-max-allocated-bytes.
func (r Run) PeakMemory() (ps []Point) {
	at := map[int]float64{}
	for n, mb := range r.peak {
		at[n] = mb / 1024
	}
	for _, it := range r.Iterations {
		if v := it.Other["mem-max-allocated-bytes"] / (1 << 30); v > at[it.N] {
			at[it.N] = v
		}
	}
	for _, n := range slices.Sorted(maps.Keys(at)) {
		ps = append(ps, Point{n, at[n]})
	}
	return ps
}

// Points returns a series of the run without the values that are not finite.
func (r Run) Points(s Series) (ps []Point) {
	for _, it := range r.Iterations {
		if v := Finite(s.of(it)); v != nil {
			ps = append(ps, Point{it.N, *v})
		}
	}
	return ps
}

func values(its []Iteration, s Series) []float64 { return pointValues(Run{Iterations: its}.Points(s)) }

func mean(vs []float64) *float64 {
	if len(vs) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range vs {
		sum += v
	}
	return new(sum / float64(len(vs)))
}

// quantile returns the q-quantile of vs, or nil where vs is empty.
func quantile(vs []float64, q float64) *float64 {
	if len(vs) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(vs))
	return new(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
}
