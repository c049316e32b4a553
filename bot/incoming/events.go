package incoming

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Event is the envelope of an Events API callback with the fields that we read.
type Event struct {
	Type       string `json:"type"`
	Challenge  string `json:"challenge"`
	TeamID     string `json:"team_id"`
	Enterprise string `json:"enterprise_id"`
	EventID    string `json:"event_id"`
	External   bool   `json:"is_ext_shared_channel"`
	Event      inner  `json:"event"`
}

// inner is the event inside the envelope.
type inner struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	User        string `json:"user"`
	UserTeam    string `json:"user_team"`
	BotID       string `json:"bot_id"`
	Text        string `json:"text"`
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type"`
	TS          string `json:"ts"`
	ThreadTS    string `json:"thread_ts"`
	EventTS     string `json:"event_ts"`
	MessageTS   string `json:"message_ts"`
	Tab         string `json:"tab"`
	Files       []File `json:"files"`
	Assistant   struct {
		UserID    string `json:"user_id"`
		ChannelID string `json:"channel_id"`
		ThreadTS  string `json:"thread_ts"`
	} `json:"assistant_thread"`
	Links []struct {
		URL string `json:"url"`
	} `json:"links"`
	Tokens struct {
		OAuth []string `json:"oauth"` // the people whose own tokens were revoked
		Bot   []string `json:"bot"`
	} `json:"tokens"`
}

// An eventKind is one event that the app subscribes to and reads.
type eventKind struct {
	// name is the manifest's name of the event; the part before the dot is the event's type.
	name  string
	kind  Kind
	links bool // subscribed to only where links to our pages are unfurled
	// earlier marks an event that only older manifests subscribe to: it is still read, but no
	// longer subscribed to.
	earlier bool
	// read fills in the ask; it returns false for an event that is not for us.
	read func(v inner, a *Ask) bool
}

// eventTable holds every event that we read. The manifest is printed from it.
var eventTable = []eventKind{
	{name: "app_home_opened", kind: AsHome, read: func(v inner, a *Ask) bool {
		if v.Tab == "messages" { // the messages tab, where conversations with an agent start
			a.Kind, a.Direct = AsAssistant, true
		}
		return v.Tab == "home" || v.Tab == "messages"
	}},
	{name: "app_mention", kind: AsMessage, read: func(v inner, a *Ask) bool {
		a.Text = selfMention.ReplaceAllString(v.Text, "")
		return v.User != "" && v.Subtype == ""
	}},
	{name: "app_uninstalled", kind: AsGone, read: func(inner, *Ask) bool { return true }},
	{name: "assistant_thread_started", kind: AsAssistant, earlier: true, read: func(v inner, a *Ask) bool {
		a.User, a.Channel, a.Thread, a.Direct = v.Assistant.UserID, v.Assistant.ChannelID, v.Assistant.ThreadTS, true
		return true
	}},
	{name: "link_shared", kind: AsLinks, links: true, read: func(v inner, a *Ask) bool {
		a.TS = v.MessageTS
		for _, l := range v.Links {
			a.Links = append(a.Links, l.URL)
		}
		return len(a.Links) > 0
	}},
	{name: "message.im", kind: AsMessage, read: func(v inner, a *Ask) bool {
		a.Text = selfMention.ReplaceAllString(v.Text, "")
		return a.Direct && v.User != "" && (v.Subtype == "" || v.Subtype == "file_share")
	}},
	{name: "tokens_revoked", kind: AsGone, read: func(v inner, _ *Ask) bool {
		return len(v.Tokens.Bot) > 0 || len(v.Tokens.OAuth) == 0 // a person's token, such as of a sign-in, is none of the bot's
	}},
}

var selfMention = lazy.New(`^\s*<@[A-Z0-9]+(?:\|[^>]*)?>[\s:,，：]*`)

// DecodeEvent reads an event; ok is false for an event that is not for us, such as our own
// message, an edit, or a message of another bot.
func DecodeEvent(e Event) (a Ask, ok bool) {
	v := e.Event
	i := slices.IndexFunc(eventTable, func(k eventKind) bool {
		typ, _, _ := strings.Cut(k.name, ".")
		return typ == v.Type
	})
	if i < 0 || v.BotID != "" {
		return Ask{}, false
	}
	a = Ask{
		Key:  KeyOf("event", e.TeamID, e.EventID, v.EventTS, v.TS),
		Kind: eventTable[i].kind,
		Team: e.TeamID, Enterprise: e.Enterprise, User: v.User, Channel: v.Channel,
		Foreign: v.UserTeam != "" && v.UserTeam != e.TeamID,
		TS:      v.TS, Thread: v.ThreadTS, Files: v.Files,
		Direct: v.ChannelType == "im" || strings.HasPrefix(v.Channel, "D"),
		Open:   e.External,
	}
	return a, eventTable[i].read(v, &a)
}

// Events returns the events that the app subscribes to; links says whether links to our pages
// are unfurled.
func Events(links bool) (names []string) {
	for _, k := range eventTable {
		if !k.earlier && (links || !k.links) {
			names = append(names, k.name)
		}
	}
	return names
}
