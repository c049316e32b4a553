package bot_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A person is named by a mention, and oneself by "me"; somebody without a cluster user is not
// taken for one whose name nobody has.
func TestPeopleAreNamedByMentionsAndMe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) { c.Policy.Read = "everyone" })
		s.yard.put(slurm.Job{ID: "4000", Name: "mine", User: "ada", State: slurm.Running})
		s.yard.put(slurm.Job{ID: "5000", Name: "hers", User: "grace", State: slurm.Running})
		for asked, row := range map[string][2]string{
			"list --user <@U5>":                {"5000", "4000"},
			"list --user=<@U5|Grace>":          {"5000", "4000"},
			"list --user @grace":               {"5000", "4000"},
			"list --user me":                   {"4000", "5000"},
			"list --user Me":                   {"4000", "5000"},
			"list --user 我的":                   {"4000", "5000"},
			"status <@U9>":                     {"not linked to a cluster user", "Nothing is known"},
			"what is <@U5> running?":           {"5000", "4000"},
			"list --user <@U9>":                {"not linked to a cluster user", "No waiting"},
			"subscribe <@U9>":                  {"not linked to a cluster user", "Followed here"},
			"subscribe me failed":              {"Followed here: jobs of ada · when one fails", "jobs of me"},
			"subscribe <@U5> completed":        {"Followed here: jobs of grace", "@U5"},
			"subscribe user=我 started":         {"ada 的作业", "我 的"},
			"unsubscribe me completed":         {"This was not followed here: jobs of ada", "Set by"},
			"unsubscribe name=nothing started": {"This was not followed here: jobs named nothing", "any more"},
		} {
			said := text(s.next(asked))
			require.Contains(t, said, row[0], asked)
			require.NotContains(t, said, row[1], asked)
		}
		// Nobody's jobs are those of somebody without a cluster user.
		require.NotContains(t, text(s.next("list --user me", map[string]any{"user_id": "U9"})), "000")
	})
}

// Emoji alone are no question: thumbs are thanks, and a wave or question marks ask for help.
func TestEmojiAreNoQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(slurm.Job{ID: "4000", Name: "run", User: "ada", State: slurm.Running})
		for i, row := range [][2]string{{"👍", "You are welcome"}, {":tada: :rocket:", "You are welcome"}, {":wave:", "What you can do now"}, {"???", "What you can do now"}} {
			before := len(s.State().Messages)
			s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": []string{"1.1", "1.2", "1.3", "1.4"}[i], "text": row[0]})
			st := s.Wait("an answer", func(st slacktest.State) bool { return len(st.Messages) > before })
			require.Contains(t, text(st.Messages[before]), row[1], row[0])
		}
	})
}
