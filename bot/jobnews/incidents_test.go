package jobnews

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// failing gives a job a card in C9 and lets it fail with that class.
func (s *stage) failing(id slurm.JobID, user, class string) []string {
	s.t.Helper()
	j := slurm.Job{ID: id, Cluster: "test", Name: "run-" + string(id), User: user, State: slurm.Running}
	require.NoError(s.t, s.kept.Put(s.ctx, record.Follow, "all@T1/C9", "U2", time.Time{}))
	s.tell(card.News{Job: j})
	j.State = slurm.Failed
	s.tell(card.News{Job: j})
	s.noteFailure(s.ctx, j, &report.Report{Class: class, RootLine: "OSError: '/lustre/data/corpus.bin'"})
	return s.told()
}

// Two jobs in a channel that fail of one cause are one incident; each that joins is told
// below it, and one person takes them all.
func TestJobsThatFailOfOneCauseAreOneIncident(t *testing.T) {
	t.Parallel()
	s := set(t)
	require.Empty(t, s.failing("1", "grace", "filesystem"), "one is none")
	s.at = s.at.Add(time.Minute)
	told := s.failing("2", "ada", "filesystem")
	require.Len(t, told, 3)
	require.Equal(t, "post C9: 🔥 2 jobs, one cause: storage fault or permissions, /lustre/data", told[0])
	s.at = s.at.Add(time.Minute)
	require.Empty(t, s.failing("4", "ada", "cuda_oom"), "another cause is no part of it")
	third := s.failing("3", "ada", "filesystem")
	require.Len(t, third, 2)
	require.Contains(t, third[0], "update incident/")
	require.Contains(t, third[0], "🔥 3 jobs, one cause")
	require.Contains(t, third[1], "run-3 (3)")
	s.noteFailure(s.ctx, slurm.Job{ID: "9", Cluster: "test"}, nil)
	require.Empty(t, s.told(), "without a cause there is nothing in common")

	keys, err := s.kept.Keys(s.ctx, record.Incident, s.at)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	s.withCard(s.ctx, "test", "3", func(k *card.Card) { k.Taken = "U2" })
	take := incoming.Ask{Team: "T1", User: "U1", Channel: "C9", Value: ofIncident + keys[0]}
	require.Empty(t, s.Take(s.ctx, take))
	require.Len(t, s.told(), 3, "the incident's message and the two cards that nobody had taken")
	require.Equal(t, "U1", s.card("1").Taken)
	require.Equal(t, "U2", s.card("3").Taken)
	take.User = "U2"
	s.Take(s.ctx, take)
	require.Empty(t, s.told(), "somebody was faster")
	require.Equal(t, "U1", s.card("2").Taken)
}

// A place that shows two jobs of an incident is told of it by the incident's message alone; one that
// shows a single job, by a notice below its card.
func TestAnIncidentIsToldOnceInEachPlace(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.failing("1", "grace", "filesystem")
	require.Len(t, s.failing("2", "ada", "filesystem"), 3, "the message, and two lines below it")
	notice := ops.Notice{
		Key: "incident//lustre/data/2", Cluster: "test", Job: "2", Owner: "ada", Incident: []string{"1", "2"},
		Title: lang.Text{EN: "One incident, not 2", ZH: "这是同一起事件"},
	}
	require.NoError(t, s.Notify(s.ctx, notice))
	require.Empty(t, s.told())
	s.withCard(s.ctx, "test", "1", func(k *card.Card) { k.Places = []card.Place{{Team: "T1", Channel: "C8"}} })
	require.NoError(t, s.Notify(s.ctx, notice))
	told := s.told()
	require.Len(t, told, 1)
	require.Contains(t, told[0], "One incident, not 2")
}

// The jobs of other clusters are no part of an incident.
func TestAnIncidentIsOfOneCluster(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.failing("1", "grace", "filesystem")
	s.noteFailure(s.ctx, slurm.Job{ID: "2", Cluster: "other"}, &report.Report{Class: "filesystem", RootLine: "OSError: '/lustre/data/corpus.bin'"})
	require.Empty(t, s.told())
}

// An incident shows its cause, its people and its first ten jobs.
func TestAnIncidentNamesItsJobs(t *testing.T) {
	t.Parallel()
	x := incident{Cluster: "test", Lang: lang.EN, Found: report.Incident{Class: "slurm_node_fail", Where: "gpu1", From: noon, To: noon.Add(time.Hour)}}
	var here []card.Card
	for i := range 12 {
		user := []string{"grace", "ada"}[i%2]
		here = append(here, card.Card{News: card.News{Job: slurm.Job{ID: slurm.JobID(fmt.Sprint(100 + i)), Name: "run", User: user, State: slurm.Failed}}})
	}
	text, bs := incidentBlocks(x, here, "id")
	require.Contains(t, text, "🔥 12 jobs, one cause")
	require.Contains(t, text, ", gpu1")
	all := string(answer.BlocksJSON(bs))
	require.Contains(t, all, "jobs of ada, grace")
	require.Contains(t, all, "109")
	require.NotContains(t, all, "110")
	require.Contains(t, all, "and 2 more")
	require.Contains(t, all, "I look after it")
	_, bs = incidentBlocks(x, here[:10], "id")
	require.NotContains(t, string(answer.BlocksJSON(bs)), "more")
	x.Taken, x.TakenAt = "U1", noon
	_, bs = incidentBlocks(x, here[:2], "id")
	require.Contains(t, string(answer.BlocksJSON(bs)), "U1")
	require.NotContains(t, string(answer.BlocksJSON(bs)), "I look after it")
	x.Found.Where = x.Found.Class
	text, _ = incidentBlocks(x, here[:2], "id")
	require.NotContains(t, text, ", slurm_node_fail", "the cause is not said twice")
}
