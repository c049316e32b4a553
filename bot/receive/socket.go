package receive

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
)

// socketLoop keeps one Socket Mode connection open. slack-go renews the connection when Slack
// asks for that and after an interruption. This loop connects again when slack-go gives up,
// after a delay that doubles up to half a minute, since Slack locks out apps that reconnect too
// fast.
func (in *Receiver) socketLoop(ctx context.Context, n int, socket func(context.Context) error) {
	back := time.Second
	for ctx.Err() == nil {
		began := in.cfg.Now()
		err := socket(ctx)
		if ctx.Err() != nil {
			return
		}
		if in.cfg.Now().Sub(began) > time.Minute {
			back = time.Second
		}
		in.cfg.Log.Warn("slack: socket mode ended", "connection", n, "again_in", back, "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(back):
		}
		back = min(2*back, 30*time.Second)
	}
}

func (in *Receiver) socket(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	api, err := in.cfg.App.Client(ctx, "")
	if err != nil {
		api = slack.New("", in.cfg.App.Options()...) // there are several workspaces, and the app token is enough to connect
	}
	opts := []socketmode.Option{socketmode.OptionReadLimit(4 * maxBody)}
	if in.cfg.Silence > 0 {
		opts = append(opts, socketmode.OptionPingInterval(in.cfg.Silence))
	}
	c := socketmode.New(api, opts...)
	done := make(chan error, 1)
	go func() { done <- c.RunContext(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case e := <-c.Events:
			in.envelope(ctx, c, e)
		}
	}
}

// acks acknowledges a request, with a payload for Slack to show where there is one.
type acks interface {
	Ack(req socketmode.Request, payload ...any) error
}

// envelope handles one Socket Mode event. As over HTTP, it acknowledges the event after the
// request was stored, and the acknowledgement carries the answer to a form.
func (in *Receiver) envelope(ctx context.Context, c acks, e socketmode.Event) {
	switch e.Type {
	case socketmode.EventTypeInvalidAuth:
		in.cfg.Log.Error("slack: the app token is refused: check SLACK_APP_TOKEN and its scope connections:write")
		return
	case socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive, socketmode.EventTypeEventsAPI:
	default:
		in.cfg.Log.Debug("slack: socket mode", "event", e.Type)
		return
	}
	if e.Request == nil {
		return
	}
	req := *e.Request
	body, err := in.payload(ctx, e.Type, req.Payload)
	if err != nil {
		// Without an acknowledgement Slack delivers it again.
		in.cfg.Log.Error("slack: not stored", "err", err)
		return
	}
	if err := c.Ack(req, body); err != nil {
		in.cfg.Log.Warn("slack: not acknowledged", "err", err)
	}
}

// payload handles the payload of an envelope, which is the same as the body over HTTP.
func (in *Receiver) payload(ctx context.Context, t socketmode.EventType, raw json.RawMessage) (body any, err error) {
	switch t {
	case socketmode.EventTypeSlashCommand:
		var cmd slack.SlashCommand
		if err := json.Unmarshal(raw, &cmd); err != nil {
			return nil, nil //nolint:nilerr // unreadable once, unreadable always: acknowledge
		}
		return in.command(ctx, cmd)
	case socketmode.EventTypeInteractive:
		a, ok, err := incoming.DecodeInteraction(raw)
		return in.interaction(ctx, a, ok && err == nil)
	default:
		var e incoming.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, nil //nolint:nilerr // as above
		}
		a, ok := incoming.DecodeEvent(e)
		if !ok {
			return nil, nil
		}
		return nil, in.cfg.Accept(ctx, a)
	}
}

// Receive keeps the Socket Mode connections open until ctx ends; without an app token it does
// nothing. Several servers that share a Store may receive at the same time.
func (in *Receiver) Receive(ctx context.Context) {
	if in.cfg.AppToken == "" {
		return
	}
	var wg sync.WaitGroup
	for i := range 2 { // one serves while the other is renewed
		wg.Go(func() { in.socketLoop(ctx, i, in.socket) })
	}
	wg.Wait()
}
