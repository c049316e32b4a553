package bot

import (
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A job's menu fits the job's state.
func TestAJobsMenuFitsItsState(t *testing.T) {
	for state, want := range map[slurm.State][]string{
		slurm.Pending:   {"status", "priority", "cancel"},
		slurm.Running:   {"status", "logs", "diagnose", "metrics", "cancel"},
		slurm.Completed: {"status", "logs", "metrics"},
		slurm.Failed:    {"status", "logs", "diagnose", "metrics"},
	} {
		drawn := string(answer.BlocksJSON([]slack.Block{jobRow(card.News{Job: slurm.Job{ID: "7", Name: "gpt", Cluster: "yard", State: state}}, 0, lang.EN)}))
		for _, verb := range []string{"status", "priority", "logs", "diagnose", "metrics", "cancel"} {
			require.Equal(t, slices.Contains(want, verb), strings.Contains(drawn, `"`+answer.ActRun+" "+verb+" 7"), "%s: %s", state, verb)
		}
		require.Equal(t, len(want), strings.Count(drawn, "--cluster yard"), state)
	}
}

// The state of most jobs comes first, and the fifth state is left out.
func TestStatesAreCounted(t *testing.T) {
	var jobs []slurm.Job
	for i, state := range []slurm.State{slurm.Failed, slurm.Timeout, slurm.Running, slurm.Pending, slurm.Completed} {
		for range i + 1 {
			jobs = append(jobs, slurm.Job{State: state})
		}
	}
	require.Equal(t, "5 completed · 4 waiting · 3 running · 2 time limit reached", stateCounts(jobs, lang.EN))
}

// What can be done while a job waits is shown beside its card, and only while it waits.
func TestWhatToDoStandsBesideAJobThatWaits(t *testing.T) {
	for state, want := range map[slurm.State]bool{slurm.Pending: true, slurm.Running: false} {
		doc := cardDetails(jobcontrol.StatusOut{Job: slurm.Job{ID: "7", State: state}, Do: "ask for a shorter time"}, lang.EN)
		require.Equal(t, want, doc.Sections[0].Text == "Ask for a shorter time", state)
		last := doc.Sections[len(doc.Sections)-1]
		require.True(t, last.Fold && len(last.Facts) > 0, "the rest is folded")
	}
}
