package bot_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// The people for whom an agent works did not see its submission. They get the card once, and
// are notified of the job's end as for a job of their own. Nobody else is, nor anybody who
// wants no notifications, nor the people of an account that many share.
func TestAnAgentsJobGivesItsOwnerACard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched, func(c *bot.Config) {
			for _, u := range []string{"U11", "U12", "U13", "U14"} {
				c.Policy.Links[u] = "team"
			}
		})
		s.Slash("settings notify none", map[string]any{"user_id": "U6", "channel_id": "C1"})
		s.said("Your settings")
		submit := func(who ops.Caller) {
			t.Helper()
			op, _ := operations.Lookup("submit")
			in := op.NewIn()
			require.NoError(t, op.Words(in, strings.Fields(
				"--yes --name gpt --nodes 1 --gpus-per-node 0 --launcher custom --launcher-argv bash --script x.sh --time 10 --worktree /lustre/m")))
			_, err := op.Run(t.Context(), &ops.Call{Service: s.service, Who: who, Confirmed: true}, in)
			require.NoError(t, err)
		}
		submit(agent)
		submit(ops.Caller{Surface: ops.Shell, ID: "grace", User: "grace"})
		submit(ops.Caller{Surface: ops.MCP, ID: "olga", User: "olga"})
		submit(ops.Caller{Surface: ops.MCP, ID: "team", User: "team"})
		submit(ops.Caller{Surface: ops.MCP, ID: "grace", User: "grace", Agent: "codex"})
		st := s.Wait("two cards", func(st slacktest.State) bool { return len(cards(st, "gpt (471")) == 2 })
		where := map[string]string{}
		for _, m := range cards(st, "gpt (471") {
			where[idOf(m.Text)] = m.Channel
		}
		require.Equal(t, map[string]string{"4711": "DU1", "4715": "DU5"}, where)

		j, err := s.yard.Job(t.Context(), "4711")
		require.NoError(t, err)
		j.State = slurm.Failed
		s.yard.put(j)
		s.Wait("its end, which calls ada", func(st slacktest.State) bool {
			for _, m := range st.Messages {
				if m.Channel == "DU1" && m.Thread != "" && strings.Contains(slacktest.JSON(m.Blocks), `"user_id":"U1"`) {
					return true
				}
			}
			return false
		})
		require.Len(t, cards(s.State(), "gpt (471"), 2, "each once")
	})
}
