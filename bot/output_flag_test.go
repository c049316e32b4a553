package bot_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// For sbatch --output names a file; here it is the form of the answer. A person who means the
// file is told so, in a chat as in a shell, and nothing is submitted. A question may be about
// the flag.
func TestAFileIsNoFormOfAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "old"))
		for _, row := range []struct{ text, says, never string }{
			{"submit --output logs/%j.out", "--log-dir", "Please confirm"},
			{"status 4000 -o x.log", "NAME-JOBID.out", "Details"},
			{"--lang zh status 4000 --output x.log", "回答的格式", "Details"},
			{"status 4000 --output toml", "--output text, json or yaml", "Details"},
			{"status 4000 --output yaml", "\"state\": \"RUNNING\"", "Details"},
			{"status 4000 --output text", "Details", "--log-dir"},
		} {
			said := text(s.next(row.text))
			require.Contains(t, said, row.says, row.text)
			require.NotContains(t, said, row.never, row.text)
		}
		require.NotContains(t, text(s.next("ask what does sbatch do with --output x.log?")), "is not known")
		require.Zero(t, s.yard.count())
	})
}

// --output with a pasted specification means the same in a message as after /megatron.
func TestAPastedSpecificationHasItsFlags(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		pasted := "\n```name: gpt\nnodes: 2\ngpu: h100\ntime: \"1:00:00\"\nworktree: /lustre/m\nargs: [--num-layers, \"24\"]```"
		for i, row := range []struct{ text, says string }{
			{"submit --output logs/%j.out", "--log-dir"},
			{"plan -o toml", "--output text, json or yaml"},
			{"plan --lang zh --output x.log", "回答的格式"},
			{"--output hcl", "\"hcl\" is not known"},
			{"what does sbatch do with --output x.log here?", "gpt: 2 nodes"},
		} {
			ts := fmt.Sprintf("7.%d", i)
			s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": ts, "text": "<@UBOT> " + row.text + pasted})
			require.Equal(t, ts, s.said(row.says).Thread, row.text)
		}
		require.Zero(t, s.yard.count())
	})
}
