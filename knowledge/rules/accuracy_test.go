package rules

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/recipes"
)

//go:generate go test -run TestAccuracyPageIsCurrent . -update

const accuracyPage = "../../docs/accuracy.md"

// A publishedRun is a configuration whose run somebody published.
type publishedRun struct {
	ID, Source, GPU, Model, Note, Entry string
	GPUs                                int
	GPUsPerNode                         int `json:"gpus_per_node"`
	Fits                                bool
	Layout                              []int   // TP, PP, CP, EP
	MeasuredGB                          float64 `json:"measured_gb"`
	TFLOPS                              float64
	Argv                                []string
}

// layoutFlags are the flags of a layout; true where a value follows.
var layoutFlags = map[string]bool{
	"--tensor-model-parallel-size": true, "--pipeline-model-parallel-size": true, "--context-parallel-size": true,
	"--expert-model-parallel-size": true, "--num-virtual-stages-per-pipeline-rank": true, "--micro-batch-size": true,
	"--expert-tensor-parallel-size": true, "--recompute-granularity": true, "--recompute-method": true, "--recompute-num-layers": true,
	"--pipeline-model-parallel-layout": true, "--recompute-modules": true, "--sequence-parallel": false,
	"--account-for-embedding-in-pipeline-split": false, "--account-for-loss-in-pipeline-split": false,
}

// modelAlone returns the arguments without the layout.
func (p publishedRun) modelAlone() []string {
	var out []string
	for i := 0; i < len(p.Argv); i++ {
		valued, is := layoutFlags[p.Argv[i]]
		if !is {
			out = append(out, p.Argv[i])
			continue
		}
		for valued && i+1 < len(p.Argv) && !strings.HasPrefix(p.Argv[i+1], "--") {
			i++
		}
	}
	return out
}

// An estimate holds our results for a published run.
type estimate struct {
	gib, low, high, usable float64
	fit                    bool
	ours                   float64 // GB that torch allocates
	rank, of               int
	slower                 float64
	tflops                 float64
	slowest, fastest       float64 // the displayed range of TFLOP/s
}

func estimateOf(t *testing.T, p publishedRun) estimate {
	gpu, ok := megatron.LookupGPU(p.GPU)
	require.True(t, ok, p.GPU)
	args, faults := megatron.Parse(megatron.Run{Entry: p.Entry, Argv: p.Argv, WorldSize: p.GPUs, Arch: gpu.Arch, Env: map[string]string{}})
	require.Empty(t, faults, p.ID)
	c := args.Effective()
	m := c.Memory()
	low, high := c.Band()
	e := estimate{gib: m.GiB(), low: low * m.GiB(), high: high * m.GiB(), usable: gpu.MemoryGiB, fit: (m.GiB() <= gpu.MemoryGiB) == p.Fits}
	e.ours = m.Bytes
	for _, p := range m.Parts {
		if p.Name == megatron.PartFramework {
			e.ours -= p.Bytes
		}
	}
	e.ours /= 1e9
	if len(p.Layout) == 0 {
		return e
	}
	r, err := Recommend(Question{Entry: p.Entry, Argv: p.modelAlone(), GPUs: p.GPUs, GPUsPerNode: p.GPUsPerNode, GPU: p.GPU})
	require.NoError(t, err, p.ID)
	var seen [][4]int
	for _, o := range r.Options {
		k := [4]int{o.TP, o.PP, o.CP, max(o.EP, 1)}
		if slices.Contains(seen, k) {
			continue
		}
		seen = append(seen, k)
		if slices.Equal(k[:], p.Layout) {
			e.rank, e.slower, e.tflops = len(seen), o.StepSeconds/r.Options[0].StepSeconds-1, o.TFLOPs
			e.slowest, e.fastest = o.Low, o.High
		}
	}
	e.of = len(seen)
	return e
}

func publishedRuns(t *testing.T, file string) []publishedRun {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var all []publishedRun
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var p publishedRun
		require.NoError(t, json.Unmarshal(lines.Bytes(), &p))
		all = append(all, p)
	}
	return all
}

// TestAccuracyPageIsCurrent compares the page with the estimates, and the estimates
// with published measurements.
func TestAccuracyPageIsCurrent(t *testing.T) {
	known := compareWithEstimates(t, publishedRuns(t, "testdata/published.jsonl"))
	later := compareWithEstimates(t, publishedRuns(t, "testdata/published_later.jsonl"))
	own := compareWithEstimates(t, recipeRuns())
	measured, peaks := comparePeaks(t, publishedRuns(t, "testdata/measured.jsonl"))
	page := fmt.Sprintf(
		accuracyText,
		known.fit, later.fit, own.fit,
		known.peak, measured,
		known.layout, later.layout, own.layout,
		known.speed, later.speed, own.speed,
		known.band, later.band, own.band,
		known.rows.String(), later.rows.String(), own.rows.String(), peaks,
	)
	if *update {
		require.NoError(t, os.WriteFile(accuracyPage, []byte(page), 0o644))
	}
	was, err := os.ReadFile(accuracyPage)
	require.NoError(t, err)
	require.Equal(t, page, string(was), "go generate ./knowledge/rules writes docs/accuracy.md")
	for _, s := range []tally{known.fit, later.fit, own.fit, known.peak, measured} {
		require.Equal(t, s.of, s.good)
	}
	for _, s := range []tally{known.layout, known.speed, later.layout, later.speed, own.layout, own.speed} {
		require.GreaterOrEqual(t, float64(s.good), 0.9*float64(s.of))
	}
}

// A tally counts correct estimates.
type tally struct{ good, of int }

// count counts one estimate and returns the mark to print after it: a cross where it
// is wrong.
func (s *tally) count(good bool) string {
	s.of++
	if good {
		s.good++
		return ""
	}
	return " ✗"
}

func (s tally) String() string { return fmt.Sprintf("%d of %d", s.good, s.of) }

// A comparison holds the page's rows for a set of runs and the numbers of correct
// estimates.
type comparison struct {
	fit, layout, speed, peak, band tally
	rows                           strings.Builder
}

func compareWithEstimates(t *testing.T, runs []publishedRun) *comparison {
	s := &comparison{}
	for _, p := range runs {
		e := estimateOf(t, p)
		ran := "ran"
		if !p.Fits {
			ran = "out of memory"
		}
		memory := fmt.Sprintf("%.0f to %.0f of %.1f%s", e.low, e.high, e.usable, s.fit.count(e.fit))
		if p.MeasuredGB > 0 {
			memory += fmt.Sprintf("; allocated %.1f GB, ours %.1f%s", p.MeasuredGB, e.ours, s.peak.count(math.Abs(e.ours/p.MeasuredGB-1) <= 0.15))
		}
		place, rate := "", ""
		if len(p.Layout) > 0 {
			good := e.rank > 0 && (e.rank <= 10 || e.slower <= 0.10)
			place = fmt.Sprintf("TP%d PP%d CP%d EP%d: %d of %d, %+.0f %%%s", p.Layout[0], p.Layout[1], p.Layout[2], p.Layout[3], e.rank, e.of, 100*e.slower, s.layout.count(good))
			if p.TFLOPS > 0 {
				good := e.tflops/p.TFLOPS >= 0.75 && e.tflops/p.TFLOPS <= 4.0/3
				rate = fmt.Sprintf("%.0f, ours %.0f%s", p.TFLOPS, e.tflops, s.speed.count(good))
				s.band.count(p.TFLOPS >= e.slowest && p.TFLOPS <= e.fastest)
			}
		}
		fmt.Fprintf(&s.rows, "| %s | %d %s, %s | %s | %s | %s |\n", p.ID, p.GPUs, p.GPU, ran, memory, place, rate)
	}
	return s
}

// comparePeaks compares the peak that PyTorch measured on the fullest rank with the
// estimate. It returns the number within 15 %, and the page's rows.
func comparePeaks(t *testing.T, runs []publishedRun) (within tally, rows string) {
	var b strings.Builder
	for _, p := range runs {
		ours := estimateOf(t, p).ours
		off := ours/p.MeasuredGB - 1
		fmt.Fprintf(&b, "| %s | %d | %.1f | %.1f, %+.0f %%%s |\n", p.ID, p.GPUs, p.MeasuredGB, ours, 100*off, within.count(math.Abs(off) <= 0.15))
	}
	return within, b.String()
}

// recipeRuns returns the recipes' layouts with a published speed.
func recipeRuns() []publishedRun {
	var all []publishedRun
	for _, m := range recipes.Models() {
		for _, r := range m.Runs {
			if r.TFLOPS == 0 {
				continue
			}
			all = append(all, publishedRun{
				ID: m.Name + " " + r.Type, Entry: m.Entry, GPU: r.GPU, GPUs: r.GPUs,
				GPUsPerNode: min(r.GPUs, recipes.PerNode(r.GPU)), Fits: true,
				Layout: []int{r.TP, r.PP, r.CP, r.EP}, TFLOPS: r.TFLOPS, Argv: append(m.Argv(megatron.Main), r.Argv()...),
			})
		}
	}
	return all
}

const accuracyText = `# How accurate the estimates are

This page compares the estimates of ` + "`memory` and `recommend`" + ` with published runs. ` + "`go generate ./knowledge/rules`" + ` writes it from
` + "`knowledge/rules/testdata/published.jsonl` and `published_later.jsonl`" + `, which name each source, and from the recipes. A test fails when the
page is not current.

| question | runs to which the estimates were fitted | runs that were labelled later | recipes |
|---|---|---|---|
| does it fit | %s | %s | %s |
| is torch's peak within 15 %% of the measured peak | %s; of our own runs %s | | |
| is the published layout among the first ten, or at most 10 %% slower than the first | %s | %s | %s |
| is the speed within -25 and +33 %% of the measured speed | %s | %s | %s |
| is the measured speed within the displayed range | %s | %s | %s |

A published layout was tuned, but it need not be the optimum. A peak is that of one rank. ✗ marks a wrong estimate. The rank counts layouts that
differ in TP, PP, CP or EP; the percentage says how much slower than the first the layout is.

## Runs to which the estimates were fitted

| run | GPUs | memory in GiB: ours | the published layout among ours | TFLOP/s a GPU |
|---|---|---|---|---|
%s
## Runs that were labelled later

These runs were labelled before they were estimated; no constant was fitted to them.

| run | GPUs | memory in GiB: ours | the published layout among ours | TFLOP/s a GPU |
|---|---|---|---|---|
%s
## The recipes

These are the recipes of ` + "`megatron-ops recipes list`" + ` that have a speed. As the software improved, the same layout was published with speeds that differ
by up to a half; the recipe has the latest. The paper on gpt-1.7b to gpt-1t (arXiv:2104.04473) also counts the operations of the recompute, which
is a third more than in Megatron's log and our estimates.

| recipe | GPUs | memory in GiB: ours | the published layout among ours | TFLOP/s a GPU |
|---|---|---|---|---|
%s
## Peaks that we measured

Megatron-Core 0.19 with PyTorch 2.11 on one H100, four steps each; ranks share the GPU. Without Transformer Engine and Apex: the layers are Megatron's
own (--transformer-impl local), whose attention keeps its scores. With Transformer Engine the scores are absent, unless the run is in fp32 or the GPU is
older than Ampere, and the rest is counted alike. The numbers are the GB that PyTorch allocates on the fullest rank at most, without CUDA's context
(0.65 GB of a process) and NCCL's buffers (0.5 GB over sockets). The allowances for fp32, SGD, the attention's scores and Megatron's fused loss were
fitted to these runs. ` + "`knowledge/rules/testdata/measured.jsonl`" + ` has the arguments.

| run | ranks | measured, GB | ours |
|---|---|---|---|
%s
## What the numbers mean

- Memory is that of the fullest GPU. Parameters, gradients and optimizer states are counted. Activations follow Korthikanti et al.
  (arXiv:2205.05198), extended to experts, latent attention, Mamba, context parallelism and recompute by module. CUDA, NCCL and the
  allocator have a fixed reserve. The range is ±5 to 8 %% for dense models, and 12 %% below to 8 %% above for experts, whose tokens are uneven.
- A layout that fits only at the lower end of the range ranks after all others.
- Usable memory is the memory that PyTorch can allocate, which is less than on the data sheet: 79.1 GiB of an H100, 178.4 of a B200, 184.3 of a GB200.
- A TFLOP/s counts a token's operations like Megatron's log. The count is within 2 %% of ten published runs that state both tokens and TFLOP/s. The
  log assumes that Mamba mixers are twice as wide as the hidden size, whatever their heads. Our TFLOP/s follow the log, our times do not. Latent
  attention counts with its own widths, a window with the tokens in it, and each depth of multi-token prediction with the experts that a token uses.
- The speed is shown with the range of these runs: 0.85 to 1.20 of the estimate for dense models, 0.75 to 1.35 for experts. No speed is shown where
  no similar run was published: GPUs before Ampere, GPUs without NVLink, experts on Ampere, FP8 by blocks, and fp32.
- The estimate assumes a tuned layout: CUDA graphs and grouped kernels on Blackwell, and the best virtual stages, micro-batch and recompute that fit.

## What is not modelled

- DualPipe and schedules other than 1F1B and its interleaved form. Combined forward and backward passes hide as much communication as
  --overlap-moe-expert-parallel-comm.
- Rails, oversubscription and congestion of the network. The estimate assumes one port for each GPU: 800 Gb/s in the B300 generation, 400 since
  Hopper, 200 on Ampere.
- The host's time for Python and kernel launches, apart from a fixed time for each expert layer and each expert on a rank.
- The version of the libraries. On Blackwell the same run became up to 1.5 times as fast within a year.
- The width of latent experts in the traffic of tokens. The estimate uses the hidden size, because the speeds are closer then (32 of 34 published
  for Nemotron 3 Super; 6 with the latent width): the other costs of so many small experts are not modelled either. Where expert groups span NVLink
  domains, as on B200 and H100, the estimate is therefore too slow.
- Data loading, checkpoints, evaluation and logging.
- Offloading of activations and of the optimizer's work to the CPU slows a step; the memory that it frees is counted, the time is not.
`
