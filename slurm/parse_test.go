package slurm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

const sep = "\x1fQ7\x1f"

// queueLine returns a line of squeue in QueueFormat.
func queueLine(fields ...string) string {
	return sep + strings.Join(fields, sep) + sep + "\n"
}

var running = queueLine("34_2", "36", "RUNNING", "None", "alice", "research", "prod", "normal", "2", "gpu[1-2]",
	"1-02:03:04", "2-00:00:00", "1795163315", "1795163316", "1795336116", "100", "gres:gpu:8", "/work/a", "we|ird\n na'me", "tok 4711|COMPLETED")

func TestParseQueue(t *testing.T) {
	pending := queueLine("35", "35", "PENDING", "ReqNodeNotAvail, UnavailableNodes:gpu[3-4]", "bob", "(null)", "dev", "normal", "4", "",
		"0:00", "UNLIMITED", "1795163315", "1795200000", "N/A", "4294901759", "gres/gpu:h100:4(S:0-1)", "/w", "n", "(null)")
	jobs, err := slurm.ParseQueue(running+pending, sep)
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	j := jobs[0]
	require.EqualValues(t, "34_2", j.ID)
	require.EqualValues(t, "36", j.RawID)
	require.Equal(t, []string{"gpu1", "gpu2"}, j.Nodes)
	require.EqualValues(t, 26*3600+3*60+4, j.ElapsedS)
	require.EqualValues(t, 48*3600, *j.TimeLimitS)
	require.Equal(t, 16, j.GPUs)
	require.Equal(t, "we|ird\n na'me", j.Name)
	require.Equal(t, "tok 4711|COMPLETED", j.Comment)
	require.Nil(t, j.EndedAt, "an end that is only foreseen is none")
	require.Equal(t, time.Unix(1795163316, 0), *j.StartedAt)
	p := jobs[1]
	require.Nil(t, p.StartedAt)
	require.Equal(t, time.Unix(1795200000, 0), *p.EstStart)
	require.Nil(t, p.TimeLimitS)
	require.Equal(t, 16, p.GPUs)
	require.Empty(t, p.Account)
	require.Contains(t, p.Reason, "UnavailableNodes:gpu[3-4]")
}

// The controller gives a job that was cancelled while it waited the time of its end as
// its start.
func TestAJobCancelledWhileItWaitedHasNoStart(t *testing.T) {
	row := func(nodes string) string {
		return queueLine("5_3", "5", "CANCELLED", "None", "alice", "research", "dev", "normal", "2", nodes,
			"0:00", "10:00", "1795163315", "1795163400", "1795163400", "100", "gres:gpu:8", "/w", "n", "(null)")
	}
	jobs, err := slurm.ParseQueue(row("")+row("gpu[1-2]"), sep)
	require.NoError(t, err)
	require.Nil(t, jobs[0].StartedAt)
	require.Equal(t, time.Unix(1795163400, 0), *jobs[0].EndedAt)
	require.NotNil(t, jobs[1].StartedAt, "this one had nodes")
	waited := slurm.JobsFromJSON(map[string]any{"job_id": 5.0, "job_state": "CANCELLED", "start_time": 1795163400.0, "end_time": 1795163400.0})
	require.Nil(t, waited[0].StartedAt)
}

// An answer that is cut anywhere gives an error or a shorter list, but never a panic or
// a job that does not exist.
func TestParseQueueCutAnywhere(t *testing.T) {
	whole := running + running
	for n := range len(whole) {
		jobs, err := slurm.ParseQueue(whole[:n], sep)
		if err == nil {
			require.LessOrEqual(t, len(jobs), 2)
			for _, j := range jobs {
				require.EqualValues(t, "34_2", j.ID)
			}
		}
	}
}

func accountLine(id, state, exit, name, comment string) string {
	return strings.Join([]string{
		id, id, state, exit, "alice", "research", "prod", "normal", "2", "gpu[1-2]", "61", "60",
		"1795163315", "1795163316", "1795163377", "100", "billing=2,cpu=2,gres/gpu=16,gres/gpu:h100=16,node=2", "None", "/work", name, comment,
	}, sep) + "\n"
}

func TestParseAccounts(t *testing.T) {
	out := accountLine("7", "PREEMPTED", "0:0", "a", "") +
		accountLine("7", "REQUEUED", "0:0", "a", "") +
		accountLine("7", "CANCELLED by 1001", "0:15", "two\nlines\n9", "last\nline") +
		accountLine("8", "OUT_OF_MEMORY", "0:125", "b", "tok")
	jobs, err := slurm.ParseAccounts(out, sep)
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	j := jobs[0]
	require.Equal(t, slurm.Cancelled, j.State)
	require.Equal(t, "by uid 1001", j.Reason)
	require.Equal(t, []slurm.State{slurm.Preempted, slurm.Requeued}, j.Requeues)
	require.Equal(t, 2, j.Restarts)
	require.Equal(t, "0:15", *j.ExitCode)
	require.Equal(t, 16, j.GPUs)
	require.Equal(t, "two\nlines\n9", j.Name)
	require.Equal(t, "last\nline", j.Comment)
	require.EqualValues(t, 3600, *j.TimeLimitS)
	require.Equal(t, slurm.OutOfMemory, jobs[1].State)
	for n := range len(out) {
		_, _ = slurm.ParseAccounts(out[:n], sep)
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]string{
		"30": "30m0s", "1:30": "1m30s", "01:02:03": "1h2m3s", "2-3": "51h0m0s", "2-3:4": "51h4m0s", "1-02:03:04": "26h3m4s", "0:00": "0s",
		"213504-00:00:00": "2562047h47m16s", "307445734:00:00": "2562047h47m16s", // the longest duration, not a short one
	} {
		d, ok := slurm.ParseDuration(in)
		require.True(t, ok, in)
		require.Equal(t, want, d.String(), in)
	}
	for _, in := range []string{"", "UNLIMITED", "soon", "-5", "1:2:3:4", "1-", "99999999999999"} {
		_, ok := slurm.ParseDuration(in)
		require.False(t, ok, in)
	}
}

func TestParseMemory(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "512": 512, "64G": 65536, "1T": 1 << 20, "2048K": 2, "10M": 10} {
		mb, ok := slurm.ParseMemory(in)
		require.True(t, ok, in)
		require.Equal(t, want, mb, in)
	}
	for _, in := range []string{"", "G", "much", "1GB", "-1"} {
		_, ok := slurm.ParseMemory(in)
		require.False(t, ok, in)
	}
}

func TestEveryStateIsExplained(t *testing.T) {
	final := map[string]bool{}
	for _, s := range slurm.States() {
		require.NotEmpty(t, s.Says.EN, s.Word)
		require.NotEmpty(t, s.Says.ZH, s.Word)
		require.Equal(t, s.Do.EN == "", s.Do.ZH == "", s.Word)
		require.NotEmpty(t, s.Short, s.Word)
		final[s.Word] = s.Ended
	}
	for word, ended := range map[string]bool{
		"PENDING": false, "CONFIGURING": false, "RUNNING": false, "COMPLETING": false, "STOPPED": false, "SUSPENDED": false,
		"RESIZING": false, "SIGNALING": false, "STAGE_OUT": false, "REQUEUED": false, "REQUEUE_HOLD": false, "REQUEUE_FED": false,
		"SPECIAL_EXIT": false, "REVOKED": true, "PREEMPTED": true, "COMPLETED": true, "FAILED": true, "CANCELLED": true,
		"TIMEOUT": true, "NODE_FAIL": true, "BOOT_FAIL": true, "DEADLINE": true, "OUT_OF_MEMORY": true,
	} {
		require.Contains(t, final, word)
		require.Equal(t, ended, final[word], word)
	}
	for given, want := range map[string]slurm.State{
		"CANCELLED by 1001": slurm.Cancelled, "RUNNING,COMPLETING": slurm.Running, "RUNNING+COMPLETING": slurm.Running, "running": slurm.Running, "NEW_WORD": "NEW_WORD", "": "",
	} {
		require.Equal(t, want, slurm.ParseState(given), given)
	}
	require.False(t, slurm.State("NEW_WORD").Ended())
	require.Equal(t, "ended RUNNING", slurm.Ended.Word().EN+" "+slurm.Running.Word().EN, "only Slurm's words look like Slurm's")
	require.Contains(t, slurm.State("NEW_WORD").Explain().Says.EN, "does not know")
}

func TestReasonsAreExplained(t *testing.T) {
	for _, r := range slurm.Reasons() {
		require.NotEmpty(t, r.Says.EN, r.Word)
		require.NotEmpty(t, r.Says.ZH, r.Word)
		require.Equal(t, r.Do.EN == "", r.Do.ZH == "", r.Word)
	}
	for given, want := range map[string]string{
		"Priority":                               "higher priority",
		"(Resources)":                            "first in line",
		"ReqNodeNotAvail, UnavailableNodes:gpu2": "down, drained or reserved",
		"QOSMaxGRESPerUser":                      "GPUs",
		"QOSMaxMemoryPerJob":                     "more memory than the QOS allows one job",
		"QOSGrpNodeLimit":                        "all jobs together have reached the limit of the QOS on nodes",
		"AssocGrpGRES":                           "all jobs together have reached the limit of your account on GPUs",
		"AssocMaxWallDurationPerJobLimit":        "asks for more time than your account allows",
		"job requeued in held state":             "held",
		"BurstBufferStageIn":                     "burst buffer",
		"burst_buffer/lua: slurm_bb_data_in: no": "was refused or failed, and the job is held",
		"BurstBufferOperation":                   "was refused or failed, and the job is held",
		"RaisedSignal:53(Real-time_signal_19)":   "working directory",
		"RaisedSignal:11(Segmentation fault)":    "by a signal",
		"Reservation a was deleted":              "reservation is gone",
		"SomethingNew":                           "does not know",
	} {
		require.Contains(t, slurm.ExplainReason(given).Says.EN, want, given)
	}
}

func TestNodeStatesAreExplained(t *testing.T) {
	for state, want := range map[string]string{
		"idle": "is free", "down*": "out of use; does not answer", "drained": "takes no jobs", "mix-": "in part; is planned",
		"idle~": "is free; is powered down", "drng": "no new jobs", "alloc": "in full", "inval": "register", "weird!": "does not know",
	} {
		require.Contains(t, slurm.ExplainNode(state).Says.EN, want, state)
		require.NotEmpty(t, slurm.ExplainNode(state).Says.ZH, state)
	}
	for state, want := range map[string]bool{"idle": true, "mixed-": true, "idle*": false, "drained": false, "down": false, "draining@": false} {
		require.Equal(t, want, slurm.Node{State: state}.Usable(), state)
	}
}

func TestRejectionsAreActionable(t *testing.T) {
	for _, r := range slurm.Rejections() {
		require.NotEmpty(t, r.Text)
		require.NotEmpty(t, r.Fix.EN, r.Text)
		require.NotEmpty(t, r.Fix.ZH, r.Text)
	}
	e := slurm.FromStderr("submit", "sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job submission failed: Requested node configuration is not available\n")
	require.Equal(t, "submit: Memory specification can not be satisfied; Requested node configuration is not available", e.Error())
	require.Contains(t, e.Fix.EN, "`mem`")
	require.ErrorIs(t, e, slurm.ErrRejected)
	e = slurm.FromStderr("hold 25", "Job has already finished for job 25\nslurm_suspend error: Job has already finished\n")
	require.Equal(t, "hold 25: Job has already finished for job 25", e.Error(), "said once")
	for _, two := range [][]string{{"Invalid job id 251", "Invalid job id 25"}, {"gpu01 error: no answer", "gpu02 error: no answer"}} {
		e = slurm.FromStderr("cancel", strings.Join(two, "\n"))
		require.Equal(t, "cancel: "+strings.Join(two, "; "), e.Error(), "two things")
	}
	require.ErrorIs(t, slurm.FromStderr("x", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"), slurm.ErrUnreachable)
	require.True(t, slurm.FromStderr("x", "error: Rate limit exceeded, please retry momentarily").Retryable())
	require.ErrorIs(t, slurm.FromStderr("x", "scancel: error: Kill job error on job id 51: Access/permission denied"), slurm.ErrDenied)
}

func TestExpandPattern(t *testing.T) {
	j := slurm.Job{ID: "34_3", RawID: "37", Name: "gpt", User: "alice", WorkDir: "/w", Nodes: []string{"gpu1"}}
	for pattern, want := range map[string]string{
		"logs/%x-%j.out": "/w/logs/gpt-37.out", "/abs/%A_%a": "/abs/34_3", "%4a": "/w/0003", "%u.%N.%n.%t.%s": "/w/alice.gpu1.0.0.batch",
		"100%%": "/w/100%", "%q": "/w/%q", `\%j`: "/w/%j", "trail%": "/w/trail%", "": "",
	} {
		require.Equal(t, want, slurm.ExpandPattern(pattern, j), pattern)
	}
	require.Equal(t, "/w/8.out", slurm.ExpandPattern("%j.out", slurm.Job{ID: "8", WorkDir: "/w"}))
	require.Equal(t, "/w/8_%a", slurm.ExpandPattern("%A_%a", slurm.Job{ID: "8", WorkDir: "/w", Tasks: map[slurm.State]int{slurm.Running: 2}}))
}

func TestReadDirectives(t *testing.T) {
	opts, err := slurm.ReadDirectives("#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1\n#SBATCH\t-pprod\n #SBATCH --mem=1\n#SBATCHX --mem=2\n" +
		"#SBATCH--time=13\n# a comment\n\n#SBATCH --job-name='a b' # rest\n#SBATCH --comment=x#y\n#SBATCH --hold --array 1-3\necho go\n#SBATCH --qos=late\n")
	require.NoError(t, err)
	got := ""
	for _, o := range opts {
		got += fmt.Sprintf("%s=%s ", o.Name, o.Value)
	}
	require.Equal(t, "nodes=2 ntasks-per-node=1 partition=prod time=13 job-name=a b comment=x hold= array=1-3 ", got)
	for script, want := range map[string]string{
		"#!/bin/sh\n#SBATCH --comment='open\n": "line 2: unmatched `'`",
		"#!/bin/sh\n#SBATCH a b\n":             "invalid directive found in batch script: a",
		"#!/bin/sh\n\n#SBATCH --time\n":        "line 3: option '--time' requires an argument",
		"#!/bin/sh\n#SBATCH -Y\n":              "unrecognized option '-Y'",
	} {
		_, err := slurm.ReadDirectives(script)
		require.ErrorContains(t, err, want)
	}
}

func TestTokensTravelInComments(t *testing.T) {
	c := slurm.TagComment("my run", "abc123")
	require.True(t, slurm.HasToken(slurm.Job{Comment: c}, "abc123"))
	require.False(t, slurm.HasToken(slurm.Job{Comment: c}, "abc12"))
	require.False(t, slurm.HasToken(slurm.Job{Comment: c}, ""))
	require.Equal(t, "my run", slurm.UserComment(c))
	require.Equal(t, "plain words", slurm.UserComment("plain words"))
	require.True(t, slurm.HasToken(slurm.Job{Name: slurm.TagName("gpt", "abc123")}, "abc123"))
}

func TestFindToken(t *testing.T) {
	row := func(submit, comment, name, id string) string {
		return strings.Join([]string{submit, comment, name, id}, sep) + "\n"
	}
	out := row("sbatch x\n9", "", "a\nb", "5") +
		row("sbatch --parsable --comment=mine mops:abcdefgh1", "", "gpt", "6") +
		row("", "mine mops:abcdefgh2", "gpt", "7_1") +
		row("sbatch --job-name=gpt-abcdefgh3", "", "", "8") +
		row("sbatch", "", "mops:abcdefgh4", "9")
	for token, want := range map[string]slurm.JobID{"abcdefgh1": "6", "abcdefgh2": "7", "abcdefgh3": "8"} {
		id, ok := slurm.FindToken(out, sep, token)
		require.True(t, ok, token)
		require.Equal(t, want, id, token)
	}
	for _, token := range []string{"abcdefgh4", "abcdefgh9", ""} {
		_, ok := slurm.FindToken(out, sep, token)
		require.False(t, ok, token)
	}
	for n := range len(out) {
		_, _ = slurm.FindToken(out[:n], sep, "abcdefgh3")
	}
}

func TestFold(t *testing.T) {
	rows := []slurm.Job{
		{ID: "7_1", State: slurm.Completed},
		{ID: "7_2", State: slurm.Running, Nodes: []string{"gpu1"}},
		{ID: "7_[3-5,9%2]", State: slurm.Pending},
		{ID: "70", State: slurm.Failed},
		{ID: "8+0", State: slurm.Running, Nodes: []string{"gpu2"}},
		{ID: "8+1", State: slurm.Running, Nodes: []string{"gpu3"}},
	}
	for id, want := range map[slurm.JobID]slurm.State{
		"7": slurm.Running, "7_1": slurm.Completed, "7_4": slurm.Pending, "7_9": slurm.Pending, "70": slurm.Failed, "8": slurm.Running,
	} {
		j, ok := slurm.Fold(id, rows)
		require.True(t, ok, id)
		require.Equal(t, want, j.State, id)
		require.Equal(t, id, j.ID)
	}
	array, _ := slurm.Fold("7", rows)
	require.Equal(t, 2, array.ArrayLimit)
	waits, _ := slurm.Fold("7_9", rows)
	require.Equal(t, 2, waits.ArrayLimit)
	runs, _ := slurm.Fold("7_2", rows)
	require.Zero(t, runs.ArrayLimit)
	require.Equal(t, map[slurm.State]int{slurm.Completed: 1, slurm.Running: 1, slurm.Pending: 4}, array.Tasks)
	het, _ := slurm.Fold("8", rows)
	require.Empty(t, het.Tasks, "components are no tasks")
	require.Equal(t, []string{"gpu2", "gpu3"}, het.Nodes)
	_, ok := slurm.Fold("7_6", rows)
	require.False(t, ok)
	gone, ok := slurm.Vanished("7_6", rows)
	require.True(t, ok)
	require.Equal(t, slurm.Cancelled, gone.State)
	_, ok = slurm.Vanished("99_1", rows)
	require.False(t, ok)
	require.InDelta(t, 12, slurm.Run{GPUs: 8, ElapsedS: 5400}.GPUHours(), 0)
	_, ok = slurm.Vanished("7_6", []slurm.Job{{ID: "7_[7-9]"}})
	require.False(t, ok, "what waits is no element yet")
	_, ok = slurm.Vanished("7_6", []slurm.Job{{ID: "7_1"}})
	require.True(t, ok)
}

// The same job in the JSON of three generations of Slurm.
func TestJobsFromJSONOfAllVersions(t *testing.T) {
	for version, text := range map[string]string{
		"22.05": `{"job_id":12,"array_job_id":0,"array_task_id":null,"job_state":"FAILED","state_reason":"NonZeroExitCode","user_name":"alice","name":"gpt","node_count":2,"nodes":"gpu[1-2]","time_limit":60,"submit_time":1700000000,"start_time":1700000010,"end_time":1700000070,"exit_code":768,"priority":100,"restart_cnt":1,"tres_alloc_str":"cpu=2,gres/gpu=16","current_working_directory":"/w","standard_output":"%x-%j.out","comment":"c"}`,
		"23.02": `{"job_id":12,"array_job_id":{"set":true,"infinite":false,"number":0},"array_task_id":{"set":false,"infinite":false,"number":0},"job_state":"FAILED","state_reason":"NonZeroExitCode","user_name":"alice","name":"gpt","node_count":{"set":true,"infinite":false,"number":2},"nodes":"gpu[1-2]","time_limit":{"set":true,"infinite":false,"number":60},"submit_time":1700000000,"start_time":1700000010,"end_time":1700000070,"exit_code":{"set":true,"infinite":false,"number":768},"priority":{"set":true,"infinite":false,"number":100},"restart_cnt":1,"tres_alloc_str":"cpu=2,gres/gpu=16","current_working_directory":"/w","standard_output":"%x-%j.out","comment":"c"}`,
		"24.05": `{"job_id":12,"array_job_id":{"set":true,"infinite":false,"number":0},"array_task_id":{"set":false,"infinite":false,"number":0},"job_state":["FAILED"],"state_reason":"NonZeroExitCode","user_name":"alice","name":"gpt","node_count":{"set":true,"infinite":false,"number":2},"nodes":"gpu[1-2]","time_limit":{"set":true,"infinite":false,"number":60},"submit_time":{"set":true,"infinite":false,"number":1700000000},"start_time":{"set":true,"infinite":false,"number":1700000010},"end_time":{"set":true,"infinite":false,"number":1700000070},"exit_code":{"status":["ERROR"],"return_code":{"set":true,"infinite":false,"number":3},"signal":{"id":{"set":false,"infinite":false,"number":0},"name":""}},"priority":{"set":true,"infinite":false,"number":100},"restart_cnt":1,"tres_alloc_str":"cpu=2,gres/gpu=16","current_working_directory":"/w","standard_output":"/w/gpt-12.out","comment":"c"}`,
	} {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &m), version)
		jobs := slurm.JobsFromJSON(m)
		require.Len(t, jobs, 1, version)
		j := jobs[0]
		require.EqualValues(t, "12", j.ID, version)
		require.Equal(t, slurm.Failed, j.State, version)
		require.Equal(t, "3:0", *j.ExitCode, version)
		require.EqualValues(t, 3600, *j.TimeLimitS, version)
		require.EqualValues(t, 60, j.ElapsedS, version)
		require.Equal(t, 16, j.GPUs, version)
		require.Equal(t, 2, j.NumNodes, version)
		require.Equal(t, "/w/gpt-12.out", j.Stdout, version)
		require.Equal(t, time.Unix(1700000000, 0), *j.SubmittedAt, version)
	}
}

func TestAccountFromJSONOfAllVersions(t *testing.T) {
	for version, text := range map[string]string{
		"22.05": `{"job_id":12,"array":{"job_id":11,"task":null,"task_id":2},"association":{"user":"alice"},"name":"gpt","nodes":"gpu1","allocation_nodes":1,"state":{"current":"NODE_FAIL","reason":"None"},"time":{"elapsed":60,"start":1700000010,"end":1700000070,"submission":1700000000,"limit":60},"exit_code":{"status":"SIGNALED","return_code":0,"signal":{"signal_id":9,"name":"KILL"}},"comment":{"job":"c"},"tres":{"allocated":[{"type":"gres","name":"gpu","count":8}]}}`,
		"24.11": `{"job_id":12,"array":{"job_id":11,"task":"","task_id":{"set":true,"infinite":false,"number":2}},"user":"alice","association":{"user":"alice"},"name":"gpt","nodes":"gpu1","allocation_nodes":1,"state":{"current":["NODE_FAIL"],"reason":"None"},"time":{"elapsed":60,"start":1700000010,"end":1700000070,"submission":1700000000,"limit":{"set":true,"infinite":false,"number":60}},"exit_code":{"status":["SIGNALED"],"return_code":{"set":true,"infinite":false,"number":0},"signal":{"id":{"set":true,"infinite":false,"number":9},"name":"KILL"}},"comment":{"job":"c"},"tres":{"allocated":[{"type":"gres","name":"gpu","count":8}]}}`,
	} {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &m), version)
		j := slurm.AccountFromJSON(m)
		require.EqualValues(t, "11_2", j.ID, version)
		require.EqualValues(t, "12", j.RawID, version)
		require.Equal(t, slurm.NodeFail, j.State, version)
		require.Equal(t, "0:9", *j.ExitCode, version)
		require.Equal(t, "alice", j.User, version)
		require.EqualValues(t, 3600, *j.TimeLimitS, version)
		require.Equal(t, 8, j.GPUs, version)
	}
}

// The JSON readers accept every document without a panic.
func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(`{"job_id":1,"array_job_id":5,"array_task_string":"1-3%1","job_state":["A"],"exit_code":{"return_code":{"set":true}}}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		var m map[string]any
		if json.Unmarshal(text, &m) != nil {
			return
		}
		slurm.JobsFromJSON(m)
		slurm.AccountFromJSON(m)
		slurm.PartitionFromJSON(m, []slurm.Node{slurm.NodeFromJSON(m)})
	})
}

func TestParseSignal(t *testing.T) {
	for v, want := range map[string]slurm.SignalAhead{
		"USR1": {Name: "USR1", Before: time.Minute}, "B:sigusr2@300": {BatchOnly: true, Name: "sigusr2", Before: 5 * time.Minute},
		"R:10@0": {Reservation: true, Name: "10"}, "rb:TERM@65535": {BatchOnly: true, Reservation: true, Name: "TERM", Before: 65535 * time.Second},
	} {
		got, ok := slurm.ParseSignal(v)
		require.True(t, ok, v)
		require.Equal(t, want, got, v)
	}
	for _, v := range []string{"", "EXIT", "NONE", "0", "65", "USR1@", "USR1@x", "USR1@65536", "X:USR1", "B:", "$SIG"} {
		_, ok := slurm.ParseSignal(v)
		require.False(t, ok, v)
	}
	for word, want := range map[string]string{"10": "USR1", "sigterm": "TERM", "USR2": "USR2", "0": "EXIT", "61": "61"} {
		require.Equal(t, want, slurm.SignalName(word))
	}
}

func TestParseArray(t *testing.T) {
	for list, want := range map[string][]int{"3": {3}, "0-8:4,2,8": {0, 2, 4, 8}, "5-7": {5, 6, 7}, "0-8,0-8:8,8,8": {0, 1, 2, 3, 4, 5, 6, 7, 8}} {
		got, ok := slurm.ParseArray(list, 8)
		require.True(t, ok, list)
		require.Equal(t, want, got, list)
	}
	for _, list := range []string{"", "a", "5-1", "1-x", "1-4:0", "1-4:x", "-1", "9", "1,,2", "0-8,0-8,0"} {
		_, ok := slurm.ParseArray(list, 8)
		require.False(t, ok, list)
	}
}
