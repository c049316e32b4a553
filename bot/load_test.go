package bot_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// BenchmarkCommands sends a thousand commands of two hundred people, a quarter of
// them lists of ten thousand jobs, and reports how long acknowledgements and answers
// took: spread over a minute, and as fast as fifty at a time go. Slack waits three
// seconds for the acknowledgement; the goal is one for 99 of 100.
//
//	go test ./bot -run '^$' -bench Commands -benchtime 1x
func BenchmarkCommands(b *testing.B) {
	for name, every := range map[string]time.Duration{"minute": 60 * time.Millisecond, "burst": 0} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				thousand(b, every)
			}
		})
	}
}

// thousand sends a thousand commands, one every so often.
func thousand(b *testing.B, every time.Duration) {
	s := play(b, func(c *bot.Config) {
		c.Policy.PerMinute, c.Policy.Links = 20, map[string]string{}
		for i := range 200 {
			c.Policy.Links[fmt.Sprintf("U%03d", i)] = "ada"
		}
	})
	s.yard.crowd(10_000)
	const n = 1000
	times := make([]float64, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 50)
	began := time.Now()
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(i) * every)))
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			words := "whoami"
			if i%4 == 0 {
				words = "list --user all"
			}
			r := s.Slash(words, map[string]any{"user_id": fmt.Sprintf("U%03d", i%200)})
			if r.Status != 200 {
				b.Errorf("command %d: %d %s", i, r.Status, r.Error)
			}
			times[i] = r.MS
		})
	}
	wg.Wait()
	b.ReportMetric(n/time.Since(began).Seconds(), "commands/s")
	slices.Sort(times)
	for _, q := range []float64{0.5, 0.99, 1} {
		b.ReportMetric(times[int(math.Ceil(q*n))-1], fmt.Sprintf("ms-p%g", 100*q))
	}
	sent := time.Since(began)
	answered := 0
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		answered = 0
		for _, m := range s.State().Messages {
			if m.Only != "" {
				answered++
			}
		}
		if answered >= n {
			break
		}
	}
	b.ReportMetric((time.Since(began) - sent).Seconds(), "s-until-last-answer")
	require.Equal(b, n, answered, "every command is answered, once")
}

func TestManyPeopleAtOnceAreEachAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() { s.Slash("whoami", map[string]any{"user_id": fmt.Sprintf("U%02d", i)}) })
		}
		wg.Wait()
		st := s.Wait("sixty answers", func(st slacktest.State) bool { return len(st.Messages) >= 60 })
		seen := map[string]int{}
		for _, m := range st.Messages {
			require.True(t, strings.Contains(text(m), "T1/"+m.Only), "an answer goes to who asked")
			seen[m.Only]++
		}
		require.Len(t, seen, 60)
	})
}
