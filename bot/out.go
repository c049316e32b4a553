package bot

import (
	"encoding/json"
	"fmt"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A method is a way of telling Slack something.
type method string

// The methods.
const (
	doPost      method = "post"      // a message, in a thread or not
	doUpdate    method = "update"    // an edit of a message that Ref names
	doEphemeral method = "ephemeral" // a message that one person sees
	doRespond   method = "respond"   // through a response_url
	doUpload    method = "upload"    // a file
	doHome      method = "home"      // the person's home tab
	doUnfurl    method = "unfurl"
	doPrompts   method = "prompts" // of an assistant thread
	doBegin     method = "begin"   // a message that grows; never queued
	doFinish    method = "finish"  // what stands in the place of one that grew
)

// An out is one thing to tell Slack. It is kept as JSON in the outbox.
type out struct {
	Do      method `json:"do"`
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
	File   *File           `json:"file,omitempty"`
	Bytes  []byte          `json:"bytes,omitempty"` // a picture's
	Extra  json.RawMessage `json:"extra,omitempty"`
}

// textAgain stands before a private answer that perhaps is there already.
var textAgain = lang.Text{
	EN: "Sent once more, in case it did not arrive the first time. Nothing was done twice.",
	ZH: "（重发：不确定上一次是否送达，操作没有重复执行）",
}

// cannotBeFound reports whether o would be said a second time when it is sent a
// second time. Slack shows nobody what one person alone sees; an edit, or what
// takes the place of a message, comes out the same however often.
func (o out) cannotBeFound() bool {
	return o.Do == doEphemeral || o.Do == doRespond && !o.Replace
}

// again is o as it is sent once more: nobody is to take it for the answer to
// something that was done again.
func (o out) again() out {
	said := textAgain.In(guess(o.Text + string(o.Blocks)))
	o.Text = said + "\n" + o.Text
	var list []json.RawMessage
	if err := json.Unmarshal(o.Blocks, &list); err != nil || len(list) == 0 || len(list) >= maxBlocks {
		return o
	}
	mark := blocksJSON([]slack.Block{slack.NewContextBlock("", plain(said))})
	var marks []json.RawMessage
	_ = json.Unmarshal(mark, &marks) // our own
	if all, err := json.Marshal(append(marks, list...)); err == nil {
		o.Blocks = all
	}
	return o
}

// owe makes o a message of the outbox.
func (b *Bot) owe(key, lane string, o out) store.SlackMessage {
	body, err := json.Marshal(o)
	if err != nil {
		panic("bot: an out is always JSON: " + err.Error())
	}
	return store.SlackMessage{Key: key, Lane: lane, Body: string(body), Queued: b.now()}
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

func blocksJSON(bs []slack.Block) json.RawMessage {
	if len(bs) == 0 {
		return nil
	}
	raw, err := json.Marshal(slack.Blocks{BlockSet: bs})
	if err != nil {
		panic("bot: blocks are always JSON: " + err.Error())
	}
	return raw
}

// place says where an answer to a goes: a template for its messages, the lane
// that keeps them in order, and the channel that its files go to.
func (a ask) place(share bool) (o out, lane, files, thread string) {
	o = out{Team: a.Team, Channel: a.Channel, User: a.User, Instead: a.User}
	switch {
	case a.Kind == asMessage || a.Kind == asAssistant:
		o.Do, o.Thread = doPost, a.Thread
		if o.Thread == "" {
			o.Thread = a.TS
		}
		if !share && !a.Direct {
			o.Do = doEphemeral
			return o, "t/" + a.Channel + "/" + o.Thread, a.User, ""
		}
		return o, "t/" + a.Channel + "/" + o.Thread, a.Channel, o.Thread
	case a.Response != "":
		o.Do, o.URL, o.Share = doRespond, a.Response, share
		if share {
			return o, "r/" + a.Key, a.Channel, ""
		}
		return o, "r/" + a.Key, a.User, ""
	case a.Channel != "" && share:
		o.Do, o.Thread = doPost, a.Thread
		return o, "t/" + a.Channel + "/" + a.Thread, a.Channel, a.Thread
	case a.Channel != "" && !a.Direct:
		o.Do, o.Thread = doEphemeral, a.Thread
		return o, "t/" + a.Channel + "/" + a.Thread, a.User, ""
	}
	o.Do, o.Channel = doPost, a.User
	return o, "t/" + a.User, a.User, ""
}

// reply answers a with doc: to the person alone, or to the place where they
// asked when share is set.
func (b *Bot) reply(a ask, doc view.Doc, share bool) []store.SlackMessage {
	return b.replyWith(a, doc, share)
}

// replyWith is reply with further blocks below the last message.
func (b *Bot) replyWith(a ask, doc view.Doc, share bool, below ...slack.Block) []store.SlackMessage {
	has := room{inlineCode, foldedCode}
	if a.local != nil {
		has = terminalRoom
	}
	r := render(doc, guessDoc(doc), has)
	o, lane, files, thread := a.place(share)
	var owed []store.SlackMessage
	for i, bs := range r.Messages {
		m := o
		m.Text, m.Blocks = r.Text, nil
		if i == len(r.Messages)-1 && len(bs)+len(below) <= maxBlocks {
			bs = append(bs, below...)
		}
		m.Blocks = blocksJSON(bs)
		owed = append(owed, b.owe(fmt.Sprintf("%s/%d", a.Key, i), lane, m))
	}
	for i, f := range r.Files {
		owed = append(owed, b.owe(fmt.Sprintf("%s/file%d", a.Key, i), lane,
			out{Do: doUpload, Team: a.Team, Channel: files, Thread: thread, Instead: a.User, File: &f}))
	}
	return owed
}
