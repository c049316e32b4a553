package bot_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// failure puts a job on the yard that ran out of GPU memory.
func (s *stage) failure() {
	s.t.Helper()
	log := filepath.Join(s.t.TempDir(), "4711.out")
	require.NoError(s.t, os.WriteFile(log, []byte("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.00 GiB is free.\n"), 0o600))
	exit := "1:0"
	s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Failed, ExitCode: &exit, Stdout: log, GPUs: 16, NumNodes: 2, Nodes: []string{"n1", "n2"}})
}

// A slowYard may take long to list its nodes, as reading many logs does.
type slowYard struct{ surveyedYard }

func (y slowYard) Nodes(ctx context.Context) ([]slurm.Node, error) {
	y.wait(ctx, "nodes")
	return y.surveyedYard.Nodes(ctx)
}

func slowly(c *bot.Config) {
	c.Service.Clusters["yard"] = slowYard{surveyedYard{c.Service.Clusters["yard"].(*yard)}}
}

// write sends a direct message to the bot.
func (s *stage) write(user, words string) {
	s.t.Helper()
	s.Event(map[string]any{"type": "message", "channel_type": "im", "user": user, "channel": "D" + user, "ts": "1700000000.000500", "text": words})
}

// statuses are the statuses that Slack was told to show behind the bot's name.
func statuses(st slacktest.State) (list []string) {
	for _, c := range calls(st, "assistant.threads.setStatus") {
		status, _ := c.Args["status"].(string)
		list = append(list, status)
	}
	return list
}

// A long operation shows its steps as a plan where its answer will be a message; the answer
// replaces the plan.
func TestTheStepsOfALongDiagnosisAreTickedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, slowly)
		s.failure()
		found, read := s.yard.hold("job"), s.yard.hold("nodes")
		s.write("U1", "diagnose 4711")
		s.Wait("a plan", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
				said := slacktest.JSON(m.Blocks)
				return m.Streaming && strings.Contains(said, `"type":"plan"`) && strings.Contains(said, "Diagnosing job 4711") &&
					strings.Contains(said, `"in_progress","task_id"`) && strings.Contains(said, "Find the logs of all ranks")
			})
		})
		found()
		s.Wait("what is read", func(st slacktest.State) bool { return slices.Contains(statuses(st), "is reading 1 log…") })
		read()
		m := s.shows(false, "out of memory", "OutOfMemoryError")
		require.NotContains(t, slacktest.JSON(m.Blocks), "task_card", "the answer alone stays")
		require.Equal(t, "1700000000.000500", m.Thread)
		st := s.State()
		require.Contains(t, statuses(st), "is reading the logs…")
		begun := calls(st, "chat.startStream")
		require.Len(t, begun, 1)
		require.Equal(t, "plan", begun[0].Args["task_display_mode"])
		for _, c := range st.Calls {
			require.Empty(t, c.Problems, c.Method)
			require.Equal(t, "ok", c.Answer, c.Method)
		}
	})
}

func TestAWorkspaceWithoutPlansHasTheAnswerAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, slowly)
		s.failure()
		read := s.yard.hold("nodes")
		s.Fault(slacktest.Fault{Method: "chat.startStream", Times: 99, Error: "unknown_method"})
		s.write("U1", "诊断 4711")
		s.Wait("its status", func(st slacktest.State) bool { return slices.Contains(statuses(st), "正在读取 1 个日志…") })
		read()
		s.shows(false, "显存不足")
	})
}

// A private answer in a channel has no plan: only the status is shown, and removed again.
func TestAPrivateAnswerGrowsNoPlanForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, slowly)
		s.failure()
		found := s.yard.hold("job")
		s.mention("diagnose 4711")
		s.Wait("its status", func(st slacktest.State) bool { return slices.Contains(statuses(st), "is reading the logs…") })
		s.mention("status 4711") // has no words of its own, and says so later than a plan would come
		s.Wait("the other's status", func(st slacktest.State) bool { return slices.Contains(statuses(st), "is working on it…") })
		found()
		s.said("gpt · failed · 4711")
		s.said("OutOfMemoryError")
		st := s.Wait("the status ends", func(st slacktest.State) bool {
			all := statuses(st)
			return len(all) > 0 && all[len(all)-1] == ""
		})
		require.Empty(t, calls(st, "chat.startStream"))
	})
}
