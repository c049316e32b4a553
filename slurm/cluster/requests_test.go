package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Each option is written as the API version expects it, and an option without a field
// is refused.
func TestOptionsAsSlurmrestdTakesThem(t *testing.T) {
	for _, c := range []struct {
		option     string
		old, newer string // of v0.0.38, of all since v0.0.39; or the words of a refusal
	}{
		{"--open-mode=append", `"open_mode":"append"`, `"open_mode":["APPEND"]`},
		{"--requeue", `"requeue":true`, `"requeue":true`},
		{"--no-requeue", `"requeue":false`, `"requeue":false`},
		{"--nodes=2-4", `"nodes":[2,4]`, `"nodes":"2-4"`},
		{"--nodes=2", `"nodes":[2,2]`, `"nodes":"2"`},
		{"--nodes=2", `"tasks":2`, `"tasks":2`},
		{"--nodes=2 --ntasks-per-node=8", `"tasks":16`, `"tasks":16`},
		{"--nodes=2 --ntasks=3", `"tasks":3`, `"tasks":3`},
		{"--nodes=0", "not a valid node count", "not a valid node count"},
		{"--nodes=1-x", "not a valid node count", "not a valid node count"},
		{"--cpus-per-task=4", `"cpus_per_task":4`, `"cpus_per_task":4`},
		{"--cpus-per-task=0", "invalid number", "invalid number"},
		{"--ntasks=1", `"tasks":1`, `"tasks":1`},
		{"--gres=gpu:8", `"gres":"gpu:8"`, `"tres_per_node":"gres/gpu:8"`},
		{"--gpus-per-node=8", `"gpus_per_node":"8"`, `"tres_per_node":"gres/gpu:8"`},
		{"--time=90", `"time_limit":90`, `"time_limit":{"infinite":false,"number":90,"set":true}`},
		{"--time=0:0:61", `"time_limit":2`, `"time_limit":{"infinite":false,"number":2,"set":true}`},
		{"--time=soon", "Invalid --time", "Invalid --time"},
		{"--mem=64G", `"memory_per_node":65536`, `"memory_per_node":{"infinite":false,"number":65536,"set":true}`},
		{"--mem=much", "invalid memory", "invalid memory"},
		{"--exclusive", `"exclusive":"true"`, `"shared":["none"]`},
		{"--exclusive=user", `"exclusive":"user"`, `"shared":["user"]`},
		{"--nodelist=gpu[1-2]", `"nodelist":"gpu[1-2]"`, `"required_nodes":["gpu1","gpu2"]`},
		{"--exclude=gpu1", `"exclude":"gpu1"`, `"excluded_nodes":["gpu1"]`},
		{"--signal=B:USR1@300", `"signal":"B:10@300"`, `"kill_warning_delay":{"infinite":false,"number":300,"set":true},"kill_warning_flags":["BATCH_JOB"],"kill_warning_signal":"10"`},
		{"--signal=TERM", `"signal":"15"`, `"kill_warning_signal":"15"`},
		{"--signal=64", `"signal":"64"`, `"kill_warning_signal":"64"`},
		{"--signal=R:USR1@300", "Invalid --signal", "Invalid --signal"},
		{"--signal=65", "Invalid --signal", "Invalid --signal"},
		{"--signal=0", "Invalid --signal", "Invalid --signal"},
		{"--signal=NOPE", "Invalid --signal", "Invalid --signal"},
		{"--mail-type=END,FAIL,END", `"mail_type":"END,FAIL,END"`, `"mail_type":["END","FAIL"]`},
		{"--get-user-env", `"get_user_environment":true`, "ignores it from v0.0.39 on"},
		{"--ntasks-per-core=1", "slurmrestd has no field for it", "slurmrestd has no field for it"},
	} {
		for version, want := range map[int]string{38: c.old, 39: c.newer, 41: c.newer} {
			r := &REST{}
			d, err := r.describe(slurm.Submission{Script: "#!/bin/sh\n#SBATCH " + c.option + "\n", Dir: "/w"}, version)
			if !strings.HasPrefix(want, `"`) {
				require.ErrorContains(t, err, want, c.option)
				continue
			}
			require.NoError(t, err, c.option)
			text, err := json.Marshal(d["job"])
			require.NoError(t, err)
			require.Contains(t, string(text), want, "%s in v0.0.%d", c.option, version)
		}
	}
	for script, want := range map[string]string{"echo\n": "must start with #!", "#!/bin/sh\n#SBATCH --comment='x\n": "unmatched"} {
		_, err := (&REST{}).describe(slurm.Submission{Script: script}, 41)
		require.ErrorContains(t, err, want)
	}
}

// answers is a slurmrestd of v0.0.41 that answers each "METHOD /path" (the part after
// the version) with a document, and stores the requests.
func answers(t *testing.T, documents map[string]string) (*REST, *string) {
	t.Helper()
	sent := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/openapi/v3" {
			fmt.Fprint(w, `{"paths":{"/slurm/v0.0.41/jobs/":{},"/slurmdb/v0.0.41/jobs/":{}}}`)
			return
		}
		if body, _ := io.ReadAll(r.Body); len(body) > 0 {
			sent = string(body)
		}
		_, path, _ := strings.Cut(r.URL.Path, "/v0.0.41/")
		text, known := documents[r.Method+" "+path]
		switch {
		case !known:
			fmt.Fprint(w, `{"errors":[{"error":"Invalid job id specified"}]}`)
		case text == "broken":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		case strings.HasPrefix(text, "status "):
			var status int
			fmt.Sscanf(text, "status %d", &status)
			w.WriteHeader(status)
			fmt.Fprint(w, "{}")
		default:
			fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(server.Close)
	r, err := NewREST("rest", server.URL, "alice", func(context.Context) (string, error) { return "t", nil })
	require.NoError(t, err)
	return r, &sent
}

// A change sends only the fields that change.
func TestAChangeOverREST(t *testing.T) {
	for want, u := range map[string]slurm.Update{
		`{"nodes":"2"}`: {NumNodes: 2}, `{"partition":"dev"}`: {Partition: "dev"}, `{"qos":"high"}`: {QOS: "high"},
		`{"excluded_nodes":["gpu1"]}`:                             {Exclude: []string{"gpu1"}},
		`{"time_limit":{"infinite":false,"number":2,"set":true}}`: {TimeLimit: 61 * time.Second}, `{}`: {},
	} {
		r, sent := answers(t, map[string]string{"POST job/7": `{}`})
		require.NoError(t, r.Update(t.Context(), "7", u))
		require.JSONEq(t, want, *sent)
	}
	r, sent := answers(t, nil)
	require.ErrorIs(t, r.Hold(t.Context(), "7;x"), slurm.ErrNotFound)
	require.Empty(t, *sent)
}

// An answer without the needed fields is an error.
func TestAnswersOfSlurmrestdThatAreNone(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		text string
		says string
		kind slurm.ErrorKind
	}{
		{"broken", "the answer broke off", slurm.Unreachable},
		{"status 502", "status 502 and no message", slurm.Broken},
		{"status 400", "status 400 and no message", slurm.Broken},
		{"<html>", "cannot be read", slurm.Broken},
		{"status 401", "uthentication", slurm.Denied},
		{`{"errors":[{"error":"Unspecified error"}]}`, "uthentication", slurm.Denied},
		{`{"results":[{"error_code":2000}]}`, "Slurm's error 2000", slurm.Rejected},
	} {
		r, _ := answers(t, map[string]string{"GET reservations": c.text})
		_, err := r.Reservations(ctx)
		var e *slurm.Error
		require.ErrorAs(t, err, &e, c.text)
		require.ErrorContains(t, err, c.says)
		if c.kind != slurm.Rejected {
			require.Equal(t, c.kind, e.Kind, c.text)
		}
		list, _ := answers(t, map[string]string{"GET jobs": c.text}) // read job by job
		_, err = list.Jobs(ctx, slurm.Filter{})
		var l *slurm.Error
		require.ErrorAs(t, err, &l, c.text)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, e.Kind, l.Kind, c.text)
	}
	r, _ := answers(t, map[string]string{"POST job/submit": `{}`, "GET reservations": `{"reservations":[{"name":"week","node_list":"gpu[1-2]","users":"alice,bob"}]}`})
	_, err := r.Submit(ctx, slurm.Submission{Script: "#!/bin/sh\n"})
	require.ErrorIs(t, err, slurm.ErrUnknown, "there may be a job all the same")
	all, err := r.Reservations(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"alice", "bob"}, all[0].Users)
	for _, says := range []error{
		func() error { _, err := r.Test(ctx, slurm.Submission{}); return err }(), func() error { _, err := r.Exec(ctx, slurm.Exec{}); return err }(), r.Requeue(ctx, "7"),
	} {
		require.ErrorIs(t, says, slurm.ErrUnsupported)
	}
	for _, url := range []string{"login1:6820", "ftp://login1", "http://", "http://a@login1:6820", "http://a:b:c"} {
		_, err := NewREST("x", url, "alice", nil)
		require.ErrorContains(t, err, "is not the address of a slurmrestd", url)
	}
	r, err = NewREST("x", "http://login1:6820", "alice", func(context.Context) (string, error) { return "", slurm.Sayf("no key") })
	require.NoError(t, err)
	_, err = r.Reservations(ctx)
	require.ErrorContains(t, err, "no token for alice: no key")
	require.ErrorIs(t, err, slurm.ErrDenied)
}

// Accounts with exit code 0 for a failed job do not know its exit code.
func TestAFailedJobEndsWithNoZero(t *testing.T) {
	for _, c := range []struct {
		state string
		code  int
		want  string
	}{{"FAILED", 0, ""}, {"FAILED", 3, "3:0"}, {"COMPLETED", 0, "0:0"}, {"TIMEOUT", 0, "0:0"}} {
		r, _ := answers(t, map[string]string{"GET job/7": fmt.Sprintf(
			`{"jobs":[{"job_id":7,"state":{"current":[%q]},"exit_code":{"status":["x"],"return_code":{"set":true,"number":%d}}}]}`, c.state, c.code)})
		past, err := r.Past(t.Context(), slurm.Filter{IDs: []slurm.JobID{"7"}})
		require.NoError(t, err)
		require.Len(t, past, 1)
		if c.want == "" {
			require.Nil(t, past[0].ExitCode)
			continue
		}
		require.Equal(t, c.want, *past[0].ExitCode, c.state)
	}
}

// Visible faults of a token are reported.
func TestWhatIsWrongWithAToken(t *testing.T) {
	of := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for token, says := range map[string]string{
		"":                            "no JSON web token",
		"a.b":                         "no JSON web token",
		"a.!.c":                       "no JSON web token",
		of("[]"):                      "no JSON web token",
		of(`{"exp":1700000000}`):      "the token ended at 2023-11-14T22:13:20Z",
		of(`{"sun":"bob"}`):           "the token is bob's, not alice's",
		of(`{"sun":"alice"}`):         "",
		of(`{"exp":4100000000}`):      "",
		of(`{"exp":0,"sun":"alice"}`): "",
	} {
		r := &REST{user: "alice", Token: func(context.Context) (string, error) { return token, nil }}
		got := r.tokenFault(t.Context())
		if says == "" {
			require.Empty(t, got, token)
			e := r.badToken(t.Context(), "list", http.MethodGet, []string{"openapi_get_db_conn() failed"})
			require.Equal(t, slurm.Unreachable, e.Kind)
			require.Contains(t, e.Fix.EN, "scontrol token")
			continue
		}
		require.Contains(t, got, says, token)
		require.Equal(t, slurm.Denied, r.badToken(t.Context(), "list", http.MethodGet, []string{"openapi_get_db_conn() failed"}).Kind)
	}
	r := &REST{}
	require.Nil(t, r.badToken(t.Context(), "list", http.MethodPost, []string{"Unspecified error"}))
	require.NotNil(t, r.badToken(t.Context(), "list", http.MethodGet, []string{"Unspecified error"}))
	require.Nil(t, r.badToken(t.Context(), "list", http.MethodGet, []string{"Invalid job id", "Unspecified error"}))
}

// What slurmrestd has no request for is named, with what would work.
func TestWhatSlurmrestdCannot(t *testing.T) {
	r, _ := answers(t, nil)
	_, test := r.Test(t.Context(), slurm.Submission{})
	_, exec := r.Exec(t.Context(), slurm.Exec{})
	for want, err := range map[string]error{
		"cannot estimate when a job would start": test, "cannot run a command on the nodes of a job": exec, "cannot requeue a job": r.Requeue(t.Context(), "7"),
	} {
		require.ErrorIs(t, err, slurm.ErrUnsupported)
		require.ErrorContains(t, err, want)
		require.NotEqual(t, lang.Said(err).EN, lang.Said(err).ZH)
		require.Contains(t, slurm.FixOf(err).EN, "kind cli or ssh")
	}
}
