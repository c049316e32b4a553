package diagnose_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Python and torch's launcher write standard error at once, and standard output into a file in large pieces or when they end.
// What a rank printed before its exception may so come behind it, and behind its launcher's summary.
func TestWhatWasWrittenBeforeComesLater(t *testing.T) {
	tag := func(tag, text string) string {
		return tag + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+tag) + "\n"
	}
	raised := diagnosetest.Raised
	const (
		lost    = "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711"
		agent   = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 700) of binary: /usr/bin/python3\n"
		entry   = "  time      : 2026-06-11_10:00:09\n  host      : gpu8\n"
		summary = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\npretrain_gpt.py FAILED\n----\nFailures:\n[1]:\n" +
			entry + "  rank      : 3 (local_rank: 1)\n  exitcode  : 1 (pid: 701)\n----\nRoot Cause (first observed failure):\n[0]:\n" +
			entry + "  rank      : 2 (local_rank: 0)\n  exitcode  : 1 (pid: 700)\n====\n"
		dated = " [2026-06-11 10:00:0{n}.5] iteration {n}/ 20 | elapsed time per iteration (ms): 120.1 | lm loss: 6.2E+00 |\n"
		bare  = "step {n} loss 6.2\n"
		began = "> rank 3 of 4 starts\n> building the model\n"
	)
	steps := diagnosetest.Rounds
	later := strings.ReplaceAll(dated, "10:00", "10:07")
	fails := tag("[default1]:", raised("KeyError: 'tokens'")) + tag("[default0]:", raised(lost))
	before := tag("[default1]:", raised("IndexError: list index out of range")) + tag("[default0]:", raised(lost))
	late := func(form string) string { return tag("[default1]:", began+steps(4, form)) }
	started := func(second string) string {
		return "[default0]:using world size: 4, data-parallel size: 4, tensor-model-parallel size: 1\n" +
			"[default0]:[before the start of training step] datetime: 2026-06-11 10:00:0" + second + "\n"
	}
	const done = "[default0]:[after training is done] datetime: 2026-06-11 10:00:08\n"
	undated := steps(4, "[default0]:"+bare)
	const mine, theirs = "KeyError: 'tokens'", "IndexError: list index out of range"
	for name, c := range map[string]struct {
		log      string
		line     string
		attempts int
	}{
		"before the summary":                 {fails + agent + late(dated) + summary, mine, 1},
		"behind it":                          {fails + agent + summary + late(dated), mine, 1},
		"without dates":                      {fails + agent + summary + late(bare), mine, 1},
		"of srun's tasks":                    {tag("1: ", fails+agent+summary+late(dated)), mine, 1},
		"after a restart":                    {before + agent + fails + agent + summary + late(dated) + late(dated), mine, 2},
		"of each attempt":                    {before + agent + late(dated) + fails + agent + summary + late(dated), mine, 2},
		"of each attempt, without dates":     {before + agent + late(bare) + fails + agent + summary + late(bare), mine, 2},
		"of three attempts":                  {strings.Repeat(before+agent+late(dated), 2) + fails + agent + summary + late(dated), mine, 3},
		"the end of the training":            {fails + agent + summary + done, mine, 1},
		"starts that say it themselves":      {before + agent + started("2") + fails + agent + summary + started("5"), mine, 2},
		"such a start, and undated steps":    {before + agent + started("2") + fails + agent + summary + started("5") + undated + done, mine, 2},
		"the ranks of both nodes in one log": {before + fails + agent + agent + summary + strings.ReplaceAll(summary, "gpu8", "gpu9") + late(dated), theirs, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, outcome.UserException, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
			require.Equal(t, c.attempts, r.Attempts)
		})
	}
	for name, log := range map[string]string{
		"the script ran it again":           fails + agent + summary + late(later),
		"and it came to its end":            fails + agent + summary + late(later) + "[default1]:[after training is done] datetime: 2026-06-11 10:09:00\n",
		"and it started anew first":         started("2") + fails + agent + summary + strings.ReplaceAll(started("5"), "10:00", "10:07") + undated,
		"an exception that was caught":      tag("[default1]:", strings.Replace(raised("KeyError: 'tokens'"), "<module>", "train_step", 1)+steps(6, dated)),
		"a run that its agent began anew":   fails + agent + tag("[default1]:", began+steps(4, later)),
		"the same, and it wrote so before":  tag("[default1]:", began) + fails + agent + tag("[default1]:", began+steps(4, later)),
		"the same, and it wrote without it": tag("[default1]:", began+steps(3, bare)) + fails + agent + tag("[default1]:", began+steps(4, bare)),
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, log)
			require.NotEqual(t, outcome.UserException, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}
