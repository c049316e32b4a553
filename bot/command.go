package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/bot/wording"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/answers"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// command answers the slash command /megatron, and buttons whose value is a command.
func (b *Bot) command(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	a.Text = b.namePeople(ctx, a)
	t := typed.Read(a.Text)
	c := b.people.Call(ctx, a)
	words, f := typed.TakeFlags(typed.Unglue(t.Words))
	f.Share = f.Share || a.Share
	if len(words) == 0 && len(t.Blocks) > 0 {
		return b.examine(ctx, a, c, paste{"message", strings.Join(t.Blocks, "\n")}, nil, f)
	}
	if len(words) == 0 {
		return b.start(ctx, a, c)
	}
	if d, ok := help.OnceMore(words, c.Lang); ok {
		return b.reply.Doc(a, d, false)
	}
	name, ok := typed.Resolve(words[0])
	if name != "ask" {
		if owed, done := b.askedOfJob(ctx, a, c, words, f); done {
			return owed
		}
	}
	if ok && !readsAsCommand(name, words[1:], t) { // such as: list my jobs
		if owed, done := b.answerWanted(ctx, a, c, f); done {
			return owed
		}
	}
	switch {
	case ok && (lang.Of(words[0]) != lang.ZH || !typed.IsQuestion(a.Text, words) || readsAsCommand(name, words[1:], t)):
		// A Chinese question may start with the word of a command: 显存 不够 怎么办.
		return b.perform(ctx, a, c, name, words[1:], t, f)
	case len(words) == 1 && slurm.IsJobID(words[0]):
		return b.perform(ctx, a, c, "status", words, t, f)
	case typed.IsQuestion(a.Text, words):
		if owed, done := b.answerSentence(ctx, a, c, t, f); done {
			return owed
		}
		return b.perform(ctx, a, c, "ask", nil, typed.Text{Rest: t.Whole(), Blocks: t.Blocks}, f)
	}
	return b.reply.Doc(a, help.Unknown(words[0], c.Lang, words[1:]...), false)
}

// askedOfJob answers a sentence about one job; done is false for any other sentence.
func (b *Bot) askedOfJob(ctx context.Context, a incoming.Ask, c *ops.Call, words []string, f typed.Flags) (owed []store.SlackMessage, done bool) {
	name, id, ok := typed.AboutJob(a.Text)
	if !ok {
		var job jobRef
		if name, job, ok = b.aboutJob(ctx, a, c, words); !ok {
			return nil, false
		}
		if id = string(job.ID); id == "" {
			return b.noLastJob(ctx, a, c), true
		}
		f.Cluster = cmp.Or(f.Cluster, job.Cluster)
	}
	return b.askedOf(ctx, a, c, name, []string{id}, f), true
}

// askedOf does what a sentence asks of jobs.
func (b *Bot) askedOf(ctx context.Context, a incoming.Ask, c *ops.Call, name string, jobs []string, f typed.Flags) []store.SlackMessage {
	switch name {
	case "compare":
	case typed.Again:
		return b.reply.Doc(a, help.Reruns(onCluster(jobs[0], f.Cluster, c), c.Lang), false)
	case "logs":
		jobs = []string{jobs[0], "--tail", "20"}
	case "memory": // of the specification that the job was submitted with
		jobs = []string{"--from", jobs[0]}
	default:
		jobs = jobs[:1]
	}
	return b.perform(ctx, a, c, name, jobs, typed.Text{}, f)
}

// onCluster names a job in a command, with its cluster where that is another than the default.
func onCluster(job, cluster string, c *ops.Call) string {
	if cluster == "" || cluster == c.Default {
		return job
	}
	return job + " --cluster " + cluster
}

// applyFlags applies the flags for the language and the form of the answer; err names a form
// that answers do not have.
func applyFlags(c *ops.Call, f typed.Flags) (err *ops.Error) {
	c.Lang = cmp.Or(f.Lang, c.Lang)
	if f.Output != "" {
		err = ops.OutputError(f.Output)
	}
	return err
}

// perform runs the operation, or the bot's own command, of that name.
func (b *Bot) perform(ctx context.Context, a incoming.Ask, c *ops.Call, name string, words []string, t typed.Text, f typed.Flags) []store.SlackMessage {
	if name != "ask" {
		var err *ops.Error
		if words, err = peopleIn(c, name, words); err != nil {
			return b.reply.Doc(a, answer.Error(err, c.Lang), false)
		}
	}
	if slices.Contains(typed.OwnWords, name) {
		return b.ownCommand(ctx, a, c, name, words, f)
	}
	op, ok := operations.Lookup(name)
	if !ok {
		return b.reply.Doc(a, help.Unknown(name, c.Lang), false)
	}
	if name == "ask" {
		f.Output = "" // the question may be about that flag
	}
	if err := applyFlags(c, f); err != nil {
		return b.reply.Doc(a, answer.Error(err, c.Lang), false)
	}
	if name == "submit" && len(words) == 0 && len(t.Blocks) == 0 && c.Who.User != "" && !c.Who.ReadOnly {
		return b.openForm(ctx, a, c)
	}
	if err := b.mayHere(a, op); err != nil {
		return b.reply.Doc(a, answer.Error(err, c.Lang), false)
	}
	if slices.Contains(takeText, name) && len(words) == 0 && len(t.Blocks) == 0 && b.openPaste(ctx, a, c) {
		return nil
	}
	if a.Open && op.Name != "ask" {
		f.Share = false
	}
	c.Confirmed = f.Yes
	if op.Effect != ops.Read && c.Who.User == "" && !c.Who.ReadOnly || op.Effect == ops.Read && !op.Closed && !b.people.MayRead(a, c) {
		return b.reply.NotLinked(a, c.Lang)
	}
	words, owed := b.nameJob(ctx, a, c, op, words, &f)
	if owed != nil {
		return owed
	}
	if owed, ok := b.alreadyDiagnosed(ctx, a, c, op, words); ok {
		return owed
	}
	if f.Cluster == "" {
		f.Cluster = b.people.Settings(ctx, a.Team, a.User).Cluster
	}
	return b.run(ctx, a, c, op, typed.Call{
		Op: op.Name, Words: words, Blocks: t.Blocks, Rest: t.Rest, Key: a.Key, Share: f.Share, Cluster: f.Cluster, JSON: f.Json, Page: f.Page,
	})
}

// mayHere refuses an operation that is not allowed in this place for anybody.
func (b *Bot) mayHere(a incoming.Ask, op ops.Op) *ops.Error {
	if a.Foreign && op.Name != "ask" {
		return &ops.Error{Code: ops.NotAllowed, Message: textForeign}
	}
	open := b.cfg.Policy.Channels
	if op.Effect != ops.Read && len(open) > 0 && !a.Direct && a.Channel != "" && !slices.Contains(open, a.Channel) {
		return &ops.Error{Code: ops.NotAllowed, Message: textChannel, Fix: textChannelFix}
	}
	return nil
}

// withTypedCommands returns e with the commands in its fix as one types them in this surface.
func withTypedCommands(e *ops.Error, c *ops.Call) *ops.Error {
	before := ""
	if c.Who.Surface == ops.Slack {
		before = "/megatron "
	}
	here := *e
	here.Fix = lang.Text{EN: strings.ReplaceAll(e.Fix.EN, "megatron-ops ", before), ZH: strings.ReplaceAll(e.Fix.ZH, "megatron-ops ", before)}
	return &here
}

// run runs the operation and answers with its result.
func (b *Bot) run(ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, t typed.Call) []store.SlackMessage {
	t = b.joinOpen(ctx, a, op, t)
	in, err := typed.Fill(op, t)
	if err != nil {
		d := answer.Error(withTypedCommands(ops.AsError(err), c), c.Lang)
		d.Next = []string{"help " + op.Name}
		return b.reply.Doc(a, d, false)
	}
	if q, ok := in.(*answers.AskIn); ok {
		q.Thread = b.conversationOf(ctx, a).Turns
		if a.Terminal == nil {
			c.Stream = b.reply.Words(ctx, a, t)
		}
	}
	if why := b.needsApproval(c, op, in); why.EN != "" {
		return b.askApproval(ctx, a, c, op, in, t, why)
	}
	ended := b.atWork(ctx, a, c, op, t)
	result, err := op.Run(ctx, c, in)
	ended()
	if err != nil {
		e := ops.AsError(err)
		if e.Confirm { // also where the person agreed to something else than what would be done
			return b.askFirst(ctx, a, c, op, t, e, result)
		}
		if owed, open := b.unknownOutcome(ctx, a, c, t, in); open {
			return owed
		}
		return b.reply.Doc(a, b.failed(withTypedCommands(e, c), result, c), t.Share)
	}
	return b.answerResult(ctx, a, c, op, in, result, t)
}

// failed draws an error, followed by what the operation found before it.
func (b *Bot) failed(e *ops.Error, result any, c *ops.Call) view.Doc {
	d := answer.Error(e, c.Lang)
	if v, ok := result.(view.Viewer); ok && !typed.IsZero(result) && e.Code == ops.Failed {
		part := v.View(c.Lang)
		d.Sections = append(d.Sections, part.Sections...)
		d.Next = part.Next
	}
	return d
}

func (b *Bot) answerResult(ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, in, result any, t typed.Call) []store.SlackMessage {
	v, ok := result.(view.Viewer)
	if !ok || t.JSON {
		return b.answerJSON(ctx, a, typed.Line(op.Name, t.Words), result, t.Share)
	}
	doc := wording.Doc(v, c.Lang)
	if _, ok := result.(joblogs.DiagnoseOut); ok {
		doc.Title = b.ofJob(ctx, a, c.Lang, cmp.Or(t.Cluster, c.Default), ops.TextNamed(in, "job"), doc.Title)
	}
	if q, ok := result.(answers.AskOut); ok {
		b.remember(ctx, a, func(x *conversation) {
			x.Turns = append(x.Turns, knowledge.Turn{Question: redact.Text(t.Rest), Answer: q.Answer.Answer})
		})
	}
	if job := ops.TextNamed(in, "job"); slurm.IsJobID(job) || slurm.IsStepID(job) {
		b.remember(ctx, a, func(x *conversation) { x.Job, x.Log = jobRef{cmp.Or(t.Cluster, c.Default), slurm.JobID(job)}, "" })
	} else if _, ok := result.(joblogs.DiagnoseOut); ok && job != "" {
		b.remember(ctx, a, func(x *conversation) { x.Job, x.Log = jobRef{}, job })
	}
	owed, ok := b.specialAnswer(ctx, a, c, t, in, result)
	if !ok {
		below := b.ratingRow(c, op, t)
		if !wording.NothingIn(result) {
			below = slices.Concat(reply.JoinRows(submitRow(c, t, result), shareRow(a, t, c.Lang)), below)
		}
		owed = b.reply.Doc(a, doc, t.Share, below...)
	}
	owed = append(owed, b.news.Follow(ctx, a, c, op, in, result)...)
	return append(owed, b.andThen(ctx, a, c, t, result)...)
}

func (b *Bot) answerJSON(ctx context.Context, a incoming.Ask, asked string, result any, share bool) []store.SlackMessage {
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return b.reply.Doc(a, b.internalError(ctx, a), false)
	}
	return b.reply.Doc(a, view.Doc{Title: asked, Sections: []view.Section{{Code: string(text)}}}, share)
}

// andThen does what was to follow a successful call.
func (b *Bot) andThen(ctx context.Context, a incoming.Ask, c *ops.Call, t typed.Call, result any) []store.SlackMessage {
	id := ops.TextNamed(result, "job_id")
	if t.Op == "submit" && id == "" {
		return nil // nothing was submitted
	}
	if t.Longer != "" {
		b.noteExtension(ctx, t.Longer, slurm.JobID(id))
	}
	words := strings.Fields(t.Then)
	if len(words) == 0 {
		return nil
	}
	op, ok := operations.Lookup(words[0])
	if !ok {
		return nil
	}
	a.Key, a.InPlace = a.Key+"/then", false
	next := *c
	next.Confirmed, next.Key = true, a.Key
	return b.run(ctx, a, &next, op, typed.Call{Op: op.Name, Words: words[1:], Key: a.Key, Cluster: t.Cluster})
}

func (b *Bot) button(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	action, _, _ := strings.Cut(a.Action, ":")
	if a.Callback == form.SubmitCallback {
		return b.formChanged(ctx, a, action)
	}
	switch action {
	case answer.ActRun:
		a.Text = a.Value
		return b.command(ctx, a)
	case answer.ActYes, answer.ActNo:
		return b.answered(ctx, a, action == answer.ActYes)
	}
	if action == card.ActMenu {
		// The value of a menu's entry is a button's action and value.
		a.Action, a.Value, _ = strings.Cut(a.Value, " ")
		if a.Action == card.ActMenu {
			return nil
		}
		return b.button(ctx, a)
	}
	if handle := b.buttonHandlers()[action]; handle != nil {
		return handle(ctx, a)
	}
	if a.View != "" {
		return nil // a field of a form
	}
	l := b.people.LangOf(ctx, a)
	return b.reply.Doc(a, view.Doc{Title: textOldButton.In(l), Tone: view.Warn, Next: []string{"help"}}, false)
}
