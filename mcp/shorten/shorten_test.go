package shorten

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type shownRow struct {
	ID    int      `json:"id"`
	Nodes []string `json:"nodes"`
}

type shownRows struct {
	Jobs []shownRow `json:"jobs"`
	Note string     `json:"note"`
}

// A long answer is shortened where it costs least: nodes of each row before rows, and goes on at its cursor.
func TestWhatALongAnswerLeavesOut(t *testing.T) {
	rows := func(n, nodes int) shownRows {
		out := shownRows{Note: "n"}
		for i := range n {
			out.Jobs = append(out.Jobs, shownRow{ID: i, Nodes: slices.Repeat([]string{"gpu0001"}, nodes)})
		}
		return out
	}
	cutTo := func(out shownRows, r Room, tail bool) (shownRows, Cut) {
		c, err := Shorten(Tidy(out, false), r, tail)
		require.NoError(t, err)
		require.LessOrEqual(t, len(c.Raw), max(r.Bytes, SmallPiece))
		return c.Out.(shownRows), c
	}
	few := rows(3, 9)
	got, c := cutTo(few, Room{Bytes: 4000}, false)
	require.Equal(t, few, got)
	require.Empty(t, c.Notes)
	require.Empty(t, c.Cursor)

	got, c = cutTo(rows(60, 50), Room{Bytes: 4000}, false)
	require.Len(t, got.Jobs, 60)
	require.Len(t, got.Jobs[0].Nodes, longRow)
	require.Equal(t, []string{"nodes of each of jobs shortened: 4 shown"}, c.Notes)
	require.Empty(t, c.Cursor)

	all := rows(500, 1)
	got, c = cutTo(all, Room{Bytes: 4000}, false)
	n := len(got.Jobs)
	require.Greater(t, n, 50)
	require.Equal(t, []string{fmt.Sprintf("jobs shortened: 1 to %d of 500 shown", n)}, c.Notes)
	require.Equal(t, fmt.Sprintf("jobs@%d", n), c.Cursor)
	next, c := cutTo(all, Room{Bytes: 4000, Cursor: c.Cursor}, false)
	require.Equal(t, n, next.Jobs[0].ID, "nothing is passed over")
	require.Equal(t, []string{fmt.Sprintf("jobs shortened: %d to %d of 500 shown", n+1, n+len(next.Jobs))}, c.Notes)
	end, c := cutTo(all, Room{Bytes: 4000, Cursor: "jobs@490"}, false)
	require.Len(t, end.Jobs, 10)
	require.Empty(t, c.Cursor)
	last, c := cutTo(all, Room{Bytes: 4000}, true)
	require.Equal(t, 499, last.Jobs[len(last.Jobs)-1].ID, "of lines the newest stay")
	require.Empty(t, c.Cursor)
	for _, cursor := range []string{"jobs@501", "jobs@-1", "jobs@x", "jobs", "note@1", "nodes@1"} {
		_, err := Shorten(Tidy(all, false), Room{Bytes: 4000, Cursor: cursor}, false)
		require.ErrorContains(t, err, "is no place in this answer", cursor)
	}

	script := rows(1, 1)
	script.Note = strings.Repeat("x", MaxString-1)
	c, err := Shorten(Tidy(script, false), Room{Bytes: 4000}, false)
	require.NoError(t, err)
	require.Equal(t, script, c.Out, "half a script is worth nothing")
	script.Note += "xx"
	got, c = cutTo(script, Room{Bytes: 4000}, false)
	require.Less(t, len(got.Note), 4000)
	require.Contains(t, c.Notes[0], "note shortened: 1 to ")
}

// A list that is missing is an empty one to a client, whose schema promises a list.
func TestMissingListsAreEmpty(t *testing.T) {
	raw, err := json.Marshal(Tidy(struct {
		Jobs []shownRow          `json:"jobs"`
		By   map[string][]string `json:"by"`
		Rest []string            `json:"rest,omitempty"`
		One  *shownRow           `json:"one"`
		None *shownRow           `json:"none"`
		Any  any                 `json:"any"`
	}{Jobs: []shownRow{{ID: 1}}, By: map[string][]string{"a": nil}, One: &shownRow{}}, false))
	require.NoError(t, err)
	require.JSONEq(t, `{"jobs":[{"id":1,"nodes":[]}],"by":{"a":[]},"one":{"id":0,"nodes":[]},"none":null,"any":null}`, string(raw))
}
