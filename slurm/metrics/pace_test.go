package metrics

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func logged(t *testing.T, text string) Run {
	t.Helper()
	r, err := ReadFrom("run", strings.NewReader(text), "h100")
	require.NoError(t, err)
	return r
}

// The remaining time follows the times in the lines, because evaluation and checkpoints take time
// between iterations; without times it follows the median iteration.
func TestTheRemainingTimeFollowsTheRunsOwnPace(t *testing.T) {
	clock := func(minute int) string { return fmt.Sprintf("[2026-06-11 10:%02d:00.000000] ", minute) }
	at := func(head string, n int) string {
		return fmt.Sprintf("%siteration %d/ 10 | elapsed time per iteration (ms): 30000.0 |\n", head, n)
	}
	for name, tt := range map[string]struct {
		log  string
		want time.Duration
		ok   bool
	}{
		"nothing yet":                     {"", 0, false},
		"no end is said":                  {"iteration 3 | elapsed time per iteration (ms): 30000.0 |\n", 0, false},
		"the clock, a minute each":        {at(clock(1), 1) + at(clock(2), 2) + at(clock(3), 3), 7 * time.Minute, true},
		"the clock, with an evaluation":   {at(clock(1), 1) + at(clock(2), 2) + at(clock(3), 3) + at(clock(7), 4), 12 * time.Minute, true},
		"no clock, and a slow beginning":  {strings.ReplaceAll(at("", 1)+at("", 2), "30000", "90000") + at("", 3) + at("", 4), 3 * time.Minute, true},
		"the clock, some lines missing":   {at(clock(1), 1) + at(clock(9), 5), 10 * time.Minute, true},
		"no clock":                        {at("", 1) + at("", 2), 4 * time.Minute, true},
		"no clock at first":               {at("", 1) + at(clock(9), 2), 4 * time.Minute, true},
		"no clock at last":                {at(clock(1), 1) + at("", 2), 4 * time.Minute, true},
		"a clock that went back":          {at(clock(9), 1) + at(clock(1), 2), 4 * time.Minute, true},
		"one line":                        {at(clock(1), 4), 3 * time.Minute, true},
		"the last iteration":              {at(clock(1), 9) + at(clock(2), 10), 0, true},
		"the last, without time or clock": {"iteration 10/ 10 | elapsed time per iteration (ms): - |\n", 0, true},
		"beyond the last":                 {"iteration 11/ 10 | elapsed time per iteration (ms): - |\n", 0, true},
		"neither time nor clock":          {"iteration 9/ 10 | elapsed time per iteration (ms): - |\n", 0, false},
	} {
		eta, ok := logged(t, tt.log).ETA()
		require.Equal(t, tt.ok, ok, name)
		require.Equal(t, tt.want, eta, name)
	}
}

func TestTheTimeOfALineIsReadOrLeftOut(t *testing.T) {
	want := time.Date(2026, 11, 20, 7, 58, 11, 116419000, time.UTC)
	for head, ok := range map[string]bool{
		" [2026-11-20 07:58:11.116419] ":            true,
		"[default7]: [2026-11-20 07:58:11.116419]":  true,
		"[2026-11-20 07:58:11.116419 ":              false,
		"2026-11-20 07:58:11.116419] ":              false,
		"[2026-11-20 07:58:11.116419] [default7]: ": false,
		"[2026-11-20T07:58:11] ":                    false,
		"[2026-13-20 07:58:11.116419] ":             false,
		"":                                          false,
		"[2026-11-20 07:58:11.116419":               false,
	} {
		it := logged(t, head+"iteration 5/ 10 | elapsed time per iteration (ms): 1.0 |\n").Iterations[0]
		require.Equal(t, ok, it.Time != nil, head)
		if ok {
			require.Equal(t, want, *it.Time, head)
		}
	}
}

// Of a job's folder only logs and event files are read, and nothing behind links.
func TestOnlyLogsOfAFolderAreRead(t *testing.T) {
	dir := t.TempDir()
	names := []string{
		"a.log", "b.out", "c.ERR", "d.txt", "log", "train.o4711", "train.4711", "train.4711.o",
		"4711.o", "gpt-4711.O", "gpt.stdout", "gpt.log-20261123", "gpt.log.bak", "TRAIN.O4711", "gpt.gpu3",
		"e.py", "f.json", "g.log.gz", "g.log.ZST", "old.tar", "old.zip", "h.csv", "i.o", ".j.log", ".git/log", ".venv/log",
	}
	const read = 15
	for i, name := range names {
		line := fmt.Sprintf("iteration %d/ 10 | elapsed time per iteration (ms): 1.0 |\n", i+1)
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.ckpt"), []byte("iteration 99/ 10 | elapsed time per iteration (ms): 1.0 |\n"+strings.Repeat("\x00\x01\x02\xc8", 4096)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a-program"), []byte("\x7fELF\niteration 99/ 10 | elapsed time per iteration (ms): 1.0 |\n"), 0o600))
	outside := filepath.Join(t.TempDir(), "x.log")
	require.NoError(t, os.WriteFile(outside, []byte("iteration 10/ 10 | elapsed time per iteration (ms): 1.0 |\n"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "y.log")))
	whole, err := Read(context.Background(), nil, dir, "")
	require.NoError(t, err)
	recent, err := Recent(context.Background(), nil, []string{dir}, "")
	require.NoError(t, err)
	for _, r := range []Run{whole, recent} {
		var from []string
		for _, it := range r.Iterations {
			from = append(from, names[it.N-1])
		}
		require.Equal(t, names[:read], from)
	}
	_, err = Read(context.Background(), nil, filepath.Join(dir, "none.log"), "")
	require.ErrorContains(t, err, "none.log")
}

// A step of an event file is an iteration if it has one of an iteration's numbers.
func TestStepsWithNumbersOfAnIterationAreKept(t *testing.T) {
	for tag, want := range map[string]struct {
		kept                   bool
		loss, ms, tflops, grad float64
	}{
		"lm loss":                         {kept: true, loss: 2},
		"iteration-time":                  {kept: true, ms: 2000},
		"throughput":                      {kept: true, tflops: 2},
		"grad-norm":                       {kept: true, grad: 2},
		"learning-rate":                   {kept: true},
		"batch-size":                      {},
		"mtp_1 loss":                      {},
		"lm loss vs samples":              {},
		"lm loss validation":              {},
		"validation/lm loss validation":   {},
		"lm loss validation vs samples x": {},
	} {
		r := newReader("run", "")
		require.NoError(t, r.events(context.Background(), bytes.NewReader(eventFile(3, tag, 2))), tag)
		run := r.finish()
		require.Equal(t, want.kept, len(run.Iterations) == 1, tag)
		require.Equal(t, strings.HasSuffix(tag, "lm loss validation"), len(run.Validation) == 1, tag)
		if !want.kept {
			continue
		}
		it := run.Iterations[0]
		require.Equal(t, 3, it.N, tag)
		require.Equal(t, time.Unix(1700000000, 0).UTC(), *it.Time, tag)
		for i, v := range []*float64{it.Loss, it.ElapsedMS, it.TFLOPs, it.GradNorm} {
			expected := []float64{want.loss, want.ms, want.tflops, want.grad}[i]
			require.Equal(t, expected != 0, v != nil, tag)
			if v != nil {
				require.Equal(t, expected, *v, tag)
			}
		}
	}
	r := newReader("run", "")
	require.NoError(t, r.events(context.Background(), bytes.NewReader(eventFile(0, "world-size", 16))))
	require.Equal(t, 16, r.finish().WorldSize)

	// A damaged file is read as far as it goes.
	below := bytes.Replace(eventFile(3, "lm loss", 2), []byte{0x10, 3}, []byte{0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 1)
	below[0] += 9
	for name, damage := range map[string][]byte{"a length of nonsense": binary.LittleEndian.AppendUint64(nil, 1<<62), "an iteration below zero": below} {
		r := newReader("run", "")
		require.NoError(t, r.events(context.Background(), bytes.NewReader(append(eventFile(3, "lm loss", 2), append(damage, make([]byte, 8)...)...))), name)
		run := r.finish()
		require.Len(t, run.Iterations, 1, name)
		require.Equal(t, 3, run.Iterations[0].N, name)
	}
}

// eventFile returns an event file with one scalar, and with the fields around it that TensorBoard
// writes too: a log message before the summary, metadata after it.
func eventFile(step byte, tag string, v float32) []byte {
	sized := func(n int, b []byte) []byte { return append([]byte{byte(n<<3 | 2), byte(len(b))}, b...) }
	bits := math.Float32bits(v)
	value := append(sized(1, []byte(tag)), 0x15, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	wall := math.Float64bits(1700000000)
	event := []byte{0x09}
	for i := range 8 {
		event = append(event, byte(wall>>(8*i)))
	}
	event = append(append(event, 0x10, step), sized(5, sized(1, value))...)
	event = append(append(event, sized(9, []byte("metadata"))...), 0x28, 1) // field 5 of another wire type is ignored
	file := append(make([]byte, 12), event...)
	file[0] = byte(len(event))
	return append(file, 0, 0, 0, 0)
}

// The first iteration sets up the run, and Megatron-LM's second report averages both.
func TestTheFirstTwoReportsAreNotThePace(t *testing.T) {
	s := logged(t, "  world_size ........ 4\n  seq_length ........ 512\n"+
		" iteration 1/ 4 | elapsed time per iteration (ms): 5000.0 | global batch size: 8 |\n iteration 2/ 4 | elapsed time per iteration (ms): 3000.0 | global batch size: 8 |\n"+
		" iteration 3/ 4 | elapsed time per iteration (ms): 1000.0 | global batch size: 8 |\n iteration 4/ 4 | elapsed time per iteration (ms): 1000.0 | global batch size: 8 |\n").Summary()
	require.Equal(t, 1000.0, *s.IterationMS)
	require.Equal(t, 1024.0, *s.TokensPerGPU)
}

func TestARunIsSummedUp(t *testing.T) {
	r := logged(t, "  world_size ........ 8\n  seq_length ........ 1024\n  train_iters ....... 50\n  name .... 9x\n"+
		" iteration 1/ 50 | elapsed time per iteration (ms): 9000.0 | lm loss: 5.0 | global batch size: 16 | number of skipped iterations: 1 | number of nan iterations: 0 |\n"+
		" iteration 2/ 50 | elapsed time per iteration (ms): 1000.0 | lm loss: 3.0 | global batch size: 16 | number of skipped iterations: 2 | number of nan iterations: 1 |\n"+
		" iteration 3/ 50 | elapsed time per iteration (ms): 2000.0 | lm loss: 4.0 | global batch size: 16 | throughput per GPU (TFLOP/s/GPU): 494.5 |\n"+
		"[Rank 3] (after 2 iterations) memory (MB) | allocated: 10.0 | max allocated: 30.0 | reserved: 20.0 | max reserved: 40.0\n"+
		"[Rank 0] (after 2 iterations) memory (MB) | allocated: 11.0 | max allocated: 31.0 | reserved: 21.0 | max reserved: -\n"+
		" validation loss at iteration 2 | lm loss value: 3.5E+00 | lm loss PPL: 33.1 |\n validation loss at iteration x | lm loss value: 9 |\n"+
		" validation loss at iteration 3 | lm loss value: 3.25 |\n validation loss at iteration 4 | nothing |\n")
	s := r.Summary()
	require.Equal(t, []int{3, 3, 50, 3, 1, 0}, []int{s.Iterations, s.Last, s.Of, s.Skipped, s.NaN, s.Restarts})
	require.Equal(t, []float64{4, 3, 2000, 9000, 494.5, 0.5, 31, 3.25},
		[]float64{*s.Loss, *s.BestLoss, *s.IterationMS, *s.IterationP99, *s.TFLOPs, *s.MFU, *s.MaxMemoryMB, *s.Validation})
	require.InDelta(t, (16*1024/9.0+16*1024/1.0+16*1024/2.0)/8/3, *s.TokensPerGPU, 1e-9)
	require.Nil(t, s.GradNorm)
	require.Nil(t, s.LearningRate)
	require.Equal(t, []Memory{{0, 11, 31, 21, 0}, {3, 10, 30, 20, 40}}, r.Memory)
	require.Equal(t, []Point{{2, 3.5}, {3, 3.25}}, r.Validation)

	var b strings.Builder
	require.NoError(t, r.WriteCSV(&b))
	require.Equal(t, "run,3,,,16,4,,,2000,1024,494.5,0.5,", strings.Split(b.String(), "\n")[3])
}

func TestNumbersOnATerminalAreShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 2.71828: "2.718", 99.96: "99.96", 100: "100", 123.6: "124", 99999: "99999", 100000: "1.00e+05", -250: "-250", 0.001: "0.001",
		0.00015: "1.50e-04", -0.5: "-0.5",
	} {
		require.Equal(t, want, formatShort(v))
	}
	points := func(vs ...float64) (ps []Point) {
		for i, v := range vs {
			ps = append(ps, Point{i + 1, v})
		}
		return ps
	}
	require.Equal(t, "▁▄█", Sparkline(points(0, 1, 2), 9), "no wider than there are points")
	require.Equal(t, "▁█", Sparkline(points(0, 2, 7, 9), 2))
	require.Equal(t, "▁▁", Sparkline(points(4, 4), 9))
	require.Empty(t, Sparkline(points(1), 0))
	require.Equal(t, points(2, 3, 5, 7), runningMean(points(2, 4, 6, 8), 2), "each with the one before it")
	require.Equal(t, points(2, 4), runningMean(points(2, 4), 1))
	require.Empty(t, Chart("", [][]Point{points(1, 2)}, 11, 8), "too narrow")
	require.Empty(t, Chart("", [][]Point{points(1, 2)}, 60, 1), "too low")
	require.Equal(t, "   t\n2 ┤⠀⠀⠀⠀⠀⢀⣀⠤⠔⠊\n1 ┤⣀⡠⠤⠒⠊⠁⠀⠀⠀⠀\n   1        2", Chart("t", [][]Point{points(1, 2)}, 13, 2))
}

func TestSlowReportsAreRead(t *testing.T) {
	r := logged(t, "iteration 5/ 10 | elapsed time per iteration (ms): 1.0 |\n"+
		"(min, max) time across ranks (ms):\n    forward-compute ....: (3.25, 812.40)\n    optimizer ......: 9.50\nelse\n    late ......: 9.50\n"+
		"times across ranks (ms):\n  forward-compute:\n     rank  0: 100.00\n     rank  1: 80.00\n     rank  2: 160.00\n  loss:\n     rank  0: 1.00\n     rank  1: 3.00\n"+
		"MnEtpt/Rnk: 300.00TF/30 | MxEtpt/Rnk: 600.00TF/13\nMnEtpt/Rnk: 300.00TF/30 | MxEtpt/Rnk: 0.00TF/13\nMnEtpt/Rnk: 300.00TF/30\n"+
		"STRAGGLER DETECTION WARNING: Affected ranks: {4}\n")
	require.Equal(t, map[string][]float64{"forward-compute": {812.4, 160}, "optimizer": {9.5}, "loss": {3}}, r.Timers)
	require.Equal(t, []Slowest{{5, 2, 0.625, false}, {5, 30, 0.5, false}, {5, 4, 0, true}}, r.Slowest)
}
