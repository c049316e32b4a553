package local

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// requestOf reads a script with these directives for a machine of 8 nodes with 4 GPUs each.
func requestOf(directives string, args ...string) (request, error) {
	script := "#!/bin/bash\n"
	for d := range strings.FieldsSeq(directives) {
		script += "#SBATCH " + d + "\n"
	}
	return newRequest(slurm.Submission{Script: script + "true\n", Args: args}, 8, 4)
}

func TestWhatAScriptAsksFor(t *testing.T) {
	t.Parallel()
	for directives, want := range map[string][6]int{ // nodes, tasks, tasks a node, GPUs a node, tasks in all, seconds
		"":                                               {1, 0, 0, 0, 1, 0},
		"--dependency=singleton":                         {1, 0, 0, 0, 1, 0},
		"--dependency=afterok:1:2+5?after:3_1":           {1, 0, 0, 0, 1, 0},
		"--nodes=3":                                      {3, 0, 0, 0, 3, 0},
		"--nodes=2-4":                                    {2, 0, 0, 0, 2, 0},
		"--nodes=8 --gpus-per-node=4":                    {8, 0, 0, 4, 8, 0},
		"--ntasks=5 --ntasks-per-node=2":                 {3, 5, 2, 0, 5, 0},
		"--ntasks=4 --ntasks-per-node=2":                 {2, 4, 2, 0, 4, 0},
		"--ntasks=5":                                     {1, 5, 0, 0, 5, 0},
		"--ntasks-per-node=2 --nodes=3":                  {3, 0, 2, 0, 6, 0},
		"--gpus-per-node=h100:3":                         {1, 0, 0, 3, 1, 0},
		"--gres=gpu":                                     {1, 0, 0, 1, 1, 0},
		"--gres=nvme:7,gpu:h100:2":                       {1, 0, 0, 2, 1, 0},
		"--gres=gres:gpu:0":                              {1, 0, 0, 0, 1, 0},
		"--nodes=2 --gpus=5":                             {2, 0, 0, 3, 2, 0},
		"--nodes=2 --gpus=4":                             {2, 0, 0, 2, 2, 0},
		"--gpus-per-task=1 --ntasks-per-node=3":          {1, 0, 3, 3, 3, 0},
		"--gpus-per-task=2 --nodes=2":                    {2, 0, 0, 2, 2, 0},
		"--gpus-per-task=1 --nodes=2 --ntasks=3 ":        {2, 3, 0, 2, 3, 0},
		"--gpus-per-task=1 --gpus-per-node=4 --ntasks=2": {1, 2, 0, 4, 2, 0},
		"--time=90":                                      {1, 0, 0, 0, 1, 5400},
		"--time=1-0":                                     {1, 0, 0, 0, 1, 86400},
		"--time=5 --time=UNLIMITED":                      {1, 0, 0, 0, 1, 0},
		"--time=infinite --mem=0 --quiet":                {1, 0, 0, 0, 1, 0},
		"--ntasks-per-gpu=3 --exclusive":                 {1, 0, 0, 0, 1, 0},
		"--nodes=2 --nodes=5 --signal=USR1":              {5, 0, 0, 0, 5, 0},
	} {
		r, err := requestOf(directives)
		require.NoError(t, err, directives)
		require.Equal(t, want, [6]int{r.Nodes, r.NTasks, r.TasksPerNode, r.GPUsPerNode, r.tasks(), int(r.TimeLimit.Seconds())}, directives)
	}
	for directives, says := range map[string]string{
		"--nodes=0": "Node count", "--nodes=x": "not a valid node count", "--nodes=9": "configuration is not available", "--gpus-per-node=5": "configuration is not available",
		"--ntasks=0": "--ntasks", "--cpus-per-task=x": "--cpus-per-task", "--gres=gpu:x": "gres", "--gpus=-1": "gres", "--time=x": "--time", "--signal=NONE": "--signal",
		"--signal=USR1@x": "--signal", "--signal=USR1@65536": "--signal", "--signal=65": "--signal", "--signal=0": "--signal", "--no-such=1": "unrecognized option",
		"--dependency=afterok": "Job dependency problem", "--dependency=x:1": "Job dependency problem", "--dependency=afterok:x": "no job id", "--array=5-1": "array",
		"--array=x": "array", "--array=1-x": "array", "--array=1-4:0": "array", "--array=1-1001": "array", "--array=1%0": "array", "--array=1%x": "array", "--array=-1": "array",
	} {
		_, err := requestOf(directives)
		require.ErrorContains(t, err, says, directives)
	}
	r, err := requestOf("--job-name=a --signal=B:USR1@300 --open-mode=append --hold --no-requeue --kill-on-invalid-dep=yes", "--job-name=b", "--requeue", "--open-mode=truncate")
	require.NoError(t, err)
	require.Equal(t, slurm.SignalAhead{BatchOnly: true, Name: "USR1", Before: 5 * time.Minute}, r.Signal)
	require.Equal(t, []bool{true, true, true, false}, []bool{r.Hold, r.Requeue, r.KillOnInvalidDep, r.Append})
	require.Equal(t, "b", r.Name)
	for name, want := range map[string]string{"": "sbatch", "given": "given"} {
		r, err := newRequest(slurm.Submission{Script: "#!/bin/bash\n", Name: name}, 8, 4)
		require.NoError(t, err)
		require.Equal(t, want, r.Name)
		r, err = newRequest(slurm.Submission{Script: "#!/bin/bash\n#SBATCH -J own\n", Name: name}, 8, 4)
		require.NoError(t, err)
		require.Equal(t, "own", r.Name)
	}
	for script, says := range map[string]string{
		" \n": "empty", "true\n": "does not look like a batch script", "#!/bin/sh\r\n": "DOS line breaks", "#!/bin/sh\n\x00": "NULL",
		"#!/bin/sh\n#SBATCH -N 1\n#SBATCH hetjob\n#SBATCH -N 2\n": "heterogeneous",
	} {
		_, err := newRequest(slurm.Submission{Script: script}, 8, 4)
		require.ErrorContains(t, err, says)
	}
}

func TestTheElementsOfAnArray(t *testing.T) {
	t.Parallel()
	for array, want := range map[string][]int{
		"0": {0}, "3,1,3": {1, 3}, "1-3": {1, 2, 3}, "0-7:3": {0, 3, 6}, "1000": {1000}, "5-5,2%4": {2, 5},
	} {
		r, err := requestOf("--array=" + array)
		require.NoError(t, err, array)
		require.Equal(t, want, r.Array, array)
		require.Equal(t, strings.Contains(array, "%"), r.ArrayLimit == 4, array)
		all := newRecords("7", 7, submission{Request: r, Dir: "/w"})
		require.Len(t, all, len(want), array)
		for i, one := range all {
			require.Equal(t, "7_"+strconv.Itoa(want[i]), string(one.Job.ID))
			require.Equal(t, strconv.Itoa(7+i), string(one.Job.RawID))
			require.Equal(t, "/w/slurm-7_"+strconv.Itoa(want[i])+".out", one.Job.Stdout)
		}
	}
	r, err := requestOf("--hold --time=5 --nodes=2 --gpus-per-node=4 --output=o-%j --chdir=sub")
	require.NoError(t, err)
	j := newRecords("7", 7, submission{Request: r, Dir: "/w"})[0].Job
	require.Equal(t, []string{"/w/sub", "/w/sub/o-7", "/w/sub/o-7", "JobHeldUser"}, []string{j.WorkDir, j.Stdout, j.Stderr, j.Reason})
	require.Equal(t, []int{2, 8, 300}, []int{j.NumNodes, j.GPUs, int(*j.TimeLimitS)})
}

// A stored submission has its folder, its environment, and the token in its comment.
func TestWhatIsKeptOfASubmission(t *testing.T) {
	t.Parallel()
	c := New("here", slurmtest.Dir(t))
	dir := t.TempDir()
	sub, err := c.newSubmission(slurm.Submission{Dir: dir, Env: []string{"A=1"}}, request{Comment: "mine"})
	require.NoError(t, err)
	require.Equal(t, []string{dir, "mine", "64"}, []string{sub.Dir, sub.Request.Comment, strconv.Itoa(sub.Machine)})
	require.Contains(t, sub.Env, "A=1")
	sub, err = c.newSubmission(slurm.Submission{Dir: dir, Token: "t1"}, request{Comment: "mine"})
	require.NoError(t, err)
	require.Equal(t, slurm.TagComment("mine", "t1"), sub.Request.Comment)
	require.Equal(t, "t1", sub.Token)
	here, err := os.Getwd()
	require.NoError(t, err)
	sub, err = c.newSubmission(slurm.Submission{}, request{})
	require.NoError(t, err)
	require.Equal(t, here, sub.Dir)
	for _, bad := range []string{dir + "/none", os.Args[0]} {
		_, err = c.newSubmission(slurm.Submission{Dir: bad}, request{})
		require.ErrorContains(t, err, "does not exist")
	}
}

// storedJobs stores jobs in these states, numbered from 1, without starting them.
func storedJobs(t *testing.T, states ...slurm.State) *Cluster {
	t.Helper()
	c := New("here", slurmtest.Dir(t))
	for i, state := range states {
		id, err := c.store.add(submission{Request: request{Name: "job" + strconv.Itoa(i%2), Nodes: 1, GPUsPerNode: 4, Requeue: true}, Dir: "/w", Token: "t" + strconv.Itoa(i+1), At: time.Now()}, "#!/bin/sh\n")
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i+1), string(id))
		r, err := c.store.record(id)
		require.NoError(t, err)
		started := time.Now().Add(-90 * time.Second)
		if r.Job.State = state; state != slurm.Pending {
			r.Job.StartedAt = &started
		}
		require.NoError(t, c.store.setRecord(r))
	}
	return c
}

// A folder that cannot be read is no empty one: jobs may run.
func TestAStateThatCannotBeReadIsNoEmptyList(t *testing.T) {
	dir := t.TempDir()
	jobs, err := New("local", dir).Jobs(t.Context(), slurm.Filter{})
	require.NoError(t, err, "no job was submitted yet")
	require.Empty(t, jobs)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs"), nil, 0o600)) // root may read every folder
	_, err = New("local", dir).Jobs(t.Context(), slurm.Filter{})
	require.ErrorContains(t, err, filepath.Join(dir, "jobs"))
	require.Contains(t, slurm.FixOf(err).EN, "MEGATRON_OPS_STATE_DIR")
}

// Simultaneous submissions get different numbers, and each gets its whole job.
func TestAHundredSubmissionsAtOnceGetAHundredNumbers(t *testing.T) {
	t.Parallel()
	c := New("here", slurmtest.Dir(t))
	got := make([]slurm.JobID, 100)
	errs := make([]error, len(got))
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i], errs[i] = c.store.add(submission{}, "#!/bin/sh\n") })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	slices.SortFunc(got, compareIDs)
	kept, err := c.store.ids()
	require.NoError(t, err)
	require.Equal(t, got, kept)
	require.Len(t, slices.Compact(got), 100)
}

func TestWhenADependencyIsMet(t *testing.T) {
	t.Parallel()
	c := storedJobs(t, slurm.Pending, slurm.Running, slurm.Completed, slurm.Failed)
	for dependency, want := range map[string][2]bool{ // met, never
		"":                       {true, false},
		"after:1":                {false, false},
		"after:2":                {true, false},
		"after:2+1":              {true, false},
		"after:2+2":              {false, false},
		"afterany:2":             {false, false},
		"afterany:4":             {true, false},
		"afterok:3":              {true, false},
		"afterok:4":              {false, true},
		"afterok:2":              {false, false},
		"afternotok:4":           {true, false},
		"afternotok:3":           {false, true},
		"aftercorr:3":            {true, false},
		"afterok:3:4":            {false, true},
		"afterok:99":             {true, false},
		"afterok:3,afterany:2":   {false, false},
		"afterok:4?afterok:3":    {true, false},
		"afterok:4?afterok:2":    {false, false},
		"afterok:4?afternotok:3": {false, true},
	} {
		met, never := c.store.dependencyMet("9", submission{Request: request{Dependency: dependency}})
		require.Equal(t, want, [2]bool{met, never}, dependency)
	}
	for name, met := range map[string]bool{"job0": false, "job1": false, "other": true} {
		got, _ := c.store.dependencyMet("9", submission{Request: request{Name: name, Dependency: "singleton"}})
		require.Equal(t, met, got, name)
	}
	got, _ := c.store.dependencyMet("1", submission{Request: request{Name: "job0", Dependency: "singleton"}})
	require.True(t, got, "a job waits for those before it, not for itself")
}

func TestEndedJobsAreFoundAndNotChanged(t *testing.T) {
	t.Parallel()
	c := storedJobs(t, slurm.Completed, slurm.Failed)
	for token, want := range map[string]slurm.JobID{"t1": "1", "t2": "2", "t3": "", "": ""} {
		id, ok, err := c.Find(t.Context(), token, time.Now())
		require.NoError(t, err)
		require.Equal(t, want, id)
		require.Equal(t, want != "", ok)
	}
	_, ok, err := c.Find(t.Context(), "t1", time.Now().Add(2*time.Hour))
	require.NoError(t, err)
	require.False(t, ok, "it is of a time before")
	past, err := c.Past(t.Context(), slurm.Filter{})
	require.NoError(t, err)
	require.Len(t, past, 2)
	now, err := c.Jobs(t.Context(), slurm.Filter{})
	require.NoError(t, err)
	require.Empty(t, now)
	require.NoError(t, c.Cancel(t.Context(), "1"))
	_, err = os.Stat(c.store.controlPath("1"))
	require.Error(t, err, "nothing is asked of it")
	for _, change := range []func() error{
		func() error { return c.Hold(t.Context(), "1") },
		func() error { return c.Release(t.Context(), "1") },
		func() error { return c.Requeue(t.Context(), "1") },
		func() error { return c.Update(t.Context(), "1", slurm.Update{TimeLimit: time.Hour}) },
		func() error { return c.Update(t.Context(), "1", slurm.Update{NumNodes: 65}) },
		func() error { return c.Update(t.Context(), "1", slurm.Update{QOS: "high"}) },
		func() error { return c.Cancel(t.Context(), "9") },
		func() error { return c.Cancel(t.Context(), "x") },
	} {
		require.Error(t, change())
	}
}

// supervised holds the supervisor locks of jobs, so that they count as supervised while
// nothing but the test changes them.
func supervised(t *testing.T, c *Cluster, ids ...slurm.JobID) {
	t.Helper()
	for _, id := range ids {
		lock, ok, err := acquire(c.store.supervisorLock(id))
		require.NoError(t, err)
		require.True(t, ok)
		t.Cleanup(func() { _ = lock.Close() })
	}
}

// A clock that was set back since a job started makes no negative time.
func TestAJobThatStartsInTheFutureHasRunForNoTime(t *testing.T) {
	t.Parallel()
	j := New("local", t.TempDir()).view(record{Job: slurm.Job{ID: "1", State: slurm.Running, StartedAt: new(time.Now().Add(time.Hour))}})
	require.Zero(t, j.ElapsedS)
}

// Which orders a waiting and a running job accept, and how they show.
func TestWhatIsAskedOfAJob(t *testing.T) {
	t.Parallel()
	c := storedJobs(t, slurm.Pending, slurm.Running)
	supervised(t, c, "1", "2")
	for _, tt := range []struct {
		name string
		ask  func(id slurm.JobID) error
		says [2]string // of the one that waits, of the one that runs; empty: it is done
	}{
		{"hold", func(id slurm.JobID) error { return c.Hold(t.Context(), id) }, [2]string{"", "Job is no longer pending execution"}},
		{"release", func(id slurm.JobID) error { return c.Release(t.Context(), id) }, [2]string{}},
		{"requeue", func(id slurm.JobID) error { return c.Requeue(t.Context(), id) }, [2]string{"Job is pending execution", ""}},
		{"time", func(id slurm.JobID) error { return c.Update(t.Context(), id, slurm.Update{TimeLimit: time.Hour}) }, [2]string{}},
		{"nodes", func(id slurm.JobID) error { return c.Update(t.Context(), id, slurm.Update{NumNodes: 64}) }, [2]string{"", "Job is no longer pending execution"}},
		{"more nodes", func(id slurm.JobID) error { return c.Update(t.Context(), id, slurm.Update{NumNodes: 65}) }, [2]string{"Node count specification invalid", "Node count specification invalid"}},
		{"partition", func(id slurm.JobID) error { return c.Update(t.Context(), id, slurm.Update{Partition: "p"}) }, [2]string{"no partitions", "no partitions"}},
		{"exclude", func(id slurm.JobID) error {
			return c.Update(t.Context(), id, slurm.Update{Exclude: []string{"local1"}})
		}, [2]string{"no partitions", "no partitions"}},
	} {
		for i, says := range tt.says {
			id := slurm.JobID(strconv.Itoa(i + 1))
			if err := tt.ask(id); says == "" {
				require.NoError(t, err, "%s %s", tt.name, id)
			} else {
				require.ErrorContains(t, err, says, "%s %s", tt.name, id)
			}
			ctl := c.store.control(id)
			if tt.name == "hold" && says == "" || tt.name == "release" {
				require.Equal(t, tt.name == "hold", *ctl.Hold)
			}
		}
	}
	require.Equal(t, []int{64, 0}, []int{c.store.control("1").Nodes, c.store.control("1").Requeue})
	require.Equal(t, []int{0, 1}, []int{c.store.control("2").Nodes, c.store.control("2").Requeue})
	j, err := c.Job(t.Context(), "2")
	require.NoError(t, err)
	require.Equal(t, []string{"here", "3600"}, []string{j.Cluster, strconv.FormatInt(*j.TimeLimitS, 10)})
	require.GreaterOrEqual(t, j.ElapsedS, int64(90))
	require.NoError(t, c.Cancel(t.Context(), "2"))
	require.True(t, c.store.control("2").Cancel)
	require.False(t, c.store.control("1").Cancel)
}

// A job whose processes are gone has lost its node and releases it. The test runs alone
// because a process that another test forks meanwhile inherits the lock for a moment.
func TestAJobWithoutProcessesHasLostItsNode(t *testing.T) {
	c := storedJobs(t, slurm.Running, slurm.Running)
	runs := map[slurm.JobID]*os.File{}
	for _, id := range []slurm.JobID{"1", "2"} {
		lock, ok, err := acquire(c.store.runLock(id))
		require.NoError(t, err)
		require.True(t, ok)
		runs[id] = lock
		r, err := c.store.record(id)
		require.NoError(t, err)
		r.Job.Nodes, err = c.store.allocate(id, 1, 3)
		require.NoError(t, err)
		require.NoError(t, c.store.setRecord(r))
	}
	defer runs["2"].Close()
	held, err := c.Nodes(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"allocated", "allocated", "idle"}, []string{held[0].State, held[1].State, held[2].State})
	require.Equal(t, []int{4, 4, 0}, []int{held[0].GPUsUsed, held[1].GPUsUsed, held[2].GPUsUsed})
	ps, err := c.Partitions(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{64, 62, 2}, []int{ps[0].Total, ps[0].Idle, ps[0].Allocated})
	require.NoError(t, runs["1"].Close())
	j, err := c.Job(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, []string{"NODE_FAIL", "NodeDown", "0:0"}, []string{string(j.State), j.Reason, *j.ExitCode})
	require.InDelta(t, 90, j.ElapsedS, 60)
	require.True(t, c.store.isFree(j.Nodes[0]))
	j, err = c.Job(t.Context(), "2")
	require.NoError(t, err)
	require.Equal(t, slurm.Running, j.State)
	all, err := c.Jobs(t.Context(), slurm.Filter{All: true})
	require.NoError(t, err)
	require.Equal(t, []slurm.JobID{"1", "2"}, []slurm.JobID{all[0].ID, all[1].ID}, "oldest first")
}

func TestNodesAreNumbered(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("all nodes have one address")
	}
	for _, n := range []int{1, 2, 250, 251, 500, 501} {
		for _, name := range []string{nodeName(n), nodeAddress(n)} {
			got, ok := nodeNumber(name)
			require.True(t, ok, name)
			require.Equal(t, n, got, name)
		}
		require.Equal(t, nodeAddress(n), hostname(nodeName(n)))
	}
	for _, name := range []string{"local0", "localx", "gpu1", "127.0.0.1", "10.0.1.1", "127.1.1.1", ""} {
		_, ok := nodeNumber(name)
		require.False(t, ok, name)
	}
	require.Equal(t, "gpu1", hostname("gpu1"))
	require.Equal(t, "127.0.1.1", hostname("127.0.1.1"))
}

// Jobs get whole nodes, and the list of nodes shows it.
func TestWhichNodesAreFree(t *testing.T) {
	t.Parallel()
	c := storedJobs(t, slurm.Completed)
	c.Size = 3
	held, err := c.store.allocate("1", 2, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"local1", "local2"}, held)
	require.True(t, c.store.isFree("local1"), "its job has ended")
	held, err = c.store.allocate("1", 4, 3)
	require.NoError(t, err)
	require.Nil(t, held)
	ps, err := c.Partitions(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{3, 3, 0}, []int{ps[0].Total, ps[0].Idle, ps[0].Allocated})
	at, err := c.Test(t.Context(), slurm.Submission{Script: "#!/bin/sh\n#SBATCH -N 3\n"})
	require.NoError(t, err)
	require.False(t, at.Start.IsZero())
	at, err = c.Test(t.Context(), slurm.Submission{Script: "#!/bin/sh\n#SBATCH --begin=now+1hour\n"})
	require.NoError(t, err)
	require.Greater(t, time.Until(at.Start), 50*time.Minute)
	_, err = c.Test(t.Context(), slurm.Submission{Script: "#!/bin/sh\n#SBATCH -N 4\n"})
	require.Error(t, err)
}

// An order to an array concerns the elements that it can change: the others are no
// error, as in Slurm.
func TestAnOrderToAnArrayConcernsWhatItCanChange(t *testing.T) {
	t.Parallel()
	c := New("here", slurmtest.Dir(t))
	id, err := c.store.add(submission{Request: request{Name: "sweep", Nodes: 1, Requeue: true, Array: []int{1, 2}}, Dir: "/w", At: time.Now()}, "#!/bin/sh\n")
	require.NoError(t, err)
	supervised(t, c, id) // one supervisor has the whole array
	require.ErrorContains(t, c.Requeue(t.Context(), id), "Job is pending execution", "nothing of it runs")
	r, err := c.store.record(id + "_1")
	require.NoError(t, err)
	started := time.Now()
	r.Job.State, r.Job.StartedAt = slurm.Running, &started
	require.NoError(t, c.store.setRecord(r))
	require.NoError(t, c.Requeue(t.Context(), id))
	require.NoError(t, c.Hold(t.Context(), id))
	require.Equal(t, []int{1, 0}, []int{c.store.control(id + "_1").Requeue, c.store.control(id + "_2").Requeue})
	require.Nil(t, c.store.control(id+"_1").Hold)
	require.True(t, *c.store.control(id + "_2").Hold)
}
