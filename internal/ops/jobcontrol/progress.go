package jobcontrol

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// A Progress is how far a running job is, according to its log. A value that the log
// does not tell is null.
type Progress struct {
	Iteration  *int     `json:"iteration"`
	Of         *int     `json:"train_iters"`
	Loss       *float64 `json:"loss"`
	IterationS *float64 `json:"iteration_s"`
	// LineAgeS is the age of the log's newest line in seconds. RemainingS is the
	// remaining time of the training at its current pace, in seconds.
	LineAgeS   *int64 `json:"line_age_s"`
	RemainingS *int64 `json:"remaining_s"`
	// Alarms lists the ids of the job's current alarms.
	Alarms []string `json:"alarms,omitempty"`
}

// MarshalJSON writes null for a loss that is not finite, because JSON cannot express
// it.
func (p Progress) MarshalJSON() ([]byte, error) {
	type plain Progress
	p.Loss = metrics.Finite(p.Loss)
	return json.Marshal(plain(p))
}

// maxParallelReads is how many logs are read at the same time.
const maxParallelReads = 8

// withPaths returns jobs in which those that run name their logs, as far as one query
// tells: a list of jobs lacks the paths, and only the logs of jobs submitted here are
// found without them.
func withPaths(ctx context.Context, cl ops.Cluster, jobs []slurm.Job) []slurm.Job {
	unknown := slices.DeleteFunc(slices.Clone(jobs), func(j slurm.Job) bool { return j.State != slurm.Running || j.Stdout != "" })
	asker, ok := cl.(interface {
		Details(ctx context.Context, rows []slurm.Job) (map[slurm.JobID]slurm.Job, error)
	})
	if !ok || len(unknown) == 0 {
		return jobs
	}
	known, _ := asker.Details(ctx, unknown) // the next call tries again
	jobs = slices.Clone(jobs)
	for i, j := range jobs {
		if full, ok := known[j.ID]; ok {
			jobs[i] = full
		}
	}
	return jobs
}

// progressOf reads each running job's newest log lines and alarms. A job whose log
// cannot be read from here is left out.
func progressOf(ctx context.Context, c *ops.Call, jobs []slurm.Job) map[slurm.JobID]Progress {
	all := map[slurm.JobID]Progress{}
	var (
		reading sync.WaitGroup
		mu      sync.Mutex
		turn    = make(chan struct{}, maxParallelReads)
	)
	for _, j := range jobs {
		if j.State != slurm.Running {
			continue
		}
		reading.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			run, found, _ := joblogs.LookAtRun(ctx, c, j) // the next call tries again
			p := numbersOf(ctx, c, j, run)
			for _, a := range found {
				p.Alarms = append(p.Alarms, a.ID)
			}
			if p.Iteration == nil && p.Alarms == nil {
				return
			}
			mu.Lock()
			all[j.ID] = p
			mu.Unlock()
		})
	}
	reading.Wait()
	return all
}

// numbersOf returns the newest numbers in a running job's log; all are null where the
// log has none.
func numbersOf(ctx context.Context, c *ops.Call, j slurm.Job, run metrics.Run) (p Progress) {
	if len(run.Iterations) == 0 {
		return p
	}
	sum := run.Summary()
	p = Progress{Iteration: &sum.Last, Loss: sum.Loss, RemainingS: sum.ETASeconds}
	if sum.Of > 0 {
		p.Of = &sum.Of
	}
	if sum.IterationMS != nil {
		s := *sum.IterationMS / 1000
		p.IterationS = &s
	}
	if at := joblogs.LastWrite(ctx, c, j); !at.IsZero() {
		age := int64(max(0, c.Now().Sub(at)).Seconds())
		p.LineAgeS = &age
	}
	return p
}

// progressTable shows one line for each job: its state, how far it is, and its pace.
func progressTable(jobs []slurm.Job, all map[slurm.JobID]Progress, l lang.Lang) *view.Table {
	t := &view.Table{Header: view.Columns(l, "job|name|state|iteration|loss|s/iteration|last line|time left|limit in|where / why", "作业|名称|状态|迭代|损失|秒/迭代|最近输出|剩余时间|距时限|所在节点 / 原因"), Spare: []int{8, 9, 5, 6}}
	where := columns[slices.IndexFunc(columns, func(c column) bool { return c.name == "where" })]
	left := columns[slices.IndexFunc(columns, func(c column) bool { return c.name == "left" })]
	for _, j := range jobs {
		p := all[j.ID]
		row := []string{string(j.ID), j.Name, string(j.State), "", "", "", "", "", left.of(j), where.of(j)}
		if p.Iteration != nil {
			row[3] = fmt.Sprint(*p.Iteration)
			if p.Of != nil {
				row[3] += fmt.Sprintf("/%d", *p.Of)
			}
		}
		if p.Loss != nil {
			row[4] = fmt.Sprintf("%.4f", *p.Loss)
		}
		if p.IterationS != nil {
			row[5] = fmt.Sprintf("%.3g", *p.IterationS)
		}
		if p.LineAgeS != nil {
			row[6] = fmt.Sprintf(lang.Text{EN: "%s ago", ZH: "%s前"}.In(l), lang.Span(time.Duration(*p.LineAgeS)*time.Second).In(l))
		}
		if p.RemainingS != nil {
			row[7] = ops.Duration(*p.RemainingS)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// alarmLines returns one short line for each alarm, with the jobs that have it.
func alarmLines(jobs []slurm.Job, all map[slurm.JobID]Progress, l lang.Lang) []string {
	var ids []string
	having := map[string][]string{}
	for _, j := range jobs {
		for _, id := range all[j.ID].Alarms {
			if having[id] == nil {
				ids = append(ids, id)
			}
			having[id] = append(having[id], string(j.ID))
		}
	}
	var lines []string
	for _, id := range ids {
		lines = append(lines, lang.Text{EN: "%s: %s", ZH: "%s：%s"}.With(joblogs.AlarmTitle(id), strings.Join(having[id], ", ")).In(l))
	}
	return lines
}
