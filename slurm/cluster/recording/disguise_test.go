package recording

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recording keeps numbers, times and Slurm's own words, replaces equal names by equal
// ones, and contains no name of the site.
func TestADisguiseKeepsSlurmsWordsAlone(t *testing.T) {
	all := []Answer{
		{Name: "config.txt", Text: "ClusterName = secret\nMinJobAge = 300 sec\nSlurmctldHost[0] = secret1\n"},
		{Name: "jobs.txt", Text: "JobId=7 UserId=alice(1001) JobState=RUNNING Reason=None NodeList=secret[1-2] TRES=cpu=2,gres/gpu:h100=16 WorkDir=/home/alice bare\n" +
			strings.Repeat("JobId=8\n", 50)},
		{Name: "partitions.txt", Text: "prod*" + Separator + "up" + Separator + "2-00:00:00" + Separator + "alice\nprod*"},
		{Name: "jobs.json", Text: `{"jobs":[{"name":"secret run","user_id":1001,"group_id":1001,"uid":1001,"gid":1001,"priority":4242,"job_state":"RUNNING","state_reason":"by alice@site","nodes":"secret1"}],` +
			`"errors":[{"error":"no such user: alice"}],"nodes":[{"name":"secret1"}]}`},
		{Name: "half.json", Text: `{"jobs":`, Error: "alice may not ask secret1"},
		{Name: "version.txt", Text: "slurm 24.11.7"},
		{Name: "none.txt"},
	}
	Disguise(all)
	got := map[string]string{}
	for _, r := range all {
		got[r.Name] = r.Text
		for _, private := range []string{"secret", "alice", "1001", "prod", "home", "site", "bare"} {
			require.NotContains(t, r.Text+r.Error, private, r.Name)
		}
	}
	require.Equal(t, "MinJobAge = 300 sec\n", got["config.txt"])
	require.Contains(t, got["jobs.txt"], "JobId=7 ")
	require.Contains(t, got["jobs.txt"], " JobState=RUNNING Reason=None NodeList=node[1-2] TRES=cpu=2,gres/gpu:h100=16 WorkDir=/x")
	require.Equal(t, mostRecorded, strings.Count(got["jobs.txt"], "\n"))
	fields := strings.Split(got["partitions.txt"], Separator)
	require.Equal(t, []string{"up", "2-00:00:00"}, fields[1:3])
	_, again, _ := strings.Cut(fields[3], "\n")
	require.Equal(t, fields[0], again, "one name has one other")
	require.True(t, strings.HasSuffix(again, "*"), "the default partition is known")
	require.Contains(t, got["jobs.json"], `"nodes": "node1"`)
	require.Contains(t, got["jobs.json"], `"job_state": "RUNNING"`)
	require.Contains(t, got["jobs.json"], `"user_id": 1000`)
	require.Contains(t, got["jobs.json"], `"priority": 4242`)
	require.Equal(t, "slurm 24.11.7", got["version.txt"])
	require.Empty(t, got["none.txt"])
}
