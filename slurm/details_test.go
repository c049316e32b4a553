package slurm

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyARunningJobWithNodesRunsCommands(t *testing.T) {
	running := Job{ID: "7", State: Running, Nodes: []string{"gpu1", "gpu2"}}
	nodes, err := ExecNodes(running, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"gpu1", "gpu2"}, nodes)
	nodes, err = ExecNodes(running, []string{"gpu2"})
	require.NoError(t, err)
	require.Equal(t, []string{"gpu2"}, nodes)
	_, err = ExecNodes(running, []string{"gpu3"})
	require.ErrorContains(t, err, "gpu3 is not one of the job's nodes: gpu[1-2]")
	for _, j := range []Job{{ID: "7", State: Pending, Nodes: []string{"gpu1"}}, {ID: "7", State: Running}, {ID: "7", State: Completed, Nodes: []string{"gpu1"}}} {
		_, err := ExecNodes(j, nil)
		require.ErrorIs(t, err, ErrRejected)
	}
}

func TestTheTypeOfANodesGPUs(t *testing.T) {
	for gres, want := range map[string]string{
		"gpu:h100:8(S:0-1)": "h100", "gpu:8": "", "shm:1,gpu:a100:4": "a100", "nic:mlx:2": "", "": "", "gpu:h100:8:x": "",
	} {
		require.Equal(t, want, gpuType(gres), gres)
	}
}

// Only an option that takes a value uses the next word.
func TestOptionsTakeTheirValues(t *testing.T) {
	for _, name := range []string{
		"contiguous", "exclusive", "get-user-env", "hold", "ignore-pbs", "no-kill", "no-requeue",
		"overcommit", "oversubscribe", "parsable", "reboot", "requeue", "spread-job", "test-only", "use-min-nodes", "verbose", "wait",
	} {
		opts, err := ReadDirectives("#!/bin/bash\n#SBATCH --" + name + " --nodes 2\n")
		require.NoError(t, err, name)
		require.Equal(t, "2", opts.Value("nodes"), name)
	}
	for _, name := range []string{"account", "array", "chdir", "comment", "constraint", "gres", "job-name", "mem", "output", "partition", "time"} {
		opts, err := ReadDirectives("#!/bin/bash\n#SBATCH --" + name + " x1\n")
		require.NoError(t, err, name)
		require.Equal(t, "x1", opts.Value(name), name)
		_, err = ReadDirectives("#!/bin/bash\n#SBATCH --" + name + "\n")
		require.ErrorContains(t, err, "option '--"+name+"' requires an argument", name)
	}
}

// detailRecord returns a record of squeue in AllDetails, with the columns padded. more are
// names and values of further columns.
func detailRecord(id, stdout string, more ...string) string {
	var b strings.Builder
	values := map[string]string{"JobArrayID": id, "exit_code": "3:0", "RestartCnt": "1", "STDOUT": stdout}
	for i := 0; i < len(more); i += 2 {
		values[more[i]] = more[i+1]
	}
	for _, f := range detailFields {
		value := values[f.name]
		b.WriteString(value + strings.Repeat(" ", f.width-len(value)))
	}
	return b.String() + "\n"
}

// Slurm keeps the time of a preemption when the job runs again, and notes it also for a job
// that gang scheduling suspends, which is not asked to end.
func TestAPreemptionEndsThePresentRun(t *testing.T) {
	const start, hour = 1700000000, int64(3600)
	for name, c := range map[string]struct {
		state          State
		at             int64
		elapsed, limit int64
		end, resumed   int64 // after the start
		want           bool
	}{
		"ended in its grace time":             {Failed, 600, 660, hour, 660, 0, true},
		"in its grace time":                   {Running, 600, 610, hour, 900, 0, true},
		"the run before":                      {Failed, -100, 660, hour, 660, 0, false},
		"never":                               {Failed, -start, 660, hour, 660, 0, false},
		"suspended":                           {Suspended, 600, 600, hour, hour, 600, false},
		"runs again after a suspension":       {Running, 600, 700, hour, hour + 300, 900, false},
		"runs again, without a limit":         {Running, 600, 700, 0, 365 * 24 * hour, 900, false},
		"failed by itself after a suspension": {Failed, 600, 900, hour, 1200, 900, false},
	} {
		started := time.Unix(start, 0)
		j := Job{ID: "7", State: c.state, StartedAt: &started, ElapsedS: c.elapsed}
		of := map[string]any{
			"job_id": 7.0, "job_state": string(c.state), "nodes": "n1", "start_time": float64(start), "end_time": float64(start + c.end), "preempt_time": float64(start + c.at),
		}
		at, end := fmt.Sprint(start+c.at), fmt.Sprint(start+c.end)
		if c.at == -start {
			at = "N/A"
		}
		if c.limit > 0 {
			j.TimeLimitS, of["time_limit"] = &c.limit, float64(c.limit/60)
		} else {
			end = "NONE"
		}
		if c.resumed > 0 {
			of["suspend_time"], of["pre_sus_time"] = float64(start+c.resumed), 600.0
		}
		AllDetails().Add(&j, detailRecord("7", "/logs/7.out", "PreemptTime", at, "EndTime", end))
		require.Equal(t, c.want, j.PreemptedAt != nil, name)
		require.Equal(t, c.want, j.Preemption().EN != "", name)
		rest := JobsFromJSON(of)[0]
		require.Equal(t, c.want, rest.PreemptedAt != nil, "%s, by slurmrestd", name)
		if c.state != Running {
			require.Equal(t, c.elapsed, rest.ElapsedS, "%s, by slurmrestd", name)
		}
	}
	waits := Job{ID: "7", State: Pending}
	AllDetails().Add(&waits, detailRecord("7", "/logs/7.out", "PreemptTime", "1700000600", "EndTime", "N/A"))
	require.Nil(t, waits.PreemptedAt, "not started")
}

// A squeue that leaves out a column without a word has its values under other names.
func TestDetailsWithoutOneOfTheColumns(t *testing.T) {
	whole := detailRecord("7", "/logs/7.out")
	for name, record := range map[string]string{
		"the exit code":  whole[:64] + whole[64+24:],
		"the restarts":   whole[:64+24+512] + whole[64+24+512+16:],
		"the end":        whole[:len(whole)-1-24] + "\n",
		"all but the id": "7\n",
	} {
		j := Job{ID: "7", State: Failed, Stdout: "/known"}
		AllDetails().Add(&j, record)
		require.Equal(t, Job{ID: "7", State: Failed, Stdout: "/known"}, j, name)
		array := Job{ID: "7", State: Failed}
		AllDetails().Add(&array, record+record)
		require.Equal(t, Job{ID: "7", State: Failed}, array, name)
	}
	j := Job{ID: "7", State: Failed}
	AllDetails().Add(&j, detailRecord("7", "/logs/a\nb"))
	require.Equal(t, 1, j.Restarts, "a line break in a file name")
	require.NotContains(t, AllDetails().Without("squeue: error: EndTime").Format(), "PreemptTime")
}

// The name of one job's log looks like the record of another job.
func TestNoJobSpeaksForAnother(t *testing.T) {
	jobs := []Job{{ID: "7", State: Failed}, {ID: "8", State: Running}, {ID: "9_4", State: Pending}, {ID: "10"}}
	forged := "/tmp/a\n" + detailRecord("7", "/tmp/forged")[:200]
	told := AllDetails().AddAll(jobs, detailRecord("8", forged)+detailRecord("9_4", "/logs/%A_%a.out")+detailRecord("7", "/logs/%j.out"))
	require.Equal(t, map[JobID]bool{"7": true, "8": true, "9_4": true}, told)
	require.Equal(t, "/logs/7.out", jobs[0].Stdout)
	require.Equal(t, "3:0", *jobs[0].ExitCode)
	require.Equal(t, 1, jobs[0].Restarts)
	require.Equal(t, "/tmp/a", jobs[1].Stdout)
	require.Nil(t, jobs[1].ExitCode, "it has not ended")
	require.Equal(t, "/logs/9_4.out", jobs[2].Stdout)
	require.Empty(t, jobs[3].Stdout)
}

// The record about an array is that of one element, but every element writes its own log.
func TestTheLogOfAnArrayIsAPattern(t *testing.T) {
	array := Job{ID: "9", State: Failed, Tasks: map[State]int{Failed: 2}}
	AllDetails().Add(&array, detailRecord("9_4", "/logs/%x-%A_%a.out"))
	require.Equal(t, "/logs/-9_%a.out", array.Stdout)
	require.Equal(t, "/logs/-9_%a.out", array.Stderr)
}

// squeue prints the raw status of an end, of which scontrol and sacct show the code or the signal.
func TestTheExitCodeIsSlurmsOwn(t *testing.T) {
	for raw, want := range map[string]string{"0": "0:0", "256": "1:0", "9": "0:9", "139": "0:11", "4021": "0:53", "3:0": "3:0"} {
		require.Equal(t, want, *exitCode(raw), raw)
	}
	require.Nil(t, exitCode("?"))
}

// squeue tells no end of a job without a time limit: the job was asked to end if it has
// run without a break since its start.
func TestAPreemptionOfAJobWithoutALimit(t *testing.T) {
	for name, c := range map[string]struct {
		ago, ran int64
		want     bool
	}{
		"in its grace time":             {100, 99, true},
		"runs again after a suspension": {100, 60, false},
	} {
		started := time.Now().Add(-time.Duration(c.ago) * time.Second)
		j := Job{ID: "7", State: Running, StartedAt: &started, ElapsedS: c.ran}
		AllDetails().Add(&j, detailRecord("7", "/logs/7.out", "PreemptTime", fmt.Sprint(started.Unix()+50), "EndTime", "NONE"))
		require.Equal(t, c.want, j.PreemptedAt != nil, name)
	}
	// slurmrestd tells the end.
	start := time.Now().Unix() - 100
	j := JobsFromJSON(map[string]any{
		"job_id": 7.0, "job_state": "RUNNING", "nodes": "n1", "start_time": float64(start), "end_time": float64(start + 160), "preempt_time": float64(start + 50),
	})[0]
	require.NotNil(t, j.PreemptedAt)
}

// AddAll ignores an answer that is not made of whole records, or that has a job
// twice.
func TestDetailsOfAnotherFormTellOfNobody(t *testing.T) {
	good := detailRecord("7", "/logs/7.out")
	for name, out := range map[string]string{
		"nothing": "", "cut": good + good[:100], "twice": good + good, "a warning before it": "squeue: warning\n" + good, "no line break": good[:len(good)-1] + " " + good,
	} {
		jobs := []Job{{ID: "7"}}
		require.Empty(t, AllDetails().AddAll(jobs, out), name)
		require.Empty(t, jobs[0].Stdout, name)
	}
}

// Jobs kept from many large answers do not keep the answers in memory.
func TestAJobDoesNotKeepTheAnswerItStoodIn(t *testing.T) {
	const sep = "@@"
	row := func(id int) string {
		values := []string{fmt.Sprint(id), fmt.Sprint(id), "RUNNING", "None", "alice", "research", "prod", "normal", "1", "gpu1", "1:00", "2:00", "1", "1", "1", "1", "gres/gpu:8", "/w", "pretrain", "x"}
		require.Len(t, values, len(queueFields))
		return sep + strings.Join(values, sep) + sep + "\n"
	}
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	var kept []Job
	for n := range 20 {
		var b strings.Builder
		for i := range 5000 {
			b.WriteString(row(n*5000 + i + 1))
		}
		rows, err := ParseQueue(b.String(), sep)
		require.NoError(t, err)
		told := AllDetails().AddAll(rows[:1], detailRecord(string(rows[0].ID), "/logs/a.out"))
		require.Len(t, told, 1)
		kept = append(kept, rows[0])
	}
	require.Less(t, held(), before+2<<20, "20 answers of half a megabyte")
	runtime.KeepAlive(kept)
}

// The accounts lag behind the queue, and an id may have been another user's.
func TestTheAccountsOfAnArray(t *testing.T) {
	early, late, code := time.Unix(100, 0), time.Unix(200, 0), "1:0"
	failed := func(id JobID, at *time.Time, exit *string) *FailedTask {
		return &FailedTask{ID: id, State: Failed, EndedAt: at, ExitCode: exit}
	}
	past := Job{ID: "7", User: "alice", Tasks: map[State]int{Failed: 2, Completed: 9}, FirstFailed: failed("7_2", &late, &code)}
	for name, c := range map[string]struct {
		queue, past Job
		first       JobID
		tasks       int
	}{
		"failed before what they know": {Job{User: "alice", FirstFailed: failed("7_1", &early, nil)}, past, "7_1", 2},
		"the same task":                {Job{User: "alice", FirstFailed: failed("7_2", &late, nil)}, past, "7_2", 2},
		"failed after it":              {Job{User: "alice", FirstFailed: failed("7_3", new(time.Unix(300, 0)), nil)}, past, "7_2", 2},
		"has left the queue":           {Job{User: "alice"}, past, "7_2", 2},
		"of another user":              {Job{User: "bob", Tasks: map[State]int{Running: 1}}, past, "", 0},
	} {
		c.queue.AddEndedTasks(c.past)
		require.Equal(t, c.tasks, c.queue.FailedTasks(), name)
		if c.first == "" {
			require.Nil(t, c.queue.FirstFailed, name)
			continue
		}
		require.Equal(t, c.first, c.queue.FirstFailed.ID, name)
		require.Equal(t, c.first == "7_2", c.queue.FirstFailed.ExitCode != nil, name)
	}
}
