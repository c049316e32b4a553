package bot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A fullYard has free GPUs in the partition small only, and knows when a node of prod will be
// free.
type fullYard struct {
	surveyedYard
	asked *atomic.Int32
}

func (fullYard) Nodes(context.Context) ([]slurm.Node, error) {
	return []slurm.Node{
		{Name: "g1", State: "allocated", GPUs: 8, GPUsUsed: 8, Partitions: []string{"prod"}},
		{Name: "g2", State: "allocated", GPUs: 8, GPUsUsed: 8, Partitions: []string{"dev"}},
		{Name: "g3", State: "mixed", GPUs: 8, GPUsUsed: 2, Partitions: []string{"small"}},
		{Name: "c1", State: "idle", Partitions: []string{"cpu"}},
		{Name: "g4", State: "drained", GPUs: 8, Partitions: []string{"old"}, Reason: "fan\nis loud"},
	}, nil
}

func (fullYard) Partitions(context.Context) ([]slurm.Partition, error) {
	return []slurm.Partition{
		{Name: "prod", Up: true, GPUs: 8, Total: 1},
		{Name: "dev", Up: true, GPUs: 8, Total: 1},
		{Name: "small", Up: true, GPUs: 8, Total: 1},
		{Name: "cpu", Up: true, Total: 1},
		{Name: "old", GPUs: 8, Total: 1},
	}, nil
}

func (y fullYard) Test(_ context.Context, s slurm.Submission) (slurm.Estimate, error) {
	y.asked.Add(1)
	if strings.Contains(s.Script, "--partition=prod\n") {
		return slurm.Estimate{Start: time.Now().Add(2*time.Hour + 10*time.Second)}, nil
	}
	return slurm.Estimate{}, errors.New("no estimate")
}

// The home tab shows Slurm's own estimate of when a full partition has a node, and nothing
// where there is none.
func TestHomeSaysWhenAFullPartitionHasANode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		s := play(t, func(c *bot.Config) {
			c.Service.Clusters["yard"] = fullYard{surveyedYard{c.Service.Clusters["yard"].(*yard)}, &asked}
		})
		open := func(words string) {
			s.Event(map[string]any{"type": "app_home_opened", "user": "U1", "channel": "DU1", "tab": "home", "event_ts": time.Now().Format("05.000000")})
			s.Wait("home with "+words, func(st slacktest.State) bool { return strings.Contains(slacktest.JSON(st.Homes["U1"]), words) })
		}
		open("prod is full (8 GPUs): a node in about 2 h; dev is full (8 GPUs); 6 of 8 GPUs free in small; old is down\"")
		open("1 node takes no jobs: g4 (fan is loud)")
		s.Slash("settings lang zh")
		s.said("设置")
		open("prod：8 张 GPU 全部占用，约 2 小时后有节点；dev：8 张 GPU 全部占用；small：6 / 8 张 GPU 空闲；old：分区已关闭")
		require.EqualValues(t, 2, asked.Load(), "Slurm is asked once in two minutes")
	})
}

// A person's own failed job that nobody takes care of is shown as needing them.
func TestHomeSaysWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) {
			c.Policy.Operators = []string{"U8"} // an operator who has no user of the cluster
			c.Policy.Links["U2"] = "noether"
		})
		s.Slash("subscribe all")
		s.said("Followed here")
		tell := func(id slurm.JobID, user string, state slurm.State) {
			t.Helper()
			require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: id, Cluster: "yard", Name: "run", User: user, State: state}}))
		}
		tell("5003", "ada", slurm.OutOfMemory)
		s.PressLabel(waitingCard(s, "5003"), "I look after it", "U5")
		waitingCard(s, "5003", "looks after it")
		tell("5000", "ada", slurm.Failed)
		tell("5001", "ada", slurm.Completed)
		tell("5002", "grace", slurm.Failed)
		tell("5004", "", slurm.Failed)
		for i := range 6 {
			tell(slurm.JobID(fmt.Sprint(6000+i)), "olga", slurm.Failed)
		}
		home := func(user string) (drawn string) {
			t.Helper()
			s.Event(map[string]any{"type": "app_home_opened", "user": user, "channel": "D" + user, "tab": "home", "event_ts": "1." + user[1:]})
			s.Wait("home of "+user, func(st slacktest.State) bool { drawn = slacktest.JSON(st.Homes[user]); return st.Homes[user] != nil })
			_, drawn, _ = strings.Cut(drawn, "What needs you")
			drawn, _, _ = strings.Cut(drawn, "My jobs")
			return drawn
		}
		ada := home("U1")
		require.Contains(t, ada, "· 5000 · failed")
		buttonAt := strings.Index(ada, `"diagnose 5000 --cluster yard"`)
		require.Positive(t, buttonAt, "with what to do next")
		for _, id := range []string{"5001", "5002", "5003", "5004"} {
			require.NotContains(t, ada, id)
		}
		require.Contains(t, home("U2"), "Nothing: no job of yours that is followed here has failed")
		require.Contains(t, home("U8"), "Nothing: no job of yours that is followed here has failed", "a job of nobody's is not theirs")
		require.Equal(t, 5, strings.Count(home("U6"), " · failed"), "as many as fit, and their buttons")
		require.Empty(t, home("U7"), "nothing needs whom the cluster does not know")
	})
}
