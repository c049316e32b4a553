package bot_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// A counted yard counts the queries that it gets.
type counted struct {
	*yard
	queue, single atomic.Int32
}

func (c *counted) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	c.queue.Add(1)
	return c.yard.Jobs(ctx, f)
}

func (c *counted) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	c.single.Add(1)
	return c.yard.Job(ctx, id)
}

func (c *counted) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, nil }

// However many people open their home tab or submit at once, the queue is queried once in an
// interval, and once more after a change.
func TestHomeTabsAndCardsAskTheQueueTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c *counted
		s := play(t, func(cfg *bot.Config) {
			c = &counted{yard: cfg.Service.Clusters["yard"].(*yard)}
			cfg.Service.Clusters["yard"] = c
			cfg.Service.Views = map[string]ops.View{"yard": watch.NewShared(c, watch.Options{Floor: time.Minute})}
			for i := 2; i <= 9; i++ {
				cfg.Policy.Links[fmt.Sprint("U", i)] = fmt.Sprint("person", i)
			}
		})
		s.yard.put(slurm.Job{ID: "4000", Name: "run", User: "ada", State: slurm.Running, Nodes: []string{"n1"}})
		for i := 1; i <= 9; i++ {
			s.Event(map[string]any{"type": "app_home_opened", "user": fmt.Sprint("U", i), "channel": "D1", "tab": "home", "event_ts": fmt.Sprint("1.", i)})
		}
		st := s.Wait("all home tabs", func(st slacktest.State) bool { return len(st.Homes) == 9 })
		require.Contains(t, slacktest.JSON(st.Homes["U1"]), "4000")
		require.Equal(t, int32(1), c.queue.Load(), "nine home tabs are one question")

		submitted(t, s)
		s.Event(map[string]any{"type": "app_home_opened", "user": "U1", "channel": "D1", "tab": "home", "event_ts": "2.1"})
		s.Wait("the home tab with the new job", func(st slacktest.State) bool {
			return len(cards(st, "4711")) == 1 && strings.Contains(slacktest.JSON(st.Homes["U1"]), "4711")
		})
		require.Equal(t, int32(2), c.queue.Load(), "the card and the home tab share one question")
		require.Zero(t, c.single.Load(), "no job is asked for by itself")
	})
}

// Whoever asks to start a run of a model that has a recipe is led to the form that begins with it.
func TestAWishToStartARunLeadsToTheForm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		for i, row := range [][2]string{
			{"please run “llama3-8b” on 2 nodes", "Start a run of llama3-8b?"},
			{"start a Llama3-8b run on 4 nodes", "Start a run of llama3-8b?"},
			{"帮我跑一个 llama3-8b", "启动 llama3-8b 训练？"},
			{"我想训练llama3-8b", "启动 llama3-8b 训练？"},
		} {
			before := len(s.State().Messages)
			s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": fmt.Sprintf("1.%d", i+1), "text": row[0]})
			st := s.Wait("an answer", func(st slacktest.State) bool { return len(st.Messages) > before })
			require.Contains(t, text(st.Messages[before]), row[1], row[0])
			action, value := buttonOf(t, st.Messages[before], map[bool]string{true: "Submit a job", false: "提交作业"}[i < 2])
			require.Equal(t, "submit", value, action)
		}
		before := len(s.State().Messages)
		s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": "2.1", "text": "how do I train llama3-8b?"})
		st := s.Wait("an answer", func(st slacktest.State) bool { return len(st.Messages) > before })
		require.NotContains(t, text(st.Messages[before]), "Start a run of", "a question is a question")
	})
}

// A number in a question that is no job of the cluster's is a number, and the question is answered.
func TestANumberThatIsNoJobIsPartOfAQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": "1.1", "text": "what is a good loss at iteration 5999?"})
		st := s.Wait("an answer", func(st slacktest.State) bool { return len(st.Messages) > 0 })
		require.NotContains(t, text(st.Messages[0]), "5999 is not known")
	})
}
