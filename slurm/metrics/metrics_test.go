package metrics_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// line is Megatron's report of an iteration, as the last rank prints it.
func line(n int, at time.Time, ms, loss, grad string) string {
	return fmt.Sprintf("[default7]: [%s] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): %s "+
		"| throughput per GPU (TFLOP/s/GPU): 400.0 | learning rate: 1.500000E-04 | global batch size:   256 | lm loss: %s | loss scale: 1.0 "+
		"| grad norm: %s | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
		at.Format("2006-01-02 15:04:05.000000"), n, 256*n, ms, loss, grad)
}

var begin = time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)

func run(n int, each func(i int) (ms, loss, grad string)) string {
	var b strings.Builder
	b.WriteString("[default0]:  world_size ...................................... 64\n[default0]:  seq_length ...................................... 4096\n")
	for i := 1; i <= n; i++ {
		ms, loss, grad := each(i)
		b.WriteString(line(i, begin.Add(time.Duration(i)*4*time.Second), ms, loss, grad))
	}
	return b.String()
}

func usual(i int) (string, string, string) {
	return "4000.0", fmt.Sprintf("%.6E", 2+8/math.Sqrt(float64(i))), "0.512"
}

func read(t *testing.T, text string) metrics.Run {
	t.Helper()
	r, err := metrics.ReadFrom("run", strings.NewReader(text), "h100")
	require.NoError(t, err)
	return r
}

// A progress bar rewrites its line: the iterations between two newlines are all read, in a
// file of any length, and none is read twice where lines end with \r\n.
func TestIterationsBehindCarriageReturns(t *testing.T) {
	for name, text := range map[string]string{
		"between returns only": strings.ReplaceAll(run(2000, usual), "\n", "\r"),
		"in one line":          strings.ReplaceAll(run(2000, usual), "\n", "\r") + "\nend\n",
		"lines of Windows":     strings.ReplaceAll(run(2000, usual), "\n", "\r\n"),
		"behind a bar":         strings.ReplaceAll(run(2000, usual), "\n", "\n 10%|#  | 1/10\r 20%|## | 2/10\r"),
	} {
		r := read(t, text)
		require.Len(t, r.Iterations, 2000, name)
		require.Equal(t, []int{64, 0, 2000}, []int{r.WorldSize, r.Restarts, r.Iterations[1999].N}, name)

		log := filepath.Join(t.TempDir(), "run.log")
		require.NoError(t, os.WriteFile(log, []byte(strings.Repeat(" 10%|# | 1/10\r", 300_000)+text), 0o600))
		recent, err := metrics.Recent(context.Background(), nil, []string{log}, "h100")
		require.NoError(t, err)
		require.Equal(t, 2000, recent.Iterations[len(recent.Iterations)-1].N, name)
	}
}

func TestIterationLines(t *testing.T) {
	r := read(t, run(100, usual)+"[Rank 0] (after 2 iterations) memory (MB) | allocated: 1024.00 | max allocated: 40960.50 | reserved: 2048.00 "+
		"| max reserved: 50000.00\n"+
		" validation loss at iteration 100 | lm loss value: 2.900000E+00 | lm loss PPL: 1.817414E+01 | \n")
	require.Len(t, r.Iterations, 100)
	it := r.Iterations[9]
	require.Equal(t, 10, it.N)
	require.Equal(t, int64(2560), *it.Samples)
	require.InDelta(t, 4000, *it.ElapsedMS, 1e-9)
	require.InDelta(t, 1.5e-4, *it.LearningRate, 1e-12)
	require.InDelta(t, 256*4096/4.0/64, *it.TokensPerGPU, 1e-6)
	require.InDelta(t, 400/989.0, *it.MFU, 1e-9)
	s := r.Summary()
	require.Equal(t, 100, s.Last)
	require.Equal(t, 1000, s.Of)
	require.InDelta(t, 2.8, *s.BestLoss, 1e-6)
	require.InDelta(t, 40960.5, *s.MaxMemoryMB, 1e-9)
	require.InDelta(t, 2.9, *s.Validation, 1e-9)
	require.Equal(t, int64(3600), *s.ETASeconds, "900 iterations of 4 s")
	spare, ok := r.Suffices(30 * time.Minute)
	require.True(t, ok)
	require.Equal(t, -30*time.Minute, spare)
}

// PowerShell writes redirected output in UTF-16.
func TestALogInUTF16IsRead(t *testing.T) {
	text, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(run(3, usual))
	require.NoError(t, err)
	require.Equal(t, 3, read(t, text).Summary().Last)
}

// Values that follow from several numbers exist only if the run reports all of these, and nothing is
// divided by zero.
func TestSpeedNeedsAllThatItFollowsFrom(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		tokens, mfu    bool
	}{
		{"all", "", "", true, true},
		{"no batch", "| global batch size:   256 ", "", false, true},
		{"no time", "4000.0", "?", false, true},
		{"no time at all", "4000.0", "0.0", false, true},
		{"no length", "seq_length ....", "other ....", false, true},
		{"no ranks", "world_size ....", "other ....", false, true},
		{"no throughput", "| throughput per GPU (TFLOP/s/GPU): 400.0 ", "", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			it := read(t, strings.ReplaceAll(run(1, usual), c.old, c.new)).Iterations[0]
			require.Equal(t, c.tokens, it.TokensPerGPU != nil)
			require.Equal(t, c.mfu, it.MFU != nil)
		})
	}
	r, err := metrics.ReadFrom("run", strings.NewReader(run(1, usual)), "a card that nobody knows")
	require.NoError(t, err)
	require.Nil(t, r.Iterations[0].MFU)
}

// Reading stops when its context is cancelled.
func TestReadingStopsWhenCancelled(t *testing.T) {
	log := filepath.Join(t.TempDir(), "a.log")
	require.NoError(t, os.WriteFile(log, []byte(run(10, usual)), 0o644))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := metrics.Read(ctx, nil, log, "")
	require.ErrorContains(t, err, "canceled")
	_, err = metrics.Recent(ctx, nil, []string{log}, "")
	require.ErrorIs(t, err, context.Canceled)
}

func TestARestartRepeatsIterations(t *testing.T) {
	r := read(t, run(50, usual)+run(30, func(int) (string, string, string) { return "5000.0", "1.000000E+00", "0.1" }))
	require.Len(t, r.Iterations, 50)
	require.Equal(t, 1, r.Restarts)
	require.InDelta(t, 1, *r.Iterations[29].Loss, 1e-9, "the last report counts")
	require.Greater(t, *r.Iterations[30].Loss, 2.0)
}

func TestEventFiles(t *testing.T) {
	var b bytes.Buffer
	record := func(event []byte) {
		var head [12]byte
		binary.LittleEndian.PutUint64(head[:], uint64(len(event)))
		b.Write(head[:])
		b.Write(event)
		b.Write(make([]byte, 4))
	}
	record(append([]byte{0x1a, 13}, "brain.Event:2"...))
	for step := 1; step <= 30; step++ {
		for tag, v := range map[string]float32{
			"lm loss": float32(3 - float64(step)/100), "iteration-time": 2.5, "throughput": 300, "lm loss vs samples": 9,
			"grad-norm": 1,
		} {
			value := append([]byte{0x0a, byte(len(tag))}, tag...)
			value = append(value, 0x15)
			value = binary.LittleEndian.AppendUint32(value, math.Float32bits(v))
			summary := append([]byte{0x0a, byte(len(value))}, value...)
			event := binary.LittleEndian.AppendUint64([]byte{0x09}, math.Float64bits(float64(begin.Unix()+int64(step))))
			event = append(event, 0x10, byte(step), 0x2a, byte(len(summary)))
			record(append(event, summary...))
		}
	}
	picture := append([]byte{0x0a, 7}, "lm loss"...)
	picture = append(picture, 0x22, 1, 0) // an image, which is no number
	summary := append([]byte{0x0a, byte(len(picture))}, picture...)
	record(append([]byte{0x10, 31, 0x2a, byte(len(summary))}, summary...))
	b.Write([]byte{1, 2, 3}) // a record that is still being written
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "events.out.tfevents.1718.n1"), b.Bytes(), 0o644))
	r, err := metrics.Read(context.Background(), nil, dir, "a100")
	require.NoError(t, err)
	require.Len(t, r.Iterations, 30)
	require.InDelta(t, 2.7, *r.Iterations[29].Loss, 1e-6)
	require.InDelta(t, 2500, *r.Iterations[0].ElapsedMS, 1e-6)
	require.InDelta(t, 300/312.0, *r.Iterations[0].MFU, 1e-6)
	require.Empty(t, r.Iterations[0].Other)
}

func TestChecksSpeakOfWhatIsWrong(t *testing.T) {
	for id, each := range map[string]func(i int) (string, string, string){
		"not_finite": func(i int) (string, string, string) {
			if i > 97 {
				return "4000.0", "NAN", "nan"
			}
			return usual(i)
		},
		"loss_spike": func(i int) (string, string, string) {
			if i > 95 {
				return "4000.0", "7.400000E+00", "180.000"
			}
			return usual(i)
		},
		"slower": func(i int) (string, string, string) {
			ms, loss, grad := usual(i)
			if i > 80 {
				ms = "5600.0"
			}
			return ms, loss, grad
		},
	} {
		found := read(t, run(100, each)).Check()
		require.Len(t, found, 1, id)
		require.Equal(t, id, found[0].ID)
		require.NotEmpty(t, found[0].What.ZH)
		require.NotEmpty(t, found[0].Fix.EN)
		for n := 1; n <= 100; n++ { // no other finding on the way to this one
			for _, f := range read(t, run(n, each)).Check() {
				require.Equal(t, id, f.ID, "at iteration %d", n)
			}
		}
	}
	slow := strings.ReplaceAll(run(100, usual), "GPU): 400.0", "GPU): 90.0")
	require.Equal(t, "slow_start", read(t, slow).Check()[0].ID)
}

// Runs that look like trouble but are healthy have no findings.
func TestChecksLeaveHealthyRunsAlone(t *testing.T) {
	for name, each := range map[string]func(i int) (string, string, string){
		"usual": usual,
		"slow first iterations": func(i int) (string, string, string) {
			ms, loss, grad := usual(i)
			if i < 6 {
				ms = "60000.0"
			}
			return ms, loss, grad
		},
		"a checkpoint each ten": func(i int) (string, string, string) {
			ms, loss, grad := usual(i)
			if i%10 == 0 {
				ms = "45000.0"
			}
			return ms, loss, grad
		},
		"evaluation before the last": func(i int) (string, string, string) {
			ms, loss, grad := usual(i)
			if i > 97 {
				ms = "90000.0"
			}
			return ms, loss, grad
		},
		"loss scale warm-up": func(i int) (string, string, string) {
			ms, loss, grad := usual(i)
			if i < 9 {
				grad = "inf"
			}
			return ms, loss, grad
		},
		"one spike that comes back": func(i int) (string, string, string) {
			if i == 96 || i == 97 {
				return "4000.0", "6.000000E+00", "40.000"
			}
			return usual(i)
		},
		"one gradient that is not finite": func(i int) (string, string, string) {
			ms, loss, grad := usual(i)
			if i == 100 {
				grad = "inf"
			}
			return ms, loss, grad
		},
		"a noisy clock": func(i int) (string, string, string) {
			_, loss, grad := usual(i)
			return fmt.Sprintf("%.1f", 4000+600*math.Sin(float64(i))), loss, grad
		},
		"a loss that rises slowly": func(i int) (string, string, string) {
			return "4000.0", fmt.Sprintf("%.6E", 2+float64(i)/400), "0.5"
		},
		"a batch size ramp": func(i int) (string, string, string) {
			_, loss, grad := usual(i)
			return fmt.Sprintf("%.1f", 4000+float64(i)), loss, grad
		},
	} {
		for n := 1; n <= 100; n++ {
			require.Empty(t, read(t, run(n, each)).Check(), "%s, at iteration %d", name, n)
		}
	}
	require.Empty(t, read(t, run(5, usual)).Check(), "too short to tell")
}

func TestExports(t *testing.T) {
	r := read(t, run(100, usual))
	other := read(t, run(60, func(i int) (string, string, string) { ms, _, g := usual(i); return ms, "3.000000E+00", g }))
	other.Name = "other"
	var b bytes.Buffer
	require.NoError(t, r.WriteCSV(&b))
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 101)
	require.Equal(t, "loss", rows[0][5])
	b.Reset()
	require.NoError(t, metrics.WritePNG(&b, []metrics.Run{r, other}, metrics.AllSeries))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	require.Greater(t, img.Bounds().Dx(), 1000)
	require.Error(t, metrics.WritePNG(&b, []metrics.Run{{Name: "empty"}}, metrics.AllSeries))
}

func TestTerminalPlot(t *testing.T) {
	ps := read(t, run(100, usual)).Points(metrics.Loss)
	chart := metrics.Chart("loss", [][]metrics.Point{ps}, 60, 8)
	lines := strings.Split(chart, "\n")
	require.Len(t, lines, 10)
	require.Contains(t, lines[1], "10 ┤⡇")
	require.Contains(t, lines[8], "2.8 ┤")
	require.True(t, strings.HasSuffix(lines[9], "100"))
	require.Equal(t, "█▂▁▁▁", metrics.Sparkline(ps, 5))
	require.Empty(t, metrics.Chart("", nil, 60, 8))
	require.Empty(t, metrics.Sparkline(nil, 5))
	r := read(t, run(100, usual))
	doc := metrics.View([]metrics.Run{r}, []metrics.Summary{r.Summary()}, lang.ZH)
	require.Len(t, doc.Sections, 2)
}

func FuzzLogsAndEvents(f *testing.F) {
	f.Add([]byte(line(3, begin, "1", "2", "nan")), true)
	f.Add([]byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x2a, 1, 0x0a, 0, 0, 0, 0}, false)
	f.Fuzz(func(t *testing.T, b []byte, log bool) {
		name := "events.out.tfevents.1"
		if log {
			name = "a.log"
		}
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, b, 0o644))
		r, err := metrics.Read(context.Background(), nil, path, "h100")
		require.NoError(t, err)
		r.Summary()
		r.Check()
		metrics.View([]metrics.Run{r}, []metrics.Summary{r.Summary()}, lang.EN)
	})
}
