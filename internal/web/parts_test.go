package web_test

import (
	"context"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/web"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// part requests what the page's own script requests to replace a part of the page.
func (b browser) part(path string) string {
	b.s.t.Helper()
	req, err := http.NewRequestWithContext(b.s.t.Context(), http.MethodGet, b.s.url+path, nil)
	require.NoError(b.s.t, err)
	req.Header.Set("X-Part", "1")
	res, err := b.Do(req)
	require.NoError(b.s.t, err)
	status, body := read(b.s.t, res)
	require.Equal(b.s.t, 200, status, body)
	return body
}

// A page that updates itself requests only the part that changes.
func TestPartsOfPages(t *testing.T) {
	s := newFullSite(t)
	s.pipeline()
	b := s.as("alice")
	for path, holds := range map[string]string{
		"/web/jobs": "runs", "/web/jobs/test/6": "RUNNING|running", "/web/pipelines/alice/nightly": "1 of 4 steps completed",
	} {
		require.Regexp(t, holds, b.part(path), path)
		require.NotContains(t, b.part(path), "<html", path)
		_, whole := b.get(path)
		require.Regexp(t, holds, whole, path)
		require.Contains(t, whole, "<html", path)
	}
}

// first returns the first message of a stream.
func (b browser) first(path string) string {
	b.s.t.Helper()
	res, err := b.Get(b.s.url + path)
	require.NoError(b.s.t, err)
	defer res.Body.Close()
	text := make([]byte, 500)
	n, err := res.Body.Read(text)
	require.NoError(b.s.t, err)
	return string(text[:n])
}

// The stream of a pipeline's page sends each step's job and state; that of the list
// changes with a job.
func TestStreamsTellWhatTheirPageShows(t *testing.T) {
	s := newFullSite(t)
	s.pipeline()
	b := s.as("alice")
	require.Contains(t, b.first("/web/pipelines/alice/nightly/stream"), `"steps":["4701COMPLETED","4702FAILED","4703CANCELLED"]`)
	require.Contains(t, b.first("/web/pipelines/alice/weekly/stream"), `"problem":`)
	before := b.first("/web/jobs/stream?find=runs")
	require.Contains(t, before, `"rows":`)
	require.Equal(t, before, b.first("/web/jobs/stream?find=runs"))
	j := s.jobs.KnownJobs["6"]
	j.State = slurm.Completing
	s.jobs.KnownJobs["6"] = j
	require.NotEqual(t, before, b.first("/web/jobs/stream?find=runs"))
}

// An ended job is listed under all jobs and under ended ones, not under running ones.
func TestWhichJobsAStateShows(t *testing.T) {
	s := newSite(t)
	b := s.as("alice")
	for query, shows := range map[string]bool{"": true, "?state=ended": true, "?state=running": false, "?state=waiting": false} {
		_, body := b.get("/web/jobs" + query)
		require.Equal(t, shows, strings.Contains(body, ">gpt<"), query)
	}
}

// A pending job shows its expected start, a running job its actual start.
func TestAJobsLife(t *testing.T) {
	s := newSite(t)
	expected := time.Date(2026, 11, 21, 12, 34, 0, 0, time.UTC)
	for id, waits := range map[slurm.JobID]bool{"5": true, "6": false, "7": false} {
		j := s.jobs.KnownJobs[id]
		j.EstStart = &expected
		s.jobs.KnownJobs[id] = j
		_, body := s.as("alice").get("/web/jobs/test/" + string(id))
		require.Equal(t, waits, strings.Contains(body, "expected to start"), id)
		require.Equal(t, id == "7", strings.Contains(body, "ended: failed"), id)
	}
}

// Users who are not signed in get a limited number of codes per hour, all together.
func TestCodesAreCounted(t *testing.T) {
	s := newSite(t, func(c *web.Config) {
		c.Proof = func(context.Context, string, time.Time) (account.User, error) { return account.User{}, fs.ErrNotExist }
	})
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s.svc.Now = func() time.Time { return now }
	code := regexp.MustCompile(`megatron-ops link \w+`)
	given := func() bool {
		_, body := s.browser().get("/web/login")
		if !code.MatchString(body) {
			require.Contains(t, body, "too many codes were requested in the last hour")
			return false
		}
		return true
	}
	for n := range 600 {
		require.True(t, given(), n)
	}
	require.False(t, given())
	now = now.Add(time.Hour)
	require.False(t, given())
	now = now.Add(time.Second)
	require.True(t, given())
}
