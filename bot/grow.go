package bot

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/store"
)

// While a language model words an answer, the words appear in the thread: a
// message begins with the first sentences that were checked, and grows by what
// follows. It only keeps the answer's place. In the end the answer replaces all of
// it, queued and sent like any other, and the same as it would have been posted.

const (
	// growPace is between two calls for one message: Slack takes about a hundred
	// appends a minute (Tier 4, docs.slack.dev/reference/methods/chat.appendStream).
	growPace = time.Second
	// maxGrown is how many blocks a message grows by: chat.stopStream's page has
	// the limit.
	maxGrown = 50
	// refusedFor is how long a channel that takes no such message is not asked again.
	refusedFor = time.Hour
	// begunMark is behind the request's key in the block by which a begun message is
	// found again.
	begunMark = "/begun"
)

// errNotAgain is why a channel that refused lately is not asked.
var errNotAgain = errors.New("this channel takes no growing message")

// A begun message stands in a thread before its answer is there.
type begun struct {
	Channel string `json:"channel"`
	Thread  string `json:"thread"`
	// TS is empty while it is not known whether Slack has begun it.
	TS string    `json:"ts,omitempty"`
	At time.Time `json:"at"`
}

// A growing message shows what a model says.
type growing struct {
	b    *Bot
	ask  ask
	at   begun
	more signal
	stop context.CancelFunc
	over chan struct{} // closed when nothing more will be shown

	mu   sync.Mutex
	said strings.Builder
}

// words takes what a model says to where the answer to a will stand; nil where a
// message cannot grow: for one person's eyes, outside a thread, or for somebody of
// another workspace, whom Slack wants named by theirs.
func (b *Bot) words(ctx context.Context, a ask, t typedCall) func(string) {
	o, _, _, _ := a.place(t.Share)
	if a.Kind != asMessage || o.Do != doPost || o.Thread == "" || a.Foreign || t.JSON {
		return nil
	}
	g := &growing{b: b, ask: a, at: begun{Channel: o.Channel, Thread: o.Thread}, more: newSignal()}
	return func(text string) {
		g.mu.Lock()
		g.said.WriteString(text)
		g.mu.Unlock()
		if g.over == nil { // nothing happens before a model has said something
			ctx, stop := context.WithCancel(ctx)
			g.stop, g.over = stop, make(chan struct{})
			b.grows.Store(a.Key, g)
			go g.grow(ctx)
		}
		g.more.wake()
	}
}

// grow shows what was said since, a call a second, until it is stopped, or Slack
// takes no more: the answer itself comes anyway.
func (g *growing) grow(ctx context.Context) {
	defer close(g.over)
	shown, blocks := 0, 0 // so much of what was said
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.more:
		}
		if ctx.Err() != nil {
			return // both at once: the answer is there
		}
		g.mu.Lock()
		text := g.said.String()[shown:]
		g.mu.Unlock()
		bs := g.draw(text)
		if len(bs) == 0 {
			continue
		}
		if blocks+len(bs) > maxGrown {
			return
		}
		wait := growPace
		err := g.show(ctx, bs)
		limited, later := errors.AsType[*slack.RateLimitedError](err)
		switch {
		case err == nil:
			shown, blocks = shown+len(text), blocks+len(bs)
		case later && g.at.TS != "":
			wait = limited.RetryAfter
			g.more.wake() // with what is said meanwhile
		default:
			if ctx.Err() == nil && !errors.Is(err, errNotAgain) {
				g.b.log.Info("slack: the answer will come whole", "why", err)
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// draw draws words as the answer draws them: Slack interprets nothing in them.
// The first block says whose message this is.
func (g *growing) draw(text string) (bs []slack.Block) {
	for _, part := range chunks(clean(strings.TrimSpace(text)), maxText) {
		id := ""
		if g.at.TS == "" && len(bs) == 0 {
			id = g.ask.Key + begunMark
		}
		bs = append(bs, slack.NewRichTextBlock(id, slack.NewRichTextSection(prose(part)...)))
	}
	return bs
}

// show begins the message with bs, or adds them to it.
func (g *growing) show(ctx context.Context, bs []slack.Block) error {
	api, err := g.b.client(ctx, g.ask.Team)
	if err != nil {
		return err
	}
	chunk := slack.MsgOptionChunks(slack.NewBlocksChunk(bs...))
	if g.at.TS == "" {
		return g.begin(ctx, api, chunk)
	}
	_, _, err = api.AppendStreamContext(ctx, g.at.Channel, g.at.TS, chunk)
	return err
}

// begin begins the message and notes it, before and after, so that a crash leaves
// none that nobody ends. What has begun is not broken off half-way.
func (g *growing) begin(ctx context.Context, api *slack.Client, chunk slack.MsgOption) error {
	b, st := g.b, g.b.cfg.Store
	lane := out{Do: doBegin, Team: g.ask.Team, Channel: g.at.Channel}
	if !b.paces.ready(lane, b.now()) {
		return errNotAgain
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	switch had, err := st.Get(ctx, docBegun, g.ask.Key, b.now(), &begun{}); {
	case err != nil:
		return err
	case had:
		return errors.New("one was begun before a crash, and the answer will take its place")
	}
	g.at.At = b.now()
	note := func() error { return st.Put(ctx, docBegun, g.ask.Key, g.at, g.at.At.Add(48*time.Hour)) }
	if err := note(); err != nil {
		return err
	}
	opts := []slack.MsgOption{chunk, slack.MsgOptionTS(g.at.Thread)}
	if !g.ask.Direct { // a channel wants both named, and a direct message neither
		opts = append(opts, slack.MsgOptionRecipientTeamID(g.ask.Team), slack.MsgOptionRecipientUserID(g.ask.User))
	}
	channel, ts, err := api.StartStreamContext(ctx, g.at.Channel, opts...)
	limited, later := errors.AsType[*slack.RateLimitedError](err)
	switch {
	case err == nil:
		g.at.Channel, g.at.TS = channel, ts
		return note()
	case later:
		b.paces.hold(lane, b.now().Add(limited.RetryAfter))
	case permanent(err):
		b.paces.hold(lane, b.now().Add(refusedFor))
	default:
		return err // Slack may have begun it: it is looked for when the answer is there
	}
	return errors.Join(err, st.Delete(ctx, docBegun, g.ask.Key))
}

// inPlace has the answer to a take the place of the message that began for it,
// in this process or in one that was killed. Without one, owed stays as it is.
func (b *Bot) inPlace(ctx context.Context, a ask, owed []store.SlackMessage) []store.SlackMessage {
	if a.Kind != asMessage {
		return owed
	}
	if g, ok := b.grows.LoadAndDelete(a.Key); ok {
		g.(*growing).stop()
		<-g.(*growing).over
	}
	var at begun
	if ok, err := b.cfg.Store.Get(ctx, docBegun, a.Key, b.now(), &at); err != nil || !ok {
		return owed
	}
	ref := store.SlackRef{Channel: at.Channel, TS: at.TS}
	if ref.TS == "" {
		var ok bool
		where := out{Team: a.Team, Channel: at.Channel, Thread: at.Thread}
		if ref, ok = b.lookUp(ctx, store.SlackMessage{Key: a.Key + begunMark, Tried: at.At}, where); !ok {
			return owed
		}
	}
	for i, m := range owed {
		var o out
		if json.Unmarshal([]byte(m.Body), &o) == nil && o.Do == doPost && o.Channel == at.Channel && o.Thread == at.Thread {
			o.Do, o.Channel, o.TS = doFinish, ref.Channel, ref.TS
			owed[i] = b.owe(m.Key, m.Lane, o)
			return owed
		}
	}
	// The answer goes elsewhere: what has begun is taken away.
	gone := out{Do: doFinish, Team: a.Team, Channel: ref.Channel, TS: ref.TS}
	return append(owed, b.owe(a.Key+begunMark, a.Key+begunMark, gone))
}

// finish ends a begun message and puts o in its place; without a text it takes
// the message away. It comes out the same however often.
func (b *Bot) finish(ctx context.Context, api *slack.Client, key string, o out) (store.SlackRef, error) {
	// A refusal means that it has ended by itself: Slack ends it after five minutes.
	if _, _, err := api.StopStreamContext(ctx, o.Channel, o.TS); err != nil && !permanent(err) {
		return store.SlackRef{}, err
	}
	if o.Text == "" {
		if _, _, err := api.DeleteMessageContext(ctx, o.Channel, o.TS); !permanent(err) {
			return store.SlackRef{}, err
		}
		return store.SlackRef{}, nil // somebody else has
	}
	opts, err := o.message()
	if err != nil {
		return store.SlackRef{}, err
	}
	_, _, _, err = api.UpdateMessageContext(ctx, o.Channel, o.TS, append(opts, signed(key))...)
	switch {
	case err == nil:
		return store.SlackRef{Channel: o.Channel, TS: o.TS}, nil
	case strings.Contains(err.Error(), "streaming_state_conflict"):
		return store.SlackRef{}, waitError{after: 2 * time.Second, why: err.Error()}
	case permanent(err):
		// The answer is posted anew, and what a model said does not stay above it.
		switch _, _, stays := api.DeleteMessageContext(ctx, o.Channel, o.TS); {
		case permanent(stays):
			b.log.Warn("slack: a begun message stays", "key", key, "err", stays)
		case stays != nil:
			return store.SlackRef{}, stays // once more, all of it
		}
	}
	return store.SlackRef{}, err
}

// begunAs reports whether msg is the begun message of that key.
func begunAs(msg slack.Message, key string) bool {
	return len(msg.Blocks.BlockSet) > 0 && msg.Blocks.BlockSet[0].ID() == key
}
