package bot_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A server that is killed just as a change was made does not make it again: the job shows that it was
// made, or else its person is asked.
func TestAChangeThatAServerDiedAfterIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	const again = "server was stopped during this call"
	for _, c := range []struct{ words, said string }{
		{"requeue 4711 --yes", "requeued"},
		{"cancel 4711 --yes", "cancelled"},
		{"run 4711 -- hostname", again},
	} {
		for _, approved := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				dying := &dyingStore{}
				var alive record.Store
				s := approving(t, func(c *bot.Config) {
					alive, dying.Store, c.Store = c.Store, c.Store, dying
					c.Policy.Approve = func(*ops.Call, string, any) (why lang.Text) {
						if approved {
							why = lang.Same("more than 8 GPUs")
						}
						return why
					}
				})
				s.yard.changed = func() { dying.dead.Store(true) }
				s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Running, NumNodes: 2, GPUs: 16, Nodes: []string{"gpu-07", "gpu-08"}})
				s.write("U1", c.words)
				if approved {
					q := s.said("Approval needed")
					s.became(q, `"user_id":"U1"`)
					s.PressLabel(q, "Approve", "U5")
				}
				s.Wait("the change", func(slacktest.State) bool { return dying.dead.Load() })
				s.stop()
				s.yard.changed = nil
				s.again(func(c *bot.Config) { c.Store = alive })
				told := s.said(c.said)
				settled(t, s.store)
				require.EqualValues(t, 1, s.yard.changes.Load(), "%s %v", c.words, approved)
				if c.said == again && approved {
					s.said("Approved, but it is not known yet whether it ran: run", "/megatron status 4711 --cluster yard")
				}
				if c.said == again && !approved {
					require.Contains(t, text(told), "/megatron status 4711")
					s.PressLabel(told, "Yes, do it", "U1")
					s.said("hello")
					require.EqualValues(t, 2, s.yard.changes.Load())
				}
			})
		}
	}
}
