package watch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// archive is a cluster whose accounts answer with one job, named by the question.
type archive struct {
	*whole
	pasts int
	away  error
}

func (a *archive) Past(_ context.Context, f slurm.Filter) ([]slurm.Job, error) {
	a.pasts++
	asked := fmt.Sprintf("%s/%s/%s/%d", f.User, f.Partition, f.States, f.Since.Unix())
	return []slurm.Job{{ID: "1", Name: asked, User: f.User, Partition: f.Partition, State: slurm.Failed}}, a.away
}

// Each question to the accounts has its own answer, which an error, or a change by this process, ends.
func TestEachQuestionToTheAccountsHasItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &archive{whole: &whole{fake: newFake()}}
		s := watch.NewShared(f, watch.Options{})
		since := time.Now().Truncate(time.Hour)
		said := map[string]bool{}
		for i, filter := range []slurm.Filter{
			{Since: since},
			{Since: since, User: "ada"},
			{Since: since, User: "bob"},
			{Since: since, Partition: "ada"},
			{Since: since, States: []slurm.State{slurm.Failed}},
			{Since: since.Add(-time.Hour)},
		} {
			for range 2 {
				rows, err := s.Past(t.Context(), filter)
				require.NoError(t, err)
				require.Len(t, rows, 1)
				said[rows[0].Name] = true
			}
			require.Len(t, said, i+1, filter)
			require.Equal(t, i+1, f.pasts, "a second time it is known")
		}
		s.Changed()
		_, err := s.Past(t.Context(), slurm.Filter{Since: since})
		require.NoError(t, err)
		require.Equal(t, 7, f.pasts)

		s.Changed()
		f.away = slurm.ErrUnreachable
		_, err = s.Past(t.Context(), slurm.Filter{Since: since})
		require.ErrorIs(t, err, slurm.ErrUnreachable)
		f.away = nil
		_, err = s.Past(t.Context(), slurm.Filter{Since: since})
		require.NoError(t, err)
		require.Equal(t, 9, f.pasts, "an error is no answer")
		rows, _ := s.Known(slurm.Filter{Since: since.Add(-9 * time.Hour)})
		require.Empty(t, rows)
		require.Equal(t, 9, f.pasts, "what is known takes no question")
	})
}

// Any difference of the queue's answers is a change, after which readers soon ask again.
func TestWhateverChangesInTheQueueIsAskedForSoonAgain(t *testing.T) {
	at, later := time.Unix(1e9, 0), time.Unix(1e9+60, 0)
	first := slurm.Job{ID: "7", State: slurm.Running, Nodes: []string{"n1", "n2"}, SubmittedAt: &at}
	for name, change := range map[string]func(*slurm.Job){
		"nothing": func(*slurm.Job) {},
		"state":   func(j *slurm.Job) { j.State = slurm.Completing },
		"reason":  func(j *slurm.Job) { j.Reason = "Priority" },
		"nodes":   func(j *slurm.Job) { j.Nodes = []string{"n1", "n3"} },
		"run":     func(j *slurm.Job) { j.SubmittedAt = &later },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &whole{fake: newFake(first)}
				s := watch.NewShared(f, watch.Options{})
				for i := range 3 {
					if i == 1 {
						second := first
						change(&second)
						f.set(func() { f.queue["7"] = second })
					}
					_, err := s.Jobs(t.Context(), slurm.Filter{All: true})
					require.NoError(t, err)
					time.Sleep(10 * time.Second)
				}
				require.Equal(t, map[bool]int{true: 2, false: 3}[name == "nothing"], f.questions())
			})
		})
	}
}

// detailed is a cluster whose answer for one job tells more than its queue.
type detailed struct {
	*whole
	more func(*slurm.Job)
}

func (f *detailed) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	j, err := f.whole.Job(ctx, id)
	f.more(&j)
	return j, err
}

// What only the question for one job tells is asked once for each state of each run.
func TestDetailsAreThoseOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, again := time.Now(), time.Now().Add(time.Hour)
		f := &detailed{whole: &whole{fake: newFake()}, more: func(j *slurm.Job) {
			j.Stderr, j.GPUs, j.Restarts, j.Requeues, j.PreemptedAt = "/logs/err", 16, 1, []slurm.State{slurm.Preempted}, &at
		}}
		s := watch.NewShared(f, watch.Options{})
		for i, row := range []slurm.Job{
			{State: slurm.Pending, SubmittedAt: &at}, {State: slurm.Running, SubmittedAt: &at}, {State: slurm.Running, SubmittedAt: &again},
		} {
			row.ID = "7"
			f.set(func() { f.queue["7"] = row })
			time.Sleep(2 * time.Minute)
			for range 2 {
				j, err := s.Job(t.Context(), "7")
				require.NoError(t, err)
				require.Equal(t, row.State, j.State)
				require.Equal(t, "/logs/7 /logs/err 16 1 [PREEMPTED]", fmt.Sprint(j.Stdout, " ", j.Stderr, " ", j.GPUs, j.Restarts, j.Requeues))
				require.True(t, at.Equal(*j.PreemptedAt))
			}
			require.Equal(t, i+1, f.ones)
		}

		// Only an outage is answered with what was seen, and a job that never was there not at all.
		_, err := s.Job(t.Context(), "99")
		require.ErrorIs(t, err, slurm.ErrNotFound)
		for _, away := range []error{errOther, slurm.ErrUnreachable} {
			f.set(func() { f.err = away })
			time.Sleep(2 * time.Minute)
			_, err = s.Job(t.Context(), "99")
			require.ErrorIs(t, err, away)
			j, err := s.Job(t.Context(), "7")
			if errors.Is(away, errOther) {
				require.ErrorIs(t, err, away)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, slurm.Running, j.State)
		}
	})
}

// impatient is a cluster that gives up with who asks.
type impatient struct{ *fake }

func (f *impatient) Jobs(ctx context.Context, filter slurm.Filter) ([]slurm.Job, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Second):
		return f.fake.Jobs(ctx, filter)
	}
}

// A reader that goes away leaves no error to the others.
func TestWhoGoesAwayLeavesNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watch.NewShared(&impatient{newFake(job("7", slurm.Running))}, watch.Options{})
		var all sync.WaitGroup
		all.Go(func() {
			ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
			defer stop()
			_, err := s.Jobs(ctx, slurm.Filter{All: true})
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
		time.Sleep(time.Microsecond)
		rows, err := s.Jobs(t.Context(), slurm.Filter{All: true})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		all.Wait()
	})
}
