package scan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// TestAProcessThatBeginsAgainShowsAnotherAttempt has the first two lines of a labelled process again, behind a
// launcher's report on its end and elsewhere.
func TestAProcessThatBeginsAgainShowsAnotherAttempt(t *testing.T) {
	const (
		first, second = "0: Loading the model\n", "0: Reading shard 1\n"
		left          = "srun: error: n1: task 0: Exited with exit code 1\n"
		work          = "0: The work goes on\n"
	)
	begin := first + second
	for name, c := range map[string]struct {
		log    string
		starts int
	}{
		"both":                             {begin + work + left + begin, 1},
		"both, with another number":        {begin + work + left + first + "0: Reading shard 2\n", 1},
		"another second line":              {begin + work + left + first + work, 0},
		"another first line":               {begin + work + left + work + second, 0},
		"a line between":                   {begin + work + left + first + work + second, 0},
		"the first line twice":             {begin + work + left + first + first + second, 1},
		"an indented line between":         {begin + work + left + first + "0:   and more\n" + second, 1},
		"no end before":                    {begin + work + begin, 0},
		"two attempts":                     {begin + left + begin + left + begin, 2},
		"no end before the third":          {begin + left + begin + begin, 1},
		"the first line was said at once":  {first + begin + work + left + begin, 1},
		"the first line was said later on": {begin + work + first + left + begin, 0},
		"another process":                  {begin + work + left + strings.ReplaceAll(begin, "0:", "1:"), 0},
		"no label":                         {strings.ReplaceAll(begin+work+left+begin, "0: ", ""), 0},
		"a long run":                       {begin + strings.Repeat(work, 30) + left + begin, 1},
		"said again after many lines":      {begin + strings.Repeat(work, 30) + first + left + begin, 1},
		"said again at the 12th line":      {begin + strings.Repeat(work, 9) + first + left + begin, 0},
		"said again at the 13th line":      {begin + strings.Repeat(work, 10) + first + left + begin, 1},
	} {
		starts := factsOf(t, c.log).Starts[scan.Restarted]
		require.Len(t, starts, c.starts, name)
		if c.starts > 0 {
			last := starts[len(starts)-1]
			require.Equal(t, strings.TrimSpace(first), last.Text, name)
			require.True(t, strings.HasPrefix(c.log[last.Off:], first), name)
			require.Greater(t, last.Off, int64(strings.Index(c.log, left)), name)
		}
	}
	require.Equal(t, "12", scan.Mark{Text: "at Iteration: 12 of 90"}.Step())
	require.Empty(t, scan.Mark{Text: "epoch 12 of 90"}.Step())
}

// TestANameThatNobodyKnowsIsTheReasonIfNothingElseRan has torch's warning that the name of the first node is unknown.
func TestANameThatNobodyKnowsIsTheReasonIfNothingElseRan(t *testing.T) {
	unknown := func(code int) string {
		return fmt.Sprintf("[W1123 08:23:56.980538018 socket.cpp:764] [c10d] The IPv6 network addresses of (gpu9, 22173) cannot be retrieved "+
			"(gai error: %d - Name or service not known).\n", code)
	}
	for name, c := range map[string]struct {
		log    string
		reason bool
	}{
		"three times":        {strings.Repeat(unknown(-2), 3), true},
		"twice":              {strings.Repeat(unknown(-2), 2), false},
		"for another reason": {strings.Repeat(unknown(-3), 3), false},
		"and steps":          {strings.Repeat(unknown(-2), 3) + "step 1/90 loss: 0.5 time: 3\n", false},
		"and a phase":        {"> building the data\n" + strings.Repeat(unknown(-2), 3), false},
	} {
		f := factsOf(t, c.log)
		n := 0
		for _, e := range f.Events {
			if e.Counts() && e.Class == outcome.Rendezvous {
				n++
			}
		}
		require.Equal(t, c.reason, n == 1, name)
	}
}

// TestWhichRankAWatchdogSpeaksOf has its words with a rank in the line, in its label, and too far behind.
func TestWhichRankAWatchdogSpeaksOf(t *testing.T) {
	const late = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600052 milliseconds"
	for line, ranks := range map[string][]int{
		"[Rank 0] " + late:                            {0},
		"[rank3]: [Rank 2] " + late:                   {2},
		"[rank3]: " + late:                            {3},
		"[rank0]: " + late:                            {0},
		late + strings.Repeat(".", 500) + "[Rank 2] ": nil,
		"[Rank 0] timeout of a collective operation":  nil,
		"[Rank 0] collective operation timeout":       nil,
	} {
		f := factsOf(t, line+"\n")
		require.Len(t, f.NCCL, len(ranks), line)
		for _, rank := range ranks {
			require.Equal(t, int64(9), f.NCCL[rank].Seq, line)
			require.Equal(t, int64(-1), f.NCCL[rank].Enqueued, line)
			require.True(t, f.NCCL[rank].TimedOut, line)
		}
	}
}

// TestASentenceBeforeHydrasLastLineIsItsRefusal has Hydra's last line behind a sentence, and behind the traceback of the program that it called.
func TestASentenceBeforeHydrasLastLineIsItsRefusal(t *testing.T) {
	const (
		ends   = "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
		said   = "Could not find 'model/large'\n"
		called = "Ready\n\nError executing job with overrides: ['a=1']\n"
	)
	for name, c := range map[string]struct{ log, refused string }{
		"a sentence":                              {said + ends, "Could not find 'model/large'"},
		"a sentence with a list":                  {said + "\nAvailable options:\n  small\n" + ends, "Could not find 'model/large'"},
		"a heading alone":                         {"These are not there:\n  small\n" + ends, "These are not there:"},
		"an exception before it":                  {inStep("KeyError: 'a'") + "\n" + said + ends, "Could not find 'model/large'"},
		"the called program's exception":          {called + inStep("KeyError: 'a'") + ends, ""},
		"the same, with a message of more blocks": {called + inStep("KeyError: 'a'") + "\nmore of it\n" + ends, ""},
		"the same at the beginning of the file":   {strings.TrimPrefix(called, "Ready\n\n") + inStep("KeyError: 'a'") + "\nmore of it\n" + ends, ""},
		"an exception without a traceback":        {"KeyError: 'a'\n" + ends, ""},
		"the called program failed without words": {called + ends, ""},
		"nothing":                     {ends, ""},
		"a second":                    {said + ends + ends, "Could not find 'model/large'"},
		"an earlier call's exception": {called + inStep("KeyError: 'a'") + ends + "\n" + said + ends, "Could not find 'model/large'"},
	} {
		var refused []string
		for _, e := range factsOf(t, c.log).Events {
			if e.Class == outcome.BadArgs {
				refused = append(refused, e.Text)
				require.Equal(t, pattern.Specific, e.Weight, name)
			}
		}
		require.Equal(t, c.refused, strings.Join(refused, "|"), name)
	}
}

// TestWhichComplaintStandsBehindAnExitCode has what a program logged around its launcher's report.
func TestWhichComplaintStandsBehindAnExitCode(t *testing.T) {
	const wrong = "ERROR:root: no shard can be read\n"
	left := fmt.Sprintf(agentLeft, 1, 3, 77)
	for name, c := range map[string]struct{ log, own string }{
		"before it":                    {wrong + left, "ERROR:root: no shard can be read"},
		"before it, and a word behind": {wrong + left + "The next shard is read\n", "ERROR:root: no shard can be read"},
		"behind it":                    {left + wrong, ""},
		"the newer one":                {"ERROR:root: the disk cannot be read\n" + wrong + left, "ERROR:root: no shard can be read"},
		"another one behind it":        {wrong + left + "ERROR:root: the disk cannot be read\n", "ERROR:root: no shard can be read"},
		"another rank's statement":     {wrong + "3: The next shard is read\n" + left, "ERROR:root: no shard can be read"},
		"a labelled one":               {"3: " + wrong + left, "ERROR:root: no shard can be read"},
		"its level is far behind":      {strings.Repeat("x", 160) + " ERROR: no shard can be read\n" + left, ""},
		"none":                         {"The next shard is read\n" + left, ""},
	} {
		f := factsOf(t, c.log)
		var agent *scan.Event
		for _, e := range f.Events {
			if e.Agent {
				agent = e
			}
		}
		own := f.Complained(agent, agent.File)
		if c.own == "" {
			require.Nil(t, own, name)
			continue
		}
		require.NotNil(t, own, name)
		require.Equal(t, c.own, own.Text, name)
		require.False(t, own.Agent, name)
		require.Equal(t, agent.Exit, own.Exit, name)
	}
}

// TestWhatAnErrorFileSays has the JSON that torchelastic logs of an error file.
func TestWhatAnErrorFileSays(t *testing.T) {
	for log, text := range map[string]string{
		"  \"message\": {\n    \"message\": \"ValueError: no shard\",\n":       "ValueError: no shard",
		"  \"message\": {\n    \"message\": \"ValueError: no shard\\nmore\"\n": "ValueError: no shard",
		"  \"message\": {\n    \"message\": \"no shard\",\n":                   "",
		"  \"message\": {\n    \"message\": \"ValueError: no shard,\n":         "",
		"  \"message\": {\n    \"text\": \"ValueError: no shard\",\n":          "",
		"  \"extraInfo\": {\n    \"message\": \"ValueError: no shard\",\n":     "",
		"The file is\n    \"message\": \"ValueError: no shard\",\n":            "",
	} {
		var got string
		for _, e := range factsOf(t, "The file\n{\n"+log).Events {
			got = e.Text
		}
		require.Equal(t, text, got, log)
	}
}

// TestTheLinesOfAStructuredLogger has entries of such loggers, and other JSON.
func TestTheLinesOfAStructuredLogger(t *testing.T) {
	type entry struct {
		text string
		rank int
	}
	for log, want := range map[string]entry{
		`{"level": "info", "msg": "ready"}`:                                               {"INFO ready", -1},
		`{"lvl": "info", "event": "ready", "rank": 0}`:                                    {"INFO ready", 0},
		`{"severity": "info", "message": "ready", "global_rank": "3"}`:                    {"INFO ready", 3},
		`{"time": "2026-02-03T04:05:06Z", "level": "info", "msg": "ready", "rank": "x"}`:  {"2026-02-03T04:05:06Z INFO ready", -1},
		`{"level": "info", "msg": "it", "step": 4, "loss": 2.5}`:                          {"INFO it step 4/? loss: 2.5", -1},
		`{"level": "info", "msg": "it", "iteration": 4, "total_steps": 9, "lm_loss": 2}`:  {"INFO it step 4/9 loss: 2", -1},
		`{"level": "info", "msg": "it", "step": 4}`:                                       {"INFO it", -1},
		`{"level": "info", "msg": "it", "loss": 4}`:                                       {"INFO it", -1},
		`{"level": "info", "msg": "", "message": "ready"}`:                                {"INFO ready", -1},
		`{"level": "info", "msg": "cut off wi`:                                            {"INFO cut off wi", -1},
		`{"level": "info", "msg": "cut off wi\`:                                           {"INFO cut off wi", -1},
		`{"level": "info", "msg": "two\nlines"}`:                                          {"lines", -1},
		`{"level": "info", "note": "ready"}`:                                              {`{"level": "info", "note": "ready"}`, -1},
		`{"msg": "ready"}`:                                                                {`{"msg": "ready"}`, -1},
		`{"level": info, "msg": "ready"}`:                                                 {`{"level": info, "msg": "ready"}`, -1},
		`{"level": "error", "msg": "it failed", "rank": 2, "error": "KeyError: 'a'"}`:     {"ERROR it failed", 2},
		`{"level": "error", "msg": "it failed", "exception": "KeyError: 'a'", "exc": ""}`: {"ERROR it failed", -1},
	} {
		f := factsOf(t, "The data\n"+log+"\n")
		tag := logline.Tag{Label: -1, Local: -1, Rank: want.rank}
		said := f.LastBy[tag]
		if len(f.Progress) > 0 {
			said = f.Progress[0]
		}
		require.Equal(t, want.text, said.Text, log)
		require.Equal(t, strings.Contains(log, "KeyError"), len(f.Events) == 1 && f.Events[0].Text == "KeyError: 'a'" && f.Events[0].Tag == tag, log)
	}
	f := factsOf(t, `{"level": "error", "msg": "a", "stack": "f()", "error": "KeyError: 'a'"}`+"\n")
	require.Len(t, f.Events, 1, "a stack that is no traceback")
	f = factsOf(t, `[rank5]: {"level": "info", "msg": "ready", "rank": 2}`+"\n")
	require.Equal(t, map[int]bool{5: true}, f.Ranks, "the launcher knows the rank")
	require.Equal(t, "[rank5]: INFO ready", f.Last[0].Text)
}

// TestWhoWroteALine has lines of ranks, labelled and not, and what they tell of ranks and nodes.
func TestWhoWroteALine(t *testing.T) {
	tag := func(label, local int) logline.Tag { return logline.Tag{Label: label, Local: local, Rank: -1} }
	for line, bases := range map[string]map[logline.Tag]int{
		"0: [rank5]: ready":         {tag(0, -1): 5},
		"3: [rank0]: ready":         {tag(3, -1): 0},
		"[default0]:[rank4]: ready": {tag(-1, 0): 4},
		"[rank5]: ready":            {},
		"0: ready":                  {},
		"[default0]:ready":          {},
	} {
		f := factsOf(t, line+"\n")
		if len(bases) == 0 {
			require.Empty(t, f.Bases, line)
		} else {
			require.Equal(t, bases, f.Bases, line)
		}
		require.Equal(t, strings.Contains(line, "[rank"), len(f.Ranks) == 1, line)
		require.Equal(t, strings.Contains(line, ": ready") && !strings.HasPrefix(line, "["), f.Labels[0] || f.Labels[3], line)
		require.Equal(t, strings.HasPrefix(line, "[default0]"), f.Locals[0], line)
		require.Len(t, f.Labels, min(1, strings.Count("03", line[:1])), line)
		require.Len(t, f.Locals, strings.Count(line, "default"), line)
	}
	for line, nodes := range map[string]map[string]int{
		"n1:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.3<0>":    {"n1": 1},
		"localhost:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.1<0>": {},
		"NODELIST=n[1-2]":                          {"n1": 1, "n2": 1},
		"slurmstepd-n4: error: no memory":          {"n4": 1},
		"error: node failure on n[3-4], see there": {},
		"error: Node failure on n7":                {"n7": 1},
		"It runs on Host: gpu7.":                   {"gpu7": 1},
	} {
		require.Equal(t, nodes, factsOf(t, line+"\n").Hosts, line)
	}
	f := factsOf(t, "[rank2]: n1:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.3<0>\nNODE_RANK=3 on gpu7\ngpu8 NODE_RANK: 4\n")
	require.Equal(t, map[string]string{"10.0.0.3": "n1"}, f.Addresses)
	require.Equal(t, map[logline.Tag]string{{Label: -1, Local: -1, Rank: 2}: "n1"}, f.HostOf)
	require.Equal(t, map[string]string{"gpu7": "3", "gpu8": "4"}, f.NodeRank)
}

// TestWhatBeginsARun has lines on the begin of an attempt and on the run's arguments.
func TestWhatBeginsARun(t *testing.T) {
	const sizes = "using world size: 16, data-parallel size: 2, %stensor-model-parallel size: 4, pipeline-model-parallel size: 2\n"
	args := map[string]string{"world_size": "16", "data_parallel_size": "2", "tensor_model_parallel_size": "4", "pipeline_model_parallel_size": "2"}
	require.Equal(t, args, factsOf(t, fmt.Sprintf(sizes, "")).Args)
	args["context_parallel_size"] = "1"
	require.Equal(t, args, factsOf(t, fmt.Sprintf(sizes, "context-parallel size: 1, ")).Args)
	two := map[string]string{"world_size": "16", "data_parallel_size": "8", "tensor_model_parallel_size": "2"}
	require.Equal(t, two, factsOf(t, "using world size: 16, data-parallel size: 8, tensor-model-parallel size: 2\n").Args, "no pipeline")
	require.Empty(t, factsOf(t, "using world size: 16, and no more\n").Args)
	require.Equal(t, map[string]string{"seed": "7"}, factsOf(t, "  seed ...................... 7 \n  no argument ....\n").Args)
	require.Equal(t, 1, factsOf(t, "\n\n\n  a ......... 7\n\n  b ......... 8\n").Ran.Phases, "a line between arguments")
	require.Equal(t, 2, factsOf(t, "\n\n\n  a ......... 7\n\n\n  b ......... 8\n").Ran.Phases, "more of them")
	f := factsOf(t, "START TIME: 2026-06-11 10:00:00\n2026-06-11 11:00:00 go\nSTART TIME: today\n2026-06-11 12:00:00 go\n2026-06-11 13:00:00 go\n")
	require.Equal(t, 10, f.Starts["script"][0].At.Hour(), "its own time")
	require.Equal(t, 12, f.Starts["script"][1].At.Hour(), "the next time")
	for line, failed := range map[string]bool{"Number of errored trials: 3": true, "Number of errored trials: 0": false, "Number of trials: 3": false} {
		require.Equal(t, failed, factsOf(t, line+"\n").Failed != nil, line)
	}
	f = factsOf(t, "[after training is done] datetime: 2026-06-11 10:00:00\n")
	require.Equal(t, 1, f.Ran.Phases, "the end of the work is a phase of it")
	require.NotNil(t, f.Finished)
	for line, n := range map[string]int{
		"building the data: No space left on device":            1,
		"building the data, No space left on device, again ...": 0,
		"[before it: No space left on device":                   0,
	} {
		f := factsOf(t, line+"\n")
		require.Len(t, f.Events, n, line)
		require.Equal(t, line, f.Doing.Text)
	}
	require.Equal(t, map[string]string{"commit": "1a2b", "venv": "/v"}, factsOf(t, "Commit: 1a2b\nvenv = /v\nargv of it\n").Markers)
}

// TestASitesAccountIsNoneOfTheLastWords has the account that a site's epilogue writes behind a program's last words.
func TestASitesAccountIsNoneOfTheLastWords(t *testing.T) {
	for n, last := range map[int]string{0: "The last word", 50: "The last word", 51: "Row: 51 of it"} {
		f := factsOf(t, "The last word\nBegin Slurm Epilog: Jan-08\n"+diagnosetest.Rounds(n, "Row: {n} of it\n"))
		require.Equal(t, last, f.Last[len(f.Last)-1].Text, n)
	}
	lost := "123.batch      bash  (null)  1  FAILED      1:0"
	f := factsOf(t, "The last word\nBegin Slurm Epilog: Jan-08\n"+lost+"\n")
	require.Equal(t, lost, f.Last[len(f.Last)-1].Text)
	for line, told := range map[string]bool{
		"frame #3: f() in b.so": false, "Exception raised from f at a.cpp:3 (most recent call first):": false,
		"Exception raised from f at a.cpp:3": true, "Raised from f (most recent call first):": true, "wandb: Find logs at: ./w": false,
	} {
		f := factsOf(t, "The last word\n"+line+"\n")
		require.Equal(t, told, f.Last[len(f.Last)-1].Text == line, line)
	}
}

// Launchers that write into one file restart together, when the last of them has given up an attempt.
func TestLaunchersRestartTogether(t *testing.T) {
	const api = "torch.distributed.elastic.multiprocessing."
	gaveUp := func(task, pid int) string {
		return fmt.Sprintf("%d: ERROR:%sapi:failed (exitcode: 1) local_rank: 0 (pid: %d) of binary: /usr/bin/python3\n", task, api, pid)
	}
	log := ""
	for task := range 4 {
		log += gaveUp(task, 10+task)
	}
	first := int64(strings.LastIndex(log, "3: ERROR") + 1)
	for task := range 4 {
		log += gaveUp(task, 20+task)
		for line := range strings.Lines(api + "errors.ChildFailedError: \n====\nt.py FAILED\n----\nRoot Cause (first observed failure):\n[0]:\n" +
			"  time      : 2026-06-11_10:00:09\n  host      : gpu8\n" + fmt.Sprintf("  rank      : %d (local_rank: 0)\n  exitcode  : 1 (pid: %d)\n====\n", task, 20+task)) {
			log += fmt.Sprintf("%d: %s", task, line)
		}
	}
	for range 20 {
		starts := factsOf(t, log).Starts[scan.Restarted]
		require.Len(t, starts, 1)
		require.Equal(t, first, starts[0].Off)
	}
}
