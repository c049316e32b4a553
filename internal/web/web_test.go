package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/web"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A site is a server of the page, on a cluster with three jobs of alice's and one of
// bob's.
type site struct {
	t     testing.TB
	url   string
	svc   *ops.Service
	jobs  *opstest.Site
	audit []ops.AuditEntry
	logs  string
}

const oom = `[rank1]: Traceback (most recent call last):
[rank1]:   File "/x/train.py", line 5, in <module>
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.56 GiB. GPU 1 has a total capacity of 79.11 GiB of which 532.00 MiB is free.
`

func newSite(t testing.TB, more ...func(*web.Config)) *site {
	t.Helper()
	s := &site{t: t, logs: t.TempDir()}
	var out strings.Builder
	for i := range 40 {
		fmt.Fprintf(&out, "[2026-11-21 09:00:%02d] iteration %8d/ 100 | consumed samples: %d | elapsed time per iteration (ms): 500.1 | throughput per GPU (TFLOP/s/GPU): 400.1 | "+
			"learning rate: 1.0E-04 | global batch size: 32 | lm loss: 2.%02dE+00 | grad norm: 0.3 |\n", i, i+1, 32*i, 99-i)
	}
	log := filepath.Join(s.logs, "gpt-7.out")
	opstest.Write(t, log, out.String()+oom+"<script>alert(1)</script> hf_abcdefghijklmnopqrstuvwxyz012345678\n")
	at := func(minutes int) *time.Time {
		a := time.Date(2026, 11, 21, 9, minutes, 0, 0, time.UTC)
		return &a
	}
	limit := int64(3600)
	s.jobs = &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"5": {ID: "5", Name: "waits", User: "alice", Partition: "dev", State: slurm.Pending, Reason: "Resources", NumNodes: 2, GPUs: 16, SubmittedAt: at(1)},
		"6": {ID: "6", Name: "runs", User: "alice", Partition: "dev", State: slurm.Running, Nodes: []string{"gpu1", "gpu2"}, GPUs: 16, ElapsedS: 60, TimeLimitS: &limit, SubmittedAt: at(0), StartedAt: at(2)},
		"7": {ID: "7", Name: "gpt", User: "alice", Partition: "dev", State: slurm.Failed, Nodes: []string{"gpu3"}, GPUs: 8, ElapsedS: 240, SubmittedAt: at(0), StartedAt: at(1), EndedAt: at(5), Stdout: log},
		"8": {ID: "8", Name: "theirs", User: "bob", Partition: "prod", State: slurm.Running, Nodes: []string{"gpu4"}, SubmittedAt: at(3)},
	}}
	c := opstest.NewCall(t, s.jobs)
	s.svc = c.Service
	s.svc.Self = "alice"
	s.svc.Audit = func(_ context.Context, e ops.AuditEntry) { s.audit = append(s.audit, e) }
	srv := httptest.NewUnstartedServer(nil)
	s.url = "http://" + srv.Listener.Addr().String()
	cfg := web.Config{Service: s.svc, URL: s.url, Operators: []string{"root"}}
	for _, m := range more {
		m(&cfg)
	}
	page, err := web.New(cfg)
	require.NoError(t, err)
	srv.Config.Handler = page.Handler()
	srv.Start()
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return s
}

// A browser keeps cookies.
type browser struct {
	*http.Client
	s *site
}

func (s *site) browser() browser {
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	return browser{&http.Client{Jar: jar}, s}
}

// as is a browser in which this user is signed in; whether the sign-in came from an operator does not
// count.
func (s *site) as(user string) browser {
	s.t.Helper()
	link, err := web.Link(s.t.Context(), s.svc, ops.Caller{ID: user, User: user, Operator: true}, "")
	require.NoError(s.t, err)
	b := s.browser()
	status, body := b.get(link)
	require.Equal(s.t, 200, status)
	require.Contains(s.t, body, "Sign in as "+user)
	u, err := url.Parse(link)
	require.NoError(s.t, err)
	status, body = b.post("/web/login", u.Query())
	require.Equal(s.t, 200, status, body)
	require.Contains(s.t, body, "<h1>Jobs</h1>")
	return b
}

func (b browser) get(path string) (int, string) {
	b.s.t.Helper()
	res, err := b.Get(b.s.url + path)
	require.NoError(b.s.t, err)
	return read(b.s.t, res)
}

func (b browser) post(path string, form url.Values) (int, string) {
	b.s.t.Helper()
	res, err := b.PostForm(b.s.url+path, form)
	require.NoError(b.s.t, err)
	return read(b.s.t, res)
}

func read(t testing.TB, res *http.Response) (int, string) {
	t.Helper()
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}

func TestJobsAreListedChosenAndPaged(t *testing.T) {
	s := newSite(t)
	b := s.as("alice")
	_, body := b.get("/web/jobs")
	require.Contains(t, body, "runs")
	require.NotContains(t, body, "theirs")
	require.Less(t, strings.Index(body, ">6<"), strings.Index(body, ">5<"), "what runs comes first")
	_, body = b.get("/web/jobs?of=all&state=running")
	require.Contains(t, body, "theirs")
	require.NotContains(t, body, ">waits<")
	_, body = b.get("/web/jobs?of=all&find=GPU4")
	require.Contains(t, body, "theirs")
	require.NotContains(t, body, ">6<")
	_, body = b.get("/web/jobs?find=nosuch")
	require.Contains(t, body, "No job fits.")

	for i := range 10_000 {
		id := slurm.JobID(fmt.Sprint(100_000 + i))
		s.jobs.KnownJobs[id] = slurm.Job{ID: id, Name: "many", User: "alice", State: slurm.Pending, Reason: "Priority"}
	}
	for _, none := range []string{"0", "-1", "x"} {
		status, _ := b.get("/web/jobs?state=waiting&page=" + none)
		require.Equal(t, 200, status, none)
	}
	status, body := b.get("/web/jobs?state=waiting&page=3")
	require.Equal(t, 200, status)
	require.Equal(t, 50, strings.Count(body, ">many<"))
	require.Contains(t, body, "3 / 201 (10001)")
	require.Contains(t, body, `"/web/jobs?page=2&amp;state=waiting"`)
	require.Contains(t, body, `"/web/jobs?page=4&amp;state=waiting"`)
	require.Less(t, len(body), 60_000, "a page, whatever the queue is")
}

// The size of a job names what it counts, also where no GPU does.
func TestAJobsSizeNamesItsNodes(t *testing.T) {
	s := newSite(t)
	j := s.jobs.KnownJobs["8"]
	j.ID, j.Nodes, j.GPUs = "9", []string{"gpu4", "gpu5"}, 3
	s.jobs.KnownJobs["9"] = j
	_, body := s.as("alice").get("/web/jobs?of=all")
	require.Contains(t, body, "<td>1 node</td>")
	require.Contains(t, body, "<td>2 nodes, 3 GPU</td>")
}

// What a page cannot do is said on it: a job's page without JavaScript, and the sign-in where a
// one-time link is the only way.
func TestAPageSaysWhatItNeeds(t *testing.T) {
	s := newSite(t)
	_, body := s.as("alice").get("/web/jobs/test/7")
	require.Regexp(t, "<noscript>.*need JavaScript.*</noscript>", body)
	res, err := http.Get(s.url + "/web/login") //nolint:noctx // a test
	require.NoError(t, err)
	_, body = read(t, res)
	require.Contains(t, body, "<p>With a one-time link: ")
}

func TestOneJobIsShownWithItsCauseAndItsLog(t *testing.T) {
	s := newSite(t)
	b := s.as("alice")
	_, body := b.get("/web/jobs/test/7")
	require.Contains(t, body, "✕")
	require.Contains(t, body, "failed")
	require.Contains(t, body, "1 × 8 GPU")
	require.Contains(t, body, "Submit again")
	require.Contains(t, body, `<option value="0" selected>gpt-7.out</option>`)
	_, body = b.get("/web/jobs/test/7/diagnosis")
	require.Contains(t, body, "GPU out of memory")
	require.Contains(t, body, "Halve --micro-batch-size")
	require.NotContains(t, body, "<table", "its evidence leads into the logs instead")
	require.Regexp(t, `data-file="0" data-line="43" data-why="cause"`, body)

	var w struct {
		Lines []string
		Mark  int
		Size  int64
	}
	status, body := b.get("/web/jobs/test/7/log.json?file=0&line=43")
	require.Equal(t, 200, status)
	require.NoError(t, json.Unmarshal([]byte(body), &w))
	require.Contains(t, w.Lines[w.Mark], "OutOfMemoryError")
	require.NotContains(t, body, "hf_abc", "secrets stay inside")
	_, body = b.get("/web/jobs/test/7/log.json?file=0&find=outofmemory")
	require.NoError(t, json.Unmarshal([]byte(body), &w))
	require.Len(t, w.Lines, 1)
	status, body = b.get("/web/jobs/test/7/log.json?file=9")
	require.Equal(t, 404, status)
	require.True(t, json.Valid([]byte(body)), "a script reads why: %s", body)

	var curves struct {
		Curves []struct {
			Name string
			X    []int
		}
	}
	_, body = b.get("/web/jobs/test/7/curves.json")
	require.NoError(t, json.Unmarshal([]byte(body), &curves))
	require.Equal(t, "Loss", curves.Curves[0].Name)
	require.Len(t, curves.Curves[0].X, 40)
	_, body = b.get("/web/jobs/test/7/metrics")
	require.Contains(t, body, "iteration")
	require.False(t, strings.ContainsFunc(body, func(r rune) bool { return r >= 0x2800 && r <= 0x28ff }), "the page draws its curves itself")

	status, body = b.get("/web/jobs/test/99")
	require.Equal(t, 404, status)
	require.Contains(t, body, "not known to Slurm")
	status, _ = b.get("/web/jobs/nowhere/7")
	require.Equal(t, 400, status)
}

// The newest value of a curve is that of the newest iteration that has one, also of a long run that
// is thinned out; the page says of which iteration it is where the loss diverged after it.
func TestACurveSaysOfWhichIterationItsNewestValueIs(t *testing.T) {
	s := newSite(t)
	var log strings.Builder
	for i := 1; i <= 4001; i++ {
		loss := fmt.Sprint(5 + i%7)
		if i > 3999 {
			loss = "NAN"
		}
		fmt.Fprintf(&log, " iteration %d/ 5000 | elapsed time per iteration (ms): 1000.0 | lm loss: %s |\n", i, loss)
	}
	opstest.Write(t, filepath.Join(s.logs, "gpt-7.out"), log.String())
	var got struct {
		Summary struct {
			Last int      `json:"last_iteration"`
			Loss *float64 `json:"loss"`
		}
		Curves []struct {
			Name   string
			Newest float64
			Of     int
		}
	}
	_, body := s.as("alice").get("/web/jobs/test/7/curves.json")
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Equal(t, 4001, got.Summary.Last)
	require.Nil(t, got.Summary.Loss)
	require.Equal(t, 3999, got.Curves[0].Of)
	require.InDelta(t, 5+3999%7, got.Curves[0].Newest, 0)
	require.Equal(t, 4001, got.Curves[1].Of, "the time of an iteration is known to the end")
}

// A page loads nothing from other hosts, but links to the job's experiment tracker.
func TestAJobsPageLeadsToItsTracker(t *testing.T) {
	s := newSite(t)
	opstest.Write(t, filepath.Join(s.logs, "gpt-7.out"), "wandb: 🚀 View run calm-sea-4 at: https://wandb.ai/lab/gpt/runs/gpt-7\n")
	_, body := s.as("alice").get("/web/jobs/test/7")
	require.Contains(t, body, `<a href="https://wandb.ai/lab/gpt/runs/gpt-7" rel="noreferrer">wandb.ai</a>`)
}

func TestAChangeIsAskedAboutFirst(t *testing.T) {
	s := newSite(t)
	b := s.as("alice")
	_, body := b.get("/web/confirm?op=cancel&cluster=test&word=6")
	require.Contains(t, body, "runs")
	require.Contains(t, body, "Yes, do it")
	require.Equal(t, slurm.Running, s.jobs.KnownJobs["6"].State, "nothing is done by a link")
	status, _ := b.get("/web/do?op=cancel&cluster=test&word=6")
	require.Equal(t, http.StatusMethodNotAllowed, status)

	form := url.Values{"op": {"cancel"}, "cluster": {"test"}, "word": {"6"}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/web/do", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err := b.Do(req)
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, http.StatusForbidden, res.StatusCode, "another site's form")
	require.Equal(t, slurm.Running, s.jobs.KnownJobs["6"].State)

	status, body = b.post("/web/do", form)
	require.Equal(t, 200, status, body)
	require.Equal(t, slurm.Cancelled, s.jobs.KnownJobs["6"].State)
	last := s.audit[len(s.audit)-1]
	require.Equal(t, "cancel", last.Op)
	require.Equal(t, ops.Web, last.Who.Surface)
	require.Equal(t, "self", last.Agreed)

	status, body = b.post("/web/do", url.Values{"op": {"cancel"}, "cluster": {"test"}, "word": {"8"}})
	require.Equal(t, 403, status, body)
	require.Equal(t, slurm.Running, s.jobs.KnownJobs["8"].State, "bob's job")
	status, _ = b.post("/web/do", url.Values{"op": {"run"}, "cluster": {"test"}, "word": {"6", "id"}})
	require.Equal(t, 404, status, "the page does not offer it")
	status, body = b.post("/web/do", url.Values{"op": {"cancel"}, "cluster": {"test"}, "word": {"5"}, "x": {strings.Repeat("x", 2<<20)}})
	require.Equal(t, 400, status, "more than a form holds: %s", body)
	require.Equal(t, slurm.Pending, s.jobs.KnownJobs["5"].State)
}

// A change that would do nothing has no button; either way there is a way back to the page that one came from.
func TestAChangeThatWouldDoNothingHasNoButton(t *testing.T) {
	s := newSite(t)
	b := s.as("alice")
	for _, c := range []struct {
		job, from, back string
		asked           bool
	}{
		{"6", s.url + "/web/jobs/test/6?x=1", "/web/jobs/test/6?x=1", true},
		{"7", s.url + "/web/jobs/test/7", "/web/jobs/test/7", false},
		{"6", s.url + "/web/login", "/web/jobs", true},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/web/confirm?op=cancel&cluster=test&word="+c.job, nil)
		require.NoError(t, err)
		req.Header.Set("Referer", c.from)
		res, err := b.Do(req)
		require.NoError(t, err)
		status, body := read(t, res)
		require.Equal(t, 200, status, body)
		require.Equal(t, c.asked, strings.Contains(body, "Yes, do it"), c.from)
		require.Contains(t, body, `href="`+c.back+`"`)
	}
}

// The switch of the page decides the language, before the browser's own setting.
func TestThePageSpeaksTheChosenLanguage(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ cookie, browser, title string }{
		{"", "", "<h1>Jobs</h1>"}, {"", "fr, zh-CN;q=0.8", "<h1>作业</h1>"}, {"en", "zh-CN", "<h1>Jobs</h1>"}, {"zh", "en", "<h1>作业</h1>"}, {"fr", "zh", "<h1>作业</h1>"},
	} {
		b := s.as("alice")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/web/jobs", nil)
		require.NoError(t, err)
		req.Header.Set("Accept-Language", c.browser)
		if c.cookie != "" {
			req.AddCookie(&http.Cookie{Name: "lang", Value: c.cookie})
		}
		res, err := b.Do(req)
		require.NoError(t, err)
		_, body := read(t, res)
		require.Contains(t, body, c.title, "%+v", c)
	}
}

// A browser keeps the program's own files, and nothing that it shows of a person.
func TestWhatABrowserKeeps(t *testing.T) {
	s := newSite(t)
	for path, keeps := range map[string]string{"/web/static/page.js": "private, max-age=3600", "/web/jobs": "no-store", "/web/login": "no-store"} {
		res, err := s.as("alice").Get(s.url + path)
		require.NoError(t, err)
		status, _ := read(t, res)
		require.Equal(t, 200, status, path)
		require.Equal(t, keeps, res.Header.Get("Cache-Control"), path)
	}
}

func TestAStreamTellsOfAChange(t *testing.T) {
	s := newSite(t)
	b := s.as("alice")
	res, err := b.Get(s.url + "/web/jobs/test/6/stream")
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	first := make([]byte, 200)
	n, err := res.Body.Read(first)
	require.NoError(t, err)
	require.Contains(t, string(first[:n]), `"state":"RUNNING"`)
}

// Every page is complete in both languages, loads nothing from other hosts and has no
// inline script.
func TestPagesAreWholeInBothLanguages(t *testing.T) {
	s := newFullSite(t)
	s.pipeline()
	b := s.as("root")
	for _, path := range []string{"/web/pipelines/alice/nightly", "/web/nodes", "/web/jobs/test/7/diagnosis", "/web/jobs/test/4713/attempts", "/web/login", "/web/jobs?of=all", "/web/jobs/test/5", "/web/jobs/test/6", "/web/jobs/test/7", "/web/approvals", "/web/usage?of=all", "/web/confirm?op=hold&cluster=test&word=5"} {
		for l, word := range map[string]string{"en": "Sign out", "zh": "退出"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			require.NoError(t, err)
			req.Header.Set("Accept-Language", l)
			res, err := b.Do(req)
			require.NoError(t, err)
			require.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'none'")
			require.Equal(t, "no-store", res.Header.Get("Cache-Control"), path)
			status, body := read(t, res)
			require.Equal(t, 200, status, "%s %s", path, body)
			if strings.Contains(body, "<html") && path != "/web/login" {
				require.Contains(t, body, word, path)
			}
			if l == "en" {
				require.NotRegexp(t, `\p{Han}`, strings.ReplaceAll(body, ">中文<", ""), path)
			}
			require.NotRegexp(t, `(src|href)="(https?:)?//`, body, path)
			require.NotRegexp(t, `<script>|on(click|load)=|style="|javascript:`, body, path)
		}
	}
}
