package watch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// fake is a cluster that answers from two maps and counts the queries.
type fake struct {
	mu           sync.Mutex
	queue, past  map[slurm.JobID]slurm.Job
	err, pastErr error
	slow         time.Duration
	asked        []time.Time
	pastAsked    [][]slurm.JobID
}

func newFake(jobs ...slurm.Job) *fake {
	f := &fake{queue: map[slurm.JobID]slurm.Job{}, past: map[slurm.JobID]slurm.Job{}}
	for _, j := range jobs {
		f.queue[j.ID] = j
	}
	return f
}

func (f *fake) Name() string { return "fake" }

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) {
	f.mu.Lock()
	slow := f.slow
	f.mu.Unlock()
	time.Sleep(slow)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, time.Now())
	if f.err != nil {
		return nil, f.err
	}
	return slices.Collect(maps.Values(f.queue)), nil
}

func (f *fake) Past(_ context.Context, filter slurm.Filter) ([]slurm.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pastAsked = append(f.pastAsked, filter.IDs)
	var rows []slurm.Job
	for _, id := range filter.IDs {
		if j, ok := f.past[id]; ok {
			rows = append(rows, j)
		}
	}
	return rows, f.pastErr
}

// questions returns the number of queries to the queue.
func (f *fake) questions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

func job(id slurm.JobID, s slurm.State) slurm.Job { return slurm.Job{ID: id, State: s} }

func ended(id slurm.JobID, s slurm.State, code string) slurm.Job {
	return slurm.Job{ID: id, State: s, ExitCode: &code}
}

// A backEnd is what a watcher needs of a cluster.
type backEnd interface {
	Name() string
	Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
	Past(context.Context, slurm.Filter) ([]slurm.Job, error)
}

// story runs a watcher over f with a fake clock. do gets events as "kind state reason".
func story(t *testing.T, f backEnd, o watch.Options, do func(w *watch.Watcher, told func() []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := watch.New(f, o)
		sub := w.Subscribe()
		var all sync.WaitGroup
		var mu sync.Mutex
		var events []string
		all.Go(func() { w.Run(ctx) })
		all.Go(func() {
			for {
				e, err := sub.Next(ctx)
				if err != nil {
					return
				}
				mu.Lock()
				events = append(events, fmt.Sprintf("%s %s%s", e.Kind, e.Job.State, reason(e.Job)))
				mu.Unlock()
			}
		})
		do(w, func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			got := events
			events = nil
			return got
		})
		stop()
		all.Wait()
	})
}

func reason(j slurm.Job) string {
	if j.Reason == "" {
		return ""
	}
	return " " + j.Reason
}

func TestAJobIsToldOfOnceAtEachChange(t *testing.T) {
	f := newFake(job("7", slurm.Pending))
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(slurm.Job{ID: "7"})
		time.Sleep(time.Second)
		require.Equal(t, []string{"changed PENDING"}, told())
		time.Sleep(10 * time.Minute)
		require.Empty(t, told())
		f.set(func() { f.queue["7"] = job("7", slurm.Running) })
		time.Sleep(75 * time.Second)
		require.Equal(t, []string{"changed RUNNING"}, told())
		f.set(func() {
			delete(f.queue, "7")
			f.past["7"] = ended("7", slurm.Failed, "3:0")
		})
		time.Sleep(40 * time.Second)
		require.Equal(t, []string{"ended FAILED"}, told())
		time.Sleep(25 * time.Hour)
		asked := 0
		f.set(func() { asked = len(f.asked) })
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, f.asked, asked, "nothing is watched, so nothing is asked")
	})
}

// A job that somebody requeues within a day of its end is followed again, whether this
// watcher has seen its end or another one. Its next run has a number of its own.
func TestAJobThatIsRequeuedAfterItsEndIsFollowedAgain(t *testing.T) {
	for name, restarted := range map[string]bool{"while it runs": false, "after a start": true} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
				f.set(func() { f.past["7"] = ended("7", slurm.Failed, "3:0") })
				if restarted {
					w.Watch(f.past["7"])
				} else {
					w.Watch(slurm.Job{ID: "7"})
				}
				time.Sleep(2 * time.Minute)
				if news := told(); !restarted {
					require.Equal(t, []string{"ended FAILED"}, news)
				} else {
					require.Empty(t, news)
				}
				f.set(func() { f.queue["7"], f.queue["8"] = job("7", slurm.Pending), job("8", slurm.Running) })
				time.Sleep(70 * time.Second)
				require.Equal(t, []string{"changed PENDING"}, told(), "and nobody asked for the other job")
				j, ok := w.Job("7")
				require.True(t, ok)
				require.Equal(t, 1, j.Restarts)
			})
		})
	}
}

// An end of which the accounts may still say more is not the end for a watcher that
// another one has left it to.
func TestAnEndThatIsNotSettledIsFollowedOn(t *testing.T) {
	f := newFake()
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		f.set(func() { f.past["7"] = ended("7", slurm.Failed, "3:0") })
		w.Watch(slurm.Job{ID: "7", State: slurm.Failed, Reason: slurm.ReasonUnsettled})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"ended FAILED"}, told())
	})
}

func TestAbsenceIsNeverAnEnd(t *testing.T) {
	f := newFake(job("7", slurm.Running))
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(slurm.Job{ID: "7"})
		time.Sleep(time.Second)
		told()
		// The job leaves the queue; the accounts lag, then do not answer, then list it.
		f.set(func() { delete(f.queue, "7"); f.past["7"] = job("7", slurm.Running) })
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"changed RUNNING AccountingPending"}, told())
		f.set(func() { f.pastErr = slurm.ErrUnreachable; f.past = map[slurm.JobID]slurm.Job{} })
		time.Sleep(10 * time.Minute)
		require.Empty(t, told())
		f.set(func() { f.pastErr = nil; f.past["7"] = ended("7", slurm.Completed, "0:0") })
		time.Sleep(6 * time.Minute) // the longest interval that failures lead to, and its tenth
		require.Equal(t, []string{"ended COMPLETED"}, told())
	})
}

func TestAJobNobodyKnowsIsLostAfterADay(t *testing.T) {
	f := newFake()
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(job("7", slurm.Running))
		time.Sleep(time.Hour)
		require.Equal(t, []string{"changed RUNNING AccountingPending"}, told())
		time.Sleep(24 * time.Hour)
		require.Equal(t, []string{"lost RUNNING AccountingPending"}, told())
		require.LessOrEqual(t, f.questions(), 1500, "who says nothing new is asked once a minute")
		require.LessOrEqual(t, len(f.pastAsked), 200, "accounts that have nothing to say are asked ever more rarely")
	})
}

// Accounts that lag still list an ended job as running.
func TestAnEndInTheQueueIsNotTakenBack(t *testing.T) {
	f := newFake(job("7", slurm.Failed))
	f.past["7"] = job("7", slurm.Running)
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(slurm.Job{ID: "7"})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"changed FAILED AccountingPending"}, told())
	})
}

func TestWithoutAccountsTheQueueHasTheLastWord(t *testing.T) {
	f := newFake(job("7", slurm.Failed))
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(slurm.Job{ID: "7"})
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"changed FAILED AccountingPending", "ended FAILED"}, told())
	})
}

func TestARequeuedJobIsFollowedOn(t *testing.T) {
	first := time.Unix(1e9, 0)
	second := first.Add(time.Hour)
	f := newFake(slurm.Job{ID: "7", State: slurm.Running, SubmittedAt: &first})
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(slurm.Job{ID: "7"})
		time.Sleep(time.Second)
		f.set(func() {
			f.queue["7"] = slurm.Job{ID: "7", State: slurm.Pending, Reason: "BeginTime", SubmittedAt: &second}
		})
		time.Sleep(40 * time.Second)
		f.set(func() { f.queue["7"] = slurm.Job{ID: "7", State: slurm.Running, SubmittedAt: &second} })
		time.Sleep(40 * time.Second)
		require.Equal(t, []string{"changed RUNNING", "changed PENDING BeginTime", "changed RUNNING"}, told())
	})
}

func TestAnArrayEndsWhenItsLastElementDoes(t *testing.T) {
	f := newFake()
	rows := func(queue, past []slurm.Job) {
		f.set(func() {
			f.queue, f.past = map[slurm.JobID]slurm.Job{}, map[slurm.JobID]slurm.Job{}
			if len(queue) > 0 {
				f.queue["8"] = queue[0]
			}
			if len(past) > 0 {
				f.past["8"] = past[0]
			}
		})
	}
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		rows([]slurm.Job{job("8_2", slurm.Running)}, []slurm.Job{ended("8_1", slurm.Failed, "1:0")})
		w.Watch(slurm.Job{ID: "8"})
		time.Sleep(40 * time.Second)
		require.Equal(t, []string{"changed RUNNING"}, told())
		rows(nil, []slurm.Job{ended("8_2", slurm.Completed, "0:0")})
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"ended COMPLETED"}, told())
	})
}

func TestARestartTellsNoOldNews(t *testing.T) {
	f := newFake(job("7", slurm.Running), job("8", slurm.Running))
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(job("7", slurm.Running))
		w.Watch(job("8", slurm.Pending))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"changed RUNNING"}, told())
	})
}

// A second Watch of a followed job causes no event, unless its caller knows another
// state.
func TestAJobThatIsWatchedTwiceIsToldOfOnce(t *testing.T) {
	f := newFake(job("7", slurm.Running))
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		for _, c := range []struct {
			known slurm.Job
			told  []string
		}{
			{slurm.Job{ID: "7"}, []string{"changed RUNNING"}},
			{slurm.Job{ID: "7"}, nil},
			{job("7", slurm.Running), nil},
			{job("7", slurm.Pending), []string{"changed RUNNING"}},
		} {
			w.Watch(c.known)
			time.Sleep(time.Minute)
			require.Equal(t, c.told, told(), c.known)
		}
	})
}

func TestTenThousandJobsAreOneQuestionAnInterval(t *testing.T) {
	f := newFake()
	for i := range 10000 {
		id := slurm.JobID(fmt.Sprint(i + 1))
		f.queue[id] = job(id, slurm.Pending)
	}
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		for id := range f.queue {
			w.Watch(slurm.Job{ID: id})
		}
		time.Sleep(5 * time.Minute)
		require.Equal(t, 10000, len(told())) //nolint:testifylint // Len would print them all
		require.LessOrEqual(t, len(f.asked), 14)
		require.Empty(t, f.pastAsked)
		f.set(func() {
			for id := range f.queue {
				f.past[id] = ended(id, slurm.Completed, "0:0")
			}
			clear(f.queue)
		})
		time.Sleep(40 * time.Second)
		require.Equal(t, 10000, len(told()))  //nolint:testifylint // Len would print them all
		require.Equal(t, 1, len(f.pastAsked)) //nolint:testifylint // as above
	})
}

// While nothing changes, looks become rarer. Any news of one job makes the next look
// soon again, so that what follows it, here of another job, is told as soon as usual.
func TestAfterNewsTheNextLookIsSoon(t *testing.T) {
	for name, c := range map[string]struct {
		before func(f *fake)
		quiet  time.Duration
		news   func(f *fake)
	}{
		"it changes": {func(*fake) {}, time.Hour, func(f *fake) { f.queue["7"] = job("7", slurm.Completing) }},
		"it ends": {func(*fake) {}, time.Hour, func(f *fake) {
			f.queue, f.past["7"] = map[slurm.JobID]slurm.Job{"8": f.queue["8"]}, ended("7", slurm.Failed, "1:0")
		}},
		"nobody lists it":                {func(*fake) {}, time.Hour, func(f *fake) { delete(f.queue, "7") }},
		"nobody has listed it for a day": {func(f *fake) { delete(f.queue, "7") }, 23 * time.Hour, func(*fake) {}},
		"the accounts come back and do not list its end": {
			func(f *fake) { f.queue["7"], f.pastErr = job("7", slurm.Failed), slurm.ErrUnreachable }, time.Hour,
			func(f *fake) { delete(f.queue, "7"); f.pastErr = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(job("7", slurm.Running), job("8", slurm.Running))
			c.before(f)
			story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
				w.Watch(job("7", slurm.Running))
				w.Watch(job("8", slurm.Running))
				time.Sleep(c.quiet)
				told()
				f.set(func() { c.news(f) })
				for began := time.Now(); len(told()) == 0; time.Sleep(time.Second) {
					require.Less(t, time.Since(began), 2*time.Hour)
				}
				f.set(func() { f.queue["8"] = job("8", slurm.Completing) })
				time.Sleep(34 * time.Second)
				require.Equal(t, []string{"changed COMPLETING"}, told())
			})
		})
	}
}

var errOther = errors.New("something else")

func TestAnErrorThatIsNoOutageIsToldToo(t *testing.T) {
	f := newFake(job("7", slurm.Running))
	f.err = errOther
	synctest.Test(t, func(t *testing.T) {
		w := watch.New(f, watch.Options{})
		w.Watch(slurm.Job{ID: "7"})
		require.ErrorIs(t, w.Refresh(t.Context()), errOther)
		require.False(t, w.Down().IsZero())
	})
}
