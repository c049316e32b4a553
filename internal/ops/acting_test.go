package ops

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A peopled is a site that notes as whom each change was made.
type peopled struct {
	*site
	as  string
	did *[]string
}

func (p peopled) Cancel(ctx context.Context, id slurm.JobID) error {
	*p.did = append(*p.did, p.as+" cancel "+string(id))
	return p.site.Cancel(ctx, id)
}

func (p peopled) change(what string, id slurm.JobID) error {
	*p.did = append(*p.did, p.as+" "+what+" "+string(id))
	return nil
}

func (p peopled) Hold(_ context.Context, id slurm.JobID) error    { return p.change("hold", id) }
func (p peopled) Release(_ context.Context, id slurm.JobID) error { return p.change("release", id) }
func (p peopled) Requeue(_ context.Context, id slurm.JobID) error { return p.change("requeue", id) }
func (p peopled) Update(_ context.Context, id slurm.JobID, _ slurm.Update) error {
	return p.change("update", id)
}

// served is a call in Slack, in a process of "bot", and what is done as whom.
func served(t *testing.T, who Caller, jobs ...slurm.Job) (c *Call, did, audited *[]string) {
	t.Helper()
	s := &site{knownJobs: map[slurm.JobID]slurm.Job{}, ofKind: "local"}
	for _, j := range jobs {
		s.knownJobs[j.ID] = j
	}
	c = newCall(t, s)
	did, audited = &[]string{}, &[]string{}
	c.Self, c.Who = "bot", who
	c.Clusters["test"] = peopled{s, "bot", did}
	c.As = func(_ Cluster, user string) (Cluster, error) { return peopled{s, user, did}, nil }
	c.Audit = func(_ context.Context, e AuditEntry) { *audited = append(*audited, e.Who.User+" "+e.Op) }
	return c, did, audited
}

var (
	bob     = Caller{Surface: Slack, ID: "T1/U2", User: "bob"}
	olga    = Caller{Surface: Slack, ID: "T1/U6", User: "olga", Operator: true}
	hers    = slurm.Job{ID: "10", Name: "gpt", User: "alice", State: slurm.Running, ElapsedS: 7200, NumNodes: 4}
	his     = slurm.Job{ID: "20", Name: "moe", User: "bob", State: slurm.Running, ElapsedS: 60, NumNodes: 1}
	waiting = slurm.Job{ID: "30", Name: "eval", User: "bob", State: slurm.Pending}
)

func TestAnOperatorActsOnAnothersJobAsItsOwner(t *testing.T) {
	for _, given := range []struct {
		op    Op
		words []string
	}{{Cancel(), []string{"10", "--yes"}}, {Requeue(), []string{"10", "--yes"}}, {Update(), []string{"10", "--time", "1:00:00"}}, {Release(), []string{"10"}}} {
		c, did, audited := served(t, olga, hers)
		_, err := do(t, c, given.op, given.words...)
		require.NoError(t, err, given.op.Name)
		require.Equal(t, []string{"alice " + given.op.Name + " 10"}, *did, "Slurm would refuse olga's own account")
		require.Equal(t, []string{"olga " + given.op.Name}, *audited, "the audit names who asked")

		c, did, _ = served(t, bob, hers)
		_, err = do(t, c, given.op, given.words...)
		require.ErrorContains(t, err, "belongs to alice")
		require.Empty(t, *did)
	}
}

func TestWaitCancelsAsThePersonAndIsWrittenDown(t *testing.T) {
	dir := t.TempDir()
	artifact := filepath.Join(dir, "metrics.json")
	require.NoError(t, os.WriteFile(artifact, []byte("{}"), 0o600))
	mine := his
	mine.WorkDir = dir
	c, did, audited := served(t, bob, mine)
	c.Roots = []string{dir}
	words := []string{"20", "--artifact", artifact, "--cancel"}
	_, err := do(t, c, Wait(), words...)
	require.True(t, AsError(err).Confirm, "a server asks before it ends anything: %v", err)
	require.Empty(t, *did)
	c.Confirmed = true
	out, err := do(t, c, Wait(), words...)
	require.NoError(t, err)
	require.True(t, out.(WaitOut).Cancelled)
	require.Equal(t, []string{"bob cancel 20"}, *did)
	require.Equal(t, []string{"bob cancel"}, *audited)

	for _, who := range []Caller{{Surface: Slack, ID: "T1/U9"}, {Surface: MCPHTTP, ID: "x", User: "bob", ReadOnly: true}} {
		c, did, _ := served(t, who, mine)
		c.Confirmed = true
		_, err := do(t, c, Wait(), words...)
		require.Equal(t, NotAllowed, AsError(err).Code)
		require.Empty(t, *did)
	}
}

func TestRequeueAsksAndHoldIsOnlyForWhatWaits(t *testing.T) {
	c, did, _ := served(t, bob, his, waiting)
	_, err := do(t, c, Requeue(), "20")
	require.True(t, AsError(err).Confirm)
	require.ErrorContains(t, err, "ends its run")
	require.Empty(t, *did)
	_, err = do(t, c, Hold(), "20")
	require.ErrorContains(t, err, "does nothing to one that runs")
	require.Empty(t, *did)
	_, err = do(t, c, Hold(), "30")
	require.NoError(t, err)
	require.Equal(t, []string{"bob hold 30"}, *did)

	// An array of which one element runs and another waits can be held.
	running := slurm.Job{ID: "40_1", User: "bob", State: slurm.Running}
	rest := slurm.Job{ID: "40_2", User: "bob", State: slurm.Pending}
	whole := running
	whole.ID = "40"
	c, did, _ = served(t, bob, whole, running, rest)
	_, err = do(t, c, Hold(), "40")
	require.NoError(t, err)
	require.Len(t, *did, 1)
	_, err = do(t, c, Hold(), "40_1")
	require.Error(t, err)
}

func TestTheSwitchOfAJobThatIsOverIsNotThrown(t *testing.T) {
	dir := t.TempDir()
	c, s, id := switched(t, dir, "pretrain")
	j := s.knownJobs[slurm.JobID(id)]
	j.State = slurm.Completed
	s.knownJobs[j.ID] = j
	_, err := do(t, c, KillSwitch(), "on", id)
	require.Equal(t, NotFound, AsError(err).Code)
	require.NoFileExists(t, filepath.Join(dir, "STOP"), "the next start would end at once")
	delete(s.knownJobs, j.ID)
	_, err = do(t, c, KillSwitch(), "on", id)
	require.Equal(t, NotFound, AsError(err).Code)
	_, err = do(t, c, KillSwitch(), "off", id)
	require.NoError(t, err, "a switch left behind can be taken away")
}
