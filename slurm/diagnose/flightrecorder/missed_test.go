package flightrecorder

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDumpsAreKnownByTheirFirstBytes distinguishes dumps with any name from files that only resemble
// one.
func TestDumpsAreKnownByTheirFirstBytes(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       bool
	}{
		{"mine-3", "\x80\x02}X\x09\x00\x00\x00pg_config", true},
		{"mine-3", "\x80nccl_version", true},
		{"mine-3.json", `{"pg_status":{}}`, true},
		{"mine-3.pickle", "\x80\x02pg_status", true},
		{"mine.json", `{"pg_config":{}}`, false},
		{"mine-3", `["pg_config"]`, false},
		{"mine-3", "pg_config of rank 3", false},
		{"mine-3.json", `{"config":{}}`, false},
		{"mine-3", "\x80", false},
		{"mine-3", "", false},
	} {
		require.Equal(t, c.want, IsDump(c.name, []byte(c.head)), "%s: %q", c.name, c.head)
	}
}

// read reads a dump in JSON.
func read(t *testing.T, name, text string) *Recording {
	t.Helper()
	r, err := Read(name, strings.NewReader(text))
	require.NoError(t, err)
	return r
}

// Dumps of several releases have names or ids of groups and either number of a collective;
// point-to-point operations and senseless entries are skipped.
func TestADumpTellsHowFarItsRankCame(t *testing.T) {
	r := read(t, "mine-12.json", `{"pg_config":{"0":{"ranks":"[0, 9, 12]"},"7":{"ranks":[3,12,"x"]},"8":5},
		"pg_status":{"0":{"last_enqueued_collective":9},"7":{"last_enqueued_collective":1},"9":{"last_enqueued_collective":4}},
		"entries":[
			{"process_group":["0","default_pg"],"collective_seq_id":4,"state":"completed","profiling_name":"nccl:all_gather"},
			{"process_group":["0","default_pg"],"collective_seq_id":6,"state":"scheduled","profiling_name":"nccl:broadcast"},
			{"process_group":["0","default_pg"],"collective_seq_id":5,"state":"started","profiling_name":"nccl:all_reduce"},
			{"process_group":["0","default_pg"],"collective_seq_id":5,"state":"started","profiling_name":"nccl:coalesced"},
			{"process_group":["0","default_pg"],"collective_seq_id":3,"state":"started","is_p2p":true,"profiling_name":"nccl:send"},
			{"process_group":["0","default_pg"],"state":"started"},
			{"process_group":[],"pg_id":7,"seq_id":2,"state":"completed"},
			5]}`)
	require.Equal(t, 12, r.Rank)
	require.Equal(t, map[string]*groupState{
		"0": {Enqueued: 9, Waiting: 5, Op: "all_reduce", Members: []int{0, 9, 12}},
		"7": {Enqueued: 2, Members: []int{3, 12}},
	}, r.Groups)
	str := func(s string) string { return "X" + string(rune(len(s))) + "\x00\x00\x00" + s }
	pickled := "\x80\x02}" + str("pg_config") + "}" + str("0") + "}" + str("ranks") + "ctorch.jit._pickle\nbuild_intlist\n](K\x00K\x03e\x85Rsss" +
		str("entries") + "]}" + str("process_group") + "](" + str("0") + "es" + str("collective_seq_id") + "K\x09s" + str("state") + str("completed") + "sas."
	r = read(t, "mine-3", pickled)
	require.Equal(t, map[string]*groupState{"0": {Enqueued: 9, Members: []int{0, 3}}}, r.Groups, "PyTorch pickles a list by a call that names its type")
	for name, text := range map[string]string{"mine": `{}`, "mine-1": `not a dump`, "mine-2.json": `{"entries":`, "mine-3": ""} {
		_, err := Read(name, strings.NewReader(text))
		require.Error(t, err, name)
	}
}

// at is a recording of one rank in one group: the last collective that it entered, and the one in which
// it waits.
func at(rank int, group string, enqueued, waiting int64, members ...int) *Recording {
	return &Recording{Rank: rank, Groups: map[string]*groupState{group: {Enqueued: enqueued, Waiting: waiting, Op: "all_reduce", Members: members}}}
}

// missed is a collective in which ranks wait and which the given ranks never entered.
func missed(group string, seq int64, waiting int, ranks ...int) Missed {
	return Missed{Rank: ranks[0], Ranks: ranks, Group: group, Seq: seq, Op: "all_reduce", Waiting: waiting}
}

// The recordings of several ranks show which rank missed a collective.
func TestWhoMissedACollective(t *testing.T) {
	for name, c := range map[string]struct {
		all  []*Recording
		want Missed
	}{
		"nobody waits":           {[]*Recording{at(0, "0", 5, 0), at(1, "0", 4, 0)}, Missed{}},
		"all entered it":         {[]*Recording{at(0, "0", 5, 5), at(1, "0", 5, 5)}, Missed{}},
		"one is behind":          {[]*Recording{at(0, "0", 5, 5), at(1, "0", 4, 0), at(2, "0", 5, 5)}, missed("0", 5, 2, 1)},
		"two are behind":         {[]*Recording{at(3, "0", 5, 5), at(2, "0", 4, 0), at(1, "0", 3, 0)}, missed("0", 5, 1, 1, 2)},
		"one left no dump":       {[]*Recording{at(0, "0", 5, 5, 0, 1, 2), at(2, "0", 5, 5)}, missed("0", 5, 2, 1)},
		"one knows no group":     {[]*Recording{at(0, "0", 5, 5, 0, 1), at(1, "9", 5, 0)}, missed("0", 5, 1, 1)},
		"the earliest counts":    {[]*Recording{at(0, "0", 7, 7), at(1, "0", 7, 6), at(2, "0", 5, 0), at(3, "0", 7, 7)}, missed("0", 6, 1, 2)},
		"most wait for it":       {[]*Recording{at(0, "0", 5, 5, 0, 9), at(1, "1", 5, 5, 1, 2), at(3, "1", 5, 5)}, missed("1", 5, 2, 2)},
		"as many wait elsewhere": {[]*Recording{at(0, "0", 5, 5, 0, 9), at(1, "1", 5, 5, 1, 2)}, missed("0", 5, 1, 9)},
	} {
		got, ok := WhoMissed(c.all)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.want.Waiting > 0, ok, name)
	}
}
