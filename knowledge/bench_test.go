package knowledge_test

import (
	"context"
	"testing"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

func BenchmarkIndex(b *testing.B) {
	for b.Loop() {
		a := knowledge.New(knowledge.Options{})
		if _, err := a.Ask(context.Background(), knowledge.Question{Text: "MASTER_PORT"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAsk(b *testing.B) {
	a := knowledge.New(knowledge.Options{})
	questions := []string{
		"how do I keep an salloc allocation alive after exiting the shell", "作业数组一次只跑一个怎么写",
		"H100 tp4 pp2 on 64 gpus, data parallel size?", "what is the weather", "Watchdog caught collective operation timeout",
	}
	for i := 0; b.Loop(); i++ {
		if _, err := a.Ask(context.Background(), knowledge.Question{Text: questions[i%len(questions)]}); err != nil {
			b.Fatal(err)
		}
	}
}
