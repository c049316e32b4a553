// Package soak runs the released service for a while, with users, agents, page viewers
// and ten thousand jobs, while its dependencies fail in turn. It then checks that
// nothing was lost, duplicated or leaked.
package soak

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store/pgtest"
)

var (
	length    = flag.Duration("for", 2*time.Minute, "how long the load lasts")
	jobs      = flag.Int("jobs", 0, "how many jobs; 0: 10,000 in half an hour")
	perMinute = flag.Int("commands", 1000, "how many commands in a minute")
	report    = flag.String("report", "", "where the report is written, as a Markdown table")
	keep      = flag.String("keep", "", "where serve's log is kept")
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(socketVariable); socket != "" && len(os.Args) > 1 {
		os.Exit(slurmCommand(socket, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// A run is one soak test.
type run struct {
	jobs, perMinute int
	tree            string
	slurm           *slurm
	slack           *slacktest.Server
	slackURL        string
	database        *pgtest.Server
	server          *server
	ledger          *ledger
	agentCalls      atomic.Int64
	streamed, cuts  atomic.Int64
	began           time.Time
	lasts           time.Duration
	alone           sync.Mutex // one of those who kill serve at a time

	mu      sync.Mutex
	wishes  []*wish
	samples []sample
	on      int       // faults that are on
	lifted  time.Time // when the last was lifted
	counts  map[string]int
	settled time.Duration
}

// The measured time lies within one process of serve, from a quarter to six sevenths of
// the run.
func (r *run) measured(at time.Time) bool {
	return at.After(r.began.Add(r.lasts/4)) && at.Before(r.began.Add(r.lasts*6/7))
}

func (r *run) begins(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on++
	r.counts[name]++
}

func (r *run) ends() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on--
	r.lifted = time.Now()
}

// calm reports whether no fault is active, and none was in the last seconds.
func (r *run) calm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on == 0 && time.Since(r.lifted) > 5*time.Second
}

func newRun(t *testing.T) *run {
	t.Helper()
	database, err := pgtest.New()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI promises PostgreSQL: ", err)
		}
		t.Skip("no PostgreSQL: ", err)
	}
	t.Cleanup(database.Stop)
	r := &run{
		jobs: *jobs, perMinute: *perMinute, tree: t.TempDir(), slurm: newSlurm(t), database: database, ledger: newLedger(), lasts: *length, counts: map[string]int{},
	}
	if r.jobs == 0 {
		r.jobs = int(10_000 * length.Minutes() / 30)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(r.tree, ".venv"), 0o755))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := ln.Addr().String()
	ln.Close()
	const secret = "8f742231b10e8888abcd99yyyzzz85a5"
	r.slack = slacktest.New(slacktest.Config{SigningSecret: secret, Target: "http://" + addr, Lean: true, Seen: r.ledger.told})
	front := httptest.NewServer(r.slack)
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	r.slackURL = front.URL
	hook := httptest.NewServer(r.ledger)
	t.Cleanup(func() { hook.CloseClientConnections(); hook.Close() })
	var links []string
	for i := range people {
		links = append(links, fmt.Sprintf("U%03d: %s", i, me))
	}
	r.server = newServer(t, addr, fmt.Sprintf(`cluster: soak
store: %q
clusters: {soak: {kind: cli}}
slack: {links: {%s}, per_minute: 600}
mcp: {confirm: fallback-token, tokens: [{file: agent.token, id: soak, user: %s}]}
notify: {hook: {kind: webhook, url: %q, events: [start, end]}}
`, database.URL, strings.Join(links, ", "), me, hook.URL),
		"PATH="+r.slurm.bin+":"+os.Getenv("PATH"), "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+secret, "SLACK_API_URL="+front.URL+"/api/")
	require.NoError(t, os.WriteFile(filepath.Join(r.server.home, "agent.token"), []byte(agentToken), 0o600))
	return r
}

// fill puts the jobs into the queue: all are pending at first, and each runs and ends
// at its time.
func (r *run) fill() {
	r.slurm.mu.Lock()
	defer r.slurm.mu.Unlock()
	hows := []string{"COMPLETED", "COMPLETED", "FAILED", "COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED", "CANCELLED", "COMPLETED", "COMPLETED"}
	first, last := max(70*time.Second, r.lasts/15), max(110*time.Second, r.lasts*9/10)
	for i := range r.jobs {
		end := first + time.Duration(i)*(last-first)/time.Duration(r.jobs)
		start := end - min(end/2, r.lasts/10)
		r.slurm.add(fmt.Sprintf("pretrain-%d", i), fmt.Sprintf("u%02d", i%owners), r.began.Add(start), r.began.Add(end), hows[i%len(hows)])
	}
}

func channelOf(owner int) string { return fmt.Sprintf("TEAM%02d", owner) }

// TestSoak runs for two minutes by default, and for thirty with make soak.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("a soak is not for -short")
	}
	r := newRun(t)
	if *keep != "" {
		t.Cleanup(func() { _ = os.Rename(r.server.complain.Name(), *keep) })
	}
	require.NoError(t, r.server.start())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range owners {
		c := &command{kind: "subscribe", words: fmt.Sprintf("subscribe user=u%02d", i), at: time.Now(), calm: true}
		r.typed(ctx, c, channelOf(i), "U000")
		require.True(t, c.acked, "%s in %s", c.words, channelOf(i))
	}
	r.began = time.Now()
	r.fill()

	load, end := context.WithTimeout(ctx, r.lasts)
	defer end()
	whole, over := context.WithCancel(ctx)
	defer over()
	var work, agents sync.WaitGroup
	failed := make(chan error, 2)
	work.Go(func() { r.people(load) })
	for i := range 10 {
		agents.Go(func() { r.agent(load, whole, i) })
		work.Go(func() { r.viewer(load, &r.streamed, &r.cuts) })
		work.Go(func() { r.viewer(load, &r.streamed, &r.cuts) })
	}
	work.Go(func() {
		failed <- r.trouble(load, max(15*time.Second, r.lasts/30))
	})
	work.Go(func() { failed <- r.killing(load, max(20*time.Second, r.lasts/20)) })
	work.Go(func() { r.measure(load) })
	work.Wait()
	require.NoError(t, <-failed)
	require.NoError(t, <-failed)
	t.Logf("the load has ended after %s; waiting for what is still owed", time.Since(r.began).Round(time.Second))
	settled, said := time.Now(), time.Now()
	// Polls are counted, not time, so that nothing is lost when the machine is
	// suspended. On a busy machine a watcher may pause for five and a half minutes.
	for looks, quiet := 0, 0; looks < 1200 && quiet < 400 && len(r.missing()) > 0; looks++ {
		if quiet++; r.ledger.still() < 2*time.Second {
			quiet = 0
		}
		if missing := r.missing(); len(missing) > 0 && time.Since(said) > 20*time.Second {
			said = time.Now()
			t.Logf("after %s %d are owed, such as %s", time.Since(settled).Round(time.Second), len(missing), missing[0])
		}
		pause(whole, time.Second)
	}
	over()
	agents.Wait()
	r.settle(settled)
	pause(ctx, 10*time.Second) // for what is one too many
	r.verify(t)
}

// measure takes a sample of serve every second.
func (r *run) measure(ctx context.Context) {
	for ctx.Err() == nil {
		if x, ok := r.server.sample(); ok {
			r.mu.Lock()
			r.samples = append(r.samples, x)
			r.mu.Unlock()
		}
		pause(ctx, time.Second)
	}
}
