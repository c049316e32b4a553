package bot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A kind is the kind of thing that a person did.
type kind string

// What a person can do.
const (
	asCommand   kind = "command"   // typed /megatron …
	asMessage   kind = "message"   // mentioned the bot, or wrote to it
	asButton    kind = "button"    // pressed one
	asForm      kind = "form"      // sent a modal
	asShortcut  kind = "shortcut"  // chose one from a message's menu, or the global one
	asHome      kind = "home"      // opened the app's home
	asAssistant kind = "assistant" // opened an assistant thread
	asLinks     kind = "links"     // posted links to our jobs
	asGone      kind = "gone"      // removed the app, or its token
)

// An ask is what somebody did in Slack, in our words. It is kept as JSON until
// its work is finished.
type ask struct {
	Key        string    `json:"-"`
	Kind       kind      `json:"kind"`
	At         time.Time `json:"at"`
	Team       string    `json:"team,omitempty"`
	Enterprise string    `json:"enterprise,omitempty"`
	User       string    `json:"user,omitempty"`
	// Foreign says that the person or the channel belongs to another workspace.
	Foreign bool `json:"foreign,omitempty"`
	// Open says that people of other workspaces read the channel: what is said
	// of jobs there stays private, asked for or not.
	Open    bool   `json:"open,omitempty"`
	Channel string `json:"channel,omitempty"`
	Direct  bool   `json:"direct,omitempty"` // a direct message with the bot
	Thread  string `json:"thread,omitempty"` // the thread that it is in
	TS      string `json:"ts,omitempty"`     // the message itself
	Text    string `json:"text,omitempty"`
	Files   []file `json:"files,omitempty"`

	Response string `json:"response,omitempty"` // response_url
	Trigger  string `json:"trigger,omitempty"`  // opens a modal, for three seconds

	Action string `json:"action,omitempty"` // of a button
	Value  string `json:"value,omitempty"`
	// Hidden says that the button's message is seen by its presser only.
	Hidden   bool              `json:"hidden,omitempty"`
	Callback string            `json:"callback,omitempty"` // of a modal or a shortcut
	View     string            `json:"view,omitempty"`     // the modal's id
	Hash     string            `json:"hash,omitempty"`
	Meta     string            `json:"meta,omitempty"` // the modal's private metadata
	Fields   map[string]string `json:"fields,omitempty"`
	Links    []string          `json:"links,omitempty"`
	// Share shows the answer to everybody; InPlace shows it in the place of the
	// message that the button was in.
	Share   bool `json:"share,omitempty"`
	InPlace bool `json:"in_place,omitempty"`
	// local is the terminal where it was done; nil: Slack. It is not kept.
	local *Local
	// Approver is the operator who said yes.
	Approver string `json:"approver,omitempty"`
}

// A file is one that somebody attached.
type file struct {
	Name string `json:"name"`
	URL  string `json:"url_private"`
}

// keyOf names a payload: the same payload delivered again has the same key.
func keyOf(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:16])
}

// decodeCommand reads a slash command.
func decodeCommand(c slack.SlashCommand) ask {
	return ask{
		Key:  keyOf("command", c.TeamID, c.UserID, c.TriggerID, c.ResponseURL, c.Text),
		Kind: asCommand, Team: c.TeamID, Enterprise: c.EnterpriseID, User: c.UserID, Channel: c.ChannelID,
		Direct: strings.HasPrefix(c.ChannelID, "D"),
		Text:   c.Text, Response: c.ResponseURL, Trigger: c.TriggerID,
	}
}

// interaction is what slack-go's type leaves out or keeps apart.
type interaction struct {
	Container struct {
		Ephemeral bool   `json:"is_ephemeral"`
		MessageTS string `json:"message_ts"`
		ThreadTS  string `json:"thread_ts"`
		ChannelID string `json:"channel_id"`
	} `json:"container"`
	User struct {
		TeamID string `json:"team_id"`
	} `json:"user"`
	Message struct {
		Files []file `json:"files"`
	} `json:"message"`
	View struct {
		State struct {
			Values map[string]map[string]stateValue `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// A stateValue is what one element of a form or message holds.
type stateValue struct {
	Value    *string `json:"value"`
	Selected *struct {
		Value string `json:"value"`
	} `json:"selected_option"`
	Several []struct {
		Value string `json:"value"`
	} `json:"selected_options"`
	Conversation string `json:"selected_conversation"`
}

func (v stateValue) text() string {
	switch {
	case v.Value != nil:
		return *v.Value
	case v.Selected != nil:
		return v.Selected.Value
	case v.Conversation != "":
		return v.Conversation
	}
	var all []string
	for _, s := range v.Several {
		all = append(all, s.Value)
	}
	return strings.Join(all, ",")
}

// decodeInteraction reads a button press, a form or a shortcut; ok is false for
// what needs no work, such as a link button or a closed form.
func decodeInteraction(body []byte) (a ask, ok bool, err error) {
	var c slack.InteractionCallback
	var x interaction
	if err := json.Unmarshal(body, &c); err != nil {
		return ask{}, false, lang.Text{EN: "interaction: %s", ZH: "交互请求：%s"}.Err(err)
	}
	if err := json.Unmarshal(body, &x); err != nil {
		return ask{}, false, lang.Text{EN: "interaction: %s", ZH: "交互请求：%s"}.Err(err)
	}
	a = ask{
		Key:  keyOf("interaction", string(body)),
		Team: c.Team.ID, Enterprise: c.Enterprise.ID, User: c.User.ID,
		Foreign: x.User.TeamID != "" && c.Team.ID != "" && x.User.TeamID != c.Team.ID,
		Channel: c.Channel.ID, Response: c.ResponseURL, Trigger: c.TriggerID,
		TS: x.Container.MessageTS, Thread: x.Container.ThreadTS, Hidden: x.Container.Ephemeral,
	}
	if a.Channel == "" {
		a.Channel = x.Container.ChannelID
	}
	a.Direct = strings.HasPrefix(a.Channel, "D")
	switch c.Type {
	case slack.InteractionTypeBlockActions:
		if len(c.ActionCallback.BlockActions) == 0 {
			return ask{}, false, nil
		}
		act := c.ActionCallback.BlockActions[0]
		a.Kind, a.Action, a.Value = asButton, act.ActionID, act.Value
		if act.SelectedOption.Value != "" {
			a.Value = act.SelectedOption.Value
		}
		if act.SelectedConversation != "" {
			a.Value = act.SelectedConversation
		}
		a.View, a.Hash, a.Meta, a.Callback = c.View.ID, c.View.Hash, c.View.PrivateMetadata, c.View.CallbackID
		a.Fields = fieldsOf(x)
		return a, true, nil
	case slack.InteractionTypeViewSubmission:
		a.Kind = asForm
		a.Callback, a.View, a.Hash, a.Meta = c.View.CallbackID, c.View.ID, c.View.Hash, c.View.PrivateMetadata
		a.Fields = fieldsOf(x)
		return a, true, nil
	case slack.InteractionTypeMessageAction, slack.InteractionTypeShortcut:
		a.Kind, a.Callback = asShortcut, c.CallbackID
		a.Text, a.TS, a.Thread = c.Message.Text, c.Message.Timestamp, c.Message.ThreadTimestamp
		a.Files = x.Message.Files
		return a, true, nil
	}
	return ask{}, false, nil
}

func fieldsOf(x interaction) map[string]string {
	f := map[string]string{}
	for _, block := range x.View.State.Values {
		for id, v := range block {
			f[id] = v.text()
		}
	}
	return f
}
