package outbox

import (
	"context"
	"encoding/json"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A Method is one way of calling Slack.
type Method string

// The ways of calling Slack.
const (
	Post      Method = "post"      // a message, in a thread or not
	Update    Method = "update"    // an edit of a message that Ref names
	Ephemeral Method = "ephemeral" // a message that only User sees
	Respond   Method = "respond"   // a message sent through a response_url
	Upload    Method = "upload"    // a file
	Home      Method = "home"      // the person's home tab
	Unfurl    Method = "unfurl"    // previews of links in somebody's message
	Prompts   Method = "prompts"   // suggested prompts of an assistant thread
	Begin     Method = "begin"     // the start of a streamed message; never queued
	Finish    Method = "finish"    // the final text of a streamed message
)

// A Message is one call to Slack. The outbox keeps it as JSON.
type Message struct {
	Do      Method `json:"do"`
	Team    string `json:"team,omitempty"`
	Channel string `json:"channel,omitempty"` // or a user id: the direct message with that user
	User    string `json:"user,omitempty"`
	Thread  string `json:"thread,omitempty"`
	// ThreadOf and Ref are outbox keys of other messages of ours. This message goes into the
	// thread of ThreadOf, or edits Ref. Where those messages are is known once they were sent.
	ThreadOf string `json:"thread_of,omitempty"`
	Ref      string `json:"ref,omitempty"`
	TS       string `json:"ts,omitempty"` // the message to edit, finish or unfurl

	URL     string `json:"url,omitempty"` // a response_url
	Share   bool   `json:"share,omitempty"`
	Replace bool   `json:"replace,omitempty"` // replace the message whose button was pressed
	// Instead is the user who gets the message directly where the channel refuses it.
	Instead string `json:"instead,omitempty"`
	// Anew says that an edit of Ref is posted anew, once, where somebody has deleted that message.
	Anew bool `json:"anew,omitempty"`

	Text   string          `json:"text,omitempty"` // already escaped for Slack
	Blocks json.RawMessage `json:"blocks,omitempty"`
	File   *answer.File    `json:"file,omitempty"`
	// Bytes are the picture to upload, or to show in the message.
	Bytes []byte          `json:"bytes,omitempty"`
	Extra json.RawMessage `json:"extra,omitempty"`
	// Picture is the upload that is also sent where the workspace does not draw the chart in
	// Blocks.
	Picture *Message `json:"picture,omitempty"`
}

// textAgain stands above a private answer that may have arrived before.
var textAgain = lang.Text{
	EN: "Sent once more, in case it did not arrive the first time. Nothing was done twice.",
	ZH: "（重发：不确定上一次是否送达，操作没有重复执行）",
}

// untraceable reports whether nobody can find out if o has arrived: Slack lists no message
// that only one person sees. An edit or a replacement needs no search, since sending it twice
// changes nothing.
func (o Message) untraceable() bool { return o.Do == Ephemeral || o.Do == Respond && !o.Replace }

// repeated returns o as it is sent a second time. The message says that it is repeated, since a
// second answer would otherwise look as if the operation had run twice.
func (o Message) repeated() Message {
	said := textAgain.In(lang.Of(o.Text + string(o.Blocks)))
	o.Text = said + "\n" + o.Text
	return o.startingWith(slack.NewContextBlock("", answer.Label(said)))
}

// startingWith puts a block before those of o, where o has blocks and there is room.
func (o Message) startingWith(first slack.Block) Message {
	list, err := rawBlocks(o.Blocks)
	if err == nil && len(list) > 0 && len(list) < answer.MaxBlocks {
		o.Blocks = answer.BlocksJSON(append([]slack.Block{first}, list...))
	}
	return o
}

// WithPicture attaches to a message that has a chart the upload of the chart as a picture, for
// workspaces that draw no charts.
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

// queuePicture queues the picture of a chart that the workspace got as text.
func (s *Sender) queuePicture(ctx context.Context, m store.SlackMessage, o Message) {
	if o.Picture == nil {
		return
	}
	if err := s.cfg.Store.Enqueue(ctx, s.Owe(m.Key+"/picture", m.Lane+"/picture", *o.Picture)); err != nil {
		s.cfg.Log.Error("slack: picture", "key", m.Key, "err", err)
	}
}

// Owe turns o into a row of the outbox.
func (s *Sender) Owe(key, lane string, o Message) store.SlackMessage {
	body, err := json.Marshal(o)
	if err != nil {
		panic("bot: an out is always JSON: " + err.Error())
	}
	return store.SlackMessage{Key: key, Lane: lane, Body: string(body), Queued: s.cfg.Now()}
}

// A rawBlock is a block that is JSON already and goes to Slack unchanged.
type rawBlock struct{ json.RawMessage }

// BlockType reads the block's type from the JSON.
func (r rawBlock) BlockType() slack.MessageBlockType {
	var b struct {
		Type slack.MessageBlockType `json:"type"`
	}
	_ = json.Unmarshal(r.RawMessage, &b) // the type stays empty where the JSON has none
	return b.Type
}

// ID is empty, since our blocks have no ids.
func (r rawBlock) ID() string { return "" }

// rawBlocks splits a JSON list of blocks without interpreting the blocks.
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
