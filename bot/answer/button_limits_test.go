package answer_test

import (
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// Slack takes every message whatever its buttons and menus say. A command that is too long for a
// button is left out, and never cut.
func TestButtonsKeepSlacksLimits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("节", n) }
	button := func(value, label string) *slack.ButtonBlockElement {
		return slack.NewButtonBlockElement("run:"+label[:1], value, answer.Label(label))
	}
	option := func(value string) *slack.OptionBlockObject {
		return slack.NewOptionBlockObject(value, answer.Label("x"), nil)
	}
	line := func(e slack.BlockElement) slack.Block {
		return slack.NewSectionBlock(answer.Markup("line"), nil, slack.NewAccessory(e))
	}
	link := button("", "g")
	link.URL = "https://docs.example.com/gone/" + long(3000)
	menu := slack.NewOverflowBlockElement("menu", option(long(150)), option("too long"+long(150)), option("gone1"+long(146)))
	drawn := answer.BlocksJSON([]slack.Block{
		slack.NewActionBlock("", button("logs 1", "a"+long(200)), button("logs 2 "+long(2000), "b"), button(long(2000), "c"),
			menu, link),
		slack.NewActionBlock("", button("all too long"+long(2000), "d")),
		line(button("too long"+long(2000), "e")), line(button("logs 3", "f")), line(slack.NewOverflowBlockElement("menu2", option("too long"+long(150)))),
	})
	require.Empty(t, slacktest.CheckBlocks(drawn, slacktest.InMessage))
	for _, kept := range []string{"logs 1", "logs 3", `"value":"` + long(2000) + `"`, `"value":"` + long(150) + `"`} {
		require.Contains(t, string(drawn), kept)
	}
	for _, gone := range []string{"logs 2", "too long", "menu2", "gone"} {
		require.NotContains(t, string(drawn), gone)
	}
	require.Len(t, menu.Options, 3, "the caller's menu stays")
	for _, o := range menu.Options {
		require.NotNil(t, o)
	}
	require.Equal(t, 3, strings.Count(string(drawn), `"type":"section"`))
}
