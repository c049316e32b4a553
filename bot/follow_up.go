package bot

import (
	"context"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// followUp answers a short question from the diagnosis, in the thread of a failed job or of
// logs that were diagnosed there: which node was it, is a retry worth it, has it happened
// before. ok is false for any other question, and for questions about a job's progress.
func (b *Bot) followUp(ctx context.Context, a incoming.Ask, c *ops.Call, text string) (owed []store.SlackMessage, ok bool) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, false
	}
	if _, isCommand := typed.Resolve(words[0]); isCommand && len(words) <= 2 {
		return nil, false
	}
	if _, wants := typed.WantedCommand(text); wants && len(words) > 2 {
		return nil, false
	}
	if a.Thread == "" || !typed.AsksOn(text) || !report.Asks(text) || !b.people.MayRead(a, c) {
		return nil, false
	}
	here, ok := b.jobHere(ctx, a)
	target := string(here.ID)
	if !ok {
		target = b.conversationOf(ctx, a).Log // for logs without a job, the logs answer every such question
	} else if name, other := typed.AskedOfIt(text); other && name != typed.Again {
		return nil, false
	}
	if target == "" || b.namesOther(ctx, a, c, text, here) {
		return nil, false
	}
	k, known, err := b.news.Card(ctx, here.Cluster, here.ID)
	if err != nil || here.ID != "" && card.ToneOf(b.stateOf(ctx, here, k)) != view.Bad {
		return nil, false
	}
	op, _ := operations.Lookup("diagnose")
	in := &joblogs.DiagnoseIn{Target: target, Question: text, OnCluster: ops.OnCluster{Cluster: here.Cluster}}
	defer b.atWork(ctx, a, c, op, typed.Call{Op: op.Name, Words: []string{target}, Cluster: here.Cluster, Share: true})()
	result, err := op.Run(ctx, c, in)
	d, isDiagnosis := result.(joblogs.DiagnoseOut)
	if err != nil || !isDiagnosis || d.Answer == "" {
		return nil, false
	}
	// The thread shows the headline and the rest of the diagnosis already.
	doc := view.Doc{Sections: []view.Section{{Text: d.Answer}}}
	if lines, isList := strings.CutPrefix(d.Answer, "- "); isList {
		doc.Sections[0] = view.Section{Items: strings.Split(lines, "\n- ")}
	}
	if name, _ := typed.AskedOfIt(text); name == typed.Again && here.ID != "" {
		doc.Next = help.Reruns(onCluster(string(here.ID), here.Cluster, c), c.Lang).Next
	}
	below := []slack.Block{feedback(op.Name, c.Lang)}
	if row := card.Buttons(k, c.Lang); known && row != nil && len(doc.Sections[0].Items) > 0 {
		below = append([]slack.Block{row}, below...)
	}
	return b.reply.Doc(a, doc, true, below...), true
}

// stateOf returns the state of the thread's job, which may have no card.
func (b *Bot) stateOf(ctx context.Context, job jobRef, k card.Card) slurm.State {
	if k.News.Job.ID != "" {
		return k.News.Job.State
	}
	j, err := b.cfg.Service.Reader(job.Cluster).Job(ctx, job.ID)
	if err != nil {
		return ""
	}
	return j.State
}

// namesOther reports whether a sentence names a job other than that of the thread.
func (b *Bot) namesOther(ctx context.Context, a incoming.Ask, c *ops.Call, text string, here jobRef) bool {
	if _, id, ok := typed.AboutJob(text); ok {
		return slurm.JobID(id) != here.ID
	}
	job, _, ok := b.askedOfNamed(ctx, a, c, text)
	return ok && job != here
}
