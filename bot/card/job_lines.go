package card

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// A stateLook is how a state is shown: by a coloured symbol and a word, so that colour is never
// the only sign.
type stateLook struct {
	mark string
	word lang.Text
}

var stateLooks = map[slurm.State]stateLook{
	slurm.Pending:     {"🟡", lang.Text{EN: "waiting", ZH: "排队中"}},
	slurm.Running:     {"🔵", lang.Text{EN: "running", ZH: "运行中"}},
	slurm.Completing:  {"🔵", lang.Text{EN: "ending", ZH: "正在结束"}},
	slurm.Completed:   {"✅", lang.Text{EN: "completed", ZH: "已完成"}},
	slurm.Failed:      {"❌", lang.Text{EN: "failed", ZH: "失败"}},
	slurm.Cancelled:   {"⏹️", lang.Text{EN: "cancelled", ZH: "已取消"}},
	slurm.Timeout:     {"❌", lang.Text{EN: "time limit reached", ZH: "达到时间上限"}},
	slurm.NodeFail:    {"❌", lang.Text{EN: "node failed", ZH: "节点故障"}},
	slurm.OutOfMemory: {"❌", lang.Text{EN: "out of host memory", ZH: "主机内存不足"}},
	slurm.Preempted:   {"⚠️", lang.Text{EN: "preempted", ZH: "被抢占"}},
	slurm.BootFail:    {"❌", lang.Text{EN: "node did not boot", ZH: "节点启动失败"}},
	slurm.Deadline:    {"❌", lang.Text{EN: "deadline reached", ZH: "超过截止时间"}},
	slurm.Requeued:    {"🟡", lang.Text{EN: "back in the queue", ZH: "已放回队列"}},
	"CONFIGURING":     {"🔵", lang.Text{EN: "nodes are made ready", ZH: "节点准备中"}},
	"SUSPENDED":       {"⏸️", lang.Text{EN: "suspended", ZH: "已挂起"}},
	"STOPPED":         {"⏸️", lang.Text{EN: "stopped by a signal", ZH: "已被信号停止"}},
	"REQUEUE_HOLD":    {"🟡", lang.Text{EN: "back in the queue, held", ZH: "已放回队列并保持"}},
	"REQUEUE_FED":     {"🟡", lang.Text{EN: "back in the queue", ZH: "已放回队列"}},
	"SPECIAL_EXIT":    {"🟡", lang.Text{EN: "back in the queue, held", ZH: "已放回队列并保持"}},
	"EXPEDITING":      {"🟡", lang.Text{EN: "back at the front of the queue", ZH: "已优先放回队列"}},
	"RESV_DEL_HOLD":   {"🟡", lang.Text{EN: "held: its reservation is gone", ZH: "已保持：预留已删除"}},
	"RESIZING":        {"🔵", lang.Text{EN: "changing its size", ZH: "正在改变规模"}},
	"SIGNALING":       {"🔵", lang.Text{EN: "being signalled", ZH: "正在接收信号"}},
	"STAGE_OUT":       {"🔵", lang.Text{EN: "copying its results out", ZH: "正在转出结果"}},
	"REVOKED":         {"⏹️", lang.Text{EN: "taken over by another cluster", ZH: "已由另一集群接管"}},
	slurm.Ended:       {"⏹️", lang.Text{EN: "ended, how is not known", ZH: "已结束，如何结束尚不清楚"}},
}

// Mark returns the symbol of a state.
func Mark(s slurm.State) string {
	switch look, ok := stateLooks[s]; {
	case ok:
		return look.mark
	case s.Ended():
		return "❌"
	}
	return "⚪"
}

// State returns a state in words, or Slurm's own word for a state that is not in the table.
func State(s slurm.State, l lang.Lang) string {
	if look, ok := stateLooks[s]; ok {
		return look.word.In(l)
	}
	return string(s)
}

// ToneOf says whether a state is good or bad news.
func ToneOf(s slurm.State) view.Tone {
	switch {
	case s == slurm.Completed:
		return view.Good
	case s == slurm.Cancelled || s == slurm.Preempted || s == slurm.Ended:
		return view.Warn
	case s.Ended():
		return view.Bad
	}
	return view.Plain
}

// When returns Slack's markup for a time in the reader's own time zone, with the time in UTC as
// the fallback. format is one of Slack's date formats, such as "{time}".
func When(t time.Time, format string) string {
	return fmt.Sprintf("<!date^%d^%s|%s>", t.Unix(), format, t.UTC().Format("2006-01-02 15:04 UTC"))
}

// WithCommas writes a number with commas between groups of three digits.
func WithCommas(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size says what a job takes, as nodes × GPUs per node; it is empty where that is unknown.
func size(j slurm.Job, l lang.Lang) string {
	nodes := max(j.NumNodes, len(j.Nodes))
	switch {
	case nodes == 0:
		return ""
	case j.GPUs > 0 && j.GPUs%nodes == 0:
		return fmt.Sprintf("%d × %s", nodes, ops.Counted(j.GPUs/nodes, "GPU").In(l))
	}
	return ops.Counted(nodes, "node").In(l)
}

// Headline is the card in one line, for a notification and for lists: the state, the name, the
// id, and the detail that matters most in this state.
func Headline(n News, l lang.Lang) string {
	j := n.Job
	why := State(j.State, l)
	switch {
	case j.State.Ended() && n.reason(l) != "":
		why = answer.Cut(answer.OneLine(n.reason(l)), 200)
	case j.State == slurm.Pending && n.Position > 0:
		why += fmt.Sprintf(textPlace.In(l), n.Position)
	case j.State == slurm.Running && len(j.Nodes) > 0:
		why += fmt.Sprintf(textOn.In(l), answer.Cut(strings.Join(j.Nodes, ", "), 100))
	case j.State.Ended() && j.ElapsedS > 0:
		why += fmt.Sprintf(textAfter.In(l), lang.Span(time.Duration(j.ElapsedS)*time.Second).In(l))
	}
	return Mark(j.State) + " " + Called(j, l) + answer.Colon.In(l) + why
}

// nameOf returns a job's name in one line of at most 80 characters, or its id where it has no
// name that can be seen.
func nameOf(j slurm.Job) string {
	name := answer.OneLine(j.Name)
	if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }) {
		return answer.Cut(name, 80)
	}
	return string(j.ID)
}

// hasName reports whether a line that names a job has its id to add.
func hasName(j slurm.Job) bool { return nameOf(j) != string(j.ID) }

// Called names a job in a sentence: by its name and its id, or by its id where it has no name.
func Called(j slurm.Job, l lang.Lang) string {
	if !hasName(j) {
		return textCalledID.With(j.ID).In(l)
	}
	return textCalled.With(nameOf(j), j.ID).In(l)
}

// CurveTitle is the title of a picture of the loss: the job, the last loss and the speed.
func CurveTitle(n News, l lang.Lang) string {
	parts := []string{Called(n.Job, l)}
	if n.Loss != nil {
		parts = append(parts, textLossName.In(l)+" "+n.Loss.String())
	}
	if s := speed(n); s != "" {
		parts = append(parts, s)
	}
	return strings.Join(parts, " · ")
}

// Row draws a job in a list as mrkdwn: its headline, and below it what the job takes, where it
// runs, and how far it is.
func Row(n News, l lang.Lang) string {
	j := n.Job
	first := Mark(j.State) + " *" + answer.Escape(nameOf(j)) + "* · "
	if hasName(j) {
		first += answer.Escape(string(j.ID)) + " · "
	}
	first += State(j.State, l)
	if why := n.reason(l); why != "" && j.State.Ended() {
		first += answer.Colon.In(l) + answer.Escape(answer.Cut(answer.OneLine(why), 200))
	}
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, answer.Escape(answer.Cut(answer.OneLine(s), 120)))
		}
	}
	if j.State == slurm.Running && n.Iteration > 0 {
		if len(n.Curve) >= FewestPoints {
			add(metrics.Sparkline(n.Curve, 12))
		}
		add(textIteration.In(l) + " " + iteration(n, l))
		if n.Loss != nil {
			add(textLossName.In(l) + " " + n.Loss.String())
		}
		if n.ETA > 0 {
			add(fmt.Sprintf(textLeft.In(l), lang.Span(n.ETA).In(l)))
		}
	}
	add(size(j, l))
	add(j.Partition)
	add(j.User)
	if j.State != slurm.Pending && j.ElapsedS > 0 {
		add(lang.Span(time.Duration(j.ElapsedS) * time.Second).In(l))
	}
	if j.State == slurm.Pending {
		add(waitReason(j.Reason, l))
	} else {
		add(hostlist.Compress(j.Nodes))
	}
	return first + "\n" + strings.Join(parts, " · ")
}
