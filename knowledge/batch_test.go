package knowledge_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

func TestBatchAnswersEveryLine(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":"a","q":"default MASTER_PORT?"}`:    "29500",
		`{"id":7,"q":"MASTER_PORT 默认多少"}`:          "默认 29500",
		`{"q":"default MASTER_PORT?","lang":"zh"}`: "默认 29500",
		`{"id":"b"}`:                     `"field":"q"`,
		`{"id":"c","q":"x","lang":"fr"}`: `"field":"lang"`,
		`not json`:                       `"code":"bad_input"`,
		`{"id":"d","q":"how do I bake a cheesecake"}`: `"refused":true`,
	} {
		out := knowledge.New(knowledge.Options{}).Batch(t.Context(), []byte(in))
		require.True(t, json.Valid(out), in)
		require.Contains(t, string(out), want, in)
	}
	require.Contains(t, string(knowledge.New(knowledge.Options{}).Batch(t.Context(), []byte(`{"id":7,"q":""}`))), `"id":7`)
}

func TestAskServesManyAtOnce(t *testing.T) {
	a := knowledge.New(knowledge.Options{Site: []string{t.TempDir()}})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			q := []string{"DP for 64 gpus tp 4 pp 2?", "怎么取消作业", "weather in Rome", "squeue shows CG"}[i%4]
			_, err := a.Ask(context.Background(), knowledge.Question{Text: q})
			assert.NoError(t, err)
		})
	}
	wg.Wait()
}
