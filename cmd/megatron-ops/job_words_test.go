package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Each line is what was typed, and the command lines that it means, one per job.
func TestJobsAreNamedAsPeopleHaveThem(t *testing.T) {
	at := time.Now().Add(-time.Hour)
	site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	for i, j := range []slurm.Job{
		{ID: "4", Name: "old", State: slurm.Completed},
		{ID: "5", Name: "gpt", State: slurm.Failed},
		{ID: "6", Name: "twin", State: slurm.Running},
		{ID: "7", Name: "twin", State: slurm.Pending},
		{ID: "8_1", Name: "sweep", State: slurm.Timeout},
		{ID: "9", Name: "gpt", State: slurm.Running},
		{ID: "10", Name: "theirs", State: slurm.Running, User: "bob"},
		{ID: "11_0", Name: "last-one", State: slurm.Cancelled},
	} {
		submitted := at.Add(time.Duration(i) * time.Minute)
		j.SubmittedAt = &submitted
		if j.User == "" {
			j.User = "alice"
		}
		site.KnownJobs[j.ID] = j
	}
	t.Chdir(t.TempDir())
	opstest.Write(t, "logs", "")
	opstest.Write(t, "run.log", "")
	for typed, want := range map[string]string{
		"status 12":               "12",
		"status 12 13 12":         "12 | 13",
		"cancel 12 --yes 13":      "12 --yes | 13 --yes",
		"status 12_[0-1,3]":       "12_0 | 12_1 | 12_3",
		"status 12.0":             "12.0",
		"status last":             "11",
		"status failed":           "8_1",
		"status gpt":              "9",
		"status old":              "4",
		"status twin":             "7",
		"cancel twin":             "error: 2 jobs named twin wait or run: 7, 6",
		"cancel gpt":              "9",
		"status theirs":           `error: "theirs" is not a job id, and none of your jobs of the last seven days has that name`,
		"logs gpt --tail 5 -w n1": "9 --tail 5 -w n1",
		"logs -n 5 gpt":           "-n 5 9",
		"logs --rank=3 gpt old":   "--rank=3 9 | --rank=3 4",
		"run gpt -- hostname gpt": "9 -- hostname gpt",
		"status - <4 5\n6":        "4 | 5 | 6",
		`cancel - <{"jobs":[{"job_id":"4"},{"job_id":"5_1"}]}`: "4 | 5_1",
		"cancel - <{\"job_id\":\"4\"}\n{\"job_id\":\"6\"}":     "4 | 6",
		"cancel 2,3 --yes":               "2 --yes | 3 --yes",
		"cancel 2, 3":                    "2 | 3",
		"cancel 2,8_[1-2],4+1":           "2 | 8_1 | 8_2 | 4+1",
		"metrics 2,3 gpt":                "2 3 9",
		"diagnose 2,3":                   `error: "2,3" names 2 jobs, and diagnose takes one here`,
		"diff 2,3":                       `error: "2,3" names 2 jobs, and diff takes one here`,
		"cancel - <":                     "error: standard input holds no job id",
		"cancel - <4 rm":                 `error: "rm" on standard input is not a job id`,
		"submit -f job.yaml --from last": "-f job.yaml --from 11",
		"submit --from last --no-guards": "--from 11 --no-guards",
		"status --lnag zh 5":             "--lnag zh 5",
		"status sweep_3":                 "8_3",
		"cancel sweep_[1-2] --yes":       "8_1 --yes | 8_2 --yes",
		"status gpt_3":                   `error: "gpt_3" is not a job id, and none of your jobs of the last seven days has that name`,
		"logs x.log":                     "error: there is no file x.log, and its name is that of a path, not of a job",
		"logs run.log":                   "error: run.log is a file, but a job is needed here",
		"status logs/slurm-4":            "error: there is no file logs/slurm-4, and its name is that of a path, not of a job",
		"cancel slurm-%j.out":            "error: there is no file slurm-%j.out, and its name is that of a path, not of a job",
		"logs run.logs":                  `error: "run.logs" is not a job id, and none of your jobs of the last seven days has that name`,
		"metrics x.log gpt":              "x.log 9",
		"diagnose failed":                "8_1",
		"diagnose logs":                  "logs",
		"diagnose ./last":                "./last",
		"diagnose nowhere":               `error: there is no file or folder nowhere; "nowhere" is not a job id, and none of your jobs of the last seven days has that name`,
		"metrics gpt logs last":          "9 logs 11",
		"compare failed old":             "8_1 4",
		"list --all":                     "--all",
		"cancel --mine":                  "--mine",
		"status":                         "",
	} {
		line, stdin, _ := strings.Cut(typed, " <")
		words := strings.Fields(line)
		c := opstest.NewCall(t, site)
		c.Dir, c.Stdin = ".", strings.NewReader(stdin)
		op, ok := operations.Lookup(words[0])
		require.True(t, ok, typed)
		each, err := (&shell{}).perJob(t.Context(), c, op, words[1:])
		got := make([]string, len(each))
		for i, e := range each {
			got[i] = strings.Join(e, " ")
		}
		said := strings.Join(got, " | ")
		if err != nil {
			said = "error: " + ops.AsError(err).Message.In(lang.EN)
		}
		require.Equal(t, want, said, typed)
	}
}

// Where there are several clusters, a name of several jobs is told with the one that was looked at.
func TestANameOfSeveralJobsIsToldWithItsCluster(t *testing.T) {
	site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	for _, id := range []slurm.JobID{"6", "7"} {
		site.KnownJobs[id] = slurm.Job{ID: id, Name: "twin", User: "alice", State: slurm.Running}
	}
	c := opstest.NewCall(t, site)
	c.Clusters["far"] = site
	op, _ := operations.Lookup("cancel")
	for on, says := range map[string]string{"": "on test, 2 jobs named twin wait or run: 7, 6", "far": "on far, 2 jobs named twin wait or run: 7, 6"} {
		_, err := (&shell{cluster: on}).perJob(t.Context(), c, op, []string{"twin"})
		require.ErrorContains(t, err, says)
	}
}

// A silentSite does not answer.
type silentSite struct{ opstest.Site }

func (*silentSite) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) {
	return nil, slurm.FromStderr("squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
}

// While Slurm does not answer, a job's name is not told to be a file that is missing.
func TestANameIsNoMissingFileWhileSlurmIsAway(t *testing.T) {
	t.Chdir(t.TempDir())
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"], c.Dir = &silentSite{}, "."
	op, _ := operations.Lookup("diagnose")
	_, err := (&shell{}).perJob(t.Context(), c, op, []string{"my-run"})
	require.ErrorContains(t, err, "there is no file or folder my-run, and whether a job has that name is not known: ")
	require.ErrorContains(t, err, "Unable to contact slurm controller")
	require.Equal(t, ops.Failed, ops.AsError(err).Code)
	_, err = (&shell{}).perJob(t.Context(), c, op, []string{"run.log"})
	require.NoError(t, err, "a file's name is no job's, and diagnose itself says that it is missing")
	_, err = op.Run(t.Context(), c, &joblogs.DiagnoseIn{Target: "run.log"})
	require.ErrorContains(t, err, "there is no file or folder run.log; a word with a slash, a % or a log's ending is a path, so no job of that name was looked for")
	require.Contains(t, ops.AsError(err).Message.ZH, "没有文件或目录 run.log；")
	require.Contains(t, ops.AsError(err).Fix.EN, "the path of a log file or folder; in a shell also a job's name")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
}

// A queueOnlySite has accounts that do not answer.
type queueOnlySite struct{ opstest.Site }

func (*queueOnlySite) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) {
	running := slurm.Job{ID: "7", RawID: "7", Name: "nightly", State: slurm.Running}
	return []slurm.Job{running}, &slurm.AccountsError{Err: slurm.FromStderr("sacct", "sacct: error: Problem talking to the database: Connection refused")}
}

// While the accounts are away, what is read is found in the queue and among the person's own
// submissions, and the answer says so. What would be changed is not guessed, nor which job failed.
func TestJobsAreFoundWithoutTheAccountsForReadingAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"], c.Dir = &queueOnlySite{}, "."
	st, err := c.Store()
	require.NoError(t, err)
	for id, owner := range map[slurm.JobID]string{"7": "alice", "8": "alice", "9": "bob"} { // 9 is somebody else's
		require.NoError(t, st.Adopt(t.Context(), store.Submission{
			Key: string(id), Token: string(id), Cluster: "test", JobID: id, Owner: owner, Name: "of-" + string(id), Spec: []byte("{}"), CreatedAt: c.Now().Add(-time.Hour),
		}))
	}
	for typed, want := range map[string]string{
		"status nightly": "7", "cancel nightly": "7", "status last": "8", "status of-8": "8", "diagnose last": "8", "submit --from of-8": "",
		"status failed": "", "status of-7": "", "status of-9": "", "cancel last": "", "cancel of-8": "", "requeue last": "",
	} {
		words := strings.Fields(typed)
		op, ok := operations.Lookup(words[0])
		require.True(t, ok, typed)
		var warned strings.Builder
		each, err := (&shell{streams: streams{err: &warned}}).perJob(t.Context(), c, op, words[1:])
		if want == "" {
			require.ErrorContains(t, err, "Connection refused", typed)
			continue
		}
		require.NoError(t, err, typed)
		require.Equal(t, [][]string{{want}}, each, typed)
		if want == "7" { // in the queue, whatever the accounts know
			require.Empty(t, warned.String(), typed)
			continue
		}
		require.Contains(t, warned.String(), "Connection refused; "+words[1]+" is taken for job "+want+", the newest in the queue and among those submitted from here", typed)
	}
}

// A word that names neither a file nor a job may have been meant as either.
func TestAWordThatNamesNothingIsToldAsAJobToo(t *testing.T) {
	t.Chdir(t.TempDir())
	c := opstest.NewCall(t, &opstest.Site{})
	c.Dir = "."
	for word, says := range map[string]string{
		"last": "there is no file or folder last; you have no job from the last seven days", "failed": "there is no file or folder failed; none of your jobs has failed in the last seven days",
		"my-run": `there is no file or folder my-run; "my-run" is not a job id, and none of your jobs of the last seven days has that name`,
	} {
		for _, name := range []string{"diagnose", "metrics", "compare", "checkpoint"} {
			op, _ := operations.Lookup(name)
			_, err := (&shell{}).perJob(t.Context(), c, op, []string{word})
			require.Equal(t, ops.NotFound, ops.AsError(err).Code, name)
			require.Equal(t, says, ops.AsError(err).Message.EN, name)
			require.Contains(t, ops.AsError(err).Fix.EN, "the path of a file or folder, or an id such as 4711")
		}
	}
}
