package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// trained is the log of a run whose first iteration begins 120 s after start. Each iteration takes 10
// s, and checkpoints follow the iterations in saved.
func trained(start time.Time, first, last int, saved ...int) string {
	var b strings.Builder
	for n := first; n <= last; n++ {
		at := start.Add(120*time.Second + time.Duration(n-first+1)*10*time.Second)
		fmt.Fprintf(&b, " [%s] iteration %8d/     100 | elapsed time per iteration (ms): 10000.0 | lm loss: 2.0 |\n", at.Format("2006-01-02 15:04:05.000000"), n)
		for _, s := range saved {
			if s == n {
				fmt.Fprintf(&b, "  successfully saved checkpoint from iteration %7d to /ckpt [ t 1/2, p 1/1 ]\n", n)
			}
		}
	}
	return b.String()
}

// The parts of a Goodput add up to the time for which the job held its GPUs.
func TestGoodputByCause(t *testing.T) {
	was := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = was })
	start := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		log    string
		length time.Duration
		kept   bool
		want   Goodput
	}{
		{"completed, and saved at its end", trained(start, 1, 30, 30), 460 * time.Second, true, Goodput{Startup: 120, Productive: 340}},
		{"failed after a checkpoint", trained(start, 1, 30, 10, 20), 430 * time.Second, false, Goodput{Startup: 120, Productive: 200, Lost: 110}},
		{"failed before the first", trained(start, 1, 30), 430 * time.Second, false, Goodput{Startup: 120, Lost: 310}},
		{"saved by a signal at its limit", trained(start, 1, 30, 10, 30), 450 * time.Second, false, Goodput{Startup: 120, Productive: 330}},
		{"hung until somebody ended it", trained(start, 1, 30, 20), 4020 * time.Second, false, Goodput{Startup: 120, Productive: 200, Lost: 180, Idle: 3520}},
		{"never came to an iteration", "loading\n", 900 * time.Second, false, Goodput{Startup: 900}},
		{"resumed: what another saved before is not its own", trained(start, 21, 40, 30), 340 * time.Second, false, Goodput{Startup: 120, Productive: 100, Lost: 120}},
		{
			"its first iteration seems to begin before the job", strings.Replace(trained(start, 1, 30, 10, 20), "(ms): 10000.0", "(ms): 200000.0", 1),
			430 * time.Second, false,
			Goodput{Productive: 320, Lost: 110},
		},
		{
			"went back behind what a run before it saved", trained(start.Add(-3*time.Hour), 1, 45, 40) + trained(start, 21, 30), 240 * time.Second, false,
			Goodput{Startup: 120, Lost: 120},
		},
		{"in a log of several runs, the last counts", trained(start.Add(-3*time.Hour), 1, 20, 20) + trained(start, 21, 40, 40), 340 * time.Second, false, Goodput{Startup: 120, Productive: 220}},
	} {
		for _, zone := range []time.Duration{0, 8 * time.Hour, -5*time.Hour - 30*time.Minute} {
			r, err := ReadFrom("x", strings.NewReader(c.log), "")
			require.NoError(t, err)
			for i := range r.Iterations {
				at := r.Iterations[i].Time.Add(zone)
				r.Iterations[i].Time = &at
			}
			g, ok := r.Goodput(start, start.Add(c.length), c.kept)
			if zone != 0 && c.length > 30*time.Minute { // several time zones would fit
				require.False(t, ok, c.name)
				continue
			}
			require.True(t, ok, c.name)
			require.Equal(t, c.want, g, "%s, %s", c.name, zone)
			require.InDelta(t, c.length.Seconds(), g.Startup+g.Productive+g.Lost+g.Idle, 0.001)
		}
	}
	for minutes, known := range map[int]bool{14 * 60: true, 14*60 + 30: false, -12 * 60: true, -12*60 - 30: false} {
		zone := time.Duration(minutes) * time.Minute
		r, err := ReadFrom("x", strings.NewReader(trained(start.Add(zone), 1, 30)), "")
		require.NoError(t, err)
		_, ok := r.Goodput(start, start.Add(430*time.Second), false)
		require.Equal(t, known, ok, "a clock %s ahead: the zones of the earth are from -12 to +14 hours", zone)
	}
	r, err := ReadFrom("x", strings.NewReader(trained(start.AddDate(0, 1, 0), 1, 3)), "")
	require.NoError(t, err)
	_, ok := r.Goodput(start, start.Add(time.Hour), true)
	require.False(t, ok, "another job's numbers tell nothing")
	_, ok = r.Goodput(start, start, true)
	require.False(t, ok)
}
