package card

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var stateText = map[slurm.State]lang.Text{
	slurm.Pending:     {EN: "Waiting in the queue", ZH: "排队中"},
	slurm.Running:     {EN: "Running", ZH: "运行中"},
	slurm.Completing:  {EN: "Ending", ZH: "正在结束"},
	slurm.Completed:   {EN: "Completed", ZH: "已完成"},
	slurm.Failed:      {EN: "Failed", ZH: "失败"},
	slurm.Cancelled:   {EN: "Cancelled", ZH: "已取消"},
	slurm.Timeout:     {EN: "Time limit reached", ZH: "达到时间上限"},
	slurm.NodeFail:    {EN: "A node failed", ZH: "节点故障"},
	slurm.OutOfMemory: {EN: "Out of host memory", ZH: "主机内存不足"},
	slurm.Preempted:   {EN: "Preempted", ZH: "被抢占"},
	slurm.BootFail:    {EN: "A node did not boot", ZH: "节点启动失败"},
	slurm.Deadline:    {EN: "Deadline reached", ZH: "超过截止时间"},
}

// StateWords is the state in words, with Slurm's own word.
func StateWords(s slurm.State, l lang.Lang) string {
	if t, ok := stateText[s]; ok {
		return fmt.Sprintf(answer.Named.In(l), t.In(l), s)
	}
	return string(s)
}

// ToneOf is whether a state is good or bad news.
func ToneOf(s slurm.State) view.Tone {
	switch {
	case s == slurm.Completed:
		return view.Good
	case s == slurm.Cancelled || s == slurm.Preempted:
		return view.Warn
	case s.Ended():
		return view.Bad
	}
	return view.Plain
}

var stateMark = map[slurm.State]string{slurm.Pending: "⏳ ", slurm.Running: "▶️ ", slurm.Completing: "▶️ "}

// Words for people, which requests for approval say too.
var (
	TextRequester = lang.Text{EN: "Requester", ZH: "申请人"}
	TextActsAs    = lang.Text{EN: "Cluster user", ZH: "集群用户"}
)

// What a card says; TextStarted is told in its thread.
var (
	TextStarted    = lang.Text{EN: "Started on %s.", ZH: "已在 %s 上开始运行。"}
	TextState      = lang.Text{EN: "State", ZH: "状态"}
	textReason     = lang.Text{EN: "Waits for", ZH: "等待原因"}
	textPosition   = lang.Text{EN: "Place in the queue", ZH: "排队位置"}
	textOf         = lang.Text{EN: "%d of %d", ZH: "第 %d 位，共 %d 个"}
	textEstimate   = lang.Text{EN: "Estimated start", ZH: "预计开始"}
	textElapsed    = lang.Text{EN: "Elapsed / limit", ZH: "已运行 / 时限"}
	textNodes      = lang.Text{EN: "Nodes", ZH: "节点"}
	textIteration  = lang.Text{EN: "Iteration", ZH: "迭代"}
	textLoss       = lang.Text{EN: "Loss", ZH: "损失"}
	textSpeed      = lang.Text{EN: "Speed", ZH: "速度"}
	textETA        = lang.Text{EN: "Ends in about", ZH: "预计剩余"}
	textCheckpoint = lang.Text{EN: "Last checkpoint", ZH: "最近检查点"}
	textExit       = lang.Text{EN: "Exit code", ZH: "退出码"}
	textRemedy     = lang.Text{EN: "What a fix would change", ZH: "可应用的修复"}
	textApprover   = lang.Text{EN: "Approved by", ZH: "审批人"}
	textJob        = lang.Text{EN: "Job", ZH: "作业"}
)

// Draw draws a job's card. People are named by mention only where the
// message is edited, because an edit notifies nobody.
func Draw(k Card, l lang.Lang, edit bool) (text string, blocks json.RawMessage) {
	n, j := k.News, k.News.Job
	mark := stateMark[j.State]
	if j.State.Ended() {
		mark = answer.ToneMark[ToneOf(j.State)]
	}
	title := mark + answer.OneLine(string(j.ID)+"  "+j.Name)
	bs := []slack.Block{answer.Header(title)}
	if n.Cause != nil && j.State.Ended() {
		// What went wrong comes before everything else.
		cause := answer.Summary(*n.Cause)
		bs = append(bs, slack.NewRichTextBlock("", slack.NewRichTextSection(answer.Bold(answer.Cut(answer.OneLine(n.Cause.Title), 500)))))
		text = cause
	}
	for _, p := range answer.Facts(cardFacts(n, l)) {
		bs = append(bs, p.Block)
	}
	if who := people(k, l, edit); who != nil {
		bs = append(bs, who)
	}
	if row := Buttons(n, l); row != nil {
		bs = append(bs, row)
	}
	return answer.Cut(answer.Escape(title+answer.Colon.In(l)+StateWords(j.State, l))+" "+text, 1000), answer.BlocksJSON(bs)
}

// people says who asked and who approved.
func people(k Card, l lang.Lang, edit bool) slack.Block {
	if !edit || k.User == "" {
		return nil
	}
	es := []slack.RichTextSectionElement{
		answer.Bold(TextRequester.In(l)), slack.NewRichTextSectionTextElement("  ", nil), slack.NewRichTextSectionUserElement(k.User, nil),
	}
	if k.Approver != "" {
		es = append(es, slack.NewRichTextSectionTextElement("   ", nil), answer.Bold(textApprover.In(l)),
			slack.NewRichTextSectionTextElement("  ", nil), slack.NewRichTextSectionUserElement(k.Approver, nil))
	}
	return slack.NewRichTextBlock("", slack.NewRichTextSection(es...))
}

// cardFacts are the lines of a card, by the job's state.
func cardFacts(n News, l lang.Lang) []view.Fact {
	j := n.Job
	var fs []view.Fact
	add := func(name lang.Text, value string) {
		if value != "" {
			fs = append(fs, view.Fact{Name: name.In(l), Value: value})
		}
	}
	add(TextState, StateWords(j.State, l))
	add(textJob, strings.Trim(string(j.ID)+" · "+j.Cluster+" · "+j.Partition, " ·"))
	add(TextActsAs, j.User)
	if j.State == slurm.Pending {
		add(textReason, ReasonWords(j.Reason, l))
		if n.Position > 0 {
			add(textPosition, fmt.Sprintf(textOf.In(l), n.Position, max(n.Position, n.InLine)))
		}
		if j.EstStart != nil {
			add(textEstimate, j.EstStart.UTC().Format("2006-01-02 15:04 UTC"))
		}
	}
	if j.State != slurm.Pending || j.ElapsedS > 0 {
		elapsed := ops.Duration(j.ElapsedS)
		if j.TimeLimitS != nil {
			elapsed += " / " + ops.Duration(*j.TimeLimitS)
		}
		add(textElapsed, elapsed)
	}
	if len(j.Nodes) > 0 {
		add(textNodes, answer.Cut(strings.Join(j.Nodes, ", "), 300))
	} else if j.NumNodes > 0 {
		add(textNodes, strconv.Itoa(j.NumNodes))
	}
	fs = append(fs, progressFacts(n, l)...)
	if j.State.Ended() && j.ExitCode != nil {
		add(textExit, *j.ExitCode)
	}
	if j.State.Ended() && len(n.Fix) > 0 {
		add(textRemedy, strings.Join(n.Fix, "\n"))
	}
	return fs
}

// ReasonWords is why a job waits, in Slurm's word and in ours.
func ReasonWords(reason string, l lang.Lang) string {
	if reason == "" || reason == "None" {
		return "" // Slurm has not looked at it yet
	}
	return reason + answer.Colon.In(l) + slurm.ExplainReason(reason).Says.In(l)
}

// progressFacts are what the training itself says.
func progressFacts(n News, l lang.Lang) (fs []view.Fact) {
	add := func(name lang.Text, value string) { fs = append(fs, view.Fact{Name: name.In(l), Value: value}) }
	if n.Iteration > 0 {
		v := strconv.Itoa(n.Iteration)
		if n.Iterations > 0 {
			v = fmt.Sprintf("%s %d / %d (%d %%)", bar(n.Iteration, n.Iterations), n.Iteration, n.Iterations, 100*n.Iteration/n.Iterations)
		}
		add(textIteration, v)
	}
	if n.Loss != nil {
		add(textLoss, strconv.FormatFloat(*n.Loss, 'g', 6, 64))
	}
	if n.TFLOPs != nil {
		add(textSpeed, strconv.FormatFloat(*n.TFLOPs, 'f', 1, 64)+" TFLOP/s/GPU")
	}
	if n.ETA > 0 && n.Job.State == slurm.Running {
		add(textETA, ops.Duration(int64(n.ETA.Seconds())))
	}
	if n.Checkpoint > 0 {
		v := strconv.Itoa(n.Checkpoint)
		if !n.CheckpointAt.IsZero() {
			v += n.CheckpointAt.UTC().Format(" (15:04 UTC)")
		}
		add(textCheckpoint, v)
	}
	return fs
}

// EndFacts are what is told of an end without a diagnosis.
func EndFacts(j slurm.Job, l lang.Lang) []view.Fact {
	fs := []view.Fact{{Name: textElapsed.In(l), Value: ops.Duration(j.ElapsedS)}}
	if j.ExitCode != nil {
		fs = append(fs, view.Fact{Name: textExit.In(l), Value: *j.ExitCode})
	}
	return fs
}

// bar draws a share in ten signs.
func bar(part, whole int) string {
	n := min(10, max(0, 10*part/whole))
	return strings.Repeat("▓", n) + strings.Repeat("░", 10-n)
}
