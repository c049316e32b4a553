// Package notify tells people about their jobs outside of Slack: by a webhook of their
// own, by mail, and in Feishu, DingTalk, WeCom, Teams, Discord and Mattermost. A
// message stays in the store until the service has accepted it.
package notify

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/follow"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// The events that a target may choose.
const (
	Start = "start" // a job started
	End   = "end"   // it ended, well or badly, with the cause
	Fail  = "fail"  // it failed
	Alarm = "alarm" // a running job has a problem
	Ask   = "ask"   // a call waits for an operator's approval
)

// A Message is one piece of news.
type Message struct {
	// Key identifies the message permanently: a message with the same key is sent once.
	Key string `json:"key"`
	// Events are those that the message belongs to.
	Events   []string    `json:"events"`
	Tone     view.Tone   `json:"tone,omitempty"`
	Headline lang.Text   `json:"headline"`
	Text     lang.Text   `json:"text,omitzero"`
	Cluster  string      `json:"cluster"`
	Job      slurm.JobID `json:"job"`
	Name     string      `json:"name"`
	User     string      `json:"user"`
	State    slurm.State `json:"state"`
	// Facts are the few important values, with names in both languages.
	Facts []Fact    `json:"facts,omitempty"`
	Link  string    `json:"link,omitempty"`
	At    time.Time `json:"at"`
}

// A Fact is a name and its value.
type Fact struct {
	Name  lang.Text `json:"name"`
	Value string    `json:"value"`
}

// Of returns the messages for a piece of news, or none if nobody needs to know it. link
// returns the address of a job's page; nil: there is no page.
func Of(n follow.News, link func(cluster string, id slurm.JobID) string, now time.Time) []Message {
	j := n.Job
	base := Message{Cluster: j.Cluster, Job: j.ID, Name: clean(j.Name), User: j.User, State: j.State, At: now}
	if link != nil {
		base.Link = link(j.Cluster, j.ID)
	}
	key := j.Cluster + "/" + string(j.ID) + "/"
	var all []Message
	for _, a := range n.Alarms {
		m := base
		notice := a.Notice(j)
		m.Key, m.Events, m.Tone = "alarm/"+notice.Key, []string{Alarm}, view.Bad
		m.Headline, m.Text = headline("⚠", j, notice.Title), notice.Text
		all = append(all, m)
	}
	switch {
	case len(n.Alarms) > 0:
	case j.State == slurm.Running:
		base.Key, base.Events, base.Tone = key+"start/"+restart(j), []string{Start}, view.Good
		base.Headline = headline("▶", j, lang.Text{EN: "running", ZH: "运行中"})
		base.Facts = facts(j)
		all = append(all, base)
	case j.State == slurm.Completed:
		base.Key, base.Events, base.Tone = key+"end/"+restart(j), []string{End}, view.Good
		base.Headline = headline("✅", j, lang.Text{EN: "completed after %s", ZH: "已完成，用时 %s"}.With(ops.Duration(j.ElapsedS)))
		base.Facts = facts(j)
		all = append(all, base)
	case j.State.Ended():
		base.Key, base.Events, base.Tone = key+"end/"+restart(j), []string{End, Fail}, view.Bad
		if j.State == slurm.Cancelled {
			base.Events, base.Tone = []string{End}, view.Warn
		}
		what := lang.Same(strings.ToLower(string(j.State)))
		if r := n.Report; r != nil {
			en, zh := r.View(lang.EN), r.View(lang.ZH)
			what = lang.Text{EN: cmp.Or(en.Title, what.EN), ZH: cmp.Or(zh.Title, what.ZH)}
			base.Text = lang.Text{EN: first(en), ZH: first(zh)}
		}
		if n.Why != (lang.Text{}) {
			base.Text = lang.Text{EN: strings.TrimSpace(base.Text.EN + " " + n.Why.EN), ZH: base.Text.ZH + n.Why.ZH}
		}
		base.Headline = headline("❌", j, what)
		base.Facts = facts(j)
		all = append(all, base)
	}
	return all
}

// Asked returns the message about a request that waits for an approval. link is where
// operators decide it, or "".
func Asked(a ops.Approval, link string) Message {
	m := Message{Key: "approval/" + a.ID, Events: []string{Ask}, Tone: view.Warn, User: a.Who.User, Link: link, At: a.At, Text: lang.Same(clean(a.Why))}
	m.Headline = lang.Text{EN: "🔏 %s asks for approval: %s", ZH: "🔏 %s 申请审批：%s"}.With(clean(cmp.Or(a.Who.User, a.Who.ID)), a.Op)
	if agent := clean(a.Who.Agent); agent != "" {
		m.Facts = append(m.Facts, Fact{lang.Text{EN: "Agent", ZH: "智能体"}, agent})
	}
	return m
}

// headline is what a locked phone shows: ❌ llama-8b (4711): GPU out of memory.
func headline(sign string, j slurm.Job, what lang.Text) lang.Text {
	return lang.Text{EN: "%s %s (%s): %s", ZH: "%s %s（%s）：%s"}.With(sign, clean(j.Name), j.ID, what)
}

func restart(j slurm.Job) string { return strconv.Itoa(j.Restarts) }

func facts(j slurm.Job) []Fact {
	var fs []Fact
	add := func(en, zh, value string) {
		if value != "" {
			fs = append(fs, Fact{lang.Text{EN: en, ZH: zh}, clean(value)})
		}
	}
	add("User", "用户", j.User)
	add("Cluster", "集群", j.Cluster)
	add("Partition", "分区", j.Partition)
	add("Nodes", "节点", hostlist.Compress(j.Nodes))
	return fs
}

func first(d view.Doc) string {
	for _, s := range d.Sections {
		if s.Text != "" {
			return clean(s.Text)
		}
	}
	return ""
}

// clean returns text of a job without secrets and control characters.
func clean(s string) string { return redact.Text(redact.Clean(s)) }
