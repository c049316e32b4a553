package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/tracing"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A REST is a Slurm reached through its slurmrestd, as one user.
type REST struct {
	name string
	base string
	user string
	// Token returns a JSON web token for the user. It is called for each request, so
	// that an expired token is replaced.
	Token func(context.Context) (string, error)
	// Client sends the requests.
	Client *http.Client
	// Bin is the folder of Slurm's commands on the nodes. It is put in front of every
	// job's PATH; empty: the PATH contains it already.
	Bin string
	// DefaultPartition is the partition of jobs that name none, where the API does not
	// report it; may be empty.
	DefaultPartition string

	meter   *Meter
	mu      sync.Mutex
	version int   // API version, such as 38 for v0.0.38; 0: not negotiated yet
	served  []int // API versions that both slurmrestd and this program support
}

// The API versions that this program supports: those of Slurm 22.05 to 26.05. By
// upstream's release notes each version is served for about three releases, so any of
// these releases serves one of them.
const (
	oldestAPI = 38
	newestAPI = 45
)

// NewREST returns the Slurm behind the slurmrestd at base, such as
// http://127.0.0.1:6820, for user.
func NewREST(name, base, user string, token func(context.Context) (string, error)) (*REST, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, lang.Text{
			EN: "cluster %s: %q is not the address of a slurmrestd; an address is like http://login1:6820",
			ZH: "集群 %s：%q 不是 slurmrestd 的地址；应如 http://login1:6820",
		}.Err(name, base)
	}
	return &REST{
		name: name, base: strings.TrimSuffix(base, "/"), user: user, Token: token,
		Client: &http.Client{},
		meter:  new(Meter),
	}, nil
}

// Name is the cluster's name in the configuration.
func (r *REST) Name() string { return r.name }

// Kind is "rest".
func (r *REST) Kind() string { return "rest" }

var servedAPI = lazy.New(`"/slurm/v0\.0\.([0-9]+)/`)

// api returns the newest API version that both sides support.
func (r *REST) api(ctx context.Context) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version > 0 {
		return r.version, nil
	}
	text, _, err := r.exchange(ctx, "connect", http.MethodGet, "/openapi/v3", nil)
	if err != nil {
		return 0, err
	}
	best, served := 0, map[string]bool{}
	// JSON may write a slash as \/.
	for _, m := range servedAPI.FindAllStringSubmatch(strings.ReplaceAll(string(text), `\/`, "/"), -1) {
		served["v0.0."+m[1]] = true
		if n, err := strconv.Atoi(m[1]); err == nil && n >= oldestAPI && n <= newestAPI {
			best = max(best, n)
			if !slices.Contains(r.served, n) {
				r.served = append(r.served, n)
			}
		}
	}
	if best == 0 {
		return 0, &slurm.Error{Op: "connect", Kind: slurm.Broken, Msg: lang.Text{
			EN: "slurmrestd serves %d API versions, none of v0.0.%d to v0.0.%d",
			ZH: "slurmrestd 提供 %d 个 API 版本，但没有 v0.0.%d 到 v0.0.%d",
		}.With(len(served), oldestAPI, newestAPI)}
	}
	r.version = best
	return best, nil
}

// send makes one HTTP request. The caller closes the body of the response.
func (r *REST) send(ctx context.Context, op, method, path string, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, payload)
	if err != nil {
		return nil, err
	}
	token, err := r.Token(ctx)
	if err != nil {
		return nil, &slurm.Error{Op: op, Kind: slurm.Denied, Msg: lang.Text{EN: "no token for %s: %s", ZH: "没有 %s 的令牌：%s"}.With(r.user, err)}
	}
	req.Header.Set("X-SLURM-USER-NAME", r.user)
	req.Header.Set("X-SLURM-USER-TOKEN", token)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodGet {
		if err := r.meter.wait(ctx); err != nil {
			return nil, tooBusy(op, err)
		}
	}
	begin := time.Now()
	_, span := tracing.Start(ctx, "slurm "+method+" "+resource(path), trace.SpanKindClient, attribute.String("slurm.cluster", r.name))
	res, err := r.Client.Do(req)
	if err != nil {
		err = &slurm.Error{Op: op, Kind: slurm.Unreachable, Msg: lang.Said(err), Fix: lang.Text{
			EN: "slurmrestd at " + r.base + " does not answer; check the address and whether it runs",
			ZH: r.base + " 上的 slurmrestd 没有响应；请检查地址以及服务是否运行",
		}}
	} else if res.StatusCode == http.StatusUnauthorized {
		res.Body.Close()
		err = slurm.FromStderr(op, "Authentication failure")
	}
	tracing.End(span, r.meter.done(method+" "+resource(path), strings.HasPrefix(path, "/slurmdb/"), time.Since(begin), err))
	if err != nil {
		return nil, err
	}
	return res, nil
}

// exchange makes one HTTP request and reads the whole response.
func (r *REST) exchange(ctx context.Context, op, method, path string, body any) (text []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	res, err := r.send(ctx, op, method, path, body)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	text, err = io.ReadAll(io.LimitReader(res.Body, maxStdout+1))
	switch {
	case err != nil:
		return nil, res.StatusCode, &slurm.Error{Op: op, Kind: slurm.Unreachable, Msg: lang.Text{EN: "the answer broke off: %s", ZH: "返回内容中断：%s"}.With(err)}
	case len(text) > maxStdout:
		return nil, res.StatusCode, &slurm.Error{Op: op, Kind: slurm.Broken, Msg: lang.Text{EN: "the answer is longer than %d MiB", ZH: "返回内容超过 %d MiB"}.With(maxStdout >> 20)}
	}
	return text, res.StatusCode, nil
}

// Job asks the controller and then the accounts; see CLI.Job.
func (r *REST) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	op := "job " + string(id)
	if !slurm.IsJobID(string(id)) {
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	rows, err := r.queue(ctx, op, "job/"+string(id.Array()))
	if err != nil {
		return slurm.Job{}, err
	}
	if j, ok := slurm.Fold(id, rows); ok {
		return j, nil
	}
	past, err := r.accounts(ctx, op, "job/"+string(id.Array()))
	if err != nil {
		return slurm.Job{}, &slurm.AccountsError{Err: err}
	}
	j, ok := slurm.Fold(id, past)
	if !ok {
		if j, ok = slurm.Vanished(id, append(rows, past...)); ok {
			return j, nil
		}
		return j, slurm.JobNotFound(id)
	}
	if !j.State.Ended() {
		j.Reason = slurm.ReasonUnsettled
	}
	return j, nil
}

// queue asks the controller for jobs. A job that the controller does not know is no
// error.
func (r *REST) queue(ctx context.Context, op, path string) ([]slurm.Job, error) {
	var rows []slurm.Job
	err := r.list(ctx, op, "slurm", path, func(m map[string]any) { rows = append(rows, slurm.JobsFromJSON(m)...) })
	if err != nil && !errors.Is(err, slurm.ErrNotFound) {
		return nil, err
	}
	return setCluster(r.name, rows), nil
}

// accounts asks the accounts for jobs.
func (r *REST) accounts(ctx context.Context, op, path string) ([]slurm.Job, error) {
	var rows []slurm.Job
	err := r.meter.patiently(ctx, func(ctx context.Context) error {
		return r.list(ctx, op, "slurmdb", path, func(m map[string]any) {
			j := slurm.AccountFromJSON(m)
			// v0.0.38 of 22.05.8 reports exit code 0 for jobs that failed with another
			// code.
			if j.State == slurm.Failed && j.ExitCode != nil && *j.ExitCode == "0:0" {
				j.ExitCode = nil
			}
			rows = append(rows, j)
		})
	})
	if err != nil && !errors.Is(err, slurm.ErrNotFound) {
		return nil, err
	}
	return setCluster(r.name, slurm.FoldRuns(rows)), nil
}

// fewIDs is the largest number of jobs that are queried one by one. slurmrestd has no
// request for several jobs, and its list of all jobs is long.
const fewIDs = 8

func jobPaths(ids []slurm.JobID) (paths []string) {
	for _, id := range ids {
		paths = append(paths, "job/"+string(id.Array()))
	}
	return paths
}

// Jobs lists jobs.
func (r *REST) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	paths := []string{"jobs"}
	if n := len(f.IDs); n > 0 && n <= fewIDs {
		paths = jobPaths(f.IDs)
	}
	var jobs []slurm.Job
	for _, path := range paths {
		some, err := r.queue(ctx, "list", path)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, some...)
	}
	match := f.Matcher()
	jobs = slices.DeleteFunc(jobs, func(j slurm.Job) bool { return !match(j) })
	if f.Since.IsZero() {
		return jobs, nil
	}
	past, err := r.Past(ctx, f)
	return slurm.WithPast(jobs, past, match, err)
}

// Past asks only the accounts; see CLI.Past.
func (r *REST) Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	if len(f.IDs) > 0 && len(f.IDs) <= 20 {
		var jobs []slurm.Job
		for _, path := range jobPaths(f.IDs) {
			some, err := r.accounts(ctx, "history", path)
			if err != nil {
				return jobs, err
			}
			jobs = append(jobs, some...)
		}
		return jobs, nil
	}
	since := f.Since
	if since.IsZero() {
		since = time.Now().Add(-7 * 24 * time.Hour)
	}
	return r.since(ctx, "history", since)
}

// since asks the accounts for all jobs since t. The time has the form of --begin, which
// every API version accepts; v0.0.39 to v0.0.41 refuse a bare number.
func (r *REST) since(ctx context.Context, op string, t time.Time) ([]slurm.Job, error) {
	version, err := r.api(ctx)
	if err != nil {
		return nil, withOp(op, err)
	}
	return r.accounts(ctx, op, sinceQuery(version, t))
}

// sinceQuery returns the request path for the jobs since t. With skip_steps, v0.0.40 of
// 23.11 returns no jobs at all.
func sinceQuery(version int, t time.Time) string {
	query := "jobs?start_time=" + timestamp(t)
	if version != 40 {
		query += "&skip_steps=true"
	}
	return query
}

// timestamp writes a time in the form that every API version accepts.
func timestamp(t time.Time) string { return "uts" + strconv.FormatInt(t.Unix(), 10) }

// Find searches the job that carries token; see CLI.Find.
func (r *REST) Find(ctx context.Context, token string, since time.Time) (slurm.JobID, bool, error) {
	op := "find submission " + token
	rows, err := r.queue(ctx, op, "jobs")
	if err != nil {
		return "", false, err
	}
	if id, ok := withToken(rows, token); ok {
		return id, true, nil
	}
	rows, err = r.since(ctx, op, since.Add(-time.Hour))
	if err != nil {
		return "", false, err
	}
	id, ok := withToken(rows, token)
	return id, ok, nil
}

// Nodes lists the cluster's nodes.
func (r *REST) Nodes(ctx context.Context) ([]slurm.Node, error) {
	a, err := r.call(ctx, "nodes", http.MethodGet, "nodes", nil)
	var nodes []slurm.Node
	for _, m := range a.Nodes {
		nodes = append(nodes, slurm.NodeFromJSON(m))
	}
	return nodes, err
}

// cannot returns the error of an operation that slurmrestd has no request for.
func cannot(en, zh string) error {
	return &slurm.Error{
		Kind: slurm.Unsupported, Fix: slurm.ErrUnsupported.Fix,
		Msg: lang.Text{EN: "slurmrestd, which this cluster is reached by, cannot " + en, ZH: "此集群通过 slurmrestd 访问，而 slurmrestd 不能" + zh},
	}
}

// Test is not possible through slurmrestd.
func (r *REST) Test(context.Context, slurm.Submission) (slurm.Estimate, error) {
	return slurm.Estimate{}, cannot("estimate when a job would start", "估计作业何时启动")
}

// Exec is not possible through slurmrestd.
func (r *REST) Exec(context.Context, slurm.Exec) ([]slurm.NodeOutput, error) {
	return nil, cannot("run a command on the nodes of a job", "在作业的节点上执行命令")
}

// Requeue is not possible through slurmrestd.
func (r *REST) Requeue(context.Context, slurm.JobID) error {
	return cannot("requeue a job", "让作业重新排队")
}
