package bot_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Whoever has chosen no language and presses a Chinese button, or sends a Chinese form, goes on in
// Chinese: the answer, the job's card and its thread.
func TestAButtonIsAnsweredInItsLanguage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched)
		q := s.next("提交 " + spec)
		s.PressLabel(q, "确认执行", "U1")
		c := s.said("gpt · 排队中 · 4711")
		s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Running, Nodes: []string{"n1"}})
		s.Wait("its thread", func(st slacktest.State) bool {
			for _, m := range st.Messages {
				if m.Thread == c.TS {
					return strings.Contains(text(m), "运行中")
				}
			}
			return false
		})
		s.PressLabel(s.next("列表"), "取消作业", "U1")
		s.said("请确认", "4711")
		s.PressLabel(s.next("list"), "Cancel", "U1")
		s.said("Please confirm", "4711")
	})
}

func TestAFormGoesOnInItsLanguage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("提交")
		opened := openedForm(s, 1)
		values := maps.Clone(goodForm)
		sendForm(t, s, opened, opened["callback_id"], opened["private_metadata"], values)
		confirm := shownView(s, opened["id"], "确认提交？")
		s.Interact(map[string]any{"type": "view_submission", "view": map[string]any{
			"id": confirm["id"], "callback_id": confirm["callback_id"], "private_metadata": confirm["private_metadata"], "title": confirm["title"],
			"state": map[string]any{"values": map[string]any{}},
		}})
		s.said("gpt · 排队中 · 4711")
	})
}

// A channel that somebody follows jobs in reads them in the language of the subscription.
func TestASubscriptionKeepsItsLanguage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.PressLabel(s.next("订阅"), "全部失败作业", "U1")
		s.said("已在此订阅：全部作业 · 失败时")
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "5001", Cluster: "yard", Name: "moe", User: "bob", State: slurm.Failed}}))
		s.said("moe · 失败 · 5001")
	})
}
