package pace

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Each person may ask so often a minute, and has their turns back steadily.
func TestEachPersonHasTheirTurns(t *testing.T) {
	t.Parallel()
	l := New(2)
	for _, c := range []struct {
		who  string
		at   time.Duration
		wait time.Duration // zero: go on
	}{
		{"ada", 0, 0},
		{"ada", 0, 0},
		{"ada", 0, 30 * time.Second},
		{"grace", 0, 0},
		{"ada", 15 * time.Second, 15 * time.Second},
		{"ada", 30 * time.Second, 0},
		{"ada", 31 * time.Second, 29 * time.Second},
		{"ada", time.Hour, 0},
		{"ada", time.Hour, 0},
		{"ada", time.Hour, 30 * time.Second},
	} {
		wait, ok := l.Take(c.who, noon.Add(c.at))
		require.Equal(t, c.wait == 0, ok, c)
		require.InDelta(t, c.wait.Seconds(), wait.Seconds(), 1e-6, c)
	}
	for i := range mostPeople + 2 {
		l.Take(strconv.Itoa(i), noon)
	}
	require.Less(t, len(l.who), 10, "strangers do not fill the memory")
}

// An agent that makes ten calls a second all day is never told to wait; one in a loop is, and
// has a turn again when it was told.
func TestABusyAgentIsNotTooFast(t *testing.T) {
	t.Parallel()
	l, now := New(OfPrograms), noon
	for range 24 * 60 {
		now = now.Add(time.Minute)
		for range 600 { // all at once
			_, ok := l.Take("agent", now)
			require.True(t, ok)
		}
	}
	wait, ok := time.Duration(0), true
	for range OfPrograms {
		wait, ok = l.Take("agent", now)
	}
	require.False(t, ok)
	require.Equal(t, 1, Seconds(wait))
	_, ok = l.Take("agent", now.Add(time.Duration(Seconds(wait))*time.Second))
	require.True(t, ok)
	require.Equal(t, "请求过于频繁，本次没有执行任何操作；请 1 秒后再试。", Said(wait).ZH)
}
