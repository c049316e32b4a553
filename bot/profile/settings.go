package profile

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// SetSettings changes a person's setting by words, such as language zh, quiet 22:00-08:00,
// notify ends, digest on, cluster NAME. It answers with all settings.
func (h *Handler) SetSettings(ctx context.Context, a incoming.Ask, c *ops.Call, words []string) []store.SlackMessage {
	s := h.cfg.People.Settings(ctx, a.Team, a.User)
	if len(words) > 0 {
		if err := s.Set(words, c); err != nil {
			return h.cfg.Reply.Doc(a, answer.Error(err, c.Lang), false)
		}
		if err := h.cfg.Store.Put(ctx, record.Settings, a.Team+"/"+a.User, s, time.Time{}); err != nil {
			return h.cfg.Reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
		}
	}
	return h.showSettings(a, s, s.LangOr(c.Lang))
}

// settingsDoc shows the settings where nothing can be pressed.
func (h *Handler) settingsDoc(s people.Settings, l lang.Lang) view.Doc {
	var facts []view.Fact
	for _, c := range settingChoices {
		facts = append(facts, view.Fact{Name: c.label.In(l), Value: c.shown(c.now(h, s), l)})
	}
	return view.Doc{Title: people.YourSettings.In(l), Sections: []view.Section{{Facts: facts}, {Heading: textHow.In(l), Items: []string{
		"`settings language zh`", "`settings notify ends`", "`settings quiet 22:00-08:00 Asia/Shanghai`", "`settings digest on`",
	}}}}
}

// langNames are the languages' names in the languages themselves.
var langNames = map[lang.Lang]string{lang.EN: "English", lang.ZH: "中文"}
