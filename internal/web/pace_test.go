package web_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/pace"
)

// A browser that asks without end is told when it may go on; other people's are served.
func TestABrowserInALoopIsToldToWait(t *testing.T) {
	s := newSite(t)
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s.svc.Now = func() time.Time { return now }
	b, other := s.as("alice"), s.as("bob")
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var res *http.Response
	for range pace.OfPrograms {
		var err error
		res, err = b.Get(s.url + "/web")
		require.NoError(t, err)
		res.Body.Close()
	}
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.Equal(t, "1", res.Header.Get("Retry-After"))
	_, body := b.get("/web/jobs")
	require.Contains(t, body, "Nothing was done; please try again in 1 s.")
	_, body = other.get("/web/jobs")
	require.Contains(t, body, "<h1>Jobs</h1>")
	now = now.Add(time.Second)
	status, _ := b.get("/web/jobs")
	require.Equal(t, http.StatusOK, status)
}
