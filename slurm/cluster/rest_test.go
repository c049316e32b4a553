package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

func TestRESTConforms(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	token, err := real.Token(t.Context(), "alice")
	require.NoError(t, err)
	as := func(user, token string) *cluster.REST {
		t.Helper()
		c, err := cluster.NewREST("rest", real.REST, user, func(context.Context) (string, error) { return token, nil })
		require.NoError(t, err)
		c.Bin, c.DefaultPartition = real.Bin(), "dev" // which most API versions do not report
		return c
	}
	dir, err := os.MkdirTemp(real.Work, "rest-")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir+"/logs", 0o777))
	for _, d := range []string{dir, dir + "/logs"} {
		require.NoError(t, os.Chmod(d, 0o777))
	}
	c := as("alice", token)
	s := site{
		backend: c, dir: dir, lacks: []string{"test", "exec", "requeue"},
		environ: func() []string { return append([]string{"PATH=" + real.Bin() + ":/usr/bin:/bin"}, real.Env()...) },
	}
	if slurmtest.Release(t.Context()) == "23.11" {
		s.lacks = append(s.lacks, "elements")
	}
	conform(t, s)

	t.Run("jobs are the user's, and another's cannot be cancelled", func(t *testing.T) {
		id := s.submit(t, "--time=5 --hold --output=/dev/null", "true")
		j, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "alice", j.User)
		bobs, err := real.Token(t.Context(), "bob")
		require.NoError(t, err)
		require.ErrorIs(t, as("bob", bobs).Cancel(t.Context(), id), slurm.ErrDenied)
	})
	t.Run("a missing or foreign token is refused with what to do", func(t *testing.T) {
		for _, bad := range []string{"", "nonsense"} {
			_, err := as("alice", bad).Jobs(t.Context(), slurm.Filter{})
			require.ErrorIs(t, err, slurm.ErrDenied)
			require.NotEmpty(t, slurm.FixOf(err).ZH)
		}
	})
	t.Run("what it cannot do it says", func(t *testing.T) {
		_, err := c.Exec(t.Context(), slurm.Exec{Job: "1", Argv: []string{"true"}})
		require.ErrorIs(t, err, slurm.ErrUnsupported)
		_, err = c.Test(t.Context(), slurm.Submission{})
		require.ErrorIs(t, err, slurm.ErrUnsupported)
		require.ErrorIs(t, c.Requeue(t.Context(), "1"), slurm.ErrUnsupported)
	})
}

// TestRESTNegotiates checks which of the listed API versions is chosen, and that
// requests have the structure of that version.
func TestRESTNegotiates(t *testing.T) {
	for served, want := range map[string]string{
		`"/slurm/v0.0.36/jobs","/slurm/v0.0.37/jobs","/slurm/v0.0.38/jobs"`: "/slurm/v0.0.38/jobs",
		`"\/slurm\/v0.0.40\/jobs","\/slurm\/v0.0.41\/jobs"`:                 "/slurm/v0.0.41/jobs",
		`"/slurm/v0.0.45/jobs","/slurm/v0.0.46/jobs"`:                       "/slurm/v0.0.45/jobs",
		`"/slurm/v0.0.99/jobs"`:                                             "",
	} {
		asked := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/openapi/v3" {
				fmt.Fprintf(w, `{"paths":[%s]}`, served)
				return
			}
			asked = r.URL.Path
			fmt.Fprint(w, `{"jobs":[{"job_id":7,"array_job_id":{"set":true,"infinite":false,"number":0},"job_state":["RUNNING"],"node_count":{"set":true,"number":2},"nodes":"gpu[1-2]","time_limit":{"set":false,"infinite":true,"number":0},"start_time":{"set":true,"infinite":false,"number":1700000000}}]}`)
		}))
		c, err := cluster.NewREST("x", server.URL, "alice", func(context.Context) (string, error) { return "t", nil })
		require.NoError(t, err)
		jobs, err := c.Jobs(t.Context(), slurm.Filter{})
		server.Close()
		require.Equal(t, want, asked)
		if want == "" {
			require.ErrorContains(t, err, "none of v0.0.38 to v0.0.45")
			continue
		}
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		j := jobs[0]
		require.EqualValues(t, "7", j.ID)
		require.Equal(t, slurm.Running, j.State)
		require.Equal(t, []string{"gpu1", "gpu2"}, j.Nodes)
		require.Nil(t, j.TimeLimitS)
		require.Equal(t, time.Unix(1700000000, 0), *j.StartedAt)
	}
}

// Where nobody says since when, the accounts are asked for the jobs of a week.
func TestRESTAsksForAWeek(t *testing.T) {
	var since int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/openapi/v3" {
			fmt.Fprint(w, `{"paths":{"/slurm/v0.0.42/jobs/":{}}}`)
			return
		}
		_, err := fmt.Sscanf(r.URL.Query().Get("start_time"), "uts%d", &since)
		assert.NoError(t, err)
		fmt.Fprint(w, `{"jobs":[]}`)
	}))
	t.Cleanup(server.Close)
	c, err := cluster.NewREST("x", server.URL, "alice", func(context.Context) (string, error) { return "t", nil })
	require.NoError(t, err)
	_, err = c.Past(t.Context(), slurm.Filter{})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().AddDate(0, 0, -7), time.Unix(since, 0), 2*time.Hour)
}

// A heterogeneous job is sent as a list of components. The first has the token and the
// options that hold for all.
func TestRESTDescribesEachComponent(t *testing.T) {
	var got struct {
		Job  map[string]any
		Jobs []map[string]any
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/openapi/v3" {
			fmt.Fprint(w, `{"paths":{"/slurm/v0.0.42/jobs/":{}}}`)
			return
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&got))
		fmt.Fprint(w, `{"job_id":7}`)
	}))
	t.Cleanup(server.Close)
	c, err := cluster.NewREST("x", server.URL, "alice", func(context.Context) (string, error) { return "t", nil })
	require.NoError(t, err)
	id, err := c.Submit(t.Context(), slurm.Submission{
		Script: "#!/bin/sh\n#SBATCH --job-name=het --nodes=1 --time=5\n#SBATCH hetjob\n#SBATCH --partition=prod --nodes=2\n", Dir: "/w", Token: "tok1", Args: []string{"--hold"},
	})
	require.NoError(t, err)
	require.Equal(t, slurm.JobID("7"), id)
	require.Nil(t, got.Job)
	require.Len(t, got.Jobs, 2)
	require.Contains(t, got.Jobs[0]["comment"], "tok1")
	require.Equal(t, true, got.Jobs[0]["hold"])
	require.NotContains(t, got.Jobs[1], "comment")
	require.NotContains(t, got.Jobs[1], "hold")
	require.Equal(t, "prod", got.Jobs[1]["partition"])
	for _, j := range got.Jobs {
		require.Equal(t, "het", j["name"])
		require.Equal(t, "/w", j["current_working_directory"])
		require.Contains(t, fmt.Sprint(j["environment"]), "SLURM_JOB_NAME=het")
	}
}
