package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A site is a cluster that answers from a map.
type site struct {
	opstest.Bare
	mu   sync.Mutex
	jobs map[slurm.JobID]slurm.Job
	subs []slurm.Submission
	// looks counts the queries for one job.
	looks int
	// lists counts the queries for all jobs.
	lists int
}

func (s *site) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// awaitPolls waits until all jobs were queried n times more: with two, the first
// query's answer was surely taken in.
func (s *site) awaitPolls(t *testing.T, n int) {
	t.Helper()
	before := s.listed()
	require.Eventually(t, func() bool { return s.listed() >= before+n }, 10*time.Second, time.Millisecond)
}

// A callLog receives the name of each tool whose call has ended, after "ERROR " where the
// log calls that an error.
type callLog chan string

// logCalls makes a server of cfg report the ends of its calls.
func logCalls(cfg *mcp.Config) callLog {
	calls := make(callLog, 100)
	cfg.Log = slog.New(calls)
	return calls
}

// awaitEnd waits until a call of tool has ended.
func (l callLog) awaitEnd(t *testing.T, tool string) {
	t.Helper()
	require.Eventually(t, func() bool {
		select {
		case ended := <-l:
			return ended == tool
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond, "no call of "+tool+" has ended")
}

func (l callLog) Enabled(context.Context, slog.Level) bool { return true }
func (l callLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l callLog) WithGroup(string) slog.Handler            { return l }

func (l callLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if r.Message == "call" && a.Key == "tool" {
			name := a.Value.String()
			if r.Level >= slog.LevelError {
				name = "ERROR " + name
			}
			l <- name
		}
		return true
	})
	return nil
}

func (s *site) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

func (s *site) Name() string { return "test" }
func (s *site) Kind() string { return "rest" }

func (s *site) Submit(_ context.Context, sub slurm.Submission) (slurm.JobID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs = append(s.subs, sub)
	id := slurm.JobID(strconv.Itoa(5000 + len(s.subs)))
	s.jobs[id] = slurm.Job{ID: id, Name: sub.Name, User: "alice", State: slurm.Pending, Reason: "Priority"}
	return id, nil
}

func (s *site) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	j, ok := s.jobs[id]
	if !ok {
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	return j, nil
}

func (s *site) Jobs(_ context.Context, f slurm.Filter) ([]slurm.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	var out []slurm.Job
	for _, j := range s.jobs {
		if f.Match(j) {
			out = append(out, j)
		}
	}
	return out, nil
}

func (s *site) Cancel(_ context.Context, id slurm.JobID) error {
	s.set(id, func(j *slurm.Job) { j.State = slurm.Cancelled })
	return nil
}

func (s *site) Find(context.Context, string, time.Time) (slurm.JobID, bool, error) {
	return "", false, nil
}

func (s *site) set(id slurm.JobID, change func(*slurm.Job)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	change(&j)
	s.jobs[id] = j
}

// newSite has a running job of alice and one of bob.
func newSite() *site {
	limit := int64(86400)
	at := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	running := func(id slurm.JobID, name, user string) slurm.Job {
		return slurm.Job{
			ID: id, Name: name, User: user, Partition: "prod", State: slurm.Running, Nodes: []string{"n1", "n2"},
			NumNodes: 2, GPUs: 16, ElapsedS: 3600, TimeLimitS: &limit, SubmittedAt: &at, StartedAt: &at,
		}
	}
	return &site{jobs: map[slurm.JobID]slurm.Job{
		"4711": running("4711", "gpt-7b", "alice"),
		"4712": running("4712", "bobs", "bob"),
	}}
}

// alice is the person whom stdio serves in these tests.
var alice = ops.Caller{ID: "alice", User: "alice"}

// config returns a server's configuration over s, with a store of its own, and the
// audited entries.
func config(t *testing.T, s *site) (mcp.Config, *[]ops.AuditEntry) {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { st.Close() })
	var audit []ops.AuditEntry
	answerer := sync.OnceValue(func() *knowledge.Answerer { return knowledge.New(knowledge.Options{}) })
	svc := &ops.Service{
		As:       func(cl ops.Cluster, _ string) (ops.Cluster, error) { return cl, nil },
		Clusters: map[string]ops.Cluster{"test": s}, Default: "test", Now: time.Now,
		Store:    func() (*store.Store, error) { return st, nil },
		Answerer: answerer,
		Audit:    func(_ context.Context, e ops.AuditEntry) { audit = append(audit, e) },
	}
	return mcp.Config{
		Service: func() (*ops.Service, error) { return svc, nil }, Caller: alice, Toolsets: []string{"all"},
		Policy: func() mcp.Policy { return mcp.Policy{Tokens: true} },
	}, &audit
}

// connectAlice opens a session of alice, who may write.
func connectAlice(t *testing.T, s *site) *client {
	t.Helper()
	cfg, _ := config(t, s)
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	return connect(t, url, map[string]string{"Authorization": "Bearer t"})
}

// A result is a tool's answer.
type result struct {
	Text       string
	Structured map[string]any
	IsError    bool
}

// lean fails the test if either form of an answer takes more than 1,500 tokens, at four
// characters each. A script that was asked for may be complete.
func (r result) lean(t *testing.T, of string) {
	t.Helper()
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(r.Structured))
	most := 1500
	if strings.Contains(r.Text, "#!") {
		most = 5000
	}
	t.Logf("%5d tokens of text, %5d of structure: %s", len(r.Text)/4, raw.Len()/4, of)
	require.LessOrEqual(t, len(r.Text)/4, most, "text of %s", of)
	require.LessOrEqual(t, raw.Len()/4, most, "structure of %s", of)
}

// do calls a tool and returns its answer; a protocol error fails the test.
func (c *client) do(tool, args string) result {
	c.t.Helper()
	m := c.call(tool, args, "")
	last := m[len(m)-1]
	res, ok := last["result"].(map[string]any)
	require.True(c.t, ok, "%v", last)
	r := result{}
	for _, part := range res["content"].([]any) {
		text, _ := part.(map[string]any)["text"].(string)
		r.Text += text
	}
	r.Structured, _ = res["structuredContent"].(map[string]any)
	r.IsError, _ = res["isError"].(bool)
	return r
}
