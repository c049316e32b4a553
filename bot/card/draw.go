package card

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textCalled     = lang.Text{EN: "%s (%s)", ZH: "%s（%s）"}
	textCalledID   = lang.Text{EN: "job %s", ZH: "作业 %s"}
	textPlace      = lang.Text{EN: ", place %d", ZH: "，第 %d 位"}
	textOn         = lang.Text{EN: " on %s", ZH: "，节点 %s"}
	textAfter      = lang.Text{EN: " after %s", ZH: "，历时 %s"}
	textApproved   = lang.Text{EN: "approved by <@%s>", ZH: "审批：<@%s>"}
	textCancelled  = lang.Text{EN: "cancelled by <@%s>", ZH: "取消：<@%s>"}
	textSubmitted  = lang.Text{EN: "submitted %s", ZH: "提交于 %s"}
	textStarted    = lang.Text{EN: "started %s", ZH: "开始于 %s"}
	textEndsBy     = lang.Text{EN: "ends by %s", ZH: "最迟 %s 结束"}
	textEnded      = lang.Text{EN: "ended %s", ZH: "结束于 %s"}
	textBecause    = lang.Text{EN: "Waits for", ZH: "等待原因"}
	textLine       = lang.Text{EN: "Place in line", ZH: "排队位置"}
	textOf         = lang.Text{EN: "%s of %s", ZH: "%s / %s"}
	textLikely     = lang.Text{EN: "Likely start", ZH: "预计开始"}
	textLimit      = lang.Text{EN: "Time limit", ZH: "时间上限"}
	textIteration  = lang.Text{EN: "Iteration", ZH: "迭代"}
	textLoss       = lang.Text{EN: "Loss", ZH: "损失"}
	textSpeed      = lang.Text{EN: "Speed", ZH: "速度"}
	textTimeLeft   = lang.Text{EN: "Time left", ZH: "剩余时间"}
	textAbout      = lang.Text{EN: "about %s, done %s", ZH: "约 %s，%s 完成"}
	textLastLine   = lang.Text{EN: "Last line", ZH: "最新日志行"}
	textCheckpoint = lang.Text{EN: "Checkpoint", ZH: "检查点"}
	textCost       = lang.Text{EN: "GPU hours", ZH: "GPU 小时"}
	textExit       = lang.Text{EN: "Exit code", ZH: "退出码"}
	textFit        = lang.Text{EN: "A fix that fits", ZH: "可用的修复"}
	textTaken      = lang.Text{EN: "👀 <@%s> looks after it, since %s", ZH: "👀 <@%s> 正在处理，自 %s"}
	textLeft       = lang.Text{EN: "%s left", ZH: "剩余 %s"}
	textCurve      = lang.Text{EN: "Loss · %s", ZH: "损失 · %s"}
	textPage       = lang.Text{EN: "page", ZH: "网页"}
	textLastSeen   = lang.Text{EN: "The cluster does not answer. This is how it was at %s.", ZH: "集群没有响应，以下为 %s 时的状态。"}
	textLossName   = lang.Text{EN: "loss", ZH: "损失"}
)

// EndedBy is added to the headline of a job that somebody else cancelled.
var EndedBy = lang.Text{EN: " by %s", ZH: "，操作人 %s"}

// Draw draws a job's card and the text of its notification. With edit set, people are named by
// mentions: an edit notifies nobody, whereas a new message would.
func Draw(k Card, l lang.Lang, edit bool) (text string, blocks json.RawMessage) {
	bs := Body(k, l, edit)
	if row := Buttons(k, l); row != nil {
		bs = append(bs, row)
	}
	return answer.Escape(Headline(k.News, l)), answer.BlocksJSON(bs)
}

// Body draws a card without its buttons.
func Body(k Card, l lang.Lang, edit bool) []slack.Block {
	n, j := k.News, k.News.Job
	bs := []slack.Block{answer.Header(Title(j, l))}
	if j.SeenAt != nil {
		bs = append(bs, answer.ContextMarkup(LastSeen(*j.SeenAt, l)))
	}
	if why := n.reason(l); why != "" && j.State.Ended() {
		bs = append(bs, slack.NewRichTextBlock("", slack.NewRichTextSection(answer.Bold(lang.Capital(answer.Cut(answer.OneLine(why), 500))))))
	}
	bs = append(bs, answer.ContextMarkup(contextLine(k, l, edit)))
	if fs := fields(n, l); len(fs) > 0 {
		bs = append(bs, slack.NewSectionBlock(nil, fs, nil))
	}
	if j.State.Ended() && len(n.Fix) > 0 {
		bs = append(bs, answer.ContextMarkup("*"+textFit.In(l)+"*  "+answer.Escape(answer.OneLine(strings.Join(n.FixIn(l), " · ")))))
	}
	if c := chart(n, l); c != nil {
		bs = append(bs, c)
	}
	if k.Taken != "" && edit {
		bs = append(bs, answer.ContextMarkup(TakenBy(k.Taken, k.TakenAt, l)))
	}
	return bs
}

// LastSeen returns mrkdwn that says since when the shown state is out of date, because the
// cluster does not answer.
func LastSeen(at time.Time, l lang.Lang) string {
	return "⚠️ " + fmt.Sprintf(answer.Escape(textLastSeen.In(l)), When(at, "{date_short_pretty} {time}"))
}

// TakenBy returns mrkdwn that says who takes care of a failure.
func TakenBy(user string, at time.Time, l lang.Lang) string {
	return fmt.Sprintf(textTaken.In(l), user, When(at, "{time}"))
}

// Title is the card's first line.
func Title(j slurm.Job, l lang.Lang) string {
	state := State(j.State, l)
	if j.State.Ended() && j.ElapsedS > 0 {
		state += fmt.Sprintf(textAfter.In(l), lang.Span(time.Duration(j.ElapsedS)*time.Second).In(l))
	}
	title := Mark(j.State) + " " + nameOf(j) + " · " + state
	if hasName(j) {
		title += " · " + string(j.ID)
	}
	return title
}

// contextLine returns mrkdwn that says what the job takes, where it runs, whose it is, and
// since when.
func contextLine(k Card, l lang.Lang, edit bool) string {
	j := k.News.Job
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(answer.Escape(size(j, l)))
	where := j.Partition
	if j.Cluster != "" && where != "" {
		where += " (" + j.Cluster + ")"
	} else if where == "" {
		where = j.Cluster
	}
	add(answer.Escape(answer.Cut(where, 80)))
	add(answer.Escape(answer.Cut(j.Account, 80)))
	who := answer.Escape(answer.Cut(j.User, 80))
	if edit && k.User != "" {
		who = "<@" + k.User + ">"
	}
	add(who)
	if edit && k.Approver != "" {
		add(fmt.Sprintf(textApproved.In(l), k.Approver))
	}
	if by := k.EndedBy(); edit && j.State == slurm.Cancelled && by != "" && by != k.User {
		add(fmt.Sprintf(textCancelled.In(l), by))
	}
	const at = "{date_short_pretty} {time}"
	switch {
	case j.State.Ended() && j.EndedAt != nil:
		add(fmt.Sprintf(textEnded.In(l), When(*j.EndedAt, at)))
	case j.State == slurm.Running && j.StartedAt != nil:
		add(fmt.Sprintf(textStarted.In(l), When(*j.StartedAt, at)))
		if j.TimeLimitS != nil {
			add(fmt.Sprintf(textEndsBy.In(l), When(j.StartedAt.Add(time.Duration(*j.TimeLimitS)*time.Second), at)))
		}
	case j.State == slurm.Pending && j.SubmittedAt != nil:
		add(fmt.Sprintf(textSubmitted.In(l), When(*j.SubmittedAt, at)))
	}
	if at, err := url.Parse(k.News.Tracked); err == nil && at.Host != "" { // the link is labelled by its host
		add("<" + answer.Escape(k.News.Tracked) + "|" + answer.Escape(at.Host) + ">")
	}
	if k.Page != "" {
		add("<" + k.Page + "|" + textPage.In(l) + ">")
	}
	if len(parts) == 0 {
		return answer.Escape(string(j.ID))
	}
	return strings.Join(parts, " · ")
}

// fields draws the few values that matter in the job's state, in two columns.
func fields(n News, l lang.Lang) (fs []*slack.TextBlockObject) {
	j := n.Job
	markup := func(name lang.Text, value string) {
		if value != "" {
			fs = append(fs, answer.Markup("*"+name.In(l)+"*\n"+value))
		}
	}
	add := func(name lang.Text, value string) {
		markup(name, answer.Escape(answer.Cut(answer.OneLine(value), 300)))
	}
	switch {
	case j.State == slurm.Pending:
		add(textBecause, waitReason(j.Reason, l))
		if n.Position > 0 {
			add(textLine, fmt.Sprintf(textOf.In(l), WithCommas(n.Position), WithCommas(max(n.Position, n.InLine))))
		}
		if j.EstStart != nil {
			markup(textLikely, When(*j.EstStart, "{date_short_pretty} {time}"))
		}
		if j.TimeLimitS != nil {
			add(textLimit, lang.Span(time.Duration(*j.TimeLimitS)*time.Second).In(l))
		}
		return fs
	case n.Iteration > 0:
		add(textIteration, iteration(n, l))
		if n.Loss != nil {
			add(textLoss, n.Loss.String())
		}
		add(textSpeed, speed(n))
	}
	if j.State == slurm.Running {
		if n.ETA > 0 {
			markup(textTimeLeft, fmt.Sprintf(textAbout.In(l), answer.Escape(lang.Span(n.ETA).In(l)), When(n.lineAtOr(time.Now()).Add(n.ETA), "{date_short_pretty} {time}")))
		}
		if !n.LineAt.IsZero() {
			markup(textLastLine, When(n.LineAt, "{ago}"))
		}
	}
	if n.Checkpoint > 0 {
		v := WithCommas(n.Checkpoint)
		if !n.CheckpointAt.IsZero() {
			v += ", " + When(n.CheckpointAt, "{time}")
		}
		markup(textCheckpoint, v)
	}
	if j.State.Ended() {
		if j.GPUs > 0 && j.ElapsedS > 0 {
			add(textCost, strconv.FormatFloat(j.Last().GPUHours(), 'f', 1, 64))
		}
		if n.reason(l) == "" && ToneOf(j.State) == "bad" && j.ExitCode != nil {
			add(textExit, *j.ExitCode) // where the cause is known, nobody needs the exit code
		}
	}
	return fs
}

// lineAtOr returns when the log was last written to, or otherwise where that is unknown.
func (n News) lineAtOr(otherwise time.Time) time.Time {
	if n.LineAt.IsZero() {
		return otherwise
	}
	return n.LineAt
}

func iteration(n News, l lang.Lang) string {
	if n.Iterations <= 0 {
		return WithCommas(n.Iteration)
	}
	return fmt.Sprintf(textOf.In(l), WithCommas(n.Iteration), WithCommas(n.Iterations)) + fmt.Sprintf(" (%d %%)", 100*n.Iteration/n.Iterations)
}

func speed(n News) string {
	var parts []string
	if n.SecondsEach > 0 {
		parts = append(parts, strconv.FormatFloat(n.SecondsEach, 'g', 3, 64)+" s")
	}
	if n.TFLOPs != nil {
		parts = append(parts, strconv.FormatFloat(*n.TFLOPs, 'f', 0, 64)+" TFLOP/s/GPU")
	}
	if n.MFU != nil && *n.MFU >= 0.5 {
		parts = append(parts, "MFU "+strconv.FormatFloat(*n.MFU, 'f', 0, 64)+" %")
	}
	return strings.Join(parts, " · ")
}

// waitReason explains why a job waits: Slurm's word and our explanation of it.
func waitReason(reason string, l lang.Lang) string {
	if reason == "" || reason == "None" {
		return "" // Slurm has not considered the job yet
	}
	return reason + answer.Colon.In(l) + slurm.ExplainReason(reason).Says.In(l)
}

// FewestPoints is the least number of points that are drawn as a curve.
const FewestPoints = 3

// Slack draws at most twenty points, each labelled by at most twenty characters, and titles of
// at most fifty characters.
const (
	maxPoints = 20
	maxTitle  = 50
)

// chart draws the loss over the iterations; it returns nil where there are too few points.
// Workspaces that draw no charts get a line of text instead (see answer.Plainer).
func chart(n News, l lang.Lang) slack.Block {
	if len(n.Curve) < FewestPoints || n.Job.State == slurm.Pending {
		return nil
	}
	var at []string
	var points []slack.DataVisualizationDataPoint
	step := max(1, (len(n.Curve)+maxPoints-1)/maxPoints)
	last := len(n.Curve) - 1
	for i := last % step; i <= last; i += step {
		label := WithCommas(n.Curve[i].N)
		at = append(at, label)
		points = append(points, slack.NewDataVisualizationDataPoint(label, n.Curve[i].V))
	}
	axis := slack.NewDataVisualizationAxisConfig(at...).WithXLabel(textIteration.In(l)).WithYLabel(textLossName.In(l))
	return slack.DataVisualizationBlock{
		Type:  slack.MBTDataVisualization,
		Title: answer.Cut(fmt.Sprintf(textCurve.In(l), nameOf(n.Job)), maxTitle),
		Chart: slack.NewDataVisualizationLineChart(axis, slack.NewDataVisualizationDataSeries(textLossName.In(l), points...)),
	}
}
