package jobnews

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

const oomLog = "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/pretrain_gpt.py\", line 12, in forward_step\n" +
	"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.00 GiB is free.\n"

// trained is the log of a training run that has reached an iteration.
func trained(iterations int) string {
	var b strings.Builder
	for i := 1; i <= iterations; i++ {
		fmt.Fprintf(&b, " [2026-11-20 12:00:%02d] iteration %8d/     100 | consumed samples: %12d | elapsed time per iteration (ms): 1234.5 |"+
			" throughput per GPU (TFLOP/s/GPU): 410.2 | lm loss: %.6E |\n", i%60, i, i*64, 10.0/float64(i))
	}
	return b.String()
}

// put adds a job with that log to the cluster.
func (s *stage) put(j slurm.Job, log string) slurm.Job {
	s.t.Helper()
	j.Stdout = filepath.Join(s.t.TempDir(), string(j.ID)+".out")
	require.NoError(s.t, os.WriteFile(j.Stdout, []byte(log), 0o600))
	s.site.Put(j)
	return j
}

// A failed job is reported with its cause, and its log is attached.
func TestAFailureIsToldWithItsCause(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.begin(run(slurm.Running))
	failed := s.put(run(slurm.Failed), trained(40)+oomLog)
	s.handleEvent(s.ctx, "test", watch.Event{Kind: watch.Ended, Job: failed})
	told := strings.Join(s.told(), "\n")
	require.Contains(t, told, "update "+theCard+": ❌ gpt (4711): GPU out of memory, rank 3")
	require.Contains(t, told, "upload below "+theCard+": loss.png")
	require.Contains(t, told, "upload below "+theCard+": 4711.log")
	k := s.card("4711")
	require.Equal(t, "cuda_oom", k.News.Class)
	require.Contains(t, k.News.Says.ZH, "显存不足")
	require.Equal(t, 40, k.News.Iteration)
	require.InDelta(t, 1.2345, k.News.SecondsEach, 1e-9)
	require.False(t, k.News.LineAt.IsZero())
	require.Empty(t, s.unexplained())

	for state, attached := range map[slurm.State]bool{slurm.Completed: false, slurm.Cancelled: false, slurm.Timeout: true} {
		j := run(state)
		j.ID = "4712"
		s.begin(j)
		j = s.put(j, "the last words\n")
		j.Cluster = "test"
		s.attachLog(s.ctx, j)
		require.Equal(t, attached, len(s.told()) == 1, state)
	}
	j := s.put(slurm.Job{ID: "4713", Cluster: "test", State: slurm.Failed}, "the last words\n")
	s.attachLog(s.ctx, j)
	require.Empty(t, s.told(), "nobody looks on")
}

// localFilesSite is a site whose files this machine can read.
type localFilesSite struct{ *opstest.Site }

func (localFilesSite) Kind() string { return "cli" }

// A failed job's card says from which checkpoint the run can go on.
func TestACardNamesTheLastCheckpoint(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.cfg.Service.Clusters["test"] = localFilesSite{s.site}
	saves := filepath.Join(t.TempDir(), "saves")
	opstest.SaveAt(t, saves, map[int]time.Duration{1000: 65 * time.Minute, 2000: 5 * time.Minute}, "2000")
	spec, err := json.Marshal(job.Spec{Worktree: "/w", Args: []string{"--save", saves}})
	require.NoError(t, err)
	db, err := s.cfg.Service.Store()
	require.NoError(t, err)
	_, _, err = db.Begin(s.ctx, store.Submission{Key: "k", Token: "k", Cluster: "test", Owner: "ada", Name: "gpt", Spec: spec, CreatedAt: noon})
	require.NoError(t, err)
	require.NoError(t, db.Finish(s.ctx, "k", store.Submitted, "4711", "", noon))
	s.begin(run(slurm.Running))
	s.handleEvent(s.ctx, "test", watch.Event{Kind: watch.Ended, Job: s.put(run(slurm.Failed), trained(40)+oomLog)})
	n := s.card("4711").News
	require.Equal(t, 2000, n.Checkpoint)
	require.WithinDuration(t, time.Now().Add(-5*time.Minute), n.CheckpointAt, time.Minute)
}

// A failure is reported too where the loss is no number any more, which JSON cannot represent.
func TestAFailureIsToldWhereTheLossDiverged(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.begin(run(slurm.Running))
	diverged := strings.Replace(trained(40), "lm loss: 2.500000E-01", "lm loss: NAN", 1)
	job := s.put(run(slurm.Failed), diverged+"AssertionError: found NaN in local forward loss calculation. Device: 0, node: gpu-07\n")
	s.handleEvent(s.ctx, "test", watch.Event{Kind: watch.Ended, Job: job})
	require.Contains(t, strings.Join(s.told(), "\n"), "update "+theCard+": ❌ gpt (4711): the numbers diverged")
	require.Equal(t, "NaN", s.card("4711").News.Loss.String())
}

// What is attached of a long log is whole lines from its end.
func TestALongLogIsAttachedFromItsEnd(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.begin(run(slurm.Running))
	job := s.put(run(slurm.Failed), strings.Repeat(strings.Repeat("x", 1999)+"\n", 600)+"the end\n")
	job.Cluster = "test"
	s.attachLog(s.ctx, job)
	require.Len(t, s.kept.queued, 1)
	body := shown(s.kept.queued)
	require.Contains(t, body, "the end")
	require.Less(t, len(body), maxLog+10_000)
	require.Greater(t, len(body), maxLog-10_000)
	require.Contains(t, body, `"Content":"`+job.Stdout[strings.LastIndexByte(job.Stdout, '/')+1:]+":", "it begins with a whole line")
}

// A diagnosis that failed is tried again at the next look, and reported below the card without
// notifying anybody again; it is given up after some looks.
func TestADiagnosisThatFailedIsMadeAtTheNextLook(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.begin(run(slurm.Running))
	job := run(slurm.Failed)
	s.handleEvent(s.ctx, "test", watch.Event{Kind: watch.Ended, Job: job}) // the cluster does not know it: nothing can be read
	told := s.told()
	require.Equal(t, []string{"update " + theCard + ": ❌ gpt (4711): failed", "post below " + theCard + ": ❌ gpt (4711): failed (calls U1)"}, told)
	s.explainLate(s.ctx)
	require.Empty(t, s.told(), "it still cannot be read")

	s.Notifier = New(s.cfg) // the server is started again
	s.put(job, oomLog)
	s.kept.away = record.Card
	s.explainLate(s.ctx)
	require.Empty(t, s.told(), "the database is busy")
	s.kept.away = ""
	s.explainLate(s.ctx)
	const why = ": ❌ gpt (4711): GPU out of memory, rank 3"
	require.Equal(t, []string{"update " + theCard + why, "post below " + theCard + why}, s.told())
	failures, err := s.kept.Keys(s.ctx, "failure", s.at)
	require.NoError(t, err)
	require.Equal(t, []string{"test/4711"}, failures, "it may be part of an incident")
	s.explainLate(s.ctx)
	require.Empty(t, s.told(), "once")

	s.begin(slurm.Job{ID: "4712", Name: "moe", User: "ada", State: slurm.Running})
	gone := slurm.Job{ID: "4712", Name: "moe", User: "ada", State: slurm.Failed}
	s.handleEvent(s.ctx, "test", watch.Event{Kind: watch.Ended, Job: gone})
	for range looksForCause {
		require.Len(t, s.unexplained(), 1)
		s.explainLate(s.ctx)
	}
	require.Empty(t, s.unexplained(), "given up")

	s.handleEvent(s.ctx, "test", watch.Event{Kind: watch.Ended, Job: gone})
	s.told()
	gone.State, gone.Restarts = slurm.Running, 1
	s.tell(card.News{Job: gone})
	s.explainLate(s.ctx)
	require.Empty(t, s.told(), "it runs again")
	require.Empty(t, s.unexplained())
}

// The card of a failure says what its notes and webhooks say, by one diagnosis.
func TestAllWhoTellOfAFailureSayTheSame(t *testing.T) {
	t.Parallel()
	s := set(t)
	s.cfg.Service.Failures = &ops.FailureReports{}
	job := slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Running}
	s.begin(job)
	job.State = slurm.Failed
	job = s.put(job, oomLog)
	job.Cluster = "test"
	first, err := joblogs.DiagnoseFailure(s.ctx, &ops.Call{Service: s.cfg.Service, Who: ops.Caller{Surface: ops.Watcher, ID: "follow"}}, job)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(job.Stdout, []byte("ModuleNotFoundError: No module named 'megatron'\n"), 0o600))
	s.handleEvent(s.ctx, "test", watch.Event{Kind: watch.Ended, Job: job})
	require.Equal(t, "cuda_oom", first.Class)
	require.Equal(t, first.Class, s.card("4711").News.Class)
}

// Only an end that is a failure is diagnosed.
func TestAnEndThatIsNoFailureHasNoCause(t *testing.T) {
	t.Parallel()
	s := set(t)
	for i, state := range []slurm.State{slurm.Completed, slurm.Cancelled} {
		j := slurm.Job{ID: slurm.JobID(fmt.Sprint(4711 + i)), Name: "gpt", User: "ada", State: slurm.Running}
		s.begin(j)
		j.State = state
		s.handleEvent(s.ctx, "test", watch.Event{Kind: watch.Ended, Job: s.put(j, oomLog)})
		require.Nil(t, s.card(j.ID).News.Cause, state)
	}
	require.Empty(t, s.unexplained())
	s.handleEvent(s.ctx, "test", watch.Event{Kind: watch.Ended, Job: slurm.Job{ID: "9", State: slurm.Failed}})
	require.Empty(t, s.unexplained(), "nobody follows it")
}

// At each look a running card has the training's numbers, and a waiting one its place in line.
func TestALookBringsNumbersAndPlaces(t *testing.T) {
	t.Parallel()
	s := set(t)
	limit := int64(3600)
	ahead := slurm.Job{ID: "4000", User: "grace", Partition: "gpu", State: slurm.Pending, Reason: "Priority", Priority: new(int64(90)), TimeLimitS: &limit}
	waits := slurm.Job{ID: "4712", Name: "moe", User: "ada", Partition: "gpu", State: slurm.Pending, Reason: "Priority", Priority: new(int64(10)), TimeLimitS: &limit}
	start := noon.Add(time.Hour)
	waits.EstStart = &start
	s.begin(run(slurm.Running))
	s.begin(waits)
	s.begin(slurm.Job{ID: "4713", Name: "silent", User: "ada", State: slurm.Running})
	s.put(run(slurm.Running), trained(30))
	s.site.Put(ahead)
	s.site.Put(waits)
	s.numbers(s.ctx)
	require.Len(t, s.told(), 2, "of one that says nothing there is no news")
	require.Equal(t, 30, s.card("4711").News.Iteration)
	require.Equal(t, 100, s.card("4711").News.Iterations)
	k := s.card("4712").News
	require.Equal(t, []int{2, 2}, []int{k.Position, k.InLine})
	require.Equal(t, start, k.Job.EstStart.UTC())

	waits.Reason = "JobHeldUser"
	s.site.Put(waits)
	s.numbers(s.ctx)
	require.Equal(t, -1, s.card("4712").News.Position, "one that is held stands in no line")
}

// What somebody follows is found in the queue; what ended is taken up where its end
// was not told, and is not long ago.
func TestWhatIsFollowedIsFoundInTheQueue(t *testing.T) {
	t.Parallel()
	s := set(t)
	w := watch.New(watchedSite{s.site}, watch.Options{})
	s.watchers.by = map[string]*watch.Watcher{"test": w}
	for _, key := range []string{"user/grace@T1/C9", "all digest@T1/C9", "name/nightly expected@T1/C9"} {
		require.NoError(t, s.kept.Put(s.ctx, record.Follow, key, "U2", time.Time{}))
	}
	at := func(ago time.Duration) *time.Time { x := noon.Add(-ago); return &x }
	for id, j := range map[slurm.JobID]slurm.Job{
		"1": {User: "grace", State: slurm.Running},
		"2": {User: "ada", State: slurm.Running},
		"3": {User: "grace", State: slurm.Failed, EndedAt: at(time.Minute)},
		"4": {User: "grace", State: slurm.Failed, EndedAt: at(time.Hour)},
		"5": {User: "grace", State: slurm.Failed, EndedAt: at(time.Minute)},
		"6": {User: "grace", State: slurm.Failed},
	} {
		j.ID = id
		s.site.Put(j)
	}
	s.tell(card.News{Job: slurm.Job{ID: "5", User: "grace", State: slurm.Failed}})
	require.True(t, s.discover(s.ctx, noon.Add(-lookBack)))
	var ids []string
	for _, j := range w.Watched() {
		ids = append(ids, string(j.ID))
	}
	require.ElementsMatch(t, []string{"1", "3"}, ids)
	require.Equal(t, slurm.Job{ID: "77", Cluster: "test"}, s.watchers.now(slurm.Job{ID: "77", Cluster: "test"}), "one that is not watched is as it was")
	missing, err := s.kept.Keys(s.ctx, record.Missing, s.at)
	require.NoError(t, err)
	require.Equal(t, []string{"name/nightly expected@T1/C9"}, missing)
}

// accounted is a site with jobs that only the accounts have.
type accounted struct {
	watchedSite
	past []slurm.Job
	err  error
}

func (a accounted) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	jobs, err := a.watchedSite.Jobs(ctx, f)
	if f.Since.IsZero() || err != nil {
		return jobs, err
	}
	return append(jobs, a.past...), a.err
}

// What ended and left the queue while no server ran is found in the accounts: what ended
// since shortly before the last discovery, at most a day ago. Accounts that do not answer
// hide nothing of the queue.
func TestWhatEndedDuringAnOutageIsFoundInTheAccounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outage time.Duration
		err    error
		found  []string
	}{
		"the first start": {0, nil, []string{"1", "2"}},
		"an hour":         {time.Hour, nil, []string{"1", "2", "3"}},
		"a week":          {7 * 24 * time.Hour, nil, []string{"1", "2"}},
		"no accounts":     {time.Hour, slurm.ErrUnreachable, []string{"1"}},
	} {
		s := set(t)
		require.NoError(t, s.kept.Put(s.ctx, record.Follow, "user/grace@T1/C9", "U2", time.Time{}))
		if c.outage > 0 {
			s.at = noon.Add(-c.outage)
			s.saveDiscovery(s.ctx, s.at)
			s.at = noon
		}
		s.site.Put(slurm.Job{ID: "1", User: "grace", State: slurm.Running})
		site := accounted{watchedSite: watchedSite{s.site}, err: c.err}
		for id, ago := range map[slurm.JobID]time.Duration{"2": 9 * time.Minute, "3": 69 * time.Minute, "4": 71 * time.Minute} {
			at := noon.Add(-ago)
			site.past = append(site.past, slurm.Job{ID: id, User: "grace", State: slurm.Failed, EndedAt: &at})
		}
		s.cfg.Service.Clusters["test"] = site
		w := watch.New(site.watchedSite, watch.Options{})
		s.watchers.by = map[string]*watch.Watcher{"test": w}
		require.True(t, s.discover(s.ctx, s.discovered(s.ctx).Add(-lookBack)), name)
		var ids []string
		for _, j := range w.Watched() {
			ids = append(ids, string(j.ID))
		}
		require.ElementsMatch(t, c.found, ids, name)
	}
}

// From its start the board tells of the jobs that have cards: of their numbers every half
// minute, and of their end; one whose card could not be read at first, too.
func TestTheBoardTellsFromItsStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := set(t)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		w := watch.New(watchedSite{s.site}, watch.Options{})
		s.cfg.Watchers = map[string]*watch.Watcher{"test": w}
		s.begin(run(slurm.Running))
		job := s.put(run(slurm.Running), trained(30))
		s.kept.away = record.Card
		all.Go(func() { w.Run(ctx) })
		all.Go(func() { s.Run(ctx) })
		time.Sleep(29 * time.Second)
		synctest.Wait()
		s.kept.mu.Lock()
		s.kept.away = ""
		s.kept.mu.Unlock()
		require.Empty(t, s.told())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 30, s.card("4711").News.Iteration)
		s.told()
		job.State = slurm.Failed
		s.site.Put(job)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Contains(t, s.told(), "update "+theCard+": ❌ gpt (4711): failed")
	})
}

type watchedSite struct{ ops.Cluster }

func (w watchedSite) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, nil }

// The owner of an agent's job has its card; nobody of an account that many share, and not
// who wants no news.
func TestAnAgentsOwnerHasTheCard(t *testing.T) {
	t.Parallel()
	s := set(t)
	db, err := s.cfg.Service.Store()
	require.NoError(t, err)
	for id, by := range map[string]struct{ owner, door string }{"1": {"ada", "mcp:ada"}, "2": {"ada", "shell:ada"}, "3": {"nobody", "mcp:nobody"}, "4": {"grace", "mcp:grace"}, "5": {"ada", "mcp-http:ada"}} {
		sub := store.Submission{Key: "k" + id, Token: "t" + id, Cluster: "test", Owner: by.owner, AskedBy: by.door, Name: "gpt", Spec: []byte("{}"), CreatedAt: noon}
		_, _, err := db.Begin(s.ctx, sub)
		require.NoError(t, err)
		require.NoError(t, db.Finish(s.ctx, sub.Key, store.Submitted, slurm.JobID(id), "", noon))
	}
	s.settings("U2", s.people.Settings(s.ctx, "T1", "U2"))
	quiet := s.people.Settings(s.ctx, "T1", "U2")
	quiet.Notify = "none"
	s.settings("U2", quiet)
	s.site.Put(slurm.Job{ID: "1", Name: "gpt", User: "ada", State: slurm.Running})
	s.site.Put(slurm.Job{ID: "5", Name: "gpt", User: "ada", State: slurm.Failed})
	require.NoError(t, s.cardsOfAgents(s.ctx, noon.Add(-time.Hour)))
	told := strings.Join(s.told(), "\n")
	require.Contains(t, told, "post U1: 🔵 gpt (1): running")
	require.Equal(t, 2, strings.Count(told, "post U"), told)
	require.Contains(t, told, "gpt (5): waiting", "an end is the watcher's to tell")
	require.NoError(t, s.cardsOfAgents(s.ctx, noon.Add(-time.Hour)))
	require.Empty(t, s.told(), "once")
	for n, want := range map[int]int{3: 3, 4: 0} {
		crowd := set(t)
		for i := range n {
			require.NoError(t, crowd.kept.Put(crowd.ctx, record.Link, fmt.Sprintf("T1/U%d", 10+i), map[string]string{"user": "team"}, time.Time{}))
		}
		require.Len(t, crowd.ownersOf(crowd.ctx, "team"), want)
	}
}

// A diagnosis that cannot read its job is no news.
func TestWithoutALogThereIsNoCause(t *testing.T) {
	t.Parallel()
	s := set(t)
	n := card.News{Job: slurm.Job{ID: "9", Cluster: "test", State: slurm.Failed}}
	require.Nil(t, s.FindCause(s.ctx, &n, lang.EN))
	require.Nil(t, n.Cause)
}

// A cause that no button mends says all there is to do.
func TestACauseWithoutAButtonSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := set(t)
	log := filepath.Join(t.TempDir(), "gpt-9.out")
	require.NoError(t, os.WriteFile(log, []byte("[gpu1:0]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"), 0o600))
	n := card.News{Job: slurm.Job{ID: "9", Cluster: "test", User: "ada", State: slurm.Failed, Stdout: log, Nodes: []string{"gpu1"}}}
	s.site.Put(n.Job)
	require.NotNil(t, s.FindCause(s.ctx, &n, lang.EN))
	require.Empty(t, n.Fix, "nothing is known of its specification")
	require.Contains(t, fmt.Sprint(*n.Cause), "Resubmit with --exclude=gpu1")
}
