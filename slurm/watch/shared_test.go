package watch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// whole is a fake that also answers queries for one job.
type whole struct {
	*fake
	ones int
}

func (f *whole) Job(_ context.Context, id slurm.JobID) (j slurm.Job, err error) {
	f.set(func() {
		f.ones++
		j, err = f.queue[id], f.err
		if past, ok := f.past[id]; ok {
			j = past
		}
		j.Stdout, j.Dependency, j.ArrayLimit = "/logs/"+string(id), "afterok:6(unfulfilled)", 4
		if j.ID == "" {
			err = slurm.JobNotFound(id)
		}
	})
	return j, err
}

// inMinute returns the largest number of queries in any minute.
func (f *whole) inMinute() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := 0
	for i := range f.asked {
		n := 0
		for _, at := range f.asked[i:] {
			if at.Sub(f.asked[i]) < time.Minute {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestWhoeverLooksTwoQuestionsAMinuteAreEnough(t *testing.T) {
	f := &whole{fake: newFake(job("7", slurm.Running), job("8", slurm.Pending))}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s := watch.NewShared(f, watch.Options{})
		w := watch.New(s, watch.Options{})
		w.Watch(slurm.Job{ID: "7"})
		var all sync.WaitGroup
		all.Go(func() { w.Run(ctx) })
		for i := range 50 {
			all.Go(func() {
				for {
					j, err1 := s.Job(ctx, "7")
					rows, err2 := s.Jobs(ctx, slurm.Filter{})
					if ctx.Err() != nil {
						return // whatever was under way was given up
					}
					assert.NoError(t, errors.Join(err1, err2))
					assert.Equal(t, "/logs/7", j.Stdout)
					assert.GreaterOrEqual(t, len(rows), 2)
					time.Sleep(time.Duration(1+i%7) * time.Second)
				}
			})
		}
		time.Sleep(20 * time.Minute)
		require.LessOrEqual(t, f.inMinute(), 2)
		require.GreaterOrEqual(t, f.questions(), 20)
		f.set(func() { require.LessOrEqual(t, f.ones, 5, "what rarely changes is asked once in five minutes") })

		// A change shows within an interval, and a change by this process at once.
		f.set(func() { f.queue["8"] = job("8", slurm.Running) })
		time.Sleep(65 * time.Second)
		j, err := s.Job(ctx, "8")
		require.NoError(t, err)
		require.Equal(t, slurm.Running, j.State)
		f.set(func() { f.queue["9"] = job("9", slurm.Pending) })
		ones := 0
		f.set(func() { ones = f.ones })
		s.Changed()
		_, err = s.Job(ctx, "8")
		require.NoError(t, err)
		f.set(func() {
			require.Greater(t, f.ones, ones, "what was changed may be what only a question for the job tells")
		})
		rows, err := s.Jobs(ctx, slurm.Filter{User: ""})
		require.NoError(t, err)
		require.Len(t, rows, 3)
		stop()
		all.Wait()
	})
}

// A running job's time goes on between two answers of the queue, and only that of a
// running job. What only a question for the job tells is not asked again for that.
func TestTheTimeOfARunningJobGoesOnBetweenAnswers(t *testing.T) {
	running := func(seconds int64) slurm.Job { return slurm.Job{ID: "7", State: slurm.Running, ElapsedS: seconds} }
	f := &whole{fake: newFake(running(100), job("8", slurm.Pending))}
	synctest.Test(t, func(t *testing.T) {
		s := watch.NewShared(f, watch.Options{})
		for _, c := range []struct {
			why    string
			after  time.Duration
			listed int64 // by the queue from now on
			shown  int64
			asked  int
		}{
			{"first", 0, 100, 100, 1},
			{"soon: the same answer", 9 * time.Second, 150, 109, 1},
			{"after ten seconds: a new answer", time.Second, 150, 150, 2},
			{"soon after that", 5 * time.Second, 500, 155, 2},
		} {
			time.Sleep(c.after)
			f.set(func() { f.queue["7"] = running(c.listed) })
			j, err := s.Job(t.Context(), "7")
			require.NoError(t, err)
			require.Equal(t, c.shown, j.ElapsedS, c.why)
			require.Equal(t, "/logs/7", j.Stdout, c.why)
			require.Equal(t, "afterok:6(unfulfilled)", j.Dependency, c.why)
			require.Equal(t, 4, j.ArrayLimit, c.why)
			rows, err := s.Jobs(t.Context(), slurm.Filter{All: true})
			require.NoError(t, err)
			require.Len(t, rows, 2, c.why)
			for _, row := range rows {
				require.Equal(t, map[slurm.JobID]int64{"7": c.shown, "8": 0}[row.ID], row.ElapsedS, c.why)
			}
			require.Equal(t, c.asked, f.questions(), c.why)
		}
		require.Equal(t, 1, f.ones, "its details are the same all the time")
	})
}

// slow is a whole that takes a second for each answer.
type slow struct {
	*whole
	pasts int
}

func (f *slow) Jobs(ctx context.Context, filter slurm.Filter) ([]slurm.Job, error) {
	time.Sleep(time.Second)
	return f.whole.Jobs(ctx, filter)
}

func (f *slow) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	time.Sleep(time.Second)
	return f.whole.Job(ctx, id)
}

func (f *slow) Past(ctx context.Context, filter slurm.Filter) ([]slurm.Job, error) {
	time.Sleep(time.Second)
	f.set(func() { f.pasts++ })
	return f.whole.Past(ctx, filter)
}

// An accountant is a cluster whose accounts hold jobs that have ended.
type accountant struct {
	*whole
	past []slurm.Job
}

func (a *accountant) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return a.past, nil }

// Slurm keeps a job in the queue for minutes after its end, when the accounts have it too.
func TestAJobThatIsInTheQueueAndInTheAccountsIsListedOnce(t *testing.T) {
	f := &accountant{&whole{fake: newFake(ended("7", slurm.Completed, "0:0"), job("8", slurm.Running))}, []slurm.Job{
		ended("6", slurm.Failed, "1:0"), ended("7", slurm.Completed, "0:0"),
	}}
	jobs, err := watch.NewShared(f, watch.Options{}).Jobs(t.Context(), slurm.Filter{All: true, Since: time.Now().Add(-time.Hour)})
	require.NoError(t, err)
	var ids []slurm.JobID
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	require.ElementsMatch(t, []slurm.JobID{"6", "7", "8"}, ids)
}

// Simultaneous first readers cause one query of each kind.
func TestFirstCallersAtOnceAskOnce(t *testing.T) {
	f := &slow{whole: &whole{fake: newFake(job("7", slurm.Running))}}
	synctest.Test(t, func(t *testing.T) {
		s := watch.NewShared(f, watch.Options{})
		since := time.Now().Add(-time.Hour)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				j, err := s.Job(t.Context(), "7")
				assert.NoError(t, err)
				assert.Equal(t, "/logs/7", j.Stdout)
				_, err = s.Jobs(t.Context(), slurm.Filter{Since: since})
				assert.NoError(t, err)
			})
		}
		all.Wait()
		require.Equal(t, 1, f.questions(), "of the queue")
		require.Equal(t, 1, f.ones, "of the job")
		require.Equal(t, 1, f.pasts, "of the accounts")
	})
}

// While the queue stays as it is, no job ends: the accounts are asked again only after a change.
func TestTheAccountsAreAskedOnceWhileTheQueueStays(t *testing.T) {
	f := &slow{whole: &whole{fake: newFake(job("7", slurm.Running))}}
	synctest.Test(t, func(t *testing.T) {
		s := watch.NewShared(f, watch.Options{})
		since := time.Now()
		look := func(minutes int) (asked int) {
			before := f.pasts
			for range 4 * minutes {
				_, err := s.Jobs(t.Context(), slurm.Filter{Since: since})
				require.NoError(t, err)
				time.Sleep(15 * time.Second)
			}
			return f.pasts - before
		}
		look(3)
		require.Zero(t, look(20), "nothing changes")
		f.set(func() { delete(f.queue, "7") })
		require.GreaterOrEqual(t, look(3), 4, "a job has gone, and the accounts may lag behind")
		require.Zero(t, look(20), "nothing changes")
	})
}

// A reader that gives up does not wait for another reader's query.
func TestWhoGivesUpIsNotHeld(t *testing.T) {
	f := &slow{whole: &whole{fake: newFake(job("7", slurm.Running))}}
	synctest.Test(t, func(t *testing.T) {
		s := watch.NewShared(f, watch.Options{})
		var all sync.WaitGroup
		all.Go(func() {
			_, err := s.Job(t.Context(), "7")
			assert.NoError(t, err)
		})
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer stop()
		began := time.Now()
		_, err := s.Job(ctx, "7")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1500*time.Millisecond, time.Since(began))
		all.Wait()
	})
}

// Slurm tells only of single jobs that it preempts one, or which dependency is still to be
// met. Whoever has looked at the job before sees that too.
func TestWhatChangesWithoutTheRowIsSeen(t *testing.T) {
	f := &whole{fake: newFake(job("7", slurm.Running))}
	synctest.Test(t, func(t *testing.T) {
		s := watch.NewShared(f, watch.Options{})
		j, err := s.Job(t.Context(), "7")
		require.NoError(t, err)
		require.Nil(t, j.PreemptedAt)
		at := time.Now()
		f.set(func() { f.queue["7"] = slurm.Job{ID: "7", State: slurm.Running, PreemptedAt: &at} })
		time.Sleep(5 * time.Minute)
		j, err = s.Job(t.Context(), "7")
		require.NoError(t, err)
		require.NotNil(t, j.PreemptedAt)
	})
}

func TestWhileTheClusterIsAwayReadersHaveWhatWasSeenAndItsAge(t *testing.T) {
	f := &whole{fake: newFake(job("7", slurm.Running))}
	synctest.Test(t, func(t *testing.T) {
		s := watch.NewShared(f, watch.Options{})
		_, err := s.Job(t.Context(), "7")
		require.NoError(t, err)
		seen := time.Now()
		f.set(func() { f.err = slurm.ErrUnreachable; f.asked = nil })
		s.Changed() // by somebody here: what was seen is known all the same
		for range 300 {
			time.Sleep(time.Second)
			j, err := s.Job(t.Context(), "7")
			require.NoError(t, err)
			require.Equal(t, slurm.Running, j.State)
			if j.SeenAt != nil {
				require.True(t, seen.Equal(*j.SeenAt))
			}
		}
		require.LessOrEqual(t, f.questions(), 12, "five minutes of an outage")
		_, err = s.Jobs(t.Context(), slurm.Filter{})
		require.ErrorIs(t, err, slurm.ErrUnreachable)
		rows, at := s.Known(slurm.Filter{})
		require.Len(t, rows, 1)
		require.True(t, seen.Equal(at))
		f.set(func() { f.err = nil; f.queue["7"] = job("7", slurm.Completing) })
		time.Sleep(31 * time.Second)
		j, err := s.Job(t.Context(), "7")
		require.NoError(t, err)
		require.Equal(t, slurm.Completing, j.State)
		require.Nil(t, j.SeenAt)
	})
}

// An answer from another process serves readers while the cluster does not answer, and
// only then.
func TestWhatAnotherHasSeenAnswersUntilTheClusterDoes(t *testing.T) {
	f := &whole{fake: newFake(job("7", slurm.Running))}
	f.set(func() { f.err = slurm.ErrUnreachable })
	synctest.Test(t, func(t *testing.T) {
		s := watch.NewShared(f, watch.Options{})
		_, at := s.Known(slurm.Filter{})
		require.True(t, at.IsZero())
		seen := time.Now().Add(-time.Hour)
		s.Recall([]slurm.Job{job("7", slurm.Pending), job("8", slurm.Running)}, seen)
		j, err := s.Job(t.Context(), "7")
		require.NoError(t, err)
		require.Equal(t, slurm.Pending, j.State)
		require.True(t, seen.Equal(*j.SeenAt))
		rows, at := s.Known(slurm.Filter{All: true})
		require.Len(t, rows, 2)
		require.True(t, seen.Equal(at))

		f.set(func() { f.err = nil })
		time.Sleep(time.Minute)
		j, err = s.Job(t.Context(), "7")
		require.NoError(t, err)
		require.Equal(t, slurm.Running, j.State)
		require.Nil(t, j.SeenAt)
		rows, at = s.Known(slurm.Filter{All: true})
		require.Len(t, rows, 1)
		require.True(t, at.Equal(time.Now()))
		s.Recall([]slurm.Job{job("9", slurm.Running)}, seen)
		rows, _ = s.Known(slurm.Filter{All: true})
		require.Equal(t, slurm.JobID("7"), rows[0].ID, "what was seen here is newer")
	})
}

func TestAJobThatEndedIsAskedForOnce(t *testing.T) {
	f := &whole{fake: newFake()}
	f.past["7"] = ended("7", slurm.Failed, "1:0")
	synctest.Test(t, func(t *testing.T) {
		s := watch.NewShared(f, watch.Options{})
		for range 20 {
			j, err := s.Job(t.Context(), "7")
			require.NoError(t, err)
			require.Equal(t, slurm.Failed, j.State)
			time.Sleep(time.Minute)
		}
		require.Equal(t, 1, f.ones)
		_, err := s.Job(t.Context(), "99")
		require.ErrorIs(t, err, slurm.ErrNotFound)
		_, err = s.Job(t.Context(), "99")
		require.ErrorIs(t, err, slurm.ErrNotFound)
		require.Equal(t, 2, f.ones)
		for _, ones := range []int{3, 3, 3} { // what is not there twice is not there for an interval
			time.Sleep(11 * time.Second)
			_, err = s.Job(t.Context(), "99")
			require.ErrorIs(t, err, slurm.ErrNotFound)
			require.Equal(t, ones, f.ones)
		}

		// A job whose end is not in the accounts yet is queried again until it is.
		last := ended("8", slurm.Failed, "0:0")
		last.Reason = slurm.ReasonUnsettled
		for _, code := range []string{"0:0", "0:0", "1:0"} {
			if code != "0:0" {
				last = ended("8", slurm.Failed, code)
			}
			f.set(func() { f.past["8"] = last })
			j, err := s.Job(t.Context(), "8")
			require.NoError(t, err)
			require.Equal(t, code, *j.ExitCode)
			if code == "0:0" {
				ones := f.ones
				s.Changed()
				_, err = s.Job(t.Context(), "8")
				require.NoError(t, err)
				require.Greater(t, f.ones, ones, "a change by this process may have settled it")
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestEveryEndIsToldAsItIs sends each final state of a job through queue and accounts,
// including states that no test can cause here, such as OUT_OF_MEMORY.
func TestEveryEndIsToldAsItIs(t *testing.T) {
	for _, m := range slurm.States() {
		t.Run(m.Word, func(t *testing.T) {
			state := slurm.State(m.Word)
			f := newFake(job("7", slurm.Running))
			story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
				w.Watch(slurm.Job{ID: "7"})
				time.Sleep(time.Second)
				told()
				f.set(func() { f.queue["7"] = job("7", state) })
				if m.Ended {
					f.set(func() { f.past["7"] = ended("7", state, "0:0") })
				}
				time.Sleep(35 * time.Second)
				switch {
				case m.Ended:
					require.Equal(t, []string{"ended " + m.Word}, told())
				case state == slurm.Running:
					require.Empty(t, told())
				default:
					require.Equal(t, []string{"changed " + m.Word}, told(), "not an end")
				}
			})
			require.NotEmpty(t, m.Says.EN)
			require.NotEmpty(t, m.Says.ZH)
			require.Equal(t, m.Do.EN == "", m.Do.ZH == "")
		})
	}
}
