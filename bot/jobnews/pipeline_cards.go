package jobnews

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A pipelineCard is the card of a pipeline: its places, and the last known state of its jobs.
type pipelineCard struct {
	Places []card.Place
	Edits  int
	Heard  map[slurm.JobID]stepState
}

type stepState struct {
	State                 slurm.State
	Says                  lang.Text // why the job ended
	Why                   string    // the same in one language, in records that have no Says
	Iteration, Iterations int
}

var (
	textSteps        = lang.Text{EN: "%d of %d steps completed", ZH: "已完成 %d/%d 步"}
	textGoesOn       = lang.Text{EN: "`%s` goes on where it broke, and submits nothing twice", ZH: "`%s` 从中断处继续，不会重复提交"}
	textAtIter       = lang.Text{EN: "iteration %d of %d", ZH: "迭代 %d/%d"}
	textPipelinePage = lang.Text{EN: "page", ZH: "网页"}

	textNotYet = lang.Text{EN: "not submitted", ZH: "未提交"}
)

const mostSteps = 20

// tellPipeline updates the pipeline's card after news of a step's job, in each place where the
// job is followed, and reports the step's end in that card's thread.
func (nf *Notifier) tellPipeline(
	ctx context.Context, owner, name string, k *card.Card, followers []card.Place, changed bool,
) (owed []store.SlackMessage, err error) {
	call := nf.Reader(ctx, k.News.Job)
	r, err := pipeline.Recorded(ctx, call, owner, name)
	if err != nil {
		return nil, nil //nolint:nilerr // it is being submitted: the next news finds it
	}
	var c pipelineCard
	own := owner + "/" + name
	if _, err := nf.cfg.Store.Get(ctx, record.PipelineCard, own, nf.now(), &c); err != nil {
		return nil, err
	}
	if c.Heard == nil {
		c.Heard = map[slurm.JobID]stepState{}
	}
	n := k.News
	c.Heard[n.Job.ID] = stepState{n.Job.State, n.Says, n.Why, n.Iteration, n.Iterations}
	c.Places = addPlaces(c.Places, followers...)
	out := r.Answer(call)
	for i := range out.Steps {
		if s := &out.Steps[i]; s.JobID != nil {
			s.State = slurm.Pending
			if h, ok := c.Heard[*s.JobID]; ok {
				s.State = h.State
			}
			if s.BrokenNow() && out.BrokenAt == "" {
				out.BrokenAt = s.Name
			}
		}
	}
	l := nf.langOfCard(ctx, k)
	text, blocks := drawPipeline(out, c.Heard, l)
	id := "pipeline/" + own
	sum := sha256.Sum256(blocks)
	hash := hex.EncodeToString(sum[:8])
	for i := range c.Places {
		place := &c.Places[i]
		if place.Hash == hash {
			continue
		}
		owed = append(owed, nf.showIn(ctx, place, id, k.User, &c.Edits, changed, outbox.Message{Text: text, Blocks: blocks}))
		place.Hash = hash
	}
	if changed && n.Job.State.Ended() {
		in := *k
		in.Places = c.Places
		owed = append(owed, nf.threadReplies(ctx, &in, id, string(n.Job.ID)+"/")...)
	}
	return owed, nf.cfg.Store.Put(ctx, record.PipelineCard, own, c, nf.now().AddDate(0, 3, 0))
}

// drawPipeline draws a pipeline's card: its progress, a line for each step, and the command
// that continues it.
func drawPipeline(p pipeline.Out, heard map[slurm.JobID]stepState, l lang.Lang) (text string, blocks json.RawMessage) {
	mark := card.Mark(slurm.Running)
	switch {
	case p.BrokenAt != "":
		mark = card.Mark(slurm.Failed)
	case p.Done() == len(p.Steps):
		mark = card.Mark(slurm.Completed)
	case !slices.ContainsFunc(p.Steps, func(s pipeline.Step) bool { return s.State == slurm.Running || s.State == slurm.Completed }):
		mark = card.Mark(slurm.Pending)
	}
	title := mark + " " + p.Name + " · " + textSteps.With(p.Done(), len(p.Steps)).In(l)
	var lines []string
	for _, s := range p.Steps[:min(len(p.Steps), mostSteps)] {
		parts := []string{card.Mark(s.State) + " *" + answer.Escape(s.Name) + "*"}
		if s.JobID == nil {
			lines = append(lines, parts[0]+" · "+textNotYet.In(l))
			continue
		}
		h := heard[*s.JobID]
		parts = append(parts, answer.Escape(card.State(s.State, l)), string(*s.JobID))
		if s.State == slurm.Running && h.Iterations > 0 {
			parts = append(parts, textAtIter.With(h.Iteration, h.Iterations).In(l))
		}
		if why := cmp.Or(h.Says.In(l), h.Why); s.State.Ended() && why != "" {
			parts = append(parts, answer.Escape(answer.Cut(answer.OneLine(why), 120)))
		}
		lines = append(lines, strings.Join(parts, " · "))
	}
	if more := len(p.Steps) - mostSteps; more > 0 {
		lines = append(lines, fmt.Sprintf("+%d", more))
	}
	bs := []slack.Block{
		answer.Header(title),
		slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, strings.Join(lines, "\n"), false, false), nil, nil),
		nil,
	}
	about := answer.Escape(p.Owner)
	if p.Page != "" {
		about += " · <" + p.Page + "|" + textPipelinePage.In(l) + ">"
	}
	if again := (pipeline.Record{File: p.File}).Resume(); p.BrokenAt != "" && again != "" {
		about += " · " + textGoesOn.With(answer.Escape(strings.ReplaceAll(answer.OneLine(again), "`", "'"))).In(l)
	}
	bs[2] = answer.ContextMarkup(about)
	return answer.Escape(p.Says().In(l)), answer.BlocksJSON(bs)
}
