package watch_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

func TestArtifact(t *testing.T) {
	dir := t.TempDir()
	start := time.Now().Add(-time.Hour)
	j := slurm.Job{ID: "7", Name: "gpt", State: slurm.Running, WorkDir: dir, StartedAt: &start}
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	look := func(a watch.Artifact, before watch.ArtifactState) watch.ArtifactState {
		t.Helper()
		s, err := a.Look(t.Context(), j, before)
		require.NoError(t, err)
		return s
	}
	const still = time.Nanosecond

	a := watch.Artifact{Path: "out/%x-%j-*.json", Stable: still}
	s := look(a, watch.ArtifactState{})
	require.False(t, s.Done)
	require.Contains(t, s.Why.EN, "no file")
	write("out/gpt-7-a.json", "")
	require.Contains(t, look(a, s).Why.EN, "is empty")
	write("out/gpt-7-a.json", `{"status":`)
	s = look(a, watch.ArtifactState{})
	require.Contains(t, s.Why.EN, "may still be written")
	require.True(t, look(a, s).Done)

	a.JSON = "status=done"
	require.Contains(t, look(a, s).Why.EN, "not complete JSON")
	write("out/gpt-7-a.json", `{"status":"running"}`)
	s = look(a, look(a, s))
	require.False(t, s.Done)
	require.Contains(t, s.Why.EN, "status = running, not done")
	write("out/gpt-7-a.json", `{"status":"done","metrics":{"loss":1.5}}`)
	require.True(t, look(a, look(a, s)).Done)
	a.JSON = "metrics.loss"
	require.True(t, look(a, look(a, s)).Done)
	a.JSON = "metrics.accuracy"
	require.Contains(t, look(a, look(a, s)).Why.EN, "has no metrics.accuracy")

	write("out/gpt-7-b.json", "{}")
	earlier := time.Now().Add(-time.Minute)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "out/gpt-7-b.json"), earlier, earlier))
	require.Equal(t, filepath.Join(dir, "out/gpt-7-a.json"), look(a, watch.ArtifactState{}).Path, "the newest of several, whatever their names")
	require.NoError(t, os.Rename(filepath.Join(dir, "out/gpt-7-b.json"), filepath.Join(dir, "out/gpt-7-0.json")))
	require.Equal(t, filepath.Join(dir, "out/gpt-7-a.json"), look(a, watch.ArtifactState{}).Path)
	require.NoError(t, os.Remove(filepath.Join(dir, "out/gpt-7-0.json")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out/gpt-7-z.json"), 0o755))
	require.Equal(t, filepath.Join(dir, "out/gpt-7-a.json"), look(a, watch.ArtifactState{}).Path, "a folder is no result")
	require.NoError(t, os.Truncate(filepath.Join(dir, "out/gpt-7-a.json"), 16<<20+1))
	require.Contains(t, look(a, look(a, s)).Why.EN, "too large to be checked")

	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "out/gpt-7-a.json"), old, old))
	require.Contains(t, look(a, watch.ArtifactState{}).Why.EN, "older than the job")

	_, err := watch.Artifact{Path: "["}.Look(t.Context(), j, watch.ArtifactState{})
	require.ErrorContains(t, err, "pattern cannot be read")
}

func TestAwaitEndsWithTheJob(t *testing.T) {
	dir := t.TempDir()
	j := slurm.Job{ID: "7", State: slurm.Failed, WorkDir: dir}
	_, err := watch.Artifact{Path: "x.bin"}.Await(t.Context(), func() slurm.Job { return j }, time.Millisecond)
	require.ErrorContains(t, err, "ended without its artifact")
	never := slurm.Job{ID: "8", State: slurm.Pending, Reason: "DependencyNeverSatisfied", WorkDir: dir}
	_, err = watch.Artifact{Path: "x.bin"}.Await(t.Context(), func() slurm.Job { return never }, time.Millisecond)
	require.ErrorContains(t, err, "ended without its artifact", "it will never start")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.bin"), []byte("x"), 0o644))
	s, err := watch.Artifact{Path: "x.bin", Stable: 20 * time.Millisecond}.Await(t.Context(), func() slurm.Job { return j }, time.Millisecond)
	require.NoError(t, err)
	require.True(t, s.Done)
}

// A file is noticed within two seconds of its last change, however rarely the cluster is
// queried.
func TestAwaitSeesAFileSoonAndAsksTheClusterSeldom(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		job := func() slurm.Job {
			asked++
			return slurm.Job{ID: "7", State: slurm.Running, WorkDir: dir}
		}
		var wrote time.Time
		go func() {
			time.Sleep(60*time.Second + 130*time.Millisecond)
			wrote = time.Now()
			if err := os.WriteFile(filepath.Join(dir, "x.bin"), []byte("x"), 0o644); err != nil {
				t.Error(err)
			}
		}()
		s, err := watch.Artifact{Path: "x.bin", Stable: time.Second}.Await(t.Context(), job, 15*time.Second)
		require.NoError(t, err)
		require.True(t, s.Done)
		require.LessOrEqual(t, time.Since(wrote), 2*time.Second)
		require.Equal(t, 5, asked, "at the start, and every 15 s since")
	})
}

func TestSavedAndRisk(t *testing.T) {
	limit := int64(4 * 3600)
	now := time.Now()
	start := now.Add(-time.Hour)
	j := slurm.Job{State: slurm.Running, GPUs: 16, TimeLimitS: &limit, ElapsedS: 3600, StartedAt: &start}
	require.InDelta(t, 48, watch.Saved(j), 0.01)
	require.Zero(t, watch.Saved(slurm.Job{State: slurm.Running, GPUs: 16, ElapsedS: 3600}), "its time limit is not known")
	require.Zero(t, watch.Saved(slurm.Job{State: slurm.Failed, GPUs: 16, TimeLimitS: &limit, ElapsedS: 3600}), "it has ended")
	require.Zero(t, watch.Saved(slurm.Job{State: slurm.Running, GPUs: 16, TimeLimitS: &limit, ElapsedS: limit + 60}), "in its grace time")

	dir := t.TempDir()
	_, ok, err := watch.LastCheckpoint(dir)
	require.NoError(t, err)
	require.False(t, ok)
	require.InDelta(t, 16, watch.RiskOf(j, watch.Checkpoint{}, 0, now).GPUHours, 0.01)
	require.Zero(t, watch.RiskOf(j, watch.Checkpoint{}, 0, j.StartedAt.Add(-time.Minute)).GPUHours, "the cluster's clock is ahead")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "latest_checkpointed_iteration.txt"), []byte("5000\n"), 0o644))
	last, ok, err := watch.LastCheckpoint(dir)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "5000", last.Iteration)
	last.At = now.Add(-30 * time.Minute)
	r := watch.RiskOf(j, last, time.Hour, now)
	require.InDelta(t, 8, r.GPUHours, 0.01)
	require.False(t, r.TooLate)
	require.Equal(t, 30*time.Minute, r.Next)
	limit = 3600 + 600
	r = watch.RiskOf(j, last, time.Hour, now)
	require.True(t, r.TooLate)
	require.Equal(t, 10*time.Minute, r.Left)
	require.Zero(t, watch.RiskOf(j, last, 20*time.Minute, now).Next, "it is overdue")
	j.State = slurm.Completed
	require.Zero(t, watch.RiskOf(j, last, time.Hour, now).GPUHours, "what has ended loses nothing")
}

// A job may put a pipe in the place of the file that names its last checkpoint. Nobody waits
// for it: the same loop looks after all other jobs.
func TestAPipeInPlaceOfATrackerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "latest_checkpointed_iteration.txt"), 0o600))
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	done := make(chan error, 1)
	go func() {
		_, _, err := watch.LastCheckpoint(dir)
		done <- err
	}()
	select {
	case err := <-done:
		require.ErrorContains(t, err, "not a regular file")
	case <-ctx.Done():
		t.Fatal("the pipe is still being read")
	}
	out, err := exec.CommandContext(ctx, "sh", "-c", watch.Listing, "sh", dir).Output()
	require.NoError(t, err)
	require.Empty(t, string(out), "nor does a login node's shell wait")
}

// ReadListing of a listing by a shell gives the same checkpoint as LastCheckpoint.
func TestAListingOfCheckpointsIsReadAlike(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's $(here) [1]")
	list := func() (watch.Checkpoint, bool, error) {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", watch.Listing, "sh", dir).Output()
		require.NoError(t, err)
		return watch.ReadListing(string(out))
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	_, ok, err := list()
	require.NoError(t, err)
	require.False(t, ok)
	now := time.Now().Truncate(time.Second)
	made := func(n int, age time.Duration, file string) {
		folder := filepath.Join(dir, fmt.Sprintf("iter_%07d", n))
		require.NoError(t, os.MkdirAll(filepath.Join(folder, file), 0o755))
		require.NoError(t, os.Chtimes(folder, now.Add(-age), now.Add(-age)))
	}
	for n := range 20 {
		made(100*n, time.Duration(20-n)*time.Hour, []string{"metadata.json", ".metadata", "mp_rank_00"}[n%3])
	}
	made(9000, 0, "half") // not finished
	// Neither a file nor a folder without an iteration's name counts.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "iter_0009100"), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "iter_lastone", "metadata.json"), 0o755))
	for word, every := range map[string]time.Duration{"0": 0, "1900": time.Hour, "1500": time.Hour, "9000": time.Hour, "release": 0, "odd": 0} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "latest_checkpointed_iteration.txt"), []byte(word), 0o644))
		require.NoError(t, os.Chtimes(filepath.Join(dir, "latest_checkpointed_iteration.txt"), now, now))
		far, ok, err := list()
		near, is, wrong := watch.LastCheckpoint(dir)
		require.Equal(t, wrong == nil, err == nil, word)
		require.Equal(t, is, ok, word)
		require.Equal(t, near.At.Unix(), far.At.Unix(), word)
		require.Equal(t, every, near.Every, word)
		near.At, far.At = time.Time{}, time.Time{}
		require.Equal(t, near, far, word)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", watch.Listing, "sh", dir+"/none").Output()
	require.Error(t, err, "%s", out)
}

// The checkpoint that the tracker names counts, although a newer one is finished: a run
// may have gone back. Only one that does not exist is replaced by the newest.
func TestTheTrackerNamesTheCheckpoint(t *testing.T) {
	for name, c := range map[string]struct {
		tracker, iteration string
		step               int
		every              time.Duration
	}{
		"the oldest":             {"100", "100", 0, 0},
		"the newest":             {"200", "200", 0, time.Hour},
		"one that is not there":  {"300", "200", 200, time.Hour},
		"one before all of them": {"50", "200", 200, time.Hour},
		"a release":              {"release", "release", 0, 0},
	} {
		last, ok, err := watch.ReadListing("tracker 1700003600 " + c.tracker + "\nsaved 1700000000 iter_0000100/\nsaved 1700003600 iter_0000200/\n")
		require.NoError(t, err, name)
		require.True(t, ok, name)
		require.Equal(t, watch.Checkpoint{Iteration: c.iteration, At: time.Unix(1700003600, 0), Every: c.every, Step: c.step}, last, name)
	}
	// Two that were copied at once say nothing of the time between checkpoints.
	last, _, err := watch.ReadListing("tracker 1700003600 300\nsaved 1700000000 iter_0000100/\nsaved 1700000000 iter_0000200/\nsaved 1700003600 iter_0000300/\n")
	require.NoError(t, err)
	require.Equal(t, time.Hour, last.Every)
}
