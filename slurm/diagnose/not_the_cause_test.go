package diagnose_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Connections that were refused or timed out: to a model hub, and to servers of the job itself.
func TestConnectionsRefusedByHubsAndServers(t *testing.T) {
	in := func(file, last string) string {
		return "Traceback (most recent call last):\n  File \"/w/embed.py\", line 8, in <module>\n    main()\n" +
			"  File \"/v/lib/python3.12/site-packages/" + file + "\", line 71, in send\n    return self._send(r)\n" + last + "\n"
	}
	nameless := func(host string) string {
		return "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='" + host + "', port=443): Max retries exceeded with url: /v1/start " +
			"(Caused by NameResolutionError(\"Failed to resolve '" + host + "' ([Errno -2] Name or service not known)\"))"
	}
	for name, c := range map[string]struct{ log, class string }{
		"a database":              {in("milvus_lite/client.py", "httpx.ConnectError: [Errno 111] Connection refused"), outcome.UserException},
		"a hub":                   {in("huggingface_hub/file_download.py", "httpx.ConnectError: [Errno 111] Connection refused"), outcome.HFHub},
		"a hub, by name":          {in("api/call.py", "requests.exceptions.ConnectionError: (host='huggingface.co', port=443): Connection refused"), outcome.HFHub},
		"a download, as it seems": {in("api/call.py", "requests.exceptions.ConnectTimeout: Connection to files.example timed out"), outcome.HFHub},
		// An unknown host name is not a rank.
		"a download, with no name": {in("requests/adapters.py", nameless("files.example")), outcome.HFHub},
		"a server of experiments":  {in("requests/adapters.py", nameless("api.wandb.ai")), outcome.UserException},
		"one of the house's own":   {in("requests/adapters.py", nameless("mlflow.cluster.example")), outcome.UserException},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, r.RootLine)
		})
	}
}

// Lines that look like a cause but only accompany one.
func TestWordsThatOnlyAccompany(t *testing.T) {
	const threads = "terminate called without an active exception\n"
	const ignored = "Exception ignored in: <function Loader.__del__ at 0x7f>\nTraceback (most recent call last):\n  File \"/v/torch/utils/data/dataloader.py\", " +
		"line 14, in __del__\n    self._shutdown_workers()\nRuntimeError: DataLoader worker (pid 88) is killed by signal: Aborted. \n"
	const next = "Epoch 3\nCounting the words\n"
	const there = "CondaValueError: prefix already exists: /home/ana/envs/align\n"
	for name, c := range map[string]struct{ log, class, line string }{
		"threads that an exception left":  {strings.Repeat(threads, 3) + diagnosetest.Raised("TypeError: forward() takes 3 positional arguments but 4 were given"), outcome.UserException, "forward()"},
		"threads, and nothing else":       {"Step 3 loss 0.4\n" + threads, outcome.Segfault, "terminate"},
		"threads of a loader's workers":   {strings.Repeat(threads, 3) + ignored + next, outcome.UnknownExit, ""},
		"the same, and then a scancel":    {threads + ignored + next + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-04T10:00:00 ***\n", outcome.SlurmCancelled, "CANCELLED"},
		"an abort of another rank":        {"Fatal Python error: Aborted\n" + ignored + next, outcome.Segfault, "Fatal"},
		"threads after such workers":      {threads + ignored + next + threads, outcome.Segfault, "terminate"},
		"a launch that the request kept":  {"srun: error: task 0 launch failed: Unable to satisfy cpu bind request\n", outcome.SlurmSubmitRejected, "cpu bind"},
		"a warning of a package's own":    {"/gpfs/v/cells.py:12: MissingFieldWarning: no id, this will become a hard error\nStep 3 loss 0.4\n", outcome.UnknownExit, ""},
		"an environment that was there":   {there + "Building the graph of jobs...\nReady jobs: 2\n", outcome.UnknownExit, ""},
		"one that was there, and an end":  {there + "Building the graph of jobs...\nAll jobs completed\n", outcome.Success, ""},
		"one that was there, and a cause": {there + diagnosetest.Raised("KeyError: 'width'"), outcome.UserException, "width"},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
		})
	}
}

// A truncated file: a sample of the data, read by a worker or without one, and a model.
func TestABrokenFileIsOfTheDataOrAModel(t *testing.T) {
	through := func(file, function string) string {
		return "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"" + file + "\", line 54, in " + function + "\n[rank1]:     x = read(i)\n" +
			"[rank1]:   File \"/w/files.py\", line 9, in read\n[rank1]:     return pickle.load(f)\n"
	}
	const head = "[rank1]: _pickle.UnpicklingError: Caught UnpicklingError in DataLoader worker process 1.\n[rank1]: Original Traceback (most recent call last):\n"
	const worker, fetch = "/v/site-packages/torch/utils/data/_utils/worker.py", "/v/site-packages/torch/utils/data/_utils/fetch.py"
	for name, c := range map[string]struct{ log, class string }{
		"in a worker":            {through("/v/site-packages/torch/_utils.py", "reraise") + head + strings.SplitN(through(worker, "_worker_loop"), "\n", 2)[1], outcome.DatasetMissing},
		"in the process itself":  {through(fetch, "fetch"), outcome.DatasetMissing},
		"of a model":             {through("/w/restore.py", "restore"), outcome.CheckpointLoad},
		"of a model, by its own": {through("/w/restore.py", "load_checkpoint"), outcome.CheckpointLoad},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log+"[rank1]: _pickle.UnpicklingError: pickle data was truncated\n", diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, r.RootLine)
			namesRank(t, 1, r, r.RootLine)
		})
	}
}

// What Python says of the names of arguments and variables tells of the program, whatever the names are.
func TestNamesSayNothingOfTheCause(t *testing.T) {
	for _, name := range []string{"dataset", "vocab_file", "data_path", "normalized_shape", "checkpoint", "tokenizer"} {
		for _, said := range []string{
			"TypeError: Layer.__init__() missing 1 required positional argument: '" + name + "'",
			"TypeError: build() got an unexpected keyword argument '" + name + "'",
			"NameError: name '" + name + "' is not defined",
			"UnboundLocalError: cannot access local variable '" + name + "' where it is not associated with a value",
		} {
			r := diagnosetest.With(t, diagnosetest.Raised(said), diagnose.Context{JobState: "ENDED"})
			require.Equal(t, outcome.UserException, r.Class, said)
		}
	}
}

// A tensor that is printed is one value, however many rows it has: no program goes on with its work by them.
func TestATensorIsNoWorkThatGoesOn(t *testing.T) {
	tensor := "tensor([ 8.5770e-02, -1.5593e-01,\n" + strings.Repeat("        -1.4119e+00, -1.6859e-01, -3.0909e-01,\n", 90) + "         1.2992e-01], device='cuda:0')\n"
	steps := strings.Repeat("    12   0.25   1.75\n", 90)
	for rest, class := range map[string]string{tensor: outcome.UserException, steps: outcome.UnknownExit} {
		r := diagnosetest.Old(t, "Counting\n"+diagnosetest.Raised("TypeError: can't convert cuda:0 device type tensor to numpy")+rest)
		require.Equal(t, class, r.Class, rest[:40])
	}
}
