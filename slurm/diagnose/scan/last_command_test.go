package scan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestWhatAScriptDoesAfterItsProgram has the ends of logs that tell of the program by what came after it.
func TestWhatAScriptDoesAfterItsProgram(t *testing.T) {
	megatron := func(last int) string {
		var b strings.Builder
		for n := 10; n <= last; n += 10 {
			fmt.Fprintf(&b, " iteration %8d/%8d | consumed samples: %d | elapsed time per iteration (ms): 900.0 | lm loss: 2.31E+00 |\n", n, 200, n*8)
		}
		return b.String()
	}
	account := func(state string) string {
		return fmt.Sprintf("77              train %10s      0:0\n77.batch        batch %10s      0:0\n", state, state)
	}
	const columns = "       JobID    JobName      State ExitCode\n------------ ---------- ---------- --------\n"
	openMMLab := "07/06 10:01:02 - mmengine - INFO - Iter(train) [ 950/1000]  lr: 1e-4  eta: 0:00:12  time: 0.25\n" +
		"07/06 10:01:14 - mmengine - INFO - Iter(train) [%s/1000]  lr: 1e-4  eta: 0:00:0%d  time: 0.25\n" +
		strings.Repeat("a class of the data and its measures\n", 60) +
		"07/06 10:02:31 - mmengine - INFO - Iter(val) [ 50/125]    eta: 0:00:42  time: 1.24\n" +
		"07/06 10:03:41 - mmengine - INFO - Iter(val) [%d/125]    %s  time: 1.49\n"
	for name, c := range map[string]struct{ log, class string }{
		"all iterations, and its next command":   {megatron(200) + "+ cp -r out /scratch/kept\n", outcome.Success},
		"all iterations, and the script's end":   {megatron(200) + "+ exit 0\n", outcome.Success},
		"all iterations, and no word after them": {megatron(200), outcome.UnknownExit},
		"all iterations, and an exit for cause":  {megatron(200) + "+ exit 1\n", outcome.UnknownExit},
		"some iterations, and its next command":  {megatron(150) + "+ exit 0\n", outcome.UnknownExit},
		"sacct, about a job that failed":         {megatron(200) + columns + account("FAILED"), outcome.UnknownExit},
		"tests, none of which failed":            {"Epoch 1 loss 2\nTotal time: 31 s\n10 passed, 0 FAILED\n", outcome.Success},
		"a box with the time that it took":       {"step 1\n┌── TIMES ──┐\n│ Total App Time : 33.5 ms\n└───────────┘\nlinked with two libraries\n", outcome.Success},
		"a box whose columns are a table's":      {"step 1\n┌────┬────┐\n│ Total time │ 33.5 ms │\n└────┴────┘\nlinked with two libraries\n", outcome.UnknownExit},
		"sacct, about a time limit":              {megatron(150) + "77|TIMEOUT|0:0\n77.batch|CANCELLED|0:15\n", outcome.UnknownExit},
		"sacct, about a job that completed":      {megatron(150) + columns + account("COMPLETED"), outcome.Success},
		"the evaluation after all iterations":    {fmt.Sprintf(openMMLab, "1000", 0, 125, "mIoU: 49.1"), outcome.Success},
		"a part of that evaluation":              {fmt.Sprintf(openMMLab, "1000", 0, 100, "eta: 0:00:12"), outcome.UnknownExit},
		"the evaluation after some iterations":   {fmt.Sprintf(openMMLab, " 960", 9, 125, "mIoU: 49.1"), outcome.UnknownExit},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, r.RootLine)
		})
	}
}

// TestErrorsOfAShellsOwnFiles has errors in the files that a shell reads when it starts. It goes on after them.
func TestErrorsOfAShellsOwnFiles(t *testing.T) {
	const missing = "/home/ana/.bashrc: line 2: /home/ana/.cargo/env: No such file or directory\n"
	for name, c := range map[string]struct{ log, class string }{
		"the program ran to its end": {missing + "Reading the notebook\nJob finished at Tue Nov  4 05:30:38 2025\n", outcome.Success},
		"the program just stops":     {missing + "Reading the notebook\n", outcome.UnknownExit},
		"the program failed":         {missing + "Reading the notebook\n" + diagnosetest.Raised("KeyError: 'width'"), outcome.UserException},
		"the script's own line": {
			"/var/spool/slurm/job77/slurm_script: line 9: /home/ana/bin/train: No such file or directory\nReading the notebook\n", outcome.EnvLaunch,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, r.RootLine)
		})
	}
}

// TestOtherLanguagesErrors has errors that ended programs of Julia and C++ or kept one from starting, and a shell's word on one that Slurm
// killed.
func TestOtherLanguagesErrors(t *testing.T) {
	const frames = "Stacktrace:\n [1] f(x::Int64)\n   @ Main ~/w/main.jl:12\n [2] _start()\n   @ Base ./client.jl:552\n"
	const thrown = "terminate called after throwing an instance of 'mesh::Error'\n  what():  no input\n"
	const killed = "/w/job.sh: line 9: 4711 Killed                  ./solve\n"
	const cancelled = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n"
	for name, c := range map[string]struct{ log, class, line string }{
		"Julia":                         {"begins\nERROR: SystemError: opening file \"/w/a.jl\": No such file or directory\n" + frames, outcome.UserException, "SystemError"},
		"Julia, and a package":          {"ERROR: LoadError: ArgumentError: Package Flux not found in current path.\n- Run `import Pkg`\n" + frames, outcome.ImportError, "Flux"},
		"an error without Julia's end":  {"ERROR: shelf 3 is cold\nreads on\nreads on\nreads on\nreads on\n" + frames, outcome.UnknownExit, ""},
		"C++, PyTorch's exception":      {strings.ReplaceAll(thrown, "mesh::", "c10::") + "frame #0: main + 0x5\n\nAborted (core dumped)\n", outcome.UserException, "no input"},
		"C++, an exception of its own":  {"begins\n" + thrown, outcome.Segfault, "mesh::Error"},
		"killed, after Slurm's word":    {"begins\n" + cancelled + killed, outcome.SlurmCancelled, "CANCELLED"},
		"killed, without Slurm's word":  {"begins\n" + killed, outcome.HostOOM, "Killed"},
		"killed, and Slurm's word then": {"begins\n" + killed + cancelled, outcome.HostOOM, "Killed"},
		"a command that starts another": {
			"begins\ntimeout: failed to run command 'uv': No such file or directory\nsrun: error: n1: task 0: Exited with exit code 127\n", outcome.EnvLaunch, "'uv'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
		})
	}
}
