package diagnose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A rank leaves by sys.exit with a message, in a file that holds the lines of several ranks below their prefixes.
func TestARanksLastWordsBelowAPrefix(t *testing.T) {
	const words = "pretrain: the tokenizer has 50304 entries, the data set 50257\n"
	lost := diagnosetest.Raised(lostPeer)
	for name, c := range map[string]struct {
		own, others string
		said        bool
	}{
		"its message":                {words, lost, true},
		"without the program's name": {sentence, lost, true},
		"a file's name":              {"vocab.txt differs between the ranks\n", lost, true},
		"an error at an end":         {"fatal: the schedule ended before the data\n", lost, true},
		"a logger's line":            {"2026-11-23 10:00:01,530 INFO pretrain: the tokenizer has 50304 entries\n", lost, false},
		"words that all write":       {words, words + lost, false},
		"an announcement":            {"Loading the vocabulary of 32001 tokens\n", lost, false},
		"a report of success":        {"Checkpoint of step 9 was saved\n", lost, false},
	} {
		r := ofFolder(t, map[string]string{
			"7-gpu1.out": of("[default0]:", c.others) + of("[default1]:", c.others) + exitedWith("gpu1", 1, 0, 1),
			"7-gpu2.out": of("[default0]:", c.own) + of("[default1]:", c.others) + exitedWith("gpu2", 1, 2, 3),
		})
		namesRank(t, 2, r, name)
		if !c.said {
			require.Equal(t, outcome.UnknownExit, r.Class, name)
			continue
		}
		require.Equal(t, outcome.UserException, r.Class, name)
		require.Equal(t, "[default0]:"+strings.TrimSpace(c.own), r.RootLine, name)
		require.False(t, r.Retry, name)
		require.Contains(t, r.Summary, "said why", name)
	}
}

// SIGTERM ends one rank. Where its launcher did not send it, the others lost that rank.
func TestARankThatSIGTERMEndedFirst(t *testing.T) {
	lost := strings.Repeat(diagnosetest.Raised(lostPeer), 3)
	ended := strings.Replace(exitedWith("gpu2", 1, 2, 3), "exitcode  : 1 (pid: 4713)", "exitcode  : -15 (pid: 4713)", 1)
	for sent, class := range map[string]string{
		"": outcome.UnknownExit,
		strings.Replace(closing, "4711", "4713", 1): outcome.NCCLConnection,
	} {
		r := diagnosetest.Text(t, lost+sent+ended+exitedWith("gpu1", 1, 0, 1))
		require.Equal(t, class, r.Class, sent)
		if class == outcome.UnknownExit {
			namesRank(t, 2, r, sent)
		}
	}
}

// The launchers of two nodes write into one file without prefixes. One of the ranks leaves with 1 and says nothing.
func TestARankThatLeftInSilenceAmongAll(t *testing.T) {
	lost := diagnosetest.Raised(lostPeer)
	timedOut := diagnosetest.Raised("RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 60000ms for recv operation to complete")
	both := exitedWith("gpu1", 1, 0, 1) + exitedWith("gpu2", 1, 2, 3)
	oneEnded := closing + exitedWith("gpu1", 1, 0, 1) + exitedWith("gpu2", 1, 2, 2)
	for name, c := range map[string]struct {
		log, class string
		rank       int
	}{
		"each exited":                        {strings.Repeat(lost, 3) + both, outcome.UnknownExit, -1},
		"each complained":                    {strings.Repeat(lost, 4) + both, outcome.NCCLConnection, -1},
		"one was still there":                {strings.Repeat(lost, 3) + oneEnded, outcome.UnknownExit, -1},
		"one was still there, in no message": {strings.Repeat(timedOut, 3) + oneEnded, outcome.NCCLTimeout, 3},
	} {
		r := diagnosetest.Text(t, c.log)
		require.Equal(t, c.class, r.Class, name)
		namesRank(t, c.rank, r, name)
	}
}

// Two ranks of a node write into one standard error without prefixes: one leaves by sys.exit with a message, and the other
// loses it.
func TestTheMessageOfARankThatIsNotNamed(t *testing.T) {
	lost := diagnosetest.Raised(lostPeer)
	other := dated + lost + lost + exitedWith("gpu1", 1, 0, 1)
	for name, c := range map[string]struct {
		file, log, class string
	}{
		"standard error":     {"p-7-gpu2.err", dated + sentence + lost, outcome.UserException},
		"long before":        {"p-7-gpu2.err", strings.Replace(dated, "10:", "09:", 1) + sentence + lost, outcome.UnknownExit},
		"both streams":       {"p-7-gpu2.out", dated + sentence + lost, outcome.UnknownExit},
		"all ranks complain": {"p-7-gpu2.err", dated + sentence + lost + lost, outcome.NCCLConnection},
		"it wrote on":        {"p-7-gpu2.err", dated + sentence + dated + lost, outcome.UnknownExit},
	} {
		r := ofFolder(t, map[string]string{"logs/p-7-gpu1.err": other, "logs/" + c.file: c.log + failed + exitedWith("gpu2", 1, 2, 3)})
		require.Equal(t, c.class, r.Class, name)
		namesRank(t, -1, r, name)
		if c.class == outcome.UserException {
			require.Equal(t, strings.TrimSpace(sentence), r.RootLine, name)
			require.Equal(t, "gpu2", *r.RootNode, name)
		}
	}
}

// Two nodes' processes raised different exceptions, and nothing tells which was first: neither node is named. Times tell.
func TestNoNodeIsNamedByChance(t *testing.T) {
	const launched = "2026-03-04 10:00:00,100 INFO setup: the ranks have met\n"
	raised := func(what, later string) string { return launched + diagnosetest.Raised(what) + later }
	r := ofFolder(t, map[string]string{"7-gpu1.err": raised("IndexError: list index out of range", ""), "7-gpu2.err": raised("KeyError: 'a'", "")})
	require.Equal(t, outcome.UserException, r.Class)
	require.Nil(t, r.RootNode, r.RootLine)
	r = ofFolder(t, map[string]string{"7-gpu1.err": raised("KeyError: 'a'", ""), "7-gpu2.err": launched + "starting\n"})
	require.Equal(t, "gpu1", *r.RootNode, "only one raised it")
	r = ofFolder(t, map[string]string{
		"7-gpu1.err": raised("IndexError: list index out of range", ""),
		"7-gpu2.err": strings.ReplaceAll(raised("KeyError: 'a'", ""), "10:00:00", "09:58:00"),
	})
	require.Equal(t, "gpu2", *r.RootNode, "long before")
}
