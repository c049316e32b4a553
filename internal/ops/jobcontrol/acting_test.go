package jobcontrol

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An actingSite is a site that records the user of each change.
type actingSite struct {
	*opstest.Site
	as  string
	did *[]string
}

func (p actingSite) Cancel(ctx context.Context, id slurm.JobID) error {
	*p.did = append(*p.did, p.as+" cancel "+string(id))
	return p.Site.Cancel(ctx, id)
}

func (p actingSite) change(what string, id slurm.JobID) error {
	*p.did = append(*p.did, p.as+" "+what+" "+string(id))
	return nil
}

func (p actingSite) Hold(_ context.Context, id slurm.JobID) error    { return p.change("hold", id) }
func (p actingSite) Release(_ context.Context, id slurm.JobID) error { return p.change("release", id) }

func (p actingSite) Requeue(_ context.Context, id slurm.JobID) error { return p.change("requeue", id) }

func (p actingSite) Update(_ context.Context, id slurm.JobID, _ slurm.Update) error {
	return p.change("update", id)
}

// slackCall returns a call in Slack, in a process of the user "bot", and records what
// is done as whom.
func slackCall(t *testing.T, who ops.Caller, jobs ...slurm.Job) (c *ops.Call, did, audited *[]string) {
	t.Helper()
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}, OfKind: "local"}
	for _, j := range jobs {
		s.KnownJobs[j.ID] = j
	}
	c = opstest.NewCall(t, s)
	did, audited = &[]string{}, &[]string{}
	c.Self, c.Who = "bot", who
	c.Clusters["test"] = actingSite{s, "bot", did}
	c.As = func(_ ops.Cluster, user string) (ops.Cluster, error) { return actingSite{s, user, did}, nil }
	c.Audit = func(_ context.Context, e ops.AuditEntry) { *audited = append(*audited, e.Who.User+" "+e.Op) }
	return c, did, audited
}

var (
	bob     = ops.Caller{Surface: ops.Slack, ID: "T1/U2", User: "bob"}
	olga    = ops.Caller{Surface: ops.Slack, ID: "T1/U6", User: "olga", Operator: true}
	hers    = slurm.Job{ID: "10", Name: "gpt", User: "alice", State: slurm.Running, ElapsedS: 7200, NumNodes: 4}
	his     = slurm.Job{ID: "20", Name: "moe", User: "bob", State: slurm.Running, ElapsedS: 60, NumNodes: 1}
	waiting = slurm.Job{ID: "30", Name: "eval", User: "bob", State: slurm.Pending}
)

func TestAnOperatorActsOnAnothersJobAsItsOwner(t *testing.T) {
	for _, given := range []struct {
		op    ops.Op
		words []string
	}{{Cancel(), []string{"10", "--yes"}}, {Requeue(), []string{"10", "--yes"}}, {Update(), []string{"10", "--time", "1:00:00"}}, {Release(), []string{"10"}}} {
		c, did, audited := slackCall(t, olga, hers)
		_, err := opstest.Do(t, c, given.op, given.words...)
		require.NoError(t, err, given.op.Name)
		require.Equal(t, []string{"alice " + given.op.Name + " 10"}, *did, "Slurm would refuse olga's own account")
		require.Equal(t, []string{"olga " + given.op.Name}, *audited, "the audit names who asked")

		c, did, _ = slackCall(t, bob, hers)
		_, err = opstest.Do(t, c, given.op, given.words...)
		require.ErrorContains(t, err, "belongs to alice")
		require.Empty(t, *did)
	}
}

func TestWaitCancelsAsThePersonAndIsWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		artifact := filepath.Join(dir, "metrics.json")
		require.NoError(t, os.WriteFile(artifact, []byte("{}"), 0o600))
		mine := his
		mine.WorkDir = dir
		c, did, audited := slackCall(t, bob, mine)
		c.Roots = []string{dir}
		words := []string{"20", "--artifact", artifact, "--cancel"}
		_, err := opstest.Do(t, c, Wait(), words...)
		require.True(t, ops.AsError(err).Confirm, "a server asks before it ends anything: %v", err)
		require.Empty(t, *did)
		c.Confirmed = true
		out, err := opstest.Do(t, c, Wait(), words...)
		require.NoError(t, err)
		require.True(t, out.(WaitOut).Cancelled)
		require.Equal(t, []string{"bob cancel 20"}, *did)
		require.Equal(t, []string{"bob cancel"}, *audited)

		for _, who := range []ops.Caller{{Surface: ops.Slack, ID: "T1/U9"}, {Surface: ops.MCPHTTP, ID: "x", User: "bob", ReadOnly: true}} {
			c, did, _ := slackCall(t, who, mine)
			c.Confirmed = true
			_, err := opstest.Do(t, c, Wait(), words...)
			require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
			require.Empty(t, *did)
		}
	})
}

func TestRequeueAsksAndHoldIsOnlyForWhatWaits(t *testing.T) {
	c, did, _ := slackCall(t, bob, his, waiting)
	_, err := opstest.Do(t, c, Requeue(), "20")
	require.True(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "ends its run")
	require.Empty(t, *did)
	_, err = opstest.Do(t, c, Hold(), "20")
	require.ErrorContains(t, err, "does nothing to one that runs")
	require.Empty(t, *did)
	_, err = opstest.Do(t, c, Hold(), "30")
	require.NoError(t, err)
	require.Equal(t, []string{"bob hold 30"}, *did)
	out, err := opstest.Do(t, c, Release(), "20")
	require.NoError(t, err)
	require.Equal(t, "had started already: there was nothing to release", out.(ChangeOut).Did)
	out, err = opstest.Do(t, c, Release(), "30")
	require.NoError(t, err)
	require.Equal(t, "released", out.(ChangeOut).Did)

	// An array with a running and a waiting task can be held.
	running := slurm.Job{ID: "40_1", User: "bob", State: slurm.Running}
	rest := slurm.Job{ID: "40_2", User: "bob", State: slurm.Pending}
	whole := running
	whole.ID = "40"
	c, did, _ = slackCall(t, bob, whole, running, rest)
	_, err = opstest.Do(t, c, Hold(), "40")
	require.NoError(t, err)
	require.Len(t, *did, 1)
	_, err = opstest.Do(t, c, Hold(), "40_1")
	require.Error(t, err)
}

// A forgetfulSite is a Slurm in which only the accounts still know ended jobs.
type forgetfulSite struct{ actingSite }

func (forgetfulSite) Requeue(context.Context, slurm.JobID) error { return slurm.ErrNotFound }
func (forgetfulSite) Hold(context.Context, slurm.JobID) error    { return slurm.ErrNotFound }
func (forgetfulSite) Release(context.Context, slurm.JobID) error { return slurm.ErrNotFound }
func (forgetfulSite) Update(context.Context, slurm.JobID, slurm.Update) error {
	return slurm.ErrNotFound
}

func TestAJobThatHasEndedIsRequeuedWhileSlurmKeepsIt(t *testing.T) {
	over := his
	over.State = slurm.Failed
	c, did, _ := slackCall(t, bob, over)
	_, err := opstest.Do(t, c, Requeue(), "20")
	require.True(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "20 (moe) has ended: FAILED; it goes back into the queue as it was")
	_, err = opstest.Do(t, c, Requeue(), "20", "--yes")
	require.NoError(t, err)
	require.Equal(t, []string{"bob requeue 20"}, *did)

	act := c.As
	c.As = func(cl ops.Cluster, user string) (ops.Cluster, error) {
		as, err := act(cl, user)
		return forgetfulSite{as.(actingSite)}, err
	}
	for _, change := range []struct {
		op    ops.Op
		words []string
	}{{Requeue(), []string{"20", "--yes"}}, {Hold(), []string{"20"}}, {Release(), []string{"20"}}, {Update(), []string{"20", "--time", "5"}}} {
		_, err = opstest.Do(t, c, change.op, change.words...)
		require.ErrorContains(t, err, "job 20 has ended (FAILED), and Slurm no longer keeps it to be changed", change.op.Name)
		require.Contains(t, ops.AsError(err).Fix.EN, "submit --from 20")
	}
}

func TestTheSwitchOfAJobThatIsOverIsNotThrown(t *testing.T) {
	dir := t.TempDir()
	c, s, id := callWithSwitch(t, dir, "pretrain")
	j := s.KnownJobs[slurm.JobID(id)]
	j.State = slurm.Completed
	s.KnownJobs[j.ID] = j
	_, err := opstest.Do(t, c, KillSwitch(), "on", id)
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	require.NoFileExists(t, filepath.Join(dir, "STOP"), "the next start would end at once")
	delete(s.KnownJobs, j.ID)
	_, err = opstest.Do(t, c, KillSwitch(), "on", id)
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	_, err = opstest.Do(t, c, KillSwitch(), "off", id)
	require.NoError(t, err, "a switch left behind can be taken away")
}

// An embeddedSite requeues only what runs, and says so beforehand.
type embeddedSite struct{ actingSite }

func (p embeddedSite) MayRequeue(_ context.Context, id slurm.JobID) error {
	if j := p.KnownJobs[id]; j.State.Ended() {
		return slurm.Refused("requeue "+string(id), slurm.Words("Job/step already completing or completed"))
	}
	return nil
}

func TestWhatCannotBeRequeuedIsNotAskedAbout(t *testing.T) {
	over := waiting
	over.State = slurm.Completed
	c, did, _ := slackCall(t, bob, his, over)
	act := c.As
	c.As = func(cl ops.Cluster, user string) (ops.Cluster, error) {
		as, err := act(cl, user)
		return embeddedSite{as.(actingSite)}, err
	}
	out, err := opstest.Do(t, c, Requeue(), "30")
	require.False(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "already completing or completed")
	require.Empty(t, out.(ChangeOut).Did, "it does not say that it did")
	require.Empty(t, *did)
	out, err = opstest.Do(t, c, Requeue(), "20", "--yes")
	require.NoError(t, err)
	require.Equal(t, "requeued; it starts again as soon as there is room", out.(ChangeOut).Did, "there is no pause of two minutes")
	require.Equal(t, []string{"bob requeue 20"}, *did)
}
