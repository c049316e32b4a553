package slurm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// BenchmarkParseQueue reads a queue of 10,000 jobs.
func BenchmarkParseQueue(b *testing.B) {
	var out strings.Builder
	for i := range 10000 {
		fmt.Fprint(&out, strings.Replace(running, "34_2", fmt.Sprint(i+1), 1))
	}
	text := out.String()
	for b.Loop() {
		jobs, err := slurm.ParseQueue(text, sep)
		if err != nil || len(jobs) != 10000 {
			b.Fatal(len(jobs), err)
		}
	}
}
