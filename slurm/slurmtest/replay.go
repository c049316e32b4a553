package slurmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Runner is the back end that runs the jobs behind a replayed slurmrestd.
type Runner interface {
	Submit(context.Context, slurm.Submission) (slurm.JobID, error)
	Job(context.Context, slurm.JobID) (slurm.Job, error)
	Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
	Cancel(context.Context, slurm.JobID) error
	Hold(context.Context, slurm.JobID) error
	Release(context.Context, slurm.JobID) error
	Update(context.Context, slurm.JobID, slurm.Update) error
	Nodes(context.Context) ([]slurm.Node, error)
	Partitions(context.Context) ([]slurm.Partition, error)
}

// GoodToken is the token that a replayed slurmrestd accepts for every user.
const GoodToken = "good"

// A REST is a fake slurmrestd that behaves like the recorded one of a release: it has
// its API versions, the structure of its documents, the texts and HTTP statuses of its
// refusals, and its faults. Its documents are recorded ones, filled with the fields of
// the runner's jobs.
type REST struct {
	URL string
	// Owner is the owner of all the runner's jobs; nobody else may cancel them.
	Owner string

	mu      sync.Mutex
	asked   []string
	t       testing.TB
	release string
	apis    []int
	run     Runner
}

// ReplayREST starts a slurmrestd of a release that serves the given API versions, or
// all that the release served. It ends with the test.
func ReplayREST(t testing.TB, release, owner string, run Runner, apis ...int) *REST {
	t.Helper()
	if len(apis) == 0 {
		apis = APIs(t, release)
	}
	r := &REST{Owner: owner, t: t, release: release, apis: apis, run: run}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Asked returns the requests so far, such as "DELETE /slurm/v0.0.40/job/7".
func (r *REST) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

// An apiRequest is one request of the API.
type apiRequest struct {
	api  int
	name string // the recorded folder, such as "rest/v0.0.40/"
	user string
	body object
	*http.Request
}

// ServeHTTP answers one request.
func (r *REST) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.asked = append(r.asked, req.Method+" "+req.URL.RequestURI())
	r.mu.Unlock()
	if req.Header.Get("X-SLURM-USER-TOKEN") == "" {
		http.Error(w, "Authentication failure", http.StatusUnauthorized)
		return
	}
	if req.URL.Path == "/openapi/v3" {
		paths := object{}
		for _, v := range r.apis {
			paths[fmt.Sprintf("/slurm/v0.0.%d/jobs/", v)] = object{}
		}
		answer(w, http.StatusOK, object{"paths": paths})
		return
	}
	var area, what, id, more string
	words := strings.SplitN(strings.Trim(req.URL.Path, "/"), "/", 5)
	for i, into := range []*string{&area, new(string), &what, &id, &more} {
		if i < len(words) {
			*into = words[i]
		}
	}
	api, err := strconv.Atoi(strings.TrimPrefix(words[min(1, len(words)-1)], "v0.0."))
	if err != nil || !slices.Contains(r.apis, api) || more != "" {
		http.NotFound(w, req)
		return
	}
	q := apiRequest{api: api, name: fmt.Sprintf("rest/v0.0.%d/", api), user: req.Header.Get("X-SLURM-USER-NAME"), Request: req}
	if req.Body != nil {
		_ = json.NewDecoder(req.Body).Decode(&q.body)
	}
	if req.Header.Get("X-SLURM-USER-TOKEN") != GoodToken {
		r.badToken(w, what)
		return
	}
	switch key := req.Method + " " + area + " " + what; {
	case key == "GET slurm jobs":
		answer(w, http.StatusOK, object{"jobs": r.jobs(q, "", r.queued), "errors": []any{}})
	case key == "GET slurm job":
		r.job(w, q, slurm.JobID(id))
	case key == "GET slurmdb jobs", key == "GET slurmdb job":
		r.accounts(w, q, slurm.JobID(id))
	case key == "GET slurm nodes":
		answer(w, http.StatusOK, object{"nodes": r.nodes(q), "errors": []any{}})
	case key == "GET slurm partitions":
		answer(w, http.StatusOK, object{"partitions": r.partitions(q), "errors": []any{}})
	case key == "GET slurm ping", key == "GET slurm diag":
		r.sendRecorded(w, q, what+".json")
	case key == "POST slurm job" && id == "submit":
		r.submit(w, q)
	case key == "POST slurm job":
		r.update(w, q, slurm.JobID(id))
	case key == "DELETE slurm job":
		r.cancel(w, q, slurm.JobID(id))
	default:
		http.NotFound(w, req)
	}
}

func answer(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc)
}

// sendRecorded sends a recorded answer unchanged.
func (r *REST) sendRecorded(w http.ResponseWriter, q apiRequest, name string) {
	answer(w, recordedStatus(r.t, r.release, q.name+name), recordedDocument(r.t, r.release, q.name+name))
}

// refuse sends a recorded refusal with another error text.
func (r *REST) refuse(w http.ResponseWriter, q apiRequest, name, words string) {
	doc := recordedDocument(r.t, r.release, q.name+name)
	for _, e := range doc["errors"].([]any) {
		e.(object)["error"] = words //nolint:forcetypeassert // recorded so
	}
	answer(w, recordedStatus(r.t, r.release, q.name+name), doc)
}

// badToken answers a request with a wrong token. Only ping was recorded; since 24.11,
// jobs answer with the status of ping.
func (r *REST) badToken(w http.ResponseWriter, what string) {
	if r.release < "24.11" || what == "ping" {
		var doc object
		name := fmt.Sprintf("rest/v0.0.%d/bad-token.txt", slices.Max(APIs(r.t, r.release)))
		_ = json.Unmarshal([]byte(Recorded(r.t, r.release, name)), &doc)
		answer(w, recordedStatus(r.t, r.release, name), doc)
		return
	}
	answer(w, http.StatusInternalServerError, object{"errors": []any{object{
		"description": "Failure to query", "error_number": 1007, "error": "Protocol authentication error", "source": what,
	}}})
}

// job answers for one job of the queue, or for all of its elements.
func (r *REST) job(w http.ResponseWriter, q apiRequest, id slurm.JobID) {
	jobs := r.jobs(q, id, r.queued)
	if len(jobs) == 0 {
		r.sendRecorded(w, q, r.nearest(q, "job-unknown.json"))
		return
	}
	answer(w, http.StatusOK, object{"jobs": jobs, "errors": []any{}})
}

// nearest returns the name of a recorded answer in the requested API version, or else
// in the release's newest version.
func (r *REST) nearest(q apiRequest, name string) string {
	if HasRecorded(r.release, q.name+name) {
		return name
	}
	return fmt.Sprintf("../v0.0.%d/%s", slices.Max(APIs(r.t, r.release)), name)
}

// accounts answers from the accounts. It reads start_time as each release does.
func (r *REST) accounts(w http.ResponseWriter, q apiRequest, id slurm.JobID) {
	if start := q.URL.Query().Get("start_time"); start != "" {
		_, notPlain := strconv.ParseInt(start, 10, 64)
		if notPlain == nil && q.api < 42 || !strings.HasPrefix(start, "uts") && notPlain != nil {
			answer(w, http.StatusInternalServerError, recordedDocument(r.t, "23.11", "rest-accounts.json"))
			return
		}
	}
	if r.release == "23.11" && q.api == 40 && q.URL.Query().Get("skip_steps") != "" {
		answer(w, http.StatusOK, object{"jobs": []any{}, "errors": []any{}})
		return
	}
	answer(w, http.StatusOK, object{"jobs": r.jobs(q, id, r.accounted), "errors": []any{}})
}

// cancel ends a job as the release's slurmrestd does, which may differ from the
// request.
func (r *REST) cancel(w http.ResponseWriter, q apiRequest, id slurm.JobID) {
	ctx := q.Context()
	ends := known(r.all(ctx), id)
	if r.release == "23.11" && q.api >= 39 && strings.Contains(string(id), "_") {
		ends = ends.Array() // the release ends the whole array
	}
	j, err := r.run.Job(ctx, ends)
	says := func(name string) { r.sendRecorded(w, q, r.nearest(q, name)) }
	if r.release >= "24.11" && q.api < 42 {
		says = func(string) { r.sendRecorded(w, q, "cancel-unknown.json") } // these releases say nothing, whatever the result
	}
	switch {
	case err != nil:
		says("cancel-unknown.json")
	case q.user != r.Owner:
		says("cancel-foreign.json")
	case j.State.Ended():
		says("cancel-ended.json")
	default:
		if err := r.run.Cancel(ctx, ends); err != nil {
			r.t.Error(err)
		}
		says("cancel-own.json")
	}
}

// all returns the runner's jobs, ended ones included.
func (r *REST) all(ctx context.Context) []slurm.Job {
	jobs, err := r.run.Jobs(ctx, slurm.Filter{All: true})
	if err != nil {
		r.t.Error(err)
	}
	return jobs
}

// known returns the runner's id of the job that a request names by its own number.
func known(all []slurm.Job, id slurm.JobID) slurm.JobID {
	for _, j := range all {
		if id != "" && j.RawID == id && j.ID.Array() != id { // the array itself also has the number of one of its elements
			return j.ID
		}
	}
	return id
}

// update changes a job.
func (r *REST) update(w http.ResponseWriter, q apiRequest, id slurm.JobID) {
	ctx := q.Context()
	id = known(r.all(ctx), id)
	if _, err := r.run.Job(ctx, id); err != nil {
		r.sendRecorded(w, q, r.nearest(q, "update-unknown.json"))
		return
	}
	var u slurm.Update
	var err error
	for name, v := range q.body {
		switch name {
		case "hold":
			change := r.run.Release
			if v == true {
				change = r.run.Hold
			}
			err = change(ctx, id)
		case "time_limit":
			u.TimeLimit = minutes(v)
		default:
			r.t.Errorf("update with %s", name)
		}
	}
	if err == nil && u.TimeLimit > 0 {
		err = r.run.Update(ctx, id, u)
	}
	if err != nil {
		r.refuse(w, q, r.nearest(q, "update-unknown.json"), err.Error())
		return
	}
	r.sendRecorded(w, q, r.nearest(q, "hold.json"))
}
