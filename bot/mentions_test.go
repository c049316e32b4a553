package bot_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// answered waits for the complete answer in a message's thread.
func (s *stage) answered(thread, asked string) (found *slacktest.Message) {
	s.t.Helper()
	s.Wait("an answer to "+asked, func(st slacktest.State) bool {
		for _, m := range st.Messages {
			if m.Thread == thread && !m.Streaming && (m.Edits > 0 || m.Via != "chat.startStream") {
				found = m
			}
		}
		return found != nil
	})
	return found
}

// A message is a command, a job, a text to look at or a question.
func TestAMessageIsTakenForWhatItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "old"))
		s.yard.put(jobNamed("4001", "moe"))
		s.yard.put(slurm.Job{ID: "4002", Name: "gone", User: "ada", State: slurm.Failed, Nodes: []string{"n1"}})
		const (
			specText = "name: gpt\nnodes: 2\ngpu: h100\n"
			script   = "#!/bin/bash\n#SBATCH --nodes=2\nsrun python pretrain_gpt.py\n"
		)
		for i, row := range []struct {
			direct            bool
			text, says, never string
		}{
			{text: "", says: "What you can do now"},
			{text: "4000", says: "old · running · 4000"},
			{text: "thanks!", says: "You are welcome", never: "Sources"},
			{text: "ask what should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=4?", says: "CUDA_DEVICE_MAX_CONNECTIONS=1"},
			{text: "status 4000 --nodez", says: "--nodez"},
			{direct: true, text: "statsu 4000", says: "Did you mean"},
			{text: "statsu 4000", never: "I do not know the command"},
			{direct: true, text: "statsu of the old one", never: "I do not know the command"},
			{text: "list my jobs", says: "2 jobs"},
			{text: "list the constants for an H100 with TP=4", says: "CUDA_DEVICE_MAX_CONNECTIONS"},
			{text: "correct", never: "Thank you"}, // there is no answer before it
			{text: "compare 4000 with 4001", says: "written nothing yet"},
			{text: "I think 4000 has crashed, any trouble there?", says: "old · running · 4000"},
			{text: "is there any trouble with 4002, why?", says: "gone (4002): Ended without saying why"},
			{text: "plan this\n```" + specText + "```", says: "2 nodes, 16 ranks"},
			{text: "submit\n```" + spec[3:], says: "Please confirm"},
			{text: "what do you think?\n```" + script + "```", says: "findings"},
			{text: "diagnose\n```" + script + "```", says: "Ended without saying why", never: "findings"},
		} {
			ts := fmt.Sprintf("1700000100.%06d", i)
			event := map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": ts, "text": "<@UBOT> " + row.text}
			if row.direct {
				event = map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": ts, "text": row.text}
			}
			s.Event(event)
			said := text(s.answered(ts, row.text))
			require.Contains(t, said, row.says, row.text)
			if row.never != "" {
				require.NotContains(t, strings.ToLower(said), strings.ToLower(row.never), row.text)
			}
		}
	})
}

// A command of the bot's own is one with all its words, in a message as after the slash; what is
// told of "it" is told of the thread's job, and of no job called it.
func TestAMessageMayBeACommandOfSeveralWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := submitted(t, s)
		for i, row := range []struct{ text, says string }{
			{"settings quiet 23:00-07:00 Asia/Shanghai", "23:00-07:00 Asia/Shanghai"},
			{"subscribe name=llama-* failed completed", "jobs named llama-*"},
			{"help me understand 3D parallelism", "a close match"},
			{"tell me when it fails", "job 4711 · when one fails"},
		} {
			s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": fmt.Sprintf("4.%d", i), "thread_ts": c.TS, "text": "<@UBOT> " + row.text})
			s.said(row.says)
		}
		s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": "5.1", "text": "tell me when it fails"})
		require.Equal(t, "5.1", s.said("Which job?", "tell me when 4711 fails").Thread)
	})
}
