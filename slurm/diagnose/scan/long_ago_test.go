package scan_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// TestWhatWasSaidBeforeIterations has words of an end and of a failure, and Megatron's iterations after
// them. A digest gives the same answer.
func TestWhatWasSaidBeforeIterations(t *testing.T) {
	steps := func(from, to int) string {
		var b strings.Builder
		for n := from; n <= to; n++ {
			fmt.Fprintf(&b, " iteration %8d/%8d | consumed samples: %d | elapsed time per iteration (ms): 900.0 | lm loss: 2.31E+00 |\n", n, 500, n*8)
		}
		return b.String()
	}
	const failed, written, finished, end = "The evaluation script failed\n", "The results were written to /w/out\n", "Training finished.\n", "Total time: 31 s\n"
	for name, c := range map[string]struct{ log, class string }{
		"a failure, and an end":             {steps(1, 9) + failed + steps(10, 300) + end, outcome.Success},
		"a failure, two steps and an end":   {steps(1, 9) + failed + steps(10, 11) + end, outcome.UnknownExit},
		"a failure, three steps and an end": {steps(1, 9) + failed + steps(10, 12) + end, outcome.Success},
		"words of an end":                   {steps(1, 9) + finished + steps(10, 300), outcome.UnknownExit},
		"words of an end, two steps":        {steps(1, 9) + finished + steps(10, 11), outcome.Success},
		"words of an end, three steps":      {steps(1, 9) + finished + steps(10, 12), outcome.UnknownExit},
		"results":                           {steps(1, 9) + written + steps(10, 300), outcome.UnknownExit},
		"results after the steps":           {steps(1, 300) + written, outcome.Success},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, "Loading\n"+c.log)
			require.Equal(t, c.class, r.Class, r.RootLine)
			long := int64(1e6)
			src, err := logfile.Read("slurm-7.out", strings.NewReader("Loading\n"+c.log))
			require.NoError(t, err)
			digested, err := diagnose.Run(t.Context(), digestOf(t, src, 1<<12), diagnose.Context{SecondsSinceLastWrite: &long})
			require.NoError(t, err)
			require.Equal(t, c.class, digested.Class)
		})
	}
}

// TestLinesOfOneForm has lines that differ in numbers, paths, or how far a bar has come, and others.
func TestLinesOfOneForm(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"tqdm":                  {"Epoch 1:   6%|▌         | 3/50 [00:03<00:47, 3.20it/s]", "Epoch 12: 100%|██████████| 500/500 [01:03<00:00,  1.05s/it]", true},
		"tqdm of another name":  {"Train:   6%|▌         | 3/50 [00:03<00:47, 3.20it/s]", "Eval:   6%|▌         | 3/50 [00:03<00:47, 3.20it/s]", false},
		"drawn by a program":    {"[####      ] 40%", "[##########] 100%", true},
		"with a name":           {"Progress: |==>      | 30.0% Complete", "Progress: |=======>  | 70.0% Complete", true},
		"the percentage before": {"Copy 30% [==>      ]", "Copy 100% [=========]", true},
		"a download":            {"Downloading 9% 812kB/s", "Downloading 10% 1.2 MB/s", true},
		"counts":                {"Epoch 1/9: loss 0.51", "Epoch 10/12: loss 12.5", true},
		"paths":                 {"reading /w/a/1.bin", "reading /w/b/23.bin", true},
		"other words":           {"the loss is 3", "the rate is 3", false},
		"a percentage alone":    {"GPU 3: 5% of the pages failed", "GPU 3: 5% of the pages are new", false},
		"a list":                {"[1, 2, 3] rows read", "[1, 2, 3] rows lost", false},
	} {
		require.Equal(t, c.same, scan.Form(c.a) == scan.Form(c.b), "%s: %q %q", name, scan.Form(c.a), scan.Form(c.b))
	}
	pieces := scan.Pieces([]byte("a: 1/9 [00:03<00:47, 3.20it/s]\ra: 2/9 [00:03<00:47, 3.20it/s]Killed"))
	require.Equal(t, "a: 1/9 [00:03<00:47, 3.20it/s]\na: 2/9 [00:03<00:47, 3.20it/s]\nKilled", string(bytes.Join(pieces, []byte("\n"))))
}
