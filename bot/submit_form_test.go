package bot_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// openedForm waits until n forms were opened, and returns one of them.
func openedForm(s *stage, n int) (form map[string]any) {
	s.t.Helper()
	st := s.Wait("the form", func(st slacktest.State) bool { return len(st.Views) == n })
	for _, v := range st.Views {
		form = v
	}
	return form
}

// shownView waits until a modal contains those words, and returns the modal.
func shownView(s *stage, id any, words ...string) (v map[string]any) {
	s.t.Helper()
	s.Wait(fmt.Sprintf("a modal with %q", words), func(st slacktest.State) bool {
		v = st.Views[id.(string)]
		raw := slacktest.JSON(v)
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(raw, w) })
	})
	return v
}

// sendForm submits a modal with those values, and returns the answer, or nil for an empty one.
func sendForm(t *testing.T, s *stage, form map[string]any, callback, meta any, values map[string]string) (a map[string]any) {
	t.Helper()
	return answerOf(t, s.Interact(map[string]any{"type": "view_submission", "view": map[string]any{
		"id": form["id"], "callback_id": callback, "private_metadata": meta, "state": map[string]any{"values": stateOf(values)},
	}}))
}

// goodForm is a form that passes the preflight.
var goodForm = map[string]string{
	"name": "gpt", "worktree": "/lustre/m", "nodes": "2", "gpus_per_node": "8", "gpu": "h100", "partition": "gpu", "time": "1:00:00",
	"args": "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 " +
		"--micro-batch-size 2 --global-batch-size 64 --train-iters 100 --lr 1e-4 —tensor-model-parallel-size 4",
}

func TestTheFormCheckFieldsAndSubmitsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) {
			c.Site = func(string) map[string]string { return map[string]string{"partition": "gpu", "account": "llm"} }
		})
		s.Slash("submit")
		form := openedForm(s, 1)
		require.Contains(t, slacktest.JSON(form), `"initial_value":"llm"`, "the site's profile fills the form")

		send := func(values map[string]string) map[string]any {
			return sendForm(t, s, form, form["callback_id"], form["private_metadata"], values)
		}
		good := maps.Clone(goodForm)
		good["env"] = "NCCL_DEBUG=INFO"
		bad := map[string]string{"name": "gpt", "worktree": "relative/path", "nodes": "two", "env": "A=b\nexport", "args": good["args"]}
		a := send(bad)
		require.Equal(t, "errors", a["response_action"])
		require.Equal(t, map[string]any{
			"nodes":    "\"two\" is not a whole number → write a number such as 8", // no line of a text that nobody wrote
			"worktree": "\"relative/path\" is not absolute → give an absolute path of printable characters, without '..'; nothing in it is expanded",
			"env":      "line 2 is not NAME=value",
		}, a["errors"])

		bad["nodes"] = "2"
		a = send(bad)
		require.Equal(t, "errors", a["response_action"])
		require.Contains(t, a["errors"], "worktree")

		heads := map[string]string{}
		for k, v := range good {
			heads[k] = strings.ReplaceAll(v, "--num-attention-heads 16", "--num-attention-heads 18")
		}
		a = send(heads)
		require.Equal(t, "errors", a["response_action"], "%v", a)
		require.Contains(t, slacktest.JSON(a["errors"]), "attention")

		a = send(good)
		require.Equal(t, "update", a["response_action"], "%v", a)
		require.Empty(t, slacktest.CheckView([]byte(slacktest.JSON(a["view"]))))
		require.Contains(t, slacktest.JSON(a["view"]), "Looking at the cluster")
		confirm := shownView(s, form["id"], "Submit this?")
		require.Contains(t, slacktest.JSON(confirm), "2 nodes × 8 GPUs × 01:00:00 = 16 GPU hours")
		require.Contains(t, slacktest.JSON(confirm), "GiB a GPU")
		require.NotContains(t, slacktest.JSON(confirm), "#SBATCH", "the script comes as a file")
		require.Zero(t, s.yard.count())
		for range 2 { // a double click
			r := s.Interact(map[string]any{"type": "view_submission", "view": map[string]any{
				"id": form["id"], "callback_id": confirm["callback_id"], "private_metadata": confirm["private_metadata"], "state": map[string]any{"values": map[string]any{}},
			}})
			require.Equal(t, http.StatusOK, r.Status)
		}
		s.said("gpt submitted to yard as job 4711")
		s.Wait("the card", func(st slacktest.State) bool { return len(cards(st, "4711")) == 1 })
		settled(t, s.store)
		require.Equal(t, 1, s.yard.count())

		s.Slash("submit")
		st := s.Wait("the second form", func(st slacktest.State) bool { return len(st.Views) == 2 })
		last := slacktest.JSON(st.Views)
		require.Contains(t, last, `"initial_value":"/lustre/m"`, "the last run fills the form")
		require.Contains(t, last, `"initial_value":"NCCL_DEBUG=INFO"`)
	})
}

// stateOf returns the view state of a form with those values.
func stateOf(values map[string]string) map[string]any {
	st := map[string]any{}
	for k, v := range values {
		x := map[string]any{"type": "plain_text_input", "value": v}
		if k == "gpu" || k == "partition" {
			x = map[string]any{"type": "static_select", "selected_option": map[string]any{"value": v}}
		}
		st[k] = map[string]any{k: x}
	}
	return st
}

func TestAFormsSecretIsRefusedAtItsFieldAndShownNowhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		const key = "0123456789abcdef0123456789abcdef01234567"
		a := answerOf(t, s.Interact(map[string]any{"type": "view_submission", "view": map[string]any{
			"id": "V1", "callback_id": "submit", "private_metadata": `{"channel":"C1","lang":"en"}`, "state": map[string]any{"values": stateOf(map[string]string{
				"name": "gpt", "worktree": "/lustre/m", "nodes": "1", "gpu": "h100", "time": "1:00:00", "env": "WANDB_API_KEY=" + key, "args": "--num-layers 24",
			})},
		}}))
		require.Equal(t, "errors", a["response_action"])
		require.Contains(t, a["errors"], "env")
		require.NotContains(t, slacktest.JSON(a), key)
		s.Slash("submit --yes --name gpt --nodes 1 --worktree /lustre/m --env WANDB_API_KEY=" + key)
		s.said("env")
		require.NotContains(t, slacktest.JSON(s.State().Calls), key)
	})
}
