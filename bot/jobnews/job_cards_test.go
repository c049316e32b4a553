package jobnews

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func run(state slurm.State) slurm.Job {
	return slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: state}
}

const theCard = "card/test/4711@T1/C1"

// A card is one message that is edited: at once for a new state, at the edit pace for numbers.
func TestACardIsOneMessageThatIsEdited(t *testing.T) {
	t.Parallel()
	s := set(t)
	k := card.Card{Team: "T1", User: "U1", News: card.News{Job: slurm.Job{ID: "4711", Cluster: "test", Name: "gpt", User: "ada", State: slurm.Pending}}}
	k.Places = []card.Place{{Team: "T1", Channel: "C1"}}
	require.NoError(t, s.Begin(s.ctx, k, "#!/bin/bash"))
	require.Equal(t, []string{
		"post C1: 🟡 gpt (4711): waiting", "update " + theCard + ": 🟡 gpt (4711): waiting", "upload below " + theCard + ": 4711.sbatch",
	}, s.told())
	require.NoError(t, s.Begin(s.ctx, k, "#!/bin/bash"))
	require.Empty(t, s.told(), "asked for again, or after a crash")

	require.Equal(t, []string{"update " + theCard + ": 🔵 gpt (4711): running", "post below " + theCard + ": 🔵 gpt (4711): running"}, s.tell(card.News{Job: run(slurm.Running)}))
	require.Empty(t, s.tell(card.News{Job: run(slurm.Running)}), "nothing is new")
	require.Equal(t, []string{"update " + theCard + ": 🔵 gpt (4711): running (at 12:01)"}, s.tell(card.News{Job: run(slurm.Running), Iteration: 5}))
	s.at = noon.Add(30 * time.Second)
	require.Equal(t, []string{"update " + theCard + ": 🔵 gpt (4711): running (at 12:02)"}, s.tell(card.News{Job: run(slurm.Running), Iteration: 6}))
	require.Equal(t, []string{
		"update " + theCard + ": ✅ gpt (4711): completed", "post below " + theCard + ": ✅ gpt (4711): completed (calls U1)",
	}, s.tell(card.News{Job: run(slurm.Completed)}))
	require.Empty(t, s.tell(card.News{Job: run(slurm.Running), Iteration: 7}), "numbers from before the end")
	require.Equal(t, 6, s.card("4711").News.Iteration, "what is not told anew is kept")

	again := run(slurm.Running)
	again.Restarts = 1
	require.Len(t, s.tell(card.News{Job: again}), 2)
	require.Zero(t, s.card("4711").EndedAt)
}

// A card is stored while its job lives, and for another month.
func TestACardIsKeptForAMonth(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.begin(run(slurm.Running))
	keys := func(kind string, at time.Time) []string {
		all, err := s.kept.Keys(s.ctx, kind, at)
		require.NoError(t, err)
		return all
	}
	later := noon.AddDate(2, 0, 0)
	require.Len(t, keys(record.Card, later), 1)
	require.Len(t, keys(record.Alive, later), 1)
	s.tell(card.News{Job: run(slurm.Completed)})
	require.Empty(t, keys(record.Alive, noon))
	require.Len(t, keys(record.Card, noon.AddDate(0, 1, -1)), 1)
	require.Empty(t, keys(record.Card, noon.AddDate(0, 1, 1)))
	require.Len(t, s.CardsEndedSince(s.ctx, noon.Add(-time.Hour)), 1)
	require.Empty(t, s.CardsEndedSince(s.ctx, noon.Add(time.Hour)))
}

// Somebody is called for an end that they did not bring about, unless they do not want
// to be; the news comes all the same.
func TestWhoIsCalledForAnEnd(t *testing.T) {
	t.Parallel()
	quiet := people.Settings{QuietFrom: 11 * 60, QuietTo: 13 * 60}
	for name, c := range map[string]struct {
		set    people.Settings
		change func(*card.Card)
		end    slurm.State
		called bool
	}{
		"an end":                       {people.Settings{}, nil, slurm.Completed, true},
		"a failure":                    {people.Settings{Notify: "ends"}, nil, slurm.Failed, true},
		"only failures are wanted":     {people.Settings{Notify: "ends"}, nil, slurm.Completed, false},
		"nothing is wanted":            {people.Settings{Notify: "none"}, nil, slurm.Failed, false},
		"quiet hours":                  {quiet, nil, slurm.Failed, false},
		"they have cancelled it":       {people.Settings{}, func(k *card.Card) { k.Acted, k.ActedAt = "U1", noon }, slurm.Cancelled, false},
		"they did so long before":      {people.Settings{}, func(k *card.Card) { k.Acted, k.ActedAt = "U1", noon.Add(-2*time.Hour) }, slurm.Failed, true},
		"somebody else cancelled it":   {people.Settings{}, func(k *card.Card) { k.Acted, k.ActedAt = "U2", noon }, slurm.Cancelled, true},
		"they have muted it":           {people.Settings{}, func(k *card.Card) { k.Muted = []string{"U1"} }, slurm.Failed, false},
		"somebody else has muted it":   {people.Settings{}, func(k *card.Card) { k.Muted = []string{"U2"} }, slurm.Failed, true},
		"nobody in Slack asked for it": {people.Settings{}, func(k *card.Card) { k.User = "" }, slurm.Failed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set(t)
			s.begin(run(slurm.Running))
			s.settings("U1", c.set)
			if c.change != nil {
				require.True(t, s.withCard(s.ctx, "test", "4711", c.change))
			}
			told := s.tell(card.News{Job: run(c.end)})
			require.Len(t, told, 2)
			if c.called {
				require.Contains(t, told[1], "(calls U1)")
			} else {
				require.NotContains(t, told[1], "calls")
			}
		})
	}
}

// Quiet hours hold what comes to a person directly, and nothing in a channel.
func TestQuietHoursHoldDirectMessages(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.settings("U2", people.Settings{QuietFrom: 11 * 60, QuietTo: 13 * 60})
	for place, at := range map[string]time.Time{"C1": {}, "U1": {}, "U2": noon.Add(time.Hour), "W1": {}, "D7": noon.Add(time.Hour)} {
		require.Equal(t, at, s.notBefore(s.ctx, card.Place{Team: "T1", Channel: place}, "U2").UTC(), place)
	}
	s.settings("W1", people.Settings{QuietFrom: 11 * 60, QuietTo: 13 * 60})
	require.Equal(t, noon.Add(time.Hour), s.notBefore(s.ctx, card.Place{Team: "T1", Channel: "W1"}, ""))
}

// Whoever follows a job sees it, once in a place, beside whoever asked for it.
func TestFollowersSeeAJob(t *testing.T) {
	t.Parallel()
	s := set(t)
	require.Empty(t, s.tell(card.News{Job: run(slurm.Running)}), "nobody follows it")
	for _, key := range []string{"all@T1/C9", "user/ada@T1/C9", "user/ada failed@T1/C8"} {
		require.NoError(t, s.kept.Put(s.ctx, record.Follow, key, "U2", time.Time{}))
	}
	require.Equal(t, []string{"post C9: 🔵 gpt (4711): running"}, s.tell(card.News{Job: run(slurm.Running)}))
	require.True(t, s.followed(s.ctx, run(slurm.Running)))

	job := run(slurm.Running)
	job.Cluster = "test"
	for range 2 {
		require.NoError(t, s.Begin(s.ctx, card.Card{Team: "T1", User: "U1", News: card.News{Job: job}, Places: []card.Place{{Team: "T1", Channel: "C9"}}}, ""))
	}
	require.Len(t, s.card("4711").Places, 1)
	require.Equal(t, "U1", s.card("4711").User, "who asked for it owns the card that followers had")
	s.told()
	failed := s.tell(card.News{Job: run(slurm.Failed)})
	require.Contains(t, failed, "post C8: ❌ gpt (4711): failed")
	require.Len(t, failed, 4)

	require.NoError(t, s.kept.Put(s.ctx, record.Settings, "T1/U2", people.Settings{Lang: lang.ZH}, time.Time{}))
	other := run(slurm.Running)
	other.ID = "4713"
	require.Equal(t, lang.ZH, s.cardLang(s.ctx, other))
	require.Contains(t, s.tell(card.News{Job: other}), "post C9: 🔵 gpt（4713）：运行中", "in the language of who made the place follow")

	ended := run(slurm.Completed)
	ended.ID = "4712"
	require.Len(t, s.tell(card.News{Job: ended}), 2, "of a job that was over before anybody looked, its card and its end")
}

func TestAPipelinesCardIsInOneLanguage(t *testing.T) {
	t.Parallel()
	id := slurm.JobID("4711")
	_, blocks := drawPipeline(
		pipeline.Out{Name: "nightly", Steps: []pipeline.Step{{Name: "prep", JobID: &id, State: slurm.Failed}}},
		map[slurm.JobID]stepState{id: {State: slurm.Failed, Says: lang.Text{EN: "GPU out of memory", ZH: "显存不足"}, Why: "GPU out of memory"}}, lang.ZH)
	require.Contains(t, string(blocks), "显存不足")
	require.NotContains(t, string(blocks), "out of memory")
}

// One person looks after a failure: it is said on the card and in its thread.
func TestAFailureIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := set(t)
	ask := func(user, value string) incoming.Ask {
		return incoming.Ask{Key: "k", Team: "T1", User: user, Channel: "C1", Value: value}
	}
	s.begin(run(slurm.Running))
	s.tell(card.News{Job: run(slurm.Failed)})
	require.Contains(t, shown(s.Take(s.ctx, ask("U7", "test/4711"))), "not linked")
	owed := s.Take(s.ctx, ask("U2", "test/4711"))
	require.Equal(t, []string{"update " + theCard + ": ❌ gpt (4711): failed", "post below " + theCard + ": gpt (4711): 👀 grace looks after it"}, lines(owed))
	require.Empty(t, s.Take(s.ctx, ask("U2", "test/4711")), "they pressed twice")
	require.Contains(t, shown(s.Take(s.ctx, ask("U1", "test/4711"))), "grace looks after it", "somebody was faster")
	require.Equal(t, "U2", s.card("4711").Taken)
	require.Contains(t, shown(s.Take(s.ctx, ask("U1", "test/9"))), "nobody follows job 9 in Slack")

	again := run(slurm.Running)
	again.Restarts = 1
	s.tell(card.News{Job: again})
	require.Empty(t, s.card("4711").Taken, "what was wrong before is no more")
}

// The job that takes over has its card where the first one's is.
func TestTheNextJobHasItsCardBesideTheFirst(t *testing.T) {
	t.Parallel()
	s := set(t)
	job := run(slurm.Failed)
	job.Cluster = "test"
	require.NoError(t, s.Carry(s.ctx, job, "4712"))
	require.Empty(t, s.told(), "nobody follows the first")
	s.begin(run(slurm.Running))
	require.NoError(t, s.Carry(s.ctx, job, "4712"))
	require.Equal(t, "post C1: 🟡 gpt (4712): waiting", s.told()[0])
	s.kept.away = record.Card
	require.Error(t, s.Carry(s.ctx, job, "4713"))
	require.Empty(t, s.told(), "who hears of it is not known")
}

// A notice is posted below the card, or to the job's owner, or to the operators; the person who
// caused it gets none.
func TestANoticeFindsItsPeople(t *testing.T) {
	t.Parallel()
	s := set(t, func(p *people.Policy) { p.Operators = []string{"T1/U5", "T1/U6"} })
	said := func(n ops.Notice) []string {
		n.Cluster, n.Job, n.Title.EN, n.Key = "test", "4711", "the loss is not a number", n.Key+s.at.String()
		require.NoError(t, s.Notify(s.ctx, n))
		return s.told()
	}
	const words, named = ": job 4711: the loss is not a number", ": gpt (4711): the loss is not a number"
	require.Equal(t, []string{"post U5" + words, "post U6" + words}, said(ops.Notice{Operators: true}))
	require.Equal(t, []string{"post U1" + words}, said(ops.Notice{Owner: "ada"}))
	require.Empty(t, said(ops.Notice{Owner: "ada", By: "T1/U1"}))
	require.Empty(t, said(ops.Notice{Owner: "nobody"}))
	s.begin(run(slurm.Running))
	require.Equal(t, []string{"post below " + theCard + named}, said(ops.Notice{Owner: "ada"}))
	require.Equal(t, []string{"post below " + theCard + named + " (calls U1)"}, said(ops.Notice{Owner: "ada", Alarm: true}))
	require.Equal(t, []string{"post below " + theCard + named}, said(ops.Notice{Alarm: true, By: "T1/U1"}))
	s.settings("U1", people.Settings{Notify: "none"})
	require.Equal(t, []string{"post below " + theCard + named}, said(ops.Notice{Alarm: true}))
}

// The thread starts with the diagnosis.
func TestTheThreadBeginsWithTheCause(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.begin(run(slurm.Running))
	n := card.News{Job: run(slurm.Failed), Why: "GPU out of memory, rank 3", Cause: &view.Doc{Title: "GPU out of memory", Sections: []view.Section{{Text: "Lower the micro-batch."}}}}
	told := s.tell(n)
	require.Equal(t, "post below "+theCard+": ❌ gpt (4711): GPU out of memory, rank 3 (calls U1)", told[1])
	require.Empty(t, s.tell(n))
}
