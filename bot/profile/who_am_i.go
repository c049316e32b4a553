package profile

import (
	"context"
	"fmt"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// Nobody is shown in place of a cluster user for a person who has none.
var Nobody = lang.Text{EN: "not linked: you can ask", ZH: "未绑定：只能提问"}

var (
	textYou      = lang.Text{EN: "You here", ZH: "您的身份"}
	textRights   = lang.Text{EN: "Rights", ZH: "权限"}
	textOperator = lang.Text{EN: "operator: may act on everybody's jobs", ZH: "管理员：可操作所有人的作业"}
	textOwner    = lang.Text{EN: "owner: may act on your own jobs", ZH: "普通用户：可操作自己的作业"}
	textViewer   = lang.Text{EN: "viewer: may look and ask", ZH: "只读：可查看和提问"}
	textProof    = lang.Text{EN: "Linked by", ZH: "绑定方式"}
	textByCode   = lang.Text{EN: "a code written on the cluster, %s", ZH: "集群上写入的一次性代码，%s"}
	textByOS     = lang.Text{EN: "you run this program; nothing has to be linked here", ZH: "本程序由您运行，这里无需绑定"}
	textByOp     = lang.Text{EN: "your operator's mapping", ZH: "管理员的映射"}
	textCluster  = lang.Text{EN: "Cluster", ZH: "集群"}
	textLanguage = lang.Text{EN: "Language", ZH: "语言"}
	textQuiet    = lang.Text{EN: "Quiet hours", ZH: "免打扰时段"}
	textDigest   = lang.Text{EN: "Daily digest", ZH: "每日摘要"}
	textAuto     = lang.Text{EN: "as you write", ZH: "跟随输入"}
	textNone     = lang.Text{EN: "none", ZH: "无"}
	textHow      = lang.Text{EN: "How", ZH: "用法"}
)

var (
	textWebLink  = lang.Text{EN: "Your link to the page", ZH: "您的网页链接"}
	textPageOnce = lang.Text{EN: "It signs you in once, within ten minutes. Do not share it.", ZH: "链接在十分钟内一次有效，用于以您的身份登录，请勿转发。"}
	textNoPage   = lang.Text{EN: "no page is served here", ZH: "这里没有提供网页服务"}
	textNoPageTo = lang.Text{EN: "an operator sets web.url in the configuration", ZH: "请管理员在配置中设置 web.url"}
)

// Page answers with a link that signs the person in to the page, and with the addresses to
// open then. Only they see it.
func (h *Handler) Page(ctx context.Context, a incoming.Ask, c *ops.Call, then ...view.Fact) []store.SlackMessage {
	switch {
	case c.Who.User == "":
		return h.cfg.Reply.NotLinked(a, c.Lang)
	case h.cfg.Page == nil || a.Terminal != nil:
		return h.cfg.Reply.Doc(a, answer.Error(&ops.Error{Code: ops.NotAllowed, Message: textNoPage, Fix: textNoPageTo}, c.Lang), false)
	}
	link, err := h.cfg.Page(ctx, c.Who)
	if err != nil {
		return h.cfg.Reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	sections := []view.Section{{Text: textPageOnce.In(c.Lang)}, {Code: link}, {Facts: then}}
	return h.cfg.Reply.Doc(a, view.Doc{Title: textWebLink.In(c.Lang), Sections: sections}, false)
}

// WhoAmI says who the person is here, and how that was proven.
func (h *Handler) WhoAmI(ctx context.Context, a incoming.Ask, c *ops.Call) view.Doc {
	l := c.Lang
	d := view.Doc{Title: textYou.In(l)}
	if a.Terminal != nil {
		d.Sections = []view.Section{{Facts: []view.Fact{
			{Name: people.ActsAs.In(l), Value: c.Who.User}, {Name: textProof.In(l), Value: textByOS.In(l)}, {Name: textRights.In(l), Value: textOwner.In(l)},
		}}}
		return d
	}
	fs := []view.Fact{{Name: "Slack", Value: a.Team + "/" + a.User}}
	if k, ok := h.cfg.People.Linked(ctx, a.Team, a.User); ok && !a.Foreign {
		how := textByOp.In(l)
		if k.How == "code" {
			how = fmt.Sprintf(textByCode.In(l), k.At.Format(time.DateOnly))
		}
		fs = append(fs, view.Fact{Name: people.ActsAs.In(l), Value: k.User}, view.Fact{Name: textProof.In(l), Value: how})
	} else {
		fs = append(fs, view.Fact{Name: people.ActsAs.In(l), Value: Nobody.In(l)})
		d.Next = []string{"link"}
	}
	right := textOwner
	switch {
	case c.Who.ReadOnly || c.Who.User == "":
		right = textViewer
	case c.Who.Operator:
		right = textOperator
	}
	d.Sections = []view.Section{{Facts: append(fs, view.Fact{Name: textRights.In(l), Value: right.In(l)})}}
	return d
}
