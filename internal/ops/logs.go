package ops

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

// LogsIn chooses lines of a job's logs.
type LogsIn struct {
	Job   slurm.JobID `json:"job" arg:"" help:"job id" zh:"作业号"`
	Tail  int         `json:"tail,omitempty" help:"only the newest lines, so many" zh:"只显示最新的若干行"`
	Rank  *int        `json:"rank,omitempty" help:"only this global rank" zh:"只显示该全局 rank"`
	Node  string      `json:"node,omitempty" help:"only this node" zh:"只显示该节点"`
	Level string      `json:"level,omitempty" enum:",error,warning" default:"" help:"only errors, or warnings and errors" zh:"只显示错误，或警告与错误"`
	// Collapse joins what several ranks wrote in the same words.
	Collapse bool `json:"collapse,omitempty" help:"join lines that several ranks wrote alike" zh:"合并多个 rank 写出的相同行"`
	OnCluster
}

// LogsOut is the lines, oldest first.
type LogsOut struct {
	JobID slurm.JobID     `json:"job_id"`
	Lines []diagnose.Line `json:"lines"`
	// More says that there were more lines than were kept.
	More bool `json:"more,omitempty"`
}

// maxLines bounds an answer without a tail: a million lines are nobody's answer,
// and the machine's memory.
const maxLines = 200_000

var errEnough = errors.New("enough lines")

func logs(ctx context.Context, c *Call, in LogsIn) (LogsOut, error) {
	if in.Tail < 0 {
		return LogsOut{}, badInput("tail", "a number of lines, such as 50", "%d is negative", in.Tail)
	}
	cl, j, err := c.jobOrStep(ctx, in.Cluster, in.Job)
	if err != nil {
		return LogsOut{}, err
	}
	out := LogsOut{JobID: in.Job, Lines: []diagnose.Line{}}
	paths := c.logFiles(ctx, cl.Name(), j)
	if len(paths) == 0 {
		if j.State == slurm.Pending {
			return out, nil
		}
		return out, notFound("job", "the folder of --output must exist before the job starts", "%s", noLog(j))
	}
	src, err := diagnose.Open(paths...)
	if err != nil {
		return out, &Error{Code: Failed, Message: err.Error()}
	}
	err = diagnose.Lines(ctx, src, diagnose.Filter{Tail: in.Tail, Rank: in.Rank, Node: in.Node, Level: in.Level}, func(l diagnose.Line) error {
		if len(out.Lines) == maxLines {
			out.More = true
			return errEnough
		}
		out.Lines = append(out.Lines, l)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return out, err
	}
	if in.Collapse {
		out.Lines = diagnose.Collapse(out.Lines)
	}
	return out, nil
}

// View shows the lines, each behind its rank or file.
func (o LogsOut) View(l lang.Lang) view.Doc {
	if len(o.Lines) == 0 {
		return view.Doc{Title: lang.Text{EN: "no lines", ZH: "没有日志行"}.In(l)}
	}
	var b strings.Builder
	for _, line := range o.Lines {
		who := line.File
		if line.Rank != nil {
			who = "rank " + strconv.Itoa(*line.Rank)
		}
		if line.Ranks > 1 {
			who = fmt.Sprintf("%s × %d", who, line.Ranks)
		}
		fmt.Fprintf(&b, "%s | %s\n", who, line.Text)
	}
	d := view.Doc{Sections: []view.Section{{Code: b.String(), Lang: "log"}}}
	if o.More {
		d.Title = lang.Text{EN: "the first lines; --tail shows the newest", ZH: "最早的若干行；用 --tail 查看最新的"}.In(l)
	}
	return d
}
