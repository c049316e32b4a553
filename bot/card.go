package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// News is what the watcher has seen of a job. Zero values are not known.
type News struct {
	Job slurm.Job
	// Position is the job's place among the InLine jobs that wait for the same
	// partition, from 1; below 0: it is not in line.
	Position, InLine int

	Iteration    int
	Iterations   int
	Loss         *float64
	TFLOPs       *float64 // a GPU
	ETA          time.Duration
	Checkpoint   int // the iteration of the last one
	CheckpointAt time.Time

	// Cause is the diagnosis of a job that failed, root cause first; Class is its
	// class and Exclude are the nodes to avoid.
	Cause   *view.Doc
	Class   string
	Exclude []string
	// Fix says what a button would change before it submits the job again.
	Fix []string
}

// A card is a job's message: one in each place that follows the job, edited in
// place for as long as the job lives.
type card struct {
	Team     string    `json:"team"`
	User     string    `json:"user"` // who asked for the job; empty: not from Slack
	Approver string    `json:"approver,omitempty"`
	Lang     lang.Lang `json:"lang,omitempty"`
	Acted    string    `json:"acted,omitempty"` // who changed it last
	Places   []place   `json:"places"`
	Muted    []string  `json:"muted,omitempty"` // people
	News     News      `json:"news"`
	Began    time.Time `json:"began"`
	EndedAt  time.Time `json:"ended_at,omitzero"`
	Edits    int       `json:"edits"`
}

// A place is where a card stands.
type place struct {
	Team    string    `json:"team"`
	Channel string    `json:"channel"` // or a user's id
	Hash    string    `json:"hash,omitempty"`
	Edited  time.Time `json:"edited,omitzero"`
}

func cardID(cluster string, id slurm.JobID) string { return cluster + "/" + string(id) }

// key names the card's message in a place.
func (p place) key(id string) string { return "card/" + id + "@" + p.Team + "/" + p.Channel }

// follow gives a submitted job its card, in the place where it was asked for,
// and remembers who changed a job.
func (b *Bot) follow(ctx context.Context, a ask, c *ops.Call, op ops.Op, in, result any) []store.SlackMessage {
	if op.Effect == ops.Read {
		return nil
	}
	cluster, id := stringField(result, "cluster"), stringField(result, "job_id")
	if op.Name != "submit" && op.Name != "resubmit" {
		if id = stringField(in, "job"); id != "" {
			b.acted(ctx, a, c, cluster, slurm.JobID(id))
		}
		return nil
	}
	if !slurm.IsJobID(id) { // nothing was submitted, or it is a step of a job
		return nil
	}
	if cluster == "" {
		cluster = c.Default
	}
	news := News{Job: slurm.Job{ID: slurm.JobID(id), Cluster: cluster, Name: stringField(result, "name"), User: c.Who.User, State: slurm.Pending}}
	if j, ok := queued(ctx, c.Service, cluster, slurm.JobID(id)); ok {
		news.Job = j
	}
	if a.local != nil {
		k := card{News: news}
		a.local.jobs[cardID(cluster, slurm.JobID(id))] = k
		text, blocks := drawCard(k, c.Lang, false)
		return []store.SlackMessage{b.owe(a.Key+"/card", "local", out{Do: doPost, Text: text, Blocks: blocks})}
	}
	where := a.Channel
	if where == "" {
		where = a.User
	}
	k := card{Team: a.Team, User: a.User, Lang: c.Lang, Approver: a.Approver, News: news, Began: b.now(), Places: []place{{Team: a.Team, Channel: where}}}
	if err := b.begin(ctx, k, clean(stringField(result, "script"))); err != nil {
		b.log.Error("slack: card", "job", id, "err", err)
	}
	return nil
}

// begin gives a job its card. It is queued here and not with the answer: as soon
// as the card is stored, news of the job may edit it, and an edit must come
// after what it edits.
func (b *Bot) begin(ctx context.Context, k card, script string) error {
	b.cards.Lock()
	defer b.cards.Unlock()
	id := cardID(k.News.Job.Cluster, k.News.Job.ID)
	var old card
	have, err := b.cfg.Store.Get(ctx, docCard, id, b.now(), &old)
	switch {
	case err != nil:
		return err
	case have && old.User != "":
		return nil // asked for again, or carried out again after a crash
	case have: // somebody who follows all jobs was told first
		if !slices.ContainsFunc(old.Places, func(p place) bool { return p.Team == k.Places[0].Team && p.Channel == k.Places[0].Channel }) {
			old.Places = append(old.Places, k.Places[0])
		}
		old.Team, old.User, old.Lang, old.Approver = k.Team, k.User, k.Lang, k.Approver
		old.News = k.News.keep(old.News)
		k = old
	}
	owed := b.draw(ctx, &k)
	// Requester and approver are named by an edit, which calls nobody.
	for _, m := range b.draw(ctx, &k) {
		m.NotBefore = time.Time{}
		owed = append(owed, m)
	}
	if script != "" {
		for _, p := range k.Places {
			key := p.key(id)
			owed = append(owed, b.owe(key+"/script", key+"/thread", out{
				Do: doUpload, Team: p.Team, ThreadOf: key, File: &File{Name: string(k.News.Job.ID) + ".sbatch", Title: k.News.Job.Name, Content: script},
			}))
		}
	}
	if err := b.cfg.Store.Enqueue(ctx, owed...); err != nil {
		return err
	}
	b.send.wake()
	b.watchers.follow(k.News.Job)
	return b.keepCard(ctx, k)
}

// Carry gives the job that was submitted in place of another a card where that
// one has its own.
func (b *Bot) Carry(ctx context.Context, from slurm.Job, next slurm.JobID) error {
	var old card
	ok, err := b.cfg.Store.Get(ctx, docCard, cardID(from.Cluster, from.ID), b.now(), &old)
	if err != nil || !ok {
		return err
	}
	k := card{Team: old.Team, User: old.User, Lang: old.Lang, Began: b.now(), News: News{Job: slurm.Job{
		ID: next, Cluster: from.Cluster, Name: from.Name, User: from.User, Partition: from.Partition, NumNodes: from.NumNodes, State: slurm.Pending,
	}}}
	for _, p := range old.Places {
		k.Places = append(k.Places, place{Team: p.Team, Channel: p.Channel})
	}
	return b.begin(ctx, k, "")
}

// acted remembers who changed a job, so that they are not called for it.
func (b *Bot) acted(ctx context.Context, a ask, c *ops.Call, cluster string, id slurm.JobID) {
	if cluster == "" {
		cluster = c.Default
	}
	b.withCard(ctx, cluster, id, func(k *card) { k.Acted = a.User })
}

// withCard changes a card that exists.
func (b *Bot) withCard(ctx context.Context, cluster string, id slurm.JobID, change func(*card)) bool {
	b.cards.Lock()
	defer b.cards.Unlock()
	var k card
	ok, err := b.cfg.Store.Get(ctx, docCard, cardID(cluster, id), b.now(), &k)
	if err != nil || !ok {
		return false
	}
	change(&k)
	return b.keepCard(ctx, k) == nil
}

// keepCard stores a card: for good while its job lives, and for a month after.
func (b *Bot) keepCard(ctx context.Context, k card) error {
	id := cardID(k.News.Job.Cluster, k.News.Job.ID)
	if k.EndedAt.IsZero() {
		if err := b.cfg.Store.Put(ctx, docAlive, id, true, time.Time{}); err != nil {
			return err
		}
		return b.cfg.Store.Put(ctx, docCard, id, k, time.Time{})
	}
	if err := b.cfg.Store.Put(ctx, docCard, id, k, k.EndedAt.AddDate(0, 1, 0)); err != nil {
		return err
	}
	return b.cfg.Store.Delete(ctx, docAlive, id)
}

// Tell brings what the watcher has seen to the job's cards. Jobs that nobody
// follows here are passed over.
func (b *Bot) Tell(ctx context.Context, n News) error {
	b.cards.Lock()
	defer b.cards.Unlock()
	id := cardID(n.Job.Cluster, n.Job.ID)
	var k card
	have, err := b.cfg.Store.Get(ctx, docCard, id, b.now(), &k)
	if err != nil {
		return err
	}
	followers, err := b.followers(ctx, n.Job)
	if err != nil {
		return err
	}
	if !have {
		if len(followers) == 0 {
			return nil
		}
		k = card{Began: b.now(), Team: followers[0].Team}
	}
	for _, p := range followers {
		if !slices.ContainsFunc(k.Places, func(q place) bool { return q.Team == p.Team && q.Channel == p.Channel }) {
			k.Places = append(k.Places, p)
		}
	}
	before := k.News
	if before.Job.State.Ended() && !n.Job.State.Ended() {
		if n.Job.Restarts <= before.Job.Restarts {
			return nil // numbers that were read before the end
		}
		k.EndedAt = time.Time{} // requeued
	}
	k.News = n.keep(before)
	if n.Job.State.Ended() && k.EndedAt.IsZero() {
		k.EndedAt = b.now()
	}
	owed := b.draw(ctx, &k)
	if have && before.Job.State != n.Job.State || !have && n.Job.State.Ended() {
		owed = append(owed, b.tale(ctx, &k)...)
	}
	if err := b.cfg.Store.Enqueue(ctx, owed...); err != nil {
		return err
	}
	b.send.wake()
	return b.keepCard(ctx, k)
}

// keep fills in from before what this news does not tell.
func (n News) keep(before News) News {
	to, from := reflect.ValueOf(&n).Elem(), reflect.ValueOf(before)
	for i := range to.NumField() {
		if f := to.Field(i); f.IsZero() {
			f.Set(from.Field(i))
		}
	}
	return n
}

// draw queues the card's message in each place: the first time a message, then
// edits of it.
func (b *Bot) draw(ctx context.Context, k *card) (owed []store.SlackMessage) {
	id := cardID(k.News.Job.Cluster, k.News.Job.ID)
	for i := range k.Places {
		p := &k.Places[i]
		l := b.langOfCard(ctx, k)
		posted := p.Hash != ""
		text, blocks := drawCard(*k, l, posted)
		sum := sha256.Sum256(blocks)
		hash := hex.EncodeToString(sum[:8]) + string(k.News.Job.State)
		if hash == p.Hash {
			continue
		}
		urgent := !posted || !strings.HasSuffix(p.Hash, string(k.News.Job.State)) || k.News.Job.State.Ended()
		key := p.key(id)
		o := out{Do: doPost, Team: p.Team, Channel: p.Channel, Instead: k.User, Text: text, Blocks: blocks}
		m := b.owe(key, key, o)
		if p.Channel != k.User && !strings.HasPrefix(p.Channel, "D") {
			m.NotBefore = b.wakes(ctx, *p, k.User) // who has just asked is awake
		}
		if posted {
			k.Edits++
			o.Do, o.Ref = doUpdate, key
			m = b.owe(fmt.Sprintf("%s/%d", key, k.Edits), key, o)
			m.Collapse = key
			if !urgent {
				m.NotBefore = p.Edited.Add(b.cfg.EditPace)
			}
		}
		p.Hash = hash
		if p.Edited = b.now(); m.NotBefore.After(p.Edited) {
			p.Edited = m.NotBefore
		}
		owed = append(owed, m)
	}
	return owed
}

// tale is what the thread below the card tells when the state has changed. A
// reply is never shown in the channel too, and calls the person only for an end
// that they did not bring about themselves.
func (b *Bot) tale(ctx context.Context, k *card) (owed []store.SlackMessage) {
	j := k.News.Job
	id := cardID(j.Cluster, j.ID)
	s := b.settings(ctx, k.Team, k.User)
	l := b.langOfCard(ctx, k)
	doc := view.Doc{Title: stateWords(j.State, l), Tone: toneOf(j.State)}
	switch {
	case j.State == slurm.Running:
		doc.Sections = []view.Section{{Text: fmt.Sprintf(textStarted.In(l), strings.Join(j.Nodes, ", "))}}
	case j.State.Ended() && k.News.Cause != nil:
		doc = *k.News.Cause
	case j.State.Ended():
		doc.Sections = []view.Section{{Facts: endFacts(j, l)}}
	default:
		return nil
	}
	r := Render(doc, l)
	if j.State.Ended() && k.User != "" && b.mayCall(s, k) {
		r.Messages[0] = append([]slack.Block{calling(k.User)}, r.Messages[0][:min(len(r.Messages[0]), maxBlocks-1)]...)
	}
	for _, p := range k.Places {
		key := p.key(id)
		add := func(what string, o out) {
			o.Team, o.ThreadOf = p.Team, key
			m := b.owe(fmt.Sprintf("%s/%s%d/%s", key, j.State, j.Restarts, what), key+"/thread", o)
			m.NotBefore = b.wakes(ctx, p, k.User)
			owed = append(owed, m)
		}
		for i, bs := range r.Messages {
			add(strconv.Itoa(i), out{Do: doPost, Text: r.Text, Blocks: blocksJSON(bs)})
		}
		for i, f := range r.Files {
			add(fmt.Sprintf("file%d", i), out{Do: doUpload, File: &f})
		}
	}
	return owed
}

// wakes is when a message of its own accord may reach a place: in a channel at
// once, with a person after their quiet hours. owner is whose a direct channel
// is.
func (b *Bot) wakes(ctx context.Context, p place, owner string) time.Time {
	who := p.Channel
	switch {
	case strings.HasPrefix(who, "D"):
		who = owner
	case !strings.HasPrefix(who, "U") && !strings.HasPrefix(who, "W"):
		return time.Time{}
	}
	return b.settings(ctx, p.Team, who).wakes(b.now())
}

// langOfCard is the language of a card: the one that its requester chose, else
// the one that they asked in.
func (b *Bot) langOfCard(ctx context.Context, k *card) lang.Lang {
	if s := b.settings(ctx, k.Team, k.User); s.Lang != "" {
		return s.Lang
	}
	return k.Lang
}

// cardLang is the language of a job's card.
func (b *Bot) cardLang(ctx context.Context, j slurm.Job) lang.Lang {
	var k card
	if ok, err := b.cfg.Store.Get(ctx, docCard, cardID(j.Cluster, j.ID), b.now(), &k); err != nil || !ok {
		return lang.EN
	}
	return b.langOfCard(ctx, &k)
}

// mayCall reports whether the person may be called by a mention now.
func (b *Bot) mayCall(s settings, k *card) bool {
	if s.Notify == "ends" && k.News.Job.State == slurm.Completed {
		return false
	}
	return s.Notify != "none" && !s.quiet(b.now()) && k.Acted != k.User && !slices.Contains(k.Muted, k.User)
}

// attach uploads a file into the thread of the job's card, in each place; what
// names it for good.
func (b *Bot) attach(ctx context.Context, j slurm.Job, what string, o out) error {
	id := cardID(j.Cluster, j.ID)
	var k card
	ok, err := b.cfg.Store.Get(ctx, docCard, id, b.now(), &k)
	if err != nil || !ok {
		return err
	}
	var owed []store.SlackMessage
	for _, p := range k.Places {
		key := p.key(id)
		o.Do, o.Team, o.ThreadOf = doUpload, p.Team, key
		m := b.owe(key+"/"+what, key+"/thread", o)
		m.NotBefore = b.wakes(ctx, p, k.User)
		owed = append(owed, m)
	}
	defer b.send.wake()
	return b.cfg.Store.Enqueue(ctx, owed...)
}

// stringField reads a string, or a pointer to one, by its JSON name.
func stringField(v any, name string) string {
	f := fieldNamed(reflect.ValueOf(v), name)
	for f.IsValid() && f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	if !f.IsValid() || f.Kind() != reflect.String {
		return ""
	}
	return f.String()
}
