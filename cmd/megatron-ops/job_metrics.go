package main

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

const (
	// mostJobMetrics bounds the jobs with metrics of their own: each has a dozen
	// series, and series that nobody needs fill a Prometheus.
	mostJobMetrics = 200
	// progressAge is how old a job's progress may be. Reading it from logs is
	// expensive.
	progressAge = 30 * time.Second
)

// jobMetrics exports the followed jobs: their states, and the progress of the running
// ones.
type jobMetrics struct {
	service  *ops.Service
	watchers map[string]*watch.Watcher
	mu       sync.Mutex
	progress map[string]cachedProgress
}

type cachedProgress struct {
	metrics.Summary
	last *time.Time // when the last iteration was logged
	at   time.Time
}

func jobGauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("megatron_ops_job_"+name, help, append([]string{"cluster", "job"}, labels...), nil)
}

var (
	jobInfo       = jobGauge("info", "A job that is followed; the value is 1.", "name", "user", "partition", "state")
	jobGPUs       = jobGauge("gpus", "GPUs that the job holds or asks for.")
	jobElapsed    = jobGauge("elapsed_seconds", "How long the job has run.")
	jobIteration  = jobGauge("iteration", "The last iteration that was logged.")
	jobIterations = jobGauge("train_iterations", "How many iterations the training has in all.")
	jobStep       = jobGauge("step_seconds", "The usual time of one iteration.")
	jobLoss       = jobGauge("loss", "The last loss that was logged.")
	jobNaN        = jobGauge("nan_iterations", "Iterations whose loss was no number, of those that are still read.")
	jobTFLOPs     = jobGauge("tflops_per_gpu", "The usual throughput per GPU.")
	jobQuiet      = jobGauge("last_iteration_age_seconds", "How long ago the last iteration was logged.")
	jobsFollowed  = prometheus.NewDesc("megatron_ops_jobs_followed", "Jobs that are followed, by state.", []string{"cluster", "state"}, nil)
	jobsLeftOut   = prometheus.NewDesc("megatron_ops_jobs_without_metrics", "Jobs that are followed and have no figures of their own, as they are too many.", []string{"cluster"}, nil)
)

// Describe announces nothing, because jobs come and go.
func (m *jobMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect exports the metrics of the followed jobs, running jobs first.
func (m *jobMetrics) Collect(out chan<- prometheus.Metric) {
	known := map[string]bool{}
	for cluster, w := range m.watchers {
		states := map[slurm.State]int{}
		var running, others []slurm.Job
		for _, j := range w.Watched() {
			states[j.State]++
			if j.State == slurm.Running {
				running = append(running, j)
			} else {
				others = append(others, j)
			}
		}
		for state, n := range states {
			out <- prometheus.MustNewConstMetric(jobsFollowed, prometheus.GaugeValue, float64(n), cluster, string(state))
		}
		jobs := slices.Concat(running, others)
		shown := jobs[:min(len(jobs), mostJobMetrics)]
		out <- prometheus.MustNewConstMetric(jobsLeftOut, prometheus.GaugeValue, float64(len(jobs)-len(shown)), cluster)
		for _, j := range shown {
			m.job(out, cluster, j)
			known[cluster+"/"+string(j.ID)] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.progress {
		if !known[key] {
			delete(m.progress, key)
		}
	}
}

func (m *jobMetrics) job(out chan<- prometheus.Metric, cluster string, j slurm.Job) {
	id := string(j.ID)
	tell := func(desc *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, cluster, id)
	}
	out <- prometheus.MustNewConstMetric(jobInfo, prometheus.GaugeValue, 1, cluster, id, j.Name, j.User, j.Partition, string(j.State))
	tell(jobGPUs, float64(j.GPUs))
	tell(jobElapsed, float64(j.ElapsedS))
	if j.State != slurm.Running {
		return
	}
	p := m.progressOf(cluster, j)
	if p.Last == 0 {
		return
	}
	tell(jobIteration, float64(p.Last))
	tell(jobNaN, float64(p.NaN))
	if p.last != nil {
		tell(jobQuiet, m.service.Now().Sub(*p.last).Seconds())
	}
	if p.Of > 0 {
		tell(jobIterations, float64(p.Of))
	}
	for desc, v := range map[*prometheus.Desc]*float64{jobLoss: p.Loss, jobTFLOPs: p.TFLOPs} {
		if v != nil {
			tell(desc, *v)
		}
	}
	if p.IterationMS != nil {
		tell(jobStep, *p.IterationMS/1000)
	}
}

// progressOf returns how far a job is. It reads the ends of the job's logs at most once
// per progressAge. A zero summary means that nothing is known.
func (m *jobMetrics) progressOf(cluster string, j slurm.Job) cachedProgress {
	key := cluster + "/" + string(j.ID)
	m.mu.Lock()
	seen, ok := m.progress[key]
	m.mu.Unlock()
	if ok && time.Since(seen.at) < progressAge {
		return seen
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	j.Cluster = cluster
	seen = cachedProgress{at: time.Now()}
	call := &ops.Call{Service: m.service, Who: ops.Caller{Surface: ops.Watcher, ID: "metrics"}}
	run, err := joblogs.RecentRun(ctx, call, j)
	if n := len(run.Iterations); err == nil && n > 0 {
		seen.Summary, seen.last = run.Summary(), run.Iterations[n-1].Time
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.progress == nil {
		m.progress = map[string]cachedProgress{}
	}
	m.progress[key] = seen
	return seen
}

// metricsHandler serves the server's own metrics to everybody, and the metrics of jobs
// only to callers with a token: some come from logs that only the job's owner may read,
// and every user of a login node can connect to loopback.
func metricsHandler(own, jobs prometheus.Gatherer, known func(*http.Request) bool) http.Handler {
	public := promhttp.HandlerFor(own, promhttp.HandlerOpts{})
	all := promhttp.HandlerFor(prometheus.Gatherers{own, jobs}, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if known(r) {
			all.ServeHTTP(w, r)
			return
		}
		public.ServeHTTP(w, r)
	})
}
