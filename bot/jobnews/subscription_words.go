package jobnews

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A subscription says what somebody follows in a place. The store has it as a key: "SUBJECT
// WHEN…@TEAM/CHANNEL". The subject is all, job/CLUSTER/ID, or one of user, account, partition
// and name with a value after a slash.
type subscription struct {
	subject string
	when    []string // words of whens; empty means every change
	place   card.Place
}

// The words that say when to notify: on reaching a state, by the digest, or by the alarm.
const (
	whenFailed    = "failed"
	whenCompleted = "completed"
	whenCancelled = "cancelled"
	whenStarted   = "started"
	whenDigest    = "digest"   // every morning, in one message
	whenExpected  = "expected" // an alarm while no such job waits or runs
)

// A whenWord is one of those words; holds is nil for a word that names no state.
type whenWord struct {
	word  string
	also  []string
	shown lang.Text
	holds func(slurm.State) bool
}

// whens holds those words, their synonyms, and how they are shown.
var whens = []whenWord{
	{whenFailed, []string{"fails", "fail", "失败"}, lang.Text{EN: "when one fails", ZH: "失败时"}, func(s slurm.State) bool { return card.ToneOf(s) == "bad" }},
	{whenCompleted, []string{"completes", "done", "完成"}, lang.Text{EN: "when one completes", ZH: "完成时"}, func(s slurm.State) bool { return s == slurm.Completed }},
	{whenCancelled, []string{"canceled", "取消"}, lang.Text{EN: "when one is cancelled", ZH: "取消时"}, func(s slurm.State) bool { return s == slurm.Cancelled || s == slurm.Preempted }},
	{whenStarted, []string{"starts", "running", "开始"}, lang.Text{EN: "when one starts", ZH: "开始时"}, func(s slurm.State) bool { return s == slurm.Running }},
	{whenDigest, []string{"daily", "每日", "每天"}, lang.Text{EN: "every morning, in one message", ZH: "每天早上汇总"}, nil},
	{whenExpected, []string{"expect", "应在"}, lang.Text{EN: "an alarm while none waits or runs", ZH: "没有排队或运行时报警"}, nil},
}

// A subjectWord is a property of a job that a subscription can name.
type subjectWord struct {
	word  string
	also  []string
	shown lang.Text
	of    func(slurm.Job) string
}

// subjects holds what a subscription can select by, by the word before the "=".
var subjects = []subjectWord{
	{"user", []string{"用户"}, lang.Text{EN: "jobs of %s", ZH: "%s 的作业"}, func(j slurm.Job) string { return j.User }},
	{"account", []string{"project", "账户", "项目"}, lang.Text{EN: "jobs of the project %s", ZH: "项目 %s 的作业"}, func(j slurm.Job) string { return j.Account }},
	{"partition", []string{"分区"}, lang.Text{EN: "jobs in the partition %s", ZH: "分区 %s 的作业"}, func(j slurm.Job) string { return j.Partition }},
	{"name", []string{"名称", "名字"}, lang.Text{EN: "jobs named %s", ZH: "名为 %s 的作业"}, func(j slurm.Job) string { return j.Name }},
}

// readSubscription reads the words after subscribe; bad is the first word that it does not
// understand.
func readSubscription(words []string, cluster string) (s subscription, bad string) {
	s.subject = "all"
	for _, w := range words {
		word := strings.ToLower(w)
		if i := slices.IndexFunc(whens, func(x whenWord) bool { return x.word == word || slices.Contains(x.also, word) }); i >= 0 {
			if !slices.Contains(s.when, whens[i].word) {
				s.when = append(s.when, whens[i].word)
			}
			continue
		}
		if slices.Contains([]string{"all", "全部", "所有"}, word) {
			continue
		}
		kind, value, has := strings.Cut(w, "=")
		if !has {
			kind, value = "user", strings.TrimPrefix(w, "@")
		}
		i := slices.IndexFunc(subjects, func(x subjectWord) bool { return x.word == strings.ToLower(kind) || slices.Contains(x.also, kind) })
		_, wrong := path.Match(value, "") // a pattern that can match nothing
		switch {
		case wrong != nil || !has && strings.ContainsFunc(value, func(r rune) bool { return r > unicode.MaxASCII }): // no login name
			return s, w
		case !has && slurm.IsJobID(value):
			s.subject = "job/" + cluster + "/" + value
		case i < 0 || value == "" || strings.ContainsAny(value, "@/ ") || s.subject != "all":
			return s, w
		default:
			s.subject = subjects[i].word + "/" + value
		}
	}
	slices.Sort(s.when)
	return s, ""
}

func parseSubscription(key string) (s subscription, ok bool) {
	what, where, ok := strings.Cut(key, "@")
	team, channel, ok2 := strings.Cut(where, "/")
	fields := strings.Fields(what)
	if !ok || !ok2 || len(fields) == 0 {
		return s, false
	}
	return subscription{subject: fields[0], when: fields[1:], place: card.Place{Team: team, Channel: channel}}, true
}

func (s subscription) key() string {
	return strings.Join(append([]string{s.subject}, s.when...), " ") + "@" + s.place.Team + "/" + s.place.Channel
}

// words returns what one would type for the subscription.
func (s subscription) words() string {
	subject := strings.Replace(s.subject, "/", "=", 1)
	if job, ok := strings.CutPrefix(s.subject, "job/"); ok {
		cluster, id, _ := strings.Cut(job, "/")
		subject = id + " --cluster " + cluster
	}
	return strings.Join(append([]string{subject}, s.when...), " ")
}

func (s subscription) shown(l lang.Lang) string {
	kind, value, _ := strings.Cut(s.subject, "/")
	said := textFollowAll.In(l)
	if kind == "job" {
		_, id, _ := strings.Cut(value, "/")
		said = fmt.Sprintf(textFollowJob.In(l), id)
	}
	for _, x := range subjects {
		if x.word == kind {
			said = fmt.Sprintf(x.shown.In(l), value)
		}
	}
	for _, w := range whens {
		if slices.Contains(s.when, w.word) {
			said += " · " + w.shown.In(l)
		}
	}
	return said
}

// selects reports whether the subscription selects a job, in any state. A value may be a
// pattern.
func (s subscription) selects(j slurm.Job) bool {
	kind, value, _ := strings.Cut(s.subject, "/")
	switch kind {
	case "all":
		return true
	case "job":
		return value == card.ID(j.Cluster, j.ID)
	}
	for _, x := range subjects {
		if x.word == kind {
			ok, err := path.Match(strings.ToLower(value), strings.ToLower(x.of(j)))
			return ok && err == nil
		}
	}
	return false
}

func (s subscription) showsCards() bool {
	return !slices.Contains(s.when, whenDigest) && !slices.Contains(s.when, whenExpected)
}

func (s subscription) shows(j slurm.Job) bool {
	if !s.showsCards() || !s.selects(j) {
		return false
	}
	for _, w := range whens {
		if slices.Contains(s.when, w.word) && w.holds(j.State) {
			return true
		}
	}
	return len(s.when) == 0
}
