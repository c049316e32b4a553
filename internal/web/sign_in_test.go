package web_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/web"
)

func TestNobodyIsSignedInByALinkThatIsOnlyLookedAt(t *testing.T) {
	s := newSite(t)
	link, err := web.Link(t.Context(), s.svc, ops.Caller{ID: "alice", User: "alice"}, "/web/jobs/test/7")
	require.NoError(t, err)
	for range 2 { // what previews links looks at them
		b := s.browser()
		_, body := b.get(link)
		require.Contains(t, body, "Sign in as alice")
		_, body = b.get("/web/jobs")
		require.Contains(t, body, "<h1>Sign in</h1>", "loading the link signs nobody in")
	}
	u, err := url.Parse(link)
	require.NoError(t, err)
	b := s.browser()
	_, body := b.post("/web/login", u.Query())
	require.Contains(t, body, "gpt", "one lands where the link leads")
	status, body := s.browser().post("/web/login", u.Query())
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "this link has been used")

	at, err := url.Parse(s.url + "/web/jobs")
	require.NoError(t, err)
	copied := s.browser()
	copied.Jar.SetCookies(at, b.Jar.Cookies(at))
	_, body = copied.get("/web/jobs")
	require.Contains(t, body, "<h1>Jobs</h1>")
	status, _ = b.post("/web/logout", nil)
	require.Equal(t, 200, status)
	for _, out := range []browser{b, copied} {
		_, body = out.get("/web/jobs")
		require.Contains(t, body, "<h1>Sign in</h1>", "a copy of the cookie ends with it")
	}
}

// A sign-in from Slack ends with the link to the cluster user, at the next request.
func TestASignInEndsWithItsLink(t *testing.T) {
	user, down := "alice", error(nil)
	s := newSite(t, func(c *web.Config) {
		c.SlackUser = func(_ context.Context, id string) (string, error) {
			require.Equal(t, "T1/U1", id)
			return user, down
		}
	})
	link, err := web.Link(t.Context(), s.svc, ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "alice"}, "")
	require.NoError(t, err)
	u, err := url.Parse(link)
	require.NoError(t, err)
	b := s.browser()
	_, body := b.post("/web/login", u.Query())
	require.Contains(t, body, "<h1>Jobs</h1>")
	user = ""
	_, body = b.get("/web/jobs")
	require.Contains(t, body, "<h1>Sign in</h1>")
	status, _ := b.post("/web/do", url.Values{"op": {"cancel"}, "word": {"6"}})
	require.Equal(t, http.StatusUnauthorized, status)
	user = "alice"
	_, body = b.get("/web/jobs")
	require.Contains(t, body, "<h1>Jobs</h1>")

	// While the store does not answer, nobody is let in, and nobody is asked to sign in again.
	down = errors.New("the database is starting")
	status, body = b.get("/web/jobs")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "Try again in a few seconds")
	status, _ = b.post("/web/do", url.Values{"op": {"cancel"}, "word": {"6"}})
	require.Equal(t, http.StatusServiceUnavailable, status)
	down = nil
	_, body = b.get("/web/jobs")
	require.Contains(t, body, "<h1>Jobs</h1>")
}

// A page that is open goes on when the store answers again, and shows nothing in between.
func TestAStreamOutlivesTheStore(t *testing.T) {
	asked := 0
	s := newSite(t, func(c *web.Config) {
		c.SlackUser = func(context.Context, string) (string, error) {
			if asked++; asked == 3 { // after the sign-in's page and the stream's request
				return "", errors.New("the database is starting")
			}
			return "alice", nil
		}
	})
	link, err := web.Link(t.Context(), s.svc, ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "alice"}, "")
	require.NoError(t, err)
	u, err := url.Parse(link)
	require.NoError(t, err)
	b := s.browser()
	b.post("/web/login", u.Query())
	res, err := b.Get(s.url + "/web/jobs/test/6/stream")
	require.NoError(t, err)
	defer res.Body.Close()
	for _, want := range []string{`{"problem":"the database is starting"}`, `"state":"RUNNING"`} {
		part := make([]byte, 500)
		n, err := res.Body.Read(part)
		require.NoError(t, err)
		require.Contains(t, string(part[:n]), want)
	}
}

// A one-time link is valid for ten minutes, a sign-in for twelve hours; a cookie that nobody gave is none.
func TestSignInsEnd(t *testing.T) {
	s := newSite(t)
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s.svc.Now = func() time.Time { return now }
	b := s.as("alice")
	link, err := web.Link(t.Context(), s.svc, ops.Caller{ID: "alice", User: "alice"}, "")
	require.NoError(t, err)
	now = now.Add(10*time.Minute + time.Second)
	_, body := s.browser().get(link)
	require.NotContains(t, body, "Sign in as alice")
	now = now.Add(11 * time.Hour)
	_, body = b.get("/web/jobs")
	require.Contains(t, body, "<h1>Jobs</h1>")
	now = now.Add(50 * time.Minute)
	_, body = b.get("/web/jobs")
	require.Contains(t, body, "<h1>Sign in</h1>")
	invented := s.browser()
	at, err := url.Parse(s.url + "/web/jobs")
	require.NoError(t, err)
	invented.Jar.SetCookies(at, []*http.Cookie{{Name: "megatron_ops", Value: "invented", Path: "/web"}})
	_, body = invented.get("/web/jobs")
	require.Contains(t, body, "<h1>Sign in</h1>")

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/web/jobs/test/7/log.json?file=0", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/json")
	res, err := s.browser().Do(req)
	require.NoError(t, err)
	status, _ := read(t, res)
	require.Equal(t, http.StatusUnauthorized, status, "a page's script is told, and not sent to a form")
}

// A page at an https address gives its cookies to no other.
func TestCookiesStayWithHTTPS(t *testing.T) {
	for address, secure := range map[string]bool{"https://ops.example": true, "http://ops.example": false} {
		s := newSite(t, func(c *web.Config) { c.URL = address })
		link, err := web.Link(t.Context(), s.svc, ops.Caller{ID: "alice", User: "alice"}, "")
		require.NoError(t, err)
		u, err := url.Parse(link)
		require.NoError(t, err)
		b := s.browser()
		b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		res, err := b.PostForm(s.url+"/web/login", u.Query())
		require.NoError(t, err)
		res.Body.Close()
		require.NotEmpty(t, res.Cookies())
		for _, c := range res.Cookies() {
			require.Equal(t, secure, c.Secure, address)
			require.True(t, c.HttpOnly)
		}
	}
}

func TestASignInLeadsNowhereElse(t *testing.T) {
	s := newSite(t)
	b := s.as("alice")
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, to := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "/web/../\\evil.example", "/web/login?to=x", "/mcp"} {
		link, err := web.Link(t.Context(), s.svc, ops.Caller{ID: "alice", User: "alice"}, to)
		require.NoError(t, err)
		u, err := url.Parse(link)
		require.NoError(t, err)
		res, err := b.PostForm(s.url+"/web/login", u.Query())
		require.NoError(t, err)
		res.Body.Close()
		require.Equal(t, "/web/jobs", res.Header.Get("Location"), to)
	}
}

// A code signs in the user who proves it on the cluster, and only in the browser that
// shows it.
func TestACodeSignsInWhoProvesIt(t *testing.T) {
	var proved string
	s := newSite(t, func(c *web.Config) {
		c.SlackUser = func(context.Context, string) (string, error) { return "", nil } // a link in Slack does not count
		c.Proof = func(_ context.Context, code string, _ time.Time) (account.User, error) {
			if code != proved {
				return account.User{}, fs.ErrNotExist
			}
			return account.User{Name: "bob"}, nil
		}
	})
	b, other := s.browser(), s.browser()
	_, body := b.get("/web/login")
	code := regexp.MustCompile(`megatron-ops link (\w+)`).FindStringSubmatch(body)[1]
	_, body = b.get("/web/login")
	require.Contains(t, body, code, "a browser keeps its code")
	_, body = other.get("/web/login")
	require.NotContains(t, body, code)
	status, body := b.post("/web/login", nil)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "not been written on the cluster yet")

	proved = code
	status, _ = other.post("/web/login", nil)
	require.Equal(t, http.StatusForbidden, status)
	_, body = b.post("/web/login", nil)
	require.Contains(t, body, "<span>bob</span>")
	require.Equal(t, "sign-in", s.audit[len(s.audit)-1].Op)
}

// A proof that is refused uses up its code.
func TestARefusedProofUsesUpItsCode(t *testing.T) {
	s := newSite(t, func(c *web.Config) {
		c.Proof = func(context.Context, string, time.Time) (account.User, error) {
			return account.User{}, &ops.Error{Code: ops.NotAllowed, Message: lang.Same("somebody else has written this code")}
		}
	})
	b := s.browser()
	_, body := b.get("/web/login")
	code := regexp.MustCompile(`megatron-ops link (\w+)`).FindStringSubmatch(body)[1]
	status, body := b.post("/web/login", nil)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "somebody else has written this code")
	_, body = b.get("/web/login")
	require.NotContains(t, body, code)
}

// The configuration says who is an operator, even if it was different at sign-in.
func TestAnOperatorIsWhoTheConfigurationNames(t *testing.T) {
	operators := []string{"carol"}
	s := newSite(t, func(c *web.Config) { c.Operators = operators })
	carol, bob := s.as("carol"), s.as("bob")
	status, _ := carol.get("/web/approvals")
	require.Equal(t, 200, status)
	operators[0] = "bob"
	status, _ = carol.get("/web/approvals")
	require.Equal(t, 403, status)
	status, _ = bob.get("/web/approvals")
	require.Equal(t, 200, status)
}
