package bot_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// sbatch's --output names a file, here it is the form of an answer: who means the file is told, in chat as in a
// shell, and nothing is submitted. A question may be about it.
func TestAFileIsNoFormOfAnAnswer(t *testing.T) {
	t.Parallel()
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
}
