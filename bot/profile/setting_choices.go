package profile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// Settings are chosen by selects, on the home tab and in a message alike. A value that a select
// does not offer, such as other quiet hours, is typed: settings quiet 23:00-07:00.

var (
	textPing   = lang.Text{EN: "Call me", ZH: "提醒方式"}
	textZone   = lang.Text{EN: "Time zone", ZH: "时区"}
	digestText = map[string]lang.Text{"on": {EN: "every morning", ZH: "每天早上"}, "off": {EN: "no", ZH: "不发送"}}
	notifyText = map[string]lang.Text{"all": {EN: "for every end", ZH: "所有结束事件"}, "ends": {EN: "for failures", ZH: "仅失败"}, "none": {EN: "never", ZH: "从不"}}
)

// zones are the time zones that the select offers; any other one can be typed.
var zones = []string{
	"UTC", "America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York", "America/Sao_Paulo", "Europe/London", "Europe/Paris",
	"Europe/Berlin", "Europe/Helsinki", "Asia/Jerusalem", "Asia/Dubai", "Asia/Kolkata", "Asia/Singapore", "Asia/Shanghai", "Asia/Taipei", "Asia/Seoul",
	"Asia/Tokyo", "Australia/Sydney", "Pacific/Auckland",
}

// A settingChoice is one setting as a select. Its name is also the word that is typed for the
// setting, and a part of the select's action.
type settingChoice struct {
	name   string
	label  lang.Text
	now    func(*Handler, people.Settings) string
	values func(*Handler, people.Settings) []string
	shown  func(value string, l lang.Lang) string
}

func always(values ...string) func(*Handler, people.Settings) []string {
	return func(*Handler, people.Settings) []string { return values }
}

func inWords(words map[string]lang.Text) func(string, lang.Lang) string {
	return func(v string, l lang.Lang) string { return words[v].In(l) }
}

func unchanged(v string, _ lang.Lang) string { return v }

// settingChoices are the settings in the order in which they are shown.
var settingChoices = []settingChoice{
	{
		name: "lang", label: textLanguage,
		now:    func(_ *Handler, s people.Settings) string { return cmp.Or(string(s.Lang), "auto") },
		values: always("auto", "en", "zh"),
		shown:  func(v string, l lang.Lang) string { return cmp.Or(langNames[lang.Lang(v)], textAuto.In(l)) },
	},
	{
		name: "notify", label: textPing,
		now:    func(_ *Handler, s people.Settings) string { return cmp.Or(s.Notify, "all") },
		values: always("all", "ends", "none"),
		shown:  inWords(notifyText),
	},
	{
		name: "digest", label: textDigest,
		now:    func(_ *Handler, s people.Settings) string { return map[bool]string{true: "on", false: "off"}[s.Digest] },
		values: always("on", "off"),
		shown:  inWords(digestText),
	},
	{
		name: "quiet", label: textQuiet,
		now:    func(_ *Handler, s people.Settings) string { return s.QuietValue() },
		values: func(_ *Handler, s people.Settings) []string { return s.QuietChoices() },
		shown: func(v string, l lang.Lang) string {
			if v == "off" {
				return textNone.In(l)
			}
			return v
		},
	},
	{
		name: "zone", label: textZone,
		now: func(_ *Handler, s people.Settings) string { return cmp.Or(s.Zone, zones[0]) },
		values: func(_ *Handler, s people.Settings) []string {
			if s.Zone == "" || slices.Contains(zones, s.Zone) {
				return zones
			}
			return append(slices.Clone(zones), s.Zone)
		},
		shown: unchanged,
	},
	{
		name: "cluster", label: textCluster,
		now:    func(h *Handler, s people.Settings) string { return cmp.Or(s.Cluster, h.cfg.Service.Default) },
		values: func(h *Handler, _ people.Settings) []string { return slices.Sorted(maps.Keys(h.cfg.Service.Clusters)) },
		shown:  unchanged,
	},
}

// SettingRows draws the settings, each with its select.
func (h *Handler) SettingRows(s people.Settings, l lang.Lang) (rows []slack.Block) {
	for _, c := range settingChoices {
		var options []*slack.OptionBlockObject
		var chosen *slack.OptionBlockObject
		now := c.now(h, s)
		for _, v := range c.values(h, s) {
			o := slack.NewOptionBlockObject(v, answer.Label(c.shown(v, l)), nil)
			if options = append(options, o); v == now {
				chosen = o
			}
		}
		if len(options) == 0 || c.name == "cluster" && len(options) == 1 && chosen != nil {
			continue // there is nothing to choose
		}
		e := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, actSet+c.name, options[:min(len(options), 100)]...)
		e.InitialOption = chosen
		rows = append(rows, slack.NewSectionBlock(answer.Markup("*"+c.label.In(l)+"*"), nil, slack.NewAccessory(e)))
	}
	return rows
}

// actSet is the prefix of the action of a setting's select.
const actSet = "set_"

// Buttons returns the handlers of this package's buttons and selects, by action.
func (h *Handler) Buttons() map[string]func(context.Context, incoming.Ask) []store.SlackMessage {
	all := map[string]func(context.Context, incoming.Ask) []store.SlackMessage{actLinked: h.linkPressed}
	for _, c := range settingChoices {
		all[actSet+c.name] = func(ctx context.Context, a incoming.Ask) []store.SlackMessage { return h.chooseSetting(ctx, a, c.name) }
	}
	return all
}

// chooseSetting changes a setting by its select, and redraws the message or home tab that has
// the select.
func (h *Handler) chooseSetting(ctx context.Context, a incoming.Ask, name string) []store.SlackMessage {
	s := h.cfg.People.Settings(ctx, a.Team, a.User)
	c := h.cfg.People.Call(ctx, a)
	if err := s.Set([]string{name, a.Value}, c); err != nil {
		return nil // the value is not one that the select offers
	}
	if err := h.cfg.Store.Put(ctx, record.Settings, a.Team+"/"+a.User, s, time.Time{}); err != nil {
		h.cfg.Log.Error("slack: settings", "err", err)
		return nil
	}
	if a.TS == "" { // the select is on the home tab, which is not a message
		return h.cfg.Home(ctx, a)
	}
	a.InPlace = true
	return h.showSettings(a, s, s.LangOr(c.Lang))
}

func (h *Handler) showSettings(a incoming.Ask, s people.Settings, l lang.Lang) []store.SlackMessage {
	if a.Terminal != nil {
		return h.cfg.Reply.Doc(a, h.settingsDoc(s, l), false)
	}
	bs := append([]slack.Block{answer.Header(people.YourSettings.In(l))}, h.SettingRows(s, l)...)
	return h.cfg.Reply.Blocks(a, people.YourSettings.In(l), bs, false)
}
