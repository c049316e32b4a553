package bot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// All steps of a pipeline share one card that is edited in place; the cause of a failure goes
// to its thread.
func TestAPipelineHasOneCard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("subscribe all", map[string]any{"channel_id": "C9"})
		s.said("Followed here: all jobs")
		dir := t.TempDir()
		step := "{nodes: 1, gpus_per_node: 0, launcher: custom, launcher_argv: [bash], script: x.sh, time: 10, worktree: /lustre/m"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "nightly.yaml"), []byte(`name: nightly
steps:
  - {name: prep, job: `+step+`}}
  - {name: train, needs: [prep], job: `+step+`, args: ["<prep.job_id>"]}}
`), 0o644))
		call := &ops.Call{Service: s.service, Who: ops.Caller{Surface: ops.Shell, ID: "ada", User: "ada"}, Dir: dir}
		op := pipeline.Submit()
		submit := func() pipeline.Out {
			t.Helper()
			in := op.NewIn()
			require.NoError(t, op.Words(in, []string{"nightly.yaml", "--yes"}))
			out, err := op.Run(t.Context(), call, in)
			require.NoError(t, err)
			return out.(pipeline.Out)
		}
		out := submit()
		tell := func(id slurm.JobID, state slurm.State, change ...func(*card.News)) {
			t.Helper()
			n := card.News{Job: slurm.Job{ID: id, Cluster: "yard", Name: "x", User: "ada", State: state}}
			for _, f := range change {
				f(&n)
			}
			require.NoError(t, s.bot.Tell(t.Context(), n))
		}
		first, second := *out.Steps[0].JobID, *out.Steps[1].JobID
		tell(first, slurm.Running, func(n *card.News) { n.Iteration, n.Iterations = 10, 100 })
		tell(second, slurm.Pending)
		var one *slacktest.Message
		s.Wait("one card of the pipeline", func(st slacktest.State) bool {
			list := cards(st, "nightly")
			if len(list) == 1 && strings.Contains(text(list[0]), "iteration 10 of 100") {
				one = list[0]
			}
			return one != nil
		})
		require.Contains(t, text(one), "0 of 2 steps completed")
		tell(first, slurm.Completed)
		tell(second, slurm.Failed, func(n *card.News) {
			n.Says = lang.Same("CUDA out of <memory>")
			n.Cause = &view.Doc{Title: "out of memory", Sections: []view.Section{{Text: "rank 3 ran out"}}}
		})
		s.Wait("the failure on the card and in its thread", func(st slacktest.State) bool {
			list := cards(st, "nightly")
			inThread := false
			for _, m := range st.Messages {
				inThread = inThread || m.Thread == one.TS && strings.Contains(text(m), "rank 3 ran out")
			}
			return len(list) == 1 && list[0].TS == one.TS && inThread && strings.Contains(text(list[0]), "CUDA out of") &&
				strings.Contains(text(list[0]), "goes on where it broke")
		})
		st := s.State()
		require.Empty(t, cards(st, string(first)), "no step has a card of its own")
		require.Empty(t, cards(st, string(second)))

		s.yard.put(slurm.Job{ID: first, Cluster: "yard", User: "ada", State: slurm.Completed})
		s.yard.put(slurm.Job{ID: second, Cluster: "yard", User: "ada", State: slurm.Failed})
		again := submit()
		require.Equal(t, first, *again.Steps[0].JobID, "nothing is submitted twice")
		third := *again.Steps[1].JobID
		require.NotEqual(t, second, third)
		tell(third, slurm.Completed)
		s.Wait("the same card, done", func(st slacktest.State) bool {
			list := cards(st, "nightly")
			return len(list) == 1 && list[0].TS == one.TS && strings.Contains(text(list[0]), "2 of 2 steps completed")
		})
	})
}
