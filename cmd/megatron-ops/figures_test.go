package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// watchedSite is a cluster that a watcher can poll.
type watchedSite struct{ *opstest.Site }

func (watchedSite) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, nil }

// scraped returns the lines that a collector gives to a caller who may see the jobs, or
// to a stranger.
func scraped(t *testing.T, jobs prometheus.Collector, known bool) []string {
	t.Helper()
	own, all := prometheus.NewRegistry(), prometheus.NewRegistry()
	own.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "own", Help: "x"}, func() float64 { return 1 }))
	all.MustRegister(jobs)
	w := httptest.NewRecorder()
	metricsHandler(own, all, func(*http.Request) bool { return known }).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// A caller with a token sees each followed job, and its progress if it runs; a stranger
// sees none.
func TestFiguresOfJobs(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "gpt-7.out")
	var text strings.Builder
	for i := range 3 {
		fmt.Fprintf(&text, " [2026-06-11 10:00:%02d] iteration %8d/     100 | consumed samples: 32 | elapsed time per iteration (ms): 2000.0 | "+
			"throughput per GPU (TFLOP/s/GPU): 400.0 | learning rate: 1.0E-04 | global batch size: 32 | lm loss: 2.500000E+00 | grad norm: 0.3 |\n", 2*i, i+1)
	}
	require.NoError(t, os.WriteFile(log, []byte(text.String()), 0o600))
	site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	call := opstest.NewCall(t, site)
	call.Self = "alice"
	call.Now = func() time.Time { return time.Date(2026, 6, 11, 10, 1, 4, 0, time.Local) }
	w := watch.New(watchedSite{site}, watch.Options{})
	for _, j := range []slurm.Job{
		{ID: "7", Name: "gpt", User: "alice", Partition: "dev", State: slurm.Running, GPUs: 16, ElapsedS: 60, Stdout: log, WorkDir: dir},
		{ID: "8", Name: "quiet", User: "alice", State: slurm.Running, Stdout: filepath.Join(dir, "none.out"), WorkDir: dir},
		{ID: "9", Name: "waits", User: "bob", State: slurm.Pending, GPUs: 8, Stdout: log, WorkDir: dir},
	} {
		site.KnownJobs[j.ID] = j
		w.Watch(j)
	}
	m := &jobMetrics{service: call.Service, watchers: map[string]*watch.Watcher{"test": w}}
	for range 2 { // the second time from what was read a moment ago
		require.ElementsMatch(t, []string{
			"own 1",
			`megatron_ops_jobs_followed{cluster="test",state="RUNNING"} 2`,
			`megatron_ops_jobs_followed{cluster="test",state="PENDING"} 1`,
			`megatron_ops_jobs_without_metrics{cluster="test"} 0`,
			`megatron_ops_job_info{cluster="test",job="7",name="gpt",partition="dev",state="RUNNING",user="alice"} 1`,
			`megatron_ops_job_info{cluster="test",job="8",name="quiet",partition="",state="RUNNING",user="alice"} 1`,
			`megatron_ops_job_info{cluster="test",job="9",name="waits",partition="",state="PENDING",user="bob"} 1`,
			`megatron_ops_job_gpus{cluster="test",job="7"} 16`,
			`megatron_ops_job_gpus{cluster="test",job="8"} 0`,
			`megatron_ops_job_gpus{cluster="test",job="9"} 8`,
			`megatron_ops_job_elapsed_seconds{cluster="test",job="7"} 60`,
			`megatron_ops_job_elapsed_seconds{cluster="test",job="8"} 0`,
			`megatron_ops_job_elapsed_seconds{cluster="test",job="9"} 0`,
			`megatron_ops_job_iteration{cluster="test",job="7"} 3`,
			`megatron_ops_job_nan_iterations{cluster="test",job="7"} 0`,
			`megatron_ops_job_last_iteration_age_seconds{cluster="test",job="7"} 60`,
			`megatron_ops_job_train_iterations{cluster="test",job="7"} 100`,
			`megatron_ops_job_loss{cluster="test",job="7"} 2.5`,
			`megatron_ops_job_tflops_per_gpu{cluster="test",job="7"} 400`,
			`megatron_ops_job_step_seconds{cluster="test",job="7"} 2`,
		}, scraped(t, m, true))
		require.NoError(t, os.RemoveAll(log))
	}
	require.Equal(t, []string{"own 1"}, scraped(t, m, false))
	require.Len(t, m.progress, 2)
	w.Clear()
	scraped(t, m, true)
	require.Empty(t, m.progress, "a job that is followed no more is forgotten")
}

// If there are very many jobs, the running ones have metrics of their own, and the
// others are counted.
func TestFiguresOfManyJobs(t *testing.T) {
	site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	w := watch.New(watchedSite{site}, watch.Options{})
	for i := range mostJobMetrics + 5 {
		w.Watch(slurm.Job{ID: slurm.JobID(fmt.Sprint(100 + i)), State: slurm.Pending})
	}
	w.Watch(slurm.Job{ID: "999", State: slurm.Running})
	m := &jobMetrics{service: opstest.NewCall(t, site).Service, watchers: map[string]*watch.Watcher{"test": w}}
	lines := scraped(t, m, true)
	require.Contains(t, lines, `megatron_ops_jobs_without_metrics{cluster="test"} 6`)
	require.Contains(t, lines, `megatron_ops_jobs_followed{cluster="test",state="PENDING"} 205`)
	require.Contains(t, lines, `megatron_ops_job_gpus{cluster="test",job="999"} 0`)
	shown := 0
	for _, line := range lines {
		if strings.HasPrefix(line, "megatron_ops_job_gpus") {
			shown++
		}
	}
	require.Equal(t, mostJobMetrics, shown)
}

// The backlog of messages to Slack is counted with its age. A store that does not
// answer is reported only in the log.
func TestFiguresOfTheStore(t *testing.T) {
	st, err := opstest.NewCall(t, &opstest.Site{}).Store()
	require.NoError(t, err)
	var said strings.Builder
	m := outboxMetrics(st, slog.New(slog.NewTextHandler(&said, nil)))
	require.Equal(t, []string{"megatron_ops_outbox_messages 0", "megatron_ops_outbox_oldest_age_seconds 0", "own 1"}, scraped(t, m, true))
	require.Empty(t, said.String())
	require.NoError(t, errors.Join(st.Close()))
	own := prometheus.NewRegistry()
	own.MustRegister(m)
	found, err := own.Gather()
	require.NoError(t, err)
	require.Empty(t, found)
	require.Contains(t, said.String(), "the store does not tell what is owed")
}
