package mcp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A client that comes back is sent what it missed on its stream, as far as that is kept, and is told where it is not.
func TestWhatIsKeptForAClientThatComesBack(t *testing.T) {
	e := newEvents()
	store := func(session, stream, message string) string {
		id, err := e.StoreEvent(t.Context(), session, stream, json.RawMessage(message))
		require.NoError(t, err)
		return id
	}
	missed := func(session, after string) (ids []string, err error) {
		_, err = e.ReplayEventsAfter(t.Context(), session, after, func(id string, _ json.RawMessage) error {
			ids = append(ids, id)
			return nil
		})
		return ids, err
	}
	first, other := store("s", "a", "1"), store("s", "b", "2")
	second := store("s", "a", "3")
	ids, err := missed("s", first)
	require.NoError(t, err)
	require.Equal(t, []string{second}, ids, "of its own stream")
	_, err = missed("stranger", first)
	require.ErrorIs(t, err, sdkserver.ErrUnknownEventID)

	for range keptEvents - 2 {
		store("s", "a", "4")
	}
	_, err = missed("s", first)
	require.ErrorIs(t, err, sdkserver.ErrUnknownEventID, "so many later it is forgotten")
	ids, err = missed("s", other)
	require.NoError(t, err, "the oldest that is kept")
	require.Empty(t, ids)
	ids, err = missed("s", second)
	require.NoError(t, err)
	require.Len(t, ids, keptEvents-2)

	long := strings.Repeat("x", keptBytes*2/3)
	before := store("s", "a", "5")
	one := store("s", "a", long)
	_, err = missed("s", before)
	require.NoError(t, err)
	two := store("s", "a", long)
	for _, id := range []string{before, one} {
		_, err = missed("s", id)
		require.ErrorIs(t, err, sdkserver.ErrUnknownEventID)
	}
	_, err = missed("s", two)
	require.NoError(t, err, "the newest is kept, however long")
	require.NoError(t, e.PurgeSession(t.Context(), "s"))
	_, err = missed("s", two)
	require.Error(t, err)
}

// A key that an issuer began to sign with is taken within half a minute, one that it
// withdrew is not after an hour, and an issuer that is away changes nothing meanwhile.
func TestAnIssuerChangesItsKeys(t *testing.T) {
	keys, asked, away := jose.JSONWebKeySet{}, 0, false
	add := func(kid string) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		keys.Keys = append(keys.Keys, jose.JSONWebKey{Key: &k.PublicKey, KeyID: kid, Algorithm: "ES256", Use: "sig"})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		if away {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(keys)
	}))
	t.Cleanup(srv.Close)
	now := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	s := &keySet{url: srv.URL, client: srv.Client(), now: func() time.Time { return now }}
	for _, step := range []struct {
		name   string
		before func()
		kid    string
		alg    string
		known  bool
		asked  int
	}{
		{"the first", func() { add("a") }, "a", "ES256", true, 1},
		{"without a name it is the only one", nil, "", "ES256", true, 1},
		{"of another form", nil, "a", "RS256", false, 1},
		{"one that is made up", nil, "b", "ES256", false, 1},
		{"asked for at once again", func() { add("b"); now = now.Add(keysRetry) }, "b", "ES256", false, 1},
		{"a new one", func() { now = now.Add(time.Second) }, "b", "ES256", true, 2},
		{"without a name it is none of two", nil, "", "ES256", false, 2},
		{"known ones are not asked for", func() { now = now.Add(keysRetry + time.Second) }, "a", "ES256", true, 2},
		{"the issuer is away", func() { away = true; now = now.Add(keysFresh) }, "a", "ES256", true, 3},
		{"away, and one that nobody knows", func() { now = now.Add(keysRetry + time.Second) }, "c", "ES256", false, 4},
		{"withdrawn", func() { away = false; keys.Keys = keys.Keys[1:]; now = now.Add(keysFresh + time.Second) }, "a", "ES256", false, 5},
		{"what stays", nil, "b", "ES256", true, 5},
	} {
		if step.before != nil {
			step.before()
		}
		_, err := s.find(context.Background(), step.kid, step.alg)
		require.Equal(t, step.known, err == nil, "%s: %v", step.name, err)
		require.Equal(t, step.asked, asked, step.name)
	}
}

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
	cutTo := func(out shownRows, r room, tail bool) (shownRows, cut) {
		c, err := shorten(tidy(out, false), r, tail)
		require.NoError(t, err)
		require.LessOrEqual(t, len(c.raw), max(r.bytes, smallPiece))
		return c.out.(shownRows), c
	}
	few := rows(3, 9)
	got, c := cutTo(few, room{bytes: 4000}, false)
	require.Equal(t, few, got)
	require.Empty(t, c.notes)
	require.Empty(t, c.cursor)

	got, c = cutTo(rows(60, 50), room{bytes: 4000}, false)
	require.Len(t, got.Jobs, 60)
	require.Len(t, got.Jobs[0].Nodes, longRow)
	require.Equal(t, []string{"nodes of each of jobs shortened: 4 shown"}, c.notes)
	require.Empty(t, c.cursor)

	all := rows(500, 1)
	got, c = cutTo(all, room{bytes: 4000}, false)
	n := len(got.Jobs)
	require.Greater(t, n, 50)
	require.Equal(t, []string{fmt.Sprintf("jobs shortened: 1 to %d of 500 shown", n)}, c.notes)
	require.Equal(t, fmt.Sprintf("jobs@%d", n), c.cursor)
	next, c := cutTo(all, room{bytes: 4000, cursor: c.cursor}, false)
	require.Equal(t, n, next.Jobs[0].ID, "nothing is passed over")
	require.Equal(t, []string{fmt.Sprintf("jobs shortened: %d to %d of 500 shown", n+1, n+len(next.Jobs))}, c.notes)
	end, c := cutTo(all, room{bytes: 4000, cursor: "jobs@490"}, false)
	require.Len(t, end.Jobs, 10)
	require.Empty(t, c.cursor)
	last, c := cutTo(all, room{bytes: 4000}, true)
	require.Equal(t, 499, last.Jobs[len(last.Jobs)-1].ID, "of lines the newest stay")
	require.Empty(t, c.cursor)
	for _, cursor := range []string{"jobs@501", "jobs@-1", "jobs@x", "jobs", "note@1", "nodes@1"} {
		_, err := shorten(tidy(all, false), room{bytes: 4000, cursor: cursor}, false)
		require.ErrorContains(t, err, "is no place in this answer", cursor)
	}

	script := rows(1, 1)
	script.Note = strings.Repeat("x", maxString-1)
	c, err := shorten(tidy(script, false), room{bytes: 4000}, false)
	require.NoError(t, err)
	require.Equal(t, script, c.out, "half a script is worth nothing")
	script.Note += "xx"
	got, c = cutTo(script, room{bytes: 4000}, false)
	require.Less(t, len(got.Note), 4000)
	require.Contains(t, c.notes[0], "note shortened: 1 to ")
}

// A list that is missing is an empty one to a client, whose schema promises a list.
func TestMissingListsAreEmpty(t *testing.T) {
	raw, err := json.Marshal(tidy(struct {
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

// Only an operation's command is a tool's call.
func TestWhichCommandsAreCalls(t *testing.T) {
	got := hints([]string{"serve", "", "cancel '4711", "cancel --nosuch 1", "nosuch 4711", "cancel 4711 --yes", "list --all"})
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `[{"tool":"cancel","arguments":{"job":"4711"}},{"tool":"list","arguments":{"all":true}}]`, string(raw))
}

// What the drawn answer does not show is added for who reads text alone, once.
func TestWhatTheTextWouldLackIsAdded(t *testing.T) {
	doc := view.Doc{Title: "job 7"}
	type out struct {
		Job     string         `json:"job"`
		Script  string         `json:"script"`
		Derived map[string]int `json:"derived"`
		Empty   map[string]int `json:"empty"`
		hidden  string
		Inside  string `json:"-"`
	}
	said := unshown(out{Job: "job 7", Script: "#!/bin/bash\ntrue", Derived: map[string]int{"dp": 8}, Empty: map[string]int{}, hidden: "h", Inside: "i"}, doc)
	require.Equal(t, verbatim("script", "#!/bin/bash\ntrue")+"derived: {\"dp\":8}\n", said)
	require.Empty(t, unshown("text", doc))
}
