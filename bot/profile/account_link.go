package profile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/linkproof"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

const codesPerHour = 6

// A linkCode is a one-time code that its person is to prove on the cluster.
type linkCode struct {
	Team string    `json:"team"`
	User string    `json:"user"`
	Code string    `json:"code"`
	At   time.Time `json:"at"`
}

const actLinked = "linked" // value: empty; the code is looked up by who presses

var (
	textLinkTitle = lang.Text{EN: "Prove which cluster user you are", ZH: "证明您的集群身份"}
	textLinkHow   = lang.Text{
		EN: "On a login node of the cluster, as yourself, run the command below within ten minutes. Then press the button. Do not run a code that somebody else sent you: it would make them you.",
		ZH: "请在十分钟内，用您自己的账号在集群登录节点上运行下面的命令，然后点按钮。切勿运行别人发给您的代码，否则对方将以您的身份操作。",
	}
	textLinkDone     = lang.Text{EN: "Done: you are `%s` on the cluster", ZH: "绑定成功：您在集群上的用户是 `%s`"}
	textLinkNotYet   = lang.Text{EN: "the code was not written on the cluster yet", ZH: "集群上还没有写入该代码"}
	textLinkOff      = lang.Text{EN: "Your operator links accounts here", ZH: "账户由管理员绑定"}
	textLinkOffFix   = lang.Text{EN: "Ask them to map your Slack id %s to your cluster user.", ZH: "请管理员把您的 Slack ID %s 映射到集群用户。"}
	textLinkBy       = lang.Text{EN: "your operator has mapped you to `%s`; only they can change that", ZH: "管理员已将您映射为 `%s`，只有管理员可以更改"}
	textLinkOften    = lang.Text{EN: "you have had many codes in the last hour", ZH: "您在一小时内申请的代码过多"}
	textLinkOftenFix = lang.Text{EN: "wait an hour, or ask an operator to map your Slack id", ZH: "请一小时后再试，或请管理员映射您的 Slack ID"}
	textPressed      = lang.Text{EN: "I have run it", ZH: "我已运行"}
	textUnlinked     = lang.Text{EN: "You are not linked to a cluster user any more", ZH: "已解除与集群用户的绑定"}
)

// Link starts linking an account, or finishes it where the code was proven meanwhile.
func (h *Handler) Link(ctx context.Context, a incoming.Ask, c *ops.Call) []store.SlackMessage {
	l := c.Lang
	if a.Terminal != nil {
		return h.cfg.Reply.Doc(a, h.WhoAmI(ctx, a, c), false)
	}
	if have, ok := h.cfg.People.Linked(ctx, a.Team, a.User); ok && have.How == "operator" {
		return h.cfg.Reply.Doc(a, view.Doc{Title: fmt.Sprintf(strings.ReplaceAll(textLinkBy.In(l), "`", ""), have.User)}, false)
	}
	if h.cfg.Policy.LinkProof == nil {
		doc := view.Doc{Title: textLinkOff.In(l), Sections: []view.Section{{Text: textLinkOffFix.With(a.User).In(l)}}}
		return h.cfg.Reply.Doc(a, doc, false)
	}
	var k linkCode
	waiting, err := h.cfg.Store.Get(ctx, record.Code, a.Team+"/"+a.User, h.cfg.Now(), &k)
	if err == nil && waiting {
		if owed, ok := h.prove(ctx, a, c, k); ok {
			return owed
		}
	} else {
		if !h.mayHaveCode(ctx, a) {
			return h.cfg.Reply.Doc(a, answer.Error(&ops.Error{Code: ops.NotAllowed, Message: textLinkOften, Fix: textLinkOftenFix}, l), false)
		}
		k = linkCode{Team: a.Team, User: a.User, Code: rand.Text(), At: h.cfg.Now()}
		if err := h.cfg.Store.Put(ctx, record.Code, a.Team+"/"+a.User, k, h.cfg.Now().Add(linkproof.Life)); err != nil {
			return h.cfg.Reply.Doc(a, answer.Error(ops.AsError(err), l), false)
		}
	}
	return h.cfg.Reply.Doc(a, linkDoc(k.Code, l), false, linkRow(l))
}

// linkDoc says how to prove one's cluster user.
func linkDoc(code string, l lang.Lang) view.Doc {
	return view.Doc{Title: textLinkTitle.In(l), Sections: []view.Section{{Text: textLinkHow.In(l)}, {Code: "megatron-ops link " + code, Lang: "bash"}}}
}

func linkRow(l lang.Lang) slack.Block {
	done := slack.NewButtonBlockElement(actLinked, "", answer.Label(textPressed.In(l)))
	done.Style = slack.StylePrimary
	return slack.NewActionBlock("", done)
}

// linkPressed looks for the proof of the code that was given to the person who pressed the
// button.
func (h *Handler) linkPressed(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := h.cfg.People.Call(ctx, a)
	var k linkCode
	waiting, err := h.cfg.Store.Get(ctx, record.Code, a.Team+"/"+a.User, h.cfg.Now(), &k)
	if err != nil || !waiting || h.cfg.Policy.LinkProof == nil {
		return h.Link(ctx, a, c)
	}
	if owed, ok := h.prove(ctx, a, c, k); ok {
		return owed
	}
	return h.cfg.Reply.Doc(a, answer.Error(&ops.Error{
		Code: ops.NotFound, Message: textLinkNotYet, Fix: lang.Text{EN: "megatron-ops link %s", ZH: "megatron-ops link %s"}.With(k.Code),
	}, c.Lang), false)
}

// prove links the person where the code is proven; ok is false while it is not.
func (h *Handler) prove(ctx context.Context, a incoming.Ask, c *ops.Call, k linkCode) (owed []store.SlackMessage, ok bool) {
	owner, err := h.cfg.Policy.LinkProof(ctx, k.Code, k.At)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		// A code whose proof was refused becomes invalid, so that an attacker has one attempt.
		_ = h.cfg.Store.Delete(ctx, record.Code, a.Team+"/"+a.User)
		h.cfg.Audit(ctx, c, "link", map[string]string{"slack": a.Team + "/" + a.User}, map[string]string{"refused": err.Error()})
		return h.cfg.Reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false), true
	}
	if err := h.cfg.Store.Put(ctx, record.Link, a.Team+"/"+a.User, people.Link{User: owner.Name, How: "code", At: h.cfg.Now()}, time.Time{}); err != nil {
		return h.cfg.Reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false), true
	}
	_ = h.cfg.Store.Delete(ctx, record.Code, a.Team+"/"+a.User)
	h.cfg.Audit(ctx, c, "link", map[string]string{"slack": a.Team + "/" + a.User}, map[string]string{"user": owner.Name})
	doc := view.Doc{Title: fmt.Sprintf(strings.ReplaceAll(textLinkDone.In(c.Lang), "`", ""), owner.Name), Tone: view.Good, Next: []string{"help", "list"}}
	return h.cfg.Reply.Doc(a, doc, false), true
}

// mayHaveCode reports whether the person may be given one more code in this hour, and counts
// it.
func (h *Handler) mayHaveCode(ctx context.Context, a incoming.Ask) bool {
	var given []time.Time
	key := a.Team + "/" + a.User
	if _, err := h.cfg.Store.Get(ctx, record.CodesGiven, key, h.cfg.Now(), &given); err != nil {
		return false
	}
	given = slices.DeleteFunc(given, func(at time.Time) bool { return h.cfg.Now().Sub(at) > time.Hour })
	if len(given) >= codesPerHour {
		return false
	}
	return h.cfg.Store.Put(ctx, record.CodesGiven, key, append(given, h.cfg.Now()), h.cfg.Now().Add(time.Hour)) == nil
}

// Unlink removes the link between a person and their cluster user.
func (h *Handler) Unlink(ctx context.Context, a incoming.Ask, c *ops.Call) []store.SlackMessage {
	if have, ok := h.cfg.People.Linked(ctx, a.Team, a.User); ok && have.How == "operator" {
		return h.cfg.Reply.Doc(a, view.Doc{Title: fmt.Sprintf(strings.ReplaceAll(textLinkBy.In(c.Lang), "`", ""), have.User)}, false)
	}
	if err := h.cfg.Store.Delete(ctx, record.Link, a.Team+"/"+a.User); err != nil {
		return h.cfg.Reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	h.cfg.Audit(ctx, c, "unlink", map[string]string{"slack": a.Team + "/" + a.User}, nil)
	return h.cfg.Reply.Doc(a, view.Doc{Title: textUnlinked.In(c.Lang)}, false)
}
