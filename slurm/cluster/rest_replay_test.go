package cluster_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// replayed returns a fake slurmrestd of a release, and the site behind it as the jobs'
// owner sees it.
func replayed(t *testing.T, release string, apis ...int) (*slurmtest.REST, site) {
	t.Helper()
	base := slurmtest.Dir(t)
	work := filepath.Join(base, "work")
	require.NoError(t, os.Mkdir(work, 0o755))
	r := slurmtest.ReplayREST(t, release, "alice", local.New("behind", filepath.Join(base, "state")), apis...)
	return r, site{
		backend: restAs(t, r, "alice", slurmtest.GoodToken), dir: work, lacks: []string{"test", "exec", "requeue", "components"},
		environ: func() []string { return []string{"PATH=/usr/bin:/bin"} },
	}
}

func restAs(t *testing.T, r *slurmtest.REST, user, token string) *cluster.REST {
	t.Helper()
	c, err := cluster.NewREST("rest", r.URL, user, func(context.Context) (string, error) { return token, nil })
	require.NoError(t, err)
	return c
}

// The client uses the newest API version that both sides support, and passes the tests
// of every back end.
func TestRESTConformsInEveryRelease(t *testing.T) {
	t.Parallel()
	newest := len(slurmtest.Releases) - 1
	for k, release := range slurmtest.Releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			_, s := replayed(t, release)
			s.backend.(*cluster.REST).DefaultPartition = map[string]string{"24.11": "local", "25.11": "local"}[release] //nolint:forcetypeassert // made so
			if release == "23.11" {
				s.lacks = append(s.lacks, "elements")
			}
			if k == newest || !testing.Short() {
				conform(t, s)
				return
			}
			// Requests to older releases are the same, so each of them gets one in four
			// of these tests; the tests below check the differences of each version.
			conform(t, s, func(i int) bool { return (i+k)%newest == 0 })
		})
	}
}

// The API reports the controller's figures as sdiag does.
func TestRESTTellsHowBusyTheControllerIs(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]slurm.ControllerLoad{
		"22.05": {Threads: 3, Pending: 20, Running: 10, CycleMicro: 75},
		"23.11": {Threads: 2, AgentQueue: 18, Pending: 20, Running: 11, CycleMicro: 84},
		"24.11": {Threads: 1, AgentQueue: 22, Pending: 31, Running: 11, CycleMicro: 106},
		"25.11": {Threads: 1, Pending: 20, Running: 10, CycleMicro: 68},
		"26.05": {Threads: 1, AgentQueue: 6, CycleMicro: 93},
	} {
		_, s := replayed(t, release)
		load, err := s.backend.(*cluster.REST).Load(t.Context()) //nolint:forcetypeassert // made so
		require.NoError(t, err)
		require.Equal(t, want, load, release)
	}
}

// everyAPI runs a test with each API version of each release. With -short it runs each
// version only in the newest release that serves it.
func everyAPI(t *testing.T, test func(t *testing.T, r *slurmtest.REST, s site, api int)) {
	t.Helper()
	t.Parallel()
	spoken := map[int]bool{}
	for _, release := range slices.Backward(slurmtest.Releases) {
		for _, api := range slurmtest.APIs(t, release) {
			if testing.Short() && spoken[api] {
				continue
			}
			spoken[api] = true
			t.Run(fmt.Sprintf("%s v0.0.%d", release, api), func(t *testing.T) {
				t.Parallel()
				r, s := replayed(t, release, api)
				test(t, r, s, api)
			})
		}
	}
}

// A refusal is never taken for a success, whatever the HTTP status.
func TestRESTTellsEveryRefusedCancel(t *testing.T) {
	everyAPI(t, func(t *testing.T, r *slurmtest.REST, s site, _ int) {
		id := s.submit(t, "--time=5 --hold --output=/dev/null", "true")
		require.ErrorIs(t, restAs(t, r, "bob", slurmtest.GoodToken).Cancel(t.Context(), id), slurm.ErrDenied, "another's")
		j, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, slurm.Pending, j.State)
		require.ErrorIs(t, s.Cancel(t.Context(), "999999"), slurm.ErrNotFound, "unknown")
		require.NoError(t, s.Cancel(t.Context(), id))
		s.state(t, id, slurm.Cancelled)
		require.NoError(t, s.Cancel(t.Context(), id), "ended already")
	})
}

// Cancelling one element never ends another. Where slurmrestd would end the whole
// array, the element is cancelled by its own job number, or not at all.
func TestRESTEndsOneElementOnly(t *testing.T) {
	everyAPI(t, func(t *testing.T, r *slurmtest.REST, s site, api int) {
		id := s.submit(t, "--time=5 --array=1-3 --output=/dev/null", "sleep 100")
		for _, e := range []slurm.JobID{"_1", "_2", "_3"} {
			s.state(t, id+e, slurm.Running)
		}
		require.NoError(t, s.Cancel(t.Context(), id+"_2"))
		s.state(t, id+"_2", slurm.Cancelled)
		for _, e := range []slurm.JobID{"_1", "_3"} {
			s.state(t, id+e, slurm.Running)
		}
		if api == 39 || api == 40 {
			// The first element has the array's own number here.
			err := s.Cancel(t.Context(), id+"_1")
			require.ErrorIs(t, err, slurm.ErrRejected)
			require.Contains(t, slurm.FixOf(err).EN, "scancel "+string(id)+"_1")
			require.Contains(t, slurm.FixOf(err).ZH, "scancel "+string(id)+"_1")
			require.NoError(t, s.Cancel(t.Context(), id+"_3"))
			s.state(t, id+"_3", slurm.Cancelled)
		}
		require.NoError(t, s.Cancel(t.Context(), id+"_1"), "the last one")
		s.state(t, id+"_1", slurm.Cancelled)
		require.NoError(t, s.Cancel(t.Context(), id+"_1"), "ended already")

		id = s.submit(t, "--time=5 --array=1-3%1 --output=/dev/null", "sleep 100")
		s.state(t, id, slurm.Running)
		var runs, waits slurm.JobID
		jobs, err := s.Jobs(t.Context(), slurm.Filter{IDs: []slurm.JobID{id}})
		require.NoError(t, err)
		for _, j := range jobs {
			if j.State == slurm.Running {
				runs = j.ID
			} else {
				waits = j.ID
			}
		}
		err = s.Cancel(t.Context(), waits)
		if api == 39 || api == 40 {
			require.ErrorContains(t, err, "no number of its own yet")
		} else {
			require.NoError(t, err)
		}
		s.state(t, runs, slurm.Running)
		for _, asked := range r.Asked() {
			require.False(t, (api == 39 || api == 40) && strings.HasPrefix(asked, "DELETE") && strings.Contains(asked, "_"), asked)
		}
	})
}

func TestRESTTellsABadToken(t *testing.T) {
	everyAPI(t, func(t *testing.T, r *slurmtest.REST, s site, _ int) {
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1700000000,"sun":"alice"}`))
		for _, token := range []string{"", "nonsense", "e30." + claims + ".c2ln"} {
			c := restAs(t, r, "alice", token)
			_, err := c.Jobs(t.Context(), slurm.Filter{})
			require.ErrorIs(t, err, slurm.ErrDenied, token)
			require.Contains(t, slurm.FixOf(err).EN, "token")
			require.Contains(t, slurm.FixOf(err).ZH, "令牌")
			_, err = c.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n", Dir: s.dir})
			require.Error(t, err)
		}
	})
}

// Every option arrives: mail types under slurmrestd's own names, times, and the job's
// name in the output file.
func TestRESTSaysEveryOptionAsTheVersionTakesIt(t *testing.T) {
	everyAPI(t, func(t *testing.T, _ *slurmtest.REST, s site, api int) {
		s.submit(t, "--time=5 --hold --begin=now+1hour --mail-type=ALL,TIME_LIMIT_90,BEGIN --mail-user=me --output=/dev/null", "true")
		_, err := s.Submit(t.Context(), slurm.Submission{Script: script("--mail-type=NOPE", "true"), Dir: s.dir})
		if api > 38 {
			require.ErrorContains(t, err, "Invalid --mail-type specification")
		}
		_, err = s.Submit(t.Context(), slurm.Submission{Script: script("--get-user-env --hold", "true"), Dir: s.dir})
		if api > 38 {
			require.ErrorContains(t, err, "ignores it from v0.0.39 on")
		}
		id := s.submit(t, "--time=5 --job-name=named --output=logs/%x-%j.out", "echo $SLURM_JOB_NAME")
		s.state(t, id, slurm.Completed)
		require.Equal(t, "named\n", s.log(t, "logs/named-"+string(id)+".out"))
		token := fmt.Sprintf("tok%d", time.Now().UnixNano())
		id = s.submit(t, "--time=5 --output=/dev/null", "true", func(sub *slurm.Submission) { sub.Token = token })
		s.state(t, id, slurm.Completed)
		got, found, err := s.Find(t.Context(), token, time.Now())
		require.NoError(t, err)
		require.True(t, found, "in the accounts too")
		require.Equal(t, id, got)
		past, err := s.backend.(*cluster.REST).Past(t.Context(), slurm.Filter{Since: time.Now().Add(-time.Hour)}) //nolint:forcetypeassert // made so
		require.NoError(t, err)
		require.NotEmpty(t, past)
	})
}

// Only two API versions report the default partition; otherwise the configuration does.
func TestRESTFindsTheDefaultPartition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		release    string
		apis       []int
		configured string
		want       bool
	}{
		{"22.05", nil, "", true},
		{"23.11", nil, "", true}, // v0.0.38 is served beside
		{"23.11", []int{40}, "", false},
		{"24.11", nil, "", false},
		{"25.11", nil, "local", true},
		{"26.05", nil, "", true},
	} {
		_, s := replayed(t, c.release, c.apis...)
		s.backend.(*cluster.REST).DefaultPartition = c.configured //nolint:forcetypeassert // made so
		parts, err := s.Partitions(t.Context())
		require.NoError(t, err)
		require.Len(t, parts, 1)
		require.Equal(t, c.want, parts[0].Default, "%v", c)
	}
}

// The golden file shows what the program reads from each recorded document, in each API
// version of each release.
func TestRESTReadsEveryRelease(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, release := range slurmtest.Releases {
		for _, api := range slurmtest.APIs(t, release) {
			fmt.Fprintf(&b, "# %s v0.0.%d\n", release, api)
			read := func(name, list string, each func(map[string]any)) {
				name = fmt.Sprintf("rest/v0.0.%d/%s.json", api, name)
				if !slurmtest.HasRecorded(release, name) {
					return
				}
				var doc map[string]any
				require.NoError(t, json.Unmarshal([]byte(slurmtest.Recorded(t, release, name)), &doc))
				for _, e := range doc[list].([]any) { //nolint:forcetypeassert // recorded so
					each(e.(map[string]any)) //nolint:forcetypeassert // recorded so
				}
			}
			for _, name := range []string{"job-running", "job-failed", "jobs-array", "jobs-het"} {
				var jobs []slurm.Job
				read(name, "jobs", func(m map[string]any) { jobs = append(jobs, slurm.JobsFromJSON(m)...) })
				for _, j := range jobs {
					fmt.Fprintln(&b, jobLine(j))
				}
				if whole, ok := slurm.Fold(firstOf(jobs).ID.Array(), jobs); ok && len(jobs) > 1 {
					fmt.Fprintln(&b, "whole:", jobLine(whole))
				}
			}
			read("accounts-failed", "jobs", func(m map[string]any) { fmt.Fprintln(&b, "accounts:", jobLine(slurm.AccountFromJSON(m))) })
			var nodes []slurm.Node
			read("nodes", "nodes", func(m map[string]any) { nodes = append(nodes, slurm.NodeFromJSON(m)) })
			for _, n := range nodes {
				fmt.Fprintf(&b, "%s %s usable=%v free=%v gpus=%d/%d %v\n", n.Name, n.State, n.Usable(), n.Free(), n.GPUsUsed, n.GPUs, n.Features)
			}
			read("partition", "partitions", func(m map[string]any) {
				p := slurm.PartitionFromJSON(m, nodes)
				fmt.Fprintf(&b, "%s default=%v %s up=%v most=%d A/I/O/T=%d/%d/%d/%d\n", p.Name, p.Default, p.State, p.Up, p.MaxNodes, p.Allocated, p.Idle, p.Other, p.Total)
			})
		}
	}
	require.NotContains(t, b.String(), "4294967294")
	golden(t, "read-rest.txt", b.String())
}

func firstOf(jobs []slurm.Job) slurm.Job {
	if len(jobs) == 0 {
		return slurm.Job{}
	}
	return jobs[0]
}
