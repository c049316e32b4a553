package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// trainingLog returns some bytes of a log as trainings write it.
func trainingLog(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, " [2025-06-01 10:00:%02d] iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): 1234.5 | "+
			"tokens per second per GPU: 4123.5 | learning rate: 1.500000E-04 | lm loss: 2.34%04dE+00 | grad norm: 0.512\n", i%60, i, i*1024, i%10000)
		switch i % 10 {
		case 3:
			fmt.Fprintf(&b, "node%d:%d:%d [%d] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM key_size=2048\n", i%64, 1000+i%9000, 2000+i%9000, i%8)
		case 5:
			b.WriteString("  tokenizer_model ................................. /data/tokenizer.model\n  moe_token_dispatcher_type .......... alltoall\n")
		case 7:
			b.WriteString(`  File "/opt/Megatron-LM/megatron/training/training.py", line 1023, in train_step: token_embedding.weight: torch.Size([128256, 4096])` + "\n")
		case 9:
			b.WriteString("+ export WANDB_API_KEY=0a1b2c3d4e5f60718293a4b5c6d7e8f901234567 HF_HOME=/data/hf\n")
		}
	}
	return b.String()[:size]
}

func BenchmarkTextOfALog(b *testing.B) {
	log := trainingLog(10 << 20)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		redact.Text(log)
	}
}

func BenchmarkLinesOfALog(b *testing.B) {
	log := trainingLog(10 << 20)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		for line := range strings.SplitSeq(log, "\n") {
			redact.Text(line)
		}
	}
}

// Quotes that never close must not make the search for their end quadratic.
func BenchmarkOpenQuotes(b *testing.B) {
	text := strings.Repeat(`token="a `, 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		redact.Text(text)
	}
}
