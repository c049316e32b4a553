package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/follow"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

// A service accepts messages as its documentation says.
type service struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*http.Request
	bodies []string
	answer func(w http.ResponseWriter, n int)
}

func newService(t *testing.T) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.got, s.bodies = append(s.got, r), append(s.bodies, string(b))
		n := len(s.got)
		s.mu.Unlock()
		if s.answer != nil {
			s.answer(w, n)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

var began = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func notifier(t *testing.T, targets map[string]Target) (*Notifier, *time.Time) {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	now := began
	return &Notifier{Targets: targets, Docs: st.Slack(), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}, &now
}

// failed is the news of a job that ran out of memory, with user names in its log line
// that would notify people.
func failed(t *testing.T) Message {
	t.Helper()
	src, err := logfile.Read("gpt-7.out", strings.NewReader("[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.56 GiB. GPU 1 has a total capacity of 79.11 GiB of which 532.00 MiB is free.\n"))
	require.NoError(t, err)
	r, err := diagnose.Run(t.Context(), src, diagnose.Context{})
	require.NoError(t, err)
	ms := Of(follow.News{
		Job: slurm.Job{ID: "7", Cluster: "dev", Name: "gpt_[x](y)", User: "alice", State: slurm.Failed, Partition: "dev", Nodes: []string{"gpu1", "gpu2"}}, Report: &r,
		Why: lang.Text{EN: "@everyone *look*", ZH: "@所有人"},
	}, func(cluster string, id slurm.JobID) string {
		return "https://ops.example.org/web/jobs/" + cluster + "/" + string(id)
	}, began)
	require.Len(t, ms, 1)
	return ms[0]
}

// told sends the failed job's news to one target and returns the request that arrived.
func told(t *testing.T, target Target) (*http.Request, map[string]any, string) {
	t.Helper()
	s := newService(t)
	target.URL = s.URL + "/hook?access_token=x"
	require.NoError(t, target.Check("notify.x"))
	n, _ := notifier(t, map[string]Target{"x": target})
	require.NoError(t, n.Tell(t.Context(), failed(t)))
	n.Work(t.Context())
	require.Len(t, s.got, 1)
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.bodies[0]), &body))
	return s.got[0], body, s.bodies[0]
}

func secretFile(t *testing.T, secret string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	return file
}

func mac(key, text string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

func at(t *testing.T, body any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch key := p.(type) {
		case string:
			m, ok := body.(map[string]any)
			require.True(t, ok, "%v in %v", p, body)
			body = m[key]
		case int:
			l, ok := body.([]any)
			require.True(t, ok && key < len(l), "%v in %v", p, body)
			body = l[key]
		}
	}
	return body
}

// Work sends what is due, once.
func (n *Notifier) Work(ctx context.Context) {
	for _, target := range n.names() {
		n.sendDue(ctx, target)
	}
}

func TestAWebhookIsSignedAsStandardWebhooksSays(t *testing.T) {
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of the receiver's"))
	req, body, raw := told(t, Target{Kind: "webhook", SecretFile: secretFile(t, secret)})
	require.Equal(t, "dev/7/end/0", req.Header.Get("Webhook-Id"))
	require.Equal(t, "FAILED", body["state"])
	require.Equal(t, "https://ops.example.org/web/jobs/dev/7", body["link"])
	receiver, err := webhooks.NewWebhook(secret)
	require.NoError(t, err)
	require.NoError(t, receiver.VerifyIgnoringTimestamp([]byte(raw), req.Header))
	require.Error(t, receiver.VerifyIgnoringTimestamp([]byte(raw+" "), req.Header))
}

func TestFeishuTakesACard(t *testing.T) {
	_, body, _ := told(t, Target{Kind: "feishu", Lang: "zh", SecretFile: secretFile(t, "s3")})
	require.Equal(t, "interactive", body["msg_type"])
	require.Equal(t, "red", at(t, body, "card", "header", "template"))
	require.Equal(t, "plain_text", at(t, body, "card", "header", "title", "tag"))
	require.Contains(t, at(t, body, "card", "header", "title", "content"), "显存不足")
	require.Equal(t, "https://ops.example.org/web/jobs/dev/7", at(t, body, "card", "elements", 2, "actions", 0, "url"))
	stamp := at(t, body, "timestamp").(string)
	require.Equal(t, mac(stamp+"\ns3", ""), body["sign"])
}

func TestDingTalkTakesMarkdownAndASignedAddress(t *testing.T) {
	req, body, _ := told(t, Target{Kind: "dingtalk", SecretFile: secretFile(t, "SEC1")})
	require.Equal(t, "markdown", body["msgtype"])
	require.Contains(t, at(t, body, "markdown", "title"), "GPU out of memory")
	text := at(t, body, "markdown", "text").(string)
	require.NotContains(t, text, "@everyone", "nobody is called by a log")
	require.Contains(t, text, `gpt\_\[x\]\(y\)`, "a job's name is no link")
	q := req.URL.Query()
	require.Equal(t, "x", q.Get("access_token"))
	require.Equal(t, mac("SEC1", q.Get("timestamp")+"\nSEC1"), q.Get("sign"))
}

func TestTheOthersTakeTheirForms(t *testing.T) {
	_, body, _ := told(t, Target{Kind: "wecom"})
	require.Equal(t, "text", body["msgtype"])
	require.Contains(t, at(t, body, "text", "content"), "❌ gpt_[x](y) (7): GPU out of memory")

	_, body, _ = told(t, Target{Kind: "teams"})
	require.Equal(t, "message", body["type"])
	require.Equal(t, "application/vnd.microsoft.card.adaptive", at(t, body, "attachments", 0, "contentType"))
	require.Equal(t, "AdaptiveCard", at(t, body, "attachments", 0, "content", "type"))
	require.Equal(t, "Attention", at(t, body, "attachments", 0, "content", "body", 0, "inlines", 0, "color"))
	require.Equal(t, "Action.OpenUrl", at(t, body, "attachments", 0, "content", "actions", 0, "type"))

	_, body, _ = told(t, Target{Kind: "discord"})
	require.Empty(t, at(t, body, "allowed_mentions", "parse"))
	require.InDelta(t, 0xcf222e, at(t, body, "embeds", 0, "color"), 0)
	require.Contains(t, at(t, body, "embeds", 0, "title"), `gpt\_\[x\]\(y\)`)
	require.Equal(t, "alice", at(t, body, "embeds", 0, "fields", 0, "value"))

	_, body, _ = told(t, Target{Kind: "mattermost"})
	require.Equal(t, "#cf222e", at(t, body, "attachments", 0, "color"))
	require.NotContains(t, at(t, body, "attachments", 0, "text"), "@everyone")
}

// A message is delivered once, retried while the service is unavailable, and never sent
// again after a permanent refusal.
func TestWhatIsOwedIsToldOnce(t *testing.T) {
	s := newService(t)
	s.answer = func(w http.ResponseWriter, n int) {
		switch n {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
	n, now := notifier(t, map[string]Target{"x": {Kind: "discord", URL: s.URL}})
	m := failed(t)
	require.NoError(t, n.Tell(t.Context(), m))
	require.NoError(t, n.Tell(t.Context(), m), "the same news again")
	for _, wait := range []time.Duration{0, time.Second, 10 * time.Second, 5 * time.Minute, 10 * time.Minute, time.Hour} {
		*now = now.Add(wait)
		n.Work(t.Context())
		again := *n // the server was started again
		again.Work(t.Context())
	}
	require.Len(t, s.got, 3, "502, 429, taken")

	refusing := newService(t)
	refusing.answer = func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusNotFound) }
	n, now = notifier(t, map[string]Target{"x": {Kind: "discord", URL: refusing.URL}})
	require.NoError(t, n.Tell(t.Context(), m))
	for range 3 {
		*now = now.Add(time.Hour)
		n.Work(t.Context())
	}
	require.Len(t, refusing.got, 1)

	// Feishu refuses with HTTP status 200.
	busy := newService(t)
	busy.answer = func(w http.ResponseWriter, n int) {
		_, _ = io.WriteString(w, map[bool]string{true: `{"code":11232,"msg":"too frequent"}`, false: `{"code":0}`}[n == 1])
	}
	n, now = notifier(t, map[string]Target{"x": {Kind: "feishu", URL: busy.URL}})
	require.NoError(t, n.Tell(t.Context(), m))
	for range 3 {
		*now = now.Add(time.Hour)
		n.Work(t.Context())
	}
	require.Len(t, busy.got, 2)
}

// A delivered message is not sent again for a month, and leaves nothing in the log.
func TestWhatWasTakenIsRememberedAMonth(t *testing.T) {
	s := newService(t)
	n, now := notifier(t, map[string]Target{"x": {Kind: "feishu", URL: s.URL}})
	var log bytes.Buffer
	n.Log = slog.New(slog.NewTextHandler(&log, nil))
	for _, later := range []time.Duration{0, time.Hour, 28 * 24 * time.Hour} {
		*now = now.Add(later)
		require.NoError(t, n.Tell(t.Context(), failed(t)))
		n.Work(t.Context())
		require.Len(t, s.got, 1)
	}
	require.Empty(t, log.String())
}

// A target whose name is a prefix of another's does not get that target's messages.
func TestWhoseAMessageIs(t *testing.T) {
	n, _ := notifier(t, map[string]Target{"ops": {}, "ops/night": {}, "a-longer-name": {}})
	for key, want := range map[string]string{
		"ops/job/1": "ops", "ops/night/job/1": "ops/night", "ops/nightly": "ops", "a-longer-name/job/1": "a-longer-name", "gone/job/1": "", "opsy/1": "",
	} {
		require.Equal(t, want, n.targetOf(key), key)
	}
}

// A roundTrip answers requests instead of the network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAServiceThatHangsHoldsUpNoOther(t *testing.T) {
	n, now := notifier(t, map[string]Target{
		"a": {Kind: "discord", URL: "http://hangs.example.org"},
		"b": {Kind: "discord", URL: "http://answers.example.org"},
	})
	release, hangs, took := make(chan struct{}), make(chan bool, 1), make(chan bool, 1)
	n.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "hangs.example.org" {
			hangs <- true
			<-release // whatever its context says
			return nil, io.ErrUnexpectedEOF
		}
		took <- true
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Header: http.Header{}}, nil
	})}
	*now = began.Add(-time.Hour)
	require.NoError(t, n.Tell(t.Context(), failed(t)))
	*now = began
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); n.Run(ctx) }()
	<-hangs
	<-took
	owed := func() map[string]int {
		all, err := n.Backlogs(t.Context())
		require.NoError(t, err)
		by := map[string]int{}
		for _, b := range all {
			require.Equal(t, "discord", b.Kind)
			require.Equal(t, b.Messages > 0, b.Oldest.Equal(began.Add(-time.Hour)), "%+v", b)
			by[b.Target] = b.Messages
		}
		return by
	}
	require.Eventually(t, func() bool { return owed()["b"] == 0 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, map[string]int{"a": 1, "b": 0}, owed())
	stop()
	close(release)
	<-over
}

// A server that is stopped while it delivers leaves only the undelivered messages to
// the next server, and does so at once.
func TestTheNextServerTellsWhatThisOneCouldNot(t *testing.T) {
	for name, c := range map[string]struct {
		taken bool
		again int
	}{"taken": {true, 0}, "not taken": {false, 1}} {
		n, _ := notifier(t, map[string]Target{"x": {Kind: "discord", URL: "http://x.example.org"}})
		require.NoError(t, n.Tell(t.Context(), failed(t)))
		ctx, stop := context.WithCancel(t.Context())
		asked := 0
		n.Client = &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			asked++
			stop()
			if !c.taken && asked == 1 {
				return nil, io.ErrUnexpectedEOF
			}
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Header: http.Header{}}, nil
		})}
		n.Work(ctx)
		require.Equal(t, 1, asked, name)
		n.Work(t.Context())
		require.Equal(t, 1+c.again, asked, name)
	}
}

// Every service shows a request for approval, with the link to the page where it is
// decided, to those who subscribed to it.
func TestARequestForApprovalLeadsToThePage(t *testing.T) {
	const page = "https://ops.example.org/web/approvals"
	m := Asked(ops.Approval{ID: "k.1", Op: "submit", Who: ops.Caller{User: "alice", Agent: "claude-code @everyone"}, Why: "32 GPU hours", At: began}, page)
	for kind, f := range formats {
		for l, asks := range map[lang.Lang]string{lang.EN: "alice asks for approval", lang.ZH: "alice 申请审批"} {
			raw, err := json.Marshal(f.body(m, l))
			require.NoError(t, err)
			require.Contains(t, string(raw), asks, kind)
			require.Contains(t, string(raw), "32 GPU hours", kind)
			require.Contains(t, string(raw), page, kind)
		}
	}
	require.True(t, (Target{Events: []string{Ask}}).wants(m))
	require.False(t, (Target{}).wants(m))
	require.False(t, (Target{Events: []string{Ask}, Users: []string{"bob"}}).wants(m))
}

func TestTargetsChooseWhatTheyHear(t *testing.T) {
	job := slurm.Job{ID: "7", Cluster: "dev", Name: "gpt", User: "alice", State: slurm.Running}
	start := Of(follow.News{Job: job}, nil, began)
	require.Len(t, start, 1)
	job.State = slurm.Completed
	end := Of(follow.News{Job: job}, nil, began)
	job.State = slurm.Pending
	require.Empty(t, Of(follow.News{Job: job}, nil, began))
	for _, c := range []struct {
		t          Target
		start, end bool
	}{
		{Target{}, false, false},
		{Target{Events: []string{Start, End}}, true, true},
		{Target{Events: []string{End}, Users: []string{"bob"}}, false, false},
	} {
		require.Equal(t, c.start, c.t.wants(start[0]))
		require.Equal(t, c.end, c.t.wants(end[0]))
	}
	require.True(t, (Target{}).wants(failed(t)))
	require.Contains(t, start[0].Headline.ZH, "运行中")
}

func TestATargetThatCannotBeToldIsRefused(t *testing.T) {
	open := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(open, []byte("https://x.example/hook"), 0o644))
	for field, target := range map[string]Target{
		"notify.x.url": {Kind: "discord", URLFile: open},
		"notify.x.to":  {Kind: "mail", URL: "smtp://x.example"},
	} {
		require.ErrorContains(t, target.Check("notify.x"), field)
	}
}

// What a job's news are called, who hears of them, and how bad they are.
func TestWhatIsToldOfAJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		news     follow.News
		events   []string
		tone     view.Tone
		en, text string
	}{
		{follow.News{Job: slurm.Job{State: slurm.Running}}, []string{Start}, view.Good, "▶ gpt (7): running", ""},
		{follow.News{Job: slurm.Job{State: slurm.Completed, ElapsedS: 3600}}, []string{End}, view.Good, "✅ gpt (7): completed after 01:00:00", ""},
		{follow.News{Job: slurm.Job{State: slurm.Timeout}}, []string{End, Fail}, view.Bad, "❌ gpt (7): timeout", ""},
		{follow.News{Job: slurm.Job{State: slurm.NodeFail}, Why: lang.Same("submitted again")}, []string{End, Fail}, view.Bad, "❌ gpt (7): node_fail", "submitted again"},
		{follow.News{Job: slurm.Job{State: slurm.Cancelled}}, []string{End}, view.Warn, "❌ gpt (7): cancelled", ""},
		{follow.News{
			Job: slurm.Job{State: slurm.Running}, Alarms: []joblogs.Alarm{{ID: "loss", Job: "7", What: lang.Same("the loss is NaN"), Fix: lang.Same("look")}},
		}, []string{Alarm}, view.Bad, "⚠ gpt (7): ", "the loss is NaN"},
	} {
		c.news.Job.ID, c.news.Job.Name, c.news.Job.Cluster = "7", "gpt", "dev"
		all := Of(c.news, nil, began)
		require.Len(t, all, 1, c.en)
		m := all[0]
		require.Equal(t, c.events, m.Events, c.en)
		require.Equal(t, c.tone, m.Tone, c.en)
		require.Contains(t, m.Headline.EN, c.en)
		require.Contains(t, m.Headline.EN+m.Text.EN, c.text)
	}
	require.Empty(t, Of(follow.News{Job: slurm.Job{State: slurm.Pending}}, nil, began))
}
