package scan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// traced is an exception with its traceback, of one frame in a function of a file.
func traced(file, function, source, line string) string {
	return "Traceback (most recent call last):\n  File \"" + file + "\", line 3, in " + function + "\n    " + source + "\n" + line + "\n"
}

// inStep is an exception of the program's own code.
func inStep(line string) string { return traced("/w/t.py", "step", "go()", line) }

// TestWhatAnExceptionIsOf has exceptions whose words alone would be of another class.
func TestWhatAnExceptionIsOf(t *testing.T) {
	const (
		zip    = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
		folder = "FileNotFoundError: [Errno 2] No such file or directory: '/data/corpus/"
		other  = "OSError: [Errno 2] No such file or directory: '/data/corpus/"
		reset  = "ConnectionResetError: [Errno 104] Connection reset by peer"
		fetch  = "/v/site-packages/torch/utils/data/_utils/fetch.py"
	)
	for name, c := range map[string]struct {
		log, class string
		weight     int
	}{
		"a broken file":                    {inStep(zip), outcome.CheckpointLoad, pattern.Specific + 4},
		"a broken file of the data":        {traced(fetch, "fetch", "go()", zip), outcome.DatasetMissing, pattern.Specific},
		"data":                             {inStep(folder + "a.bin'"), outcome.DatasetMissing, pattern.Specific + 3},
		"data with the samples' reader":    {traced(fetch, "fetch", "go()", folder+"a.bin'"), outcome.DatasetMissing, pattern.Specific + 3},
		"a checkpoint in a folder of data": {inStep(folder + "checkpoint_9.pt'"), outcome.CheckpointLoad, pattern.Specific + 4},
		"weights in a folder of data":      {inStep(folder + "weights.pt'"), outcome.DatasetMissing, pattern.Specific + 3},
		"results in a folder of data":      {traced("/w/t.py", "step", `f = open(p, "w")`, folder+"a.jsonl'"), outcome.UserException, pattern.Generic},
		"data that is read":                {traced("/w/t.py", "step", `f = open(p, "r")`, folder+"a.jsonl'"), outcome.DatasetMissing, pattern.Specific + 3},
		"another error there":              {traced("/w/t.py", "step", `f = open(p, "w")`, other+"a.jsonl'"), outcome.DatasetMissing, pattern.Specific + 3},
		"a peer that is gone":              {traced("/usr/lib/python3/multiprocessing/connection.py", "recv", "go()", reset), outcome.UnknownExit, pattern.Symptom},
		"no room":                          {inStep("OSError: [Errno 28] No space left on device"), outcome.DiskFull, pattern.Specific + 5},
		"no room for a semaphore":          {traced("/usr/lib/python3.11/multiprocessing/synchronize.py", "__init__", "go()", "OSError: [Errno 28] No space left on device"), outcome.ShmBusError, pattern.Specific + 6},
		"no room for the heap":             {traced("/usr/lib/python3.11/multiprocessing/heap.py", "__init__", "go()", "OSError: [Errno 28] No space left on device"), outcome.DiskFull, pattern.Specific + 5},
		"nothing known":                    {inStep("KeyError: 'tokens'"), outcome.UserException, pattern.Generic},
		"killed":                           {inStep("RuntimeError: DataLoader worker (pid(s) 7) exited unexpectedly"), outcome.HostOOM, pattern.Generic},
	} {
		f := factsOf(t, c.log)
		require.Len(t, f.Events, 1, name)
		require.Equal(t, c.class, f.Events[0].Class, name)
		require.Equal(t, c.weight, f.Events[0].Weight, name)
	}
}

// TestWhichOfTwoChainedExceptionsCounts has pairs of exceptions with Python's words between them.
func TestWhichOfTwoChainedExceptionsCounts(t *testing.T) {
	const (
		from     = "\nThe above exception was the direct cause of the following exception:\n\n"
		handling = "\nDuring handling of the above exception, another exception occurred:\n\n"
		light    = "KeyError: 'tokens'"
		equal    = "ValueError: no tokens"
		heavy    = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3 GiB"
		worker   = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."
		stopped  = "KeyboardInterrupt"
		waited   = "_queue.Empty"
		gone     = "RuntimeError: DataLoader worker (pid(s) 7, 8) exited unexpectedly"
		carries  = "torch.OutOfMemoryError: CUDA out of memory, and so:"
	)
	for name, c := range map[string]struct{ earlier, words, later, counts string }{
		"raised from":                           {light, from, equal, light},
		"raised from, the later says much more": {light, from, heavy, heavy},
		"raised from, the earlier does":         {heavy, from, light, heavy},
		"handling":                              {light, handling, equal, equal},
		"handling, the earlier says much more":  {heavy, handling, light, heavy},
		"handling, the later does":              {light, handling, heavy, heavy},
		"handling what a person did":            {stopped, handling, heavy, stopped},
		"raised from what a person did":         {stopped, from, heavy, heavy},
		"a worker was killed":                   {worker, from, heavy, worker},
		"handling that a worker was killed":     {worker, handling, heavy, heavy},
		"a queue in which nothing came":         {waited, from, gone, gone},
		"handling that nothing came":            {waited, handling, light, light},
		"carried by one that says more":         {carries, "", light, light},
	} {
		f := factsOf(t, inStep(c.earlier)+c.words+inStep(c.later))
		require.Len(t, f.Events, 2, name)
		for _, e := range f.Events {
			require.Equal(t, e.Text == c.counts, e.Counts(), "%s: %s", name, e.Text)
			require.Equal(t, e.Text != c.counts, e.Superseded, "%s: %s", name, e.Text)
		}
	}
	f := factsOf(t, inStep(light)+inStep(equal))
	require.True(t, f.Events[0].Counts() && f.Events[1].Counts(), "two that nothing connects")
}

// TestWhichExceptionsAreOnlyReported has exceptions that the program survived, and exceptions in the same places
// that it did not.
func TestWhichExceptionsAreOnlyReported(t *testing.T) {
	const (
		ignored  = "Exception ignored in: <function f at 0x7f>\n"
		library  = "/v/site-packages/fast/__init__.py"
		missing  = "ImportError: libfast.so is missing"
		handling = "\nDuring handling of the above exception, another exception occurred:\n\n"
	)
	last := inStep("KeyError: 'tokens'")
	for name, c := range map[string]struct {
		log     string
		reports []bool
	}{
		"an ignored one":                        {ignored + last, []bool{true}},
		"an ignored one, and one":               {ignored + last + last, []bool{true, false}},
		"two ignored ones, and one":             {ignored + ignored + last + last + last, []bool{true, true, false}},
		"one":                                   {last, []bool{false}},
		"logging's own, and one":                {"--- Logging error ---\n" + last + "Call stack:\nMessage: 'a'\nArguments: (7,)\n" + last, []bool{true, false}},
		"logging's own while one was handled":   {"--- Logging error ---\n" + last + handling + last, []bool{true, true}},
		"logged as a warning":                   {"WARNING: " + last, []bool{true}},
		"logged as an error":                    {"ERROR: " + last, []bool{false}},
		"raised while one was logged":           {"INFO: " + last + handling + inStep("ValueError: no tokens"), []bool{true, true}},
		"raised behind one that was logged":     {"INFO: " + last + inStep("ValueError: no tokens"), []bool{true, false}},
		"raised while one ended the program":    {last + handling + inStep("ValueError: no tokens"), []bool{false, false}},
		"the resource tracker's":                {traced("/usr/lib/python3/multiprocessing/resource_tracker.py", "main", "go()", "KeyError: '/mp-7'"), []bool{true}},
		"of a library that can do without it":   {"No fast kernels: libfast.so is missing\n" + traced(library, "<module>", "go()", missing), []bool{true}},
		"of a library, after other words":       {"No fast kernels\n" + traced(library, "<module>", "go()", missing), []bool{false}},
		"of a library's function":               {"No fast kernels: libfast.so is missing\n" + traced(library, "load", "go()", missing), []bool{false}},
		"of the program":                        {"No fast kernels: libfast.so is missing\n" + traced("/w/t.py", "<module>", "go()", missing), []bool{false}},
		"of a library, in no words":             {"No fast kernels\n" + traced(library, "<module>", "go()", "AssertionError"), []bool{false}},
		"of a library, while another is raised": {last + handling + traced(library, "<module>", "go()", missing), []bool{false, false}},
	} {
		f := factsOf(t, c.log)
		require.Len(t, f.Events, len(c.reports), name)
		for n, e := range f.Events {
			require.Equal(t, c.reports[n], e.Form == pattern.Report, "%s: %s", name, e.Text)
		}
	}
	f := factsOf(t, "The data are read\n"+ignored+ignored+last+last)
	require.Equal(t, "The data are read", f.Last[len(f.Last)-1].Text, "what is ignored is none of the last words")
	f = factsOf(t, "0: Ready\n"+ignored+strings.Replace(last, "  File", "0: All is read\n  File", 1))
	require.Equal(t, "0: All is read", f.Last[len(f.Last)-1].Text, "but another rank's line among it is")
}

// TestWhyThereIsNoProcessGroup has an exception of the set-up that a program only logged, and what it misses later.
func TestWhyThereIsNoProcessGroup(t *testing.T) {
	const (
		port = "RuntimeError: The server socket has failed to listen on any local network address. EADDRINUSE, Address already in use"
		met  = "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (gpu1, 29500)."
		lost = "ValueError: Default process group has not been initialized, please make sure to call init_process_group."
	)
	for name, c := range map[string]struct {
		log     string
		because bool
	}{
		"the port was in use":      {"WARNING: " + inStep(port) + inStep(lost), true},
		"nobody was met":           {"WARNING: " + inStep(met) + inStep(lost), true},
		"another kind of error":    {"WARNING: " + inStep("KeyError: 'a'") + inStep(lost), false},
		"another error misses it":  {"WARNING: " + inStep(port) + inStep("ValueError: no tokens"), false},
		"another rank's exception": {"WARNING: " + inStep(port) + framed("1: ", inStep(lost)), false},
	} {
		f := factsOf(t, c.log)
		require.Len(t, f.Events, 2, name)
		require.Equal(t, c.because, f.Events[0].Counts(), name)
		require.Equal(t, !c.because, f.Events[1].Counts(), name)
	}
	f := factsOf(t, inStep(port)+inStep(lost))
	require.True(t, f.Events[0].Counts() && f.Events[1].Counts(), "a set-up that was not logged counts by itself")
}

// TestPiecesOfAnExceptionKeepItsTraceback has the last line of a labelled traceback in pieces, and of one without label.
func TestPiecesOfAnExceptionKeepItsTraceback(t *testing.T) {
	const head = "0: Traceback (most recent call last):\n0:   File \"/w/t.py\", line 3, in f\n"
	for log, text := range map[string]string{
		head + "0: KeyError\n0: : 'tokens'\n":       "KeyError: 'tokens'",
		head + "0: KeyError:\n0: 'tokens'\n":        "KeyError: 'tokens'",
		head + "0: CellFailed\n0: : no cell\n":      "CellFailed: no cell",
		head + "0: KeyError\n0: another line\n":     "KeyError",
		inStep("KeyError") + ": 'tokens'\n":         "KeyError",
		head + "0: KeyError\n0: : \n0: 'tokens'\n":  "KeyError: 'tokens'",
		head + "0: a.b.CellFailed\n0: : no cell\n":  "a.b.CellFailed: no cell",
		inStep("a.b.CellFailed: no cell") + "\n":    "a.b.CellFailed: no cell",
		head + "0: KeyError: 'tokens'\n0: : more\n": "KeyError: 'tokens'",
	} {
		events := factsOf(t, log).Events
		require.Len(t, events, 1, log)
		require.Equal(t, text, events[0].Text, log)
		require.NotNil(t, events[0].Stack, log)
		require.Len(t, events[0].Stack.Frames, 1, log)
	}
	full := factsOf(t, "  File \"/w/t.py\", line 3, in f\n    go()\nLoading: No space left on device\n").Events
	require.Len(t, full, 1, "what is no exception is read as another line")
	require.Equal(t, outcome.DiskFull, full[0].Class)
	headless := "  File \"/w/t.py\", line 3, in f\n    go()\n"
	for line, is := range map[string]bool{"KeyError: 'a'": true, "a.b.CellFailed: no cell": true, "Loading: the data": false, "CellFailed: no cell": false} {
		require.Equal(t, is, len(factsOf(t, headless+line+"\n").Events) > 0, line)
		require.Equal(t, true, len(factsOf(t, inStep(line)).Events) > 0, line)
	}
}

// TestWhoseAnExceptionIs has exceptions that one process prints and another one, or a child, raised.
func TestWhoseAnExceptionIs(t *testing.T) {
	const (
		joined = "torch.multiprocessing.spawn.ProcessExitedException: process "
		raised = "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following error:\n"
		params = "RuntimeError: DDP expects same model across all ranks, but Rank "
	)
	none := logline.NoTag
	local := func(n int) logline.Tag { return logline.Tag{Label: -1, Local: n, Rank: -1} }
	rank := func(n int) logline.Tag { return logline.Tag{Label: -1, Local: -1, Rank: n} }
	type whose struct {
		tag                  logline.Tag
		child, agent, quoted bool
		exit                 int
	}
	for name, c := range map[string]struct {
		log  string
		want whose
	}{
		"its own":                         {inStep("KeyError: 'a'"), whose{tag: none}},
		"a child's exit code":             {inStep(joined + "1 terminated with exit code 3"), whose{local(1), true, true, false, 3}},
		"the first child's signal":        {inStep(joined + "0 terminated with signal SIGSEGV"), whose{local(0), true, true, false, 0}},
		"a child's, and a rank is known":  {framed("[rank5]: ", inStep(joined+"1 terminated with exit code 3")), whose{rank(5), false, true, false, 3}},
		"another class with such words":   {inStep("RuntimeError: process 1 terminated with exit code 3"), whose{tag: none}},
		"the first child's exception":     {"spawn\n" + inStep(raised+inStep("KeyError: 'a'")), whose{local(0), true, false, false, 0}},
		"another rank's model":            {inStep(params + "0 has 9 params, while rank 3 has inconsistent 8 params."), whose{rank(3), false, false, true, 0}},
		"another rank's model, not the 0": {inStep(params + "3 has 9 params, while rank 0 has inconsistent 8 params."), whose{rank(3), false, false, true, 0}},
		"a rank that a traceback names":   {strings.Replace(inStep("KeyError: 'a'"), "last):", "last): (RANK 6)", 1), whose{rank(6), false, false, true, 0}},
		"by its line alone, from a child": {"KeyError: process 1 terminated with exit code 3\n", whose{tag: none}},
	} {
		f := factsOf(t, c.log)
		require.NotEmpty(t, f.Events, name)
		e := f.Events[len(f.Events)-1]
		require.Equal(t, c.want, whose{e.Tag, e.Child, e.Agent, e.Quoted, e.Exit}, name)
	}
	require.Equal(t, pattern.Exited, factsOf(t, inStep(joined+"1 terminated with exit code 3")).Events[0].Weight)
}

// TestWhichRanksRecordAnExceptionFollows has records of loggers above a traceback that the program logged.
func TestWhichRanksRecordAnExceptionFollows(t *testing.T) {
	module := traced("/w/t.py", "<module>", "go()", "KeyError: 'a'")
	const handling = "\nDuring handling of the above exception, another exception occurred:\n\n"
	type by struct {
		writer string
		world  int
	}
	for name, c := range map[string]struct {
		log  string
		want by
	}{
		"an error's":                         {"[rank 2/4 gpu1] ERROR it failed\n" + inStep("KeyError: 'a'"), by{"2", 4}},
		"a warning's":                        {"[rank 2/4 gpu1] Warning, it failed\n" + inStep("KeyError: 'a'"), by{"2", 4}},
		"of no world":                        {"10:00:01 (rank=1) ERROR it failed\n" + inStep("KeyError: 'a'"), by{"1", 0}},
		"of no complaint":                    {"[rank 2/4 gpu1] DEBUG it went on\n" + inStep("KeyError: 'a'"), by{}},
		"of a plain failure":                 {"rank 2: training failed\n" + inStep("KeyError: 'a'"), by{"2", 0}},
		"of a logged failure":                {"10:00:01 - train - ERROR - rank 2: step 4 failed:\n" + inStep("KeyError: 'a'"), by{"2", 0}},
		"of a failure that is over":          {"rank 2: evaluation failed, going on\n" + inStep("KeyError: 'a'"), by{}},
		"of a message without error":         {"rank 2: no error\n" + inStep("KeyError: 'a'"), by{}},
		"of a message on a file":             {"rank 2: the error file is /tmp/e\n" + inStep("KeyError: 'a'"), by{}},
		"of a plain message":                 {"rank 2: training begins\n" + inStep("KeyError: 'a'"), by{}},
		"of one in Chinese":                  {"rank 2：训练失败\n" + inStep("KeyError: 'a'"), by{"2", 0}},
		"of a failure that names a rank":     {"lost rank 2: training failed\n" + inStep("KeyError: 'a'"), by{}},
		"an error of no rank":                {"ERROR it failed\n" + inStep("KeyError: 'a'"), by{}},
		"the module's, below an error":       {"[rank 2/4 gpu1] ERROR it failed\n" + module, by{"2", 4}},
		"the module's, below a mere word":    {"[rank 2/4 gpu1] it had an error\n" + module, by{}},
		"a function's, below a mere word":    {"[rank 2/4 gpu1] it had an error\n" + inStep("KeyError: 'a'"), by{"2", 4}},
		"raised while it was handled":        {"[rank 2/4 gpu1] ERROR it failed\n" + inStep("KeyError: 'a'") + handling + inStep("ValueError: b"), by{"2", 0}},
		"raised behind it":                   {"[rank 2/4 gpu1] ERROR it failed\n" + inStep("KeyError: 'a'") + inStep("ValueError: b"), by{}},
		"of a module, while it was handled":  {"[rank 2/4 gpu1] ERROR it failed\n" + inStep("KeyError: 'a'") + handling + module, by{}},
		"while one of no record was handled": {inStep("KeyError: 'a'") + handling + inStep("ValueError: b"), by{}},
	} {
		f := factsOf(t, c.log)
		require.NotEmpty(t, f.Events, name)
		e := f.Events[len(f.Events)-1]
		require.Equal(t, c.want, by{e.Writer, e.World}, name)
	}
}

// TestEventsOfOneClassAreKeptInTheirOrder has one error many times, with a new attempt in between.
func TestEventsOfOneClassAreKeptInTheirOrder(t *testing.T) {
	const start = "using world size: 8, data-parallel size: 8\n"
	errs := strings.Repeat("OSError: [Errno 28] No space left on device\n", 9)
	for name, c := range map[string]struct {
		log  string
		kept int
	}{
		"one attempt":             {errs, 6},
		"the first start is late": {errs + start + errs, 6},
		"a second start":          {start + errs + start + errs, 12},
		"another rank":            {errs + strings.ReplaceAll("\n"+errs, "\nO", "\n3: O"), 12},
	} {
		require.Len(t, factsOf(t, c.log).Events, c.kept, name)
	}
	caught := strings.Repeat("WARNING: "+inStep("OSError: [Errno 28] No space left on device"), 9)
	f := factsOf(t, errs+caught+errs)
	var reports int
	for _, e := range f.Events {
		if e.Form == pattern.Report {
			reports++
		}
	}
	require.Len(t, f.Events, 12)
	require.Equal(t, 6, reports, "what is only reported takes no place from what counts")
	require.Equal(t, int64(len(errs+caught+errs)-len(errs)/9), f.Events[len(f.Events)-1].Off, "the newest is the last")
}

// A data loader's exception quotes that of its worker, which is the one that ended the process.
func TestAWorkersExceptionIsRaisedOnce(t *testing.T) {
	const lines = "Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in "
	loader := lines + "<module>\nValueError: Caught ValueError in DataLoader worker process 0.\n"
	require.Equal(t, 1, factsOf(t, loader).Raised[-1])
	require.Zero(t, factsOf(t, loader+"Original "+lines+"check\nValueError: NaN in the states\n").Raised[-1])
}
