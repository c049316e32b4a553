package bot_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A scriptedYard has the scripts of its jobs.
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
	synctest.Test(t, func(t *testing.T) {
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
	})
}
