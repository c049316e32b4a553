package slurm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPartsOfAHeterogeneousJob(t *testing.T) {
	require.True(t, IsJobID("12+0"))
	require.False(t, IsJobID("12+"))
	require.False(t, IsJobID("12+0_1"))
	require.Equal(t, JobID("12"), JobID("12+1").Array())
	require.Equal(t, JobID("12"), JobID("12_1").Array())
	rows := []Job{
		{ID: "12+0", State: Running, Nodes: []string{"gpu1"}, GPUs: 2},
		{ID: "12+1", RawID: "13", State: Running, Nodes: []string{"gpu2", "gpu3"}, GPUs: 2},
	}
	whole, ok := Fold("12", rows)
	require.True(t, ok)
	require.Equal(t, 4, whole.GPUs)
	require.Equal(t, []string{"gpu1", "gpu2", "gpu3"}, whole.Nodes)
	part, ok := Fold("12+1", rows)
	require.True(t, ok)
	require.Equal(t, JobID("13"), part.RawID)
	own, ok := Fold("13", rows) // squeue and the job itself name the component so
	require.True(t, ok)
	require.Equal(t, JobID("12+1"), own.ID)
	element, ok := Fold("36", []Job{{ID: "34_1", RawID: "36", State: Running}})
	require.True(t, ok)
	require.Equal(t, JobID("34_1"), element.ID)
	_, ok = Fold("37", rows)
	require.False(t, ok)
	rows[0].State = Completed
	whole, _ = Fold("12", rows)
	require.Equal(t, Running, whole.State, "while one component runs the job runs")
}

func TestIdleAllocations(t *testing.T) {
	now := time.Unix(1e9, 0)
	since := now.Add(-time.Hour)
	job := func(id, raw JobID, nodes int) Job {
		return Job{ID: id, RawID: raw, State: Running, StartedAt: &since, NumNodes: nodes, GPUs: 8 * nodes}
	}
	jobs := []Job{
		job("1", "", 2),    // salloc: no step at all
		job("2", "", 1),    // a batch script that does the work itself
		job("3", "", 2),    // a batch script that leaves its second node alone
		job("4", "", 2),    // srun
		job("5_1", "6", 1), // an element, whose step goes by its own number
		job("7+1", "8", 2), // a component, likewise
		job("9", "", 1),    // nothing but the extern step
		{ID: "10", State: Pending},
	}
	steps := []Step{
		{ID: "2.batch"}, {ID: "3.batch"}, {ID: "4.batch"}, {ID: "4.0"}, {ID: "6.0"}, {ID: "8.0"}, {ID: "9.extern"},
	}
	var ids []JobID
	idle := IdleAllocations(jobs, steps, 30*time.Minute, now)
	for _, i := range idle {
		ids = append(ids, i.Job.ID)
	}
	require.Equal(t, []JobID{"1", "3", "9"}, ids)
	require.InDelta(t, 16.0, idle[0].GPUHours, 1e-9)
	require.Empty(t, IdleAllocations(jobs, steps, 2*time.Hour, now))
}

func TestACommandBesideAComponent(t *testing.T) {
	args := Exec{Job: "17", HetGroup: "1", Argv: []string{"true"}}.Args([]string{"gpu2", "gpu3"})
	require.Contains(t, args, "--jobid=17")
	require.Contains(t, args, "--het-group=1")
	require.Equal(t, []string{"--", "timeout", "--kill-after=5", "2", "true"}, Exec{Job: "17", Argv: []string{"true"}, GPUs: true, Limit: 2 * time.Second}.Args([]string{"gpu2"})[9:])
	require.NotContains(t, Exec{Job: "17"}.Args([]string{"gpu2"}), "--het-group=")
}

// Each component of a script has the options of its own lines.
func TestComponentsOfAScript(t *testing.T) {
	all, err := ReadComponents("#!/bin/sh\n#SBATCH --nodes=1 -J a\n#SBATCH hetjob\n#SBATCH -N 2\n#SBATCH packjob # old\n# no more\nsrun true\n#SBATCH --nodes=9\n")
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, "1", all[0].Value("nodes"))
	require.Equal(t, "2", all[1].Value("nodes"))
	require.Empty(t, all[2])
	first, err := ReadDirectives("#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH hetjob\n#SBATCH -N 2\n")
	require.NoError(t, err)
	require.Equal(t, Options{{Name: "nodes", Value: "1"}}, first)
	_, err = ReadComponents("#!/bin/sh\n#SBATCH hetjobs\n")
	require.ErrorContains(t, err, "line 2")
}

// Among components in the same state the first represents the job, wherever its row is;
// among different states, the one that a person would look at first.
func TestWhichComponentSpeaksForTheJob(t *testing.T) {
	second := Job{ID: "12+1", Name: "b", State: Running, Partition: "a100", NumNodes: 2, Stdout: "/w/no"}
	first := Job{ID: "12+0", Name: "a", State: Running, Partition: "h100", NumNodes: 1, Stdout: "/w/yes"}
	whole, ok := Fold("12", []Job{second, first})
	require.True(t, ok)
	require.Equal(t, "h100", whole.Partition)
	require.Equal(t, 3, whole.NumNodes)
	require.Equal(t, "/w/yes", whole.Stdout)
	second.State = Failed
	first.State = Completed
	whole, _ = Fold("12", []Job{first, second})
	require.Equal(t, Failed, whole.State)
	require.Equal(t, "a100", whole.Partition)
	require.Equal(t, "/w/yes", whole.Stdout, "only the first has a log")
	part, _ := Fold("12+1", []Job{first, second})
	require.Equal(t, "/w/yes", part.Stdout)
	_, ok = Fold("13", []Job{first, second})
	require.False(t, ok)
}

// An element has no job number of its own while it waits in the array's single row.
func TestLogsOfElementsThatWait(t *testing.T) {
	for _, c := range []struct {
		job  Job
		want string
	}{
		{Job{ID: "34_2", State: Pending}, "%j-34_2"},
		{Job{ID: "34_2", RawID: "34", State: Pending}, "%j-34_2"},
		{Job{ID: "34_2", RawID: "36", State: Pending}, "36-34_2"},
		{Job{ID: "34_2", RawID: "34", State: Running}, "34-34_2"},
		{Job{ID: "34_2", RawID: "36", State: Completed}, "36-34_2"},
		{Job{ID: "34", State: Pending}, "34-34_4294967294"},
	} {
		require.Equal(t, c.want, ExpandPattern("%j-%A_%a", c.job), "%+v", c.job)
	}
}

func TestAskingForALookAtNodes(t *testing.T) {
	args := Visit{Nodes: []string{"gpu1", "gpu2"}, Limit: 90 * time.Second, CPUs: 3}.Args()
	require.Contains(t, args, "--time=3")
	require.Contains(t, args, "--nodes=2")
	require.Contains(t, args, "--cpus-per-task=3")
	args = Visit{Nodes: []string{"gpu1"}, Limit: time.Second}.Args()
	require.Contains(t, args, "--time=2")
	require.Contains(t, args, "--cpus-per-task=1")
}
