package bot_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	gallery = flag.String("gallery", "", "the folder to write the pictures of the day into, as HTML")
	score   = flag.Bool("score", false, "play a day to its end, and say which steps went otherwise than they are written")
)

// A dayStep is one action of a person, chosen by a label that they read on the screen, and what
// they can read afterwards.
type dayStep struct {
	Title   string `yaml:"title"`
	Who     string `yaml:"who"`
	Channel string `yaml:"channel"`
	// The action: one of these.
	Slash    *string           `yaml:"slash"`
	Mention  string            `yaml:"mention"`
	Write    string            `yaml:"write"` // a direct message
	Press    string            `yaml:"press"` // a button, an entry of a menu or select, by its label
	Home     bool              `yaml:"home"`
	Send     map[string]string `yaml:"send"`     // the form, with these values
	Lint     string            `yaml:"lint"`     // "Lint this script" on a message that says this
	Diagnose string            `yaml:"diagnose"` // "Diagnose this" on one that says this
	Job      *dayJob           `yaml:"job"`      // what happens on the cluster meanwhile
	// On selects the message by its words, or puts a mention into its thread; empty means the
	// last message that was seen.
	On       string `yaml:"on"`
	InThread string `yaml:"in_thread"`
	// See lists what can be read then, Not what cannot, and In says where: in a message, a
	// modal or the home tab.
	See []string `yaml:"see"`
	Not []string `yaml:"not"`
	In  string   `yaml:"in"`
}

// A dayJob is a job as the cluster has it from then on.
type dayJob struct {
	ID    string `yaml:"id"`
	Name  string `yaml:"name"`
	User  string `yaml:"user"`
	State string `yaml:"state"`
	Log   string `yaml:"log"`
}

// A dayPlayer plays a day against the played Slack.
type dayPlayer struct {
	*stage
	msg  *slacktest.Message
	view map[string]any
	ts   int
	seen []slacktest.Drawn
	// before is the number of messages before a question: its answer is a later message.
	before, missed int
}

// The whole day is played by labels. Every view is checked against Slack's limits and types,
// since the played Slack refuses what Slack would.
func TestADayPlayedByItsLabels(t *testing.T) {
	for _, file := range []string{"day.en.yaml", "day.zh.yaml", "day2.en.yaml", "day3.en.yaml"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join("testdata", file))
			require.NoError(t, err)
			var steps []dayStep
			require.NoError(t, yaml.UnmarshalWithOptions(raw, &steps, yaml.Strict()))
			p := &dayPlayer{stage: play(t, watched, func(c *bot.Config) {
				c.Service.Clusters["yard"] = surveyedWatchedYard{surveyedYard{c.Service.Clusters["yard"].(watchedYard).yard}}
				c.Policy.Operators = []string{"U6"}
			})}
			for i, step := range steps {
				p.step(fmt.Sprintf("%02d %s", i+1, step.Title), step)
			}
			if *score {
				t.Logf("%s: %d of %d steps went as written", file, len(steps)-p.missed, len(steps))
			}
			for _, c := range p.State().Calls {
				require.Empty(t, c.Problems, "%s", c.Method)
			}
			p.writeGallery(file)
			p.written()
			slacktest.CheckTypes(t, filepath.Join("..", "tools", "node", "node_modules"), p.seen)
		})
	}
}

// A surveyedWatchedYard has partitions, accounts and accounting records.
type surveyedWatchedYard struct{ surveyedYard }

func (y surveyedWatchedYard) Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	return watchedYard{y.yard}.Past(ctx, f)
}

// step does one step, and waits for what can be read then.
func (p *dayPlayer) step(name string, s dayStep) {
	p.t.Helper()
	who := cmp.Or(s.Who, "U1")
	channel := cmp.Or(s.Channel, "C1")
	if s.On != "" {
		p.msg = p.newest(s.On)
	}
	p.ts++
	p.before = 0
	if s.Slash != nil || s.Mention+s.Write+s.Lint+s.Diagnose != "" {
		p.before = len(p.State().Messages)
	}
	ts := fmt.Sprintf("1700000000.%06d", p.ts)
	switch {
	case s.Slash != nil:
		p.Slash(*s.Slash, map[string]any{"user_id": who, "channel_id": channel})
	case s.Mention != "":
		e := map[string]any{"type": "app_mention", "user": who, "channel": channel, "ts": ts, "text": "<@UBOT> " + s.Mention}
		if s.InThread != "" {
			m := p.newest(s.InThread)
			e["thread_ts"], e["channel"] = cmp.Or(m.Thread, m.TS), m.Channel
		}
		p.Event(e)
	case s.Write != "":
		p.Event(map[string]any{"type": "message", "channel_type": "im", "user": who, "channel": "D" + who, "ts": ts, "text": s.Write})
	case s.Home:
		p.Event(map[string]any{"type": "app_home_opened", "user": who, "channel": "D" + who, "tab": "home", "event_ts": ts})
	case s.Lint+s.Diagnose != "":
		action := map[bool]string{true: "lint_message", false: "diagnose_message"}[s.Lint != ""]
		p.Interact(map[string]any{
			"type": "message_action", "callback_id": action, "channel": map[string]any{"id": channel}, "user": map[string]any{"id": who, "team_id": "T1"},
			"message": map[string]any{"ts": ts, "text": s.Lint + s.Diagnose},
		})
	case s.Send != nil:
		sendForm(p.t.(*testing.T), p.stage, p.view, p.view["callback_id"], p.view["private_metadata"], s.Send)
	case s.Press != "" && p.view != nil && s.On == "":
		p.pressInView(s.Press)
	case s.Press != "":
		if !p.offered(s.Press) {
			p.t.Logf("MISSED %s: no %q", name, s.Press)
			p.missed++
			return
		}
		p.PressLabel(p.msg, s.Press, who)
	case s.Job != nil:
		p.happen(*s.Job)
	}
	p.see(name, who, s)
}

// offered reports whether the last message has that button. A day that is played to its end
// skips missing buttons.
func (p *dayPlayer) offered(label string) (ok bool) {
	if p.msg != nil {
		_, ok = slacktest.Find(p.msg.Blocks, label)
	}
	return ok || !*score
}

// newest returns the newest message with those words.
func (p *dayPlayer) newest(words string) (m *slacktest.Message) {
	p.t.Helper()
	p.Wait("a message with "+words, func(st slacktest.State) bool {
		for _, x := range slices.Backward(st.Messages) {
			if strings.Contains(text(x), words) {
				m = x
				return true
			}
		}
		return false
	})
	return m
}

// pressInView presses a button of the modal, or chooses an option of a select.
func (p *dayPlayer) pressInView(label string) {
	p.t.Helper()
	blocks, _ := p.view["blocks"].([]any)
	c, ok := slacktest.Find(blocks, label)
	require.True(p.t, ok, "no %q in the modal", label)
	values := map[string]string{}
	for _, x := range blocks { // as Slack sends what stands in the fields
		b, _ := x.(map[string]any)
		e, _ := b["element"].(map[string]any)
		if v, ok := e["initial_value"].(string); ok {
			values[e["action_id"].(string)] = v
		}
		if o, ok := e["initial_option"].(map[string]any); ok {
			values[e["action_id"].(string)], _ = o["value"].(string)
		}
	}
	change(p.stage, p.view, c.Action, c.Value, values)
}

// happen puts a job on the cluster.
func (p *dayPlayer) happen(j dayJob) {
	p.t.Helper()
	job, err := p.yard.Job(p.t.Context(), slurm.JobID(j.ID))
	if err != nil {
		job = slurm.Job{ID: slurm.JobID(j.ID), Partition: "prod", GPUs: 16, NumNodes: 2}
	}
	job.Name, job.User, job.State = cmp.Or(j.Name, job.Name), cmp.Or(j.User, job.User), slurm.State(j.State)
	job.GPUs, job.ElapsedS, job.Reason = 16, 300, ""
	job.Nodes = []string{"gpu-07", "gpu-08"}
	began := time.Now().Add(-5 * time.Minute)
	job.StartedAt = &began
	if j.Log != "" {
		job.Stdout = filepath.Join(p.t.TempDir(), j.ID+".out")
		require.NoError(p.t, os.WriteFile(job.Stdout, []byte(j.Log), 0o600))
	}
	if job.State.Ended() {
		now, exit := time.Now(), "1:0"
		job.EndedAt, job.ExitCode = &now, &exit
	}
	p.yard.put(job)
}

// see waits for what can be read, and keeps a picture of it.
func (p *dayPlayer) see(name, who string, s dayStep) {
	p.t.Helper()
	holds := func(said string) bool {
		return !slices.ContainsFunc(s.See, func(w string) bool { return !strings.Contains(said, w) }) &&
			!slices.ContainsFunc(s.Not, func(w string) bool { return strings.Contains(said, w) })
	}
	d := slacktest.Drawn{Name: name}
	wait := p.Wait
	if *score {
		wait = func(what string, ok func(slacktest.State) bool) (st slacktest.State) {
			for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if st = p.State(); ok(st) {
					return st
				}
			}
			p.missed++
			for _, m := range st.Messages[min(p.before, len(st.Messages)):] {
				what += "\n\t" + strings.ReplaceAll(text(m), "\n", " | ")
			}
			p.t.Log("MISSED " + what)
			return st
		}
	}
	wait(fmt.Sprintf("%s: %q", name, s.See), func(st slacktest.State) bool {
		switch s.In {
		case "modal":
			for id, v := range st.Views {
				if said := slacktest.JSON(v); holds(said) {
					p.view, d.On, d.JSON = v, slacktest.InModal, []byte(said)
					p.view["id"] = id
					return true
				}
			}
		case "home":
			if v := st.Homes[who]; v != nil && holds(slacktest.JSON(v)) {
				d.On, d.JSON = slacktest.InHome, []byte(slacktest.JSON(v))
				return true
			}
		default:
			for _, m := range slices.Backward(st.Messages[min(p.before, len(st.Messages)):]) {
				if holds(text(m)) {
					p.msg, p.view, d.On, d.JSON = m, nil, slacktest.InMessage, []byte(slacktest.JSON(m.Blocks))
					return true
				}
			}
		}
		return false
	})
	if d.JSON != nil {
		p.seen = append(p.seen, d)
	}
}

// written removes from the views what Slack adds to them.
func (p *dayPlayer) written() {
	for i, d := range p.seen {
		var v map[string]any
		if d.On == slacktest.InMessage || json.Unmarshal(d.JSON, &v) != nil {
			continue
		}
		delete(v, "id")
		delete(v, "hash")
		p.seen[i].JSON = []byte(slacktest.JSON(v))
	}
}

// writeGallery writes the day as pages: light, dark, and as narrow as a phone.
func (p *dayPlayer) writeGallery(file string) {
	if *gallery == "" {
		return
	}
	require.NoError(p.t, os.MkdirAll(*gallery, 0o755))
	var drawn []string
	for _, d := range p.seen {
		page, err := slacktest.HTML(d.JSON)
		require.NoError(p.t, err)
		drawn = append(drawn, "<p class=hint>"+d.Name+"</p>"+page)
	}
	base := strings.TrimSuffix(file, ".yaml")
	for name, look := range map[string]slacktest.Look{"light": {}, "dark": {Dark: true}, "phone": {Phone: true}, "phone-dark": {Phone: true, Dark: true}} {
		out := filepath.Join(*gallery, base+"."+name+".html")
		require.NoError(p.t, os.WriteFile(out, []byte(slacktest.Page(base, look, drawn...)), 0o600))
	}
}
