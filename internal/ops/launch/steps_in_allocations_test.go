package launch_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A stepSite is a site whose jobs accept steps.
type stepSite struct {
	*opstest.Site
	launched []slurm.Launch
	steps    map[string]slurm.JobID
	step     slurm.Job
}

func (h *stepSite) Launch(_ context.Context, l slurm.Launch) (slurm.JobID, error) {
	h.launched = append(h.launched, l)
	id := l.Job + ".0"
	h.steps[l.Step] = id
	return id, h.Refuse
}

func (h *stepSite) FindStep(_ context.Context, _ slurm.JobID, name string) (slurm.JobID, bool, error) {
	id, ok := h.steps[name]
	return id, ok, nil
}

func (h *stepSite) Step(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	h.step.ID = id
	return h.step, nil
}

func callWithAllocation(t *testing.T) (*ops.Call, *stepSite) {
	h := &stepSite{Site: &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"5": {ID: "5", User: "alice", State: slurm.Running, Nodes: []string{"a1", "a2", "a3", "a4"}, GPUs: 32},
		"7": {ID: "7", User: "alice", State: slurm.Running, Nodes: []string{"gpu1", "gpu2"}, GPUs: 16},
		"8": {ID: "8", User: "alice", State: slurm.Pending},
		"6": {ID: "6", User: "alice", State: slurm.Running, Nodes: []string{"gpu5", "gpu6"}, GPUs: 16},
		"9": {ID: "9", User: "bob", State: slurm.Running, Nodes: []string{"gpu3", "gpu4"}, GPUs: 16},
	}}, steps: map[string]slurm.JobID{}, step: slurm.Job{State: slurm.Completed, User: "alice"}}
	c := opstest.NewCall(t, h.Site)
	c.Clusters["test"] = h
	return c, h
}

func into(id string, more ...string) []string {
	return append(append([]string{"--into", id}, more...), opstest.GoodJob...)
}

func TestAStepIsStartedInAnAllocationAgainAndAgain(t *testing.T) {
	c, h := callWithAllocation(t)
	_, err := opstest.Do(t, c, launch.Submit(), into("7")...)
	require.True(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "this starts gpt as a step of job 7: 2 nodes, 16 GPUs")
	out, err := opstest.Do(t, c, launch.Submit(), into("7", "--dry-run")...)
	require.NoError(t, err)
	require.Nil(t, out.(launch.SubmitOut).JobID)
	require.Empty(t, h.launched)

	out, err = opstest.Do(t, c, launch.Submit(), into("7", "--yes")...)
	require.NoError(t, err)
	sub := out.(launch.SubmitOut)
	require.Equal(t, slurm.JobID("7.0"), *sub.JobID)
	require.Len(t, h.launched, 1)
	l := h.launched[0]
	require.Equal(t, slurm.JobID("7"), l.Job)
	require.NotContains(t, l.Script, "#SBATCH")
	require.Equal(t, l.Base+".out", sub.LogPaths[0])
	require.Empty(t, h.Submitted, "nothing was queued")

	_, err = opstest.Do(t, c, launch.Submit(), into("7", "--yes")...)
	require.NoError(t, err)
	require.Len(t, h.launched, 2)
	require.NotEqual(t, l.Base, h.launched[1].Base, "each launch has files of its own")
	require.NotEqual(t, l.Step, h.launched[1].Step)

	for range 2 {
		out, err = opstest.Do(t, c, launch.Submit(), into("7", "--yes", "--idempotency-key", "k")...)
		require.NoError(t, err)
	}
	require.True(t, out.(launch.SubmitOut).AlreadySubmitted)
	require.Len(t, h.launched, 3, "one key, one launch")
	out, err = opstest.Do(t, c, launch.Submit(), into("6", "--yes", "--idempotency-key", "k")...)
	require.NoError(t, err)
	require.Equal(t, slurm.JobID("6.0"), *out.(launch.SubmitOut).JobID, "a key is of one allocation")
}

func TestAnAllocationMustBeOnesOwnAndFit(t *testing.T) {
	c, h := callWithAllocation(t)
	for words, want := range map[string]struct {
		in   []string
		code ops.Code
		says string
	}{
		"waits":         {into("8", "--yes"), ops.BadInput, "job 8 is PENDING and has no nodes"},
		"another's":     {into("9", "--yes"), ops.NotAllowed, "belongs to bob"},
		"unknown":       {into("4", "--yes"), ops.NotFound, "not known"},
		"no id":         {into("x", "--yes"), ops.BadInput, "is not a job id"},
		"other size":    {into("5", "--yes"), ops.BadInput, "this asks for 2 nodes, and job 5 has 4"},
		"too many GPUs": {into("7", "--yes", "--gpus-per-node", "16"), ops.BadInput, "job 7 has 8"},
		"an array":      {into("7", "--yes", "--array", "1-3"), ops.BadInput, "does not go together with into"},
	} {
		_, err := opstest.Do(t, c, launch.Submit(), want.in...)
		require.Equal(t, want.code, ops.AsError(err).Code, "%s: %v", words, err)
		require.ErrorContains(t, err, want.says, words)
	}
	require.Empty(t, h.launched)

	c, _ = callWithAllocation(t)
	c.Clusters["test"] = &opstest.Site{}
	_, err := opstest.Do(t, c, launch.Submit(), into("7", "--yes")...)
	require.ErrorContains(t, err, "which starts jobs and no steps")
	require.Equal(t, "into", ops.AsError(err).Field)
}

func TestAStepsLogsAreItsOwn(t *testing.T) {
	c, h := callWithAllocation(t)
	tree := t.TempDir()
	words := into("7", "--yes")
	words[slices.Index(words, "/lustre/m")] = tree
	out, err := opstest.Do(t, c, launch.Submit(), words...)
	require.NoError(t, err)
	id := string(*out.(launch.SubmitOut).JobID)
	logs := h.launched[0].Base
	require.NoError(t, os.MkdirAll(filepath.Dir(logs), 0o755))
	require.NoError(t, os.WriteFile(logs+".out", []byte("hello from the step\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "logs", "gpt-7-other.out"), []byte("another launch\n"), 0o644))
	got, err := opstest.Do(t, c, joblogs.Logs(), id)
	require.NoError(t, err)
	require.Len(t, got.(joblogs.LogsOut).Lines, 1)
	require.Equal(t, "hello from the step", got.(joblogs.LogsOut).Lines[0].Text)
	st, err := opstest.Do(t, c, jobcontrol.Status(), id)
	require.NoError(t, err)
	require.Equal(t, logs+".out", st.(jobcontrol.StatusOut).Stdout)
	d, err := opstest.Do(t, c, joblogs.Diagnose(), id)
	require.NoError(t, err)
	require.Equal(t, "success", d.(joblogs.DiagnoseOut).Class)
}

// What a specification leaves open becomes as large as the allocation.
func TestAStepIsAsLargeAsItsAllocation(t *testing.T) {
	for name, tt := range map[string]struct {
		held   slurm.Job
		words  []string
		starts string // empty: nothing starts
		says   string
	}{
		"as asked":                      {slurm.Job{Nodes: []string{"a", "b"}, GPUs: 16}, []string{"--nodes", "2", "--gpus-per-node", "8"}, "2 nodes, 16 GPUs", ""},
		"all of its GPUs":               {slurm.Job{Nodes: []string{"a", "b"}, GPUs: 8}, []string{"--nodes", "2"}, "2 nodes, 8 GPUs", ""},
		"all of its nodes":              {slurm.Job{Nodes: []string{"a", "b"}, GPUs: 16}, nil, "2 nodes, 16 GPUs", ""},
		"fewer GPUs than it has":        {slurm.Job{Nodes: []string{"a", "b"}, GPUs: 16}, []string{"--gpus-per-node", "4"}, "2 nodes, 8 GPUs", ""},
		"more GPUs than it has":         {slurm.Job{Nodes: []string{"a", "b"}, GPUs: 8}, []string{"--gpus-per-node", "8"}, "", "8 GPUs per node are requested, and job 3 has 4"},
		"one whose GPUs are not told":   {slurm.Job{Nodes: []string{"a", "b"}}, []string{"--gpus-per-node", "8"}, "2 nodes, 16 GPUs", ""},
		"more nodes than it has":        {slurm.Job{Nodes: []string{"a"}, GPUs: 8}, []string{"--nodes", "2"}, "", "this asks for 2 nodes, and job 3 has 1"},
		"one that runs and has no node": {slurm.Job{}, nil, "", "job 3 is RUNNING and has no nodes"},
	} {
		c, h := callWithAllocation(t)
		tt.held.ID, tt.held.User, tt.held.State = "3", "alice", slurm.Running
		h.Put(tt.held)
		words := slices.Concat([]string{"--into", "3", "--name", "gpt", "--gpu", "h100", "--worktree", "/lustre/m"}, tt.words, opstest.GoodJob[slices.Index(opstest.GoodJob, "--"):])
		_, err := opstest.Do(t, c, launch.Submit(), words...)
		if tt.starts != "" {
			require.True(t, ops.AsError(err).Confirm, "%s: %v", name, err)
			require.ErrorContains(t, err, "this starts gpt as a step of job 3: "+tt.starts, name)
			continue
		}
		require.ErrorContains(t, err, tt.says, name)
		require.Empty(t, h.launched, name)
	}
}

// A running step's elapsed time comes from this machine's clock.
func TestAStepTellsHowLongItRuns(t *testing.T) {
	c, h := callWithAllocation(t)
	begun := c.Now().Add(-90 * time.Second)
	for state, want := range map[slurm.State]int64{slurm.Running: 90, slurm.Completed: 5} {
		h.step = slurm.Job{State: state, StartedAt: &begun, ElapsedS: 5, User: "alice"}
		_, j, err := launch.JobOrStep(t.Context(), c, "", "7.0")
		require.NoError(t, err)
		require.Equal(t, want, j.ElapsedS)
		require.Equal(t, "test", j.Cluster)
	}
	h.step = slurm.Job{State: slurm.Running, ElapsedS: 5}
	_, j, err := launch.JobOrStep(t.Context(), c, "", "7.0")
	require.NoError(t, err)
	require.Equal(t, int64(5), j.ElapsedS)
	c.Clusters["test"] = &opstest.Site{}
	_, _, err = launch.JobOrStep(t.Context(), c, "", "7.0")
	require.Error(t, err, "slurmrestd knows no steps")
}
