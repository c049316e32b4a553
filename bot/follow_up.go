package bot

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// followUp answers a short question from the diagnosis, in the thread of a failed job or of
// logs that were diagnosed there: which node was it, is a retry worth it, has it happened
// before. In the thread of a job that has not failed it answers only which errors the run
// survived. ok is false for any other question, and for questions about a job's progress.
func (b *Bot) followUp(ctx context.Context, a incoming.Ask, c *ops.Call, asked string) (owed []store.SlackMessage, ok bool) {
	text := asked
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, false
	}
	if _, isCommand := typed.Resolve(words[0]); isCommand && len(words) <= 2 {
		return nil, false
	}
	if _, wants := typed.WantedCommand(text); wants && len(words) > 2 {
		return nil, false
	}
	avoids, whose := typed.AvoidsNode(text), typed.AsksWhoTook(text)
	if a.Thread == "" || !typed.AsksOn(text) || !avoids && !whose && !report.Asks(text) || !b.people.MayRead(a, c) {
		return nil, false
	}
	here, ok := b.jobHere(ctx, a)
	target := string(here.ID)
	if !ok {
		target = b.conversationOf(ctx, a).Log // for logs without a job, the logs answer every such question
	} else if name, other := typed.AskedOfIt(text); other && name != typed.Again && !avoids && !whose && (name != "diagnose" && name != "status" || !typed.AsksWhich(text)) {
		return nil, false
	}
	if target == "" || b.namesOther(ctx, a, c, text, here) {
		return nil, false
	}
	k, known, err := b.news.Card(ctx, here.Cluster, here.ID)
	if err != nil {
		return nil, false
	}
	if here.ID != "" {
		state := b.stateOf(ctx, here, k)
		if card.ToneOf(state) != view.Bad && (state == slurm.Pending || !report.AsksForOthers(text)) {
			return nil, false
		}
	}
	if whose && known {
		return b.whoTook(ctx, a, c, k), true
	}
	if !report.Asks(text) {
		text = textWhichNode.In(c.Lang)
	}
	op, _ := operations.Lookup("diagnose")
	in := &joblogs.DiagnoseIn{Target: target, Question: text, OnCluster: ops.OnCluster{Cluster: here.Cluster}}
	defer b.atWork(ctx, a, c, op, typed.Call{Op: op.Name, Words: []string{target}, Cluster: here.Cluster, Share: true})()
	result, err := op.Run(ctx, c, in)
	d, isDiagnosis := result.(joblogs.DiagnoseOut)
	if err != nil || !isDiagnosis || d.Answer == "" {
		return nil, false
	}
	// The thread shows the headline and the rest of the diagnosis already.
	doc := view.Doc{Sections: []view.Section{{Text: d.Answer}}}
	if lines, isList := strings.CutPrefix(d.Answer, "- "); isList {
		doc.Sections[0] = view.Section{Items: strings.Split(lines, "\n- ")}
	}
	row := card.Buttons(k, c.Lang)
	name, _ := typed.AskedOfIt(asked)
	again := here.ID != "" && (name == typed.Again || avoids)
	below := []slack.Block{feedback(op.Name, c.Lang)}
	switch nodes := nodesToAvoid(d.Report); {
	case avoids && here.ID != "" && len(nodes) > 0:
		below = slices.Insert(below, 0, withoutNodes(here, nodes, c.Lang))
	case again && (!known || row == nil || len(k.News.Fix)+len(k.News.Exclude) == 0):
		doc.Next = help.Reruns(onCluster(string(here.ID), here.Cluster, c), c.Lang).Next
	case known && row != nil && (again || len(doc.Sections[0].Items) > 0):
		below = slices.Insert(below, 0, row)
	}
	return b.reply.Doc(a, doc, true, below...), true
}

// stateOf returns the state of the thread's job, which may have no card.
func (b *Bot) stateOf(ctx context.Context, job jobRef, k card.Card) slurm.State {
	if k.News.Job.ID != "" {
		return k.News.Job.State
	}
	j, err := b.cfg.Service.Reader(job.Cluster).Job(ctx, job.ID)
	if err != nil {
		return ""
	}
	return j.State
}

// namesOther reports whether a sentence names a job other than that of the thread.
func (b *Bot) namesOther(ctx context.Context, a incoming.Ask, c *ops.Call, text string, here jobRef) bool {
	if _, id, ok := typed.AboutJob(text); ok {
		return slurm.JobID(id) != here.ID
	}
	job, _, ok := b.askedOfNamed(ctx, a, c, text)
	return ok && job != here
}

var (
	textWhichNode  = lang.Text{EN: "which node was it?", ZH: "哪个节点？"}
	textWithoutN   = lang.Text{EN: "Retry without %s", ZH: "排除 %s 后重试"}
	textNobodyTook = lang.Text{EN: "Nobody has said so yet.", ZH: "还没有人认领。"}
)

// whoTook says who takes care of the failure that a card shows. A mention would call them.
func (b *Bot) whoTook(ctx context.Context, a incoming.Ask, c *ops.Call, k card.Card) []store.SlackMessage {
	if k.Taken == "" {
		var below []slack.Block
		if row := card.Buttons(k, c.Lang); row != nil {
			below = append(below, row)
		}
		return b.reply.Doc(a, view.Doc{Sections: []view.Section{{Text: textNobodyTook.In(c.Lang)}}}, true, below...)
	}
	who, _ := b.people.Linked(ctx, cmp.Or(k.Team, a.Team), k.Taken)
	return b.reply.Doc(a, view.Doc{Sections: []view.Section{{Text: card.LooksAfter.With(cmp.Or(who.User, k.Taken)).In(c.Lang)}}}, true)
}

// nodesToAvoid returns the nodes that a retry should avoid or, where nothing shows that a node is
// at fault, the node of the root cause.
func nodesToAvoid(r report.Report) []string {
	if len(r.ExcludeNodes) == 0 && r.RootNode != nil {
		return []string{*r.RootNode}
	}
	return r.ExcludeNodes
}

// withoutNodes returns the button that submits a job again without nodes, after a confirmation.
func withoutNodes(job jobRef, nodes []string, l lang.Lang) slack.Block {
	names := hostlist.Compress(nodes)
	e := slack.NewButtonBlockElement(card.ActAvoid+":asked", card.AvoidValue(job.Cluster, job.ID, names), answer.Label(textWithoutN.With(names).In(l)))
	return slack.NewActionBlock("", e)
}
