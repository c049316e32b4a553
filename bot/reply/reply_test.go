package reply

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

func writer() *Writer {
	return New(outbox.New(outbox.Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)}))
}

// read decodes a message of the outbox.
func read(t *testing.T, m store.SlackMessage) (o outbox.Message) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(m.Body), &o))
	return o
}

// An answer goes to the place of the request: to the person alone, unless it is shared or
// nobody else reads there.
func TestWhereAnAnswerGoes(t *testing.T) {
	t.Parallel()
	type place struct {
		do                                        outbox.Method
		channel, thread, lane, files, filesThread string
	}
	for name, c := range map[string]struct {
		a     incoming.Ask
		share bool
		want  place
	}{
		"a mention":                 {incoming.Ask{Kind: incoming.AsMessage, Channel: "C1", TS: "1.1"}, false, place{outbox.Ephemeral, "C1", "1.1", "t/C1/1.1", "U1", ""}},
		"a mention, shared":         {incoming.Ask{Kind: incoming.AsMessage, Channel: "C1", TS: "1.1"}, true, place{outbox.Post, "C1", "1.1", "t/C1/1.1", "C1", "1.1"}},
		"a mention in a thread":     {incoming.Ask{Kind: incoming.AsMessage, Channel: "C1", TS: "1.1", Thread: "1.0"}, true, place{outbox.Post, "C1", "1.0", "t/C1/1.0", "C1", "1.0"}},
		"a direct message":          {incoming.Ask{Kind: incoming.AsMessage, Channel: "D1", TS: "1.1", Direct: true}, false, place{outbox.Post, "D1", "1.1", "t/D1/1.1", "D1", "1.1"}},
		"an assistant's thread":     {incoming.Ask{Kind: incoming.AsAssistant, Channel: "D1", Thread: "1.0", Direct: true}, false, place{outbox.Post, "D1", "1.0", "t/D1/1.0", "D1", "1.0"}},
		"a command":                 {incoming.Ask{Kind: incoming.AsCommand, Channel: "C1", Response: "r"}, false, place{outbox.Respond, "C1", "", "r/k", "U1", ""}},
		"a command, shared":         {incoming.Ask{Kind: incoming.AsCommand, Channel: "C1", Response: "r"}, true, place{outbox.Respond, "C1", "", "r/k", "C1", ""}},
		"a button, shared":          {incoming.Ask{Kind: incoming.AsButton, Channel: "C1", Thread: "1.0"}, true, place{outbox.Post, "C1", "1.0", "t/C1/1.0", "C1", "1.0"}},
		"a button":                  {incoming.Ask{Kind: incoming.AsButton, Channel: "C1", Thread: "1.0"}, false, place{outbox.Ephemeral, "C1", "1.0", "t/C1/1.0", "U1", ""}},
		"a button in a direct one":  {incoming.Ask{Kind: incoming.AsButton, Channel: "D1", Direct: true}, false, place{outbox.Post, "U1", "", "t/U1", "U1", ""}},
		"a form":                    {incoming.Ask{Kind: incoming.AsForm}, true, place{outbox.Post, "U1", "", "t/U1", "U1", ""}},
		"in the message's place":    {incoming.Ask{Kind: incoming.AsButton, Channel: "C1", Response: "r", InPlace: true}, true, place{outbox.Respond, "C1", "", "r/k", "U1", ""}},
		"no address for that place": {incoming.Ask{Kind: incoming.AsButton, Channel: "C1", InPlace: true}, false, place{outbox.Ephemeral, "C1", "", "t/C1/", "U1", ""}},
	} {
		c.a.Key, c.a.Team, c.a.User = "k", "T1", "U1"
		o, lane, files, thread := Place(c.a, c.share)
		require.Equal(t, c.want, place{o.Do, o.Channel, o.Thread, lane, files, thread}, name)
		require.Equal(t, []string{"T1", "U1", "U1"}, []string{o.Team, o.User, o.Instead}, name)
		require.Equal(t, c.a.InPlace && c.a.Response != "", o.Replace, name)
		require.Equal(t, c.share && !c.a.InPlace && c.a.Response != "", o.Share, name)
	}
}

// A long answer is several messages in order, followed by its files; rows of buttons that meet
// become one row.
func TestAnAnswerIsItsMessagesAndFiles(t *testing.T) {
	t.Parallel()
	a := incoming.Ask{Key: "k", Kind: incoming.AsMessage, Team: "T1", User: "U1", Channel: "C1", TS: "1.1"}
	long := view.Doc{Title: "Log", Sections: []view.Section{{Code: strings.Repeat("a line of it\n", 4000), Lang: "log"}}}
	owed := writer().Doc(a, long, true)
	last := owed[len(owed)-1]
	require.Equal(t, "k/0", owed[0].Key)
	require.Equal(t, "t/C1/1.1", owed[0].Lane)
	require.Equal(t, "k/file0", last.Key)
	require.Equal(t, "t/C1/1.1"+outbox.LaneOfFiles, last.Lane)
	o := read(t, last)
	require.Equal(t, []string{"upload", "C1", "1.1"}, []string{string(o.Do), o.Channel, o.Thread})
	a.Terminal = &incoming.Terminal{}
	for _, m := range writer().Doc(a, long, true) {
		require.NotContains(t, m.Key, "file", "a terminal scrolls: all is there")
	}

	a.Terminal = nil
	pressed := incoming.Ask{Key: "k", Kind: incoming.AsButton, Team: "T1", User: "U1", Response: "r", InPlace: true}
	many := view.Doc{Title: "Many", Sections: slices.Repeat([]view.Section{{Heading: "One", Text: strings.Repeat("word ", 500)}}, 80)}
	owed = writer().Doc(pressed, many, false)
	require.Equal(t, "k/1", owed[1].Key)
	for i, m := range owed {
		require.Equal(t, i == 0, read(t, m).Replace, "only the first takes the place of the pressed message")
	}
	require.True(t, Replaces(pressed, owed))
	require.False(t, Replaces(a, owed), "no message was pressed")
	row := slack.NewActionBlock("", slack.NewButtonBlockElement("x", "x", answer.Label("Below")))
	shown := string(read(t, writer().Doc(a, view.Doc{Title: "Done", Next: []string{"list"}}, false, row)[0]).Blocks)
	require.Equal(t, 1, strings.Count(shown, `"actions"`))
	require.Contains(t, shown, "Below")
	require.Contains(t, read(t, writer().Blocks(a, "a < b", []slack.Block{row}, false)[0]).Text, "a &lt; b")
}

// A menu is placed behind the buttons.
func TestRowsThatMeetAreOne(t *testing.T) {
	t.Parallel()
	button := func(id string) slack.BlockElement { return slack.NewButtonBlockElement(id, id, answer.Label(id)) }
	menu := slack.NewOverflowBlockElement("menu", slack.NewOptionBlockObject("v", answer.Label("v"), nil))
	text := answer.ContextLine("words")
	joined := JoinRows([]slack.Block{text, slack.NewActionBlock("", button("a"), menu)}, []slack.Block{slack.NewActionBlock("", button("b")), text})
	require.Len(t, joined, 3)
	require.Equal(t, []slack.BlockElement{button("a"), button("b"), menu}, joined[1].(*slack.ActionBlock).Elements.ElementSet)
	require.Len(t, JoinRows([]slack.Block{text}, []slack.Block{slack.NewActionBlock("", button("b"))}), 2)
	require.Len(t, JoinRows([]slack.Block{slack.NewActionBlock("", button("a"))}, []slack.Block{text}), 2)
	require.Len(t, JoinRows(nil, []slack.Block{text}), 1)
	require.Len(t, JoinRows([]slack.Block{text}, nil), 1)
}

// What was pressed is rewritten: by its address, else by an edit; what one person alone
// sees cannot be edited, and is answered.
func TestAPressedMessageIsReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a    incoming.Ask
		do   outbox.Method
		key  string
		last bool
	}{
		"by its address": {incoming.Ask{Response: "r", TS: "1.1", Channel: "C1"}, outbox.Respond, "k/replace", true},
		"by an edit":     {incoming.Ask{TS: "1.1", Channel: "C1"}, outbox.Update, "k/replace", false},
		"hidden":         {incoming.Ask{TS: "1.1", Channel: "C1", Hidden: true}, outbox.Ephemeral, "k/0", false},
		"no message":     {incoming.Ask{}, outbox.Post, "k/0", false},
	} {
		c.a.Key, c.a.User, c.a.Kind = "k", "U1", incoming.AsButton
		owed := writer().Replace(c.a, view.Doc{Title: "Done"})
		require.Equal(t, c.key, owed[0].Key, name)
		o := read(t, owed[0])
		require.Equal(t, c.do, o.Do, name)
		require.Equal(t, c.last, o.Replace, name)
	}
}

// Words grow in a thread that all may read, for somebody of this workspace.
func TestWhereWordsMayGrow(t *testing.T) {
	t.Parallel()
	dm := incoming.Ask{Key: "k", Kind: incoming.AsMessage, Team: "T1", User: "U1", Channel: "D1", TS: "1.1", Direct: true}
	grows := func(t typed.Call, change ...func(*incoming.Ask)) bool {
		a := dm
		for _, f := range change {
			f(&a)
		}
		return writer().Words(context.Background(), a, t) != nil
	}
	channel := func(a *incoming.Ask) { a.Channel, a.Direct = "C1", false }
	require.True(t, grows(typed.Call{}))
	require.False(t, grows(typed.Call{}, channel), "for one person's eyes")
	require.True(t, grows(typed.Call{Share: true}, channel))
	require.False(t, grows(typed.Call{JSON: true}))
	require.False(t, grows(typed.Call{}, func(a *incoming.Ask) { a.Foreign = true }))
	require.False(t, grows(typed.Call{}, func(a *incoming.Ask) { a.Kind = incoming.AsButton }))
	require.False(t, grows(typed.Call{}, func(a *incoming.Ask) { a.TS = "" }))
}

// Who is not linked is offered the link.
func TestWhoIsNotLinkedIsOfferedTheLink(t *testing.T) {
	t.Parallel()
	for l, says := range map[lang.Lang]string{lang.EN: "Link my account", lang.ZH: "绑定账户"} {
		o := read(t, writer().NotLinked(incoming.Ask{Key: "k", Kind: incoming.AsMessage, User: "U1", Channel: "C1", TS: "1.1"}, l)[0])
		require.Equal(t, outbox.Ephemeral, o.Do)
		require.Contains(t, string(o.Blocks), says)
	}
}
