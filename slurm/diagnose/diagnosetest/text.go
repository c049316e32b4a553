// Package diagnosetest is shared by the tests of slurm/diagnose and of its subpackages: invented logs,
// labelled logs with their expected diagnoses, and short functions to diagnose logs.
package diagnosetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// PrintedArguments are a run's arguments as Megatron prints them.
const PrintedArguments = `  num_layers ...................................... 32
  hidden_size ..................................... 4096
  ffn_hidden_size ................................. 14336
  num_attention_heads ............................. 32
  group_query_attention ........................... True
  num_query_groups ................................ 8
  seq_length ...................................... 8192
  max_position_embeddings ......................... 8192
  micro_batch_size ................................ 4
  global_batch_size ............................... 256
  tensor_model_parallel_size ...................... 2
  pipeline_model_parallel_size .................... 1
  context_parallel_size ........................... 1
  sequence_parallel ............................... True
  use_distributed_optimizer ....................... True
  bf16 ............................................ True
  swiglu .......................................... True
  world_size ...................................... 64
`

// OOMLog is the log of a rank that runs out of GPU memory.
const OOMLog = "Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in step\n" +
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\n"

// Text diagnoses the log of a job that has ended.
func Text(t *testing.T, text string) report.Report {
	t.Helper()
	return With(t, text, diagnose.Context{JobState: "ENDED"})
}

// Raised returns a Python traceback that ends with the given line.
func Raised(line string) string { return RaisedIn("<module>", line) }

// RaisedIn returns a Python traceback that begins in a function, as of an exception that its caller caught, and not in the
// program's module.
func RaisedIn(function, line string) string {
	return "Traceback (most recent call last):\n  File \"/w/train.py\", line 9, in " + function + "\n    main()\n" + line + "\n"
}

// Old diagnoses a log that nobody has written to for long, of a job with unknown state.
func Old(t *testing.T, log string) report.Report {
	t.Helper()
	long := int64(1e6)
	return With(t, log, diagnose.Context{SecondsSinceLastWrite: &long})
}

// With diagnoses a log in a given context.
func With(t *testing.T, log string, c diagnose.Context) report.Report {
	t.Helper()
	src, err := logfile.Read("slurm-7.out", strings.NewReader(log))
	require.NoError(t, err)
	r, err := diagnose.Run(context.Background(), src, c)
	require.NoError(t, err)
	return r
}

// Rounds repeats lines n times, with {n} replaced by the number of the repetition.
func Rounds(n int, lines string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(lines, "{n}", fmt.Sprint(i+1)))
	}
	return b.String()
}
