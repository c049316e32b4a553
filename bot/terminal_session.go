package bot

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/terminal"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// NewLocal returns a bot that talks to one person at a terminal instead of to Slack. cfg needs
// no tokens, and neither Work nor Receive is called.
func NewLocal(cfg Config) (*Bot, error) {
	cfg.BotToken, cfg.SigningSecret = "xoxb-none", "none"
	return New(cfg)
}

// localTeam is the workspace of people at a terminal.
const localTeam = "local"

// A Local is one person's conversation with the bot at a terminal, with the same words, answers
// and buttons as in Slack.
type Local struct {
	// Stream is called with the parts of an answer as they come; nil means that the answer
	// comes at the end.
	Stream func(text string)
	// Width returns the terminal's columns and is called for each answer; nil or 0 means any
	// number.
	Width func() int

	b    *Bot
	user string
	dir  string
	lang lang.Lang
	n    int
	jobs map[string]card.Card // submitted here
	form string               // the metadata of the form that is open
	// values are the initial values of the open form.
	values map[string]string
	// heard holds the alarms that were shown, by job and alarm. looked holds the time when a
	// running job's numbers were last read.
	heard  map[string]bool
	looked map[string]time.Time
}

// A Field is one question of a form.
type Field struct {
	Name    string
	Label   string
	Hint    string
	Value   string // what an empty line means
	Choices []string
}

// A Reply is the answer to one thing that the person did. Fields is set where a form is to be
// filled in; Errors then holds the messages by field.
type Reply struct {
	Said   []terminal.Message
	Fields []Field
	Errors map[string]string
}

// Local starts a conversation with the operating system's user, who acts as the cluster user of
// the same name. Relative paths are below dir.
func (b *Bot) Local(user, dir string, l lang.Lang) *Local {
	return &Local{b: b, user: user, dir: dir, lang: l, jobs: map[string]card.Card{}, heard: map[string]bool{}, looked: map[string]time.Time{}}
}

// ask returns an ask for the person's next action.
func (s *Local) ask(k incoming.Kind) incoming.Ask {
	s.n++
	return incoming.Ask{
		Key: incoming.KeyOf("local", s.user, strconv.FormatInt(s.b.now().UnixNano(), 36), strconv.Itoa(s.n)), Kind: k, At: s.b.now(),
		Team: localTeam, User: s.user, Channel: "D" + s.user, Direct: true, Thread: "terminal",
		Terminal: &incoming.Terminal{
			User: s.user, Dir: s.dir, Lang: s.lang, Stream: s.Stream, Width: s.Width,
			Submitted: func(j slurm.Job) { s.jobs[card.ID(j.Cluster, j.ID)] = card.Card{News: card.News{Job: j}} },
			OpenForm:  func(meta string, values map[string]string) { s.form, s.values = meta, values },
		},
	}
}

// Type answers a line that the person typed.
func (s *Local) Type(ctx context.Context, text string) Reply {
	a := s.ask(incoming.AsMessage)
	a.Text = strings.TrimPrefix(strings.TrimSpace(text), "/megatron")
	return s.reply(ctx, a)
}

// Press answers a choice.
func (s *Local) Press(ctx context.Context, c terminal.Choice) Reply {
	a := s.ask(incoming.AsButton)
	a.Action, a.Value = c.Action, c.Value
	return s.reply(ctx, a)
}

// Fill answers a form: with errors at its fields, or with what would be submitted and the
// choice to submit it.
func (s *Local) Fill(ctx context.Context, values map[string]string) Reply {
	a := s.ask(incoming.AsForm)
	a.Callback, a.Fields, a.Meta = form.SubmitCallback, values, s.form
	meta, c := s.b.readMeta(ctx, &a)
	errs := s.b.formErrors(ctx, a, c, meta)
	var summary form.Summary
	var id string
	if errs == nil {
		var v form.Verdict
		if summary, id, v = s.b.confirmation(ctx, a, c, meta); v.Stops() {
			errs = v.Errors()
		}
	}
	if len(errs) > 0 {
		return Reply{Fields: formQuestions(values, s.lang), Errors: errs}
	}
	said := terminal.Text(answer.BlocksJSON(form.ConfirmView(summary, id, s.lang).Blocks.BlockSet), s.columns())
	said.Text += "\n" + answer.Clean(strings.TrimRight(summary.Script, "\n"))
	said.Choices = append(said.Choices,
		terminal.Choice{Label: form.SubmitLabel.In(s.lang), Action: answer.ActYes, Value: id},
		terminal.Choice{Label: answer.No.In(s.lang), Action: answer.ActNo, Value: id})
	return Reply{Said: []terminal.Message{said}}
}

func (s *Local) reply(ctx context.Context, a incoming.Ask) Reply {
	s.form = ""
	owed := s.b.handle(ctx, a)
	r := Reply{Said: s.draw(owed)}
	if s.form != "" {
		r.Fields = formQuestions(s.values, s.lang)
	}
	return r
}

// columns returns the terminal's columns, or 0.
func (s *Local) columns() int {
	if s.Width == nil {
		return 0
	}
	return s.Width()
}

// draw turns messages for Slack into text.
func (s *Local) draw(owed []store.SlackMessage) (said []terminal.Message) {
	for _, m := range owed {
		var o outbox.Message
		if json.Unmarshal([]byte(m.Body), &o) != nil {
			continue
		}
		switch {
		case o.File != nil && o.Bytes == nil:
			said = append(said, terminal.Message{Text: "── " + o.File.Name + " ──\n" + strings.TrimRight(o.File.Content, "\n")})
		case o.Blocks != nil && o.Do != outbox.Home:
			said = append(said, terminal.Text(o.Blocks, s.columns()))
		}
	}
	return said
}

// Look reports the jobs that were submitted here and have changed since.
func (s *Local) Look(ctx context.Context) (said []terminal.Message) {
	rows := s.queue(ctx)
	for id, k := range s.jobs {
		cl, ok := s.b.cfg.Service.Clusters[k.News.Job.Cluster]
		if !ok || k.News.Job.State.Ended() {
			continue
		}
		j, ok := slurm.Fold(k.News.Job.ID, rows[k.News.Job.Cluster])
		if !ok { // the job has left the queue
			var err error
			if j, err = cl.Job(ctx, k.News.Job.ID); err != nil {
				continue
			}
		}
		j.Cluster = k.News.Job.Cluster
		if j.State == k.News.Job.State {
			said = append(said, s.alarms(ctx, id, j)...)
			continue
		}
		k.News.Job = j
		if j.State.Ended() && j.State != slurm.Completed && j.State != slurm.Cancelled {
			s.b.news.FindCause(ctx, &k.News, s.lang)
		}
		s.jobs[id] = k
		_, blocks := card.Draw(k, s.lang, false)
		said = append(said, terminal.Text(blocks, s.columns()))
	}
	return said
}

// queue returns what the queue of each cluster shows of the jobs that have not ended, by one
// query to each cluster.
func (s *Local) queue(ctx context.Context) map[string][]slurm.Job {
	ids := map[string][]slurm.JobID{}
	for _, k := range s.jobs {
		if j := k.News.Job; !j.State.Ended() && s.b.cfg.Service.Clusters[j.Cluster] != nil {
			ids[j.Cluster] = append(ids[j.Cluster], j.ID)
		}
	}
	rows := map[string][]slurm.Job{}
	for name, list := range ids {
		rows[name], _ = s.b.cfg.Service.Reader(name).Jobs(ctx, slurm.Filter{IDs: list, All: true}) // on an error Look asks for each job
	}
	return rows
}

// alarms reports problems of a running job, each once.
func (s *Local) alarms(ctx context.Context, id string, j slurm.Job) (said []terminal.Message) {
	if j.State != slurm.Running || s.b.now().Sub(s.looked[id]) < 15*time.Second {
		return nil
	}
	s.looked[id] = s.b.now()
	all, err := joblogs.Alarms(ctx, s.b.news.Reader(ctx, j), j)
	if err != nil {
		return nil // the next look tries again
	}
	for _, a := range all {
		if key := id + "/" + a.ID; !s.heard[key] {
			s.heard[key] = true
			for _, bs := range answer.Render(a.View(s.lang), s.lang).Messages {
				said = append(said, terminal.Text(answer.BlocksJSON(bs), s.columns()))
			}
		}
	}
	return said
}

// terminalChoices are the values that a terminal offers for a field; they are known without the
// cluster.
var terminalChoices = map[string][]string{"gpu": gpuKinds}

func formQuestions(values map[string]string, l lang.Lang) (fs []Field) {
	for _, f := range form.Fields {
		value, ok := values[f.Name]
		if !ok {
			value = f.Initial
		}
		if f.Rare() && value == "" {
			continue // a terminal asks for the fields one by one, so it leaves out the rare ones
		}
		fs = append(fs, Field{Name: f.Name, Label: f.Label.In(l), Hint: f.Hint.In(l), Value: value, Choices: terminalChoices[f.Name]})
	}
	return fs
}
