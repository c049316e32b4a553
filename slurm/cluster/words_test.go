package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// What a change asks of scontrol: nothing that was not asked for, and whole minutes that are not fewer.
func TestWhatAChangeAsksFor(t *testing.T) {
	zero, note := int64(0), "mine"
	for want, u := range map[string]slurm.Update{
		"": {}, "Partition=dev": {Partition: "dev"}, "TimeLimit=90": {TimeLimit: 90 * time.Minute}, "TimeLimit=2": {TimeLimit: 61 * time.Second},
		"NumNodes=2 QOS=high": {NumNodes: 2, QOS: "high"}, "ExcNodeList=gpu[1-2]": {Exclude: []string{"gpu1", "gpu2"}},
		"Priority=0 Comment=mine": {Priority: &zero, Comment: &note},
	} {
		require.Equal(t, strings.TrimSpace("update JobId=7 "+want), strings.Join(updateArgs("7", u), " "))
	}
	for _, c := range []struct {
		shown string
		nodes int
		want  string
	}{
		{"NumNodes=4 NumCPUs=96 NumTasks=32", 2, "NumNodes=2-2 NumTasks=16 NumCPUs=48"},
		{"NumNodes=4-4 NumCPUs=96-96 NumTasks=32", 2, "NumNodes=2-2 NumTasks=16 NumCPUs=48"},
		{"NumNodes=4 NumCPUs=96 NumTasks=30", 2, "NumNodes=2"},
		{"NumNodes=4 NumCPUs=95 NumTasks=32", 2, "NumNodes=2"},
		{"NumNodes=4 NumTasks=4", 3, "NumNodes=3-3 NumTasks=3"},
		{"NumNodes=4 NumNodes=8 NumTasks=4", 3, "NumNodes=3-3 NumTasks=3"},
		{"", 2, "NumNodes=2"},
	} {
		require.Equal(t, c.want, strings.Join(sizeArgs(c.shown, c.nodes), " "), c.shown)
	}
}

// An array of which something has ended was changed where scontrol says so of the rest alone.
func TestWhetherAllThatIsLeftWasChanged(t *testing.T) {
	for said, done := range map[string]bool{
		"": false, "6_2-3: No error\n": true, "6_1: Job has already finished\n": false, "6_1: Job has already finished\n\n6_2-3: No error\n": true,
		"6_2: No error\n6_3: Access denied\n": false,
	} {
		require.Equal(t, done, allLeftDone(said), said)
	}
}

// A recording keeps numbers, times and Slurm's own words, the same name for the same thing, and nothing of the site's.
func TestADisguiseKeepsSlurmsWordsAlone(t *testing.T) {
	all := []Recording{
		{Name: "config.txt", Answer: "ClusterName = secret\nMinJobAge = 300 sec\nSlurmctldHost[0] = secret1\n"},
		{Name: "jobs.txt", Answer: "JobId=7 UserId=alice(1001) JobState=RUNNING Reason=None NodeList=secret[1-2] TRES=cpu=2,gres/gpu:h100=16 WorkDir=/home/alice bare\n" +
			strings.Repeat("JobId=8\n", 50)},
		{Name: "partitions.txt", Answer: "prod*" + RecordedSeparator + "up" + RecordedSeparator + "2-00:00:00" + RecordedSeparator + "alice\nprod*"},
		{Name: "jobs.json", Answer: `{"jobs":[{"name":"secret run","user_id":1001,"job_state":"RUNNING","state_reason":"by alice@site","nodes":"secret1"}],` +
			`"errors":[{"error":"no such user: alice"}],"nodes":[{"name":"secret1"}]}`},
		{Name: "half.json", Answer: `{"jobs":`, Error: "alice may not ask secret1"},
		{Name: "version.txt", Answer: "slurm 24.11.7"},
		{Name: "none.txt"},
	}
	disguise(all)
	got := map[string]string{}
	for _, r := range all {
		got[r.Name] = r.Answer
		for _, private := range []string{"secret", "alice", "1001", "prod", "home", "site", "bare"} {
			require.NotContains(t, r.Answer+r.Error, private, r.Name)
		}
	}
	require.Equal(t, "MinJobAge = 300 sec\n", got["config.txt"])
	require.Contains(t, got["jobs.txt"], "JobId=7 ")
	require.Contains(t, got["jobs.txt"], " JobState=RUNNING Reason=None NodeList=node[1-2] TRES=cpu=2,gres/gpu:h100=16 WorkDir=/x")
	require.Equal(t, mostRecorded, strings.Count(got["jobs.txt"], "\n"))
	fields := strings.Split(got["partitions.txt"], RecordedSeparator)
	require.Equal(t, []string{"up", "2-00:00:00"}, fields[1:3])
	_, again, _ := strings.Cut(fields[3], "\n")
	require.Equal(t, fields[0], again, "one name has one other")
	require.True(t, strings.HasSuffix(again, "*"), "the default partition is known")
	require.Contains(t, got["jobs.json"], `"nodes": "node1"`)
	require.Contains(t, got["jobs.json"], `"job_state": "RUNNING"`)
	require.Contains(t, got["jobs.json"], `"user_id": 1000`)
	require.Equal(t, "slurm 24.11.7", got["version.txt"])
	require.Empty(t, got["none.txt"])
}
