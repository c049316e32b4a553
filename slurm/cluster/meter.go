package cluster

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/tracing"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Request is one kind of request to a cluster together with its outcome.
type Request struct {
	Name    string // the command, or method and resource: "squeue", "GET jobs"
	Outcome string // "ok", "refused", "unreachable", "rate limited"
}

// A Meter counts the requests to one cluster and their durations, for all users, and
// delays queries while the cluster's controller is too busy. The zero Meter is ready to
// use.
type Meter struct {
	mu    sync.Mutex
	count map[Request]int
	spent map[string]time.Duration
	// delay is the current delay of queries, 0 while the controller is not busy. until
	// is the time at which the next query may run.
	delay time.Duration
	until time.Time
	// silentAt is when the accounts last left a patient question without an answer.
	silentAt time.Time
}

// The first and the largest delay of queries. Each answer that shows a busy controller
// doubles the delay, each good answer halves it.
const (
	firstDelay = time.Second
	mostDelay  = 16 * time.Second
)

// wait blocks a query while the controller is busy.
func (m *Meter) wait(ctx context.Context) error {
	m.mu.Lock()
	left := time.Until(m.until)
	m.mu.Unlock()
	if left <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(left):
		return nil
	}
}

// done counts a request and returns its outcome. What the accounting database answers says nothing of the
// controller.
func (m *Meter) done(name string, ofAccounts bool, took time.Duration, err error) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count == nil {
		m.count, m.spent = map[Request]int{}, map[string]time.Duration{}
	}
	e, _ := errors.AsType[*slurm.Error](err)
	outcome := "ok"
	switch {
	case e != nil && (e.Kind == slurm.Unreachable || e.Kind == slurm.RateLimited):
		outcome = string(e.Kind)
	case err != nil:
		outcome = "refused"
	}
	m.count[Request{name, outcome}]++
	m.spent[name] += took
	switch {
	case ofAccounts:
	case e != nil && e.Retryable():
		m.busy()
	case m.delay > 0:
		if m.delay /= 2; m.delay < firstDelay {
			m.delay = 0
		}
	}
	return outcome
}

// busy raises the delay of the following queries.
func (m *Meter) busy() {
	m.delay = min(max(2*m.delay, firstDelay), mostDelay)
	m.until = time.Now().Add(m.delay)
}

// Busy delays the following queries where the controller's own figures show that it has
// hardly a free thread or that its messages pile up.
func (m *Meter) Busy(l slurm.ControllerLoad) {
	if !l.Busy() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy()
}

// Counts returns the number of requests so far, and the time spent on each kind.
func (m *Meter) Counts() (count map[Request]int, spent map[string]time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.count), maps.Clone(m.spent)
}

// Delay returns the current delay of queries; 0 means none.
func (m *Meter) Delay() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.delay
}

// queries are the commands that change nothing; where words are listed, only a command
// line with one of them changes nothing.
var queries = map[string][]string{
	"squeue": nil, "sacct": nil, "sinfo": nil, "sprio": nil, "sshare": nil, "sdiag": nil,
	"scontrol": {"show", "ping"}, "sacctmgr": {"show"},
}

// isQuery reports whether a command changes nothing in Slurm.
func isQuery(argv []string) bool {
	words, known := queries[argv[0]]
	return known && (words == nil || slices.ContainsFunc(argv, func(w string) bool { return slices.Contains(words, w) }))
}

// run runs a command. It counts the requests to Slurm and delays queries while the
// controller is busy.
func (c *CLI) run(ctx context.Context, cmd command) (result, error) {
	name := cmd.argv[0]
	if _, known := queries[name]; !known && !slices.Contains([]string{"sbatch", "scancel", "srun"}, name) {
		return c.runner.run(ctx, cmd)
	}
	if err := c.lacksConf(cmd); err != nil {
		return result{}, err
	}
	if isQuery(cmd.argv) {
		if err := c.meter.wait(ctx); err != nil {
			return result{}, tooBusy(name, err)
		}
	}
	begin := time.Now()
	ctx, span := tracing.Start(ctx, "slurm "+name, trace.SpanKindClient, attribute.String("slurm.cluster", c.name))
	r, err := c.runner.run(ctx, cmd)
	said := err
	if err == nil && r.code != 0 {
		said = slurm.FromStderr(name, r.stderr)
	}
	tracing.End(span, c.meter.done(name, accounting[name], time.Since(begin), said))
	return r, err
}

// tooBusy returns the error of a query whose caller gave up during the delay.
func tooBusy(op string, err error) *slurm.Error {
	return &slurm.Error{Op: op, Kind: slurm.Unreachable, Msg: lang.Text{EN: "the controller is too busy to be asked now: %s", ZH: "控制器当前过于繁忙，暂不查询：%s"}.With(err)}
}

// Meter counts the requests to this cluster.
func (c *CLI) Meter() *Meter { return c.meter }

// Meter counts the requests to this cluster.
func (r *REST) Meter() *Meter { return r.meter }

// Load asks the controller how busy it is.
func (c *CLI) Load(ctx context.Context) (slurm.ControllerLoad, error) {
	out, err := c.ask(ctx, "load", "sdiag")
	return slurm.ParseLoad(out), err
}

// Load asks the controller how busy it is.
func (r *REST) Load(ctx context.Context) (slurm.ControllerLoad, error) {
	a, err := r.call(ctx, "load", http.MethodGet, "diag", nil)
	return slurm.LoadFromJSON(a.Statistics), err
}

// resource returns the kind of object that a path of the API names: "jobs", "job".
func resource(path string) string {
	path, _, _ = strings.Cut(path, "?")
	words := strings.Split(strings.Trim(path, "/"), "/")
	if len(words) < 3 {
		return words[0]
	}
	return words[2]
}
