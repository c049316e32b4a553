package slurm

import (
	"strconv"
	"strings"
)

// A ControllerLoad holds the figures of sdiag that tell how busy the controller is.
type ControllerLoad struct {
	Threads    int // serving requests now
	AgentQueue int // messages waiting to be sent to nodes
	DBDQueue   int // records waiting to be sent to slurmdbd
	Pending    int // pending jobs
	Running    int // running jobs
	CycleMicro int // length of the last scheduling cycle, in microseconds
}

// maxThreads is the number of requests that slurmctld serves at a time
// (MAX_SERVER_THREADS).
const maxThreads = 256

// Busy reports whether the controller has hardly a free thread left or its messages
// pile up.
func (l ControllerLoad) Busy() bool { return l.Threads >= maxThreads*4/5 || l.AgentQueue >= 10000 }

// LoadFromJSON reads the statistics object of slurmrestd's diag.
func LoadFromJSON(m map[string]any) ControllerLoad {
	o := jsonObject(m)
	return ControllerLoad{
		Threads: int(o.number("server_thread_count")), AgentQueue: int(o.number("agent_queue_size")), DBDQueue: int(o.number("dbd_agent_queue_size")),
		Pending: int(o.number("jobs_pending")), Running: int(o.number("jobs_running")), CycleMicro: int(o.number("schedule_cycle_last")),
	}
}

// ParseLoad reads the output of sdiag. Where a name occurs twice, the first line is the
// main scheduler's and the second the backfill scheduler's; ParseLoad takes the first.
func ParseLoad(out string) (l ControllerLoad) {
	fields := map[string]*int{
		"Server thread count": &l.Threads, "Agent queue size": &l.AgentQueue, "DBD Agent queue size": &l.DBDQueue,
		"Jobs pending": &l.Pending, "Jobs running": &l.Running, "Last cycle": &l.CycleMicro,
	}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if into := fields[name]; into != nil {
			if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
				*into = n
				delete(fields, name)
			}
		}
	}
	return l
}
