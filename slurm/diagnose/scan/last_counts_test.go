package scan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// TestCountersAndLastWords has logs without a failure's line, whose last lines count parts of the work or say what was written.
func TestCountersAndLastWords(t *testing.T) {
	count := func(form string, from, to, step int) string {
		var b strings.Builder
		b.WriteString("Namespace(lr=0.001)\nModel Parameters: 23524424\n")
		for n := from; n <= to; n += step {
			b.WriteString(strings.ReplaceAll(form, "N", fmt.Sprint(n)) + "\n")
		}
		return b.String()
	}
	const (
		epoch = "[N/15] - Validation accuracy: 58.N\n[N/15] - Epoch took 52.N seconds"
		scene = "(N/8) saved result for scene_N.json"
		files = "Processed N/200 files"
		keras = "20/1875 [..............................] - ETA: 4s - loss: 0.3"
	)
	for name, c := range map[string]struct{ log, class string }{
		"a counter far from its end":             {count(epoch, 1, 2, 1), outcome.UnknownExit},
		"parts of which half are saved":          {count(scene, 1, 4, 1), outcome.UnknownExit},
		"parts of which all are saved":           {count(scene, 1, 8, 1), outcome.Success},
		"half of the files":                      {count(files, 10, 100, 10), outcome.UnknownExit},
		"tries that all failed":                  {count("attempt N/3 failed", 1, 3, 1), outcome.UnknownExit},
		"nodes that are up":                      {count("Node N/4 up", 1, 4, 1), outcome.UnknownExit},
		"a count from 0 at every tenth step":     {count("[N/100] Time 0.3", 0, 90, 10) + " * Acc@1 71.2 Acc@5 90.1\nDone.\n", outcome.Success},
		"ranks that leave in their order":        {count("Epoch N/3 loss 0.3", 1, 3, 1) + count("[N/8] results saved to a.json", 0, 3, 1), outcome.Success},
		"a count that an early stop ended":       {count("[N/100] loss 2", 1, 8, 1) + "No improvement, stopping.\nTest accuracy: 0.91\nDone.\n", outcome.Success},
		"what is loaded is not the work":         {count("Loaded N/3 shards", 1, 3, 1), outcome.UnknownExit},
		"a build's steps differ":                 {"[1/2] nvcc -c a.cu -o a.o\n[2/2] c++ a.o -shared -o a.so\n", outcome.UnknownExit},
		"settings are saved before the work":     {"Loading arguments\nSaved config to runs/a/config.yaml\n", outcome.UnknownExit},
		"a file's name may be that of settings":  {count("loss: 0.N", 1, 30, 1) + "Results saved to config_a/out.json\n", outcome.Success},
		"all results are saved":                  {"Evaluating 30 tasks\nmean 0.3\nAll results saved to out/results.json\n", outcome.Success},
		"where all logs go":                      {"Evaluating 30 tasks\nINFO: All logs written to out/log.txt\n", outcome.UnknownExit},
		"where results will be saved":            {"Evaluating 30 tasks\nResults saved to out/results.json\n", outcome.UnknownExit},
		"a count of no failures":                 {"Evaluating 30 tasks\nPASSED: 30\nFAILED: none\n", outcome.Success},
		"a count of nothing that passed":         {"Validating 30 files\nFAILED: none\n", outcome.UnknownExit},
		"a count of failures":                    {"Evaluating 30 tasks\nPASSED: 28\nFAILED: 2\n", outcome.UnknownExit},
		"the shell's word glued to a bar":        {"Epoch 1/3\n" + keras + "Killed\n", outcome.HostOOM},
		"the same word behind a bar of words":    {"100% [=====] Job 3 was Killed\n", outcome.UnknownExit},
		"the same word at the end of a sentence": {"Epoch 1/3\nThe process was Killed\n", outcome.UnknownExit},
		"a notebook of Kaggle is written":        {"12.1s 3 [NbConvertApp] Writing 290231 bytes to __results__.html\n", outcome.Success},
	} {
		assert.Equal(t, c.class, diagnosetest.Old(t, c.log).Class, name)
	}
}

// TestProgramsOfOthers has errors that ended something else than a Python program, or nothing at all.
func TestProgramsOfOthers(t *testing.T) {
	julia := "ERROR: LoadError: DomainError with -0.98:\nStacktrace:\n [1] log(x::Float64)\nin expression starting at /w/a.jl:7\n"
	r := diagnosetest.Old(t, "AttributeError: module 'platform' has no attribute 'linux_distribution'\n"+strings.Repeat("epoch a.py\n", 5)+julia+
		"srun: error: n1: task 0: Exited with exit code 1\n")
	assert.Equal(t, outcome.UserException, r.Class)
	assert.Contains(t, r.RootLine, "LoadError")

	const said = "ValueError: the maximum context length is 2048 tokens"
	own, wrong := diagnosetest.Raised(said), diagnosetest.RaisedIn("create_completion", said)
	served := "INFO:     Uvicorn running on http://0.0.0.0:8000\n"
	answer := func(status string) string {
		return "INFO:     10.0.0.1:51 - \"POST /v1/chat HTTP/1.1\" " + status + "\n"
	}
	assert.Equal(t, outcome.UnknownExit, diagnosetest.Old(t, served+wrong+answer("400 Bad Request")).Class)
	assert.Equal(t, outcome.UserException, diagnosetest.Old(t, served+wrong+answer("500 Internal Server Error")).Class)
	assert.Equal(t, outcome.UserException, diagnosetest.Old(t, served+answer("400 Bad Request")+wrong).Class, "it was another request's")
	assert.Equal(t, outcome.UserException, diagnosetest.Old(t, own+answer("400 Bad Request")).Class, "another program's server")
	for _, line := range []string{
		"DEBUG:urllib3.connectionpool:https://example.org:443 \"POST /graphql HTTP/1.1\" 403 137\n",
		"10.0.0.1 - - [27/Nov/2026 13:00:00] \"GET /favicon.ico HTTP/1.1\" 404 -\n",
	} {
		assert.Equal(t, outcome.UserException, diagnosetest.Old(t, wrong+line).Class, line)
	}

	const bar = "20/1875 [====>......................] - ETA: 4s - loss: 0.3"
	r = diagnosetest.Old(t, "Epoch 1/3\n"+bar+"Killed\n")
	assert.Equal(t, bar+"Killed", r.RootLine, "as the line stands in the file")
	assert.Equal(t, outcome.Success, diagnosetest.Old(t, "Epoch 1/1 loss 0.3\nTraining completed\nProcess group destroyed\n"+
		"n1:43:44 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use\n").Class, "a side service of NCCL")

	r = diagnosetest.Old(t, "n1:43:44 [3] transport/net_ib.cc:17 NCCL WARN NET/IB : ibv_post_send() failed with error Invalid argument, Bad WR 0x1, First WR 0x2\n"+
		"srun: error: n1: task 3: Aborted (core dumped)\n")
	assert.Equal(t, outcome.NCCLIB, r.Class)
}
