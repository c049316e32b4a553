package cluster_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// Recorded samples are parsed for every release.
func TestRecordedSamplesAreRead(t *testing.T) {
	for _, release := range slurmtest.Releases {
		t.Run(release, func(t *testing.T) {
			readRecorded(t, func(name string) string { return slurmtest.Recorded(t, release, name) })
		})
	}
}

// separator separates the fields of recorded listings.
const separator = "\x1fREC\x1f"

// readRecorded parses a recording in all its forms, which must give the same jobs.
func readRecorded(t *testing.T, file func(string) string) {
	t.Helper()
	queue, err := slurm.ParseQueue(file("queue.txt"), separator)
	require.NoError(t, err)
	past, err := slurm.ParseAccounts(file("accounts.txt"), separator)
	require.NoError(t, err)
	fromJSON := func(name, list string, read func(map[string]any)) {
		t.Helper()
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(file(name)), &doc), name)
		entries, _ := doc[list].([]any)
		if doc["errors"] != nil && strings.Contains(file(name), "Parsing of 1795136333 for timestamp failed") {
			return // 23.11's answer to a time that it does not take
		}
		require.NotEmpty(t, entries, "%s: %.500s", name, file(name))
		for _, e := range entries {
			read(e.(map[string]any)) //nolint:forcetypeassert // a list of objects
		}
	}
	for _, source := range []string{"squeue.json", "rest-jobs.json"} {
		states := map[slurm.JobID]slurm.Job{}
		fromJSON(source, "jobs", func(m map[string]any) {
			for _, j := range slurm.JobsFromJSON(m) {
				states[j.ID] = j
			}
		})
		compared := 0
		for _, q := range queue {
			j, ok := states[q.ID]
			if !ok && source == "squeue.json" && q.State.Ended() {
				continue // left out from 24.11 on, unless all states are asked for
			}
			require.True(t, ok, "%s lacks %s: %v", source, q.ID, states)
			require.Equal(t, q.State, j.State, "%s %s", source, q.ID)
			if source == "squeue.json" { // recorded together, the same name has the same other
				require.Equal(t, q.Name, j.Name, "%s %s", source, q.ID)
			}
			require.ElementsMatch(t, q.Nodes, j.Nodes, "%s %s", source, q.ID)
			require.Equal(t, q.TimeLimitS, j.TimeLimitS, "%s %s", source, q.ID)
			require.Equal(t, q.GPUs, j.GPUs, "%s %s", source, q.ID)
			compared++
		}
		require.GreaterOrEqual(t, compared, 6)
	}
	ended := 0
	for _, source := range []string{"sacct.json", "rest-accounts.json"} {
		fromJSON(source, "jobs", func(m map[string]any) {
			j := slurm.AccountFromJSON(m)
			for _, p := range past {
				if p.ID == j.ID && p.State.Ended() {
					require.Equal(t, p.State, j.State, "%s %s", source, p.ID)
					if source == "sacct.json" {
						require.Equal(t, p.Name, j.Name, "%s %s", source, p.ID)
					}
					ended++
				}
			}
		})
	}
	require.Positive(t, ended)
	nodes, err := slurm.ParseNodes(file("nodes.txt"), separator)
	require.NoError(t, err)
	require.NotEmpty(t, nodes)
	var restNodes []slurm.Node
	fromJSON("rest-nodes.json", "nodes", func(m map[string]any) { restNodes = append(restNodes, slurm.NodeFromJSON(m)) })
	for _, n := range nodes {
		for _, r := range restNodes {
			if n.Name == r.Name {
				require.Equal(t, n.State, r.State, n.Name)
				require.Equal(t, n.GPUs, r.GPUs, n.Name)
				require.Equal(t, n.CPUs, r.CPUs, n.Name)
			}
		}
	}
	parts, err := slurm.ParsePartitions(file("partitions.txt"), separator)
	require.NoError(t, err)
	at := 0
	fromJSON("rest-partitions.json", "partitions", func(m map[string]any) {
		p, want := slurm.PartitionFromJSON(m, restNodes), parts[at]
		at++
		require.NotNil(t, p.TimeLimitS)
		require.Equal(t, want.TimeLimitS, p.TimeLimitS)
		require.Equal(t, want.MaxNodes, p.MaxNodes)
		require.Equal(t, want.Total, p.Total)
		if p.Default {
			require.True(t, want.Default) // from v0.0.39 to v0.0.44 it is not told
		}
		require.Equal(t, want.Up, p.Up)
	})
	require.Len(t, parts, at)
	het, ok := "", false
	for _, j := range queue {
		if id, component, is := strings.Cut(string(j.ID), "+"); is && component == "1" {
			het, ok = id, true
		}
	}
	require.True(t, ok, "the recording has a heterogeneous job")
	j, ok := slurm.Fold(slurm.JobID(het), queue)
	require.True(t, ok)
	require.Equal(t, slurm.Running, j.State)
	require.Len(t, j.Nodes, 2)
}
