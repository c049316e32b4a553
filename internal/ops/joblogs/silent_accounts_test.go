package joblogs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A silentSite is a cluster whose accounts never answer.
type silentSite struct{ *opstest.Site }

func (silentSite) Past(context.Context, slurm.Filter) ([]slurm.Job, error) {
	return nil, slurm.FromStderr("sacct", "sacct: error: Connection refused")
}

// Job asks the accounts for a job that has left the queue.
func (silentSite) Job(context.Context, slurm.JobID) (slurm.Job, error) {
	return slurm.Job{}, &slurm.AccountsError{Err: slurm.FromStderr("sacct", "sacct: error: Connection refused")}
}

// While the accounts do not answer, the logs of an ended job that was submitted from here are
// found by what is stored, also where its script names another folder, and every answer says
// that its end is not known. No other job is made up, and nothing is changed.
func TestTheLogsOfAnEndedJobAreReadWithoutTheAccounts(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "out"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out", "gpt-7.log"), []byte("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"), 0o600))
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = silentSite{&opstest.Site{}}
	_, err := opstest.Do(t, c, joblogs.Logs(), "7")
	require.ErrorContains(t, err, "Connection refused")
	st, err := c.Store()
	require.NoError(t, err)
	require.NoError(t, st.Adopt(t.Context(), store.Submission{
		Key: "k", Token: "k", Cluster: "test", JobID: "7", Owner: "alice", Name: "gpt", Dir: dir, Spec: []byte("{}"), CreatedAt: c.Now(),
		Script: "#!/bin/bash\n#SBATCH --output=out/%x-%j.log\n",
	}))
	for _, part := range []string{"7_0", "7+1"} {
		_, err = opstest.Do(t, c, joblogs.Logs(), part)
		require.ErrorContains(t, err, "Connection refused", "the job has no part %s", part)
	}
	out, err := opstest.Do(t, c, joblogs.Logs(), "7")
	require.NoError(t, err)
	require.Len(t, out.(joblogs.LogsOut).Lines, 1)
	require.True(t, out.(joblogs.LogsOut).Unaccounted)
	require.Contains(t, drawn(t, out), "how it ended is not known")
	out, err = opstest.Do(t, c, joblogs.Diagnose(), "7")
	require.NoError(t, err)
	require.Equal(t, outcome.CUDAOOM, out.(joblogs.DiagnoseOut).Class)
	require.Contains(t, drawn(t, out), "how it ended is not known")
	_, err = joblogs.DiagnoseFailure(t.Context(), c, slurm.Job{ID: "7", Cluster: "test", State: slurm.Failed})
	require.ErrorContains(t, err, "how it ended is not known", "a report that is kept waits for the accounts")
	_, _, err = c.Job(t.Context(), "test", "7")
	require.ErrorContains(t, err, "Connection refused", "what changes a job")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
	_, err = opstest.Do(t, c, joblogs.Diagnose(), "7")
	require.ErrorContains(t, err, "how it ended is not known", "neither the accounts nor a log tell whether it failed")
}

// What is stored of a job gives a server no more files than its accounts do: of the log that its
// script names only what belongs to the job's user is read, whoever asks.
func TestASilentServerReadsOnlyTheLogsOfTheJobsUser(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("a line of somebody else\n"), 0o600))
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = silentSite{&opstest.Site{}}
	c.Self = "megatron-ops"
	st, err := c.Store()
	require.NoError(t, err)
	for id, owner := range map[slurm.JobID]string{"7": "nobody", "8": "no-such-user"} {
		require.NoError(t, st.Adopt(t.Context(), store.Submission{
			Key: string(id), Token: string(id), Cluster: "test", JobID: id, Owner: owner, Name: "gpt", Dir: dir, Spec: []byte("{}"), CreatedAt: c.Now(),
			Script: "#!/bin/bash\n#SBATCH --output=" + filepath.Join(dir, "secret") + "\n",
		}))
	}
	for _, who := range []ops.Caller{{Surface: ops.Slack, ID: "T1/U1", User: "nobody"}, {Surface: ops.Slack, ID: "T1/U2", User: "bob"}, {Surface: ops.MCPHTTP, ID: "bob", User: "bob"}, {Surface: ops.Web, ID: "bob", User: "bob"}} {
		c.Who = who
		for _, o := range []ops.Op{joblogs.Logs(), joblogs.Diagnose()} {
			for id, why := range map[string]string{"7": "does not belong to nobody", "8": "no-such-user is not known"} {
				out, err := opstest.Do(t, c, o, id)
				require.ErrorContains(t, err, why, o.Name)
				require.NotContains(t, fmt.Sprint(out), "somebody else")
			}
		}
	}
}

func drawn(t *testing.T, out any) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, view.Text(&b, out.(view.Viewer).View(lang.EN), view.Style{}))
	return b.String()
}
