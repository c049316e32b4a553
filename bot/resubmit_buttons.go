package bot

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

var textNoSpec = lang.Text{
	EN: "job %s was not submitted through megatron-ops, so its specification is not known",
	ZH: "作业 %s 不是通过 megatron-ops 提交的，没有它的规格",
}

var textNoBadNode = lang.Text{EN: "no node is blamed for job %s any more", ZH: "作业 %s 已没有需要排除的节点"}

var textFormOld = lang.Text{
	EN: "this form was begun more than a day ago, and what it does not show is gone; close it, and begin again from the job or recipe",
	ZH: "该表单打开已超过一天，其中未显示的内容已失效；请关闭后从原作业或配方重新开始",
}

// A formBase is the specification that a form started from. The form shows its most used fields
// and keeps the others.
type formBase struct {
	Owner string `json:"owner"` // team/user; another person's form may not use it
	Spec  string `json:"spec"`  // YAML
}

// changeAndResubmit opens the form with the specification of a job.
func (b *Bot) changeAndResubmit(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	cluster, id, _ := strings.Cut(a.Value, "/")
	spec, err := b.specOfJob(ctx, c, cluster, slurm.JobID(id))
	if err != nil {
		return b.reply.Doc(a, answer.Error(err, c.Lang), false)
	}
	key, kept := b.storeBase(ctx, a, spec)
	if kept != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(kept), c.Lang), false)
	}
	return b.openFormWith(ctx, a, c, form.FieldsOfSpec(spec), key)
}

// resubmitWithoutNodes submits a job again with the nodes excluded that the diagnosis named.
func (b *Bot) resubmitWithoutNodes(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	job, nodes, _ := strings.Cut(a.Value, " ")
	cluster, id, _ := strings.Cut(job, "/")
	spec, err := b.specOfJob(ctx, c, cluster, slurm.JobID(id))
	if err != nil {
		return b.reply.Doc(a, answer.Error(err, c.Lang), false)
	}
	if nodes == "" {
		k, _, _ := b.news.Card(ctx, cluster, slurm.JobID(id)) // without a card there are no nodes either
		if nodes = hostlist.Compress(k.News.Exclude); nodes == "" {
			return b.reply.Doc(a, answer.Error(&ops.Error{Code: ops.NotFound, Field: "job", Message: textNoBadNode.With(id)}, c.Lang), false)
		}
	}
	if had, _ := spec["exclude"].(string); had != "" {
		nodes = had + "," + nodes
	}
	spec["exclude"] = nodes
	return b.submitInstead(ctx, a, c, slurm.JobID(id), spec, typed.Call{Cluster: cluster})
}

// specOfJob returns the specification of a job, for its owner and for operators.
func (b *Bot) specOfJob(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID) (map[string]any, *ops.Error) {
	unknown := &ops.Error{Code: ops.NotFound, Field: "job", Message: textNoSpec.With(id)}
	sub, err := c.FindSubmission(ctx, cluster, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, unknown
	case err != nil:
		return nil, ops.AsError(err)
	}
	if sub.Owner != c.Who.User && !c.Who.Operator || c.Who.User == "" {
		return nil, &ops.Error{Code: ops.NotAllowed, Field: "job", Message: lang.Text{EN: "job %s belongs to %s", ZH: "作业 %s 属于 %s"}.With(id, sub.Owner)}
	}
	// JSON is YAML, and the YAML reader does not turn whole numbers into floats.
	var spec map[string]any
	if err := yaml.Unmarshal(sub.Spec, &spec); err != nil {
		return nil, ops.AsError(err)
	}
	return spec, nil
}

// overBase applies the form's fields to the specification that the form started from. It is an
// error if that is gone: a job without what the form does not show would be another job.
func (b *Bot) overBase(ctx context.Context, a incoming.Ask, key string, typed map[string]any) (map[string]any, error) {
	if key == "" {
		return typed, nil
	}
	var began formBase
	ok, err := b.cfg.Store.Get(ctx, record.Base, key, b.now(), &began)
	if err != nil {
		return nil, err
	}
	if !ok || began.Owner != a.Team+"/"+a.User {
		return nil, &ops.Error{Code: ops.NotFound, Field: form.Fields[0].Name, Message: textFormOld}
	}
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(began.Spec), &spec); err != nil {
		return nil, err
	}
	had := form.FieldsOfSpec(spec)
	for _, f := range form.Fields {
		if !f.TooLong(had[f.Name]) { // else the form did not have it
			delete(spec, f.Name)
		}
	}
	maps.Copy(spec, typed)
	return spec, nil
}

// withLong returns a form's values with those of the specification that it started from which it
// cannot show.
func (b *Bot) withLong(ctx context.Context, a incoming.Ask, base string, values map[string]string) map[string]string {
	spec, err := b.overBase(ctx, a, base, nil)
	if err != nil {
		return values // the check of the form says so
	}
	had := form.FieldsOfSpec(spec)
	whole := map[string]string{}
	maps.Copy(whole, values)
	for _, f := range form.Fields {
		if f.TooLong(had[f.Name]) {
			whole[f.Name] = had[f.Name]
		}
	}
	return whole
}
