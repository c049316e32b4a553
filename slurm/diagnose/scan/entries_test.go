package scan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// TestEntriesOfStructuredLoggers has entries that are read as a plain logger's lines, and
// objects that are none.
func TestEntriesOfStructuredLoggers(t *testing.T) {
	for line, want := range map[string]struct {
		last string
		rank int
	}{
		`{"level":"info","ts":"2026-06-11T10:00:00","msg":"a word","rank":3}`:                       {`{"level":"info","ts":"2026-06-11T10:00:00","msg":"a word","rank":3}`, 3},
		`{"level":"info","message":"two\nlines"}`:                                                   {"lines", -1},
		`{"severity":"ERROR","event":"a word","exception":"KeyError: 'a'"}`:                         {"KeyError: 'a'", -1},
		`{"level":"info","msg":"","event":"a word","exc":"KeyError: 'b'"}`:                          {"KeyError: 'b'", -1},
		`{"level":"info","msg":""}`:                                                                 {`{"level":"info","msg":""}`, -1},
		`{"name":"a","msg":"x\ny"}`:                                                                 {`{"name":"a","msg":"x\ny"}`, -1},
		`{"level":"info","msg":"x\ny"} and more`:                                                    {`{"level":"info","msg":"x\ny"} and more`, -1},
		`{"level":"info","msg":"x\ny",}`:                                                            {`{"level":"info","msg":"x\ny",}`, -1},
		`{"level":"e","msg":"a","rank":4,"traceback":"no stack","error":"KeyError: 'c'"}`:           {"KeyError: 'c'", 4},
		`{"level":"e","msg":"a","exc_info":"Traceback (most recent call last):\n  x","exc":"none"}`: {"  x", -1},
	} {
		f := factsOf(t, line+"\n")
		require.NotEmpty(t, f.Last, line)
		if !strings.Contains(want.last, `"ts"`) {
			require.Equal(t, want.last, f.Last[len(f.Last)-1].Text, line)
		}
		require.Equal(t, want.rank >= 0, f.Ranks[want.rank], line)
	}
	f := factsOf(t, `[rank3]: {"level":"info","msg":"a word","rank":5}`+"\n")
	require.Equal(t, map[int]bool{3: true}, f.Ranks, "what its launcher calls it stands")
	for line, steps := range map[string]int{
		`{"level":"info","msg":"train","step":7,"total_steps":90,"loss":0.5}`: 1,
		`{"level":"info","msg":"train","step":7,"total_steps":90}`:            0,
		`{"level":"info","msg":"train","loss":0.5}`:                           0,
	} {
		require.Len(t, factsOf(t, line+"\n").Progress, steps, line)
	}
}

// TestWhatHydraRefuses has what Hydra says before its last line.
func TestWhatHydraRefuses(t *testing.T) {
	const ends = "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
	for log, refused := range map[string]string{
		"Could not override 'a.b'.\n\n" + ends:                                                 "Could not override 'a.b'.",
		"Could not override 'a.b'.\nKey is not in it\n\n" + ends:                               "Could not override 'a.b'.",
		"A word before\n\nCould not override 'a.b'.\nKey is not in it\n\n" + ends:              "Could not override 'a.b'.",
		"A word before\n\nCould not override 'a.b'.\n\nWhere it looked:\n  /w/conf\n\n" + ends: "Could not override 'a.b'.",
		"Error executing job with overrides: []\n\n" + ends:                                    "",
		ends: "",
		"A word before\n\n" + diagnosetest.Raised("KeyError: 'a'") + "\n" + ends: "",
	} {
		var got string
		for _, e := range factsOf(t, log).Events {
			if e.Class == outcome.BadArgs {
				got = e.Text
			}
		}
		require.Equal(t, refused, got, log)
	}
}

// TestNodesThatSayWhatTheyStarted has the start lines of two attempts.
func TestNodesThatSayWhatTheyStarted(t *testing.T) {
	line := func(attempt, host, ranks string) string {
		return "start: attempt=" + attempt + " node=0 host=" + host + " ranks=" + ranks + " commit=aa dirty=no argv=bb env=cc\n"
	}
	f := factsOf(t, line("0", "gpu1", "0-7")+line("0", "gpu2", "8-15")+line("1", "gpu1", "0-7")+line("1", "gpu3", "8-15"))
	require.Len(t, f.NodeStarts, 4)
	require.Equal(t, 8, f.NodeStarts[3].First)
	require.Equal(t, 15, f.NodeStarts[3].Last)
	require.Equal(t, map[string]string{"commit": "aa", "dirty": "no", "argv": "bb", "env": "cc"}, f.NodeStarts[3].With)
	require.Len(t, f.Starts["requeue"], 1)
	for _, node := range []string{"gpu1", "gpu2", "gpu3"} {
		require.Positive(t, f.Hosts[node], node)
	}
	require.Zero(t, f.Ran.Sentences, "they are no words of a program")
}
