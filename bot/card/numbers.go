package card

import (
	"strconv"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

var (
	textBest   = lang.Text{EN: "Lowest loss", ZH: "最低损失"}
	textTokens = lang.Text{EN: "Tokens/s/GPU", ZH: "每卡每秒 token"}
	textNorm   = lang.Text{EN: "Grad norm", ZH: "梯度范数"}
)

// Numbers draws the numbers that a training run reports in two columns, and its loss as a chart
// below them.
func Numbers(n News, s metrics.Summary, l lang.Lang) []slack.Block {
	title := "📈 " + nameOf(n.Job)
	if n.Job.State != "" {
		title += " · " + State(n.Job.State, l)
	}
	if hasName(n.Job) && n.Job.ID != "" {
		title += " · " + string(n.Job.ID)
	}
	trained := n // fields is asked for a run without a failure, so that it lists numbers only
	trained.Job.State = slurm.Running
	if n.Job.State.Ended() {
		trained.Job.State = slurm.Completed
	}
	fs := fields(trained, l)
	add := func(name lang.Text, v *float64, format byte, digits int) {
		if v != nil {
			fs = append(fs, answer.Markup("*"+name.In(l)+"*\n"+answer.Escape(strconv.FormatFloat(*v, format, digits, 64))))
		}
	}
	if s.BestLoss != nil && (s.Loss == nil || *s.BestLoss < *s.Loss) {
		add(textBest, s.BestLoss, 'g', 4)
	}
	add(textNorm, s.GradNorm, 'g', 3)
	add(textTokens, s.TokensPerGPU, 'f', 0)
	bs := []slack.Block{answer.Header(title), slack.NewSectionBlock(nil, fs[:min(len(fs), 10)], nil)}
	if c := chart(n, l); c != nil {
		bs = append(bs, c)
	}
	return bs
}
