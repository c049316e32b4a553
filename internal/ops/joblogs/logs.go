// Package joblogs reads what jobs wrote: log lines, numbers and checkpoints, and finds
// the root cause of a failure.
package joblogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// LogsIn selects lines of a job's logs.
type LogsIn struct {
	Job   slurm.JobID `json:"job" arg:"" help:"job id" zh:"作业号"`
	Tail  int         `json:"tail,omitempty" short:"n" help:"only the newest lines, so many" zh:"只显示最新的若干行"`
	Rank  *int        `json:"rank,omitempty" help:"only this global rank" zh:"只显示该全局 rank"`
	Node  string      `json:"node,omitempty" short:"w" help:"only this node" zh:"只显示该节点"`
	Level string      `json:"level,omitempty" enum:",error,warning" default:"" help:"only errors, or warnings and errors" zh:"只显示错误，或警告与错误"`
	// Collapse joins lines that several ranks wrote in the same words.
	Collapse bool `json:"collapse,omitempty" help:"join lines that several ranks wrote alike" zh:"合并多个 rank 写出的相同行"`
	Follow   bool `json:"follow,omitempty" short:"f" help:"go on with new lines until the job ends; agents and Slack: for 25 s" zh:"持续显示新的行直到作业结束；智能体与 Slack 中为 25 秒"`
	ops.OnCluster
}

// LogsOut holds the lines, oldest first.
type LogsOut struct {
	JobID slurm.JobID     `json:"job_id"`
	Lines []diagnose.Line `json:"lines"`
	// More reports that there are more lines than these.
	More bool `json:"more,omitempty"`
	// Pulse says whether a running job still writes output.
	Pulse *report.Pulse `json:"pulse,omitempty"`
	// Ranks and Nodes are those that wrote lines, where the rank and the node that were asked
	// for wrote none.
	Ranks []int    `json:"ranks,omitempty"`
	Nodes []string `json:"nodes,omitempty"`

	// Unaccounted reports that the job has left the queue and Slurm's accounts, which know how it ended,
	// do not answer.
	Unaccounted bool `json:"unaccounted,omitempty"`

	asked    LogsIn
	empty    slurm.State // the state of a job that has no line at all
	streamed bool        // the lines were shown as they came
	newest   bool        // the newest of more lines were kept
}

// maxLines is the most lines in an answer without a tail. Nobody reads more, and they
// would not fit into memory.
const maxLines = 200_000

var errEnough = errors.New("enough lines")

// Logs returns the operation logs.
func Logs() ops.Op {
	return ops.Define(ops.Op{
		Name: "logs", Effect: ops.Read, Toolset: ops.LogsSet, Core: true,
		Summary:  lang.Text{EN: "a job's log lines over all ranks, by rank or node, newest last", ZH: "作业所有 rank 的日志，可按 rank 或节点筛选，最新的在最后"},
		Help:     lang.Text{EN: "Use to read. To find what broke first use diagnose: it reads every rank.", ZH: "用于阅读日志。想知道最先出错的地方请用 diagnose：它会读取每个 rank。"},
		Example:  "logs 4711 --tail 50 --rank 3",
		Examples: []string{`logs last -f`, `logs failed -n 40`, `logs 4711 -w gpu07 --level error`},
	}, logs)
}

func logs(ctx context.Context, c *ops.Call, in LogsIn) (LogsOut, error) {
	if in.Tail < 0 {
		return LogsOut{}, ops.NegativeError("tail", in.Tail, lang.Text{EN: "a number of lines, such as 50", ZH: "行数，例如 50"})
	}
	cl, j, err := launch.JobOrStep(ctx, c, in.Cluster, in.Job)
	if err != nil {
		return LogsOut{}, err
	}
	out := LogsOut{JobID: in.Job, Unaccounted: j.State == slurm.Ended, asked: in, Lines: []diagnose.Line{}}
	if in.Follow {
		return followLogs(ctx, c, cl, j, in, out)
	}
	paths := logFiles(ctx, c, cl.Name(), j)
	if len(paths) == 0 {
		if j.State == slurm.Pending {
			out.empty = j.State
			return out, nil
		}
		said, fix := missingLog(j)
		return out, ops.NotFoundError("job", said, fix)
	}
	src, done, err := openLogs(c, j, paths)
	if err != nil {
		return out, &ops.Error{Code: ops.Failed, Message: lang.Said(err)}
	}
	defer done()
	if out.Lines, out.More, err = in.read(ctx, src, j); err != nil {
		return out, err
	}
	if len(out.Lines) == 0 {
		if err := out.findWriters(ctx, src, j); err != nil {
			return out, err
		}
	}
	if j.State == slurm.Running {
		out.Pulse = readState(ctx, src, j).pulse
	}
	return out, nil
}

// filter returns the filter for the lines that the call selects.
func (in LogsIn) filter(j slurm.Job) diagnose.Filter {
	return diagnose.Filter{Tail: in.Tail, Rank: in.Rank, Node: in.Node, Level: in.Level, Nodes: j.Nodes, Array: len(j.Tasks) > 0}
}

// findWriters finds out why no line was selected: the logs are empty, or others wrote them.
func (o *LogsOut) findWriters(ctx context.Context, src logfile.Source, j slurm.Job) error {
	o.empty = j.State
	ranks, nodes := map[int]bool{}, map[string]bool{}
	err := diagnose.Lines(ctx, src, LogsIn{}.filter(j), func(l diagnose.Line) error {
		o.empty = ""
		if l.Rank != nil && o.asked.Rank != nil {
			ranks[*l.Rank] = true
		}
		if l.Node != "" && o.asked.Node != "" {
			nodes[l.Node] = true
		}
		return nil
	})
	o.Ranks, o.Nodes = slices.Sorted(maps.Keys(ranks)), slices.Sorted(maps.Keys(nodes))
	return err
}

// writers says which ranks and nodes the logs have lines of, where the call selects by them.
func (o LogsOut) writers() lang.Text {
	var t lang.Text
	add := func(asked bool, en, zh, noneEN, noneZH, list string) {
		switch {
		case asked && list != "":
			t.EN, t.ZH = t.EN+". "+en+": "+list, t.ZH+"。"+zh+"："+list
		case asked:
			t.EN, t.ZH = t.EN+". "+noneEN, t.ZH+"。"+noneZH
		}
	}
	add(o.asked.Rank != nil, "Ranks with lines", "有日志行的 rank", "No line says which rank wrote it", "没有一行标明由哪个 rank 写出", ranges(o.Ranks))
	add(o.asked.Node != "", "Nodes with lines", "有日志行的节点", "No line says which node it is from", "没有一行标明来自哪个节点", hostlist.Compress(o.Nodes))
	return t
}

// none says why there is no line to show: the job has no lines, or none that match.
func (o LogsOut) none() lang.Text {
	switch {
	case o.empty == "":
		none, writers := o.asked.none(), o.writers()
		return lang.Text{EN: none.EN + writers.EN, ZH: none.ZH + writers.ZH}
	case o.empty == slurm.Pending:
		return lang.Text{EN: "job %s waits and has no log yet", ZH: "作业 %s 还在排队，尚无日志"}.With(o.JobID)
	case o.empty.Ended():
		return lang.Text{EN: "job %s has ended, and its log is empty", ZH: "作业 %s 已结束，其日志为空"}.With(o.JobID)
	}
	return lang.Text{EN: "job %s has written nothing yet", ZH: "作业 %s 还没有写日志"}.With(o.JobID)
}

// none says which lines do not exist.
func (in LogsIn) none() lang.Text {
	rank := ""
	if in.Rank != nil {
		rank = strconv.Itoa(*in.Rank)
	}
	var en, zh []string
	for _, x := range []struct{ en, zh, value string }{{"rank", "rank", rank}, {"node", "节点", in.Node}, {"level", "级别", in.Level}} {
		if x.value != "" {
			en, zh = append(en, x.en+" "+x.value), append(zh, x.zh+" "+x.value)
		}
	}
	if en == nil {
		return lang.Text{EN: "no lines", ZH: "没有日志行"}
	}
	return lang.Text{EN: "no lines of " + strings.Join(en, ", "), ZH: "没有 " + strings.Join(zh, "、") + " 的日志行"}
}

// read returns the existing lines. more reports that there are others.
func (in LogsIn) read(ctx context.Context, src logfile.Source, j slurm.Job) (lines []diagnose.Line, more bool, err error) {
	lines = []diagnose.Line{}
	err = diagnose.Lines(ctx, src, in.filter(j), func(l diagnose.Line) error {
		if len(lines) == maxLines {
			more = true
			return errEnough
		}
		lines = append(lines, l)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if in.Collapse {
		lines = diagnose.Collapse(lines)
	}
	return lines, more, err
}

// Where nobody can interrupt it, following a log ends after this time and this many
// lines.
const (
	followFor   = 25 * time.Second
	followLines = 500
)

// followLogs reports the existing lines, only the last ten without a tail, and then new
// lines until the job has ended.
func followLogs(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job, in LogsIn, out LogsOut) (LogsOut, error) {
	most, until := maxLines, ctx
	if c.Stream == nil && c.Emit == nil && c.Who.Surface != ops.Shell {
		most = followLines
		var stop context.CancelFunc
		until, stop = context.WithTimeout(ctx, followFor)
		defer stop()
	}
	tell := func(lines []diagnose.Line) (enough bool) {
		if in.Collapse {
			lines = diagnose.Collapse(lines)
		}
		if c.Emit != nil {
			out.streamed = true
			for _, l := range lines {
				c.Emit(l)
			}
			return false
		}
		if out.streamed = c.Stream != nil; out.streamed {
			if len(lines) > 0 {
				c.Stream(lineTexts(lines))
			}
			return false
		}
		out.Lines = append(out.Lines, lines...)
		if len(out.Lines) > most {
			out.Lines, out.More, out.newest = out.Lines[len(out.Lines)-most:], true, true
		}
		return out.More && c.Who.Surface != ops.Shell
	}
	in.Tail = cmp.Or(in.Tail, 10)
	src, done, err := openLogs(c, j, logFiles(ctx, c, cl.Name(), j))
	if err == nil {
		defer done()
		lines, _, err := in.read(ctx, src, j)
		if err != nil && ctx.Err() == nil {
			return out, err
		}
		tell(lines)
	}
	w := diagnose.NewFollower(src, in.filter(j))
	var finder logFinder
	for asked := time.Now(); ; {
		ended := j.State.Ended() // before reading, so that the last lines are not missed
		out.Unaccounted = j.State == slurm.Ended
		lines, err := readNew(ctx, c, w, j, finder.files(ctx, c, cl.Name(), j))
		if err != nil && ctx.Err() == nil {
			return out, err
		}
		if tell(lines) || ended {
			return out, nil
		}
		if c.Stream == nil && c.Emit == nil { // a person who sees the lines needs no count
			c.Step(len(out.Lines), 0, ops.Counted(len(out.Lines), "line").In(c.Lang))
		}
		if !ops.Pause(until, min(ops.PollPause(cl), time.Second)) {
			return out, ctx.Err() // a person stops when they have seen enough
		}
		if time.Since(asked) >= ops.PollPause(cl) {
			asked = time.Now()
			if _, now, err := launch.JobOrStep(ctx, c, cl.Name(), in.Job); err == nil {
				j = now
			}
		}
	}
}

// readNew reads a job's logs once for a follower.
func readNew(ctx context.Context, c *ops.Call, w *diagnose.Follower, j slurm.Job, paths []string) ([]diagnose.Line, error) {
	in, err := openFolders(c, j, paths)
	if err != nil {
		return nil, nil //nolint:nilerr // folders that do not exist yet hold no lines
	}
	defer in.Close()
	return w.Look(ctx, in, paths...)
}

// Streamed reports whether all lines were shown as they came.
func (o LogsOut) Streamed() bool { return o.streamed }

// View shows the lines, each behind its rank or file.
func (o LogsOut) View(l lang.Lang) view.Doc {
	if o.streamed {
		return view.Doc{}
	}
	if len(o.Lines) == 0 {
		return view.Doc{Title: o.none().In(l)}
	}
	d := view.Doc{Sections: []view.Section{{Code: lineTexts(o.Lines), Lang: "log"}}}
	if o.Pulse != nil {
		d.Sections = append(d.Sections, view.Section{Text: o.Pulse.Says().In(l)})
		if o.Pulse.MayHang {
			d.Tone, d.Next = view.Warn, []string{"diagnose " + string(o.JobID)}
		}
	}
	if o.Unaccounted {
		d.Sections = append(d.Sections, view.Section{Text: unaccounted(l)})
	}
	switch {
	case o.newest:
		d.Title = lang.Text{EN: "the newest lines; there are others before them", ZH: "最新的若干行；之前还有其他行"}.In(l)
	case o.More:
		d.Title = lang.Text{EN: "the first lines; --tail shows the newest", ZH: "最早的若干行；用 --tail 查看最新的"}.In(l)
	}
	return d
}

// lineTexts formats lines, each behind its rank or file, or behind "× 255 ranks" where
// several ranks wrote the same.
func lineTexts(lines []diagnose.Line) string {
	var b strings.Builder
	for _, line := range lines {
		who := line.File
		if line.Rank != nil {
			who = "rank " + strconv.Itoa(*line.Rank)
		}
		if line.Ranks > 1 {
			who = fmt.Sprintf("× %d ranks", line.Ranks)
		}
		fmt.Fprintf(&b, "%s | %s\n", who, line.Text)
	}
	return b.String()
}
