package bot_test

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// "Diagnose this" diagnoses the log in a message, or else the job that it names or whose thread
// it is in; an ordinary message is not diagnosed.
func TestDiagnoseThisTakesAJobOrALog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched)
		s.train(t, func(j *slurm.Job) { j.State = slurm.Failed })
		diagnose := func(user, text string, more ...map[string]any) {
			m := map[string]any{"ts": "1700000000.000900", "text": text}
			for _, x := range more {
				maps.Copy(m, x)
			}
			s.Interact(map[string]any{
				"type": "message_action", "callback_id": "diagnose_message", "channel": map[string]any{"id": "C1"},
				"user": map[string]any{"id": user, "team_id": "T1"}, "message": m,
			})
		}
		said := 0
		answer := func(words string) *slacktest.Message {
			t.Helper()
			said++
			st := s.Wait(words, func(st slacktest.State) bool { return len(st.Messages) == said })
			msg := st.Messages[said-1]
			require.Contains(t, text(msg), words)
			return msg
		}
		diagnose("U1", "does anybody know why 6001 stopped at 12?")
		msg := answer("moe (6001)")
		require.Equal(t, "U1", msg.Only)
		diagnose("U1", "moe stopped again, and it was fine yesterday")
		answer("moe (6001)")
		diagnose("U1", "6001 said ```[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.```")
		require.NotContains(t, text(answer("OutOfMemoryError")), "moe (6001)")
		diagnose("U1", "lunch at 12 in room 4711?")
		require.NotContains(t, text(answer("holds no job and no log")), "room")
		diagnose("U1", "中午吃什么？")
		answer("没有作业，也没有日志")
		diagnose("U7", "6001 again") // nobody that the cluster knows learns nothing of it
		answer("holds no job and no log")
	})
}

// A message without a word has nothing to lint, and an action that this version does not know is
// not answered.
func TestAMessagesMenuWithoutAnythingToDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		for _, action := range []string{"summarize_message", "lint_message"} {
			s.Interact(map[string]any{
				"type": "message_action", "callback_id": action, "channel": map[string]any{"id": "C1"}, "message": map[string]any{"ts": "1.1", "text": " "},
			})
		}
		require.Equal(t, "U1", s.said("contains nothing that can be checked").Only)
		synctest.Wait()
		require.Len(t, s.State().Messages, 1)
	})
}
