package cluster_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// replayedCLI returns a Slurm whose commands give the recorded answers of a release.
func replayedCLI(t *testing.T, release string) *cluster.CLI {
	t.Helper()
	environ := slurmtest.ReplayCommands(t, release)
	c := cluster.NewCLI("recorded")
	c.Environ = func() []string { return environ }
	return c
}

// jobLine writes a job as one line of a golden file.
func jobLine(j slurm.Job) string {
	exit := "-"
	if j.ExitCode != nil {
		exit = *j.ExitCode
	}
	limit := int64(0)
	if j.TimeLimitS != nil {
		limit = *j.TimeLimitS
	}
	atATime := ""
	if j.ArrayLimit > 0 {
		atATime = fmt.Sprintf(" at-a-time=%d", j.ArrayLimit)
	}
	return fmt.Sprintf("%s raw=%s %s (%s) %q of %s nodes=%d %s gpus=%d limit=%ds exit=%s runs-before=%v out=%s%s",
		j.ID, j.RawID, j.State, j.Reason, j.Name, j.User, j.NumNodes, strings.Join(j.Nodes, ","), j.GPUs, limit, exit, j.Requeues, j.Stdout, atATime)
}

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file of testdata, or writes the file with -update.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "run with -update and read the difference")
}

// The golden files show what the program reads from each release's recorded answers:
// the queue, the accounts, each whole job, nodes and partitions.
func TestCLIReadsEveryRelease(t *testing.T) {
	t.Parallel()
	for _, release := range slurmtest.Releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			c := replayedCLI(t, release)
			var b strings.Builder
			list := func(title string, jobs []slurm.Job, err error) {
				require.NoError(t, err)
				require.NotEmpty(t, jobs)
				fmt.Fprintf(&b, "# %s\n", title)
				for _, j := range jobs {
					fmt.Fprintln(&b, jobLine(j))
				}
			}
			queue, err := c.Jobs(t.Context(), slurm.Filter{All: true})
			list("queue", queue, err)
			past, err := c.Past(t.Context(), slurm.Filter{Since: time.Now().Add(-time.Hour)})
			list("accounts", past, err)
			var whole []slurm.Job
			for _, id := range []slurm.JobID{"17", "17_1", "17_3", "19", "19+1", "20", "21", "18", "16", "2"} {
				j, err := c.Job(t.Context(), id)
				if release == "23.11" && id == "19" || release != "23.11" && id == "20" { // the heterogeneous job's number differs
					continue
				}
				if err != nil {
					j.Reason = err.Error()
				}
				whole = append(whole, j)
			}
			list("each by itself", whole, nil)
			_, err = c.Job(t.Context(), "999999")
			require.ErrorIs(t, err, slurm.ErrNotFound)
			nodes, err := c.Nodes(t.Context())
			require.NoError(t, err)
			fmt.Fprintln(&b, "# nodes")
			for _, n := range nodes {
				fmt.Fprintf(&b, "%s %s usable=%v free=%v gpus=%d/%d in %v %s\n", n.Name, n.State, n.Usable(), n.Free(), n.GPUsUsed, n.GPUs, n.Partitions, n.Reason)
			}
			parts, err := c.Partitions(t.Context())
			require.NoError(t, err)
			fmt.Fprintln(&b, "# partitions")
			for _, p := range parts {
				fmt.Fprintf(&b, "%s default=%v %s up=%v most=%d A/I/O/T=%d/%d/%d/%d\n", p.Name, p.Default, p.State, p.Up, p.MaxNodes, p.Allocated, p.Idle, p.Other, p.Total)
			}
			limits, err := c.Limits(t.Context(), "alice", "research", "tiny")
			require.NoError(t, err)
			fmt.Fprintln(&b, "# limits")
			for _, l := range limits {
				fmt.Fprintln(&b, l)
			}
			require.NotContains(t, b.String(), "4294967294")
			golden(t, "read-"+release+".txt", b.String())
		})
	}
}

// Every submission that a release refused is an error in Slurm's words, with advice in
// both languages.
func TestCLITellsEveryRecordedRefusal(t *testing.T) {
	t.Parallel()
	for _, release := range slurmtest.Releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			c := replayedCLI(t, release)
			tried, seen := 0, map[string]bool{}
			for _, r := range slurmtest.Refusals(t, release) {
				line := strings.Join(r.Argv, " ")
				if seen[line] {
					continue // the answer to a second attempt
				}
				seen[line] = true
				if r.Argv[0] != "sbatch" || slices.ContainsFunc(r.Argv, func(w string) bool { return strings.ContainsAny(w, `"'$`) }) {
					continue
				}
				_, err := c.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n", Args: r.Argv[1:]})
				tried++
				if r.Code == 0 {
					require.ErrorIs(t, err, slurm.ErrUnknown, "%s was accepted; without --parsable no id is printed", r.Name)
					continue
				}
				require.Error(t, err, r.Name)
				require.NotEmpty(t, slurm.FixOf(err).EN, "%s: %v", r.Name, err)
				require.NotEmpty(t, slurm.FixOf(err).ZH, "%s: %v", r.Name, err)
			}
			require.Greater(t, tried, 30)
		})
	}
}
