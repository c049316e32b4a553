package knowledge_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// BenchmarkAskBy50 tells the median and the 99th of a hundred latencies when
// fifty people ask at once.
func BenchmarkAskBy50(b *testing.B) {
	a := knowledge.New(knowledge.Options{})
	a.Warm()
	questions := []string{
		"how do I keep an salloc allocation alive after exiting the shell", "作业数组一次只跑一个怎么写",
		"H100 tp4 pp2 on 64 gpus, data parallel size?", "what is the weather", "Watchdog caught collective operation timeout",
	}
	for _, q := range questions {
		_, _ = a.Ask(context.Background(), knowledge.Question{Text: q})
	}
	var took []time.Duration
	for b.Loop() {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				start := time.Now()
				_, _ = a.Ask(context.Background(), knowledge.Question{Text: questions[i%len(questions)]})
				d := time.Since(start)
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			})
		}
		wg.Wait()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
