package outbox

import (
	"context"
	"encoding/json"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A Method is a way of telling Slack something.
type Method string

// The methods.
const (
	Post      Method = "post"      // a message, in a thread or not
	Update    Method = "update"    // an edit of a message that Ref names
	Ephemeral Method = "ephemeral" // a message that one person sees
	Respond   Method = "respond"   // through a response_url
	Upload    Method = "upload"    // a file
	Home      Method = "home"      // the person's home tab
	Unfurl    Method = "unfurl"
	Prompts   Method = "prompts" // of an assistant thread
	Begin     Method = "begin"   // a message that grows; never queued
	Finish    Method = "finish"  // what stands in the place of one that grew
)

// A Message is one thing to tell Slack. It is kept as JSON in the outbox.
type Message struct {
	Do      Method `json:"do"`
	Team    string `json:"team,omitempty"`
	Channel string `json:"channel,omitempty"` // a user id: the direct message with them
	User    string `json:"user,omitempty"`
	Thread  string `json:"thread,omitempty"`
	// ThreadOf and Ref name messages of ours by key: the one whose thread this goes
	// to, and the one to edit. Their place is known when they were sent.
	ThreadOf string `json:"thread_of,omitempty"`
	Ref      string `json:"ref,omitempty"`
	TS       string `json:"ts,omitempty"` // of the message to edit, finish or unfurl

	URL     string `json:"url,omitempty"` // a response_url
	Share   bool   `json:"share,omitempty"`
	Replace bool   `json:"replace,omitempty"` // the message that the button was in
	// Instead is who gets the message directly where the channel does not take it.
	Instead string `json:"instead,omitempty"`

	Text   string          `json:"text,omitempty"` // escaped
	Blocks json.RawMessage `json:"blocks,omitempty"`
	File   *answer.File    `json:"file,omitempty"`
	// Bytes are a picture's: of an upload, or of a message that shows it.
	Bytes []byte          `json:"bytes,omitempty"`
	Extra json.RawMessage `json:"extra,omitempty"`
	// Picture is sent too where the workspace does not draw the chart in Blocks.
	Picture *Message `json:"picture,omitempty"`
}

// textAgain stands before a private answer that perhaps is there already.
var textAgain = lang.Text{
	EN: "Sent once more, in case it did not arrive the first time. Nothing was done twice.",
	ZH: "（重发：不确定上一次是否送达，操作没有重复执行）",
}

// cannotBeFound reports whether Slack could not tell us if o has arrived: it lists no
// message that only one person sees. An edit, or what takes the place of a message,
// needs no telling: sent twice, it looks the same.
func (o Message) cannotBeFound() bool { return o.Do == Ephemeral || o.Do == Respond && !o.Replace }

// again is o as it is sent a second time. It says so, since a second answer would
// otherwise look as if the work had been done twice.
func (o Message) again() Message {
	said := textAgain.In(lang.Of(o.Text + string(o.Blocks)))
	o.Text = said + "\n" + o.Text
	var list []json.RawMessage
	if err := json.Unmarshal(o.Blocks, &list); err != nil || len(list) == 0 || len(list) >= answer.MaxBlocks {
		return o
	}
	mark := answer.BlocksJSON([]slack.Block{slack.NewContextBlock("", answer.Label(said))})
	var marks []json.RawMessage
	_ = json.Unmarshal(mark, &marks) // our own
	if all, err := json.Marshal(append(marks, list...)); err == nil {
		o.Blocks = all
	}
	return o
}

// WithPicture gives a message that has a chart the upload that shows it where the
// workspace draws none.
func (s *Sender) WithPicture(m store.SlackMessage, picture Message) store.SlackMessage {
	var o Message
	if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
		return m
	}
	o.Picture = &picture
	with := s.Owe(m.Key, m.Lane, o)
	m.Body = with.Body
	return m
}

// oweInstead queues the picture of a chart that was drawn in words.
func (s *Sender) oweInstead(ctx context.Context, m store.SlackMessage, o Message) {
	if o.Picture == nil {
		return
	}
	if err := s.cfg.Store.Enqueue(ctx, s.Owe(m.Key+"/picture", m.Lane+"/picture", *o.Picture)); err != nil {
		s.cfg.Log.Error("slack: picture", "key", m.Key, "err", err)
	}
}

// Owe makes o a message of the outbox.
func (s *Sender) Owe(key, lane string, o Message) store.SlackMessage {
	body, err := json.Marshal(o)
	if err != nil {
		panic("bot: an out is always JSON: " + err.Error())
	}
	return store.SlackMessage{Key: key, Lane: lane, Body: string(body), Queued: s.cfg.Now()}
}

// A rawBlock is a block that was drawn before and goes to Slack as it is.
type rawBlock struct{ json.RawMessage }

// BlockType reads the block's type.
func (r rawBlock) BlockType() slack.MessageBlockType {
	var b struct {
		Type slack.MessageBlockType `json:"type"`
	}
	_ = json.Unmarshal(r.RawMessage, &b) // empty where there is none
	return b.Type
}

// ID is empty: our blocks have none.
func (r rawBlock) ID() string { return "" }

// rawBlocks reads drawn blocks without interpreting them.
func rawBlocks(drawn json.RawMessage) ([]slack.Block, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(drawn, &list); err != nil {
		return nil, permanentError{err}
	}
	bs := make([]slack.Block, len(list))
	for i, b := range list {
		bs[i] = rawBlock{b}
	}
	return bs, nil
}
