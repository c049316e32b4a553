package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// While a language model words an answer, its words are streamed into the thread: a message
// starts with the first checked sentences and grows with those that follow. The streamed
// message only holds the place. In the end the answer replaces it; that answer is queued and
// sent like any other, and is the same as it would be without streaming.

const (
	// docStream is the kind of the notes about started streams: request key → startedStream.
	docStream = "begun"
	// streamPace is the time between two calls for one message while it is short, so that words
	// appear as they come. slowPace is the time after that, since Slack allows about a hundred
	// appends a minute (Tier 4, docs.slack.dev/reference/methods/chat.appendStream).
	streamPace = 300 * time.Millisecond
	slowPace   = time.Second
	// manyBlocks is the number of blocks from which a message counts as long.
	manyBlocks = 20
	// maxStreamed is how many blocks are streamed into one message; the page of chat.stopStream
	// states Slack's limit.
	maxStreamed = 50
	// refusedFor is how long a channel that refused a stream, or a workspace that refused newer
	// blocks, is not asked again.
	refusedFor = time.Hour
	// streamMark follows the request's key in the block id by which a started stream is found
	// again.
	streamMark = "/begun"
)

// errRefusedLately means that the channel refused a stream lately, so that none is started.
var errRefusedLately = errors.New("this channel refused a streamed message lately")

// A startedStream is a note about a streamed message that was started in a thread before its
// answer is ready.
type startedStream struct {
	Channel string `json:"channel"`
	Thread  string `json:"thread"`
	// TS is empty while it is unknown whether Slack has started the message.
	TS string    `json:"ts,omitempty"`
	At time.Time `json:"at"`
}

// A StreamTarget says where a streamed message goes: which request it answers, in which thread,
// and for whom.
type StreamTarget struct {
	Key     string // the key of the request
	Team    string
	Channel string
	Thread  string
	User    string
	Direct  bool
}

// A stream is a streamed message that shows a model's words, or the steps of a long operation.
type stream struct {
	s      *Sender
	target StreamTarget
	at     startedStream
	opts   []slack.MsgOption // further options of the call that starts the stream
	more   signal
	stop   context.CancelFunc
	over   chan struct{} // closed when nothing more will be shown
	// next returns what is new to show, how many blocks that is, and a function to call once
	// Slack has taken it.
	next func() (chunks []slack.StreamChunk, blocks int, taken func())

	mu   sync.Mutex
	said strings.Builder
}

// Words returns a function that streams a model's words to where the answer will be.
func (s *Sender) Words(ctx context.Context, t StreamTarget) func(string) {
	g := s.newStream(t)
	shown := 0 // bytes of said that were shown
	g.next = func() ([]slack.StreamChunk, int, func()) {
		g.mu.Lock()
		text := g.said.String()[shown:]
		g.mu.Unlock()
		bs := g.draw(text)
		if len(bs) == 0 {
			return nil, 0, nil
		}
		return []slack.StreamChunk{slack.NewBlocksChunk(bs...)}, len(bs), func() { shown += len(text) }
	}
	return func(text string) {
		g.mu.Lock()
		g.said.WriteString(text)
		g.mu.Unlock()
		g.start(ctx) // no stream is started before the model has said something
		g.more.wake()
	}
}

func (s *Sender) newStream(t StreamTarget) *stream {
	return &stream{s: s, target: t, at: startedStream{Channel: t.Channel, Thread: t.Thread}, more: newSignal()}
}

// start starts showing what there is; later calls do nothing.
func (g *stream) start(ctx context.Context) {
	if g.over != nil {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	g.stop, g.over = stop, make(chan struct{})
	g.s.streams.Store(g.target.Key, g)
	go g.run(ctx)
}

// run appends what was said since the last call, at streamPace and later slowPace, until it is
// stopped or Slack takes no more. The answer itself is sent in any case.
func (g *stream) run(ctx context.Context) {
	defer close(g.over)
	blocks := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.more:
		}
		if ctx.Err() != nil {
			return // both were ready, and the answer is there
		}
		chunks, n, taken := g.next()
		if len(chunks) == 0 {
			continue
		}
		if blocks+n > maxStreamed {
			return
		}
		wait := streamPace
		if blocks > manyBlocks {
			wait = slowPace
		}
		err := g.show(ctx, chunks)
		limited, later := errors.AsType[*slack.RateLimitedError](err)
		switch {
		case err == nil:
			taken()
			blocks += n
		case later && g.at.TS != "":
			wait = limited.RetryAfter
			g.more.wake() // the next call includes what is said meanwhile
		default:
			if ctx.Err() == nil && !errors.Is(err, errRefusedLately) {
				g.s.cfg.Log.Info("slack: the answer is not streamed", "why", err)
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

// draw draws words as the final answer draws them, so that Slack interprets nothing in them.
// The first block's id says which request the message belongs to.
func (g *stream) draw(text string) (bs []slack.Block) {
	for _, part := range answer.Chunks(answer.Clean(strings.TrimSpace(text)), answer.MaxText) {
		id := ""
		if g.at.TS == "" && len(bs) == 0 {
			id = g.target.Key + streamMark
		}
		bs = append(bs, slack.NewRichTextBlock(id, slack.NewRichTextSection(answer.Prose(part)...)))
	}
	return bs
}

func (g *stream) show(ctx context.Context, chunks []slack.StreamChunk) error {
	api, err := g.s.cfg.Client(ctx, g.target.Team)
	if err != nil {
		return err
	}
	chunk := slack.MsgOptionChunks(chunks...)
	if g.at.TS == "" {
		return g.begin(ctx, api, chunk)
	}
	_, _, err = api.AppendStreamContext(ctx, g.at.Channel, g.at.TS, chunk)
	return err
}

// begin starts the stream. It writes a note before and after the call, so that after a crash
// the message is found and finished. A call that was made is not cancelled half-way.
func (g *stream) begin(ctx context.Context, api *slack.Client, chunk slack.MsgOption) error {
	s, st := g.s, g.s.cfg.Store
	lane := Message{Do: Begin, Team: g.target.Team, Channel: g.at.Channel}.lane()
	if s.limiter.wait(Begin, lane, s.cfg.Now()) > 0 {
		return errRefusedLately
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	switch had, err := st.Get(ctx, docStream, g.target.Key, s.cfg.Now(), &startedStream{}); {
	case err != nil:
		return err
	case had:
		return errors.New("a message was streamed before a crash, and the answer will replace it")
	}
	g.at.At = s.cfg.Now()
	note := func() error { return st.Put(ctx, docStream, g.target.Key, g.at, g.at.At.Add(48*time.Hour)) }
	if err := note(); err != nil {
		return err
	}
	opts := append([]slack.MsgOption{chunk, slack.MsgOptionTS(g.at.Thread)}, g.opts...)
	if !g.target.Direct { // Slack requires both in a channel, and neither in a direct message
		opts = append(opts, slack.MsgOptionRecipientTeamID(g.target.Team), slack.MsgOptionRecipientUserID(g.target.User))
	}
	channel, ts, err := api.StartStreamContext(ctx, g.at.Channel, opts...)
	limited, later := errors.AsType[*slack.RateLimitedError](err)
	switch {
	case err == nil:
		g.at.Channel, g.at.TS = channel, ts
		return note()
	case later:
		s.limiter.hold(lane, s.cfg.Now().Add(limited.RetryAfter))
	case permanent(err):
		s.limiter.hold(lane, s.cfg.Now().Add(refusedFor))
	default:
		return err // Slack may have started the message; InPlace searches for it
	}
	return errors.Join(err, st.Delete(ctx, docStream, g.target.Key))
}

// InPlace makes the answer to a request replace the message that was streamed for it, by this
// process or by one that was killed. Where nothing was streamed, owed is returned unchanged.
func (s *Sender) InPlace(ctx context.Context, team, key string, owed []store.SlackMessage) []store.SlackMessage {
	if g, ok := s.streams.LoadAndDelete(key); ok {
		g.(*stream).stop()
		<-g.(*stream).over
	}
	var at startedStream
	if ok, err := s.cfg.Store.Get(ctx, docStream, key, s.cfg.Now(), &at); err != nil || !ok {
		return owed
	}
	ref := store.SlackRef{Channel: at.Channel, TS: at.TS}
	if ref.TS == "" {
		var ok bool
		where := Message{Team: team, Channel: at.Channel, Thread: at.Thread}
		if ref, ok, _ = s.lookUp(ctx, store.SlackMessage{Key: key + streamMark, Tried: at.At}, where); !ok {
			return owed // the stream was not found, and the answer does not wait for it
		}
	}
	for i, m := range owed {
		var o Message
		if json.Unmarshal([]byte(m.Body), &o) == nil && o.Do == Post && o.Channel == at.Channel && o.Thread == at.Thread {
			o.Do, o.Channel, o.TS = Finish, ref.Channel, ref.TS
			owed[i] = s.Owe(m.Key, m.Lane, o)
			return owed
		}
	}
	// The answer goes elsewhere, so the streamed message is deleted.
	gone := Message{Do: Finish, Team: team, Channel: ref.Channel, TS: ref.TS}
	return append(owed, s.Owe(key+streamMark, key+streamMark, gone))
}

// finish ends a streamed message and replaces it by o; where o has no text, it deletes the
// message. Repeating it gives the same result.
func (s *Sender) finish(ctx context.Context, api *slack.Client, key string, o Message) (store.SlackRef, error) {
	// A permanent refusal means that the stream has ended already: Slack ends it after five
	// minutes.
	if _, _, err := api.StopStreamContext(ctx, o.Channel, o.TS); err != nil && !permanent(err) {
		return store.SlackRef{}, err
	}
	if o.Text == "" {
		if _, _, err := api.DeleteMessageContext(ctx, o.Channel, o.TS); !permanent(err) {
			return store.SlackRef{}, err
		}
		return store.SlackRef{}, nil // the message is gone already
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
		// The answer is posted as a new message, and what was streamed must not remain above
		// it.
		switch _, _, stays := api.DeleteMessageContext(ctx, o.Channel, o.TS); {
		case permanent(stays):
			s.cfg.Log.Warn("slack: a streamed message could not be deleted", "key", key, "err", stays)
		case stays != nil:
			return store.SlackRef{}, stays // the whole of finish is tried again
		}
	}
	return store.SlackRef{}, err
}

func isStream(msg slack.Message, key string) bool {
	if len(msg.Blocks.BlockSet) == 0 {
		return false
	}
	if p, ok := msg.Blocks.BlockSet[0].(*slack.PlanBlock); ok && len(p.Tasks) > 0 {
		return p.Tasks[0].TaskID == key
	}
	return msg.Blocks.BlockSet[0].ID() == key
}
