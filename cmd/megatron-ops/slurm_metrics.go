package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// loadAge is how old a controller's metrics may be: each query costs it a request.
const loadAge = time.Minute

// slurmMetrics exports the requests to each cluster, the delay while its controller is
// too busy, and the controller's own metrics.
type slurmMetrics struct {
	clusters map[string]ops.Cluster
	mu       sync.Mutex
	loads    map[string]cachedLoad
}

type cachedLoad struct {
	slurm.ControllerLoad
	at time.Time
	ok bool
}

func slurmGauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("megatron_ops_slurm_"+name, help, append([]string{"cluster"}, labels...), nil)
}

var (
	slurmRequests = slurmGauge("requests_total", "Requests to a cluster, by command or resource and outcome.", "request", "outcome")
	slurmSeconds  = slurmGauge("request_seconds_total", "Time that requests to a cluster took.", "request")
	slurmDelay    = slurmGauge("backoff_seconds", "How long questions are kept back because the controller is too busy; 0: they are not.")
	slurmThreads  = slurmGauge("controller_threads", "Threads of slurmctld that serve requests (sdiag).")
	slurmAgent    = slurmGauge("controller_agent_queue", "Messages that slurmctld has yet to send (sdiag).")
	slurmDBD      = slurmGauge("controller_dbd_queue", "Records that slurmctld has yet to give to slurmdbd (sdiag).")
	slurmPending  = slurmGauge("jobs_pending", "Jobs that wait (sdiag).")
	slurmRunning  = slurmGauge("jobs_running", "Jobs that run (sdiag).")
)

// Describe announces nothing, because the configuration decides which clusters there
// are.
func (m *slurmMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect exports the metrics of every cluster that has a meter.
func (m *slurmMetrics) Collect(out chan<- prometheus.Metric) {
	for name, cl := range m.clusters {
		c, ok := cl.(interface{ Meter() *cluster.Meter })
		if !ok {
			continue
		}
		meter := c.Meter()
		counts, spent := meter.Counts()
		for r, n := range counts {
			out <- prometheus.MustNewConstMetric(slurmRequests, prometheus.CounterValue, float64(n), name, r.Name, r.Outcome)
		}
		for r, d := range spent {
			out <- prometheus.MustNewConstMetric(slurmSeconds, prometheus.CounterValue, d.Seconds(), name, r)
		}
		out <- prometheus.MustNewConstMetric(slurmDelay, prometheus.GaugeValue, meter.Delay().Seconds(), name)
		if len(counts) == 0 {
			continue // an unused cluster is not queried either
		}
		if l, ok := m.load(name, cl, meter); ok {
			for desc, n := range map[*prometheus.Desc]int{
				slurmThreads: l.Threads, slurmAgent: l.AgentQueue, slurmDBD: l.DBDQueue, slurmPending: l.Pending, slurmRunning: l.Running,
			} {
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), name)
			}
		}
	}
}

// load queries a controller at most once per loadAge.
func (m *slurmMetrics) load(name string, cl ops.Cluster, meter *cluster.Meter) (slurm.ControllerLoad, bool) {
	c, ok := cl.(interface {
		Load(ctx context.Context) (slurm.ControllerLoad, error)
	})
	if !ok {
		return slurm.ControllerLoad{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if seen := m.loads[name]; time.Since(seen.at) < loadAge {
		return seen.ControllerLoad, seen.ok
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	l, err := c.Load(ctx)
	if m.loads == nil {
		m.loads = map[string]cachedLoad{}
	}
	m.loads[name] = cachedLoad{l, time.Now(), err == nil}
	if err == nil {
		meter.Busy(l)
	}
	return l, err == nil
}
