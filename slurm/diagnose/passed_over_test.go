package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

const (
	noApex = "Traceback (most recent call last):\n  File \"/w/check.py\", line 3, in <module>\n    import apex\n" +
		"ModuleNotFoundError: No module named 'apex'\n"
	threeSteps = " iteration        1/   20000 | elapsed time per iteration (ms): 6213.4 | lm loss: 1.08E+01 |\n" +
		" iteration        2/   20000 | elapsed time per iteration (ms): 6213.4 | lm loss: 1.07E+01 |\n" +
		" iteration        3/   20000 | elapsed time per iteration (ms): 6213.4 | lm loss: 1.06E+01 |\n"
	timeLimit = "slurmstepd: error: *** JOB 77 ON node001 CANCELLED AT 2026-11-25T03:12:01 DUE TO TIME LIMIT ***\n"
)

// An error that anyone sees in the log is named with what came after it, so that nobody wonders
// whether it was read.
func TestAnErrorThatTheRunSurvivedIsNamedAndIsNoCause(t *testing.T) {
	r := diagnosetest.Text(t, noApex+threeSteps+timeLimit)
	require.Equal(t, outcome.SlurmTimeLimit, r.Class)
	require.Len(t, r.PassedOver, 1)
	p := r.PassedOver[0]
	require.Equal(t, report.PassedOver{File: p.File, LineNo: 4, Text: "ModuleNotFoundError: No module named 'apex'", Lines: 4, Iterations: 3}, p)

	shown := func(l lang.Lang) []string {
		doc := r.View(l)
		s := doc.Sections[len(doc.Sections)-1]
		require.True(t, s.Fold)
		return append([]string{s.Heading}, s.Table.Rows[0]...)
	}
	require.Equal(t, []string{"Seen, and not the cause: the run went on", "3 iterations", p.File + ":4", p.Text}, shown(lang.EN))
	require.Equal(t, []string{"看到了，但不是原因：其后仍在运行", "3 次迭代", p.File + ":4", p.Text}, shown(lang.ZH))
}

// A question about such an error by its name, or about other errors, is answered from them.
func TestAQuestionAboutASurvivedError(t *testing.T) {
	r := diagnosetest.Text(t, noApex+threeSteps+timeLimit)
	for question, want := range map[string]string{
		"what about the ModuleNotFoundError?":  "That is not the cause: ModuleNotFoundError: No module named 'apex' (",
		"why the ModuleNotFoundError up there": "and then 3 iterations.",
		"any other errors?":                    "The run went on after these:\n- ModuleNotFoundError",
		"why did it fail?":                     "Time limit reached",
	} {
		answer, ok := r.FollowUp(question, nil, lang.EN)
		require.True(t, ok, question)
		require.True(t, report.Asks(question), "the bot takes it for a question about the diagnosis")
		require.Contains(t, answer, want, question)
	}
	answer, _ := r.FollowUp("还有其他报错吗？", nil, lang.ZH)
	require.Contains(t, answer, "其后还有 3 次迭代。")
	r.PassedOver = nil
	answer, _ = r.FollowUp("any other errors?", nil, lang.EN)
	require.Equal(t, "The log shows no other error after which the run went on.", answer)
}

// Each message is named once, at most three of them, in the order of the log.
func TestOfManySurvivedErrorsThreeAreNamed(t *testing.T) {
	var log strings.Builder
	for i, raised := range []string{"KeyError: 'a'", "ValueError: b", "ValueError: b", "TypeError: c", "IndexError: d"} {
		fmt.Fprintf(&log, "Traceback (most recent call last):\n  File \"/w/check%d.py\", line 3, in test%d\n    run()\n%s\nChecking the next one\n", i, i, raised)
	}
	r := diagnosetest.Text(t, log.String()+threeSteps+timeLimit)
	var named []string
	for _, p := range r.PassedOver {
		named = append(named, p.Text)
	}
	require.Equal(t, []string{"KeyError: 'a'", "ValueError: b", "TypeError: c"}, named)
}

// So is the failure of a program that the script's next one followed.
func TestTheFailureOfAnEarlierProgramIsNamed(t *testing.T) {
	const second = "Loading the model\nThe optimizer is Adam\nA batch has 8 rows\nTraceback (most recent call last):\n" +
		"  File \"/w/train.py\", line 3, in <module>\n    run()\nValueError: the label is 3\n"
	r := diagnosetest.Text(t, noApex+second)
	require.Equal(t, "ValueError: the label is 3", r.RootLine)
	require.Len(t, r.PassedOver, 1)
	require.Equal(t, "ModuleNotFoundError: No module named 'apex'", r.PassedOver[0].Text)
	require.Equal(t, 7, r.PassedOver[0].Lines)
}

// The iterations before an error do not show that the run survived it.
func TestOnlyIterationsAfterASurvivedErrorCount(t *testing.T) {
	r := diagnosetest.Text(t, threeSteps+threeSteps+noApex+threeSteps+timeLimit)
	require.Len(t, r.PassedOver, 1)
	require.Equal(t, 3, r.PassedOver[0].Iterations)
}

// What ended the run, and what other ranks report of it, is not among them.
func TestTheCauseIsNotAmongTheSurvivedErrors(t *testing.T) {
	r := diagnosetest.Text(t, threeSteps+diagnosetest.OOMLog)
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Empty(t, r.PassedOver)
}

// A log that only stops has no line that shows a cause, and its last line is not called one.
func TestTheLastLineOfALogThatStopsIsNoCause(t *testing.T) {
	r := diagnosetest.Old(t, threeSteps)
	require.Equal(t, outcome.UnknownExit, r.Class)
	require.Equal(t, "last sign", r.Evidence[0].Why)
	require.Equal(t, "The last line", r.View(lang.EN).Sections[1].Heading)
	require.Equal(t, "最后一行", r.View(lang.ZH).Sections[1].Heading)
	require.Contains(t, r.Advice[0], "sacct -j JOB --format=State,ExitCode")
	answer, _ := r.FollowUp("why did it fail?", nil, lang.EN)
	require.Contains(t, answer, "The last line:  iteration        3/")

	for name, warned := range map[string]string{"an ignored exception": "Exception ignored in: <function f at 0x7f>\n" + diagnosetest.Raised("AssertionError: no child"), "a warning": ""} {
		r = ofFolder(t, map[string]string{"a.err": "2026-11-23 10:00:01 W no TensorRT\n" + warned, "b.log": threeSteps})
		require.Equal(t, outcome.UnknownExit, r.Class, name)
		require.Equal(t, "b.log", r.RootFile, "%s: %s", name, r.RootLine)
	}
	r = diagnosetest.With(t, threeSteps, diagnose.Context{JobState: "FAILED", ExitCode: "1:0"})
	require.Equal(t, "The last line", r.View(lang.EN).Sections[1].Heading, "Slurm knows the exit code, and no line the cause")
	r = diagnosetest.Text(t, threeSteps+timeLimit)
	require.Equal(t, "Root cause", r.View(lang.EN).Sections[1].Heading)
}
