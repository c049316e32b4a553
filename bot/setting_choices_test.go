package bot_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// chosen returns the chosen option of the select with that action.
func chosen(msg *slacktest.Message, action string) string {
	for _, x := range msg.Blocks {
		b, _ := x.(map[string]any)
		e, _ := b["accessory"].(map[string]any)
		o, _ := e["initial_option"].(map[string]any)
		if e["action_id"] == action {
			v, _ := o["value"].(string)
			return v
		}
	}
	return ""
}

// Settings are chosen in the message that shows them, which then shows the new values.
func TestSettingsAreChosenInAMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("settings")
		msg := s.said("Your settings", "Call me", "Time zone", "Language")
		require.Equal(t, "U1", msg.Only)
		require.NotContains(t, text(msg), "settings notify ends", "nothing has to be typed")
		for _, c := range []struct{ label, action, value string }{
			{"for failures", "set_notify", "ends"},
			{"every morning", "set_digest", "on"},
			{"Asia/Shanghai", "set_zone", "Asia/Shanghai"},
			{"22:00-08:00 Asia/Shanghai", "set_quiet", "22:00-08:00 Asia/Shanghai"},
			{"中文", "set_lang", "zh"},
			{"Europe/Berlin", "set_zone", "Europe/Berlin"},
		} {
			s.PressLabel(msg, c.label, "U1")
			st := s.Wait(c.label, func(st slacktest.State) bool {
				return len(st.Messages) == 1 && chosen(st.Messages[0], c.action) == c.value
			})
			msg = st.Messages[0]
		}
		require.Contains(t, text(msg), "您的设置")
		require.Equal(t, "22:00-08:00 Europe/Berlin", chosen(msg, "set_quiet"), "quiet hours are those of the zone")
		s.PressLabel(msg, "无", "U1")
		s.Wait("no quiet hours, and the zone kept", func(st slacktest.State) bool {
			m := st.Messages[0]
			return chosen(m, "set_quiet") == "off" && chosen(m, "set_zone") == "Europe/Berlin" && strings.Contains(text(m), "免打扰时段")
		})
	})
}
