package metrics

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func line(from int, values ...float64) (ps []Point) {
	for i, v := range values {
		ps = append(ps, Point{from + i, v})
	}
	return ps
}

// timed returns a run whose iterations take these milliseconds.
func timed(ms ...float64) (r Run) {
	for i, v := range ms {
		r.Iterations = append(r.Iterations, Iteration{N: i + 1, ElapsedMS: &v})
	}
	return r
}

// The golden file pins the charts, dot for dot.
func TestRunsAreDrawnAsTheyAre(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct {
		name          string
		runs          [][]Point
		width, height int
	}{
		{"one that falls", [][]Point{line(1, 9, 7, 5, 4, 3, 2.5, 2.2, 2.1)}, 40, 6},
		{"two that cross", [][]Point{line(1, 1, 2, 3, 4), line(3, 4, 3, 2, 1)}, 30, 4},
		{"one that is flat", [][]Point{line(10, 2, 2, 2)}, 20, 3},
		{"a point beside a line", [][]Point{line(5, 3), line(1, 0, 9)}, 20, 3},
		{"large and small", [][]Point{line(1, 123456, 0.0001, 250.4, -3)}, 24, 3},
		{"too narrow", [][]Point{line(1, 1, 2)}, 11, 3},
		{"just wide enough", [][]Point{line(1, 1, 2)}, 12, 2},
		{"too narrow for its labels", [][]Point{line(1, 1e-9, 2)}, 13, 3},
		{"too low", [][]Point{line(1, 1, 2)}, 20, 1},
		{"nothing", nil, 20, 4},
	} {
		fmt.Fprintf(&b, "== %s\n%s\n", c.name, Chart(c.name, c.runs, c.width, c.height))
	}
	b.WriteString("== without a title\n" + Chart("", [][]Point{line(1, 1, 2)}, 20, 2) + "\n")
	for _, n := range []int{0, 1, 3, 8, 20} {
		fmt.Fprintf(&b, "== in %d cells: %s\n", n, Sparkline(line(1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1), n))
	}
	one, batch, samples, at := losses(4, 3, 3.5), 8, int64(16), time.Unix(60, 0).UTC()
	one.Name, one.Of = "one", 10
	one.Iterations[1].GlobalBatch, one.Iterations[1].Samples, one.Iterations[1].Time = &batch, &samples, &at
	two := timed(append(repeated(1000, 30), repeated(1500, 15)...)...)
	two.Name, two.Of = "two", 100
	runs := []Run{one, two}
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		require.NoError(t, view.Text(&b, View(runs, []Summary{one.Summary(), two.Summary()}, l), view.Style{}))
	}
	require.NoError(t, one.WriteCSV(&b))
	file := filepath.Join("testdata", "shown.txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// A run counts as slow only after minIterations and for long enough: with one report or iteration less
// there is no finding.
func TestWhatIsSlowIsSlowForLong(t *testing.T) {
	mfu := func(v float64, n int) (r Run) {
		for i := range n {
			r.Iterations = append(r.Iterations, Iteration{N: i + 1, MFU: &v})
		}
		return r
	}
	reports := func(last int, all ...Slowest) Run {
		return Run{Slowest: all, Iterations: []Iteration{{N: last}}}
	}
	is := func(rank int, share float64) Slowest { return Slowest{Iteration: 10, Rank: rank, Share: share} }
	judged := Slowest{Iteration: 10, Rank: 4, Judged: true}
	for name, tt := range map[string]struct {
		check func(Run) (Finding, bool)
		run   Run
		says  string
	}{
		"a quarter longer":                  {slower, timed(append(repeated(1000, 30), repeated(1250, 15)...)...), ""},
		"more than a quarter longer":        {slower, timed(append(repeated(1000, 30), repeated(1260, 15)...)...), "Iterations take 1260 ms now, 26 % longer than the 1000 ms before."},
		"longer but for four of fifteen":    {slower, timed(append(append(repeated(1000, 30), repeated(2000, 11)...), repeated(1000, 4)...)...), ""},
		"longer but for three of fifteen":   {slower, timed(append(append(repeated(1000, 30), repeated(2000, 12)...), repeated(1000, 3)...)...), "100 % longer"},
		"longer in a run of 35":             {slower, timed(append(repeated(1000, 20), repeated(2000, 15)...)...), "100 % longer"},
		"longer in a run of 34":             {slower, timed(append(repeated(1000, 19), repeated(2000, 15)...)...), ""},
		"slow at first only":                {slower, timed(append(append(repeated(100, 10), repeated(1000, 20)...), repeated(1100, 15)...)...), ""},
		"a fifth of the peak":               {slowStart, mfu(0.2, 20), ""},
		"less than a fifth of the peak":     {slowStart, mfu(0.19, 20), "reaches 19 %"},
		"less than that for nineteen":       {slowStart, mfu(0.19, 19), ""},
		"one rank in three reports":         {straggler, reports(10, is(4, 0.85), is(4, 0.5), is(4, 0.7)), "Rank 4 is a straggler: it reaches 70 % of the others' speed"},
		"one rank in two reports":           {straggler, reports(10, is(4, 0.5), is(4, 0.5)), ""},
		"another rank before":               {straggler, reports(10, is(3, 0.5), is(4, 0.5), is(4, 0.5)), ""},
		"another rank long before":          {straggler, reports(10, is(3, 0.5), is(4, 0.5), is(4, 0.5), is(4, 0.5)), "Rank 4"},
		"a rank that is slower by little":   {straggler, reports(10, is(4, 0.86), is(4, 0.5), is(4, 0.5)), ""},
		"a rank that the program calls one": {straggler, reports(110, judged), "Rank 4 is a straggler: all others wait for it."},
		"one that it called one long ago":   {straggler, reports(111, judged), ""},
		"no reports":                        {straggler, Run{}, ""},
	} {
		f, ok := tt.check(tt.run)
		require.Equal(t, tt.says != "", ok, "%s: %s", name, f.What.EN)
		require.Contains(t, f.What.EN, tt.says, name)
		require.Equal(t, ok, f.What.ZH != "", name)
	}
	grows := timed(append(repeated(1000, 30), repeated(2000, 15)...)...)
	for i := range grows.Iterations {
		batch := 8
		if i >= 30 {
			batch = 16
		}
		grows.Iterations[i].GlobalBatch = &batch
	}
	_, ok := slower(grows)
	require.False(t, ok, "a batch twice as large takes twice as long")
	none, unknown := 0, Iteration{GlobalBatch: new(int)}
	require.Nil(t, sampleTime.of(unknown))
	require.Equal(t, 1000.0, *sampleTime.of(Iteration{ElapsedMS: &[]float64{1000}[0], GlobalBatch: &none}))
}

// The run's own numbers decide which change is advised, in this order.
func TestWhatToChangeOfASlowRun(t *testing.T) {
	data := timed(repeated(1000, 20)...)
	data.Timers = map[string][]float64{"batch-generator": {100, 100}}
	for name, tt := range map[string]struct {
		run   Run
		args  map[string]string
		fixes string
	}{
		"slow data":                    {run: data, fixes: "takes 10 % of an iteration, so data loading is slow: --num-workers 4,"},
		"slow data, of many workers":   {run: data, args: map[string]string{"num_workers": "8"}, fixes: "--num-workers 16,"},
		"slow data, of one worker":     {run: data, args: map[string]string{"num_workers": "1"}, fixes: "--num-workers 4,"},
		"data that are not slow":       {run: Run{Iterations: data.Iterations, Timers: map[string][]float64{"batch-generator": {99}}}, fixes: "Check data loading"},
		"room":                         {run: Run{GPU: "h100", Memory: []Memory{{MaxMB: 20000}, {MaxReserveMB: 30000}}}, fixes: "GiB of each GPU are not used: --micro-batch-size, or"},
		"room, with a batch":           {run: Run{GPU: "h100", Memory: []Memory{{MaxMB: 20000}}}, args: map[string]string{"micro_batch_size": "2"}, fixes: "--micro-batch-size 4, or"},
		"room, and all is recomputed":  {run: Run{GPU: "h100", Memory: []Memory{{MaxMB: 20000}}}, args: map[string]string{"recompute_granularity": "full"}, fixes: "recompute less"},
		"no room":                      {run: Run{GPU: "h100", Memory: []Memory{{MaxMB: 70000}}}, fixes: "Check data loading"},
		"room of a GPU nobody knows":   {run: Run{GPU: "x", Memory: []Memory{{MaxMB: 1}}}, fixes: "Check data loading"},
		"tensors that leave the node":  {args: map[string]string{"tensor_model_parallel_size": "16"}, fixes: "Tensor parallelism of 16"},
		"tensors that stay there":      {args: map[string]string{"tensor_model_parallel_size": "8"}, fixes: "Check data loading"},
		"nothing overlaps":             {args: map[string]string{"overlap_grad_reduce": "False"}, fixes: "--overlap-grad-reduce --overlap-param-gather --use"},
		"what overlaps already is not": {args: map[string]string{"overlap_grad_reduce": "True"}, fixes: "Check data loading"},
	} {
		r := tt.run
		r.args = tt.args
		require.Contains(t, r.slowFix().EN, tt.fixes, name)
	}
}

// A long line is thinned out and drawn with its running mean; a short one is drawn as it is.
func TestLongLinesAreThinned(t *testing.T) {
	for n, want := range map[int][2]int{1: {1, 0}, smoothFrom - 1: {smoothFrom - 1, 0}, smoothFrom: {smoothFrom, smoothFrom}, maxDrawn - 1: {maxDrawn - 1, maxDrawn - 1}, maxDrawn: {maxDrawn / 2, maxDrawn / 2}, 3*maxDrawn + 2: {3001, 3001}} {
		p, ok := panel([]Run{losses(repeated(2, n)...)}, Loss)
		require.True(t, ok)
		require.Equal(t, want, [2]int{len(p.Lines[0].Points), len(p.Lines[0].Behind)}, n)
	}
	p, ok := panel([]Run{losses(2, 4), losses(), losses(3)}, Loss)
	require.True(t, ok)
	require.Len(t, p.Lines, 2)
	require.InDelta(t, 1.84, p.Low, 1e-9)
	require.InDelta(t, 4.32, p.High, 1e-9)
	_, ok = panel([]Run{losses(2)}, GradNorm)
	require.False(t, ok)
	require.Equal(t, []Point{{1, 2}, {2, 3}, {3, 5}, {4, 7}}, runningMean(line(1, 2, 4, 6, 8), 2))
}

// A line that only resembles an iteration line is ignored.
func TestLinesThatAreNoIterations(t *testing.T) {
	for head, want := range map[string]int{
		"iteration 5/ 10 |": 1, "iteration 0/ 10 |": 1, "iteration -1/ 10 |": 0, "iteration x/ 10 |": 0, "iter 5/ 10 |": 0, "iteration 7 |": 1,
	} {
		require.Len(t, logged(t, head+" elapsed time per iteration (ms): 1.0 | consumed samples: x | lm loss: 2 |\n").Iterations, want, head)
	}
}

// Of ranks that are equally slow, the same one is named each time.
func TestOfEquallySlowRanksOneIsNamed(t *testing.T) {
	for range 20 {
		r := newReader("run", "")
		r.timer, r.byRank = "forward-compute", map[int]float64{0: 1, 1: 1, 2: 2, 5: 4, 7: 4}
		r.finishRankTimer()
		require.Equal(t, []Slowest{{Rank: 7, Share: 0.5}}, r.run.Slowest)
	}
}

func TestTheMostMemoryByAnIteration(t *testing.T) {
	r := losses(1, 1, 1)
	r.peak = map[int]float64{2: 2048, 9: 1024}
	r.Iterations[0].Other = map[string]float64{"mem-max-allocated-bytes": 3 << 30}
	r.Iterations[1].Other = map[string]float64{"mem-max-allocated-bytes": 1 << 30}
	require.Equal(t, []Point{{1, 3}, {2, 2}, {9, 1}}, r.PeakMemory())
}
