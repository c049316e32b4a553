package bot

import (
	"context"
	"encoding/json"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
)

// socketLoop keeps one Socket Mode connection. slack-go renews it when Slack
// asks for that, and after a break; this loop starts it again when slack-go
// gives up, ever slower up to half a minute, since Slack closes the doors of
// apps that hurry.
func (b *Bot) socketLoop(ctx context.Context, n int) {
	back := time.Second
	for ctx.Err() == nil {
		began := b.now()
		err := b.socket(ctx)
		if ctx.Err() != nil {
			return
		}
		if b.now().Sub(began) > time.Minute {
			back = time.Second
		}
		b.log.Warn("slack: socket mode ended", "connection", n, "again_in", back, "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(back):
		}
		back = min(2*back, 30*time.Second)
	}
}

func (b *Bot) socket(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	api, err := b.client(ctx, "")
	if err != nil {
		api = slack.New("", b.options()...) // several workspaces: the app token is enough here
	}
	opts := []socketmode.Option{socketmode.OptionReadLimit(4 * maxBody)}
	if b.cfg.Silence > 0 {
		opts = append(opts, socketmode.OptionPingInterval(b.cfg.Silence))
	}
	c := socketmode.New(api, opts...)
	done := make(chan error, 1)
	go func() { done <- c.RunContext(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case e := <-c.Events:
			b.envelope(ctx, c, e)
		}
	}
}

// envelope accepts one Socket Mode event. Its acknowledgement follows the
// writing down, as over HTTP, and carries what a form answers.
func (b *Bot) envelope(ctx context.Context, c *socketmode.Client, e socketmode.Event) {
	switch e.Type {
	case socketmode.EventTypeInvalidAuth:
		b.log.Error("slack: the app token is refused: check SLACK_APP_TOKEN and its scope connections:write")
		return
	case socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive, socketmode.EventTypeEventsAPI:
	default:
		b.log.Debug("slack: socket mode", "event", e.Type)
		return
	}
	if e.Request == nil {
		return
	}
	req := *e.Request
	body, err := b.payload(ctx, e.Type, req.Payload)
	if err != nil {
		// Not acknowledged: Slack delivers it again.
		b.log.Error("slack: not stored", "err", err)
		return
	}
	if body != nil {
		err = c.Ack(req, body)
	} else {
		err = c.Ack(req)
	}
	if err != nil {
		b.log.Warn("slack: not acknowledged", "err", err)
	}
}

// payload takes the inside of an envelope, which is what HTTP carries too.
func (b *Bot) payload(ctx context.Context, t socketmode.EventType, raw json.RawMessage) (body any, err error) {
	switch t {
	case socketmode.EventTypeSlashCommand:
		var cmd slack.SlashCommand
		if err := json.Unmarshal(raw, &cmd); err != nil {
			return nil, nil //nolint:nilerr // unreadable once, unreadable always: acknowledge
		}
		a := incoming.DecodeCommand(cmd)
		if words := b.overLimit(a); words != "" {
			return map[string]any{"response_type": "ephemeral", "text": answer.Escape(words)}, nil
		}
		return nil, b.accept(ctx, a)
	case socketmode.EventTypeInteractive:
		a, ok, err := incoming.DecodeInteraction(raw)
		if err != nil || !ok {
			return nil, nil //nolint:nilerr // as above
		}
		if a.Kind == incoming.AsForm {
			return b.sentForm(ctx, a)
		}
		return nil, b.accept(ctx, a)
	default:
		var e incoming.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, nil //nolint:nilerr // as above
		}
		a, ok := incoming.DecodeEvent(e)
		if !ok {
			return nil, nil
		}
		return nil, b.accept(ctx, a)
	}
}
