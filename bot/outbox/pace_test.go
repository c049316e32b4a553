package outbox

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A channel takes a burst and then one message a second. Waiting messages get different times,
// and another channel does not wait.
func TestEveryChannelHasItsOwnPace(t *testing.T) {
	var p rateLimiter
	now := time.Unix(1000, 0)
	var waits []time.Duration
	for range 7 {
		waits = append(waits, p.wait(Post, "post/T1/C1", now))
	}
	require.Equal(t, []time.Duration{0, 0, 0, 0, time.Second, 2 * time.Second, 3 * time.Second}, waits)
	require.Zero(t, p.wait(Post, "post/T1/C2", now))
	for i := range 3 { // they come back in their turn, and are not put off again
		require.Zero(t, p.wait(Post, "post/T1/C1", now.Add(time.Duration(i+1)*time.Second)))
	}
	require.Equal(t, time.Second, p.wait(Post, "post/T1/C1", now.Add(3*time.Second)))
	require.Zero(t, p.wait(Update, "update/T1/C1", now), "an edit is no message")
	p.hold("update/T1/C1", now.Add(5*time.Second))
	p.hold("update/T1/C2", now.Add(time.Second))
	require.Equal(t, 5*time.Second, p.wait(Update, "update/T1/C1", now), "which the limit of another channel does not end")
	require.Zero(t, p.wait(Update, "update/T1/C1", now.Add(5*time.Second)))
}

// What a channel takes later depends on when it took how many.
func TestAChannelRecoversASecondForEachMessage(t *testing.T) {
	began := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		before int // messages at the beginning
		hold   time.Duration
		after  time.Duration
		waits  []time.Duration // of the messages after that time
	}{
		"one more after a second":            {before: 4, after: time.Second, waits: []time.Duration{0, time.Second}},
		"after half of one":                  {before: 4, after: time.Second / 2, waits: []time.Duration{time.Second / 2}},
		"a burst, once it has rested":        {before: 9, after: 4 * time.Second, waits: []time.Duration{0, 0, 0, 0, time.Second}},
		"no more than a burst, however long": {before: 4, after: time.Hour, waits: []time.Duration{0, 0, 0, 0, time.Second}},
		"the end of a limit opens no gate":   {before: 4, hold: time.Second, after: time.Second, waits: []time.Duration{0, time.Second}},
	} {
		var p rateLimiter
		for range c.before {
			p.wait(Post, "post/T1/C1", began)
		}
		p.hold("post/T1/C1", began.Add(c.hold))
		var waits []time.Duration
		for range c.waits {
			waits = append(waits, p.wait(Post, "post/T1/C1", began.Add(c.after)))
		}
		require.Equal(t, c.waits, waits, name)
	}
}

// refs is a store that knows where the messages with its keys are.
type refs struct {
	Store
	at map[string]store.SlackRef
}

func (r refs) Ref(_ context.Context, key string) (store.SlackRef, bool, error) {
	ref, ok := r.at[key]
	return ref, ok, nil
}

func (r refs) Gone(context.Context, ...string) (bool, error) { return false, nil }

// What is said in threads is counted for the threads' channels: those of different
// channels do not share one pace.
func TestARepliesLaneIsItsChannels(t *testing.T) {
	s := New(Config{Store: refs{at: map[string]store.SlackRef{"card/1": {Channel: "C1"}, "card/2": {Channel: "C2"}}}})
	lane := func(o Message) string { return s.withChannel(t.Context(), o).lane() }
	require.Equal(t, "post/T1/C1", lane(Message{Do: Post, Team: "T1", ThreadOf: "card/1"}))
	require.Equal(t, "post/T1/C1", lane(Message{Do: Post, Team: "T1", Channel: "C1"}))
	require.Equal(t, "post/T1/C2", lane(Message{Do: Post, Team: "T1", ThreadOf: "card/2"}))
	require.Equal(t, "update/T1/C2", lane(Message{Do: Update, Team: "T1", Ref: "card/2"}))
	require.Equal(t, "post/T1/card/3", lane(Message{Do: Post, Team: "T1", ThreadOf: "card/3"}), "which was not sent yet")
}
