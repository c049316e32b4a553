package bot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/recipes"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textStartIt    = lang.Text{EN: "Start a run of %s?", ZH: "启动 %s 训练？"}
	textFromRecipe = lang.Text{
		EN: "Open the form and choose %s under “Begin with”: it fills in the recipe's arguments, checks them with the cluster, and asks before it submits.",
		ZH: "打开表单，在“从何处开始”中选择 %s：会填入配方的参数，并在提交前检查和确认。",
	}
)

var textTellWhich = lang.Text{EN: "Say its number or name: tell me when 4711 fails", ZH: "请说明作业号或名称：4711 失败了告诉我"}

// answerSentence answers a sentence that is neither a command nor a question for ask: one that
// asks for what a command does, or that names jobs by numbers that the cluster knows. done is
// false for any other sentence.
func (b *Bot) answerSentence(ctx context.Context, a incoming.Ask, c *ops.Call, t typed.Text, f typed.Flags) (owed []store.SlackMessage, done bool) {
	if len(t.Blocks) > 0 {
		return nil, false
	}
	if words, ok := typed.WantedSubscription(a.Text); ok {
		if words[0] == typed.TheJob {
			here, ok := b.jobHere(ctx, a)
			if !ok {
				which := whichJob(c, cmp.Or(f.Cluster, b.people.ClusterOf(ctx, a)))
				return b.reply.Doc(a, view.Doc{Title: which.In(c.Lang), Sections: []view.Section{{Text: textTellWhich.In(c.Lang)}}}, false), true
			}
			words[0], f.Cluster = string(here.ID), cmp.Or(f.Cluster, here.Cluster)
		}
		return b.perform(ctx, a, c, "subscribe", words, typed.Text{}, f), true
	}
	if owed, done := b.answerWanted(ctx, a, c, f); done {
		return owed, true
	}
	name, ids := typed.JobNumbers(a.Text)
	if len(ids) == 0 || !b.people.MayRead(a, c) {
		return nil, false
	}
	cluster := cmp.Or(f.Cluster, b.people.ClusterOf(ctx, a))
	if c.Clusters[cluster] == nil {
		return nil, false
	}
	j, err := b.cfg.Service.Reader(cluster).Job(ctx, slurm.JobID(ids[0]))
	if err != nil {
		return nil, false // the number is not a job's
	}
	if name == "diagnose" && !j.State.Ended() {
		name = "status"
	}
	return b.askedOf(ctx, a, c, name, ids, f), true
}

// answerWanted answers a sentence that asks for what a command does, such as "list my jobs";
// done is false for any other sentence.
func (b *Bot) answerWanted(ctx context.Context, a incoming.Ask, c *ops.Call, f typed.Flags) (owed []store.SlackMessage, done bool) {
	if typed.WantsRun(a.Text) {
		for _, w := range typed.PossibleJobNames(a.Text) {
			if w = strings.ToLower(w); slices.Contains(recipes.Names(), w) {
				doc := view.Doc{Title: fmt.Sprintf(textStartIt.In(c.Lang), w), Sections: []view.Section{{Text: fmt.Sprintf(textFromRecipe.In(c.Lang), w)}}}
				doc.Next = []string{"submit", "recipes show " + w}
				return b.reply.Doc(a, doc, a.Kind == incoming.AsMessage), true
			}
		}
	}
	command, ok := typed.WantedCommand(a.Text)
	if !ok {
		return nil, false
	}
	words := strings.Fields(command)
	if words[0] == "help" {
		return b.help(a, c, "", f.Share), true
	}
	return b.perform(ctx, a, c, words[0], words[1:], typed.Text{}, f), true
}

var textOfJob = lang.Text{EN: "%s (%s): ", ZH: "%s（%s）："}

// ofJob adds the job's name and number to a title where the thread does not show which job it
// is about.
func (b *Bot) ofJob(ctx context.Context, a incoming.Ask, l lang.Lang, cluster, id, title string) string {
	if !slurm.IsJobID(id) || a.Terminal != nil {
		return title
	}
	if here, ok := b.jobHere(ctx, a); ok && a.Thread != "" && string(here.ID) == id {
		return title
	}
	if j, err := b.cfg.Service.Reader(cluster).Job(ctx, slurm.JobID(id)); err == nil && j.Name != "" {
		return fmt.Sprintf(textOfJob.In(l), j.Name, id) + title
	}
	return id + answer.Colon.In(l) + title
}
