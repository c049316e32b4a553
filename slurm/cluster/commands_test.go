package cluster

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A reply is the answer to each command line that contains asked.
type reply struct {
	asked, out, err string
	code            int
}

// A fakeRunner answers a command with the first reply that matches its line, or else
// with nothing. It replaces @@ by the separator that the command line asks for.
type fakeRunner struct {
	rows  []reply
	asked []string
}

var separatorForm = regexp.MustCompile("\x1f[^\x1f]+\x1f")

func (p *fakeRunner) run(_ context.Context, c command) (result, error) {
	line := strings.Join(c.argv, " ")
	p.asked = append(p.asked, separatorForm.ReplaceAllString(line, "@@"))
	for _, r := range p.rows {
		if strings.Contains(p.asked[len(p.asked)-1], r.asked) {
			return result{stdout: strings.ReplaceAll(r.out, "@@", separatorForm.FindString(line)), stderr: r.err, code: r.code}, nil
		}
	}
	return result{}, nil
}

// clusterWith returns a cluster whose commands answer with these replies.
func clusterWith(rows ...reply) (*CLI, *fakeRunner) {
	p := &fakeRunner{rows: rows}
	return &CLI{
		name: "played", kind: "cli", Environ: func() []string { return nil }, meter: new(Meter), columns: new(detailColumns), runner: p,
		mkdir: func(context.Context, string) error { return nil },
	}, p
}

// queued returns a job's row of the queue, kept its row of the accounts.
func queued(id, raw, state, nodes, comment string) string {
	return "@@" + strings.Join([]string{
		id, raw, state, "None", "alice", "research", "prod", "normal", "2", nodes, "1:00", "1:00:00", "1", "1", "1", "100", "gres/gpu:8", "/w", "gpt", comment,
	}, "@@") + "@@\n"
}

func kept(id, state string) string {
	return strings.Join([]string{id, id, state, "3:0", "alice", "research", "prod", "normal", "2", "gpu[1-2]", "60", "60", "1", "1", "1", "100", "gres/gpu=16", "None", "/w", "gpt", ""}, "@@") + "\n"
}

const (
	noSuchJob = "slurm_load_jobs error: Invalid job id specified\n"
	noneKept  = "Slurm accounting storage is disabled\n"
)

// Commands that change a job have the right arguments, and a refusal has the right
// kind.
func TestOrdersToSlurm(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		name  string
		order func(*CLI) error
		rows  []reply
		asked string // the last command
		kind  slurm.ErrorKind
		fails string
	}{
		{"hold", func(c *CLI) error { return c.Hold(ctx, "7") }, nil, "scontrol hold 7", "", ""},
		{"release", func(c *CLI) error { return c.Release(ctx, "7_1") }, nil, "scontrol release 7_1", "", ""},
		{"requeue", func(c *CLI) error { return c.Requeue(ctx, "7") }, nil, "scontrol requeue 7", "", ""},
		{"hold of no job", func(c *CLI) error { return c.Hold(ctx, "7;id") }, nil, "", slurm.NotFound, "7;id"},
		{
			"hold of the rest", func(c *CLI) error { return c.Hold(ctx, "7") },
			[]reply{{"hold", "", "7_1: Job has already finished\n7_2: No error\n", 1}},
			"scontrol hold 7", "", "",
		},
		{"hold refused", func(c *CLI) error { return c.Hold(ctx, "7") }, []reply{{"hold", "", "Access/permission denied\n", 1}}, "scontrol hold 7", slurm.Denied, "denied"},
		{"in silence", func(c *CLI) error { return c.Hold(ctx, "7") }, []reply{{"hold", "", "", 3}}, "scontrol hold 7", slurm.Broken, "exit status 3 without any output"},
		{
			"fewer nodes", func(c *CLI) error { return c.Update(ctx, "7", slurm.Update{NumNodes: 2, QOS: "high"}) },
			[]reply{{"show job", "NumNodes=4 NumCPUs=96 NumTasks=32", "", 0}},
			"scontrol update JobId=7 NumNodes=2-2 NumTasks=16 NumCPUs=48 QOS=high", "", "",
		},
		{
			"fewer nodes, unseen", func(c *CLI) error { return c.Update(ctx, "7", slurm.Update{NumNodes: 2, QOS: "high"}) },
			[]reply{{"show job", "NumNodes=4", "no\n", 1}},
			"scontrol update JobId=7 NumNodes=2 QOS=high", "", "",
		},
		{"another QOS", func(c *CLI) error { return c.Update(ctx, "7", slurm.Update{QOS: "high"}) }, nil, "scontrol update JobId=7 QOS=high", "", ""},
		{"resume", func(c *CLI) error { return c.ResumeNodes(ctx, []string{"gpu1", "gpu2"}) }, nil, "scontrol update NodeName=gpu[1-2] State=RESUME", "", ""},
		{"resume nothing", func(c *CLI) error { return c.ResumeNodes(ctx, nil) }, nil, "", slurm.Rejected, "no node is named"},
		{"cancel", func(c *CLI) error { return c.Cancel(ctx, "7") }, []reply{{"scancel", "", "scancel: Terminating job 7\n", 0}}, "scancel --verbose 7", "", ""},
		{"cancel of no job", func(c *CLI) error { return c.Cancel(ctx, "x") }, nil, "", slurm.NotFound, "x"},
		{"cancel twice", func(c *CLI) error { return c.Cancel(ctx, "7") }, []reply{{"scancel", "", "scancel: error: Kill job error on job id 7: Job/step already completing or completed\n", 1}}, "scancel --verbose 7", "", ""},
		{"cancel refused", func(c *CLI) error { return c.Cancel(ctx, "7") }, []reply{{"scancel", "", "scancel: Terminating job 7\nscancel: error: Kill job error on job id 7: Access/permission denied\n", 0}}, "scancel --verbose 7", slurm.Denied, "denied"},
		{"cancel in silence", func(c *CLI) error { return c.Cancel(ctx, "7") }, []reply{{"scancel", "", "", 1}}, "scancel --verbose 7", slurm.Broken, "exit status 1"},
		{
			"cancel of one long ended", func(c *CLI) error { return c.Cancel(ctx, "7") },
			[]reply{{"scancel", "", "scancel: error: Kill job error on job id 7: Invalid job id specified\n", 1}, {"squeue", "", noSuchJob, 1}, {"JobIDRaw", kept("7", "COMPLETED"), "", 0}},
			"", "", "",
		},
		{
			"cancel of one not known to have ended", func(c *CLI) error { return c.Cancel(ctx, "7") },
			[]reply{{"scancel", "", "scancel: error: Kill job error on job id 7: Invalid job id specified\n", 1}, {"squeue", "", noSuchJob, 1}, {"JobIDRaw", kept("7", "RUNNING"), "", 0}},
			"", slurm.NotFound, "7",
		},
		{"signal", func(c *CLI) error { return c.Signal(ctx, "7", "TERM") }, []reply{{"scancel", "", "scancel: Signal 15 to job 7\n", 0}}, "scancel --verbose --signal=TERM 7", "", ""},
		{"signal no job", func(c *CLI) error { return c.Signal(ctx, "x", "TERM") }, nil, "", slurm.NotFound, "x"},
		{"cancel a step", func(c *CLI) error { return c.CancelStep(ctx, "7.0") }, []reply{{"scancel", "", "scancel: Signal 9 to step 7.0\n", 0}}, "scancel --verbose 7.0", "", ""},
		{"cancel a step twice", func(c *CLI) error { return c.CancelStep(ctx, "7.0") }, []reply{{"scancel", "", "scancel: error: Job/step already completing or completed\n", 1}}, "scancel --verbose 7.0", "", ""},
		{"cancel no step", func(c *CLI) error { return c.CancelStep(ctx, "7") }, nil, "", slurm.Rejected, "a step is written like 4711.0"},
		{"cancel a step that is not", func(c *CLI) error { return c.CancelStep(ctx, "7.5") }, []reply{{"scancel", "", "scancel: error: Invalid job id specified\n", 1}}, "scancel --verbose 7.5", slurm.NotFound, "job 7 has no such step"},
		{"cancel another's step", func(c *CLI) error { return c.CancelStep(ctx, "7.5") }, []reply{{"scancel", "", "scancel: error: Access/permission denied\n", 0}}, "scancel --verbose 7.5", slurm.Denied, "denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cli, p := clusterWith(c.rows...)
			err := c.order(cli)
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				var e *slurm.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, c.kind, e.Kind)
				require.ErrorContains(t, err, c.fails)
			}
			if c.asked != "" {
				require.Equal(t, c.asked, p.asked[len(p.asked)-1])
			}
			if c.asked == "" && len(c.rows) == 0 {
				require.Empty(t, p.asked, "what cannot be is not asked of Slurm")
			}
		})
	}
}

// A job that has left the queue has not ended until the accounts say so.
func TestAJobThatHasLeftTheQueue(t *testing.T) {
	gone := reply{"squeue", "", noSuchJob, 1}
	for _, c := range []struct {
		name string
		id   slurm.JobID
		rows []reply
		want string
		err  string
	}{
		{"ended", "7", []reply{gone, {"JobIDRaw", kept("7", "FAILED"), "", 0}, {"StdOut", "7@@/w/%j.out@@\n", "", 0}}, "7 FAILED  /w/7.out /w/7.out", ""},
		{"its paths are not told", "7", []reply{gone, {"JobIDRaw", kept("7", "FAILED"), "", 0}, {"StdOut", "7@@/w/%j.out@@\n", "Invalid field\n", 1}}, "7 FAILED   ", ""},
		{"not settled", "7", []reply{gone, {"JobIDRaw", kept("7", "RUNNING"), "", 0}}, "7 RUNNING AccountingPending  ", ""},
		{"a component", "7+1", []reply{gone, {"JobIDRaw", kept("7+1", "FAILED"), "", 0}, {"--jobs=7", "7+0@@/w/a@@/w/b\n", "", 0}}, "7+1 FAILED  /w/a /w/b", ""},
		{"nowhere", "7", []reply{gone, {"sacct", "", "", 0}}, "", "7: not known to Slurm"},
		{"nowhere, and no accounts", "7", []reply{gone, {"sacct", "", noneKept, 1}}, "", "7: not known to Slurm"},
		{"the accounts fail", "7", []reply{gone, {"sacct", "", "Problem talking to the database\n", 1}}, "", "database"},
		{"the queue fails", "7", []reply{{"squeue", "", "Unable to contact slurm controller\n", 1}}, "", "controller"},
		{"no id", "x", nil, "", "x: not known to Slurm"},
		{
			"an element of which nothing is kept", "7_3",
			[]reply{{"sacct", "", "", 0}, {"--jobs=7_3", "", noSuchJob, 1}, {"squeue", queued("7_4", "9", "RUNNING", "gpu1", ""), "", 0}},
			"7_3 CANCELLED NoRecord  ", "",
		},
		{
			"an element of which nothing is kept, of an array that has ended", "7_3",
			[]reply{gone, {"--jobs=7_3", "", "", 0}, {"sacct", kept("7_4", "COMPLETED"), "", 0}},
			"7_3 CANCELLED NoRecord  ", "",
		},
		{"an element of no array", "7_3", []reply{gone, {"sacct", "", "", 0}}, "", "7_3: not known to Slurm"},
		{"an element, and the array cannot be asked", "7_3", []reply{gone, {"--jobs=7_3", "", "", 0}, {"sacct", "", "Problem talking to the database\n", 1}}, "", "database"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cli, _ := clusterWith(c.rows...)
			j, err := cli.Job(t.Context(), c.id)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, fmt.Sprintf("%s %s %s %s %s", j.ID, j.State, j.Reason, j.Stdout, j.Stderr))
		})
	}
}

// The filter determines the query, and the accounts add the jobs that have left the
// queue.
func TestWhichJobsAreAskedFor(t *testing.T) {
	c, p := clusterWith(reply{"squeue", queued("7", "7", "RUNNING", "gpu1", ""), "", 0},
		reply{"sacct", kept("7", "FAILED") + kept("6", "COMPLETED") + kept("5", "RUNNING"), "", 0})
	ids := func(jobs []slurm.Job, err error) string {
		require.NoError(t, err)
		var b strings.Builder
		for _, j := range jobs {
			b.WriteString(string(j.ID) + ":" + string(j.State) + " ")
		}
		return strings.TrimSpace(b.String())
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.Equal(t, "7:RUNNING", ids(c.Jobs(t.Context(), slurm.Filter{User: "alice", Partition: "prod", IDs: []slurm.JobID{"7"}})))
	require.Contains(t, p.asked[0], " --user=alice --partition=prod --jobs=7")
	require.Equal(t, "7:RUNNING 6:COMPLETED", ids(c.Jobs(t.Context(), slurm.Filter{All: true, Since: since})))
	require.Contains(t, p.asked[2], "--starttime=2026-01-02T03:04:05 --allusers")
	require.Empty(t, ids(c.Jobs(t.Context(), slurm.Filter{Partition: "dev"})), "what squeue lists beside is left out")

	p.asked = nil
	many := make([]slurm.JobID, manyIDs+1)
	for i := range many {
		many[i] = slurm.JobID(fmt.Sprint(i + 1))
	}
	_, err := c.Jobs(t.Context(), slurm.Filter{IDs: many})
	require.NoError(t, err)
	require.NotContains(t, p.asked[0], "--jobs", "so many are cheaper asked for as all")
	_, err = c.Jobs(t.Context(), slurm.Filter{IDs: many[1:]})
	require.NoError(t, err)
	require.Contains(t, p.asked[1], "--jobs=2,3,")

	p.asked = nil
	_, err = c.Past(t.Context(), slurm.Filter{User: "alice", Partition: "prod", IDs: []slurm.JobID{"5", "6"}})
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(p.asked[0], " --user=alice --partition=prod --jobs=5,6"), p.asked[0])
	failing, _ := clusterWith(reply{"sacct", "", "Problem talking to the database\n", 1})
	_, err = failing.Past(t.Context(), slurm.Filter{IDs: []slurm.JobID{"5"}})
	require.ErrorIs(t, err, slurm.ErrUnreachable)
}

// Find finds a submission by its token while it waits, while it runs, and after its
// end.
func TestASubmissionIsFoundByItsToken(t *testing.T) {
	mine := queued("7_1", "8", "RUNNING", "gpu1", "mine mops:abcdefgh")
	for _, c := range []struct {
		name  string
		rows  []reply
		id    slurm.JobID
		found bool
		err   string
	}{
		{"queued", []reply{{"squeue", mine, "", 0}}, "7", true, ""},
		{"ended", []reply{{"SubmitLine", "sbatch --comment=mops:abcdefgh@@@@gpt@@9_2\n", "", 0}}, "9", true, ""},
		{"nowhere", nil, "", false, ""},
		{"another's token", []reply{{"squeue", queued("7", "7", "RUNNING", "gpu1", "mops:zzzzzzzz"), "", 0}}, "", false, ""},
		{"no accounts are kept", []reply{{"sacct", "", noneKept, 1}}, "", false, ""},
		{"the accounts fail", []reply{{"sacct", "", "Problem talking to the database\n", 1}}, "", false, "database"},
		{"the queue fails", []reply{{"squeue", "", "Unable to contact slurm controller\n", 1}}, "", false, "controller"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cli, p := clusterWith(c.rows...)
			id, found, err := cli.Find(t.Context(), "abcdefgh", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.id, id)
			require.Equal(t, c.found, found)
			if len(p.asked) > 1 {
				require.Contains(t, p.asked[1], "--starttime=2026-01-02T02:04:05", "clocks may differ")
			}
		})
	}
}

// A start in the output of sbatch --test-only counts only where it is an estimate.
func TestWhatSlurmWouldDoWithASubmission(t *testing.T) {
	at := time.Now().Add(time.Hour).Unix()
	for _, c := range []struct {
		text  string
		code  int
		start bool
		err   string
	}{
		{fmt.Sprintf("sbatch: Job 8 to start at %d using 64 processors on nodes gpu1 in partition prod\n", at), 0, true, ""},
		{fmt.Sprintf("sbatch: Job 8 to start at %d a using 64 processors on gpu1\n", at), 0, true, ""},
		{"sbatch: Job 8 to start at N/A using 64 processors on gpu1\n", 0, false, ""},
		{"", 0, false, ""},
		{"sbatch: error: invalid partition specified: x\n", 1, false, "invalid partition"},
	} {
		cli, p := clusterWith(reply{"sbatch", "", c.text, c.code})
		e, err := cli.Test(t.Context(), slurm.Submission{Script: "#!/bin/sh\n", LogDir: "logs", Args: []string{"--hold"}})
		require.Equal(t, []string{"sbatch --parsable --hold --test-only"}, p.asked)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.start, !e.Start.IsZero(), c.text)
	}
}

// A submission with an unknown outcome is distinguished from a refused one.
func TestWhetherASubmissionWasTaken(t *testing.T) {
	for stderr, kind := range map[string]slurm.ErrorKind{
		"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n": slurm.Unknown,
		"sbatch: error: invalid partition specified: x\n":                                       slurm.Rejected,
	} {
		cli, _ := clusterWith(reply{"sbatch", "", stderr, 1})
		_, err := cli.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n"})
		var e *slurm.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, kind, e.Kind)
	}
	cli, p := clusterWith(reply{"sbatch", strings.Repeat("x", 300), "", 0})
	_, err := cli.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n"})
	require.ErrorContains(t, err, strings.Repeat("x", 200)+"…")
	require.NotContains(t, err.Error(), strings.Repeat("x", 201))
	_, err = cli.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n#SBATCH --comment='mine\n", Token: "abcdefgh"})
	require.ErrorIs(t, err, slurm.ErrRejected)
	require.Len(t, p.asked, 1, "a script that cannot be read is not submitted")
}

// Priorities, shares, steps and limits are queried with the right arguments.
func TestWhereAUserStands(t *testing.T) {
	cli, p := clusterWith(
		reply{"sprio --noheader --weights", "|||1|2|3|4|5|6|7\n", "", 0},
		reply{"sprio", "7|alice|100|1|2|3|4|5|6|0\n", "", 0},
		reply{"sshare", " research|alice|1|0.5|100|0.25|0.75\nresearch|bob|1|0.5|100|0.25|0.25\n", "", 0},
		reply{"sacctmgr", "mega|research|alice||normal|normal,urgent||||||\n", "", 0},
		reply{"sacct", "7@@RUNNING@@0:0@@60@@gpu1@@@@1@@batch@@\n7.0@@FAILED@@3:0@@60@@gpu[1-2]@@1G@@1@@train@@srun train\n", "", 0},
		reply{"--steps", "7.1|1|gpu1|other\n", "", 0},
		reply{"write batch_script", "#!/bin/sh\n", "", 0},
		reply{"sdiag", "Server thread count: 3\n", "", 0},
		reply{"show topology", "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=gpu[1-2]\n", "", 0},
	)
	all, err := cli.Priorities(t.Context(), "7")
	require.NoError(t, err)
	require.Equal(t, slurm.JobID("7"), all[0].Job)
	require.Contains(t, p.asked[0], "--jobs=7")
	weights, err := cli.PriorityWeights(t.Context())
	require.NoError(t, err)
	require.Zero(t, weights.Job)

	shares, err := cli.Shares(t.Context())
	require.NoError(t, err)
	require.Len(t, shares, 2)
	require.Contains(t, p.asked[2], "--all")

	accounts, err := cli.Associations(t.Context(), "alice")
	require.NoError(t, err)
	require.Equal(t, []string{"normal", "urgent"}, accounts[0].QOS)
	steps, err := cli.Steps(t.Context(), "7")
	require.NoError(t, err)
	require.Equal(t, "train", steps[0].Name)
	_, err = cli.Steps(t.Context(), "x")
	require.ErrorIs(t, err, slurm.ErrNotFound)
	steps, err = cli.RunningSteps(t.Context())
	require.NoError(t, err)
	require.Equal(t, "7.1", steps[0].ID)

	script, err := cli.BatchScript(t.Context(), "7_3")
	require.NoError(t, err)
	require.Equal(t, "#!/bin/sh\n", script)
	require.Equal(t, "scontrol write batch_script 7 -", p.asked[len(p.asked)-1])
	_, err = cli.BatchScript(t.Context(), "x")
	require.ErrorIs(t, err, slurm.ErrNotFound)
	load, err := cli.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, load.Threads)
	switches, err := cli.Topology(t.Context())
	require.NoError(t, err)
	require.Equal(t, "s1", switches["gpu2"])
}

// At a site without accounts, a submission whose token is in no queue was not found: it must
// not count as submitted under an empty id.
func TestASubmissionIsNotFoundWhereNoAccountsAreKept(t *testing.T) {
	cli, _ := clusterWith(reply{"sacct", "", noneKept, 1})
	id, found, err := cli.Find(t.Context(), "mo-0123456789abcdef", time.Now())
	require.NoError(t, err)
	require.False(t, found)
	require.Empty(t, id)
}

// A cluster that enforces no limits is not asked for them, and one whose configuration is unknown has
// no known limits.
func TestLimitsAreAskedOnlyWhereTheyBind(t *testing.T) {
	idle, p := clusterWith(reply{"show config", "AccountingStorageEnforce = none\n", "", 0})
	limits, err := idle.Limits(t.Context(), "alice", "research", "normal")
	require.NoError(t, err)
	require.Empty(t, limits)
	require.Equal(t, []string{"scontrol show config"}, p.asked)

	silent, p := clusterWith(reply{"show config", "", "Unable to contact slurm controller\n", 1})
	_, err = silent.Limits(t.Context(), "alice", "research", "normal")
	require.Error(t, err)
	require.Len(t, p.asked, 1)
}

// A cluster without priorities by factors has no weights, which is no error.
func TestNoWeightsAreNoError(t *testing.T) {
	plain, _ := clusterWith()
	weights, err := plain.PriorityWeights(t.Context())
	require.NoError(t, err)
	require.Zero(t, weights)
}
