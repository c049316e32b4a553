package operations_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
)

// "Retry" with a job, or without one, is offered as the commands that run a job again; more words
// are not.
func TestHowAJobIsRunOnceMore(t *testing.T) {
	for words, job := range map[string]string{"retry": "JOB", "Rerun 4711": "4711", "重试 4711_3": "4711_3", "retry tomorrow": "", "retry 4711 4712": "", "status 4711": "", "": ""} {
		var commands []string
		all, refused := operations.OnceMore(strings.Fields(words))
		require.Nil(t, refused, words)
		for _, r := range all {
			commands = append(commands, r.Command)
		}
		if job == "" {
			require.Empty(t, commands, words)
			continue
		}
		require.Equal(t, []string{"submit --from " + job, "requeue " + job}, commands, words)
	}
}
