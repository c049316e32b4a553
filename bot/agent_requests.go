package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// The actions of the buttons below an agent's request.
const (
	actAgentYes = "agent_yes" // value: the approval's id
	actAgentNo  = "agent_no"
)

var (
	textAgentAsks = lang.Text{EN: "An agent asks for your approval", ZH: "智能体申请审批"}
	textAgent     = lang.Text{EN: "Agent", ZH: "智能体"}
	textAgentFrom = lang.Text{EN: "Comes from", ZH: "来源"}
	textAgentYes  = lang.Text{EN: "Approved: the agent's next call does it", ZH: "已批准：智能体再次调用即执行"}
	textAgentNo   = lang.Text{EN: "Declined: nothing was done", ZH: "已拒绝：没有执行任何操作"}
	textDecidedBy = lang.Text{EN: "Decided by", ZH: "审批人"}
	textYourAgent = lang.Text{EN: "Your agent's %s was decided", ZH: "您的智能体申请的 %s 已有结果"}
)

// pollInterval is the time between two looks at the requests and notices in the store.
const pollInterval = 2 * time.Second

// pollLoop shows people in Slack what other parts of the service have stored for them: agents'
// calls that wait for approval, and notices about jobs.
func (b *Bot) pollLoop(ctx context.Context) {
	seen, moved := map[string]bool{}, false
	every(ctx, pollInterval, func() {
		var err error
		if !moved {
			moved, err = b.moveRequests(ctx)
		}
		if err = errors.Join(err, b.poll(ctx, seen)); err != nil && ctx.Err() == nil {
			b.log.Error("slack: requests and notices", "err", err)
		}
	})
}

// poll queues messages for new requests and notices. A message's key keeps it from being
// queued twice; seen only saves work.
func (b *Bot) poll(ctx context.Context, seen map[string]bool) error {
	if b.cfg.Service.Store == nil {
		return nil
	}
	asked, err := b.cfg.Service.Approvals(ctx)
	if err != nil {
		return err
	}
	if len(seen) > 10_000 {
		clear(seen)
	}
	for _, r := range asked {
		if seen[r.ID] {
			continue
		}
		var w waitingRequest
		shown, err := b.cfg.Store.Get(ctx, record.Waiting, r.ID, b.now(), &w)
		if err != nil {
			return err
		}
		if len(w.Places) == 0 {
			w = waitingRequest{Agent: &r, Places: b.people.Deciders(ctx), Until: r.Until}
			if !shown || len(w.Places) > 0 {
				if err := b.awaits(ctx, r.ID, w); err != nil {
					return err
				}
			}
		}
		if err := b.cfg.Store.Enqueue(ctx, b.agentAsks(ctx, r, w.Places)...); err != nil {
			return err
		}
		seen[r.ID] = len(w.Places) > 0 // else a group has no members by now, or Slack does not tell
	}
	if err := b.closeOld(ctx, asked); err != nil {
		return err
	}
	told, err := b.cfg.Service.Notices(ctx)
	if err != nil {
		return err
	}
	for _, n := range told {
		if err := b.news.Notify(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func agentKey(id string, p card.Place) string { return "agent/" + id + at(p) }

// at ends the key of a request's message in a place.
func at(p card.Place) string {
	key := "@" + p.Team + "/" + p.Channel
	if p.Moved > 0 {
		key += "#" + strconv.Itoa(p.Moved)
	}
	return key
}

// langAt returns the language of the person to whom a place's messages go.
func (b *Bot) langAt(ctx context.Context, p card.Place) lang.Lang {
	return b.people.Settings(ctx, p.Team, p.Channel).LangOr(lang.EN)
}

// agentAsks returns the message with the two buttons, one for each place. A request that is
// longer than a message continues in its thread.
func (b *Bot) agentAsks(ctx context.Context, r ops.Approval, places []card.Place) (owed []store.SlackMessage) {
	for _, p := range places {
		l := b.langAt(ctx, p)
		rendered := answer.Render(agentDoc(r, l), l)
		above, more := aboveButtons(rendered)
		bs := slices.Concat(above, agentRow(r, l))
		key := agentKey(r.ID, p)
		owed = append(owed, b.out.Owe(key, key,
			outbox.Message{Do: outbox.Post, Team: p.Team, Channel: p.Channel, Text: rendered.Text, Blocks: answer.BlocksJSON(bs)}))
		owed = append(owed, b.inThread(key, p, rendered.Text, more, rendered.Files)...)
	}
	return owed
}

// aboveButtons returns the blocks of a request's first message that leave room for its
// buttons, and the messages that continue it.
func aboveButtons(r answer.Rendered) (above []slack.Block, more [][]slack.Block) {
	first := r.Messages[0]
	fit := min(len(first), answer.MaxBlocks-2)
	if above = first[:fit]; fit < len(first) {
		more = append(more, first[fit:])
	}
	return above, append(more, r.Messages[1:]...)
}

// agentRow says until when a request can be decided, above its two buttons.
func agentRow(r ops.Approval, l lang.Lang) []slack.Block {
	return []slack.Block{timeLine(textEnds, r.Until, l), approvalRow(actAgentYes, actAgentNo, r.ID, l)}
}

// agentDoc says what an agent wants to do, for whom, and why that needs approval.
func agentDoc(r ops.Approval, l lang.Lang) view.Doc {
	var fs []view.Fact
	if r.Who.Agent != "" {
		fs = append(fs, view.Fact{Name: textAgent.In(l), Value: r.Who.Agent})
	}
	fs = append(fs,
		view.Fact{Name: people.ActsAs.In(l), Value: r.Who.User},
		view.Fact{Name: textAgentFrom.In(l), Value: string(r.Who.Surface) + " " + r.Who.ID})
	if r.Why != "" {
		fs = append(fs, view.Fact{Name: textWhy.In(l), Value: r.Why})
	}
	if r.Reason != "" {
		fs = append(fs, view.Fact{Name: textWhyNot.In(l), Value: r.Reason})
	}
	return view.Doc{Title: textAgentAsks.In(l), Tone: view.Warn, Sections: slices.Concat([]view.Section{{Facts: fs}}, r.Shown)}
}

// declinePressed asks for the reason first. Where no form can be opened, it declines without a
// reason.
func (b *Bot) declinePressed(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	if b.askReason(ctx, a, viewAgentDecline, b.people.LangOf(ctx, a)) {
		return nil // the form's answer decides
	}
	return b.decide(ctx, a, false)
}

// decide records an operator's decision, and edits the request in every place that shows it.
func (b *Bot) decide(ctx context.Context, a incoming.Ask, yes bool) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	// The request is taken off the waiting ones first, so that closeOld does not find it decided
	// by somebody who is unknown here.
	var w waitingRequest
	waits, err := b.cfg.Store.Take(ctx, record.Waiting, a.Value, b.now(), &w)
	b.warn("request", err, "id", a.Value)
	r, err := b.cfg.Service.Decide(ctx, a.Value, c.Who, a.Team+"/"+a.User, yes, a.Fields[reasonField])
	if err != nil {
		if waits {
			b.warn("request", b.awaits(ctx, a.Value, w), "id", a.Value)
		}
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	if !waits {
		w.Places = b.people.Deciders(ctx)
	}
	title, tone := textAgentYes, view.Good
	if !yes {
		title, tone = textAgentNo, view.Bad
	}
	// An edit notifies nobody, so this mention only names the operator.
	owed := b.closeAgentCards(ctx, r, w.Places, title, tone, func(l lang.Lang) []slack.Block { return []slack.Block{personLine(textDecidedBy, a.User, l)} })
	return append(owed, b.tellAgentsPerson(ctx, r, title, tone, a)...)
}

// closeAgentCards takes the buttons off an agent's request wherever it is shown, and says what
// became of it.
func (b *Bot) closeAgentCards(
	ctx context.Context, r ops.Approval, places []card.Place, title lang.Text, tone view.Tone, below func(lang.Lang) []slack.Block,
) (owed []store.SlackMessage) {
	for _, p := range places {
		l := b.langAt(ctx, p)
		doc := agentDoc(r, l)
		doc.Title, doc.Tone = title.In(l), tone
		rendered := answer.Render(doc, l)
		above, _ := aboveButtons(rendered)
		bs := slices.Concat(above, below(l))
		key := agentKey(r.ID, p)
		owed = append(owed, b.out.Owe(key+"/decided", key,
			outbox.Message{Do: outbox.Update, Team: p.Team, Ref: key, Text: rendered.Text, Blocks: answer.BlocksJSON(bs)}))
	}
	return owed
}

// tellAgentsPerson tells the people for whom the agent works what became of its request, unless
// they have decided themselves.
func (b *Bot) tellAgentsPerson(ctx context.Context, r ops.Approval, title lang.Text, tone view.Tone, by incoming.Ask) (owed []store.SlackMessage) {
	for _, who := range b.people.PeopleOf(ctx, r.Who.User) {
		if who.Channel == by.User && (who.Team == "" || who.Team == by.Team) {
			continue
		}
		l := b.langAt(ctx, who)
		told := answer.Render(view.Doc{Title: fmt.Sprintf(textYourAgent.In(l), r.Op), Tone: tone, Sections: []view.Section{{Text: title.In(l)}}}, l)
		owed = append(owed, b.out.Owe(agentKey(r.ID, who)+"/told", "t/"+who.Channel,
			outbox.Message{Do: outbox.Post, Team: who.Team, Channel: who.Channel, Text: told.Text, Blocks: answer.BlocksJSON(told.Messages[0])}))
	}
	return owed
}
