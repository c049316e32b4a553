package knowledge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// BenchmarkAskBy50 tells the median and the 99th of a hundred latencies when
// fifty people ask in the same moment. Who waits for a processor waits for an
// answer: every latency counts from that moment.
func BenchmarkAskBy50(b *testing.B) {
	a := knowledge.New(knowledge.Options{})
	a.Warm()
	questions := evalQuestions(b)
	ask := func(i int) {
		if _, err := a.Ask(context.Background(), knowledge.Question{Text: questions[i%len(questions)]}); err != nil {
			b.Error(err)
		}
	}
	for i := range questions {
		ask(i) // once, so that every expression is compiled
	}
	var took []time.Duration
	next := 0
	for b.Loop() {
		latency := make([]time.Duration, 50)
		var wg sync.WaitGroup
		start := time.Now()
		for i := range latency {
			wg.Go(func() {
				ask(next + i)
				latency[i] = time.Since(start)
			})
		}
		wg.Wait()
		next += len(latency)
		took = append(took, latency...)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// evalQuestions are the skills' own, of every kind and in both languages, in an
// order that mixes them.
func evalQuestions(b *testing.B) []string {
	var all []string
	files, err := filepath.Glob("../skills/*/evals/questions.jsonl")
	require.NoError(b, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(b, err)
		for line := range bytes.Lines(text) {
			var q struct{ Q string }
			require.NoError(b, json.Unmarshal(line, &q))
			all = append(all, q.Q)
		}
	}
	require.NotEmpty(b, all)
	r := rand.New(rand.NewPCG(1, 1))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
