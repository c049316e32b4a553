package bot

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textNoRemedy  = lang.Text{EN: "no fix is known that could be applied to this job automatically", ZH: "没有可以自动应用的修复"}
	textAfter     = lang.Text{EN: "one more job of this specification, which waits for the end of ", ZH: "按同一规格再提交一个作业，等待以下作业结束："}
	textReplaces  = lang.Text{EN: "takes the place of the waiting job ", ZH: "替换排队中的作业 "}
	textRunsAgain = lang.Text{EN: "job %s has been put back into the queue since and runs again; a second job would run beside it", ZH: "作业 %s 之后已重新排队并再次运行；再提交一个会同时运行"}
	textEndFirst  = lang.Text{EN: "`cancel %s` ends it; then press the button again", ZH: "先用 `cancel %s` 结束它，再点击该按钮"}
	textNoneAfter = lang.Text{EN: "job %s has ended (%s): nothing waits for its end any more", ZH: "作业 %s 已结束（%s）：后续作业无需再等待它结束"}
	textAgainFix  = lang.Text{EN: "“Change and resubmit” on its card submits it again", ZH: "卡片上的“修改并重新提交”可再次提交该作业"}
	textChainLate = lang.Text{EN: "this chain has not started, so its length is still set by its specification", ZH: "该作业链尚未开始，其长度仍由规格决定"}
	textChainFix  = lang.Text{EN: "cancel it and submit it with a larger chain", ZH: "取消后以更大的 chain 重新提交"}
)

// applyFix submits a failed job again with the change that its diagnosis suggests. The
// confirmation lists what is changed.
func (b *Bot) applyFix(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	cluster, id, _ := strings.Cut(a.Value, "/")
	// Reading the specification checks the rights.
	if _, err := b.specOfJob(ctx, c, cluster, slurm.JobID(id)); err != nil {
		return b.reply.Doc(a, answer.Error(err, c.Lang), false)
	}
	var r launch.Remedy
	if ok, err := b.cfg.Store.Get(ctx, record.Remedy, a.Value, b.now(), &r); err != nil || !ok {
		return b.reply.Doc(a, answer.Error(&ops.Error{Code: ops.NotFound, Message: textNoRemedy, Fix: lang.Text{EN: "diagnose %s", ZH: "diagnose %s"}.With(id)}, c.Lang), false)
	}
	t := typed.Call{Cluster: cluster}
	for _, x := range r.Changes {
		t.Note = append(t.Note, x.In(c.Lang))
	}
	return b.submitInstead(ctx, a, c, slurm.JobID(id), r.Spec, t)
}

// submitInstead submits a specification in the place of a job whose end a message showed. Where
// Slurm has put that job back into the queue since, it is cancelled, since it would run as well;
// where it runs again, nothing is submitted beside it.
func (b *Bot) submitInstead(ctx context.Context, a incoming.Ask, c *ops.Call, id slurm.JobID, spec any, t typed.Call) []store.SlackMessage {
	_, now, err := c.Job(ctx, t.Cluster, id)
	switch {
	case err != nil && ops.AsError(err).Code != ops.NotFound: // one that Slurm has forgotten has ended
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	case err == nil && now.State == slurm.Pending:
		t.Note = append(t.Note, textReplaces.In(c.Lang)+string(id))
		t.Then = "cancel " + string(id) + " --yes"
	case err == nil && !now.State.Ended():
		return b.reply.Doc(a, answer.Error(&ops.Error{Code: ops.Failed, Field: "job", Message: textRunsAgain.With(id), Fix: textEndFirst.With(id)}, c.Lang), false)
	}
	return b.submitSpec(ctx, a, c, spec, t)
}

// extendChain submits one more job to run after a job that was submitted here, and after those
// that extend it already. A chain's running link has queued the next link by itself; there,
// that waiting link is replaced by the first link of a longer chain.
func (b *Bot) extendChain(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	cluster, id, _ := strings.Cut(a.Value, "/")
	spec, refused := b.specOfJob(ctx, c, cluster, slurm.JobID(id))
	if refused != nil {
		return b.reply.Doc(a, answer.Error(refused, c.Lang), false)
	}
	after := slurm.JobID(id)
	if _, now, err := c.Job(ctx, cluster, after); err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	} else if now.State.Ended() { // a message from before its end
		how := lang.Text{EN: card.State(now.State, lang.EN), ZH: card.State(now.State, lang.ZH)}
		ended := &ops.Error{Code: ops.Failed, Field: "job", Message: textNoneAfter.With(id, how), Fix: textAgainFix}
		return b.reply.Doc(a, answer.Error(ended, c.Lang), false)
	}
	t := typed.Call{Cluster: cluster}
	if links, chained := spec["chain"].(uint64); chained && links > 1 {
		waiting, err := b.nextLink(ctx, c, cluster, after)
		if err != nil {
			return b.reply.Doc(a, answer.Error(err, c.Lang), false)
		}
		// The new job counts its links from 1 again: it has the remaining links, and one more.
		spec["chain"] = links
		t.Note = append(t.Note, textReplaces.In(c.Lang)+string(waiting))
		t.Then = "cancel " + string(waiting) + " --yes"
	} else {
		var last slurm.JobID
		if ok, err := b.cfg.Store.Get(ctx, record.Longer, a.Value, b.now(), &last); err == nil && ok {
			after = last
		}
	}
	spec["dependency"] = "afterany:" + string(after)
	delete(spec, "begin")
	t.Note = append([]string{textAfter.In(c.Lang) + string(after)}, t.Note...)
	t.Longer = a.Value
	return b.submitSpec(ctx, a, c, spec, t)
}

// nextLink returns the waiting job that a chain's running first link has queued.
func (b *Bot) nextLink(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID) (slurm.JobID, *ops.Error) {
	late := &ops.Error{Code: ops.Failed, Field: "job", Message: textChainLate, Fix: textChainFix}
	cl, ok := c.Clusters[cluster]
	if !ok {
		return "", late
	}
	now, err := cl.Job(ctx, id)
	if err != nil {
		return "", ops.AsError(err)
	}
	jobs, err := cl.Jobs(ctx, slurm.Filter{User: now.User, States: []slurm.State{slurm.Pending}})
	if err != nil {
		return "", ops.AsError(err)
	}
	i := slices.IndexFunc(jobs, func(j slurm.Job) bool {
		return j.Name == now.Name && j.ID != id && strings.HasPrefix(j.Reason, "Dependency")
	})
	if now.State != slurm.Running || i < 0 {
		return "", late
	}
	return jobs[i].ID, nil
}

// noteExtension stores the last of the jobs that extend the job of.
func (b *Bot) noteExtension(ctx context.Context, of string, id slurm.JobID) {
	b.warn("chain", b.cfg.Store.Put(ctx, record.Longer, of, id, b.now().Add(60*24*time.Hour)), "job", id)
}

// submitSpec submits a specification that a button made, after a confirmation.
func (b *Bot) submitSpec(ctx context.Context, a incoming.Ask, c *ops.Call, spec any, t typed.Call) []store.SlackMessage {
	op, ok := operations.Lookup("submit")
	if !ok {
		return nil
	}
	if err := b.mayHere(a, op); err != nil {
		return b.reply.Doc(a, answer.Error(err, c.Lang), false)
	}
	raw, err := json.Marshal(spec) // JSON is YAML
	if err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	t.Op, t.Blocks, t.Key = op.Name, []string{string(raw)}, a.Key
	return b.run(ctx, a, c, op, t)
}
