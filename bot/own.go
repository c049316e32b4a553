package bot

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// own answers the bot's own words.
func (b *Bot) own(ctx context.Context, a ask, c *ops.Call, name string, words []string, f flags) []store.SlackMessage {
	if a.Foreign && name != "help" && name != "whoami" {
		return b.reply(a, errorDoc(&ops.Error{Code: ops.NotAllowed, Message: textForeign.In(c.Lang)}, c.Lang), false)
	}
	switch name {
	case "help":
		topic := ""
		if len(words) > 0 {
			topic = words[0]
		}
		return b.reply(a, b.helpDoc(ctx, c, topic), f.share)
	case "link":
		return b.linkMe(ctx, a, c)
	case "unlink":
		return b.unlinkMe(ctx, a, c)
	case "whoami":
		return b.reply(a, b.whoamiDoc(ctx, a, c), false)
	case "settings":
		return b.setSettings(ctx, a, c, words)
	case "subscribe", "unsubscribe":
		return b.subscribe(ctx, a, c, cmp.Or(f.cluster, b.clusterOf(ctx, a)), words, name == "subscribe")
	case "mute", "unmute":
		return b.mute(ctx, a, c, cmp.Or(f.cluster, b.clusterOf(ctx, a)), words, name == "mute")
	}
	return b.reply(a, unknownDoc(name, c.Lang), false)
}

// buttons are the handlers of buttons that are no commands, by action.
var buttons = map[string]func(*Bot, context.Context, ask) []store.SlackMessage{
	actLinked: (*Bot).linkPressed,
}

var (
	textYou      = lang.Text{EN: "You here", ZH: "您的身份"}
	textNobody   = lang.Text{EN: "not linked: you can look and ask", ZH: "未绑定：只能查看和提问"}
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
	textNotify   = lang.Text{EN: "Notifications", ZH: "通知"}
	textQuiet    = lang.Text{EN: "Quiet hours", ZH: "免打扰时段"}
	textDigest   = lang.Text{EN: "Daily digest", ZH: "每日摘要"}
	textSettings = lang.Text{EN: "Your settings", ZH: "您的设置"}
	textAuto     = lang.Text{EN: "as you write", ZH: "跟随输入"}
	textNone     = lang.Text{EN: "none", ZH: "无"}
	textHow      = lang.Text{EN: "How", ZH: "用法"}
)

// whoamiDoc says who the person is here, and why.
func (b *Bot) whoamiDoc(ctx context.Context, a ask, c *ops.Call) view.Doc {
	l := c.Lang
	d := view.Doc{Title: textYou.In(l)}
	if a.local != nil {
		d.Sections = []view.Section{{Facts: []view.Fact{
			{Name: textActsAs.In(l), Value: c.Who.User}, {Name: textProof.In(l), Value: textByOS.In(l)}, {Name: textRights.In(l), Value: textOwner.In(l)},
		}}}
		return d
	}
	fs := []view.Fact{{Name: "Slack", Value: a.Team + "/" + a.User}}
	if k, ok := b.linked(ctx, a.Team, a.User); ok && !a.Foreign {
		how := textByOp.In(l)
		if k.How == "code" {
			how = fmt.Sprintf(textByCode.In(l), k.At.Format(time.DateOnly))
		}
		fs = append(fs, view.Fact{Name: textActsAs.In(l), Value: k.User}, view.Fact{Name: textProof.In(l), Value: how})
	} else {
		fs = append(fs, view.Fact{Name: textActsAs.In(l), Value: textNobody.In(l)})
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

// setSettings changes a person's settings by words: language zh, quiet
// 22:00-08:00, notify ends, digest on, cluster NAME.
func (b *Bot) setSettings(ctx context.Context, a ask, c *ops.Call, words []string) []store.SlackMessage {
	s := b.settings(ctx, a.Team, a.User)
	if len(words) > 0 {
		if err := s.set(words, c); err != nil {
			return b.reply(a, errorDoc(err, c.Lang), false)
		}
		if err := b.cfg.Store.Put(ctx, docSettings, a.Team+"/"+a.User, s, time.Time{}); err != nil {
			return b.reply(a, errorDoc(ops.AsError(err), c.Lang), false)
		}
	}
	l := c.Lang
	if s.Lang != "" {
		l = s.Lang
	}
	return b.reply(a, settingsDoc(s, l), false)
}

// set reads one setting.
func (s *settings) set(words []string, c *ops.Call) *ops.Error {
	value := strings.Join(words[1:], " ")
	bad := func(fix string) *ops.Error {
		return &ops.Error{Code: ops.BadInput, Field: words[0], Message: fmt.Sprintf("%q is not a value for it", value), Fix: fix}
	}
	switch strings.TrimLeft(words[0], "-") {
	case "lang", "language", "语言":
		l, ok := lang.Parse(value)
		switch {
		case ok:
			s.Lang = l
		case value == "auto":
			s.Lang = ""
		case strings.Contains(value, "中"):
			s.Lang = lang.ZH
		default:
			return bad("settings language en, zh or auto")
		}
	case "notify", "notifications", "通知":
		if value != "all" && value != "ends" && value != "none" {
			return bad("settings notify all, ends or none")
		}
		s.Notify = value
	case "quiet", "免打扰":
		from, to, zone, ok := parseQuiet(value)
		if !ok {
			return bad("settings quiet 22:00-08:00 Asia/Shanghai, or off")
		}
		s.QuietFrom, s.QuietTo, s.Zone = from, to, zone
	case "digest", "摘要":
		if value != "on" && value != "off" {
			return bad("settings digest on or off")
		}
		s.Digest = value == "on"
	case "cluster", "集群":
		if _, ok := c.Clusters[value]; !ok && value != "" {
			return bad("settings cluster and the name of one that is configured")
		}
		s.Cluster = value
	default:
		return &ops.Error{Code: ops.BadInput, Field: words[0], Message: "no such setting", Fix: "language, notify, quiet, digest, cluster"}
	}
	return nil
}

func parseQuiet(s string) (from, to int, zone string, ok bool) {
	if s == "off" || s == "" {
		return 0, 0, "", true
	}
	hours, zone, _ := strings.Cut(s, " ")
	a, z, _ := strings.Cut(strings.NewReplacer("–", "-", "—", "-", "~", "-").Replace(hours), "-")
	x, err1 := time.Parse("15:04", a)
	y, err2 := time.Parse("15:04", z)
	if _, err := time.LoadLocation(zone); err != nil || err1 != nil || err2 != nil {
		return 0, 0, "", false
	}
	return x.Hour()*60 + x.Minute(), y.Hour()*60 + y.Minute(), zone, true
}

// quiet reports whether a person should not be called now.
func (s settings) quiet(now time.Time) bool {
	if s.QuietFrom == s.QuietTo {
		return false
	}
	if loc, err := time.LoadLocation(s.Zone); err == nil {
		now = now.In(loc)
	}
	m := now.Hour()*60 + now.Minute()
	if s.QuietFrom < s.QuietTo {
		return m >= s.QuietFrom && m < s.QuietTo
	}
	return m >= s.QuietFrom || m < s.QuietTo
}

// wakes is the end of the quiet hours that it is in now; zero: it is in none.
func (s settings) wakes(now time.Time) time.Time {
	if !s.quiet(now) {
		return time.Time{}
	}
	if loc, err := time.LoadLocation(s.Zone); err == nil {
		now = now.In(loc)
	}
	end := time.Date(now.Year(), now.Month(), now.Day(), 0, s.QuietTo, 0, 0, now.Location())
	if !end.After(now) {
		end = end.AddDate(0, 0, 1)
	}
	return end
}

func (s settings) quietWords(l lang.Lang) string {
	if s.QuietFrom == s.QuietTo {
		return textNone.In(l)
	}
	return fmt.Sprintf("%02d:%02d–%02d:%02d %s", s.QuietFrom/60, s.QuietFrom%60, s.QuietTo/60, s.QuietTo%60, s.Zone)
}

func settingsDoc(s settings, l lang.Lang) view.Doc {
	or := func(v, otherwise string) string {
		if v == "" {
			return otherwise
		}
		return v
	}
	digest := "off"
	if s.Digest {
		digest = "on"
	}
	notify := or(s.Notify, "all")
	return view.Doc{Title: textSettings.In(l), Sections: []view.Section{
		{Facts: []view.Fact{
			{Name: textLanguage.In(l), Value: or(string(s.Lang), textAuto.In(l))},
			{Name: textNotify.In(l), Value: fmt.Sprintf(textNamed.In(l), notifyText[notify].In(l), notify)},
			{Name: textQuiet.In(l), Value: s.quietWords(l)},
			{Name: textDigest.In(l), Value: fmt.Sprintf(textNamed.In(l), digestText[digest].In(l), digest)},
			{Name: textCluster.In(l), Value: or(s.Cluster, textNone.In(l))},
		}},
		{Heading: textHow.In(l), Items: []string{
			"`settings language zh`", "`settings notify ends`", "`settings quiet 22:00-08:00 Asia/Shanghai`", "`settings digest on`",
		}},
	}}
}
