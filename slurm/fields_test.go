package slurm

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFormsOfBegin(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)
	for v, want := range map[string]string{
		"now": "2026-11-21T10:30:00", "now+90": "2026-11-21T10:31:30", "now+1second": "2026-11-21T10:30:01", "now+2minutes": "2026-11-21T10:32:00",
		"now+1hour": "2026-11-21T11:30:00", "now+3days": "2026-11-24T10:30:00", "now+2weeks": "2026-12-05T10:30:00",
		"today": "2026-11-21T10:30:00", "tomorrow": "2026-11-22T00:00:00",
		"2026-12-01": "2026-12-01T00:00:00", "2026-12-01T08:15": "2026-12-01T08:15:00", "2026-12-01T08:15:30": "2026-12-01T08:15:30",
		"16:00": "2026-11-21T16:00:00", "10:30": "2026-11-21T10:30:00", "09:00:30": "2026-11-22T09:00:30",
		"now+1fortnight": "", "now+": "", "now-1hour": "", "later": "", "": "", "25:00": "",
	} {
		got, err := ParseBegin(v, now)
		if want == "" {
			require.ErrorContains(t, err, "Invalid --begin specification", v)
			continue
		}
		require.NoError(t, err, v)
		require.Equal(t, want, got.Format("2006-01-02T15:04:05"), v)
	}
}

func TestTimesAsSlurmPrintsThem(t *testing.T) {
	for s, want := range map[string]int64{"1795000000": 1795000000, "1": 1, "0": 0, "-1": 0, "N/A": 0, "None": 0, "Unknown": 0, "(null)": 0, "": 0} {
		if got := ParseTime(s); want == 0 {
			require.Nil(t, got, s)
		} else {
			require.Equal(t, want, got.Unix(), s)
		}
	}
	require.Equal(t, "2026-11-21 10:30:00", ParseTime("2026-11-21T10:30:00").Format(time.DateTime))
}

// Only an option that takes a value uses the next word.
func TestWhichOptionsTakeAValue(t *testing.T) {
	for name, takes := range batchOptions {
		words, want := []string{"--" + name, "--nodes=2"}, Options{{Name: canonical(name)}, {Name: "nodes", Value: "2"}}
		if takes == NeedsArgument {
			words, want = words[:1], nil
		}
		opts, err := ReadOptions(words)
		require.Equal(t, want, opts, name)
		require.Equal(t, takes == NeedsArgument, err != nil, name)
	}
	for letter, name := range batchLetters {
		opts, err := ReadOptions([]string{fmt.Sprintf("-%c", letter), "x"})
		if batchOptions[name] != NeedsArgument {
			require.ErrorContains(t, err, "invalid directive found in batch script: x", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, Options{{Name: name, Value: "x"}}, opts)
		_, err = ReadOptions([]string{fmt.Sprintf("-%c", letter)})
		require.ErrorContains(t, err, "option '--"+name+"' requires an argument")
	}
}

func TestNumbersOfJSON(t *testing.T) {
	o := jsonObject{
		"plain": 5.0, "infinite": 4294967295.0, "none": 4294967294.0, "last": 4294967293.0, "zero": 0.0,
		"set": map[string]any{"set": true, "number": 7.0}, "unset": map[string]any{"set": false, "number": 0.0},
	}
	limits := map[string]any{}
	for name := range o {
		if n := o.limit(name); n != nil {
			limits[name] = *n
		}
	}
	require.Equal(t, map[string]any{"plain": int64(300), "zero": int64(0), "set": int64(420), "last": int64(4294967293 * 60)}, limits)
	require.Nil(t, o.time("zero"))
	require.Nil(t, o.time("unset"))
	require.EqualValues(t, 5, o.time("plain").Unix())
}

// A start a year ahead, which Slurm reports behind a job without a time limit, is no
// estimate.
func TestAStartThatIsAYearAheadIsNoEstimate(t *testing.T) {
	for hours, want := range map[int]bool{-1: true, 1: true, 24 * 30: true, 24 * 179: true, 24 * 181: false, 24*365 - 1: false, 24 * 365: false} {
		at := time.Now().Add(time.Duration(hours) * time.Hour)
		require.Equal(t, want, IsEstimate(at), hours)
		waits := Job{State: Pending, Reason: "Resources"}
		require.Equal(t, want, waits.estimated(&at) != nil, hours)
		begins := Job{State: Pending, Reason: "BeginTime"}
		require.Equal(t, &at, begins.estimated(&at), "a time that was asked for")
		for _, m := range []map[string]any{
			{"job_id": 7.0, "job_state": "PENDING", "state_reason": "Resources", "start_time": float64(at.Unix())},
			{"job_id": 7.0, "job_state": []any{"PENDING"}, "state_reason": "Resources", "start_time": map[string]any{"set": true, "infinite": false, "number": float64(at.Unix())}},
		} {
			require.Equal(t, want, JobsFromJSON(m)[0].EstStart != nil, m)
		}
	}
	require.False(t, IsEstimate(time.Time{}))
}
