package outbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

const again = "Sent once more, in case it did not arrive the first time. Nothing was done twice.\n"

// Whatever a call comes to, people see each thing once, and in its order.
func TestPeopleSeeEachThingOnceAndInOrder(t *testing.T) {
	one, two := Message{Do: Post, Channel: "C1", Text: "one"}, Message{Do: Post, Channel: "C1", Text: "two"}
	below := func(o Message, key string) Message { o.ThreadOf = key; return o }
	direct := Message{Do: Post, Channel: "U1", Text: "one"}
	file := func(channel, content string) Message {
		return Message{Do: Upload, Channel: channel, File: &answer.File{Name: "run.log", Title: "log", Content: content}}
	}
	lost := func(method string) slacktest.Fault {
		return slacktest.Fault{Method: method, Times: 1, Reset: "after"}
	}
	refused := func(method, code string) slacktest.Fault {
		return slacktest.Fault{Method: method, Times: 1, Error: code}
	}
	for name, c := range map[string]struct {
		faults []slacktest.Fault
		owed   []Message // one lane; each has its text, or its file's name, as its key
		want   []string
		gone   []string // what was given up, and why
		x      int      // how often a message was looked for
	}{
		"what is owed twice is said once":            {owed: []Message{one, one, two}, want: []string{"C1: one", "C1: two"}},
		"a message that never arrived is sent":       {[]slacktest.Fault{{Method: "chat.postMessage", Times: 1, Reset: "before"}}, []Message{one, two}, []string{"C1: one", "C1: two"}, nil, 1},
		"one whose answer was lost is found":         {[]slacktest.Fault{lost("chat.postMessage")}, []Message{one, below(two, "one")}, []string{"C1: one", "C1 below one: two"}, nil, 1},
		"one in a thread is found there":             {[]slacktest.Fault{lost("chat.postMessage")}, []Message{{Do: Post, Channel: "C1", Thread: "1.2", Text: "one"}, two}, []string{"C1 below 1.2: one", "C1: two"}, nil, 1},
		"one to a person is found in their messages": {[]slacktest.Fault{lost("chat.postMessage")}, []Message{direct, below(two, "one")}, []string{"DU1: one", "DU1 below one: two"}, nil, 1},
		"Slack could not look: it is looked for again": {
			[]slacktest.Fault{lost("chat.postMessage"), {Method: "conversations.history", Times: 1, Status: 500}},
			[]Message{one, two},
			[]string{"C1: one", "C1: two"},
			nil, 2,
		},
		"Slack does not let us look: it comes twice rather than never": {
			[]slacktest.Fault{lost("chat.postMessage"), refused("conversations.history", "missing_scope")},
			[]Message{one, two},
			[]string{"C1: one", "C1: one", "C1: two"},
			nil, 1,
		},
		"nor open their messages": {
			[]slacktest.Fault{lost("chat.postMessage"), refused("conversations.open", "missing_scope")},
			[]Message{direct},
			[]string{"DU1: one", "DU1: one"},
			nil, 0,
		},
		"a file whose answer was lost is found":       {[]slacktest.Fault{lost("files.completeUploadExternal")}, []Message{file("C1", "x"), two}, []string{"C1: two", "C1: run.log x"}, nil, 1},
		"a file to a person stands in their messages": {[]slacktest.Fault{lost("files.completeUploadExternal")}, []Message{file("U1", "x")}, []string{"DU1: run.log x"}, nil, 1},
		"an empty file is none, and holds nothing up": {owed: []Message{file("C1", ""), two}, want: []string{"C1: two"}},
		"what one person sees comes twice, and says so": {
			[]slacktest.Fault{lost("chat.postEphemeral")},
			[]Message{{Do: Ephemeral, Channel: "C1", User: "U1", Text: "one"}, two},
			[]string{"C1 for U1: one", "C1 for U1: " + again + "one", "C1: two"},
			nil, 0,
		},
		"after a limit Slack has surely not taken it": {
			[]slacktest.Fault{{Method: "chat.postMessage", Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 3}},
			[]Message{one, two},
			[]string{"C1: one", "C1: two"},
			nil, 0,
		},
		"an edit is not looked for": {
			[]slacktest.Fault{lost("chat.update")}, []Message{one, {Do: Update, Ref: "one", Text: "two"}}, []string{"C1: two"}, nil, 0,
		},
		"an edit of what somebody deleted is given up": {
			[]slacktest.Fault{refused("chat.update", "message_not_found")},
			[]Message{one, {Do: Update, Ref: "one", Text: "changed"}, two},
			[]string{"C1: one", "C1: two"},
			[]string{"changed: message_not_found"},
			0,
		},
		"a channel that is gone, and nobody to tell instead": {
			[]slacktest.Fault{refused("chat.postMessage", "channel_not_found")}, []Message{one, two}, []string{"C1: two"}, []string{"one: channel_not_found"}, 0,
		},
		"what belongs to a refused message is given up with it": {
			[]slacktest.Fault{refused("chat.postMessage", "no_permission")},
			[]Message{one, below(two, "one"), {Do: Post, Channel: "C1", Text: "three"}},
			[]string{"C1: three"},
			[]string{"two: the message that it belongs to was refused", "one: no_permission"},
			0,
		},
		"what belongs to one that went to a person follows it": {
			[]slacktest.Fault{refused("chat.postMessage", "not_in_channel")},
			[]Message{{Do: Post, Channel: "C1", Instead: "U1", Text: "one"}, below(two, "one"), {Do: Update, Ref: "one", Channel: "C1", Text: "changed"}},
			[]string{
				"DU1: I am not in this channel, so this comes to you alone. To have it there, type /invite @megatron in <#C1>\nchanged",
				"DU1 below I am not in this channel, so this comes to you alone. To have it there, type /invite @megatron in <#C1>\nchanged: two",
			},
			[]string{"one: sent another way: not_in_channel"},
			0,
		},
		"of two edits that the channel refuses the last counts": {
			[]slacktest.Fault{{Method: "chat.update", Times: 2, Error: "is_archived"}},
			[]Message{one, {Do: Update, Ref: "one", Channel: "C1", Instead: "U1", Text: "two"}, {Do: Update, Ref: "one", Channel: "C1", Instead: "U1", Text: "three"}},
			[]string{"C1: one", "DU1: This comes to you alone, because this channel is archived: <#C1>\nthree"},
			[]string{"three: sent another way: is_archived", "two: sent another way: is_archived"},
			0,
		},
		"a token that was revoked is replaced": {
			[]slacktest.Fault{{Method: "chat.postMessage", Times: 2, Error: "token_revoked"}, {Method: "chat.postMessage", Times: 1, Error: "account_inactive"}},
			[]Message{one, below(two, "one")},
			[]string{"C1: one", "C1 below one: two"},
			nil, 0,
		},
		"a message of a kind that nobody knows":    {owed: []Message{{Do: "shout", Channel: "C1", Text: "one"}, two}, want: []string{"C1: two"}, gone: []string{`one: no way to "shout"`}},
		"blocks that are none":                     {owed: []Message{{Do: Post, Channel: "C1", Blocks: json.RawMessage(`{}`), Text: "one"}, two}, want: []string{"C1: two"}, gone: []string{"one: json: cannot unmarshal object into Go value of type []json.RawMessage"}},
		"a text too large for the list":            {owed: []Message{{Do: Post, Channel: "C1", Text: "one", Extra: json.RawMessage(`"` + strings.Repeat("x", 70<<10) + `"`)}, two}, want: []string{"C1: one", "C1: two"}},
		"servers that fail thrice hold nothing up": {[]slacktest.Fault{{Method: "chat.postMessage", Times: 3, Status: 503}}, []Message{one, two}, []string{"C1: one", "C1: two"}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.fault(c.faults...)
				var owed []store.SlackMessage
				for _, o := range c.owed {
					key := o.Text
					if o.File != nil {
						key = o.File.Name
					}
					owed = append(owed, s.Owe(key, "lane", o))
				}
				s.oweAll(owed...)
				st := s.after(time.Minute)
				require.Equal(t, c.want, stands(st))
				require.Equal(t, c.gone, s.givenUp())
				require.Len(t, s.times(st, "conversations.history", "conversations.replies"), c.x)
				require.Empty(t, st.Early, "before the Retry-After had passed")
			})
		})
	}
}

// What is looked for is this message, and none that was sent before it.
func TestAnotherMessageIsNotTakenForTheLostOne(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.owe("zero", "lane", Message{Do: Post, Channel: "C1", Text: "zero"})
		s.owe("file", "lane", Message{Do: Upload, Channel: "C1", File: &answer.File{Name: "run.log", Title: "log", Content: "x"}})
		s.after(time.Second)
		s.fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Reset: "before"}, slacktest.Fault{Method: "files.completeUploadExternal", Times: 2, Reset: "before"})
		s.owe("one", "lane", Message{Do: Post, Channel: "C1", Text: "one"})
		s.owe("file2", "lane", Message{Do: Upload, Channel: "C1", File: &answer.File{Name: "run.log", Title: "another log", Content: "y"}})
		s.owe("file3", "lane", Message{Do: Upload, Channel: "C1", File: &answer.File{Name: "job.sh", Title: "log", Content: "z"}})
		require.Equal(t, []string{"C1: zero", "C1: one", "C1: run.log x", "C1: run.log y", "C1: job.sh z"}, stands(s.after(time.Minute)))
	})
}

// What belongs to a message waits until that is sent, also in a lane of its own.
func TestWhatBelongsToAMessageWaitsForIt(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.fault(slacktest.Fault{Method: "chat.postMessage", Times: 3, Status: http.StatusServiceUnavailable})
		one := s.Owe("one", "a", Message{Do: Post, Channel: "C1", Text: "one"})
		one.NotBefore = s.now().Add(10 * time.Second)
		s.oweAll(one, s.Owe("two", "b", Message{Do: Post, Channel: "C1", ThreadOf: "one", Text: "two"}))
		require.Empty(t, s.after(9*time.Second).Calls)
		require.Equal(t, []string{"C1: one", "C1 below one: two"}, stands(s.after(time.Minute)))
		require.Empty(t, s.givenUp())
	})
}

// Where a process is killed during a call, nothing is lost and nothing is sent twice.
func TestAKilledProcessLosesAndDoublesNothing(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, DelayMS: 5000})
		s.owe("one", "lane", Message{Do: Post, Channel: "C1", Text: "one"})
		s.owe("two", "lane", Message{Do: Post, Channel: "C1", Text: "two"})
		require.Equal(t, []string{"C1: one"}, stands(s.after(time.Second)), "which the process did not hear of")
		s.stop()
		s.start()
		require.Equal(t, []string{"C1: one", "C1: two"}, stands(s.after(10*time.Second)))
		s.stop()
		s.start()
		require.Len(t, stands(s.after(time.Minute)), 2, "nor later")
	})
}

// One that fails is tried again after two seconds, four, eight …, and at least every
// five minutes and a quarter more: Slack's bad hour ends sometime.
func TestAFailureIsTriedAgainEverLaterAndForEver(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.fault(slacktest.Fault{Method: "chat.update", Times: 10, Status: 500})
		s.owe("one", "lane", Message{Do: Post, Channel: "C1", Text: "one"})
		s.owe("two", "lane", Message{Do: Update, Ref: "one", Text: "changed"})
		st := s.after(25 * time.Minute)
		require.Equal(t, []string{"C1: changed"}, stands(st))
		at := s.times(st, "chat.update")
		require.Len(t, at, 11)
		for i := range at[1:] {
			least := min(5*time.Minute, time.Second<<min(i+1, 9))
			require.GreaterOrEqual(t, at[i+1]-at[i], least)
			require.LessOrEqual(t, at[i+1]-at[i], least*5/4+time.Second)
		}
	})
}

// A rate limit applies to the calls of its method to its channel: other channels and methods go
// on. A waiting message can still be replaced by a newer edit.
func TestALimitHoldsForItsChannel(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 30})
		first := s.Owe("state/1", "a", Message{Do: Post, Channel: "C1", Text: "1 of 9"})
		first.Collapse = "state"
		s.oweAll(first)
		s.after(time.Second)
		s.owe("b", "b", Message{Do: Post, Channel: "C1", Text: "held too"})
		s.owe("c", "c", Message{Do: Post, Channel: "C2", Text: "elsewhere"})
		s.owe("d", "d", Message{Do: Ephemeral, Channel: "C1", User: "U1", Text: "of another kind"})
		newer := s.Owe("state/2", "a", Message{Do: Post, Channel: "C1", Text: "9 of 9"})
		newer.Collapse = "state"
		s.oweAll(newer)
		require.ElementsMatch(t, []string{"C2: elsewhere", "C1 for U1: of another kind"}, stands(s.after(28*time.Second)))
		st := s.after(5 * time.Second)
		require.ElementsMatch(t, []string{"C2: elsewhere", "C1 for U1: of another kind", "C1: 9 of 9", "C1: held too"}, stands(st))
		require.Empty(t, st.Early)
	})
}

// A channel takes four messages at once and then one a second; another channel does not wait
// for it.
func TestABusyChannelHoldsUpNoOther(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Reset: "after"}) // it is looked for in its turn
		for i := range 250 {
			s.owe(fmt.Sprint("busy", i), fmt.Sprint("busy", i), Message{Do: Post, Channel: "C1", Text: "busy"})
		}
		s.owe("other", "other", Message{Do: Post, Channel: "C2", Text: "other"})
		st := s.after(10 * time.Second)
		require.Contains(t, stands(st), "C2: other")
		require.InDelta(t, 14, len(st.Messages), 2)
		st = s.after(5 * time.Minute)
		require.Len(t, st.Messages, 251)
	})
}

// An edit that comes between the choice of a message and its call takes the message's place.
func TestANewerEditIsSentAlone(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		state := func(n int) store.SlackMessage {
			m := s.Owe(fmt.Sprint("state/", n), "a", Message{Do: Post, Channel: "C1", Text: fmt.Sprint(n, " of 9")})
			m.Collapse = "state"
			return m
		}
		s.chosen = func() { require.NoError(t, s.store.Enqueue(t.Context(), state(9))) }
		s.oweAll(state(1))
		require.Equal(t, []string{"C1: 9 of 9"}, stands(s.after(time.Minute)))
	})
}

// Eight calls are under way at a time. One that hangs is broken off after half a
// minute, and only what stands behind it waits.
func TestACallThatHangsHoldsUpItsLaneAlone(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.fault(slacktest.Fault{Method: "chat.postEphemeral", Times: 1, DelayMS: 40_000})
		s.owe("hangs", "a", Message{Do: Ephemeral, Channel: "C1", User: "U1", Text: "hangs"})
		s.owe("behind", "a", Message{Do: Post, Channel: "C1", Text: "behind it"})
		s.after(time.Second)
		s.owe("other", "b", Message{Do: Post, Channel: "C1", Text: "not behind it"})
		s.owe("kind", "c", Message{Do: Ephemeral, Channel: "C1", User: "U1", Text: "the same call"})
		require.Equal(t, []string{"C1 for U1: hangs", "C1: not behind it"}, stands(s.after(28*time.Second)), "a call of a kind to a channel at a time")
		require.Contains(t, stands(s.after(10*time.Second)), "C1: behind it")

		s.fault(slacktest.Fault{Method: "chat.postMessage", Times: 12, DelayMS: 5000})
		before := len(s.times(s.after(0), "chat.postMessage"))
		for i := range 12 {
			s.owe(fmt.Sprint(i), fmt.Sprint(i), Message{Do: Post, Channel: fmt.Sprint("D", i), Text: "x"})
		}
		require.Len(t, s.times(s.after(4*time.Second), "chat.postMessage"), before+8)
		require.Len(t, s.times(s.after(4*time.Second), "chat.postMessage"), before+12)
	})
}

// What a response address says decides what becomes of the answer.
func TestAnAnswerThroughAResponseAddress(t *testing.T) {
	says := func(status int, body string, header ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			for _, h := range header {
				k, v, _ := strings.Cut(h, ": ")
				w.Header().Set(k, v)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		hooks []func(http.ResponseWriter)
		url   string
		sent  int // how often, within the time
		wait  time.Duration
		want  []string // what the person has directly
		gone  string
	}{
		"taken":                           {hooks: []func(http.ResponseWriter){says(200, "ok")}, sent: 1},
		"taken, in JSON":                  {hooks: []func(http.ResponseWriter){says(200, `{"ok":true}`)}, sent: 1},
		"taken, in words":                 {hooks: []func(http.ResponseWriter){says(200, "Thanks!")}, sent: 1},
		"refused as text":                 {hooks: []func(http.ResponseWriter){says(404, "used_url")}, sent: 1, want: []string{"DU1: done"}, gone: "sent another way: used_url"},
		"refused in JSON":                 {hooks: []func(http.ResponseWriter){says(200, `{"ok":false,"error":"expired_url"}`)}, sent: 1, want: []string{"DU1: done"}, gone: "sent another way: expired_url"},
		"refused as text, well":           {hooks: []func(http.ResponseWriter){says(200, "expired_url")}, sent: 1, want: []string{"DU1: done"}, gone: "sent another way: expired_url"},
		"a word of JSON that is no error": {hooks: []func(http.ResponseWriter){says(404, `{"ok":true,"error":"used_url"}`)}, sent: 1, want: []string{"DU1: done"}, gone: "slack server error"},
		"refused without a word":          {hooks: []func(http.ResponseWriter){says(403, "<html>")}, sent: 1, want: []string{"DU1: done"}, gone: "sent another way: slack server error: "},
		"led elsewhere":                   {hooks: []func(http.ResponseWriter){says(302, "")}, sent: 1, want: []string{"DU1: done"}, gone: "sent another way: the response_url leads elsewhere"},
		"led elsewhere, the last way":     {hooks: []func(http.ResponseWriter){says(399, "ok")}, sent: 1, want: []string{"DU1: done"}, gone: "sent another way: the response_url leads elsewhere"},
		"led elsewhere, the first way":    {hooks: []func(http.ResponseWriter){says(300, "ok")}, sent: 1, want: []string{"DU1: done"}, gone: "sent another way: the response_url leads elsewhere"},
		"refused, the first way":          {hooks: []func(http.ResponseWriter){says(400, "<html>")}, sent: 1, want: []string{"DU1: done"}, gone: "sent another way: slack server error: "},
		"no address of Slack's":           {url: "https://example.com/hook", want: []string{"DU1: done"}, gone: "sent another way: not an address of Slack's"},
		"servers that fail":               {hooks: []func(http.ResponseWriter){says(500, "used_url"), says(200, "ok")}, sent: 2},
		"a limit, before it has ended":    {hooks: []func(http.ResponseWriter){says(429, "", "Retry-After: 50")}, sent: 1, wait: 49 * time.Second},
		"a limit, after its end":          {hooks: []func(http.ResponseWriter){says(429, "", "Retry-After: 50"), says(200, "ok")}, sent: 2, wait: 52 * time.Second},
		"a limit of no length":            {hooks: []func(http.ResponseWriter){says(429, "later"), says(200, "ok")}, sent: 2},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.hooks = c.hooks
				s.owe("a", "a", Message{Do: Respond, URL: cmp.Or(c.url, "https://hooks.slack.com/x"), User: "U1", Text: "done"})
				st := s.after(cmp.Or(c.wait, 10*time.Second))
				require.Len(t, s.posted, c.sent)
				require.Equal(t, c.want, stands(st))
				require.Contains(t, strings.Join(s.givenUp(), ""), c.gone)
				require.Equal(t, c.gone != "", len(s.givenUp()) == 1)
			})
		})
	}
}

// Each kind of message reaches what it is for.
func TestEachKindReachesItsPlace(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		blocks := json.RawMessage(`[{"type":"header","text":{"type":"plain_text","text":"gpt"}}]`)
		for i, o := range []Message{
			{Do: Respond, URL: "https://hooks.slack.com/x", Text: "to one", Thread: "1.2", Blocks: blocks},
			{Do: Respond, URL: "https://hooks.slack.com/x", Text: "to all", Share: true, Replace: true},
			{Do: Home, User: "U1", Blocks: blocks},
			{Do: Unfurl, Channel: "C1", TS: "1.2", Extra: json.RawMessage(`{"https://x.example/1":{"text":"a job"}}`)},
			{Do: Prompts, Extra: json.RawMessage(`{"channel_id":"D1","thread_ts":"1.2","prompts":[{"title":"Mine","message":"jobs"}]}`)},
			{Do: Post, Channel: "C1", Text: "gpt", Blocks: blocks},
			{Do: Post, Channel: "C1", Text: "below", ThreadOf: "5"},
			{Do: Update, Ref: "5", Thread: "1.2", Text: "gpt, done", Blocks: blocks},
			{Do: Upload, Channel: "C1", ThreadOf: "5", File: &answer.File{Name: "loss.png", Title: "Loss"}, Bytes: []byte("PNG")},
		} {
			s.owe(fmt.Sprint(i), "lane", o)
		}
		st := s.after(time.Minute)
		require.Empty(t, s.givenUp())
		require.Equal(t, []string{"C1: gpt, done", "C1 below gpt, done: below", "C1 below gpt, done: loss.png PNG"}, stands(st))
		require.JSONEq(t, `{"text":"to one","response_type":"ephemeral","replace_original":false,"delete_original":false,"thread_ts":"1.2","parse":"none",
			"unfurl_links":false,"unfurl_media":false,"blocks":[{"type":"header","text":{"type":"plain_text","text":"gpt"}}]}`, s.posted[0])
		require.Contains(t, s.posted[1], `"response_type":"in_channel","replace_original":true`)
		require.Contains(t, slacktest.JSON(st.Homes["U1"]), `"text":"gpt"`)
		for _, c := range st.Calls {
			require.Equal(t, "ok", c.Answer, "%s %v", c.Method, c.Problems)
			if said := slacktest.JSON(c.Args); c.Method == "chat.postMessage" || c.Method == "chat.update" {
				require.NotContains(t, said, `"parse":"true"`, "nothing is read for names")
				require.Contains(t, said, `"unfurl_links":"false"`, "nor unfurled")
				require.False(t, c.Method == "chat.update" && strings.Contains(said, "thread_ts"), "an edit names no thread")
			}
		}
	})
}

// A message that nobody has a token for is given up after a day.
func TestATokenIsNotAwaitedForEver(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.fault(slacktest.Fault{Method: "chat.postMessage", Error: "token_revoked"})
		s.owe("one", "lane", Message{Do: Post, Channel: "C1", Text: "one"})
		s.after(time.Minute)
		require.Empty(t, s.givenUp())
		s.skew.Store(int64(25 * time.Hour))
		s.after(time.Minute)
		require.Equal(t, []string{"one: token_revoked"}, s.givenUp())
	})
}
