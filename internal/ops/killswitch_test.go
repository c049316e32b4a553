package ops

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A nearSite is a site of this machine that runs commands beside its jobs.
type nearSite struct {
	*site
	ran []slurm.Exec
}

func (s *nearSite) Kind() string { return "cli" }

func (s *nearSite) Exec(_ context.Context, e slurm.Exec) ([]slurm.NodeOutput, error) {
	s.ran = append(s.ran, e)
	return nil, nil
}

// switched is a call with a job of alice's that has a kill switch in dir.
func switched(t *testing.T, dir, team string) (*Call, *nearSite, string) {
	t.Helper()
	s := &nearSite{site: &site{jobs: map[slurm.JobID]slurm.Job{}}}
	c := newCall(t, s.site)
	c.Clusters["test"] = s
	out, err := do(t, c, "submit", append([]string{"--yes", "--force", "--kill-switch", filepath.Join(dir, "STOP"), "--team", team}, goodJob...)...)
	require.NoError(t, err)
	id := *out.(SubmitOut).JobID
	s.jobs[id] = slurm.Job{ID: id, User: "alice", State: slurm.Running, Nodes: []string{"gpu1", "gpu2"}}
	return c, s, string(id)
}

func TestKillSwitchOnAndOff(t *testing.T) {
	dir := t.TempDir()
	c, _, id := switched(t, dir, "pretrain")
	stop := filepath.Join(dir, "STOP")
	var entries []AuditEntry
	c.Audit = func(_ context.Context, e AuditEntry) { entries = append(entries, e) }

	out, err := do(t, c, "killswitch", "on", id)
	require.NoError(t, err)
	require.Equal(t, KillSwitchOut{Path: stop, On: true, JobID: slurm.JobID(id), Owner: "alice", Changed: true}, out)
	require.FileExists(t, stop)
	require.Contains(t, text(t, out, lang.EN), "Remove it before the next start")
	out, err = do(t, c, "killswitch", "on", stop)
	require.NoError(t, err)
	require.False(t, out.(KillSwitchOut).Changed)
	out, err = do(t, c, "killswitch", "off", stop)
	require.NoError(t, err)
	require.True(t, out.(KillSwitchOut).Changed)
	require.NoFileExists(t, stop)
	require.Len(t, entries, 3)

	work := filepath.Join(dir, "model.pt")
	require.NoError(t, os.WriteFile(work, []byte("weights"), 0o600))
	for _, words := range [][]string{{"off", work}, {"off", dir}, {"sideways", id}, {"on", "STOP"}} {
		_, err = do(t, c, "killswitch", words...)
		require.Equal(t, BadInput, AsError(err).Code, "%v: %v", words, err)
	}
	require.FileExists(t, work)
	_, err = do(t, c, "killswitch", "on", "9999")
	require.Equal(t, NotFound, AsError(err).Code)
	_, err = do(t, c, "killswitch", "on", filepath.Join(dir, "no", "STOP"))
	require.Equal(t, Failed, AsError(err).Code)
}

func TestAServerLendsNobodyItsOwnRights(t *testing.T) {
	dir := t.TempDir()
	c, s, id := switched(t, dir, "root")
	stop := filepath.Join(dir, "STOP")
	var acted []string
	c.Self = "bot"
	c.As = func(cl Cluster, user string) (Cluster, error) { acted = append(acted, user); return cl, nil }

	c.Who = Caller{Surface: Slack, ID: "T1/U2", User: "bob"}
	_, err := do(t, c, "killswitch", "on", id)
	require.Equal(t, NotAllowed, AsError(err).Code)
	_, err = do(t, c, "killswitch", "on", filepath.Join(dir, "other"))
	require.Equal(t, NotFound, AsError(err).Code, "only the switches of jobs can be thrown from there")
	require.Empty(t, s.ran)

	for _, who := range []string{"alice", "root"} { // the owner; a member of the group root
		c.Who = Caller{Surface: Slack, ID: "T1/U1", User: who}
		_, err = do(t, c, "killswitch", "on", id)
		require.NoError(t, err)
		require.Equal(t, "alice", acted[len(acted)-1], "the file is the job's owner's")
	}
	require.Equal(t, []string{"touch", "--", stop}, s.ran[0].Argv)
	require.Equal(t, []string{"gpu1"}, s.ran[0].Nodes)
	require.NoFileExists(t, stop, "this process touches nothing")

	s.jobs[slurm.JobID(id)] = slurm.Job{ID: slurm.JobID(id), User: "alice", State: slurm.Pending}
	_, err = do(t, c, "killswitch", "off", id)
	require.Contains(t, AsError(err).Fix, "rm -- "+stop)
}

func TestTheOwnerIsToldWhoThrewTheSwitch(t *testing.T) {
	dir := t.TempDir()
	c, _, id := switched(t, dir, "pretrain")
	_, err := do(t, c, "killswitch", "on", id)
	require.NoError(t, err)
	told, err := c.Notices(t.Context())
	require.NoError(t, err)
	require.Empty(t, told, "one's own switch is no news")
	_, err = do(t, c, "killswitch", "off", id)
	require.NoError(t, err)
	c.Who = Caller{Surface: Shell, ID: "bob", User: "bob"}
	_, err = do(t, c, "killswitch", "on", id)
	require.NoError(t, err)
	told, err = c.Notices(t.Context())
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.Equal(t, "alice", told[0].Owner)
	require.Contains(t, told[0].Title.EN, "bob has thrown the kill switch")
	require.Contains(t, told[0].Title.ZH, "bob")
}
