package bot_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

func TestAPastedTracebackIsDiagnosedInItsThread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		log := "```[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/megatron/core/tensor_parallel/layers.py\", line 812, in forward\n[rank3]:     output = torch.matmul(a, b)\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB\n```"
		s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1700000001.000100", "text": "<@UBOT> what is this? " + log})
		msg := s.said("memory")
		require.Equal(t, "1700000001.000100", msg.Thread)
		s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1700000003.000100", "text": "<@UBOT> --output json " + log})
		require.Equal(t, "1700000003.000100", s.said(`"class": "cuda_oom"`).Thread)
		s.Interact(map[string]any{
			"type": "message_action", "callback_id": "diagnose_message", "channel": map[string]any{"id": "C1"},
			"message": map[string]any{"ts": "1700000002.000100", "user": "U2", "text": log},
		})
		s.Wait("a private diagnosis", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool { return m.Only == "U1" && strings.Contains(text(m), "memory") })
		})
	})
}

// A pasted specification is submitted where the words beside it say so, however they go on, and by
// the button below its plan. Both ask first.
func TestAPastedSpecificationIsSubmitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		write := func(ts, words, says string) (answer *slacktest.Message) {
			s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": ts, "text": words + "\n" + spec})
			s.Wait("an answer to "+words, func(st slacktest.State) bool {
				i := slices.IndexFunc(st.Messages, func(m *slacktest.Message) bool { return m.Thread == ts && strings.Contains(text(m), says) })
				if i >= 0 {
					answer = st.Messages[i]
				}
				return i >= 0
			})
			return answer
		}
		write("1.001", "submit my yaml", "Please confirm")
		write("1.002", "Please submit this one, thanks", "Please confirm")
		write("1.003", "帮我提交这个", "请确认")
		write("1.004", "submit my yaml --time 2:00:00", "time limit 2:00:00")
		plan := write("1.005", "is this right?", "Megatron would start it")
		s.PressLabel(plan, "Submit it", "U1")
		asked := func(m *slacktest.Message) bool {
			return strings.Contains(text(m), "Please confirm") && m.Thread != "1.001" && m.Thread != "1.002" && m.Thread != "1.004"
		}
		s.Wait("the question of the button", func(st slacktest.State) bool { return slices.ContainsFunc(st.Messages, asked) })
	})
}

func TestAFileIsReadFromSlackOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		f := s.File("rank0.log", "Traceback (most recent call last):\n  File \"/w/pretrain_gpt.py\", line 3, in <module>\n    import megatron.core\nModuleNotFoundError: No module named 'megatron'\n")
		dm := map[string]any{"type": "message", "subtype": "file_share", "channel_type": "im", "user": "U1", "channel": "D1", "ts": "1.000200", "text": "", "files": []any{f}}
		s.Event(dm)
		s.said("megatron")
		f["url_private"] = "http://169.254.169.254/latest/meta-data"
		dm["ts"], dm["files"] = "1.000300", []any{f}
		s.Event(dm)
		s.said("it is not on Slack")
	})
}

// An action of a message's menu uses the attached file, and says why a file cannot be read.
func TestAMessagesMenuTakesItsFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		press := func(action string, f map[string]any, words ...string) {
			t.Helper()
			s.Interact(map[string]any{
				"type": "message_action", "callback_id": action, "channel": map[string]any{"id": "C1"},
				"message": map[string]any{"ts": "1.1", "text": "", "files": []any{f}},
			})
			require.Equal(t, "U1", s.said(words...).Only)
		}
		press("lint_message", s.File("train.sbatch", "#!/bin/bash\n#SBATCH --nodes=2\nsrun python pretrain_gpt.py\n"), "4 findings")
		press("diagnose_message", s.File("rank0.log", "[rank0]: ModuleNotFoundError: No module named 'megatron'\n"), "No module named 'megatron'")
		press("diagnose_message", s.File("loss.png", "\x89PNG\x00"), "loss.png", "it is not text")
	})
}
