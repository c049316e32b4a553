package bot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A job is named by its number, by its name, by the thread, or as the person's last job.

var (
	textWhichJob = lang.Text{EN: "Which job?", ZH: "哪个作业？"}
	textWhichOn  = lang.Text{EN: "Which job on %s?", ZH: "%s 上的哪个作业？"}
	textNoRecent = lang.Text{EN: "You have had no job in the last seven days", ZH: "您最近七天没有作业"}
	textAsAbove  = lang.Text{EN: "The diagnosis above in this thread still holds.", ZH: "本讨论串中上面的诊断仍然有效。"}
)

// A jobRef is a job and its cluster.
type jobRef struct {
	Cluster string      `json:"cluster"`
	ID      slurm.JobID `json:"id"`
}

// jobHere returns the job that the thread of a is about: the job whose card starts the thread,
// or else the job that was last spoken about.
func (b *Bot) jobHere(ctx context.Context, a incoming.Ask) (jobRef, bool) {
	if job, ok := b.cardAt(ctx, a); ok {
		return job, true
	}
	t := b.conversationOf(ctx, a)
	return t.Job, t.Job.ID != ""
}

// cardAt returns the job whose card starts the thread of a.
func (b *Bot) cardAt(ctx context.Context, a incoming.Ask) (jobRef, bool) {
	if a.Thread != "" && a.Terminal == nil {
		key, ok, err := b.startOf(ctx, a)
		b.warn("thread", err)
		if job, isCard := strings.CutPrefix(key, "card/"); ok && isCard {
			job, _, _ = strings.Cut(job, "@")
			if cluster, id, ok := strings.Cut(job, "/"); ok {
				return jobRef{cluster, slurm.JobID(id)}, true
			}
		}
	}
	return jobRef{}, false
}

// startOf returns the outbox key of the message that starts the thread of a. One can read a message
// and answer it before Slack has told where it is.
func (b *Bot) startOf(ctx context.Context, a incoming.Ask) (key string, ok bool, err error) {
	const pause, most = 100 * time.Millisecond, 3 * time.Second
	for waited := time.Duration(0); ; waited += pause {
		underWay, _ := b.cfg.Store.UnderWay(ctx, b.now().Add(-20*time.Second)) // before Find, which then knows what has arrived
		key, ok, err = b.cfg.Store.Find(ctx, store.SlackRef{Channel: a.Channel, TS: a.Thread})
		if ok || err != nil || !underWay || waited >= most || ctx.Err() != nil {
			return key, ok, err
		}
		time.Sleep(pause)
	}
}

// jobArgument returns the name of the operation's argument that takes one job; it is empty
// where there is none.
func jobArgument(op ops.Op) (name string, needed bool) {
	for _, p := range op.Params() {
		if p.Arg && (p.Name == "job" && !p.Several || p.Name == "job-or-path") {
			return p.Name, p.Required
		}
	}
	return "", false
}

// recentJobs returns the person's own recent jobs, newest first. With an error they are at most
// those of the queue, among which the last one need not be.
func (b *Bot) recentJobs(ctx context.Context, a incoming.Ask, c *ops.Call) ([]slurm.Job, error) {
	return b.recentJobsOn(ctx, c, b.people.ClusterOf(ctx, a))
}

// recentJobsOn is recentJobs on a cluster.
func (b *Bot) recentJobsOn(ctx context.Context, c *ops.Call, cluster string) ([]slurm.Job, error) {
	if c.Who.User == "" {
		return nil, nil
	}
	jobs, err := listJobs(ctx, c, jobcontrol.ListIn{All: true, User: c.Who.User, OnCluster: ops.OnCluster{Cluster: cluster}})
	b.warn("recent jobs", err)
	slices.SortStableFunc(jobs, slurm.NewestFirst)
	return jobs, err
}

// noLastJob tells a person that they have no recent job, or why that is not known.
func (b *Bot) noLastJob(ctx context.Context, a incoming.Ask, c *ops.Call) []store.SlackMessage {
	if _, err := b.recentJobs(ctx, a, c); err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	return b.reply.Doc(a, view.Doc{Title: textNoRecent.In(c.Lang), Next: []string{"submit", "list --user all"}}, false)
}

// aboutJob reads a sentence that asks something about a job without its number; ok is false for
// any other sentence.
func (b *Bot) aboutJob(ctx context.Context, a incoming.Ask, c *ops.Call, words []string) (name string, job jobRef, ok bool) {
	if slices.ContainsFunc(words, func(w string) bool { return slurm.IsJobID(w) || slurm.IsStepID(w) }) {
		return "", jobRef{}, false // the number names the job
	}
	text := strings.Join(words, " ")
	if _, isCommand := typed.Resolve(words[0]); isCommand && len(words) == 1 {
		return "", jobRef{}, false
	}
	last := typed.LastJob(text)
	name, asked := typed.AskedOfIt(text)
	if first, known := typed.Resolve(words[0]); last && !asked && known {
		if op, isOp := operations.Lookup(first); isOp {
			if arg, _ := jobArgument(op); arg != "" {
				name, asked = first, true
			}
		}
	}
	if last {
		if jobs, err := b.recentJobs(ctx, a, c); err == nil && len(jobs) > 0 {
			return cmp.Or(name, "status"), jobRef{jobs[0].Cluster, jobs[0].ID}, true
		}
		return cmp.Or(name, "status"), jobRef{}, true
	}
	if j, of, ok := b.askedOfNamed(ctx, a, c, text); ok {
		return of, j, true
	}
	if asked {
		if here, ok := b.jobHere(ctx, a); ok {
			return name, here, true
		}
	}
	return "", jobRef{}, false
}

// askedOfNamed returns the recent job of the person that a sentence names, and the operation that
// the sentence asks for.
func (b *Bot) askedOfNamed(ctx context.Context, a incoming.Ask, c *ops.Call, text string) (job jobRef, name string, ok bool) {
	if _, ok := typed.AskedOfNamed(text, anyName); !ok {
		return jobRef{}, "", false // no need to ask the cluster
	}
	jobs, _ := b.recentJobs(ctx, a, c)
	j, ok := firstNamed(jobs, typed.PossibleJobNames(text))
	if !ok {
		return jobRef{}, "", false
	}
	name, ok = typed.AskedOfNamed(text, j.Name)
	return jobRef{j.Cluster, j.ID}, name, ok
}

// anyName is a name of which every question is understood that is understood of some name.
const anyName = "job-1"

func firstNamed(jobs []slurm.Job, words []string) (slurm.Job, bool) {
	i := slices.IndexFunc(jobs, func(j slurm.Job) bool {
		return j.Name != "" && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, j.Name) })
	})
	if i < 0 {
		return slurm.Job{}, false
	}
	return jobs[i], true
}

// nameJob fills in a job's number where a command omits it or gives a name. Where it cannot
// tell which job is meant, owed asks by a button for each recent job.
func (b *Bot) nameJob(
	ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, words []string, f *typed.Flags,
) (filled []string, owed []store.SlackMessage) {
	arg, needed := jobArgument(op)
	if arg == "" || !needed && len(words) > 0 {
		return words, nil
	}
	on := cmp.Or(f.Cluster, b.people.ClusterOf(ctx, a))
	at := func(job jobRef, rest []string) []string {
		f.Cluster = cmp.Or(job.Cluster, f.Cluster)
		return append([]string{string(job.ID)}, rest...)
	}
	if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		first := words[0]
		switch {
		case slurm.IsJobID(first), slurm.IsStepID(first), arg != "job" && strings.ContainsAny(first, "/."):
			return words, nil
		case typed.LastJob(strings.Join(words, " ")):
			if jobs, err := b.recentJobsOn(ctx, c, on); err == nil && len(jobs) > 0 {
				return at(jobRef{jobs[0].Cluster, jobs[0].ID}, nil), nil
			}
			return words, b.noLastJob(ctx, a, c)
		}
		jobs, _ := b.recentJobsOn(ctx, c, on)
		if j, ok := firstNamed(jobs, words[:1]); ok {
			return at(jobRef{j.Cluster, j.ID}, words[1:]), nil
		}
		return words, nil
	}
	if here, ok := b.jobHere(ctx, a); ok && (f.Cluster == "" || f.Cluster == cmp.Or(here.Cluster, c.Default)) {
		return at(here, words), nil
	}
	if jobs, _ := b.recentJobsOn(ctx, c, on); len(jobs) > 0 {
		return words, b.reply.Doc(a, view.Doc{Title: whichJob(c, on).In(c.Lang)}, false, jobChoices(op.Name, jobs, words, c.Lang))
	}
	return words, nil
}

// whichJob asks which job is meant, by the cluster's name where there are several.
func whichJob(c *ops.Call, cluster string) lang.Text {
	if c.Several() {
		return textWhichOn.With(cmp.Or(cluster, c.Default))
	}
	return textWhichJob
}

func jobChoices(op string, jobs []slurm.Job, rest []string, l lang.Lang) slack.Block {
	var es []slack.BlockElement
	for i, j := range jobs[:min(len(jobs), 5)] {
		words := strings.Join(append([]string{op, string(j.ID)}, rest...), " ")
		if j.Cluster != "" {
			words += " --cluster " + j.Cluster
		}
		label := card.Mark(j.State) + " " + card.Called(j, l) + " · " + card.State(j.State, l)
		es = append(es, slack.NewButtonBlockElement(fmt.Sprintf("%s:job%d", answer.ActRun, i), words, answer.Label(label)))
	}
	return slack.NewActionBlock("", es...)
}

// alreadyDiagnosed answers a question for the cause briefly in a thread that shows the diagnosis
// already, in the language of the question.
func (b *Bot) alreadyDiagnosed(ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, words []string) (owed []store.SlackMessage, ok bool) {
	here, ok := b.jobHere(ctx, a)
	if !ok || op.Name != "diagnose" || len(words) != 1 || words[0] != string(here.ID) || a.Kind != incoming.AsMessage || a.Terminal != nil {
		return nil, false
	}
	k, ok, err := b.news.Card(ctx, here.Cluster, here.ID)
	if err != nil || !ok || !k.News.Job.State.Ended() || k.News.Cause == nil || answer.LanguageOfDoc(*k.News.Cause) != c.Lang {
		return nil, false
	}
	doc := view.Doc{Sections: []view.Section{{Text: card.Headline(k.News, c.Lang)}, {Text: textAsAbove.In(c.Lang)}}}
	for _, fix := range k.News.FixIn(c.Lang) {
		doc.Sections = append(doc.Sections, view.Section{Items: []string{fix}})
	}
	var below []slack.Block
	if row := card.Buttons(k, c.Lang); row != nil {
		below = append(below, row)
	}
	return b.reply.Doc(a, doc, true, below...), true
}
