package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// many returns the number of waiting jobs in a large queue. With -short it is a fifth,
// which takes as many queries; the full run checks memory and time.
func many() int {
	if testing.Short() {
		return 6000
	}
	return 30000
}

// heapMiB returns the size of the heap in MiB.
func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// One query lists thirty thousand jobs with about 100 MiB; the log has its time.
func TestALargeQueueByCommands(t *testing.T) {
	var b strings.Builder
	for i := range many() {
		state, node := "PENDING", ""
		if i%10 == 0 {
			state, node = "RUNNING", "gpu[1-4]"
		}
		for _, f := range []string{
			fmt.Sprint(i + 1), fmt.Sprint(i + 1), state, "Priority", "alice", "research", "prod", "normal", "4", node, "1:00:00", "2-00:00:00",
			"1795163315", "1795163316", "1795336116", "100", "gres/gpu:8", "/lustre/home/alice/work/a", fmt.Sprintf("pretrain-%d", i),
		} {
			b.WriteString("@@" + f)
		}
		fmt.Fprintf(&b, "@@a comment that some tool has left mops:%012x@@\n", i)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "queue"), []byte(b.String()), 0o644))
	c := withScripts(t, map[string]string{
		"squeue": fmt.Sprintf(`echo asked >>%[1]s/asked; for a; do case $a in --format=*) f=${a#--format=}; sep=${f%%%%%%*};; esac; done; sed "s/@@/$sep/g" %[1]s/queue`, dir),
	})
	before, begin := heapMiB(), time.Now()
	jobs, err := c.Jobs(t.Context(), slurm.Filter{})
	took := time.Since(begin)
	require.NoError(t, err)
	require.Len(t, jobs, many())
	used := heapMiB() - before
	t.Logf("%d jobs in %s, %.0f MiB", many(), took, used)
	require.Less(t, used, 150.0)
	questions := func() int {
		asked, err := os.ReadFile(filepath.Join(dir, "asked"))
		require.NoError(t, err)
		return strings.Count(string(asked), "asked")
	}
	require.Equal(t, 1, questions())

	// A watcher follows all of them with one query a look, whoever else reads.
	shared := watch.NewShared(c, watch.Options{})
	w := watch.New(shared, watch.Options{Floor: time.Nanosecond, Window: time.Nanosecond})
	news := w.Subscribe()
	defer news.Close()
	w.Watch(slurm.Job{ID: jobs[0].ID}) // what the first look tells of
	for _, j := range jobs[1:] {
		w.Watch(j)
	}
	before, begin = heapMiB(), time.Now()
	go w.Run(t.Context())
	_, err = news.Next(t.Context())
	require.NoError(t, err)
	took = time.Since(begin)
	asked := questions()
	for range 100 {
		some, err := shared.Jobs(t.Context(), slurm.Filter{States: []slurm.State{slurm.Running}})
		require.NoError(t, err)
		require.Len(t, some, many()/10)
	}
	require.LessOrEqual(t, questions()-asked, 1)
	require.LessOrEqual(t, asked, 2, "one for the list, one for the look")
	used = heapMiB() - before
	t.Logf("a look at %d followed jobs: %s, %.0f MiB more", many(), took, used)
	require.Less(t, used, 150.0)
	runtime.KeepAlive(jobs)
	runtime.KeepAlive(w)
}

// slurmrestd's list of them has hundreds of megabytes, of which only one job at a time
// is in memory. A few jobs are queried one by one.
func TestALargeQueueOverREST(t *testing.T) {
	var doc struct {
		Jobs []map[string]any `json:"jobs"`
	}
	require.NoError(t, json.Unmarshal([]byte(slurmtest.Recorded(t, "26.05", "rest/v0.0.45/job-running.json")), &doc))
	doc.Jobs[0]["job_id"] = 4711000000
	one, err := json.Marshal(doc.Jobs[0])
	require.NoError(t, err)
	number := many()
	if testing.Short() {
		number /= 2
	}
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/openapi/v3" {
			fmt.Fprint(w, `{"paths":{"/slurm/v0.0.45/jobs/":{}}}`)
			return
		}
		asked.Add(1)
		n := number
		if strings.Contains(r.URL.Path, "/job/") {
			n = 1
		}
		fmt.Fprint(w, `{"last_update":{"set":true,"number":1},"jobs":[`)
		for i := range n {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprint(w, strings.Replace(string(one), "4711000000", fmt.Sprint(i+1), 1))
		}
		fmt.Fprint(w, `],"errors":[],"warnings":[]}`)
	}))
	t.Cleanup(server.Close)
	c, err := cluster.NewREST("x", server.URL, "alice", func(context.Context) (string, error) { return "t", nil })
	require.NoError(t, err)
	before, begin := heapMiB(), time.Now()
	jobs, err := c.Jobs(t.Context(), slurm.Filter{})
	took := time.Since(begin)
	require.NoError(t, err)
	require.Len(t, jobs, number)
	used := heapMiB() - before
	t.Logf("%d jobs of %d bytes in %s, %.0f MiB", number, len(one), took, used)
	require.Less(t, used, 150.0)
	require.EqualValues(t, 1, asked.Load())
	runtime.KeepAlive(jobs)

	jobs, err = c.Jobs(t.Context(), slurm.Filter{IDs: []slurm.JobID{"1"}, All: true})
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	require.EqualValues(t, 2, asked.Load(), "not the whole list")
}

// An answer that breaks off is an error, not a shorter list.
func TestHalfAListIsAnError(t *testing.T) {
	for _, body := range []string{
		`{"jobs":[{"job_id":1},{"job_id":2}`, `{"jobs":[{"job_id":1}],"errors":[`, `{"jobs":[{"job_id":1}]`, `{"jobs":`, `{"jobs":{}}`, `[]`, `nonsense`, ``,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/openapi/v3" {
				fmt.Fprint(w, `{"paths":{"/slurm/v0.0.45/jobs/":{}}}`)
				return
			}
			fmt.Fprint(w, body)
		}))
		c, err := cluster.NewREST("x", server.URL, "alice", func(context.Context) (string, error) { return "t", nil })
		require.NoError(t, err)
		_, err = c.Jobs(t.Context(), slurm.Filter{})
		require.Error(t, err, body)
		require.NotErrorIs(t, err, slurm.ErrNotFound, body)
		server.Close()
	}
}
