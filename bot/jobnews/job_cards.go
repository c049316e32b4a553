package jobnews

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Follow sends a submitted job's card to the place where the submission was asked for. For
// other operations it records who changed the job.
func (nf *Notifier) Follow(ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, in, result any) (owed []store.SlackMessage) {
	if op.Effect == ops.Read {
		return nil
	}
	cluster, id := ops.TextNamed(result, "cluster"), ops.TextNamed(result, "job_id")
	if op.Name != "submit" {
		cluster := cmp.Or(ops.TextNamed(in, "cluster"), c.Default)
		r, bySwitch := result.(jobcontrol.KillSwitchOut)
		for _, id := range endedBy(result) {
			nf.withCard(ctx, cluster, id, func(k *card.Card) {
				k.Act(a.User, nf.now(), bySwitch)
				owed = append(owed, nf.draw(ctx, k)...)
			})
		}
		if bySwitch && !r.On {
			nf.withCard(ctx, cluster, r.JobID, (*card.Card).TakeBack)
		}
		return owed
	}
	if !slurm.IsJobID(id) { // nothing was submitted, or the id is a step's
		return nil
	}
	cluster = cmp.Or(cluster, c.Default)
	news := card.News{Job: slurm.Job{ID: slurm.JobID(id), Cluster: cluster, Name: ops.TextNamed(result, "name"), User: c.Who.User, State: slurm.Pending}}
	// The watcher reports an end together with its cause. A card that already showed the end
	// would leave the watcher nothing to report.
	if j, ok := Queued(ctx, c.Service, cluster, slurm.JobID(id)); ok && !j.State.Ended() {
		news.Job = j
	}
	if a.Terminal != nil {
		k := card.Card{News: news}
		a.Terminal.Submitted(news.Job)
		text, blocks := card.Draw(k, c.Lang, false)
		return []store.SlackMessage{nf.out.Owe(a.Key+"/card", "local", outbox.Message{Do: outbox.Post, Text: text, Blocks: blocks})}
	}
	where := cmp.Or(a.Channel, a.User)
	k := card.Card{
		Team:     a.Team,
		User:     a.User,
		Lang:     c.Lang,
		Approver: a.Approver,
		News:     news,
		Began:    nf.now(),
		Places:   []card.Place{{Team: a.Team, Channel: where}},
	}
	nf.expectSchedule(ctx, a, c, in)
	nf.insist(ctx, "slack: card", slurm.JobID(id), func() error { return nf.Begin(ctx, k, answer.Clean(ops.TextNamed(result, "script"))) })
	return nil
}

// endedBy returns the jobs that an operation has ended, by its result: none where they had ended
// before. Whoever ends a job is not notified about the end.
func endedBy(result any) (ids []slurm.JobID) {
	switch r := result.(type) {
	case jobcontrol.CancelOut:
		for _, j := range append(r.Jobs, jobcontrol.CancelledJob{JobID: r.JobID, Cancelled: r.Cancelled && r.Step == ""}) {
			if j.Cancelled {
				ids = append(ids, j.JobID)
			}
		}
	case jobcontrol.KillSwitchOut:
		if r.On && r.Changed && r.JobID != "" {
			ids = append(ids, r.JobID)
		}
	}
	return ids
}

// Begin sends a job's card. It queues the card itself instead of leaving that to the answer: as
// soon as the card is stored, an event of the job may edit it, and the edit must come after the
// message.
func (nf *Notifier) Begin(ctx context.Context, k card.Card, script string) error {
	nf.cards.Lock()
	defer nf.cards.Unlock()
	k.Places = slices.Clone(k.Places) // draw changes them, and where Begin fails nothing was sent
	id := card.ID(k.News.Job.Cluster, k.News.Job.ID)
	old, have, err := nf.cardAt(ctx, id)
	switch {
	case err != nil:
		return err
	case have && old.User != "":
		return nil // Begin was called before for the same submission
	case have: // a subscriber to all jobs got the card first
		old.Places = addPlaces(old.Places, k.Places[0])
		old.Team, old.User, old.Lang, old.Approver = k.Team, k.User, k.Lang, k.Approver
		old.News = k.News.Keep(old.News)
		k = old
	}
	owed := nf.draw(ctx, &k)
	// An edit names the requester and the approver, since an edit notifies nobody.
	for _, m := range nf.draw(ctx, &k) {
		m.NotBefore = time.Time{}
		owed = append(owed, m)
	}
	if script != "" {
		for _, p := range k.Places {
			key := p.Key(id)
			owed = append(owed, nf.out.Owe(key+"/script", key+outbox.LaneOfFiles, outbox.Message{
				Do: outbox.Upload, Team: p.Team, ThreadOf: key, Instead: k.User,
				File: &answer.File{Name: string(k.News.Job.ID) + ".sbatch", Title: k.News.Job.Name, Content: script},
			}))
		}
	}
	if err := nf.cfg.Store.Enqueue(ctx, owed...); err != nil {
		return err
	}
	nf.watchers.follow(k.News.Job)
	return nf.keepCard(ctx, k)
}

// Carry sends the card of a job that replaces another one to the places that have the other's
// card.
func (nf *Notifier) Carry(ctx context.Context, from slurm.Job, next slurm.JobID) error {
	old, ok, err := nf.Card(ctx, from.Cluster, from.ID)
	if err != nil || !ok {
		return err
	}
	k := card.Card{Team: old.Team, User: old.User, Lang: old.Lang, Began: nf.now(), News: card.News{Job: slurm.Job{
		ID: next, Cluster: from.Cluster, Name: from.Name, User: from.User, Partition: from.Partition, NumNodes: from.NumNodes, State: slurm.Pending,
	}}}
	for _, p := range old.Places {
		k.Places = append(k.Places, card.Place{Team: p.Team, Channel: p.Channel})
	}
	return nf.Begin(ctx, k, "")
}

// Take records who takes care of a failure, on the card and in its thread, so that nobody else
// starts the same work.
func (nf *Notifier) Take(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := nf.people.Call(ctx, a)
	cluster, id, _ := strings.Cut(a.Value, "/")
	if c.Who.User == "" {
		return nf.reply.NotLinked(a, c.Lang)
	}
	if id, ok := strings.CutPrefix(a.Value, ofIncident); ok {
		nf.takeIncident(ctx, a, id)
		return nil
	}
	var owed []store.SlackMessage
	ok := nf.withCard(ctx, cluster, slurm.JobID(id), func(k *card.Card) {
		if k.Taken != "" { // somebody was faster
			if k.Taken != a.User {
				by, _ := nf.people.Linked(ctx, cmp.Or(k.Team, a.Team), k.Taken)
				owed = nf.reply.Doc(a, view.Doc{Title: card.LooksAfter.With(cmp.Or(by.User, k.Taken)).In(c.Lang)}, false)
			}
			return
		}
		k.Taken, k.TakenAt = a.User, nf.now()
		owed = nf.draw(ctx, k)
		l := nf.langOfCard(ctx, k)
		said := card.LooksAfter.With(c.Who.User).In(l)
		told := outbox.Message{
			Do: outbox.Post, Text: answer.Escape(l.Named(card.Called(k.News.Job, l), said)), Blocks: answer.BlocksJSON([]slack.Block{answer.ContextLine(said)}),
		}
		for _, p := range k.Places {
			key := p.Key(a.Value)
			told.Team, told.ThreadOf = p.Team, key
			owed = append(owed, nf.out.Owe(key+"/taken", key+outbox.LaneOfThread, told))
		}
	})
	if !ok {
		return nf.reply.Doc(a, answer.Error(&ops.Error{Code: ops.NotFound, Message: textNoCard.With(id)}, c.Lang), false)
	}
	return owed
}

// withCard changes a card; it returns false where there is no card or the change was not
// stored.
func (nf *Notifier) withCard(ctx context.Context, cluster string, id slurm.JobID, change func(*card.Card)) bool {
	nf.cards.Lock()
	defer nf.cards.Unlock()
	k, ok, err := nf.Card(ctx, cluster, id)
	if err != nil || !ok {
		return false
	}
	change(&k)
	return nf.keepCard(ctx, k) == nil
}

// keepCard stores a card without expiry while its job lives, and for a month after its end.
func (nf *Notifier) keepCard(ctx context.Context, k card.Card) error {
	id := card.ID(k.News.Job.Cluster, k.News.Job.ID)
	if k.EndedAt.IsZero() {
		if err := nf.cfg.Store.Put(ctx, record.Alive, id, true, time.Time{}); err != nil {
			return err
		}
		return nf.cfg.Store.Put(ctx, record.Card, id, k, time.Time{})
	}
	if err := nf.cfg.Store.Put(ctx, record.Card, id, k, k.EndedAt.AddDate(0, 1, 0)); err != nil {
		return err
	}
	return nf.cfg.Store.Delete(ctx, record.Alive, id)
}

// Tell updates a job's cards with news of it. It ignores jobs that nobody follows.
func (nf *Notifier) Tell(ctx context.Context, n card.News) error {
	nf.cards.Lock()
	defer nf.cards.Unlock()
	id := card.ID(n.Job.Cluster, n.Job.ID)
	k, have, err := nf.cardAt(ctx, id)
	if err != nil {
		return err
	}
	followers, err := nf.followers(ctx, n.Job)
	if err != nil {
		return err
	}
	if !have {
		if len(followers) == 0 {
			return nil
		}
		l, err := nf.followersLang(ctx, n.Job)
		if err != nil {
			return err
		}
		k = card.Card{Began: nf.now(), Team: followers[0].Team, Lang: l}
	}
	owner, pipeline := pipeline.Of(ctx, nf.Reader(ctx, n.Job), n.Job.Cluster, n.Job)
	isStep := pipeline != ""
	if !isStep {
		k.Places = addPlaces(k.Places, followers...)
	}
	before := k.News
	if before.Job.State.Ended() && !n.Job.State.Ended() {
		if !requeued(k, n.Job) {
			return nil // these numbers were read before the end
		}
		k.EndedAt = time.Time{} // the job was requeued, and the earlier failure no longer matters
		before.Why, before.Says, before.Cause, before.Class, before.Exclude, before.Fix, before.FixSays = "", lang.Text{}, nil, "", nil, nil, nil
		k.Taken, k.TakenAt, k.Acted = "", time.Time{}, ""
	}
	// A queue does not count runs. Each run has replies of its own, so the count never falls.
	n.Job.Restarts = max(n.Job.Restarts, before.Job.Restarts)
	k.News = n.Keep(before)
	if n.Job.State.Ended() && k.EndedAt.IsZero() {
		k.EndedAt = nf.now()
	}
	owed := nf.draw(ctx, &k)
	if isStep { // all steps of a pipeline share one card
		all, err := nf.tellPipeline(ctx, owner, pipeline, &k, followers, before.Job.State != n.Job.State)
		if err != nil {
			return err
		}
		owed = append(owed, all...)
	}
	switch {
	case have && before.Job.State != n.Job.State, !have && n.Job.State.Ended():
		owed = append(owed, nf.threadReplies(ctx, &k, id, "")...)
	case n.Job.State.Ended() && before.Cause == nil && n.Cause != nil: // its diagnosis came late
		called := k
		called.Muted = append(slices.Clone(k.Muted), k.User) // mentions them for the end only
		owed = append(owed, nf.threadReplies(ctx, &called, id, "cause/")...)
	}
	if err := nf.cfg.Store.Enqueue(ctx, owed...); err != nil {
		return err
	}
	return nf.keepCard(ctx, k)
}

// requeued reports whether a job runs or waits again after the end that its card shows: it has
// more restarts, or it was submitted or started since. Slurm sets a new submit time when it
// requeues a job.
func requeued(k card.Card, now slurm.Job) bool {
	last := k.News.Job
	if now.State.Ended() || k.EndedAt.IsZero() {
		return false
	}
	ended := k.EndedAt
	if last.EndedAt != nil {
		ended = *last.EndedAt
	}
	since := func(at *time.Time) bool { return at != nil && at.After(ended) }
	return now.Restarts > last.Restarts || since(now.SubmittedAt) || now.State != slurm.Pending && since(now.StartedAt)
}

// addPlaces appends to places those of more that it does not have yet.
func addPlaces(places []card.Place, more ...card.Place) []card.Place {
	for _, p := range more {
		if !slices.ContainsFunc(places, func(q card.Place) bool { return q.Team == p.Team && q.Channel == p.Channel }) {
			places = append(places, p)
		}
	}
	return places
}

// draw queues a card's message in each place: first a new message, then edits.
func (nf *Notifier) draw(ctx context.Context, k *card.Card) (owed []store.SlackMessage) {
	id := card.ID(k.News.Job.Cluster, k.News.Job.ID)
	k.Page = nf.cfg.Service.JobPage(k.News.Job.Cluster, k.News.Job.ID)
	for i := range k.Places {
		p := &k.Places[i]
		l := nf.langOfCard(ctx, k)
		posted := p.Hash != ""
		text, blocks := card.Draw(*k, l, posted)
		sum := sha256.Sum256(blocks)
		hash := hex.EncodeToString(sum[:8]) + string(k.News.Job.State)
		if hash == p.Hash {
			continue
		}
		urgent := !strings.HasSuffix(p.Hash, string(k.News.Job.State)) || k.News.Job.State.Ended()
		owed = append(owed, nf.showIn(ctx, p, id, k.User, &k.Edits, urgent, outbox.Message{Instead: k.User, Text: text, Blocks: blocks}))
		p.Hash = hash
	}
	return owed
}

// showIn posts a card in a place, or edits it there. Edits that are not urgent keep a pace.
func (nf *Notifier) showIn(ctx context.Context, p *card.Place, id, user string, edits *int, urgent bool, o outbox.Message) store.SlackMessage {
	key := p.Key(id)
	o.Do, o.Team, o.Channel = outbox.Post, p.Team, p.Channel
	m := nf.out.Owe(key, key, o)
	if p.Channel != user && !strings.HasPrefix(p.Channel, "D") {
		m.NotBefore = nf.notBefore(ctx, *p, user) // a person who has just asked is awake
	}
	if p.Hash != "" {
		*edits++
		o.Do, o.Ref, o.Anew = outbox.Update, key, true
		m = nf.out.Owe(fmt.Sprintf("%s/%d", key, *edits), key, o)
		m.Collapse = key
		if !urgent {
			m.NotBefore = p.Edited.Add(nf.cfg.EditPace)
		}
	}
	if p.Edited = nf.now(); m.NotBefore.After(p.Edited) {
		p.Edited = m.NotBefore
	}
	return m
}

// threadReplies returns the messages for the thread of the card id after a job's state has
// changed; own distinguishes the keys of the messages. Such a reply is not also shown in the
// channel. It mentions the person only for an end that they did not cause themselves.
func (nf *Notifier) threadReplies(ctx context.Context, k *card.Card, id, own string) (owed []store.SlackMessage) {
	j := k.News.Job
	s := nf.people.Settings(ctx, k.Team, k.User)
	l := nf.langOfCard(ctx, k)
	headline := card.Headline(k.News, l)
	if by := k.EndedBy(); j.State == slurm.Cancelled && by != "" && by != k.User {
		who, _ := nf.people.Linked(ctx, k.Team, by)
		headline += fmt.Sprintf(card.EndedBy.In(l), cmp.Or(who.User, by))
	}
	doc := view.Doc{Sections: []view.Section{{Text: headline}}}
	switch {
	case j.State.Ended() && k.News.Cause != nil:
		doc = *k.News.Cause
	case j.State != slurm.Running && !j.State.Ended():
		return nil
	}
	r := answer.Render(doc, l)
	r.Text = answer.Escape(headline)
	if j.State.Ended() && k.User != "" && nf.mayMention(s, k) {
		r.Messages[0] = append([]slack.Block{mentionLine(k.User)}, r.Messages[0][:min(len(r.Messages[0]), answer.MaxBlocks-1)]...)
	}
	for _, p := range k.Places {
		key := p.Key(id)
		add := func(what, lane string, o outbox.Message) {
			o.Team, o.ThreadOf, o.Instead = p.Team, key, k.User
			m := nf.out.Owe(fmt.Sprintf("%s/%s%s%d/%s", key, own, j.State, j.Restarts, what), key+lane, o)
			m.NotBefore = nf.notBefore(ctx, p, k.User)
			owed = append(owed, m)
		}
		for i, bs := range r.Messages {
			add(strconv.Itoa(i), outbox.LaneOfThread, outbox.Message{Do: outbox.Post, Text: r.Text, Blocks: answer.BlocksJSON(bs)})
		}
		for i, f := range r.Files {
			add(fmt.Sprintf("file%d", i), outbox.LaneOfFiles, outbox.Message{Do: outbox.Upload, File: &f})
		}
	}
	return owed
}

// notBefore returns when a message that nobody asked for may be sent to a place: at once to a
// channel, and after the quiet hours to a person. owner is the person of a direct channel.
func (nf *Notifier) notBefore(ctx context.Context, p card.Place, owner string) time.Time {
	who := p.Channel
	switch {
	case strings.HasPrefix(who, "D"):
		who = owner
	case !strings.HasPrefix(who, "U") && !strings.HasPrefix(who, "W"):
		return time.Time{}
	}
	return nf.people.Settings(ctx, p.Team, who).QuietUntil(nf.now())
}

// langOfCard returns a card's language: the one that its requester chose, or else the one of
// the request.
func (nf *Notifier) langOfCard(ctx context.Context, k *card.Card) lang.Lang {
	return nf.people.Settings(ctx, k.Team, k.User).LangOr(k.Lang)
}

// cardLang returns the language of a job's card, also of one that is still to come.
func (nf *Notifier) cardLang(ctx context.Context, j slurm.Job) lang.Lang {
	k, ok, err := nf.Card(ctx, j.Cluster, j.ID)
	if err != nil || !ok {
		l, _ := nf.followersLang(ctx, j)
		return cmp.Or(l, lang.EN)
	}
	return nf.langOfCard(ctx, &k)
}

// mayMention reports whether the person may be notified by a mention now.
func (nf *Notifier) mayMention(s people.Settings, k *card.Card) bool {
	if s.Notify == "ends" && k.News.Job.State == slurm.Completed {
		return false
	}
	return s.Notify != "none" && !s.Quiet(nf.now()) && k.EndedBy() != k.User && !slices.Contains(k.Muted, k.User)
}

// attach uploads a file into the thread of the job's card, in each place. what names the file
// in the message's key, so that it is sent once.
func (nf *Notifier) attach(ctx context.Context, j slurm.Job, what string, o outbox.Message) error {
	id := card.ID(j.Cluster, j.ID)
	k, ok, err := nf.cardAt(ctx, id)
	if err != nil || !ok {
		return err
	}
	var owed []store.SlackMessage
	for _, p := range k.Places {
		key := p.Key(id)
		o.Do, o.Team, o.ThreadOf, o.Instead = outbox.Upload, p.Team, key, k.User
		m := nf.out.Owe(key+"/"+what, key+outbox.LaneOfFiles, o)
		m.NotBefore = nf.notBefore(ctx, p, k.User)
		owed = append(owed, m)
	}
	return nf.cfg.Store.Enqueue(ctx, owed...)
}
