// Package incoming decodes what Slack sends: a command, a button, a form, a message or an event
// becomes an Ask. It also verifies Slack's signature. It carries nothing out.
package incoming

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Kind is the kind of thing that a person did.
type Kind string

// What a person can do.
const (
	AsCommand   Kind = "command"   // typed /megatron …
	AsMessage   Kind = "message"   // mentioned the bot, or wrote to it directly
	AsButton    Kind = "button"    // pressed a button
	AsForm      Kind = "form"      // sent a modal
	AsShortcut  Kind = "shortcut"  // chose a shortcut from a message's menu, or the global one
	AsHome      Kind = "home"      // opened the app's home
	AsAssistant Kind = "assistant" // opened an assistant thread
	AsLinks     Kind = "links"     // posted links to our jobs
	AsGone      Kind = "gone"      // removed the app or revoked its token
)

// An Ask is what somebody did in Slack, in our terms. It is kept as JSON until its work is
// finished.
type Ask struct {
	Key        string    `json:"-"`
	Kind       Kind      `json:"kind"`
	At         time.Time `json:"at"`
	Team       string    `json:"team,omitempty"`
	Enterprise string    `json:"enterprise,omitempty"`
	User       string    `json:"user,omitempty"`
	// Foreign says that the person or the channel belongs to another workspace.
	Foreign bool `json:"foreign,omitempty"`
	// Open says that people of other workspaces can read the channel. Answers about jobs stay
	// private there, even where they are to be shared.
	Open    bool   `json:"open,omitempty"`
	Channel string `json:"channel,omitempty"`
	Direct  bool   `json:"direct,omitempty"` // a direct message with the bot
	Thread  string `json:"thread,omitempty"` // timestamp of the thread that the message is in
	TS      string `json:"ts,omitempty"`     // timestamp of the message itself
	Text    string `json:"text,omitempty"`
	Files   []File `json:"files,omitempty"`

	Response string `json:"response,omitempty"` // response_url
	Trigger  string `json:"trigger,omitempty"`  // trigger_id, which opens a modal within three seconds

	Action string `json:"action,omitempty"` // action_id of a button
	Value  string `json:"value,omitempty"`
	// Label is what the person read as the title of the form, on the button or on the chosen entry,
	// which tells their language.
	Label string `json:"label,omitempty"`
	// Hidden says that only the person who pressed the button sees its message.
	Hidden   bool              `json:"hidden,omitempty"`
	Callback string            `json:"callback,omitempty"` // callback_id of a modal or a shortcut
	View     string            `json:"view,omitempty"`     // the modal's id
	Hash     string            `json:"hash,omitempty"`
	Meta     string            `json:"meta,omitempty"` // the modal's private metadata
	Fields   map[string]string `json:"fields,omitempty"`
	Links    []string          `json:"links,omitempty"`
	// Share shows the answer to everybody. InPlace shows it in place of the message whose
	// button was pressed.
	Share   bool `json:"share,omitempty"`
	InPlace bool `json:"in_place,omitempty"`
	// Terminal is set for a request from a terminal and nil for one from Slack. It is not
	// stored.
	Terminal *Terminal `json:"-"`
	// Approver is the operator who approved the request.
	Approver string `json:"approver,omitempty"`
}

// A Terminal is where somebody talks to the bot without Slack.
type Terminal struct {
	// User is the operating system's user. Relative paths are below Dir.
	User, Dir string
	Lang      lang.Lang
	// Stream is called with the parts of an answer as they come; nil means that the answer
	// comes at the end. Width returns the terminal's columns; nil or 0 means any number.
	Stream func(text string)
	Width  func() int
	// Submitted is called with each job that was submitted there, since the terminal follows
	// its jobs itself.
	Submitted func(slurm.Job)
	// OpenForm shows the submit form with its metadata and its initial values.
	OpenForm func(meta string, values map[string]string)
}

// A File is a file that somebody attached.
type File struct {
	Name string `json:"name"`
	URL  string `json:"url_private"`
}

// KeyOf returns the key of a payload: a hash of parts, the same for each delivery of the same
// payload.
func KeyOf(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:16])
}

// DecodeCommand decodes a slash command.
func DecodeCommand(c slack.SlashCommand) Ask {
	return Ask{
		Key:  KeyOf("command", c.TeamID, c.UserID, c.TriggerID, c.ResponseURL, c.Text),
		Kind: AsCommand, Team: c.TeamID, Enterprise: c.EnterpriseID, User: c.UserID, Channel: c.ChannelID,
		Direct: strings.HasPrefix(c.ChannelID, "D"),
		Text:   c.Text, Response: c.ResponseURL, Trigger: c.TriggerID,
	}
}

// interaction holds the parts of a payload that slack-go's type leaves out or puts elsewhere.
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
		Files []File `json:"files"`
	} `json:"message"`
	View struct {
		State struct {
			Values map[string]map[string]stateValue `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// A stateValue is the value of one element of a form or message.
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

// DecodeInteraction decodes a button press, a form or a shortcut; ok is false for what needs no
// work, such as a link button or a closed form.
func DecodeInteraction(body []byte) (a Ask, ok bool, err error) {
	var c slack.InteractionCallback
	var x interaction
	if err := cmp.Or(json.Unmarshal(body, &c), json.Unmarshal(body, &x)); err != nil {
		return Ask{}, false, lang.Text{EN: "interaction: %s", ZH: "交互请求：%s"}.Err(err)
	}
	a = Ask{
		Key:  KeyOf("interaction", string(body)),
		Team: c.Team.ID, Enterprise: c.Enterprise.ID, User: c.User.ID,
		Foreign: x.User.TeamID != "" && c.Team.ID != "" && x.User.TeamID != c.Team.ID,
		Channel: c.Channel.ID, Response: c.ResponseURL, Trigger: c.TriggerID,
		TS: x.Container.MessageTS, Thread: x.Container.ThreadTS, Hidden: x.Container.Ephemeral,
	}
	a.Channel = cmp.Or(a.Channel, x.Container.ChannelID)
	a.Direct = strings.HasPrefix(a.Channel, "D")
	switch c.Type {
	case slack.InteractionTypeBlockActions:
		if len(c.ActionCallback.BlockActions) == 0 {
			return Ask{}, false, nil
		}
		act := c.ActionCallback.BlockActions[0]
		a.Kind, a.Action, a.Value, a.Label = AsButton, act.ActionID, act.Value, act.Text.Text
		if act.SelectedOption.Value != "" {
			a.Value = act.SelectedOption.Value
			if act.SelectedOption.Text != nil {
				a.Label = act.SelectedOption.Text.Text
			}
		}
		a.Label = cmp.Or(titleOf(c.View), a.Label) // an entry of a form may be a name, which has no language
		if act.SelectedConversation != "" {
			a.Value = act.SelectedConversation
		}
		a.View, a.Hash, a.Meta, a.Callback = c.View.ID, c.View.Hash, c.View.PrivateMetadata, c.View.CallbackID
		a.Fields = fieldsOf(x)
		return a, true, nil
	case slack.InteractionTypeViewSubmission:
		a.Kind, a.Label = AsForm, titleOf(c.View)
		a.Callback, a.View, a.Hash, a.Meta = c.View.CallbackID, c.View.ID, c.View.Hash, c.View.PrivateMetadata
		a.Fields = fieldsOf(x)
		return a, true, nil
	case slack.InteractionTypeMessageAction, slack.InteractionTypeShortcut:
		a.Kind, a.Callback = AsShortcut, c.CallbackID
		a.Text, a.TS, a.Thread = c.Message.Text, c.Message.Timestamp, c.Message.ThreadTimestamp
		a.Files = x.Message.Files
		return a, true, nil
	}
	return Ask{}, false, nil
}

// titleOf returns a form's title; the home tab has none.
func titleOf(v slack.View) string {
	if v.Title == nil {
		return ""
	}
	return v.Title.Text
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
