package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// onEach runs a test on SQLite and, if it is installed, on PostgreSQL.
func onEach(t *testing.T, test func(*testing.T, *Slack)) {
	t.Helper()
	urls := map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "s.db") },
		"postgres": freshPostgres,
	}
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), url(t))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			test(t, s.Slack())
		})
	}
}

// freshPostgres is the URL of an empty database on the server.
func freshPostgres(t *testing.T) string {
	t.Helper()
	server := needPostgres(t)
	name := "db_" + strings.ToLower(rand.Text())
	db, err := sql.Open("pgx", server)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	return strings.Replace(server, "/postgres?", "/"+name+"?", 1)
}

func keys(list []SlackMessage) (k []string) {
	for _, m := range list {
		k = append(k, m.Key)
	}
	return k
}

func TestARequestIsAcceptedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		r := SlackRequest{Key: "T1/trigger", Body: "hello", At: noon}
		fresh, err := s.Accept(ctx, r)
		require.NoError(t, err)
		require.True(t, fresh)
		fresh, err = s.Accept(ctx, r)
		require.NoError(t, err)
		require.False(t, fresh)

		list, err := s.Unfinished(ctx, 10)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, s.Finish(ctx, r.Key, noon, SlackMessage{Key: "m", Lane: "l", Queued: noon}))
		list, err = s.Unfinished(ctx, 10)
		require.NoError(t, err)
		require.Empty(t, list)
		fresh, err = s.Accept(ctx, r)
		require.NoError(t, err)
		require.False(t, fresh, "a finished request is still known")
		due, err := s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"m"}, keys(due))
	})
}

// What people typed is not kept once it is answered; what nobody has answered is, however
// old it is, and so is what was not sent.
func TestWhatIsDoneLosesItsTextAndThenItsKey(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		for i, key := range []string{"third", "second", "first"} {
			_, err := s.Accept(ctx, SlackRequest{Key: key, Body: "secret " + key, At: noon.Add(-time.Duration(i) * time.Minute)})
			require.NoError(t, err)
			require.NoError(t, s.Enqueue(ctx, SlackMessage{Key: key, Lane: key, Body: "secret " + key, Queued: noon.Add(time.Duration(i) * time.Minute)}))
		}
		open := func() (found []string) {
			list, err := s.Unfinished(ctx, 10)
			require.NoError(t, err)
			for _, r := range list {
				found = append(found, r.Key)
			}
			return found
		}
		texts := func() (found []string) {
			list, err := collect(ctx, s.Store, func(row scanner) (text string, err error) { return text, row.Scan(&text) },
				`SELECT body FROM slack_inbox WHERE body <> '' UNION ALL SELECT body FROM slack_outbox WHERE body <> ''`)
			require.NoError(t, err)
			return list
		}
		require.Equal(t, []string{"first", "second", "third"}, open(), "the oldest is answered first")
		require.NoError(t, s.Finish(ctx, "third", noon))
		due, err := s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.NoError(t, s.Sent(ctx, due[0], SlackRef{}))
		require.Equal(t, []string{"first", "second"}, open())
		require.ElementsMatch(t, []string{"secret first", "secret first", "secret second", "secret second"}, texts())

		sent := SlackMessage{Key: "third", Lane: "third", Body: "again", Queued: noon}
		for _, after := range []time.Duration{0, time.Millisecond} { // at the end of the retention, and after it
			require.NoError(t, s.Sweep(ctx, noon.Add(after), noon.Add(after)))
			fresh, err := s.Accept(ctx, SlackRequest{Key: "third", At: noon})
			require.NoError(t, err)
			require.Equal(t, after > 0, fresh)
			require.NoError(t, s.Enqueue(ctx, sent))
			n, oldest, err := s.Backlog(ctx)
			require.NoError(t, err)
			require.Equal(t, map[bool]int{false: 2, true: 3}[after > 0], n)
			require.True(t, oldest.Equal(noon.Add(map[bool]time.Duration{false: time.Minute}[after > 0])), oldest)
		}
		require.Equal(t, []string{"first", "second", "third"}, open())
	})
}

func TestALaneKeepsItsOrder(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		require.NoError(t, s.Enqueue(ctx,
			SlackMessage{Key: "a1", Lane: "a", NotBefore: noon.Add(time.Minute)},
			SlackMessage{Key: "a2", Lane: "a"},
			SlackMessage{Key: "b1", Lane: "b"}))
		due, err := s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"b1"}, keys(due), "a2 waits for a1")
		due, err = s.Due(ctx, noon.Add(time.Hour), 10)
		require.NoError(t, err)
		require.Equal(t, []string{"a1", "b1"}, keys(due))
		require.NoError(t, s.Sent(ctx, due[0], SlackRef{Channel: "C1", TS: "1.1"}))
		due, err = s.Due(ctx, noon.Add(time.Hour), 10)
		require.NoError(t, err)
		require.Equal(t, []string{"a2", "b1"}, keys(due))
		ref, ok, err := s.Ref(ctx, "a1")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, SlackRef{Channel: "C1", TS: "1.1"}, ref)
	})
}

func TestEditsCollapseUntilTheyAreTried(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		edit := func(key, body string, at time.Time) {
			require.NoError(t, s.Enqueue(ctx, SlackMessage{Key: key, Lane: "card", Collapse: "card", Body: body, NotBefore: at}))
		}
		edit("1", "old", noon.Add(time.Minute))
		edit("2", "new", noon)
		due, err := s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.Len(t, due, 1)
		require.Equal(t, "new", due[0].Body)
		edit("2a", "newer", noon)
		ok, err := s.Trying(ctx, due[0], noon)
		require.NoError(t, err)
		require.False(t, ok, "who has read it before it was replaced does not send it")
		due, err = s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.Equal(t, "newer", due[0].Body)
		ok, err = s.Trying(ctx, due[0], noon)
		require.NoError(t, err)
		require.True(t, ok)
		edit("3", "newest", noon)
		require.NoError(t, s.Sent(ctx, due[0], SlackRef{}))
		due, err = s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.Len(t, due, 1)
		require.Equal(t, "newest", due[0].Body)
	})
}

func TestBuriedMessagesLetTheirLaneGoOn(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		require.NoError(t, s.Enqueue(ctx, SlackMessage{Key: "bad", Lane: "a", Collapse: "card"}, SlackMessage{Key: "good", Lane: "a"}))
		due, err := s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.NoError(t, s.Bury(ctx, due[0].ID, "channel_not_found"))
		require.NoError(t, s.Enqueue(ctx, SlackMessage{Key: "edit", Lane: "b", Collapse: "card"}))
		due, err = s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"good", "edit"}, keys(due), "a message that will never be sent is not replaced")
		dead, err := s.Buried(ctx, 10)
		require.NoError(t, err)
		require.Equal(t, "channel_not_found", dead[0].Error)
		require.NoError(t, s.Bury(ctx, due[1].ID, "is_archived"))
		dead, err = s.Buried(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"edit"}, keys(dead), "the newest")

		// A reply to a message waits for that message unless it has failed for good.
		for _, c := range []struct {
			keys []string
			gone bool
		}{{[]string{"bad"}, true}, {[]string{"unknown"}, true}, {[]string{"good"}, false}, {[]string{"bad", "good"}, false}} {
			gone, err := s.Gone(ctx, c.keys...)
			require.NoError(t, err)
			require.Equal(t, c.gone, gone, c.keys)
		}
	})
}

func TestOldRefusalsAndPlacesAreForgotten(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		at := func(age time.Duration) string { return fmt.Sprintf("%d.000100", noon.Add(-age).Unix()) }
		require.NoError(t, s.Enqueue(ctx, SlackMessage{Key: "refused", Lane: "a", Queued: noon}, SlackMessage{Key: "old", Lane: "b"}, SlackMessage{Key: "young", Lane: "c"}))
		due, err := s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.Len(t, due, 3)
		require.NoError(t, s.Bury(ctx, due[0].ID, "channel_not_found"))
		require.NoError(t, s.Sent(ctx, due[1], SlackRef{Channel: "C1", TS: at(390 * 24 * time.Hour)}))
		require.NoError(t, s.Sent(ctx, due[2], SlackRef{Channel: "C1", TS: at(0)}))
		left := func(now time.Time) (refused int, places []string) {
			require.NoError(t, s.Sweep(ctx, now.Add(-48*time.Hour), now))
			dead, err := s.Buried(ctx, 10)
			require.NoError(t, err)
			for _, key := range []string{"old", "young"} {
				_, ok, err := s.Ref(ctx, key)
				require.NoError(t, err)
				if ok {
					places = append(places, key)
				}
			}
			return len(dead), places
		}
		refused, places := left(noon.Add(9 * 24 * time.Hour))
		require.Equal(t, 1, refused)
		require.Equal(t, []string{"old", "young"}, places)
		refused, places = left(noon.Add(31 * 24 * time.Hour))
		require.Zero(t, refused)
		require.Equal(t, []string{"young"}, places)
	})
}

func TestOneTakerOfMany(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		require.NoError(t, s.Put(ctx, "held", "x", map[string]string{"op": "cancel"}, noon.Add(time.Hour)))
		var other map[string]string
		ok, err := s.Take(ctx, "other", "x", noon, &other)
		require.NoError(t, err)
		require.False(t, ok, "a key of another kind is another document")
		var got atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				var v map[string]string
				ok, err := s.Take(context.WithoutCancel(ctx), "held", "x", noon, &v)
				if err == nil && ok {
					got.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, got.Load())
	})
}

func TestDocumentsExpire(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		require.NoError(t, s.Put(ctx, "code", "a", "v", noon))
		var v string
		for _, at := range []time.Time{noon, noon.Add(time.Second)} {
			ok, err := s.Get(ctx, "code", "a", at, &v)
			require.NoError(t, err)
			require.False(t, ok)
		}
		require.NoError(t, s.Put(ctx, "code", "renewed", "v", noon))
		require.NoError(t, s.Put(ctx, "code", "renewed", "w", noon.Add(2*time.Hour)))
		ok, err := s.Get(ctx, "code", "renewed", noon.Add(time.Hour), &v)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "w", v)
		ks, err := s.Keys(ctx, "code", noon.Add(-time.Second))
		require.NoError(t, err)
		require.Equal(t, []string{"a", "renewed"}, ks)
		require.NoError(t, s.Put(ctx, "code", "never", "v", time.Time{}))
		require.NoError(t, s.Sweep(ctx, noon, noon.Add(time.Hour)))
		ks, err = s.Keys(ctx, "code", noon.Add(-time.Second))
		require.NoError(t, err)
		require.Equal(t, []string{"never", "renewed"}, ks)
	})
}

func TestAClaimIsTheFirstOnes(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		for _, by := range []string{"first", "second", "first"} {
			owner, err := s.Claim(ctx, "claim", "x", by, noon.Add(time.Hour))
			require.NoError(t, err)
			require.Equal(t, "first", owner, "claimed by %s", by)
		}
	})
}

func TestDocumentsAreForgottenOneByOne(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		for key, expires := range map[string]time.Time{"past": noon, "soon": noon.Add(time.Minute), "never": {}} {
			require.NoError(t, s.Put(ctx, "code", key, "v", expires))
		}
		require.NoError(t, s.Put(ctx, "other", "soon", "v", noon.Add(time.Hour)))
		all, err := s.Expiries(ctx, "code", noon)
		require.NoError(t, err)
		require.Len(t, all, 2, "what has expired at that moment is none")
		require.True(t, all["soon"].Equal(noon.Add(time.Minute)))
		require.True(t, all["never"].IsZero())
		require.NoError(t, s.Delete(ctx, "code", "soon"))
		keys, err := s.Keys(ctx, "code", noon)
		require.NoError(t, err)
		require.Equal(t, []string{"never"}, keys)
		keys, err = s.Keys(ctx, "other", noon)
		require.NoError(t, err)
		require.Equal(t, []string{"soon"}, keys)
	})
}

// A postponed message waits until its time, says why, and may be replaced if Slack
// certainly did not accept it.
func TestAMessageIsPutOff(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		for _, settled := range []bool{true, false} {
			lane := fmt.Sprint(settled)
			card := func(key string) {
				require.NoError(t, s.Enqueue(ctx, SlackMessage{Key: lane + key, Lane: lane, Collapse: lane, Body: key, NotBefore: noon}))
			}
			of := func(at time.Time) (found []SlackMessage) {
				due, err := s.Due(ctx, at, 10)
				require.NoError(t, err)
				for _, m := range due {
					if m.Lane == lane {
						found = append(found, m)
					}
				}
				return found
			}
			card("old")
			m := of(noon)[0]
			_, err := s.Trying(ctx, m, noon)
			require.NoError(t, err)
			require.NoError(t, s.Later(ctx, m.ID, noon.Add(time.Minute), "ratelimited", settled))
			require.Empty(t, of(noon.Add(59*time.Second)))
			m = of(noon.Add(time.Minute))[0]
			require.Equal(t, "ratelimited", m.Error)
			require.Equal(t, 1, m.Attempts)
			require.Equal(t, !settled, m.Tried.Equal(noon))
			_, err = s.Trying(ctx, m, noon.Add(time.Minute))
			require.NoError(t, err)
			m = of(noon.Add(time.Minute))[0]
			require.Equal(t, 2, m.Attempts)
			require.Equal(t, settled, m.Tried.After(noon), "the first attempt that Slack may have accepted")
			require.NoError(t, s.Later(ctx, m.ID, noon.Add(time.Minute), "ratelimited", settled))
			card("new")
			first := of(noon.Add(time.Minute))[0]
			require.Equal(t, settled, first.Body == "new", "settled %t", settled)
			require.NoError(t, s.Sent(ctx, first, SlackRef{Channel: "C" + lane, TS: "1.2"}))
			key, ok, err := s.Find(ctx, SlackRef{Channel: "C" + lane, TS: "1.2"})
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, first.Key, key)
		}
		_, ok, err := s.Find(ctx, SlackRef{Channel: "Ctrue", TS: "9.9"})
		require.NoError(t, err)
		require.False(t, ok)
	})
}

// Between an attempt and its recorded result somebody may read a message whose place is not known.
func TestAMessageIsUnderWayUntilItsPlaceIsKnown(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		require.NoError(t, s.Enqueue(ctx, SlackMessage{Key: "m", Lane: "l"}))
		due, err := s.Due(ctx, noon, 1)
		require.NoError(t, err)
		under := func(since time.Time) bool {
			some, err := s.UnderWay(ctx, since)
			require.NoError(t, err)
			return some
		}
		require.False(t, under(noon))
		_, err = s.Trying(ctx, due[0], noon)
		require.NoError(t, err)
		require.True(t, under(noon))
		require.False(t, under(noon.Add(time.Millisecond)), "that was before")
		require.NoError(t, s.Sent(ctx, due[0], SlackRef{Channel: "C1", TS: "1.2"}))
		require.False(t, under(noon))
	})
}

// A document is added where there is none, or one that has expired.
func TestADocumentIsAddedOnce(t *testing.T) {
	each(t, func(t *testing.T, st *Store) {
		s, ctx := st.Slack(), t.Context()
		for _, x := range []struct {
			kind    string
			now     time.Time
			expires time.Duration
			added   bool
		}{
			{"hour", noon, time.Hour, true}, {"hour", noon.Add(59 * time.Minute), time.Hour, false}, {"hour", noon.Add(time.Hour), time.Hour, true},
		} {
			added, err := s.Add(ctx, x.kind, "x", x.now.String(), x.now, x.now.Add(x.expires))
			require.NoError(t, err)
			require.Equal(t, x.added, added, "%s", x.now)
		}
		var v string
		ok, err := s.Get(ctx, "hour", "x", noon.Add(time.Hour), &v)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, noon.Add(time.Hour).String(), v)
		require.NoError(t, s.Put(ctx, "ever", "x", 1, time.Time{}))
		added, err := s.Add(ctx, "ever", "x", 2, noon.AddDate(9, 0, 0), noon.AddDate(10, 0, 0))
		require.NoError(t, err)
		require.False(t, added)
	})
}

// A document is replaced or deleted together with the messages that tell it, unless it has changed.
func TestADocumentIsReplacedAsItWasRead(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		ctx := t.Context()
		kept := func() (raw json.RawMessage) {
			_, err := s.Get(ctx, "k", "1", noon, &raw)
			require.NoError(t, err)
			return raw
		}
		replace := func(was json.RawMessage, value any, key string) bool {
			done, err := s.Replace(ctx, "k", "1", was, value, time.Time{}, SlackMessage{Key: key, Lane: key, Queued: noon})
			require.NoError(t, err)
			return done
		}
		require.False(t, replace(json.RawMessage(`"b"`), nil, "no document"))
		require.True(t, replace(nil, map[string]string{"a": "<1>"}, "new"))
		require.False(t, replace(nil, "other", "there is one"))
		first := kept()
		require.True(t, replace(first, "b", "changed"))
		require.False(t, replace(first, "c", "changed meanwhile"))
		require.False(t, replace(first, nil, "not deleted"))
		require.JSONEq(t, `"b"`, string(kept()))
		_, err := s.Replace(ctx, "k", "1", kept(), make(chan int), time.Time{})
		require.Error(t, err)
		require.True(t, replace(kept(), nil, "deleted"))
		require.Nil(t, kept())
		due, err := s.Due(ctx, noon, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"new", "changed", "deleted"}, keys(due))
	})
}
