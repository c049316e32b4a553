package diagnose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// The output of seff and of sacct at the end of a log is Slurm's word about the job.
func TestSlurmsAccountInALog(t *testing.T) {
	const quiet = "Reading a shard\nThe learning rate is 0.01\n"
	seff := func(jobs, state string) string {
		return jobs + "Cluster: hawk\nUser/Group: ana/staff\nState: " + state + "\nNodes: 1\nCores per node: 10\nCPU Utilized: 00:03:50\n" +
			"CPU Efficiency: 9.06% of 00:42:20 core-walltime\nJob Wall-clock time: 00:04:14\nMemory Utilized: 12.00 GB\n" +
			"Memory Efficiency: 30.00% of 39.06 GB (39.06 GB/node)\n"
	}
	const job, task = "Job ID: 4711\n", "Job ID: 4718\nArray Job ID: 4711_3\n"
	const columns = "JobID           JobName      State ExitCode\n------------ ---------- ---------- --------\n"
	sacct := func(state, exit string) string {
		return columns + fmt.Sprintf("4711              train %10s %8s\n4711.batch        batch %10s %8s\n", state, exit, state, exit)
	}
	for name, c := range map[string]struct {
		file, log, state, class, root string
	}{
		"out of memory":  {"slurm-4711.out", seff(job, "OUT_OF_MEMORY (exit code 0)"), "", outcome.HostOOM, "State: OUT_OF_MEMORY (exit code 0)"},
		"the time limit": {"slurm-4711.out", seff(job, "TIMEOUT (exit code 0)"), "", outcome.SlurmTimeLimit, "State: TIMEOUT (exit code 0)"},
		"cancelled":      {"slurm-4711.out", seff(job, "CANCELLED (exit code 0)"), "", outcome.SlurmCancelled, "State: CANCELLED (exit code 0)"},
		"cancelled, after a file was saved": {
			"slurm-4711.out", quiet + "The settings are saved to results/settings.yaml\n\n=== JOB FEEDBACK ===\n\n" + seff(job, "CANCELLED (exit code 0)") + "Energy Consumed: 16071748 Joule\nEndtime: Sat Jun 15 07:13:23 2024\n",
			"", outcome.SlurmCancelled, "State: CANCELLED (exit code 0)",
		},
		"preempted":              {"slurm-4711.out", seff(job, "PREEMPTED (exit code 0)"), "", outcome.SlurmPreempted, "State: PREEMPTED (exit code 0)"},
		"failed":                 {"slurm-4711.out", seff(job, "FAILED (exit code 3)"), "", outcome.UnknownExit, "State: FAILED (exit code 3)"},
		"completed":              {"slurm-4711.out", seff(job, "COMPLETED (exit code 0)"), "", outcome.Success, ""},
		"it runs":                {"slurm-4711.out", seff(job, "RUNNING"), "", outcome.Running, ""},
		"of a task":              {"slurm-4711_3.out", seff(task, "TIMEOUT (exit code 0)"), "", outcome.SlurmTimeLimit, "State: TIMEOUT (exit code 0)"},
		"of another task":        {"slurm-4711_4.out", seff(task, "TIMEOUT (exit code 0)"), "", outcome.Running, ""},
		"of another job":         {"slurm-4712.out", seff(job, "TIMEOUT (exit code 0)"), "", outcome.Running, ""},
		"a name without an id":   {"train.log", seff(job, "TIMEOUT (exit code 0)"), "", outcome.SlurmTimeLimit, "State: TIMEOUT (exit code 0)"},
		"no id, and of two jobs": {"train.log", seff("Job ID: 4710\n", "FAILED (exit code 1)") + seff(job, "TIMEOUT (exit code 0)"), "ENDED", outcome.UnknownExit, ""},
		"it completed, behind a traceback": {
			"slurm-4711.out", diagnosetest.Raised("KeyError: 'a'") + seff(job, "COMPLETED (exit code 0)"), "", outcome.UserException, "KeyError: 'a'",
		},
		"it completed, after words of an end": {
			"slurm-4711.out", diagnosetest.Raised("KeyError: 'a'") + "Training a second time\nThe best epoch is 3\nTesting\nTraining finished.\n" + seff(job, "COMPLETED (exit code 0)"),
			"", outcome.Success, "",
		},
		"of two jobs":                      {"slurm-4711.out", seff(job, "TIMEOUT (exit code 0)") + seff("Job ID: 4710\n", "CANCELLED (exit code 0)"), "", outcome.SlurmTimeLimit, ""},
		"a state alone":                    {"slurm-4711.out", "State: TIMEOUT (exit code 0)\n", "", outcome.SlurmTimeLimit, "State: TIMEOUT (exit code 0)"},
		"a program's state":                {"slurm-4711.out", "State: BROKEN (exit code 3)\nCounting\n", "", outcome.UnknownExit, ""},
		"Slurm itself knows better":        {"slurm-4711.out", seff(job, "TIMEOUT (exit code 0)"), "PREEMPTED", outcome.SlurmPreempted, ""},
		"it ended":                         {"slurm-4711.out", seff(job, "TIMEOUT (exit code 0)"), "ENDED", outcome.SlurmTimeLimit, ""},
		"an exception says why":            {"slurm-4711.out", diagnosetest.Raised("KeyError: 'a'") + seff(job, "FAILED (exit code 1)"), "", outcome.UserException, "KeyError: 'a'"},
		"many lines follow":                {"slurm-4711.out", seff(job, "TIMEOUT (exit code 0)") + strings.Repeat("A row of numbers\n", 101), "", outcome.Running, ""},
		"a name with a short number":       {"gpt-128.log", seff(job, "TIMEOUT (exit code 0)"), "", outcome.SlurmTimeLimit, "State: TIMEOUT (exit code 0)"},
		"no id, and again after a requeue": {"train.log", seff(job, "PREEMPTED (exit code 0)") + seff(job, "TIMEOUT (exit code 0)"), "", outcome.SlurmTimeLimit, "State: TIMEOUT (exit code 0)"},
		"of a job whose id begins alike":   {"slurm-47110.out", seff(job, "TIMEOUT (exit code 0)"), "", outcome.Running, ""},
		"iterations follow": {
			"slurm-4711.out", seff(job, "TIMEOUT (exit code 0)") + diagnosetest.Rounds(12, " iteration {n}/ 400 | elapsed time per iteration (ms): 5000.0 | lm loss: 2.0E+00 |\n"),
			"", outcome.Running, "",
		},
		"a quota follows":                {"slurm-4711.out", seff(job, "TIMEOUT (exit code 0)") + strings.Repeat("A row of numbers\n", 90), "", outcome.SlurmTimeLimit, ""},
		"sacct: out of memory":           {"slurm-4711.out", sacct("OUT_OF_ME+", "0:125"), "", outcome.HostOOM, "OUT_OF_ME+"},
		"sacct: the time limit":          {"slurm-4711.out", sacct("TIMEOUT", "0:0"), "", outcome.SlurmTimeLimit, "4711              train"},
		"sacct: cancelled":               {"slurm-4711.out", sacct("CANCELLED+", "0:0"), "", outcome.SlurmCancelled, "4711              train"},
		"sacct: failed":                  {"slurm-4711.out", sacct("FAILED", "3:0"), "", outcome.UnknownExit, "4711              train"},
		"sacct: completed":               {"slurm-4711.out", sacct("COMPLETED", "0:0"), "", outcome.Success, ""},
		"sacct: every digit":             {"slurm-1234567890.out", columns + "1234567890        train    TIMEOUT      0:0\n", "", outcome.SlurmTimeLimit, "1234567890        train"},
		"sacct: it runs":                 {"slurm-4711.out", sacct("RUNNING", "0:0"), "", outcome.Running, ""},
		"sacct: parsable":                {"slurm-4711.out", "JobID|State|ExitCode\n4711|CANCELLED by 1001|0:0\n4711.batch|FAILED|1:0\n", "", outcome.SlurmCancelled, "4711|CANCELLED by 1001|0:0"},
		"sacct: only a step of it":       {"slurm-4711.out", columns + "4711              train    RUNNING      0:0\n4711.0            train    TIMEOUT      0:0\n", "", outcome.Running, ""},
		"sacct: of another job":          {"slurm-4712.out", sacct("TIMEOUT", "0:0"), "", outcome.Running, ""},
		"a row without a table":          {"slurm-4711.out", "4711              train    TIMEOUT      0:0\n", "", outcome.Running, ""},
		"sacct: a longer number in rows": {"slurm-4711.out", columns + "47110             train    TIMEOUT      0:0\n", "", outcome.Running, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			require.NoError(t, os.WriteFile(path, []byte(quiet+c.log), 0o600))
			r, err := diagnose.Path(t.Context(), path, diagnose.Context{JobState: c.state})
			require.NoError(t, err)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.root)
		})
	}
}

// A run that continues another job's work may begin with that job's account.
func TestAnAccountBeforeTheWork(t *testing.T) {
	const account = "Job ID: 4711\nCluster: hawk\nUser/Group: ana/staff\nState: TIMEOUT (exit code 0)\nNodes: 1\nCores per node: 10\nCPU Utilized: 00:03:50\n" +
		"CPU Efficiency: 9.06% of 00:42:20 core-walltime\nJob Wall-clock time: 00:04:14\nMemory Utilized: 12.00 GB\nMemory Efficiency: 30.00% of 39.06 GB\n"
	r := diagnosetest.With(t, account+"Going on from that job\nReading a shard\n", diagnose.Context{JobState: "ENDED"})
	require.Equal(t, outcome.UnknownExit, r.Class)
	require.Equal(t, "Reading a shard", r.RootLine)
	const before = "JobID           JobName      State ExitCode\n------------ ---------- ---------- --------\n4711            prepare  COMPLETED      0:0\n"
	for name, rows := range map[string]string{"alone": "", "with the job's own row": "4712              train    RUNNING      0:0\n"} {
		r = diagnosetest.With(t, before+rows+"Reading a shard\nReading another\n", diagnose.Context{JobState: "ENDED"})
		require.Equal(t, outcome.UnknownExit, r.Class, name)
	}
}

// The exit code in the account is reported as Slurm's own.
func TestTheExitCodeInAnAccount(t *testing.T) {
	const row = "Reading a shard\nJobID|State|ExitCode\n4711|FAILED|3:0\n"
	r := diagnosetest.With(t, row, diagnose.Context{})
	require.Equal(t, outcome.UnknownExit, r.Class)
	require.Equal(t, []string{"FAILED", "3:0"}, []string{r.State, r.ExitCode})
	require.Equal(t, "4:0", diagnosetest.With(t, row, diagnose.Context{ExitCode: "4:0"}).ExitCode, "the caller knows it")
}

// What is not the end of the whole job says nothing of its state.
func TestAnAccountThatIsNotTheJobsEnd(t *testing.T) {
	age := int64(700)
	for name, c := range map[string]struct {
		log   string
		given diagnose.Context
	}{
		"it was completing when it asked, and then was silent": {"State: COMPLETING (exit code 1)\n", diagnose.Context{SecondsSinceLastWrite: &age}},
		"of one task, and the logs are the array's":            {"JobID|State\n4711_3|TIMEOUT\n", diagnose.Context{Array: true, SecondsSinceLastWrite: &age}},
	} {
		r := diagnosetest.With(t, "Reading a shard\n"+c.log, c.given)
		require.Equal(t, outcome.UnknownExit, r.Class, name)
		require.Empty(t, r.State, name)
	}
}
