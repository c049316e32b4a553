package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
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
	seen, told, all := map[string]bool{}, map[string]bool{}, false
	settlers := settlers{room: make(chan struct{}, maxRequests)}
	defer settlers.Wait()
	every(ctx, pollInterval, func() {
		all = all || b.adoptAll(ctx, told)
		if err := b.poll(ctx, seen, &settlers); err != nil && ctx.Err() == nil {
			b.log.Error("slack: requests and notices", "err", err)
		}
	})
}

// poll queues messages for new requests and notices. A message's key keeps it from being
// queued twice; seen only saves work.
func (b *Bot) poll(ctx context.Context, seen map[string]bool, settlers *settlers) error {
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
		if seen[r.ID], err = b.place(ctx, r); err != nil {
			return err
		}
	}
	if err := b.closeOld(ctx, asked, settlers); err != nil {
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

// langAt returns the language of the person to whom a place's messages go.
func (b *Bot) langAt(ctx context.Context, p card.Place) lang.Lang {
	return b.people.Settings(ctx, p.Team, p.Channel).LangOr(lang.EN)
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
	return view.Doc{Title: textAgentAsks.In(l), Tone: view.Warn, Sections: slices.Concat([]view.Section{{Facts: fs}}, r.Shown)}
}

// agentsOutcome says what became of an agent's request. A decision that was not made in Slack may
// be consumed by now.
func (b *Bot) agentsOutcome(ctx context.Context, r ops.Approval, cards []requestCard, stored, over bool) []store.SlackMessage {
	switch {
	case stored && strings.Contains(r.Decided, "/"):
		title, tone := textAgentYes, view.Good
		if !r.Yes {
			title, tone = textAgentNo, view.Bad
		}
		// An edit notifies nobody, so this mention only names the operator.
		owed := b.closeCards(r, cards, title, tone, func(l lang.Lang) (said view.Section, below []slack.Block) {
			if r.Reason != "" {
				said.Facts = []view.Fact{{Name: textWhyNot.In(l), Value: r.Reason}}
			}
			return said, []slack.Block{decidedBy(r, l)}
		})
		return append(owed, b.tellAgentsPerson(ctx, r, title, tone)...)
	case over:
		return append(b.closeCards(r, cards, textAgentEnded, view.Warn, expiredAt(r)), b.tellAgentsPerson(ctx, r, textAgentEnded, view.Warn)...)
	case r.Decided == "":
		return b.closeCards(r, cards, textReplaced, view.Plain, nothingMore)
	}
	return b.closeCards(r, cards, textElsewhere, view.Plain, nothingMore)
}

// tellAgentsPerson tells the people for whom the agent works what became of its request, unless
// they have decided themselves.
func (b *Bot) tellAgentsPerson(ctx context.Context, r ops.Approval, title lang.Text, tone view.Tone) (owed []store.SlackMessage) {
	for _, who := range b.people.PeopleOf(ctx, r.Who.User) {
		if r.Decided == who.Team+"/"+who.Channel || who.Team == "" && strings.HasSuffix(r.Decided, "/"+who.Channel) {
			continue
		}
		l := b.langAt(ctx, who)
		said := view.Section{Text: l.Named(askedFor(r, l), title.In(l))}
		told := answer.Render(view.Doc{Title: fmt.Sprintf(textYourAgent.In(l), r.Op), Tone: tone, Sections: []view.Section{said}}, l)
		owed = append(owed, b.out.Owe(requestKey(r.ID, who)+"/told", "t/"+who.Channel,
			outbox.Message{Do: outbox.Post, Team: who.Team, Channel: who.Channel, Text: told.Text, Blocks: answer.BlocksJSON(told.Messages[0])}))
	}
	return owed
}
