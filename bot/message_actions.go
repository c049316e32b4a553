package bot

import (
	"context"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Every message's menu has "Diagnose this" and "Lint this script". "Diagnose this" diagnoses
// the log that the message contains or, without one, the job that it names. An ordinary message
// is not diagnosed.

var (
	textNothing = lang.Text{EN: "This message contains nothing that can be checked.", ZH: "这条消息里没有可以诊断的内容。"}
	textNeither = lang.Text{EN: "This message holds no job and no log", ZH: "这条消息里没有作业，也没有日志"}
	textBring   = lang.Text{
		EN: "A message can be diagnosed if it names a job by its number or name, is in a job's thread, or contains log lines or a file. Nothing else of the message is kept.",
		ZH: "如果消息中有作业号或作业名、位于作业的讨论串中，或包含日志内容、文件，即可诊断。除此之外不保留消息内容。",
	}
)

// mostNumbers is how many numbers of a message are looked up on the cluster.
const mostNumbers = 5

func (b *Bot) shortcut(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	switch a.Callback {
	case install.CallSubmit:
		return b.openForm(ctx, a, c)
	case install.CallDiagnose, install.CallLint:
	default:
		return nil // another app's shortcut, or one of an older version
	}
	from, brought := paste{"message", typedText(a.Text)}, false
	if len(a.Files) > 0 {
		p, err := b.download(ctx, a, a.Files[0])
		switch {
		case err == nil:
			from, brought = p, true
		case strings.TrimSpace(a.Text) == "":
			return b.reply.Doc(a, answer.Error(unread(a.Files[0], err), c.Lang), false)
		}
	}
	if a.Callback == install.CallDiagnose {
		return b.diagnoseMessage(ctx, a, c, from, brought)
	}
	if strings.TrimSpace(from.text) == "" {
		return b.reply.Doc(a, view.Doc{Title: textNothing.In(c.Lang)}, false)
	}
	if t := typed.Read(a.Text); len(a.Files) == 0 && len(t.Blocks) > 0 {
		from.text = strings.Join(t.Blocks, "\n") // without the text around the code blocks
	}
	return b.examine(ctx, a, c, from, nil, typed.Flags{})
}

// diagnoseMessage diagnoses the log that a message contains, or the job that it names.
func (b *Bot) diagnoseMessage(ctx context.Context, a incoming.Ask, c *ops.Call, from paste, brought bool) []store.SlackMessage {
	asRoot := a
	asRoot.Thread = a.TS
	job, ok := b.cardAt(ctx, asRoot) // the message is itself a job's card
	if !ok && !brought && !looksLikeLog(from.text) {
		if job, ok = b.namedIn(ctx, a, c, from.text); !ok {
			job, ok = b.cardAt(ctx, a)
		}
		if !ok {
			return b.reply.Doc(a, view.Doc{Title: textNeither.In(c.Lang), Sections: []view.Section{{Text: textBring.In(c.Lang)}}}, false)
		}
	}
	if !ok {
		return b.diagnoseText(ctx, a, c, from, typed.Flags{})
	}
	a.Text = "diagnose " + string(job.ID) // sharing repeats this command, not the message
	return b.perform(ctx, a, c, "diagnose", []string{string(job.ID)}, typed.Text{}, typed.Flags{Cluster: job.Cluster})
}

// namedIn returns the job that a text names: by a number that the cluster knows, or by the name
// of one of the person's recent jobs or of a job with a card in the workspace.
func (b *Bot) namedIn(ctx context.Context, a incoming.Ask, c *ops.Call, text string) (job jobRef, ok bool) {
	if !b.people.MayRead(a, c) {
		return jobRef{}, false
	}
	cluster := b.people.ClusterOf(ctx, a)
	numbers := typed.PossibleJobIDs(text)
	for _, id := range numbers[:min(len(numbers), mostNumbers)] {
		if cl, _, err := c.Job(ctx, cluster, slurm.JobID(id)); err == nil {
			return jobRef{cl.Name(), slurm.JobID(id)}, true
		}
	}
	names := typed.PossibleJobNames(text)
	recent, _ := b.recentJobs(ctx, a, c)
	j, ok := firstNamed(recent, names)
	if !ok {
		j, ok = firstNamed(b.jobsWithCards(ctx, a.Team), names)
	}
	return jobRef{j.Cluster, j.ID}, ok
}

// jobsWithCards returns the jobs that have cards in a workspace, newest first.
func (b *Bot) jobsWithCards(ctx context.Context, team string) (jobs []slurm.Job) {
	for _, k := range b.news.Cards(ctx, func(k card.Card) bool { return k.Team == team }) {
		jobs = append(jobs, k.News.Job)
	}
	slices.SortStableFunc(jobs, slurm.NewestFirst)
	return jobs
}
