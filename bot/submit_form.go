package bot

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// openWithin is the greatest age of a press that still opens a form: Slack allows three
// seconds.
const openWithin = 2500 * time.Millisecond

// openForm opens the submit form. Slack allows that within three seconds of the command or
// press.
func (b *Bot) openForm(ctx context.Context, a incoming.Ask, c *ops.Call) []store.SlackMessage {
	values, began := b.formValues(ctx, a), ""
	if flags := values[forkFlags]; flags != "" {
		var err error
		if began, err = b.storeBase(ctx, a, map[string]any{forkFlags: strings.Fields(flags)}); err != nil {
			return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
		}
	}
	return b.openFormWith(ctx, a, c, values, began)
}

// forkFlags is the field of the specification without which the arguments of a fork's job are refused. It
// is not in the form, and goes with the values of the last run.
const forkFlags = "extra_flags"

func (b *Bot) openFormWith(ctx context.Context, a incoming.Ask, c *ops.Call, values map[string]string, began string) []store.SlackMessage {
	meta := formMeta{Channel: a.Channel, Direct: a.Direct, Lang: c.Lang, Base: began}
	if a.Terminal != nil {
		a.Terminal.OpenForm(meta.String(), values)
		return nil
	}
	if b.mayOpen(a) && b.openView(ctx, a, form.View(b.formState(ctx, a, c, meta, values, form.Verdict{}), c.Lang)) {
		return nil
	}
	open := slack.NewActionBlock("", slack.NewButtonBlockElement(answer.ActRun+":form", "submit", answer.Label(form.Title.In(c.Lang))))
	return b.reply.Doc(a, view.Doc{Title: form.TextFormLate.In(c.Lang)}, false, open)
}

// mayOpen reports whether the command or press of a may still open a modal.
func (b *Bot) mayOpen(a incoming.Ask) bool { return a.Trigger != "" && b.now().Sub(a.At) < openWithin }

// openView opens a modal, and reports whether it could be opened.
func (b *Bot) openView(ctx context.Context, a incoming.Ask, v slack.ModalViewRequest) bool {
	if !b.mayOpen(a) {
		return false
	}
	api, err := b.app.Client(ctx, a.Team)
	if err == nil {
		_, err = api.OpenViewContext(ctx, a.Trigger, v)
	}
	b.warn("form not opened", err)
	return err == nil
}

// formValues returns the form's initial values: those of the site's profile, overridden by
// those of the person's last run.
func (b *Bot) formValues(ctx context.Context, a incoming.Ask) map[string]string {
	values := map[string]string{}
	if b.cfg.Site != nil {
		maps.Copy(values, b.cfg.Site(b.people.ClusterOf(ctx, a)))
	}
	var last map[string]string
	if _, err := b.cfg.Store.Get(ctx, record.Last, a.Team+"/"+a.User, b.now(), &last); err == nil {
		maps.Copy(values, last)
	}
	return values
}

// formMeta is the form's private metadata. It comes back from the client, so it grants no
// rights.
type formMeta struct {
	Channel string    `json:"channel"`
	Direct  bool      `json:"direct,omitempty"`
	Lang    lang.Lang `json:"lang"`
	// Base is the key of the specification that the form started from, where it was a job's, a
	// recipe's or a pasted one.
	Base string `json:"base,omitempty"`
	// Gen and Paste are those of form.State.
	Gen   int  `json:"gen,omitempty"`
	Paste bool `json:"paste,omitempty"`
}

func (m formMeta) String() string {
	raw, err := json.Marshal(m)
	if err != nil {
		return "{}" // cannot happen: all fields are strings, numbers and booleans
	}
	return string(raw)
}

// readMeta returns the metadata of the form of a, and the call for it. It also sets the channel
// of a.
func (b *Bot) readMeta(ctx context.Context, a *incoming.Ask) (meta formMeta, c *ops.Call) {
	_ = json.Unmarshal([]byte(a.Meta), &meta) // unreadable metadata counts as empty
	a.Channel, a.Direct = meta.Channel, meta.Direct
	c = b.people.Call(ctx, *a)
	if meta.Lang != "" {
		c.Lang = meta.Lang
	}
	return meta, c
}

// formCall returns the submission that a form's values describe.
func (b *Bot) formCall(ctx context.Context, a incoming.Ask, c *ops.Call, meta formMeta) (op ops.Op, t typed.Call, in *launch.SubmitIn, errs map[string]string) {
	filled, errs := form.SpecOf(a.Fields, c.Lang)
	// JSON is YAML on one line: an error names no line, since the form has none.
	whole, err := b.overBase(ctx, a, meta.Base, filled)
	if err != nil {
		return op, t, nil, form.AtFields(c.Lang, err, nil)
	}
	spec, err := json.Marshal(whole)
	if err == nil {
		op, _ = operations.Lookup("submit")
		t = typed.Call{Op: "submit", Blocks: []string{string(spec)}, Key: a.Key, Cluster: b.people.Settings(ctx, a.Team, a.User).Cluster}
		var x any
		if x, err = typed.Fill(op, t); err == nil {
			in, _ = x.(*launch.SubmitIn)
		}
	}
	if err != nil || in == nil {
		return op, t, nil, form.AtFields(c.Lang, err, nil)
	}
	if len(errs) > 0 { // the other fields may be wrong too
		if _, err := launch.Resolve(c, in.SpecIn); err != nil {
			maps.Insert(errs, maps.All(form.AtFields(c.Lang, err, nil)))
		}
		return op, t, nil, errs
	}
	return op, t, in, nil
}

// sentForm answers a submitted form at once, with errors at its fields or by accepting it. The
// check on the cluster and a confirmed job are handled afterwards.
func (b *Bot) sentForm(ctx context.Context, a incoming.Ask) (any, error) {
	reply := map[string]any{"response_action": "clear"}
	switch a.Callback {
	case form.SubmitCallback:
		meta, c := b.readMeta(ctx, &a)
		if errs := b.formErrors(ctx, a, c, meta); len(errs) > 0 {
			return map[string]any{"response_action": "errors", "errors": form.AtBlocks(errs, meta.Gen, a.Fields, c.Lang)}, nil
		}
		reply = map[string]any{"response_action": "update", "view": form.CheckingView(a.Fields["name"], a.Meta, c.Lang)}
	case form.ConfirmCallback, form.PasteCallback, viewDecline:
	default:
		return nil, nil
	}
	if err := b.accept(ctx, a); err != nil {
		return nil, err
	}
	return reply, nil
}

// submitted handles an accepted form. A confirmed job is submitted once, even where the form is
// sent twice.
func (b *Bot) submitted(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	a.Value = a.Meta
	switch a.Callback {
	case viewDecline:
		a.Kind = incoming.AsButton
		return b.decide(ctx, a, false)
	case form.SubmitCallback:
		return b.checkOnCluster(ctx, a)
	case form.PasteCallback:
		return b.pastedInForm(ctx, a)
	case form.ConfirmCallback:
	default:
		return nil
	}
	var h heldCall
	if ok, err := b.cfg.Store.Get(ctx, record.Held, a.Meta, b.now(), &h); err == nil && ok {
		a.Channel, a.Direct = h.Ask.Channel, h.Ask.Direct
		last := maps.Clone(h.Ask.Fields)
		if redact.Text(last["env"]) != last["env"] {
			delete(last, "env") // secrets are not stored
		}
		var spec struct {
			ExtraFlags []string `json:"extra_flags"`
		}
		if last != nil && len(h.Call.Blocks) > 0 && json.Unmarshal([]byte(h.Call.Blocks[0]), &spec) == nil {
			last[forkFlags] = strings.Join(spec.ExtraFlags, " ")
		}
		b.warn("last run", b.cfg.Store.Put(ctx, record.Last, a.Team+"/"+a.User, last, time.Time{}))
	}
	a.Kind = incoming.AsButton
	owed := b.answered(ctx, a, true)
	// The form is closed, so there is no message to replace.
	return slices.DeleteFunc(owed, func(m store.SlackMessage) bool { return m.Key == a.Key+"/replace" || m.Key == a.Key+"/0/replace" })
}
