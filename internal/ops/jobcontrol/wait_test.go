package jobcontrol

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A wait whose timeout is over reports the job's current state. If the job has ended or
// started by then, that is no time-out.
func TestAWaitThatGivesUpTellsThePresentState(t *testing.T) {
	past, done := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer done()
	was := slurm.Job{ID: "77", Name: "gpt", User: "alice", State: slurm.Pending, Reason: "Resources"}
	for _, tt := range []struct {
		name     string
		in       WaitIn
		becomes  slurm.Job
		timedOut bool
		title    string
	}{
		{"still pending", WaitIn{}, slurm.Job{State: slurm.Pending, Reason: "Priority"}, true, "still PENDING"},
		{"runs by now", WaitIn{}, slurm.Job{State: slurm.Running, ElapsedS: 7}, true, "still RUNNING"},
		{"runs as it should", WaitIn{Running: true}, slurm.Job{State: slurm.Running}, false, "RUNNING"},
		{"waits to run", WaitIn{Running: true}, slurm.Job{State: slurm.Pending, Reason: "Priority"}, true, "still PENDING"},
		{"ended", WaitIn{}, slurm.Job{State: slurm.Completed}, false, "COMPLETED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := tt.becomes
			now.ID, now.Name, now.User = was.ID, was.Name, was.User
			c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"77": now}})
			cl, err := c.Cluster("")
			require.NoError(t, err)
			tt.in.Job = was.ID
			out, err := timedOut(past, c, cl, tt.in, WaitOut{Job: was})
			require.NoError(t, err)
			require.Equal(t, tt.becomes.State, out.State)
			require.Equal(t, tt.becomes.Reason, out.Reason)
			require.Equal(t, tt.becomes.ElapsedS, out.ElapsedS)
			require.Equal(t, tt.timedOut, out.TimedOut)
			require.Contains(t, out.View(lang.EN).Title, tt.title)
		})
	}
	broken, stop := context.WithCancel(t.Context())
	stop()
	_, err := timedOut(broken, opstest.NewCall(t, &opstest.Site{}), nil, WaitIn{}, WaitOut{Job: was})
	require.ErrorIs(t, err, context.Canceled, "a wait that was broken off is no time-out")
}

// A job that never starts is not waited for, whatever it is waited for; the answer says why and what to do.
func TestAJobThatNeverStartsIsNotWaitedFor(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"77": {ID: "77", Name: "gpt", User: "alice", State: slurm.Pending, Reason: "DependencyNeverSatisfied", Dependency: "afterok:7(failed)", WorkDir: t.TempDir()},
		"78": {ID: "78", Name: "gpt", User: "alice", State: slurm.Pending, Reason: "JobHeldUser"},
	}})
	ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	for _, in := range []WaitIn{{Job: "77"}, {Job: "77", Running: true}, {Job: "77", Artifact: "out.json"}} {
		out, err := wait(ctx, c, in)
		require.NoError(t, err)
		require.True(t, out.Found())
		require.False(t, out.TimedOut)
		for l, says := range map[lang.Lang][]string{
			lang.EN: {"77 gpt: never starts", "waits for a job that did not end as its dependency asks", "depends on", "afterok:7(failed)", "cancel 77"},
			lang.ZH: {"77 gpt：永远不会启动", "依赖的作业未按要求结束", "依赖", "afterok:7(failed)", "cancel 77"},
		} {
			for _, s := range says {
				require.Contains(t, opstest.Text(t, out, l), s)
			}
		}
	}
	held, err := wait(ctx, c, WaitIn{Job: "78", Timeout: 1})
	require.NoError(t, err)
	require.True(t, held.TimedOut)
	require.Contains(t, opstest.Text(t, held, lang.EN), "is held by its owner")
	require.Contains(t, opstest.Text(t, held, lang.EN), "release 78")
}

// An agent may wait for a file whose folder the job has yet to make, or that this machine
// does not see, but for none outside of the job's folder.
func TestAnArtifactLiesInTheJobsFolder(t *testing.T) {
	work := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(work, "made"), 0o755))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(work, "out")))
	require.NoError(t, os.Symlink("/nowhere/at/all", filepath.Join(work, "dangling")))
	for path, want := range map[string]bool{
		"metrics.json": true, "made/metrics.json": true, "results/deep/metrics.json": true, work + "/results/x": true,
		"out/x": false, "out/new/x": false, "dangling/x": false, "dangling/new/x": false, "../x": false, "results/../../x": false, "/etc/passwd": false,
	} {
		require.Equal(t, want, inJobFolders(slurm.Job{WorkDir: work}, path), path)
		if filepath.IsLocal(path) && !strings.Contains(path, "out/") && !strings.Contains(path, "dangling/") {
			require.True(t, inJobFolders(slurm.Job{WorkDir: "/not/seen/here"}, path), path)
		}
	}
	require.False(t, inJobFolders(slurm.Job{WorkDir: "/not/seen/here"}, "../../x"))
	require.False(t, inJobFolders(slurm.Job{}, "x"), "a job whose folder is not known")
}

// A job that ends without the artifact that it was run for has not done what it was waited for,
// however well Slurm says it ended. Where its folder is not seen here, nobody knows.
func TestAJobThatEndsWithoutItsArtifact(t *testing.T) {
	work, began := t.TempDir(), time.Now().Add(-time.Hour)
	old := filepath.Join(work, "old.json")
	require.NoError(t, os.WriteFile(old, []byte("{}"), 0o600))
	require.NoError(t, os.Chtimes(old, began.Add(-time.Hour), began.Add(-time.Hour)))
	require.NoError(t, os.WriteFile(filepath.Join(work, "half.json"), []byte(`{"status":"half"}`), 0o600))
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"77": {ID: "77", Name: "gpt", User: "alice", State: slurm.Completed, WorkDir: work, StartedAt: &began},
		"78": {ID: "78", Name: "gpt", User: "alice", State: slurm.Completed, WorkDir: "/not/seen/here", StartedAt: &began},
	}})
	for name, tt := range map[string]struct {
		in     WaitIn
		found  bool
		en, zh string
	}{
		"it is not there":             {WaitIn{Job: "77", Artifact: "none.json"}, true, "77 gpt: the job ended without its artifact: no file " + work + "/none.json", "作业已结束，但没有产物：没有文件 " + work},
		"it is of an earlier job":     {WaitIn{Job: "77", Artifact: "old.json"}, true, "old.json is older than the job", "old.json 早于该作业"},
		"it says that it is half":     {WaitIn{Job: "77", Artifact: "half.json", JSON: "status=done"}, true, "status = half, not done", "而不是 done"},
		"it is there":                 {WaitIn{Job: "77", Artifact: "half.json"}, false, "half.json exists", "已出现"},
		"the end was waited for":      {WaitIn{Job: "77", Artifact: "none.json", End: true}, false, "COMPLETED", "COMPLETED"},
		"the folder is not seen here": {WaitIn{Job: "78", Artifact: "none.json"}, false, "its artifact is not seen here", "看不到结果文件"},
	} {
		t.Run(name, func(t *testing.T) {
			for l, want := range map[lang.Lang]string{lang.EN: tt.en, lang.ZH: tt.zh} {
				c.Lang = l
				out, err := wait(t.Context(), c, tt.in)
				require.NoError(t, err)
				require.Equal(t, tt.found, out.Found())
				require.Contains(t, opstest.Text(t, out, l), want)
			}
		})
	}
}
