package notify

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The request to each service is pinned byte for byte: with all that a message may
// contain, and with only its headline.
func TestWhatEachServiceIsSent(t *testing.T) {
	t.Parallel()
	whole := Message{
		Key: "dev/7/end/0", Tone: view.Bad, Headline: lang.Text{EN: "gpt_[x](y) *failed*", ZH: "gpt 失败"}, Text: lang.Text{EN: "@everyone `look`\nhere", ZH: "请看"},
		Facts: []Fact{{lang.Text{EN: "user", ZH: "用户"}, "ada"}, {lang.Text{EN: "nodes", ZH: "节点"}, "gpu[1-2]"}}, Link: "https://ops.example.org/7", At: time.Unix(60, 0).UTC(),
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(formats)) {
		for _, l := range []lang.Lang{lang.EN, lang.ZH} {
			for _, tone := range []view.Tone{view.Bad, view.Warn, view.Good, view.Plain} {
				m := whole
				if m.Tone = tone; tone != view.Bad {
					m = Message{Key: whole.Key, Tone: tone, Headline: whole.Headline, At: whole.At}
				}
				raw, err := json.Marshal(formats[kind].body(m, l))
				require.NoError(t, err)
				fmt.Fprintf(&b, "%s %s %s\n", kind, l, raw)
			}
		}
	}
	file := filepath.Join("testdata", "bodies.txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// A text that is longer than its service takes is cut between two characters.
func TestALongTextFitsItsService(t *testing.T) {
	t.Parallel()
	for length, whole := range map[int]bool{2000: true, 2048: true, 2049: false, 4000: false} {
		for _, text := range []string{strings.Repeat("x", length), strings.Repeat("作", length/3) + strings.Repeat("y", length%3)} {
			m := Message{Headline: lang.Same(text)}
			raw, err := json.Marshal(formats["wecom"].body(m, lang.EN))
			require.NoError(t, err)
			var got struct{ Text struct{ Content string } }
			require.NoError(t, json.Unmarshal(raw, &got))
			require.LessOrEqual(t, len(got.Text.Content), 2048)
			require.Greater(t, len(got.Text.Content), min(length, 2048)-4)
			require.Equal(t, whole, got.Text.Content == text, length)
			require.Equal(t, !whole, strings.HasSuffix(got.Text.Content, "…"), length)
		}
	}
}

// A message that a service does not accept is retried for a day, at growing intervals.
func TestAMessageIsTriedForADay(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.answer = func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusBadGateway) }
	n, now := notifier(t, map[string]Target{"x": {Kind: "discord", URL: s.URL}})
	require.NoError(t, n.Tell(t.Context(), failed(t)))
	var pauses []time.Duration
	last := *now
	for now.Sub(began) < 25*time.Hour {
		had := len(s.got)
		if n.Work(t.Context()); len(s.got) > had {
			pauses, last = append(pauses, now.Sub(last)), *now
		}
		step := 5 * time.Second
		if now.Sub(began) >= time.Hour {
			step = 5 * time.Minute
		}
		*now = now.Add(step)
	}
	second := time.Second
	require.Equal(t, []time.Duration{0, 5 * second, 10 * second, 20 * second, 40 * second, 80 * second, 160 * second, 320 * second, 640 * second, 1280 * second}, pauses[:10])
	require.Equal(t, maxRetryDelay, pauses[12])
	require.Greater(t, last.Sub(began), retryFor)
	require.LessOrEqual(t, last.Sub(began), retryFor+maxRetryDelay)
	all, err := n.Backlogs(t.Context())
	require.NoError(t, err)
	require.Zero(t, all[0].Messages, "it is given up")
}

// A message to a service that is no longer configured is dropped.
func TestWhatNobodyIsToldIsDropped(t *testing.T) {
	t.Parallel()
	n, _ := notifier(t, map[string]Target{"x": {Kind: "discord", URL: "http://none.example.org"}})
	require.NoError(t, n.Tell(t.Context(), failed(t)))
	n.Targets = map[string]Target{}
	n.Work(t.Context())
	keys, err := n.Docs.Keys(t.Context(), docQueued, n.Now())
	require.NoError(t, err)
	require.Empty(t, keys)
}

// A target gets each message that it subscribed to once, and no others.
func TestATargetHearsOnceOfWhatItAskedFor(t *testing.T) {
	t.Parallel()
	const url = "http://none.example.org"
	n, _ := notifier(t, map[string]Target{
		"failures": {Kind: "discord", URL: url}, "questions": {Kind: "discord", URL: url, Events: []string{Ask}}, "bob's": {Kind: "discord", URL: url, Users: []string{"bob"}},
	})
	m := failed(t)
	require.NoError(t, n.Tell(t.Context(), m, m))
	require.NoError(t, n.Tell(t.Context(), m))
	keys, err := n.Docs.Keys(t.Context(), docQueued, n.Now())
	require.NoError(t, err)
	require.Equal(t, []string{"failures/" + m.Key}, keys)
}

// An address must have the URL scheme that its service uses.
func TestAddressesAreOfTheirService(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, url, field string }{
		{"discord", "https://x.example/h", ""},
		{"discord", "http://x.example/h", ""},
		{"discord", "ftp://x.example/h", "url"},
		{"discord", "smtp://x.example", "url"},
		{"discord", "https:///h", "url"},
		{"discord", "x.example/h", "url"},
		{"discord", "https://x.example/%zz", "url"},
		{"discord", "", "url"},
		{"mail", "smtp://x.example", ""},
		{"mail", "smtps://x.example", ""},
		{"mail", "https://x.example", "url"},
	} {
		target := Target{Kind: tt.kind, URL: tt.url, Events: []string{End}}
		if tt.kind == "mail" {
			target.From, target.To = "ops@example.org", []string{"team@example.org"}
		}
		err := target.Check("notify.x")
		require.Equal(t, tt.field == "", err == nil, "%+v: %v", tt, err)
		if err != nil {
			require.ErrorContains(t, err, "notify.x."+tt.field)
		}
	}
	for _, target := range []Target{
		{Kind: "mail", URL: "smtp://x.example", From: "ops@example.org"}, {Kind: "mail", URL: "smtp://x.example", To: []string{"team@example.org"}},
	} {
		require.ErrorContains(t, target.Check("notify.x"), "notify.x.to")
	}
}
