package people

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

var (
	// YourSettings is the heading of a person's settings and the label of the button that shows
	// them.
	YourSettings = lang.Text{EN: "Your settings", ZH: "您的设置"}
	// ActsAs is the label of a person's cluster user.
	ActsAs = lang.Text{EN: "Cluster user", ZH: "集群用户"}
)

// LangOf returns the language to answer in: the one that the person chose or, without a choice,
// the one that they wrote in, or that of the button or form that they used.
func (d *Directory) LangOf(ctx context.Context, a incoming.Ask) lang.Lang {
	if s := d.Settings(ctx, a.Team, a.User); s.Lang != "" {
		return s.Lang
	}
	if l := lang.Of(cmp.Or(a.Label, a.Text)); a.Terminal == nil || l != lang.EN {
		return l
	}
	return a.Terminal.Lang
}

// ClusterOf returns the cluster that the person chose, or the default.
func (d *Directory) ClusterOf(ctx context.Context, a incoming.Ask) string {
	return cmp.Or(d.Settings(ctx, a.Team, a.User).Cluster, d.cfg.Service.Default)
}

// Settings are a person's language, their cluster, and when they want to be notified.
type Settings struct {
	Lang    lang.Lang `json:"lang,omitempty"`
	Cluster string    `json:"cluster,omitempty"`
	// Notify is "all" (the default), "ends" or "none".
	Notify string `json:"notify,omitempty"`
	// Quiet hours, as minutes of the day in the person's time zone. Equal values mean that
	// there are none.
	QuietFrom int    `json:"quiet_from,omitempty"`
	QuietTo   int    `json:"quiet_to,omitempty"`
	Zone      string `json:"zone,omitempty"`
	Digest    bool   `json:"digest,omitempty"`
}

// Settings returns what a person chose.
func (d *Directory) Settings(ctx context.Context, team, user string) Settings {
	s, err := d.ReadSettings(ctx, team, user)
	if err != nil {
		d.cfg.Log.Warn("slack: settings", "err", err)
	}
	return s
}

// ReadSettings is Settings for whoever must not take a store that does not answer for a person
// without settings.
func (d *Directory) ReadSettings(ctx context.Context, team, user string) (s Settings, err error) {
	key := team + "/" + user
	if team == "" { // a link in the configuration may omit the workspace
		keys, err := d.cfg.Store.Keys(ctx, record.Settings, d.cfg.Now())
		if i := slices.IndexFunc(keys, func(k string) bool { return strings.HasSuffix(k, key) }); err == nil && i >= 0 {
			key = keys[i]
		}
	}
	_, err = d.cfg.Store.Get(ctx, record.Settings, key, d.cfg.Now(), &s)
	return s, err
}

// LangOr returns the language that the person chose, or otherwise where they chose none.
func (s Settings) LangOr(otherwise lang.Lang) lang.Lang { return cmp.Or(s.Lang, otherwise) }

// Set sets one setting: words are its name and its value.
func (s *Settings) Set(words []string, c *ops.Call) *ops.Error {
	value := strings.Join(words[1:], " ")
	bad := func(fix lang.Text) *ops.Error {
		return &ops.Error{Code: ops.BadInput, Field: words[0], Message: lang.Text{EN: "%q is not a value of this setting", ZH: "%q 不是该设置的有效值"}.With(value), Fix: fix}
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
			return bad(lang.Text{EN: "settings language en, zh or auto", ZH: "settings language en、zh 或 auto"})
		}
	case "notify", "notifications", "通知":
		if value != "all" && value != "ends" && value != "none" {
			return bad(lang.Text{EN: "settings notify all, ends or none", ZH: "settings notify all、ends 或 none"})
		}
		s.Notify = value
	case "quiet", "免打扰":
		from, to, zone, ok := parseQuiet(value)
		if !ok {
			return bad(lang.Text{EN: "settings quiet 22:00-08:00 Asia/Shanghai, or off", ZH: "settings quiet 22:00-08:00 Asia/Shanghai，或 off"})
		}
		s.QuietFrom, s.QuietTo, s.Zone = from, to, cmp.Or(zone, s.Zone)
	case "zone", "时区":
		if _, err := time.LoadLocation(value); err != nil || value == "" {
			return bad(lang.Text{EN: "settings zone Asia/Shanghai", ZH: "settings zone Asia/Shanghai"})
		}
		s.Zone = value
	case "digest", "摘要":
		if value != "on" && value != "off" {
			return bad(lang.Text{EN: "settings digest on or off", ZH: "settings digest on 或 off"})
		}
		s.Digest = value == "on"
	case "cluster", "集群":
		if _, ok := c.Clusters[value]; !ok && value != "" {
			return bad(lang.Text{EN: "settings cluster and the name of one that is configured", ZH: "settings cluster 加上已配置的集群名"})
		}
		s.Cluster = value
	default:
		return &ops.Error{Code: ops.BadInput, Field: words[0], Message: lang.Text{EN: "no such setting", ZH: "没有该设置"}, Fix: lang.Text{EN: "language, notify, quiet, zone, digest, cluster", ZH: "可用设置：language、notify、quiet、zone、digest、cluster"}}
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

// Quiet reports whether now is within the person's quiet hours.
func (s Settings) Quiet(now time.Time) bool {
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

// QuietUntil returns the end of the quiet hours that now is in; it is zero outside of quiet
// hours.
func (s Settings) QuietUntil(now time.Time) time.Time {
	if !s.Quiet(now) {
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

// QuietValue returns the quiet hours in the form that the setting accepts.
func (s Settings) QuietValue() string {
	if s.QuietFrom == s.QuietTo {
		return "off"
	}
	return strings.TrimSpace(fmt.Sprintf("%02d:%02d-%02d:%02d %s", s.QuietFrom/60, s.QuietFrom%60, s.QuietTo/60, s.QuietTo%60, s.Zone))
}

// QuietChoices returns common quiet hours in the person's time zone, and those that they have.
func (s Settings) QuietChoices() []string {
	list := []string{"off"}
	for _, hours := range []string{"22:00-08:00", "20:00-08:00", "18:00-09:00"} {
		list = append(list, strings.TrimSpace(hours+" "+s.Zone))
	}
	if now := s.QuietValue(); !slices.Contains(list, now) {
		list = append(list, now)
	}
	return list
}
