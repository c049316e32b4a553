package jobnews

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// subscribe types words after subscribe, in the channel C1.
func (s *stage) subscribe(user, words string, on bool, change ...func(*incoming.Ask)) []store.SlackMessage {
	a := incoming.Ask{Key: "k" + words, Kind: incoming.AsCommand, Team: "T1", User: user, Channel: "C1"}
	for _, f := range change {
		f(&a)
	}
	return s.Subscribe(s.ctx, a, s.people.Call(s.ctx, a), "test", strings.Fields(words), on)
}

func (s *stage) follows() (keys []string) {
	s.t.Helper()
	keys, err := s.kept.Keys(s.ctx, record.Follow, s.at)
	require.NoError(s.t, err)
	return keys
}

// A channel sees who changes what is posted there; a direct message answers its person alone;
// what cannot be followed is refused with what can.
func TestSubscribing(t *testing.T) {
	t.Parallel()
	s := set(t)
	require.Contains(t, shown(s.subscribe("U7", "all", true)), "not linked")
	require.Contains(t, shown(s.subscribe("U1", "weather=fine", true)), "cannot be followed")
	require.Contains(t, shown(s.subscribe("U1", "all expected", true)), "an alarm needs a name")
	atTerminal := func(a *incoming.Ask) { a.Terminal = &incoming.Terminal{User: "ada"} }
	require.Contains(t, shown(s.subscribe("U1", "all failed", true, atTerminal)), "wait JOB")
	require.Empty(t, s.follows())
	owed := s.subscribe("U1", "all failed", true)
	require.Equal(t, []string{"post C1: Followed here: all jobs · when one fails: Set by ada. News of these jobs comes to this channel."}, lines(owed))
	require.Contains(t, shown(owed), "Set by ada")
	require.Contains(t, shown(owed), "unsubscribe all failed")
	require.Equal(t, []string{"all failed@T1/C1"}, s.follows())
	owed = s.subscribe("U2", "all failed", false)
	require.Contains(t, shown(owed), "Not followed here any more")
	require.NotContains(t, shown(owed), "End it")
	require.Empty(t, s.follows())
	alone := func(a *incoming.Ask) { a.Direct, a.Channel = true, "D1" }
	owed = s.subscribe("U1", "name=llama expected", true, alone)
	require.NotContains(t, shown(owed), "Set by")
	require.Equal(t, []string{"name/llama expected@T1/U1"}, s.follows())
	s.subscribe("U1", "all", true, func(a *incoming.Ask) { a.Channel = "" })
	require.Contains(t, s.follows(), "all@T1/U1")
}

// What is followed is shown where it is, with a button that ends it.
func TestWhatIsFollowedHere(t *testing.T) {
	t.Parallel()
	s := set(t)
	empty := shown(s.subscribe("U1", "", true))
	require.Contains(t, empty, "Nothing is followed here yet")
	require.Contains(t, empty, "subscribe user=ada failed")
	for _, key := range []string{"user/grace@T1/C1", "all@T1/C2", "all@T2/C1"} {
		require.NoError(t, s.kept.Put(s.ctx, record.Follow, key, "U1", time.Time{}))
	}
	here := shown(s.subscribe("U1", "", true))
	require.Contains(t, here, "jobs of grace")
	require.Equal(t, 1, strings.Count(here, "unsubscribe"))
	require.NotContains(t, here, "Nothing is followed here yet")
	operator := set(t, func(p *people.Policy) { p.Operators = []string{"U9"} })
	require.Contains(t, shown(operator.subscribe("U9", "", true)), "What is followed here", "an operator need not be linked")
}

// Somebody is called for a job again when they unmute it.
func TestMuting(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.begin(run(slurm.Running))
	a := incoming.Ask{Key: "k", Kind: incoming.AsCommand, Team: "T1", User: "U1", Channel: "C1"}
	mute := func(on bool, words ...string) string {
		return shown(s.Mute(s.ctx, a, s.people.Call(s.ctx, a), "test", words, on))
	}
	require.Contains(t, mute(true), "mute needs a job's id")
	require.Contains(t, mute(true, "9"), "nobody follows job 9 in Slack")
	for range 2 {
		require.Contains(t, mute(true, "4711"), "you will not be notified about it")
	}
	require.Equal(t, []string{"U1"}, s.card("4711").Muted)
	require.Contains(t, mute(false, "4711"), "you will be notified about it again")
	require.Empty(t, s.card("4711").Muted)
}

// A missing expected run is reported once, and so is its return.
func TestARunThatIsExpectedAndMissingIsAnAlarm(t *testing.T) {
	t.Parallel()
	s := set(t)
	for _, key := range []string{"name/nightly-* expected@T1/C9", "all@T1/C8"} {
		require.NoError(t, s.kept.Put(s.ctx, record.Follow, key, "U2", time.Time{}))
	}
	look := func(jobs ...slurm.Job) []string {
		all, err := s.subscriptions(s.ctx)
		require.NoError(t, err)
		s.checkExpected(s.ctx, all, jobs)
		return s.told()
	}
	job := func(state slurm.State) slurm.Job {
		return slurm.Job{ID: "5", Cluster: "test", Name: "nightly-2", State: state}
	}
	stuck := job(slurm.Pending)
	stuck.Reason = "DependencyNeverSatisfied"
	waits := job(slurm.Pending)
	waits.Reason = "Dependency"
	broken := job(slurm.Running)
	broken.Reason = stuck.Reason
	require.Empty(t, look(job(slurm.Running)))
	require.Empty(t, look(stuck), "a chain takes a while between two")
	require.Empty(t, look(waits), "it was away for less than what is an alarm")
	require.Empty(t, look(broken))
	require.Empty(t, look(job(slurm.Completed)))
	s.at = noon.Add(missingFor - time.Second)
	require.Empty(t, look())
	s.at = noon.Add(missingFor)
	s.kept.queued = nil
	all, _ := s.subscriptions(s.ctx)
	s.checkExpected(s.ctx, all, []slurm.Job{stuck, {ID: "6", Name: "other", State: slurm.Pending, Reason: stuck.Reason}})
	alarm := shown(s.kept.queued)
	require.Contains(t, alarm, "Job 5 waits for a job that did not end well")
	require.NotContains(t, alarm, "Job 6")
	require.Contains(t, alarm, "cancel 5")
	require.Equal(t, []string{"post C9: No run named nightly-* waits or runs: Job 5 waits for a job that did not end well, and will never start."}, s.told())
	require.Empty(t, look(), "said once")
	require.Equal(t, []string{"post C9: A run named nightly-* is there again: job 5"}, look(job(slurm.Running)))
	require.Empty(t, look(job(slurm.Running)))
}

// A person's digest of their own jobs is sent in their morning, once a day.
func TestADigestComesInTheMorning(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.settings("U1", people.Settings{Digest: true, Zone: "Asia/Shanghai"})
	s.settings("U2", people.Settings{Digest: true})
	s.settings("U3", people.Settings{})
	morning := time.Date(2026, 11, 20, 1, 30, 0, 0, time.UTC) // half past nine in Shanghai
	ended := func(id slurm.JobID, user string, state slurm.State, ago time.Duration) {
		k := card.Card{Team: "T1", User: user, EndedAt: morning.Add(-ago), News: card.News{Job: slurm.Job{ID: id, Name: "gpt", State: state, GPUs: 16, ElapsedS: 3600}, Class: "cuda_oom"}}
		require.NoError(t, s.kept.Put(s.ctx, record.Card, "test/"+string(id), k, time.Time{}))
	}
	s.at = morning.AddDate(0, 0, -1)
	s.digests(s.ctx)
	require.Empty(t, s.told(), "no job, no digest")
	s.at = morning
	ended("1", "U1", slurm.Failed, time.Hour)
	ended("2", "U2", slurm.Completed, time.Hour)
	ended("3", "U1", slurm.Failed, 25*time.Hour)
	ended("4", "U1", slurm.Cancelled, time.Hour)
	s.begin(slurm.Job{ID: "5", Name: "moe", User: "ada", State: slurm.Running})
	s.begin(slurm.Job{ID: "6", Name: "moe", User: "grace", State: slurm.Running})
	s.digests(s.ctx)
	require.Len(t, s.kept.queued, 1)
	digest := shown(s.kept.queued)
	require.Contains(t, digest, "GPU out of memory (cuda_oom): 1 gpt")
	require.NotContains(t, digest, "3 gpt")
	require.Contains(t, digest, "16.0")
	require.Contains(t, s.told()[0], "post U1: Jobs of the last day: Completed 0: Failed 1")
	for _, at := range []time.Time{morning.Add(10 * time.Minute), morning.Add(-time.Hour), morning.Add(time.Hour)} {
		s.at = at
		s.digests(s.ctx)
		require.Empty(t, s.told(), at)
	}
	s.at = morning.Add(8 * time.Hour) // half past nine in UTC
	s.digests(s.ctx)
	require.Len(t, s.kept.queued, 1)
	require.Contains(t, s.told()[0], "post U2: Jobs of the last day")

	// No server ran in the hour of the next day.
	s.at = morning.Add(32 * time.Hour)
	ended("7", "U1", slurm.Failed, -25*time.Hour)
	ended("8", "U3", slurm.Failed, -25*time.Hour)
	s.settings("U3", people.Settings{Digest: true, Zone: "Asia/Shanghai"})
	s.settings("U2", people.Settings{})
	s.digests(s.ctx)
	require.Len(t, s.kept.queued, 1, "whoever has just switched the digest on gets one tomorrow")
	require.Contains(t, s.told()[0], "post U1: Jobs of the last day")
	s.digests(s.ctx)
	require.Empty(t, s.told())

	// U1 does without for a day.
	s.settings("U1", people.Settings{Zone: "Asia/Shanghai"})
	s.at = morning.Add(33 * time.Hour)
	s.digests(s.ctx)
	s.settings("U1", people.Settings{Digest: true, Zone: "Asia/Shanghai"})
	s.at = morning.Add(56 * time.Hour)
	ended("9", "U1", slurm.Failed, -55*time.Hour)
	s.digests(s.ctx)
	require.Empty(t, s.told(), "whoever switches it on again gets the next one in their morning")
}

// A store that fails for a moment is not taken for a person who wants no digest any more: the one
// that comes late, because no server ran in its hour, still comes.
func TestADigestOutlivesTheStore(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.settings("U1", people.Settings{Digest: true})
	s.at = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	s.digests(s.ctx)
	s.kept.away = record.Settings
	s.at = s.at.Add(2 * time.Hour)
	s.digests(s.ctx)
	s.kept.away = ""
	s.at = s.at.Add(24 * time.Hour)
	k := card.Card{Team: "T1", User: "U1", EndedAt: s.at.Add(-time.Hour), News: card.News{Job: slurm.Job{ID: "1", Name: "gpt", State: slurm.Failed}}}
	require.NoError(t, s.kept.Put(s.ctx, record.Card, "test/1", k, time.Time{}))
	s.digests(s.ctx)
	require.Len(t, s.told(), 1)
}

// A place's digest is about the jobs that it follows for a digest.
func TestAPlaceIsToldEveryMorningInOneMessage(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.at = time.Date(2026, 11, 20, 9, 5, 0, 0, time.UTC)
	ended := s.at.Add(-time.Hour)
	for _, key := range []string{"account/research digest@T1/C9", "all@T1/C8", "account/idle digest@T1/C7"} {
		require.NoError(t, s.kept.Put(s.ctx, record.Follow, key, "U2", time.Time{}))
	}
	for id, j := range map[slurm.JobID]slurm.Job{
		"5000": {Name: "moe", Account: "research", State: slurm.Failed, GPUs: 8, ElapsedS: 3600},
		"5001": {Name: "gpt", Account: "research", State: slurm.Completed},
		"5002": {Name: "other", Account: "elsewhere", State: slurm.Failed},
		"5003": {Name: "next", Account: "research", State: slurm.Pending},
	} {
		j.ID, j.User = id, "grace"
		if j.State.Ended() {
			j.EndedAt = &ended
		}
		s.site.Put(j)
	}
	require.NoError(t, s.kept.Put(s.ctx, record.Card, "test/5000", card.Card{News: card.News{Class: "nccl_timeout"}}, time.Time{}))
	s.digests(s.ctx)
	digest := shown(s.kept.queued)
	require.Len(t, s.kept.queued, 1)
	require.Contains(t, s.told()[0], "post C9: Jobs of the last day · jobs of the project research")
	for _, words := range []string{"nccl_timeout", "5000 moe", "8.0"} {
		require.Contains(t, digest, words)
	}
	require.NotContains(t, digest, "5002")
	s.at = s.at.Add(time.Hour)
	s.digests(s.ctx)
	require.Empty(t, s.told())

	// No cluster answers in the hour of the next day.
	s.at = time.Date(2026, 11, 21, 9, 5, 0, 0, time.UTC)
	up := s.cfg.Service.Clusters["test"]
	s.cfg.Service.Clusters["test"] = down{up}
	s.digests(s.ctx)
	require.Empty(t, s.told())
	s.cfg.Service.Clusters["test"] = up
	s.at = s.at.Add(time.Hour)
	s.digests(s.ctx)
	require.Contains(t, s.told()[0], "post C9: Jobs of the last day")
}

// A script may name a channel that its owner is in, or the owner: nobody else is written to.
func TestAScriptDoesNotPostIntoAChannelThatItsOwnerIsNotIn(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.slack = func(_ string, form map[string][]string) string {
		switch {
		case form["user"][0] != "U1" || form["exclude_archived"] == nil:
			return `{"ok":true,"channels":[]}`
		case form["cursor"] == nil:
			return `{"ok":true,"channels":[{"id":"C2","name":"other"}],"response_metadata":{"next_cursor":"2"}}`
		}
		return `{"ok":true,"channels":[{"id":"C7","name":"runs"}]}`
	}
	people := []card.Place{{Team: "T1", Channel: "U1"}}
	job := func(id string) slurm.Job {
		return slurm.Job{ID: slurm.JobID(id), Cluster: "test", User: "ada", State: slurm.Running}
	}
	for id, c := range map[string]struct{ script, follows, says string }{
		"1": {"#MEGATRON slack=#Runs", "C7", ""},
		"2": {"#SBATCH --mail-user=slack:C7", "C7", ""},
		"3": {"#SBATCH --comment=slack:me", "U1", ""},
		"4": {"#MEGATRON slack=U2", "", ""},
		"5": {"#MEGATRON slack=U1", "U1", ""},
		"6": {"#MEGATRON slack=#board", "", "asks for its card in #board"},
		"8": {"#SBATCH --mail-user=slack:C9", "", "asks for its card in C9"},
		"9": {"#SBATCH --mail-user=slack:C2", "C2", ""},
		"7": {"echo '#MEGATRON slack=#runs'", "", ""},
	} {
		for _, key := range s.follows() {
			require.NoError(t, s.kept.Delete(s.ctx, record.Follow, key))
		}
		s.kept.queued = nil
		require.True(t, s.followAsAsked(s.ctx, job(id), "#!/bin/bash\n"+c.script+"\n", people))
		if c.follows == "" {
			require.Empty(t, s.follows(), c.script)
		} else {
			require.Equal(t, []string{"job/test/" + id + "@T1/" + c.follows}, s.follows(), c.script)
		}
		if said := strings.Join(s.told(), ""); c.says == "" {
			require.Empty(t, said, c.script)
		} else {
			require.Contains(t, said, c.says)
		}
	}
	s.slack = func(string, map[string][]string) string { return `{"ok":false,"error":"internal_error"}` }
	require.False(t, s.followAsAsked(s.ctx, job("8"), "#MEGATRON slack=#runs\n", people), "it is asked again")
}

// scripted is a cluster with scripts that counts how often one is read.
type scripted struct {
	ops.Cluster
	reads map[slurm.JobID]int
}

func (y scripted) BatchScript(_ context.Context, id slurm.JobID) (string, error) {
	y.reads[id]++
	if id == "404" {
		return "", slurm.JobNotFound(id)
	}
	return "#MEGATRON slack=me\n", nil
}

// Each script is read once, of people whom Slack knows.
func TestAScriptIsReadOnce(t *testing.T) {
	t.Parallel()
	s := set(t)
	y := scripted{s.site, map[slurm.JobID]int{}}
	s.cfg.Service.Clusters["test"] = y
	s.cfg.Service.As = func(cl ops.Cluster, _ string) (ops.Cluster, error) { return cl, nil }
	jobs := []slurm.Job{{ID: "1", Cluster: "test", User: "ada"}, {ID: "2", Cluster: "test", User: "mallory"}, {ID: "404", Cluster: "test", User: "ada"}}
	for range 2 {
		s.followScriptRequests(s.ctx, jobs)
	}
	require.Equal(t, map[slurm.JobID]int{"1": 1, "404": 1}, y.reads)
	require.Equal(t, []string{"job/test/1@T1/U1"}, s.follows())
	s.scriptsRead = nil // a new process
	s.followScriptRequests(s.ctx, jobs[:1])
	require.Equal(t, 1, y.reads["1"])
	var many []slurm.Job
	for i := range scriptsAtOnce + 5 {
		many = append(many, slurm.Job{ID: slurm.JobID("9" + string(rune('a'+i))), Cluster: "test", User: "ada"})
	}
	s.followScriptRequests(s.ctx, many)
	require.Len(t, y.reads, 2+scriptsAtOnce)
	s.followScriptRequests(s.ctx, many)
	require.Len(t, y.reads, 2+len(many), "the others at the next look")
}
