package shorten

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// A long answer is shortened where it costs least, the nodes of each row before the
// rows, and continues at its cursor.
func TestWhatALongAnswerLeavesOut(t *testing.T) {
	rows := func(n, nodes int) shownRows {
		out := shownRows{Note: "n"}
		for i := range n {
			out.Jobs = append(out.Jobs, shownRow{ID: i, Nodes: slices.Repeat([]string{"gpu0001"}, nodes)})
		}
		return out
	}
	cutTo := func(out shownRows, r Limit, tail bool) (shownRows, Cut) {
		c, err := Shorten(Tidy(out, false), r, tail)
		require.NoError(t, err)
		require.LessOrEqual(t, len(c.Raw), max(r.Bytes, SmallPiece))
		return c.Out.(shownRows), c
	}
	few := rows(3, 9)
	got, c := cutTo(few, Limit{Bytes: 4000}, false)
	require.Equal(t, few, got)
	require.Empty(t, c.Notes)
	require.Empty(t, c.Cursor)

	got, c = cutTo(rows(60, 50), Limit{Bytes: 4000}, false)
	require.Len(t, got.Jobs, 60)
	require.Len(t, got.Jobs[0].Nodes, longRow)
	require.Equal(t, []string{"nodes of each of jobs shortened: 4 shown"}, c.Notes)
	require.Empty(t, c.Cursor)

	all := rows(500, 1)
	raw, err := JSON(all)
	require.NoError(t, err)
	_, c = cutTo(all, Limit{Bytes: len(raw)}, false)
	require.Empty(t, c.Notes, "what fits to the byte fits")
	_, c = cutTo(all, Limit{Bytes: len(raw) - 1}, false)
	require.Len(t, c.Notes, 1)
	small := shownRows{Jobs: []shownRow{{Nodes: []string{strings.Repeat("x", SmallPiece-len(`[{"id":0,"nodes":[""]}]`))}}}}
	c, err = Shorten(Tidy(small, false), Limit{Bytes: 1000}, false)
	require.NoError(t, err)
	require.Empty(t, c.Notes, "a list of that many bytes is not worth cutting")
	got, c = cutTo(all, Limit{Bytes: 4000}, false)
	n := len(got.Jobs)
	require.Greater(t, n, 50)
	require.Equal(t, []string{fmt.Sprintf("jobs shortened: 1 to %d of 500 shown", n)}, c.Notes)
	require.Equal(t, fmt.Sprintf("jobs@%d", n), c.Cursor)
	next, c := cutTo(all, Limit{Bytes: 4000, Cursor: c.Cursor}, false)
	require.Equal(t, n, next.Jobs[0].ID, "nothing is passed over")
	require.Equal(t, []string{fmt.Sprintf("jobs shortened: %d to %d of 500 shown", n+1, n+len(next.Jobs))}, c.Notes)
	end, c := cutTo(all, Limit{Bytes: 4000, Cursor: "jobs@490"}, false)
	require.Len(t, end.Jobs, 10)
	require.Empty(t, c.Cursor)
	last, c := cutTo(all, Limit{Bytes: 4000}, true)
	require.Equal(t, 499, last.Jobs[len(last.Jobs)-1].ID, "of lines the newest stay")
	require.Equal(t, []string{fmt.Sprintf("jobs shortened: the last %d of 500 shown", len(last.Jobs))}, c.Notes)
	require.Empty(t, c.Cursor)
	for _, cursor := range []string{"jobs@501", "jobs@-1", "jobs@x", "jobs", "note@1", "nodes@1"} {
		_, err := Shorten(Tidy(all, false), Limit{Bytes: 4000, Cursor: cursor}, false)
		require.ErrorContains(t, err, "is not a position in this answer", cursor)
	}

	script := rows(1, 1)
	script.Note = strings.Repeat("x", MaxString-1)
	c, err = Shorten(Tidy(script, false), Limit{Bytes: 4000}, false)
	require.NoError(t, err)
	require.Equal(t, script, c.Out, "half a script is worth nothing")
	script.Note += "xx"
	got, c = cutTo(script, Limit{Bytes: 4000}, false)
	require.Less(t, len(got.Note), 4000)
	require.Equal(t, []string{fmt.Sprintf("note shortened: 1 to %d of %d shown", len(got.Note), MaxString+1)}, c.Notes)
	require.Greater(t, len(got.Note), 3800, "and no more is cut than must be")
	require.Empty(t, c.Cursor, "a text does not go on")
	end, c = cutTo(all, Limit{Bytes: 4000, Cursor: "jobs@500"}, false)
	require.Empty(t, end.Jobs, "nothing is left")
	require.Empty(t, c.Notes)
}

// The longest piece of an answer is cut first, wherever it is, to the size that fits.
func TestTheLongestPieceIsCut(t *testing.T) {
	type inner struct {
		Lines []string `json:"lines"`
		None  *inner   `json:"none"`
	}
	type out struct {
		At    time.Time `json:"at"`
		Few   []string  `json:"few"`
		Deep  *inner    `json:"deep"`
		Plain []int
		Not   []string `json:"-"`
		inner
		own []string
	}
	of := func(few, deep, plain, embedded int) out {
		line := strings.Repeat("x", 97)
		return out{
			Few: slices.Repeat([]string{line}, few), Deep: &inner{Lines: slices.Repeat([]string{line}, deep)}, Plain: slices.Repeat([]int{123456789}, plain),
			Not: slices.Repeat([]string{line}, 900), inner: inner{Lines: slices.Repeat([]string{line}, embedded)}, own: slices.Repeat([]string{line}, 900),
		}
	}
	for _, c := range []struct {
		few, deep, plain, embedded int
		room                       int
		notes                      []string
		cursor                     string
	}{
		{10, 90, 3, 0, 4000, []string{"deep.lines shortened: 1 to 28 of 90 shown"}, "deep.lines@28"},
		{90, 10, 3, 0, 4000, []string{"few shortened: 1 to 28 of 90 shown"}, "few@28"},
		{10, 10, 900, 0, 4000, []string{"Plain shortened: 1 to 189 of 900 shown"}, "Plain@189"},
		{14, 14, 149, 0, 100, nil, ""}, // nothing of it is long
		{60, 50, 0, 0, 4000, []string{"few shortened: 1 to 7 of 60 shown", "deep.lines shortened: 1 to 31 of 50 shown"}, "few@7"},
	} {
		given := of(c.few, c.deep, c.plain, c.embedded)
		got, err := Shorten(Tidy(given, false), Limit{Bytes: c.room}, false)
		require.NoError(t, err)
		require.Equal(t, c.notes, got.Notes)
		require.Equal(t, c.cursor, got.Cursor)
		require.Equal(t, of(c.few, c.deep, c.plain, c.embedded), given, "what was given stays as it was")
	}
}

// Secrets are removed wherever they are, and the original keeps them.
func TestNoSecretIsSentOn(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef01234567"
	secret := "WANDB_API_KEY=" + key
	type deep struct {
		Text  string            `json:"text"`
		List  []string          `json:"list"`
		By    map[string]string `json:"by"`
		One   *string           `json:"one"`
		Any   any               `json:"any"`
		At    time.Time         `json:"at"`
		Bytes []byte            `json:"bytes"`
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	of := func() []deep {
		one := secret
		return []deep{{Text: secret, List: []string{secret}, By: map[string]string{secret: secret}, One: &one, Any: []any{map[string]any{"x": secret}}, At: at, Bytes: []byte("ok")}}
	}
	given := of()
	raw, err := JSON(Tidy(given, true))
	require.NoError(t, err)
	require.NotContains(t, string(raw), key)
	require.Contains(t, string(raw), "WANDB_API_KEY=")
	require.Contains(t, string(raw), `"at":"2026-11-20T12:00:00Z"`)
	require.Equal(t, of(), given, "what was given stays as it was")
	raw, err = JSON(Tidy(given, false))
	require.NoError(t, err)
	require.Contains(t, string(raw), key, "an answer for who may see it is not cleaned")
	require.Nil(t, Tidy(nil, true))
}

// Rows with short lists keep them, and a list with another name is not taken for a list
// of nodes.
func TestWhichListsOfRowsAreCut(t *testing.T) {
	type row struct {
		Nodes   []string `json:"nodes"`
		Command []string `json:"command"`
	}
	type out struct {
		Rows []row `json:"rows"`
		hid  []row
	}
	words := slices.Repeat([]string{"word"}, longRow+1)
	given := out{Rows: slices.Repeat([]row{{Nodes: words[:longRow], Command: words}}, 300), hid: []row{{}, {}}}
	got, err := Shorten(Tidy(given, false), Limit{Bytes: 4000}, false)
	require.NoError(t, err)
	require.Len(t, got.Notes, 1, "no nodes were left out")
	require.Equal(t, given.Rows[0], got.Out.(out).Rows[0])
	given.Rows[1].Nodes = words
	got, err = Shorten(Tidy(given, false), Limit{Bytes: 4000}, false)
	require.NoError(t, err)
	require.Equal(t, "nodes of each of rows shortened: 4 shown", got.Notes[0])
	require.Len(t, given.Rows[1].Nodes, longRow+1)
	got, err = Shorten(Tidy(out{Rows: []row{{Nodes: slices.Repeat(words, 200)}}}, false), Limit{Bytes: 4000}, false)
	require.NoError(t, err)
	require.Equal(t, []string{"nodes of each of rows shortened: 4 shown"}, got.Notes, "a job alone is shown with some of its nodes, and not left out")
}

// A missing list is sent as an empty one, because the schema promises a list.
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
