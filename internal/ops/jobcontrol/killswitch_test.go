package jobcontrol

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An execSite is a site on this machine that runs commands on the nodes of its jobs.
type execSite struct {
	*opstest.Site
	ran  []slurm.Exec
	says string // the output of a command
}

func (s *execSite) Kind() string { return "cli" }

func (s *execSite) Exec(_ context.Context, e slurm.Exec) ([]slurm.NodeOutput, error) {
	s.ran = append(s.ran, e)
	return []slurm.NodeOutput{{Node: "gpu1", Text: s.says}}, nil
}

// callWithSwitch returns a call with a job of alice's that has a kill switch in dir.
func callWithSwitch(t *testing.T, dir, team string) (*ops.Call, *execSite, string) {
	t.Helper()
	s := &execSite{Site: &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}}
	c := opstest.NewCall(t, s.Site)
	c.Clusters["test"] = s
	out, err := opstest.Do(t, c, launch.Submit(), append([]string{"--yes", "--force", "--kill-switch", filepath.Join(dir, "STOP"), "--team", team}, opstest.GoodJob...)...)
	require.NoError(t, err)
	id := *out.(launch.SubmitOut).JobID
	s.KnownJobs[id] = slurm.Job{ID: id, User: "alice", State: slurm.Running, Nodes: []string{"gpu1", "gpu2"}}
	return c, s, string(id)
}

func TestKillSwitchOnAndOff(t *testing.T) {
	dir := t.TempDir()
	c, _, id := callWithSwitch(t, dir, "pretrain")
	stop := filepath.Join(dir, "STOP")
	var entries []ops.AuditEntry
	c.Audit = func(_ context.Context, e ops.AuditEntry) { entries = append(entries, e) }

	out, err := opstest.Do(t, c, KillSwitch(), "on", id)
	require.NoError(t, err)
	require.Equal(t, KillSwitchOut{Path: stop, On: true, JobID: slurm.JobID(id), Owner: "alice", Changed: true}, out)
	require.FileExists(t, stop)
	require.Contains(t, opstest.Text(t, out, lang.EN), "Remove it before the next start")
	out, err = opstest.Do(t, c, KillSwitch(), "on", stop)
	require.NoError(t, err)
	require.False(t, out.(KillSwitchOut).Changed)
	out, err = opstest.Do(t, c, KillSwitch(), "off", stop)
	require.NoError(t, err)
	require.True(t, out.(KillSwitchOut).Changed)
	require.NoFileExists(t, stop)
	require.Len(t, entries, 3)

	work := filepath.Join(dir, "model.pt")
	require.NoError(t, os.WriteFile(work, []byte("weights"), 0o600))
	for _, words := range [][]string{{"off", work}, {"off", dir}, {"sideways", id}, {"on", "STOP"}} {
		_, err = opstest.Do(t, c, KillSwitch(), words...)
		require.Equal(t, ops.BadInput, ops.AsError(err).Code, "%v: %v", words, err)
	}
	require.FileExists(t, work)
	_, err = opstest.Do(t, c, KillSwitch(), "on", "9999")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	_, err = opstest.Do(t, c, KillSwitch(), "on", filepath.Join(dir, "no", "STOP"))
	require.Equal(t, ops.Failed, ops.AsError(err).Code)
}

func TestAServerLendsNobodyItsOwnRights(t *testing.T) {
	dir := t.TempDir()
	c, s, id := callWithSwitch(t, dir, "root")
	stop := filepath.Join(dir, "STOP")
	var acted []string
	c.Self = "bot"
	c.As = func(cl ops.Cluster, user string) (ops.Cluster, error) { acted = append(acted, user); return cl, nil }

	c.Who = ops.Caller{Surface: ops.Slack, ID: "T1/U2", User: "bob"}
	_, err := opstest.Do(t, c, KillSwitch(), "on", id)
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
	_, err = opstest.Do(t, c, KillSwitch(), "on", filepath.Join(dir, "other"))
	require.Equal(t, ops.NotFound, ops.AsError(err).Code, "only the switches of jobs can be thrown from there")
	require.Len(t, s.ran, 1, "a look at the folder, and nothing else")
	require.Equal(t, "sh", s.ran[0].Argv[0])
	require.Equal(t, []string{stop, "bob"}, s.ran[0].Argv[4:])
	s.ran = nil

	for _, who := range []string{"alice", "root"} { // the owner; a member of the group root
		c.Who = ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: who}
		_, err = opstest.Do(t, c, KillSwitch(), "on", id)
		require.NoError(t, err)
		require.Equal(t, "alice", acted[len(acted)-1], "the file is the job's owner's")
	}
	require.Equal(t, []string{"touch", "--", stop}, s.ran[0].Argv)
	require.Equal(t, []string{"gpu1"}, s.ran[0].Nodes)
	require.NoFileExists(t, stop, "this process touches nothing")

	s.KnownJobs[slurm.JobID(id)] = slurm.Job{ID: slurm.JobID(id), User: "alice", State: slurm.Pending}
	_, err = opstest.Do(t, c, KillSwitch(), "off", id)
	require.Contains(t, ops.AsError(err).Fix.EN, "rm -- "+stop)
}

// Of several jobs with one switch, the running one is used, even where another one,
// such as the next of a chain, was submitted later.
func TestASwitchIsReachedFromTheJobThatRuns(t *testing.T) {
	dir := t.TempDir()
	c, s, id := callWithSwitch(t, dir, "pretrain")
	out, err := opstest.Do(t, c, launch.Submit(), append([]string{"--yes", "--force", "--idempotency-key", "later", "--kill-switch", filepath.Join(dir, "STOP")}, opstest.GoodJob...)...)
	require.NoError(t, err)
	later := *out.(launch.SubmitOut).JobID
	require.NotEqual(t, id, string(later))
	s.KnownJobs[later] = slurm.Job{ID: later, User: "alice", State: slurm.Pending}
	c.Self, c.Who = "bot", ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "alice"}
	c.As = func(cl ops.Cluster, _ string) (ops.Cluster, error) { return cl, nil }
	out, err = opstest.Do(t, c, KillSwitch(), "on", filepath.Join(dir, "STOP"))
	require.NoError(t, err)
	require.Equal(t, slurm.JobID(id), out.(KillSwitchOut).JobID)
	require.Equal(t, []string{"touch", "--", filepath.Join(dir, "STOP")}, s.ran[len(s.ran)-1].Argv)

	reused := time.Now().AddDate(0, 0, 2)
	s.KnownJobs[later] = slurm.Job{ID: later, User: "alice", State: slurm.Running, SubmittedAt: &reused}
	out, err = opstest.Do(t, c, KillSwitch(), "on", filepath.Join(dir, "STOP"))
	require.NoError(t, err)
	require.Equal(t, slurm.JobID(id), out.(KillSwitchOut).JobID, "another job has the later one's id now")
}

// Whoever may create a file may turn the switch on; whoever may remove it may turn it
// off.
func TestTheFileSystemSaysWhoMayThrowASwitch(t *testing.T) {
	const (
		bob  = "who 1002 1002 50 60\n"
		root = "above 0 0 41ed \n"
	)
	for name, c := range map[string]struct {
		said    string
		on, off bool
	}{
		"a group's folder":              {bob + "folder 1001 50 41f8 \n" + root, true, true},
		"another group's":               {bob + "folder 1001 51 41f8 \n" + root, false, false},
		"everybody's":                   {bob + "folder 1001 51 41ff \n" + root, true, true},
		"everybody's but the group's":   {bob + "folder 1001 50 41cf \n" + root, false, false},
		"the owner's, who is shut out":  {bob + "folder 1002 50 407f \n" + root, false, false},
		"readable only":                 {bob + "folder 1001 50 41e8 \n" + root, false, false},
		"writable and not enterable":    {bob + "folder 1001 50 41f0 \n" + root, false, false},
		"below a closed folder":         {bob + "folder 1001 50 41f8 \nabove 1001 1001 41c0 \n" + root, false, false},
		"sticky, another's file":        {bob + "file 1001 50 81b4 \nfolder 0 0 43ff \n" + root, true, false},
		"sticky, one's own file":        {bob + "file 1002 50 81b4 \nfolder 0 0 43ff \n" + root, true, true},
		"sticky, one's own folder":      {bob + "file 1001 50 81b4 \nfolder 1002 0 43ff \n" + root, true, true},
		"an access list":                {bob + "folder 1001 50 41f8 +\n" + root, false, false},
		"an access list above":          {bob + "folder 1001 50 41f8 \nabove 0 0 41ed +\n", false, false},
		"a label of SELinux":            {bob + "folder 1001 50 41f8 .\n" + root, true, true},
		"not known on the node":         {"id: 'bob': no such user\nwho  \nfolder 1001 50 41ff \n" + root, false, false},
		"nothing above is told":         {bob + "folder 1001 50 41ff \n", false, false},
		"a folder that cannot be read":  {bob + "folder  \n" + root, false, false},
		"no folder there":               {"realpath: /x: No such file or directory\n", false, false},
		"nothing":                       {"", false, false},
		"a number with something after": {"who 1002x 50\nfolder 1001 50 41ff \n" + root, false, false},
	} {
		require.Equal(t, c.on, allowsSwitch(c.said, true), name)
		require.Equal(t, c.off, allowsSwitch(c.said, false), name)
	}
}

func TestTheOwnerIsToldWhoThrewTheSwitch(t *testing.T) {
	dir := t.TempDir()
	c, _, id := callWithSwitch(t, dir, "pretrain")
	_, err := opstest.Do(t, c, KillSwitch(), "on", id)
	require.NoError(t, err)
	told, err := c.Notices(t.Context())
	require.NoError(t, err)
	require.Empty(t, told, "one's own switch is no news")
	_, err = opstest.Do(t, c, KillSwitch(), "off", id)
	require.NoError(t, err)
	c.Who = ops.Caller{Surface: ops.Shell, ID: "bob", User: "bob"}
	_, err = opstest.Do(t, c, KillSwitch(), "on", id)
	require.NoError(t, err)
	told, err = c.Notices(t.Context())
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.Equal(t, "alice", told[0].Owner)
	require.Contains(t, told[0].Title.EN, "bob has thrown the kill switch")
	require.Contains(t, told[0].Title.ZH, "bob")
}
