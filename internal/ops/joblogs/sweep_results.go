package joblogs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// A SweepResult is the result of one point of a sweep.
type SweepResult struct {
	Point  string          `json:"point"` // such as "lr=1e-4 seed=2"
	JobID  slurm.JobID     `json:"job_id"`
	State  slurm.State     `json:"state"`
	Result metrics.Summary `json:"result"`
}

// sweepResults returns the points of the sweep that an array was submitted as, with the
// best validation loss first, or the best loss where there is no validation loss.
func sweepResults(ctx context.Context, c *ops.Call, in CompareIn) ([]SweepResult, error) {
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return nil, err
	}
	id := slurm.JobID(in.Failed)
	s, ok := c.SpecOf(ctx, cl.Name(), id)
	if points := s.Points(); !ok || len(points) == 0 {
		return nil, ops.NotFoundError("failed",
			lang.Text{EN: "job %s is no sweep that was submitted from here", ZH: "作业 %s 不是从这里提交的参数扫描"}.With(in.Failed),
			lang.Text{EN: "the job id with which submit answered for a specification with sweep", ZH: "提交带 sweep 的规格时 submit 返回的作业号"})
	}
	results := []SweepResult{}
	for i, p := range s.Points() {
		task := slurm.JobID(fmt.Sprintf("%s_%d", id, i))
		run, j, _, err := runOf(ctx, c, MetricsIn{OnCluster: in.OnCluster}, string(task))
		if err != nil && ops.AsError(err).Code != ops.NotFound {
			return nil, err
		}
		c.Step(i+1, len(s.Points()), p.String())
		results = append(results, SweepResult{Point: p.String(), JobID: task, State: j.State, Result: run.Summary()})
	}
	slices.SortStableFunc(results, func(a, b SweepResult) int { return cmp.Compare(score(a.Result), score(b.Result)) })
	return results, nil
}

// score is the value to sort results by: lower is better, and results without one come
// last.
func score(s metrics.Summary) float64 {
	for _, loss := range []*float64{s.Validation, s.BestLoss} {
		if loss != nil && !math.IsNaN(*loss) {
			return *loss
		}
	}
	return math.Inf(1)
}

// sweepView shows one line for each point.
func sweepView(results []SweepResult, l lang.Lang) view.Doc {
	t := &view.Table{Header: view.Columns(l, "point|job|state|iteration|loss|best loss|validation|s/iteration", "参数|作业|状态|迭代|损失|最佳损失|验证损失|秒/迭代"), Spare: []int{7, 4}}
	number := func(v *float64, scale float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.4g", *v*scale)
	}
	for _, r := range results {
		iteration := ""
		if r.Result.Iterations > 0 {
			iteration = strconv.Itoa(r.Result.Last)
			if r.Result.Of > 0 {
				iteration += "/" + strconv.Itoa(r.Result.Of)
			}
		}
		t.Rows = append(t.Rows, []string{
			r.Point, string(r.JobID), string(r.State), iteration, number(r.Result.Loss, 1), number(r.Result.BestLoss, 1),
			number(r.Result.Validation, 1), number(r.Result.IterationMS, 1e-3),
		})
	}
	d := view.Doc{Title: lang.Text{EN: "%d points, the best first", ZH: "%d 组参数，最好的在前"}.With(len(results)).In(l), Sections: []view.Section{{Table: t}}}
	if len(results) > 0 && !math.IsInf(score(results[0].Result), 1) {
		d.Next = []string{"metrics " + string(results[0].JobID)}
	}
	return d
}
