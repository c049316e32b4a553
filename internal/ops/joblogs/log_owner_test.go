package joblogs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

// The logs of the job "gpt-12" and of an array's task 12 have a 12 in their names but are
// not logs of job 12; the files of job 12's ranks are.
func TestALogOfAnotherJobIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(name+"\n"), 0o644))
		return file
	}
	s := &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{
		"12":    {ID: "12", Name: "gpt", User: "alice", State: slurm.Failed, Stdout: write("gpt-12.out"), Stderr: write("gpt-12.err"), WorkDir: dir},
		"34":    {ID: "34", Name: "gpt-12", User: "alice", State: slurm.Failed, Stdout: write("gpt-12-34.out"), Stderr: write("gpt-12-34.err"), WorkDir: dir},
		"56_12": {ID: "56_12", Name: "gpt", User: "alice", State: slurm.Completed, Stdout: write("gpt-56_12.out"), WorkDir: dir},
		"56":    {ID: "56", Name: "gpt", User: "alice", State: slurm.Failed, Stdout: filepath.Join(dir, "gpt-56_%a.out"), WorkDir: dir, Tasks: map[slurm.State]int{slurm.Failed: 2}},
		"56_3":  {ID: "56_3", Name: "gpt", User: "alice", State: slurm.Failed, Stdout: write("gpt-56_3.out"), WorkDir: dir},
		"57_12": {ID: "57_12", Name: "gpt", User: "alice", State: slurm.Failed}, // as sacct of 22.05 knows it
		"58_12": {ID: "58_12", Reason: slurm.ReasonVanished},                    // nobody knows such a task
		"7":     {ID: "7", Name: "other", User: "alice", State: slurm.Failed, Stdout: "/elsewhere", WorkDir: dir},
	}}
	write("gpt-12-rank7.out")
	write("gpt-120.out")
	write("gpt-57_12.out")
	write("gpt-58_12.out")
	files := func(id string) (names []string) {
		out, err := opstest.Do(t, opstest.NewCall(t, s), Logs(), id)
		require.NoError(t, err)
		for _, l := range out.(LogsOut).Lines {
			names = append(names, l.File)
		}
		return names
	}
	require.ElementsMatch(t, []string{"gpt-12.out", "gpt-12.err", "gpt-12-rank7.out", "gpt-58_12.out"}, files("12"))
	require.ElementsMatch(t, []string{"gpt-12-34.out", "gpt-12-34.err"}, files("34"))
	require.ElementsMatch(t, []string{"gpt-56_12.out"}, files("56_12"))
	require.ElementsMatch(t, []string{"gpt-56_12.out", "gpt-56_3.out"}, files("56"), "a whole array has the logs of its tasks")
}

// What is known of a file is not asked again, so that there is an answer for another's log, too.
func TestAFileIsAskedAboutOnce(t *testing.T) {
	dir := t.TempDir()
	j := slurm.Job{ID: "12", Name: "gpt", User: "alice", Stdout: filepath.Join(dir, "gpt-12.out")}
	s := &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{
		"12": j, "34": {ID: "34", Name: "gpt-12", User: "alice", Stdout: filepath.Join(dir, "gpt-12-34.out")},
	}}
	c := opstest.NewCall(t, s)
	var f logFinder
	for range 2 * maxLooks {
		require.False(t, f.ofOther(t.Context(), c, "test", j, filepath.Join(dir, "gpt-12-rank7.out")))
	}
	require.True(t, f.ofOther(t.Context(), c, "test", j, filepath.Join(dir, "gpt-12-34.out")))
}

// The numbers in the names of an array's logs are its tasks, not ranks.
func TestATaskOfAnArrayIsNoRank(t *testing.T) {
	dir := t.TempDir()
	for task, text := range []string{"done\n", "ModuleNotFoundError: No module named 'foo'\n", "done\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("sweep-56_%d.out", task)), []byte(text), 0o644))
	}
	s := &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{
		"56": {ID: "56", User: "alice", State: slurm.Failed, Stdout: filepath.Join(dir, "sweep-56_%a.out"), Tasks: map[slurm.State]int{slurm.Failed: 1, slurm.Completed: 2}},
	}}
	out, err := opstest.Do(t, opstest.NewCall(t, s), Diagnose(), "56")
	require.NoError(t, err)
	require.Equal(t, "import_error", out.(DiagnoseOut).Class)
	require.Equal(t, "sweep-56_1.out", out.(DiagnoseOut).RootFile)
	require.Nil(t, out.(DiagnoseOut).RootRank)
	out, err = opstest.Do(t, opstest.NewCall(t, s), Logs(), "56")
	require.NoError(t, err)
	require.Len(t, out.(LogsOut).Lines, 3)
	for _, l := range out.(LogsOut).Lines {
		require.Nil(t, l.Rank, l.File)
	}
}

// countingSite is a cluster that counts the questions.
type countingSite struct {
	*opstest.Site
	times int
}

func (a *countingSite) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	a.times++
	return a.Site.Job(ctx, id)
}

// A folder with a file for each of many ranks belongs to the job, and Slurm is not
// asked about every number in it. The newest of these files says when the job last
// wrote.
func TestTheFilesOfManyRanks(t *testing.T) {
	dir := t.TempDir()
	j := slurm.Job{ID: "12", Name: "gpt", User: "alice", State: slurm.Failed, Cluster: "test", Stdout: filepath.Join(dir, "gpt-12.out"), WorkDir: dir}
	require.NoError(t, os.WriteFile(j.Stdout, []byte("x\n"), 0o644))
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for rank := range 40 {
		file := filepath.Join(dir, fmt.Sprintf("gpt-12-rank%d.out", rank))
		require.NoError(t, os.WriteFile(file, []byte("x\n"), 0o644))
		require.NoError(t, os.Chtimes(file, at, at.Add(time.Duration(rank%30)*time.Minute)))
	}
	require.NoError(t, os.Chtimes(j.Stdout, at, at))
	a := &countingSite{Site: &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{"12": j}}}
	c := opstest.NewCall(t, a.Site)
	c.Clusters["test"] = a
	_, files, err := Files(t.Context(), c, "", "12")
	require.NoError(t, err)
	require.Len(t, files, 41)
	require.LessOrEqual(t, a.times, 1+16)
	require.True(t, at.Add(29*time.Minute).Equal(LastWrite(t.Context(), c, j)))
	j.Stdout = "/nowhere/gpt-12.out"
	require.True(t, LastWrite(t.Context(), c, j).IsZero(), "it has written nothing that is seen")
}

func TestFollowedLinesComeOneByOneAsValues(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "gpt-12.out")
	require.NoError(t, os.WriteFile(log, []byte("one\ntwo\n"), 0o644))
	c := opstest.NewCall(t, &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{"12": {ID: "12", User: "alice", State: slurm.Completed, Stdout: log}}})
	var lines []string
	c.Emit = func(v any) {
		b, err := json.Marshal(v.(diagnose.Line))
		require.NoError(t, err)
		lines = append(lines, string(b))
	}
	out, err := opstest.Do(t, c, Logs(), "12", "--follow", "--tail", "1")
	require.NoError(t, err)
	require.True(t, out.(LogsOut).Streamed())
	require.Equal(t, `{"file":"gpt-12.out","line_no":2,"rank":null,"node":"","text":"two"}`, strings.Join(lines, "\n"))
}

// The accounts of Slurm before 24.05 do not name a log. One that lies where the job ran and is named as
// sbatch names logs, or after the job, is read; another job's, or an older one, is not.
func TestALogThatTheAccountsDoNotName(t *testing.T) {
	dir := t.TempDir()
	began := time.Now().Add(-time.Hour)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "logs"), 0o755))
	for name, at := range map[string]time.Time{
		"slurm-12.out": began.Add(time.Minute), "logs/gpt_12.err": began.Add(-30 * time.Second), "slurm-14.out": began, "epoch-15.txt": began, "gpt-12.old": began.Add(-time.Hour),
		"epoch-12.txt": began.Add(time.Minute), "slurm-112.out": began.Add(time.Minute), "gpt-12-34.out": began.Add(time.Minute),
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(filepath.Base(name)+"\n"), 0o600))
		require.NoError(t, os.Chtimes(file, at, at))
	}
	s := &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{
		"12": {ID: "12", Name: "gpt", User: "alice", State: slurm.Failed, WorkDir: dir, StartedAt: &began},
		"34": {ID: "34", Name: "gpt-12", User: "alice", State: slurm.Failed, WorkDir: dir, Stdout: filepath.Join(dir, "gpt-12-34.out")},
		"13": {ID: "13", Name: "gpt", User: "alice", State: slurm.Failed, WorkDir: dir, StartedAt: &began},
		"14": {ID: "14", Name: "gpt", User: "alice", State: slurm.Failed, WorkDir: dir}, // it never started
		"15": {ID: "15", User: "alice", State: slurm.Failed, WorkDir: dir, StartedAt: &began},
	}}
	out, err := opstest.Do(t, opstest.NewCall(t, s), Logs(), "12")
	require.NoError(t, err)
	var names []string
	for _, l := range out.(LogsOut).Lines {
		names = append(names, l.File)
	}
	require.ElementsMatch(t, []string{"slurm-12.out", "gpt_12.err"}, names)
	for _, id := range []string{"13", "14", "15"} {
		_, err = opstest.Do(t, opstest.NewCall(t, s), Logs(), id)
		require.ErrorContains(t, err, "where job "+id+" wrote its log is not known")
	}
	require.Contains(t, ops.AsError(err).Fix.EN, "`diagnose FILE`")
	out, err = opstest.Do(t, opstest.NewCall(t, s), Diagnose(), "13")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "No log was read: where job 13 wrote its log is not known")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "没有读取任何日志")
}

// A log that Slurm knows to be another job's is named, and a number within an experiment's name is no array.
func TestALogThatSlurmKnowsIsNamed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"gpt-12.out", "gpt-12-34.out", "sweep-56_1.out", "exp_56_of_80.log"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("it begins\n"), 0o644))
	}
	s := &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{
		"12": {ID: "12", User: "alice", State: slurm.Failed, Stdout: filepath.Join(dir, "gpt-12.out")},
		"34": {ID: "34", User: "alice", State: slurm.Failed, Stdout: filepath.Join(dir, "gpt-12-34.out")},
		"56": {ID: "56", User: "alice", State: slurm.Failed, Stdout: filepath.Join(dir, "sweep-56_%a.out"), Tasks: map[slurm.State]int{slurm.Failed: 1}},
	}}
	out, err := opstest.Do(t, opstest.NewCall(t, s), Diagnose(), "12")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), filepath.Join(dir, "gpt-12-34.out")+": it is the log of job 34")
	require.Contains(t, opstest.Text(t, out, lang.ZH), filepath.Join(dir, "gpt-12-34.out")+"：是作业 34 的日志")
	_, files, err := Files(t.Context(), opstest.NewCall(t, s), "", "56")
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "sweep-56_1.out")}, files)
}
