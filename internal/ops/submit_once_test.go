package ops

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A scriptedCluster is a cluster whose answers to a submission the test chooses.
type scriptedCluster struct {
	site
	answer func() (slurm.JobID, error)
	jobs   sync.Map // token → id of the accepted jobs
	calls  atomic.Int32
	deaf   atomic.Bool // reports that it does not answer questions
}

func (*scriptedCluster) Kind() string { return "cli" }

func (g *scriptedCluster) Submit(_ context.Context, s slurm.Submission) (slurm.JobID, error) {
	g.calls.Add(1)
	id, err := g.answer()
	if id != "" {
		g.jobs.Store(s.Token, id)
	}
	if err != nil {
		id = ""
	}
	return id, err
}

func (g *scriptedCluster) Find(_ context.Context, token string, _ time.Time) (slurm.JobID, bool, error) {
	if g.deaf.Load() {
		return "", false, unanswered
	}
	id, ok := g.jobs.Load(token)
	if !ok {
		return "", false, nil
	}
	return id.(slurm.JobID), true, nil
}

var (
	unanswered = &slurm.Error{Op: "submit", Msg: lang.Same("no answer within 15s"), Kind: slurm.Unknown}
	noLink     = &slurm.Error{Op: "submit", Msg: lang.Same("Unable to contact slurm controller (connect failure)"), Kind: slurm.Unreachable}
	missing    = &slurm.Error{Op: "submit", Msg: lang.Same("sbatch: executable file not found"), Kind: slurm.Missing}
	refused    = &slurm.Error{Op: "submit", Msg: lang.Same("invalid partition"), Kind: slurm.Rejected}
)

// A submitter is a person who submits the same job to a scriptedCluster again and
// again.
type submitter struct {
	*Call
	g   *scriptedCluster
	now time.Time
}

func newSubmitter(t *testing.T) *submitter {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { st.Close() })
	d := &submitter{
		Call: &Call{
			Service: &Service{Clusters: map[string]Cluster{}, Store: func() (*store.Store, error) { return st, nil }},
			Who:     Caller{Surface: Shell, ID: "alice", User: "alice"},
		},
		g: &scriptedCluster{}, now: time.Now(),
	}
	d.g.answer = func() (slurm.JobID, error) { return "7", nil }
	d.Locks = t.TempDir()
	d.Now = func() time.Time { return d.now }
	return d
}

func (d *submitter) submit(ctx context.Context, key string) (slurm.JobID, string, bool, error) {
	s := job.Spec{Name: "run", Worktree: "/w"}
	return d.SubmitOnce(ctx, d.g, s, job.Script{Text: "#!/bin/sh\n", Hash: "h"}, key)
}

// shortContext ends a question whose answer would take a minute.
func shortContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestFiftyPressesOfOneButtonMakeOneJob(t *testing.T) {
	t.Parallel()
	d := newSubmitter(t)
	var first atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			id, _, already, err := d.submit(t.Context(), "k")
			if err != nil || id != "7" {
				t.Errorf("%v %v", id, err)
			}
			if !already {
				first.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, d.g.calls.Load())
	require.EqualValues(t, 1, first.Load())
}

// A submission in progress on this machine is not mistaken for one whose process died.
func TestWhatIsBeingHandedOverIsNotHandedOverTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newSubmitter(t)
		var again error
		d.g.answer = func() (slurm.JobID, error) {
			if d.g.calls.Load() == 1 {
				_, _, _, again = d.submit(shortContext(t), "k")
			}
			return "7", nil
		}
		id, _, _, err := d.submit(t.Context(), "k")
		require.NoError(t, err)
		require.EqualValues(t, "7", id)
		require.ErrorContains(t, again, "the same submission is under way")
		require.EqualValues(t, 1, d.g.calls.Load())
	})
}

func TestATimeOutThatWasAcceptedAllTheSameIsFound(t *testing.T) {
	t.Parallel()
	d := newSubmitter(t)
	d.g.answer = func() (slurm.JobID, error) { return "8", unanswered }
	id, _, _, err := d.submit(t.Context(), "k")
	require.NoError(t, err)
	require.EqualValues(t, "8", id)
}

// A controller that did not answer may still have the request in its queue.
func TestWhatGotNoAnswerIsNotHandedOverAgainForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newSubmitter(t)
		d.g.answer = func() (slurm.JobID, error) { return "", unanswered }
		_, _, _, err := d.submit(t.Context(), "k")
		require.ErrorContains(t, err, "not known yet")
		require.Contains(t, AsError(err).Fix.EN, "same key")
		d.g.answer = func() (slurm.JobID, error) { return "9", nil }

		d.now = d.now.Add(30 * time.Second)
		_, _, _, err = d.submit(shortContext(t), "k")
		require.ErrorContains(t, err, "not known yet")
		require.EqualValues(t, 1, d.g.calls.Load())

		d.now = d.now.Add(40 * time.Second)
		id, _, already, err := d.submit(t.Context(), "k")
		require.NoError(t, err)
		require.False(t, already)
		require.EqualValues(t, "9", id)
	})
}

// The minute starts again with each question that the controller does not answer.
func TestAControllerThatStaysDeafIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newSubmitter(t)
		d.g.answer = func() (slurm.JobID, error) { return "", unanswered }
		_, _, _, err := d.submit(t.Context(), "k")
		require.Error(t, err)
		d.now = d.now.Add(2 * time.Minute)
		d.g.deaf.Store(true)
		_, _, _, err = d.submit(t.Context(), "k")
		require.ErrorContains(t, err, "not known yet")
		d.g.deaf.Store(false)
		_, _, _, err = d.submit(shortContext(t), "k")
		require.ErrorContains(t, err, "not known yet")
		require.EqualValues(t, 1, d.g.calls.Load())
	})
}

func TestWhatNeverLeftIsSubmittedAtTheNextCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, err := range []error{noLink, refused} {
			d := newSubmitter(t)
			d.g.answer = func() (slurm.JobID, error) { return "", err }
			_, _, _, got := d.submit(t.Context(), "k")
			require.ErrorContains(t, got, err.Error())
			d.g.answer = func() (slurm.JobID, error) { return "10", nil }
			begin := time.Now()
			id, _, _, got := d.submit(t.Context(), "k")
			require.NoError(t, got)
			require.EqualValues(t, "10", id)
			require.Less(t, time.Since(begin), 5*time.Second)
		}
	})
}

func TestWithoutSbatchItIsKnownThatNothingWasSubmitted(t *testing.T) {
	t.Parallel()
	d := newSubmitter(t)
	d.g.answer = func() (slurm.JobID, error) { return "", missing }
	d.g.deaf.Store(true) // squeue does not answer either
	for range 2 {
		_, _, _, err := d.submit(t.Context(), "")
		require.ErrorContains(t, err, missing.Msg.EN)
		require.NotContains(t, err.Error(), "not known yet")
	}
}

// die leaves what a killed process leaves: a request that was begun, with a free lock.
func (d *submitter) die(t *testing.T, key, place string) {
	st, err := d.Store()
	require.NoError(t, err)
	_, first, err := st.Begin(t.Context(), store.Submission{
		Key: "alice/test/" + key, Token: tokenOf("alice", "test", key), Cluster: "test", Owner: "alice",
		Name: "run", SpecHash: "h", Script: "#!/bin/sh\n", Dir: "/w", CreatedAt: d.now, Place: place,
	})
	require.NoError(t, err)
	require.True(t, first)
}

func TestAfterACrashOnThisMachineTheFreeLockDecides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newSubmitter(t)
		d.die(t, "k", d.place())
		begin := time.Now()
		_, _, already, err := d.submit(t.Context(), "k")
		require.NoError(t, err)
		require.False(t, already)
		require.Less(t, time.Since(begin), 5*time.Second)
	})
}

func TestAfterACrashElsewhereTimeDecides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newSubmitter(t)
		d.die(t, "k", "login2:/var/lib/megatron-ops")
		_, _, _, err := d.submit(shortContext(t), "k")
		require.ErrorContains(t, err, "not known yet")
		require.Zero(t, d.g.calls.Load())
		d.now = d.now.Add(61 * time.Second)
		_, _, already, err := d.submit(t.Context(), "k")
		require.NoError(t, err)
		require.False(t, already)
	})
}

// A person whose submission died without an answer repeats it unchanged.
func TestARequestWithoutAKeyTakesUpOneThatDied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newSubmitter(t)
		d.die(t, "k", d.place())
		lock, err := cluster.TakeLock(t.Context(), d.Locks, tokenOf("alice", "test", "k"))
		require.NoError(t, err)
		_, key, _, err := d.submit(t.Context(), "")
		require.NoError(t, err)
		require.NotEqual(t, "k", key, "the other is under way: this is a wish of its own")
		lock.Release(false)

		_, key, _, err = d.submit(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, "k", key)
		_, key, already, err := d.submit(t.Context(), "")
		require.NoError(t, err)
		require.NotEqual(t, "k", key, "that one has its answer")
		require.False(t, already)
	})
}

func TestWhereTheIntentCannotBeStoredNothingIsSubmitted(t *testing.T) {
	t.Parallel()
	d := newSubmitter(t)
	st, err := d.Store()
	require.NoError(t, err)
	require.NoError(t, st.Close())
	_, _, _, err = d.submit(t.Context(), "k")
	require.ErrorContains(t, err, "nothing was submitted")
	require.Zero(t, d.g.calls.Load())
}

// A server that starts finds submissions that died without an answer, and submits
// nothing.
func TestWhatDiedUnansweredIsRecalled(t *testing.T) {
	t.Parallel()
	d := newSubmitter(t)
	d.Clusters["test"], d.Self = d.g, "alice"
	d.die(t, "there", d.place())
	d.die(t, "nowhere", d.place())
	d.die(t, "elsewhere", "login2:/x")
	for _, key := range []string{"there", "elsewhere"} {
		d.g.jobs.Store(tokenOf("alice", "test", key), slurm.JobID("7"))
	}
	require.NoError(t, d.Recall(t.Context()))
	st, err := d.Store()
	require.NoError(t, err)
	for key, want := range map[string]store.SubmissionState{"there": store.Submitted, "nowhere": store.Submitting, "elsewhere": store.Submitting} {
		sub, err := st.Submission(t.Context(), "alice/test/"+key)
		require.NoError(t, err)
		require.Equal(t, want, sub.State, key)
	}
	require.Zero(t, d.g.calls.Load())
	d.now = d.now.Add(2 * settling)
	require.NoError(t, d.Recall(t.Context()))
	sub, err := st.Submission(t.Context(), "alice/test/elsewhere")
	require.NoError(t, err)
	require.EqualValues(t, "7", sub.JobID)
}
