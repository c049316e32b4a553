package bot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textFits     = lang.Text{EN: "✅ No problems found", ZH: "✅ 检查通过"}
	textFormCost = lang.Text{EN: "%s at most", ZH: "最多 %s"}
	textToLimit  = lang.Text{EN: "as long as the partition allows", ZH: "时长为分区上限"}
	textNoEnd    = lang.Text{EN: "WITHOUT A TIME LIMIT", ZH: "没有时间限制"}
	textMemoryOf = lang.Text{EN: "about %.0f of %.0f GiB a GPU (%.0f to %.0f)", ZH: "每卡约 %.0f / %.0f GiB（%.0f–%.0f）"}
	textMemory   = lang.Text{EN: "about %.0f GiB a GPU (%.0f to %.0f)", ZH: "每卡约 %.0f GiB（%.0f–%.0f）"}
	textBegins   = lang.Text{EN: "likely start %s", ZH: "预计 %s 开始"}
)

// checkWithin is how long the cluster may take to check a job.
const checkWithin = 20 * time.Second

// checkSpec checks a job by its specification alone, without asking the cluster.
func checkSpec(c *ops.Call, in *launch.SubmitIn) (problems []rules.Problem, err error) {
	s, err := launch.Resolve(c, in.SpecIn)
	if err != nil {
		return nil, err
	}
	judged, err := launch.JudgeSpec(c, s)
	return judged.Problems, err
}

// judgeOnCluster checks a job with the plan, the cluster and the estimates.
func (b *Bot) judgeOnCluster(ctx context.Context, c *ops.Call, op ops.Op, in launch.SubmitIn) (v form.Verdict, s form.Summary) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	in.DryRun = true
	result, err := op.Run(ctx, consent.Preview(c), &in)
	planned, _ := result.(launch.SubmitOut)
	v = form.VerdictOf(c.Lang, err, planned.Problems)
	if err != nil {
		return v, s
	}
	s = form.Summary{Name: planned.Name, Cluster: planned.Cluster, Script: planned.Script, Digest: consent.Digest(planned.Script)}
	if e := planned.Earlier; e != nil && e.AsItIs != nil {
		s.Start = *e.AsItIs
	}
	s.Memory = memoryWords(ctx, c, in)
	if !v.Stops() {
		v.Summary = append(v.Summary, "*"+answer.Escape(textFits.In(c.Lang))+"*")
	}
	if full, err := launch.Resolve(c, in.SpecIn); err == nil {
		full = full.WithDefaults()
		s.Partition, s.Account, s.QOS = full.Partition, full.Account, full.QOS
		size := fmt.Sprintf("%d × %s", *full.Nodes, ops.Counted(*full.GPUsPerNode, "GPU").In(c.Lang))
		cost := textToLimit.In(c.Lang)
		if d, ok := slurm.ParseDuration(full.Time); full.Time != "" && (!ok || d <= 0) {
			cost = textNoEnd.In(c.Lang)
		} else if ok {
			cost = textFormCost.With(ops.CountedHours(float64(full.WorldSize())*d.Hours(), true)).In(c.Lang)
		}
		parts := []string{answer.Escape(size), answer.Escape(cost)}
		if s.Memory != "" {
			parts = append(parts, answer.Escape(s.Memory))
		}
		if !s.Start.IsZero() {
			parts = append(parts, fmt.Sprintf(textBegins.In(c.Lang), card.When(s.Start, "{date_short_pretty} {time}")))
		}
		v.Summary = append(v.Summary, strings.Join(parts, " · "))
	}
	return v, s
}

// memoryWords describes the estimate of a job's GPU memory; it is empty where there is none.
func memoryWords(ctx context.Context, c *ops.Call, in launch.SubmitIn) string {
	m, _ := operations.Run[launch.MemoryOut](ctx, c, "memory", &launch.MemoryIn{SpecIn: in.SpecIn}) // on an error there is no estimate
	switch {
	case m.TotalGiB == 0:
		return ""
	case m.GPUGiB > 0:
		return fmt.Sprintf(textMemoryOf.In(c.Lang), m.TotalGiB, m.GPUGiB, m.LowGiB, m.HighGiB)
	}
	return fmt.Sprintf(textMemory.In(c.Lang), m.TotalGiB, m.LowGiB, m.HighGiB)
}

// checkOnCluster checks a submitted form on the cluster, and shows what would be submitted, or
// the form again with the problems at its fields.
func (b *Bot) checkOnCluster(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	meta, c := b.readMeta(ctx, &a)
	summary, id, verdict := b.confirmation(ctx, a, c, meta)
	v := form.ConfirmView(summary, id, c.Lang)
	if verdict.Stops() {
		v = form.View(b.formState(ctx, a, c, meta, a.Fields, verdict), c.Lang)
	}
	a.Hash = "" // the present view is CheckingView, which came after the one with that hash
	b.updateView(ctx, a, v)
	return nil
}

// confirmation returns what the person is asked to confirm for a form's job, and the id of the
// held call; id is empty where the verdict prevents the submission.
func (b *Bot) confirmation(ctx context.Context, a incoming.Ask, c *ops.Call, meta formMeta) (summary form.Summary, id string, v form.Verdict) {
	op, t, in, errs := b.formCall(ctx, a, c, meta)
	if errs != nil {
		return summary, "", form.ErrorVerdict(errs)
	}
	if v, summary = b.judgeOnCluster(ctx, c, op, *in); v.Stops() {
		return summary, "", v
	}
	if r, stop, err := consent.Of(ctx, c, op, in); err == nil && stop == nil {
		summary.Headline, summary.Warnings, summary.Since = r.Headline.In(c.Lang), r.Warnings, string(r.Since)
		summary.Changes = r.ChangesIn(c.Lang)
	}
	summary.Approval = b.needsApproval(c, op, in).In(c.Lang)
	a.Kind, a.Response, a.Callback = incoming.AsButton, "", "" // the answer goes to the channel or directly to the person
	id, err := b.hold(ctx, heldCall{Call: t, Ask: a, Digest: summary.Digest})
	if err != nil {
		b.log.Error("slack: form", "err", err)
		return summary, "", form.VerdictOf(c.Lang, err, nil)
	}
	return summary, id, v
}

// formErrors returns the problems of a form that can be found without asking the cluster.
func (b *Bot) formErrors(ctx context.Context, a incoming.Ask, c *ops.Call, meta formMeta) map[string]string {
	_, _, in, errs := b.formCall(ctx, a, c, meta)
	if errs != nil {
		return errs
	}
	if problems, err := checkSpec(c, in); err != nil || rules.Blocking(problems) {
		return form.AtFields(c.Lang, err, problems)
	}
	return nil
}

// updateView redraws the modal of a. It is not queued and not repeated: a modal that was closed
// meanwhile needs no update.
func (b *Bot) updateView(ctx context.Context, a incoming.Ask, v slack.ModalViewRequest) {
	api, err := b.app.Client(ctx, a.Team)
	if err == nil {
		_, err = api.UpdateViewContext(ctx, v, "", a.Hash, a.View)
	}
	if err != nil && !strings.Contains(err.Error(), "hash_conflict") {
		b.log.Warn("slack: form not drawn anew", "err", err)
	}
}
