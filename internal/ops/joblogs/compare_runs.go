package joblogs

import (
	"context"
	"encoding/json"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// CompareIn names a failed run and a successful one.
type CompareIn struct {
	Failed string `json:"failed" arg:"" jobs:"" help:"job id or logs of the run that failed" zh:"失败训练的作业号或日志"`
	Good   string `json:"good,omitempty" arg:"" optional:"" jobs:"" help:"job id or logs of a run that went well; the last one of the same name that completed where left out" zh:"正常训练的作业号或日志；省略时取同名且最近完成的一次"`
	Sweep  bool   `json:"sweep,omitempty" help:"the points of a sweep side by side instead, the best first" zh:"改为并列比较一次参数扫描的各组参数，最好的在前"`
	ops.OnCluster
}

// CompareOut holds the differences between the two runs.
type CompareOut struct {
	Failed string `json:"failed"`
	Good   string `json:"good"`
	diagnose.Comparison
	// Changes are the fields of the specification that differ, where both are known.
	Changes []job.Change `json:"changes"`
	// Script holds the changed lines of the script, with - and + in front.
	Script string `json:"script,omitempty"`
	// Sweep holds the points of a sweep, where the call asks for them.
	Sweep []SweepResult `json:"sweep,omitempty"`
}

// Compare returns the operation compare.
func Compare() ops.Op {
	return ops.Define(ops.Op{
		Name: "compare", Effect: ops.Read, Toolset: ops.LogsSet,
		Summary: lang.Text{EN: "a failed run beside the last good one: specification, nodes, environment, new log lines", ZH: "把失败的训练与最近一次正常的训练对比：规格、节点、环境、新出现的日志"},
		Help: lang.Text{
			EN: "Use when diagnose alone does not explain it: what is different from the run that worked?",
			ZH: "diagnose 还不足以解释时使用：与之前成功的那次有什么不同？",
		},
		Example:  "compare 4711",
		Examples: []string{"compare --sweep 4720"},
	}, compare)
}

func compare(ctx context.Context, c *ops.Call, in CompareIn) (CompareOut, error) {
	out := CompareOut{Failed: in.Failed, Good: in.Good, Changes: []job.Change{}}
	if in.Sweep {
		results, err := sweepResults(ctx, c, in)
		out.Sweep = results
		return out, err
	}
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	if out.Good == "" {
		if out.Good, err = lastGood(ctx, c, cl, in.Failed); err != nil {
			return out, err
		}
	}
	failed, done, err := logSource(ctx, c, in.Cluster, "failed", in.Failed)
	if err != nil {
		return out, err
	}
	defer done()
	good, done, err := logSource(ctx, c, in.Cluster, "good", out.Good)
	if err != nil {
		return out, err
	}
	defer done()
	if out.Comparison, err = diagnose.Compare(ctx, failed, good); err != nil {
		return out, err
	}
	before, had := c.Submission(ctx, cl.Name(), slurm.JobID(out.Good))
	after, has := c.Submission(ctx, cl.Name(), slurm.JobID(in.Failed))
	var old, next job.Spec
	if had && has && json.Unmarshal(before.Spec, &old) == nil && json.Unmarshal(after.Spec, &next) == nil {
		out.Changes = append(out.Changes, job.Diff(old, next)...)
	}
	if had && has {
		out.Script = job.DiffText(before.Script, after.Script)
	}
	return out, nil
}

// lastGood returns the newest earlier job of the same name that completed.
func lastGood(ctx context.Context, c *ops.Call, cl ops.Cluster, failed string) (string, error) {
	none := ops.InputError("good",
		lang.Text{EN: "there is no earlier run of the same name that completed", ZH: "没有同名且已完成的更早运行"},
		lang.Text{EN: "name the job or the logs to compare with", ZH: "请给出要对比的作业号或日志"})
	if !slurm.IsJobID(failed) {
		return "", none
	}
	sub, err := launch.OwnSubmission(ctx, c, cl, slurm.JobID(failed))
	if err != nil {
		return "", err
	}
	earlier, err := earlierRuns(ctx, c, sub)
	if err != nil {
		return "", err
	}
	for _, id := range earlier {
		if j, err := c.Look(ctx, cl, id); err == nil && j.State == slurm.Completed {
			return string(id), nil
		}
	}
	return "", none
}

// earlierRuns lists the jobs that the same person submitted under the same name to the
// same cluster before sub, newest first.
func earlierRuns(ctx context.Context, c *ops.Call, sub store.Submission) ([]slurm.JobID, error) {
	st, err := c.Store()
	if err != nil {
		return nil, err
	}
	all, err := st.Submissions(ctx, sub.Owner, sub.Name, 50)
	var ids []slurm.JobID
	for _, s := range all {
		if s.Cluster == sub.Cluster && s.JobID != "" && s.CreatedAt.Before(sub.CreatedAt) {
			ids = append(ids, s.JobID)
		}
	}
	return ids, err
}

// logSource opens the logs of a job, or those at a path. done closes the folders of the
// logs.
func logSource(ctx context.Context, c *ops.Call, on, field, what string) (src logfile.Source, done func(), err error) {
	if slurm.IsJobID(what) {
		cl, j, err := c.Job(ctx, on, slurm.JobID(what))
		if err != nil {
			return src, nil, err
		}
		paths := logFiles(ctx, c, cl.Name(), j)
		if len(paths) == 0 {
			said, fix := missingLog(j)
			return src, nil, ops.NotFoundError("job", said, fix)
		}
		return openLogs(c, j, paths)
	}
	path, in, err := resolvePath(c, field, what)
	if err != nil {
		return src, nil, err
	}
	if src, err = openNamed(in, field, what, path); err != nil {
		in.Close()
		return src, nil, err
	}
	return src, in.Close, nil
}

// View shows the changed fields, and then what only the failed run's logs have.
func (o CompareOut) View(l lang.Lang) view.Doc {
	if o.Sweep != nil {
		return sweepView(o.Sweep, l)
	}
	d := o.Comparison.View(l)
	if len(o.Changes) > 0 {
		t := &view.Table{Header: []string{"field", o.Good, o.Failed}}
		for _, ch := range o.Changes {
			t.Rows = append(t.Rows, []string{ch.Field, ch.Old, ch.New})
		}
		d.Sections = append([]view.Section{{Heading: lang.Text{EN: "specification", ZH: "规格"}.In(l), Table: t}}, d.Sections...)
	}
	d.Add(view.Section{Heading: lang.Text{EN: "script", ZH: "脚本"}.In(l), Code: o.Script, Lang: "diff", Fold: true})
	return d
}
