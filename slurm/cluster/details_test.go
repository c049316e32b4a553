package cluster

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// detailOf returns squeue's line for a job in the wide format.
func detailOf(id, exit, stdout string) string {
	return fmt.Sprintf("%-64s%-24s%-512s%-16s%-4096s%-4096s%-1024s%-24s%-24s\n", id, exit, "gres/gpu=16", "1", stdout, stdout, "afterok:6(failed)", "N/A", "N/A")
}

// For an array the element that represents it is queried, and for a heterogeneous job
// the first component, which has the log.
func TestWhatOneJobIsAskedForMore(t *testing.T) {
	for _, c := range []struct {
		name   string
		id     slurm.JobID
		rows   string
		detail []reply
		stdout string
		limit  int
	}{
		{"a job", "7", queued("7", "7", "RUNNING", "gpu1", ""), []reply{{"--jobs=7 --Format", detailOf("7", "0:0", "/w/7.out"), "", 0}}, "/w/7.out", 0},
		{
			"an array of which one runs", "7", queued("7_1", "8", "PENDING", "", "") + queued("7_2", "9", "RUNNING", "gpu1", ""),
			[]reply{{"--jobs=7_2 --Format", detailOf("7_2", "0:0", "/w/7_2.out"), "", 0}, {"--states=PENDING", "7_[1,3-9%2]\n", "", 0}},
			"/w/7_%a.out", 2,
		},
		{
			"an element beside others", "7_1", queued("7_1", "8", "PENDING", "", "") + queued("7_2", "9", "PENDING", "", ""),
			[]reply{{"--jobs=7_1 --Format", detailOf("7_1", "0:0", "/w/7_1.out"), "", 0}, {"--states=PENDING", "7_[1-9%3]\n", "", 0}},
			"/w/7_1.out", 3,
		},
		{ // squeue names another file where the script names none
			"an element whose script names no log", "7_2", queued("7_2", "9", "RUNNING", "gpu1", ""),
			[]reply{{"--jobs=7_2 --Format", detailOf("7_2", "0:0", "/w/slurm-9.out"), "", 0}, {"show job 7_2", "JobId=9\n   StdErr=/w/slurm-7_2.out\n   StdOut=/w/slurm-7_2.out\n", "", 0}},
			"/w/slurm-7_2.out", 0,
		},
		{
			"an array whose script names no log", "7", queued("7_2", "9", "PENDING", "", ""),
			[]reply{{"--jobs=7_2 --Format", detailOf("7_2", "0:0", "/w/slurm-7.out"), "", 0}, {"show job 7_2", "JobId=7\n   StdErr=/w/slurm-7_4294967294.out\n   StdOut=/w/slurm-7_4294967294.out\n", "", 0}},
			"/w/slurm-7_%a.out", 0,
		},
		{"an array's limit that is not told", "7_1", queued("7_1", "8", "PENDING", "", ""), []reply{{"--states=PENDING", "7_[1-9%3]\n", "no\n", 1}}, "", 0},
		{
			"a component", "7+1", queued("7+0", "7", "RUNNING", "gpu1", "") + queued("7+1", "8", "RUNNING", "gpu2", ""),
			[]reply{{"--jobs=7+0 --Format", detailOf("7+0", "0:0", "/w/first.out"), "", 0}, {"--jobs=7+1 --Format", detailOf("7+1", "0:0", "/w/second.out"), "", 0}},
			"/w/first.out", 0,
		},
		{
			"a component whose first is not told", "7+1", queued("7+1", "8", "RUNNING", "gpu2", ""),
			[]reply{{"--jobs=7+1 --Format", detailOf("7+1", "0:0", "/w/second.out"), "", 0}},
			"/w/second.out", 0,
		},
		{
			"the first component", "7+0", queued("7+0", "7", "RUNNING", "gpu1", ""),
			[]reply{{"--jobs=7+0 --Format", detailOf("7+0", "0:0", "/w/first.out"), "", 0}},
			"/w/first.out", 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cli, _ := clusterWith(append(c.detail, reply{"--Format", "", "", 0}, reply{"--array", c.rows, "", 0})...)
			j, err := cli.Job(t.Context(), c.id)
			require.NoError(t, err)
			require.Equal(t, c.id, j.ID)
			require.Equal(t, c.stdout, j.Stdout)
			require.Equal(t, c.limit, j.ArrayLimit)
			if c.stdout != "" {
				require.Equal(t, "afterok:6(failed)", j.Dependency)
			}
		})
	}
}

// One query returns the details of up to two hundred jobs, and no query names a job
// that is not wanted.
func TestDetailsOfManyJobs(t *testing.T) {
	answer := detailOf("7", "0:0", "/w/7.out")
	cli, p := clusterWith(reply{"--Format", answer, "", 0})
	rows := []slurm.Job{{ID: "7"}, {ID: "8"}, {ID: "9+1"}, {ID: "x"}}
	all, err := cli.Details(t.Context(), rows)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "/w/7.out", all["7"].Stdout)
	require.Contains(t, p.asked[0], "--jobs=7,8 ")
	require.Empty(t, rows[0].Stdout, "what was given stays as it is")
	for n, questions := range map[int]int{manyIDs: 1, manyIDs + 1: 2} {
		rows, p.asked = nil, nil
		for i := range n {
			rows = append(rows, slurm.Job{ID: slurm.JobID(fmt.Sprint(i + 10))})
		}
		_, err = cli.Details(t.Context(), rows)
		require.NoError(t, err)
		require.Len(t, p.asked, questions)
	}
	for said, fails := range map[string]bool{noSuchJob: false, "Unable to contact slurm controller\n": true} {
		cli, _ := clusterWith(reply{"--Format", "", said, 1})
		_, err := cli.Details(t.Context(), []slurm.Job{{ID: "7"}})
		require.Equal(t, fails, err != nil, said)
	}
}

// A job without a time limit that was suspended for a few seconds was not preempted. Only
// scontrol tells that from a job that was asked to end.
func TestAShortSuspensionIsNoPreemption(t *testing.T) {
	started := time.Now().Add(-100 * time.Second)
	row := slurm.Job{ID: "7", State: slurm.Running, StartedAt: &started, ElapsedS: 95}
	at := started.Add(50 * time.Second).Format("2006-01-02T15:04:05")
	detail := fmt.Sprintf("%-64s%-24s%-512s%-16s%-4096s%-4096s%-1024s%-24s%-24s\n", "7", "0:0", "gres/gpu=16", "0", "/w/7.out", "/w/7.out", "", at, "NONE")
	for said, preempted := range map[string]bool{
		"   SuspendTime=2026-06-11T10:00:53 SecsPreSuspend=48 LastSchedEval=2026-06-11T10:00:00\n": false,
		"   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-06-11T10:00:00\n":                 true,
	} {
		cli, _ := clusterWith(reply{"--Format", detail, "", 0}, reply{"show job 7", said, "", 0})
		told, err := cli.Details(t.Context(), []slurm.Job{row})
		require.NoError(t, err)
		require.Equal(t, preempted, told["7"].PreemptedAt != nil, said)
		alone := row
		cli.addDetail(t.Context(), &alone, []slurm.Job{row})
		require.Equal(t, preempted, alone.PreemptedAt != nil, said)
	}
	cli, _ := clusterWith(reply{"--Format", detail, "", 0}, reply{"show job 7", "", "no\n", 1})
	told, err := cli.Details(t.Context(), []slurm.Job{row})
	require.NoError(t, err)
	require.NotNil(t, told["7"].PreemptedAt, "scontrol does not tell")
}

// An older squeue leaves out a column that it does not know, and a site's wrapper fails at
// it: the job keeps the details that the cluster has.
func TestDetailsOfASqueueThatKnowsFewerColumns(t *testing.T) {
	const short = "%-64s%-24s%-512s%-16s%-4096s%-4096s%-1024s%-24s\n"
	all := detailOf("7", "0:0", "/w/7.out")
	less := fmt.Sprintf(short, "7", "0:0", "gres/gpu=16", "1", "/w/7.out", "/w/7.out", "afterok:6(failed)", "2033-05-18T05:33:20")
	few := fmt.Sprintf("%-64s%-4096s%-1024s\n", "7", "/w/7.out", "afterok:6(failed)")
	for name, c := range map[string]struct {
		replies []reply
		asked   int
	}{
		"left out":  {[]reply{{"PreemptTime", less, "squeue: error: Invalid job format specification: PreemptTime\n", 0}, {"EndTime", less, "", 0}}, 2},
		"refused":   {[]reply{{"PreemptTime", "", "squeue: error: Invalid field requested: \"PreemptTime\"\n", 1}, {"EndTime", less, "", 0}}, 2},
		"not named": {[]reply{{"PreemptTime", "", "wrapper: unknown field\n", 2}, {"Format=JobArrayID:64,STDOUT:4096,Dependency:1024", few, "", 0}}, 2},
		"all known": {[]reply{{"PreemptTime", all, "", 0}}, 1},
	} {
		cli, p := clusterWith(c.replies...)
		told, err := cli.Details(t.Context(), []slurm.Job{{ID: "7", State: slurm.Pending}})
		require.NoError(t, err, name)
		require.Equal(t, "/w/7.out", told["7"].Stdout, name)
		require.Equal(t, "afterok:6(failed)", told["7"].Dependency, name)
		require.Nil(t, told["7"].PreemptedAt, name)
		require.Len(t, p.asked, c.asked, name)
	}
	cli, p := clusterWith(reply{"PreemptTime", less, "squeue: error: Invalid job format specification: PreemptTime\n", 0}, reply{"EndTime", less, "", 0})
	for range 3 {
		told, err := cli.Details(t.Context(), []slurm.Job{{ID: "7"}})
		require.NoError(t, err)
		require.Equal(t, 1, told["7"].Restarts)
	}
	require.Len(t, p.asked, 4, "what it does not know is not asked for at each poll")
	cli, p = clusterWith(reply{"--Format", "", "wrapper: no\n", 2})
	_, err := cli.Details(t.Context(), []slurm.Job{{ID: "7"}})
	require.ErrorContains(t, err, "no")
	require.Len(t, p.asked, 2, "a squeue that refuses everything is not asked for ever")
}

// Each error text in slurmrestd's answer is reported once, and harmless ones not at
// all.
func TestWhatAnAnswerSaysWentWrong(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`: nil,
		`{"errors":[{"error":"No error","description":"x"}]}`:                                                                           nil,
		`{"errors":[{"description":"No error"}]}`:                                                                                       nil,
		`{"errors":[{"error":"A","description":"No error"}]}`:                                                                           {"A"},
		`{"errors":[{"error":"A","description":"B"},{"error":"A"}]}`:                                                                    {"A", "B"},
		`{"errors":[{"description":"only words"}]}`:                                                                                     {"only words"},
		`{"errors":[{"error":"A"}]}`:                                                                                                    {"A"},
		`{"results":[{"error_code":0},{"error_code":2022,"error":"ended"}]}`:                                                            nil,
		`{"results":[{"error_code":0},{"error_code":2000,"error":"no","why":"because"}]}`:                                               {"no"},
		`{"results":[{"error_code":2022,"why":"ended"}]}`:                                                                               {"ended"},
		`{"status":[{"error":{"code":2021,"message":"done"}},{"error":{"code":0,"message":"fine"}}]}`:                                   nil,
		`{"status":[{"error":{"code":5,"string":"text","message":"words"}},{"error":{"code":6,"string":"text"}},{"error":{"code":7}}]}`: {"words", "text", "Slurm's error 7"},
		`{"results":[{"error_code":7}]}`:                                                                                                {"Slurm's error 7"},
	} {
		var a answer
		require.NoError(t, json.Unmarshal([]byte(text), &a))
		require.Equal(t, want, a.refusals(), text)
	}
	for text, want := range map[string]int64{`{}`: 0, `{"job_id":7}`: 7, `{"job_id":7.5}`: 0, `{"job_id":"7"}`: 0, `{"job_id":0}`: 0} {
		var a answer
		require.NoError(t, json.Unmarshal([]byte(text), &a))
		require.Equal(t, want, a.submitted(), text)
	}
}
