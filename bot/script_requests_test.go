package bot_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A scriptedYard keeps the scripts of its jobs.
type scriptedYard struct {
	watchedYard
	scripts map[slurm.JobID]string
}

func (y scriptedYard) BatchScript(_ context.Context, id slurm.JobID) (string, error) {
	s, ok := y.scripts[id]
	if !ok {
		return "", slurm.JobNotFound(id)
	}
	return s, nil
}

func TestAScriptOfTheShellAsksForItsCard(t *testing.T) {
	t.Parallel()
	scripts := map[slurm.JobID]string{
		"5000": "#!/bin/bash\n#SBATCH --nodes=2\n#MEGATRON slack=#runs\nsrun x\n",
		"5001": "#!/bin/bash\n#SBATCH --mail-user=slack:U5\nsrun x\n",
		"5002": "#!/bin/bash\n#SBATCH --comment=slack:me\nsrun x\n",
		"5003": "#!/bin/bash\n#MEGATRON slack=U1\necho '#MEGATRON slack=#runs'\n", // grace cannot write to ada
		"5004": "#!/bin/bash\n#MEGATRON slack=#runs\n",                            // nobody whom Slack knows
		"5005": "#!/bin/bash\n#MEGATRON slack=C7\n",
	}
	s := play(t, watched, func(c *bot.Config) {
		c.Service.Clusters["yard"] = scriptedYard{c.Service.Clusters["yard"].(watchedYard), scripts}
	})
	s.Members(map[string][]string{"C2 #b": {"U1"}, "C3 #c": {"U1"}, "C7 #runs": {"U1", "U7"}})
	for id, user := range map[slurm.JobID]string{"5000": "ada", "5001": "grace", "5002": "grace", "5003": "grace", "5004": "mallory", "5005": "ada"} {
		s.yard.put(slurm.Job{ID: id, Name: "shell", User: user, State: slurm.Running, Nodes: []string{"n1"}})
	}
	st := s.Wait("four cards", func(st slacktest.State) bool { return len(cards(st, "shell")) == 4 })
	where := map[string]string{}
	for _, m := range cards(st, "shell") {
		where[idOf(m.Text)] = m.Channel
	}
	require.Equal(t, map[string]string{"5000": "C7", "5001": "DU5", "5002": "DU5", "5005": "C7"}, where)
	time.Sleep(300 * time.Millisecond)
	require.Len(t, cards(s.State(), "shell"), 4)
}

// The attack: somebody's script posts into a channel that they cannot see, by its
// name or its id.
func TestAScriptDoesNotPostIntoAChannelThatItsOwnerIsNotIn(t *testing.T) {
	t.Parallel()
	scripts := map[slurm.JobID]string{
		"5000": "#!/bin/bash\n#MEGATRON slack=#board\n",
		"5001": "#!/bin/bash\n#SBATCH --mail-user=slack:C9\n",
		"5002": "#!/bin/bash\n#MEGATRON slack=#runs\n",
	}
	s := play(t, watched, func(c *bot.Config) {
		c.Service.Clusters["yard"] = scriptedYard{c.Service.Clusters["yard"].(watchedYard), scripts}
	})
	s.Fault(slacktest.Fault{Method: "users.conversations", Times: 1, Error: "internal_error"}) // asked again
	s.Members(map[string][]string{"C7 #runs": {"U5"}, "C9 #board": {"U1"}})
	for id := range scripts {
		s.yard.put(slurm.Job{ID: id, Name: "shell", User: "grace", State: slurm.Running, Nodes: []string{"n1"}})
	}
	for _, words := range []string{"Job 5000 asks for its card in #board", "Job 5001 asks for its card in C9"} {
		m := s.said(words, "you are not in that channel", "slack=me")
		require.Equal(t, "DU5", m.Channel, "its owner alone is told")
	}
	s.Wait("the card where it may stand", func(st slacktest.State) bool { return len(cards(st, "shell")) == 1 })
	time.Sleep(300 * time.Millisecond)
	st := s.State()
	require.Len(t, cards(st, "shell"), 1)
	for _, m := range st.Messages {
		require.Contains(t, []string{"C7", "DU5"}, m.Channel, text(m))
	}
	require.Equal(t, 2, posted(st, "asks for its card"), "each is told of once")
}
