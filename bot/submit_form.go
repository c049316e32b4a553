package bot

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// openWithin is how old a press may be for a form to open: Slack allows three
// seconds.
const openWithin = 2500 * time.Millisecond

// openForm opens the submit form, which Slack allows for three seconds after
// the command or the press.
func (b *Bot) openForm(ctx context.Context, a ask, c *ops.Call) []store.SlackMessage {
	return b.openFormWith(ctx, a, c, b.formValues(ctx, a), "")
}

func (b *Bot) openFormWith(ctx context.Context, a ask, c *ops.Call, values map[string]string, began string) []store.SlackMessage {
	meta, err := json.Marshal(formMeta{Channel: a.Channel, Direct: a.Direct, Lang: c.Lang, Base: began})
	if a.local != nil && err == nil {
		a.local.form, a.local.values = string(meta), values
		return nil
	}
	late := err != nil || a.Trigger == "" || b.now().Sub(a.At) > openWithin
	if !late {
		var api *slack.Client
		if api, err = b.client(ctx, a.Team); err == nil {
			_, err = api.OpenViewContext(ctx, a.Trigger, form.View(values, string(meta), c.Lang))
		}
		if err == nil {
			return nil
		}
		b.log.Warn("slack: form not opened", "err", err)
	}
	open := slack.NewActionBlock("", slack.NewButtonBlockElement(answer.ActRun+":form", "submit", answer.Label(form.Title.In(c.Lang))))
	return b.replyWith(a, view.Doc{Title: form.TextFormLate.In(c.Lang)}, false, open)
}

// formValues are the form's first values: the site's profile, then the person's
// last run.
func (b *Bot) formValues(ctx context.Context, a ask) map[string]string {
	values := map[string]string{}
	if b.cfg.Site != nil {
		maps.Copy(values, b.cfg.Site(b.clusterOf(ctx, a)))
	}
	var last map[string]string
	if _, err := b.cfg.Store.Get(ctx, docLast, a.Team+"/"+a.User, b.now(), &last); err == nil {
		maps.Copy(values, last)
	}
	return values
}

// formMeta travels in the form; it comes back from the client and gives no
// rights.
type formMeta struct {
	Channel string    `json:"channel"`
	Direct  bool      `json:"direct,omitempty"`
	Lang    lang.Lang `json:"lang"`
	// Base names the specification that the form began with, where it was a job's.
	Base string `json:"base,omitempty"`
}

// sentForm answers a sent form at once: with errors at the fields, with the script
// to look at, or by taking the confirmed job.
func (b *Bot) sentForm(ctx context.Context, a ask) (any, error) {
	switch a.Callback {
	case form.SubmitCallback:
		return b.checkForm(ctx, a)
	case form.ConfirmCallback, form.PasteCallback, viewDecline, viewAgentDecline:
		if err := b.accept(ctx, a); err != nil {
			return nil, err
		}
		return object{"response_action": "clear"}, nil
	}
	return nil, nil
}

func (b *Bot) checkForm(ctx context.Context, a ask) (any, error) {
	var meta formMeta
	_ = json.Unmarshal([]byte(a.Meta), &meta) // what cannot be read is empty
	a.Channel, a.Direct = meta.Channel, meta.Direct
	c := b.call(ctx, a)
	if meta.Lang != "" {
		c.Lang = meta.Lang
	}
	filled, errs := form.SpecOf(a.Fields, c.Lang)
	if len(errs) > 0 {
		return object{"response_action": "errors", "errors": errs}, nil
	}
	spec, err := yaml.Marshal(b.withBase(ctx, a, meta.Base, filled))
	if err != nil {
		return nil, err
	}
	op, ok := operations.Lookup("submit")
	if !ok {
		return nil, nil
	}
	t := typed.Call{Op: "submit", Blocks: []string{string(spec)}, Key: a.Key, Cluster: b.settings(ctx, a.Team, a.User).Cluster}
	in, err := typed.Fill(op, t)
	if err != nil {
		return object{"response_action": "errors", "errors": form.AtFields(c.Lang, err, nil)}, nil
	}
	dry, ok := in.(*launch.SubmitIn)
	if !ok {
		return nil, nil
	}
	dry.DryRun = true
	// The preflight is arithmetic; Slack waits three seconds.
	quick, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	result, err := op.Run(quick, c, in)
	planned, ok := result.(launch.SubmitOut)
	if err != nil || !ok || rules.Blocking(planned.Problems) {
		return object{"response_action": "errors", "errors": form.AtFields(c.Lang, err, planned.Problems)}, nil
	}
	dry.DryRun = false
	a.Kind, a.Response = asButton, "" // what comes of it is told in the channel or directly
	id, err := b.hold(ctx, held{Call: t, Ask: a, Digest: consent.Digest(planned.Script)})
	if err != nil {
		return nil, err
	}
	return object{"response_action": "update", "view": form.ConfirmView(planned, id, b.needsApproval(c, op, in), c.Lang)}, nil
}

// submitted carries the confirmed job out. Sent twice, it is carried out once.
func (b *Bot) submitted(ctx context.Context, a ask) []store.SlackMessage {
	a.Value = a.Meta
	switch a.Callback {
	case viewDecline:
		a.Kind = asButton
		return b.answered(ctx, a, false)
	case viewAgentDecline:
		a.Kind = asButton
		return b.decide(ctx, a, false)
	case form.PasteCallback:
		return b.pastedInForm(ctx, a)
	case form.ConfirmCallback:
	default:
		return nil
	}
	var h held
	if ok, err := b.cfg.Store.Get(ctx, docHeld, a.Meta, b.now(), &h); err == nil && ok {
		a.Channel, a.Direct = h.Ask.Channel, h.Ask.Direct
		last := maps.Clone(h.Ask.Fields)
		if redact.Text(last["env"]) != last["env"] {
			delete(last, "env") // secrets are not kept
		}
		if err := b.cfg.Store.Put(ctx, docLast, a.Team+"/"+a.User, last, time.Time{}); err != nil {
			b.log.Warn("slack: last run", "err", err)
		}
	}
	a.Kind = asButton
	owed := b.answered(ctx, a, true)
	// There is no message to rewrite: the form is closed.
	return slices.DeleteFunc(owed, func(m store.SlackMessage) bool { return m.Key == a.Key+"/replace" || m.Key == a.Key+"/0/replace" })
}
