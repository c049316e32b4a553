package python_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/stretchr/testify/require"
)

func TestFramesAreRead(t *testing.T) {
	for text, want := range map[string]python.Frame{
		`  File "/w/train.py", line 12, in step`:         {File: "/w/train.py", Line: 12, Function: "step"},
		`  |   File "/w/train.py", line 12, in <module>`: {File: "/w/train.py", Line: 12, Function: "<module>"},
		`  File "/w/train.py", line 12`:                  {File: "/w/train.py", Line: 12},
		`│ /w/train.py:12 in step           │`:           {File: "/w/train.py", Line: 12, Function: "step"},
		`│ /w/a/very/long/train.py:12 in    │`:           {File: "/w/a/very/long/train.py", Line: 12},
		`  File "/w/train.py", line x, in step`:          {},
		`  File "/w/train.py"`:                           {},
		`    loss = step(batch)`:                         {},
		`│   loss = step(batch)  │`:                      {},
	} {
		f, ok := python.ParseFrame(text)
		require.Equal(t, want.Line > 0, ok, text)
		if ok {
			require.Equal(t, want, f, text)
		}
	}
}

func TestExceptionsAreRead(t *testing.T) {
	for _, c := range []struct {
		text          string
		within        bool
		kind, message string
	}{
		{"KeyError: 'loss'", false, "KeyError", "'loss'"},
		{"torch.OutOfMemoryError: CUDA out of memory. \r", false, "torch.OutOfMemoryError", "CUDA out of memory."},
		{"AssertionError", true, "AssertionError", ""},
		{"AssertionError", false, "", ""},
		{"my.own.Trouble: it broke", true, "my.own.Trouble", "it broke"},
		{"my.own.Trouble: it broke", false, "", ""},
		{"my.own.Trouble", true, "my.own.Trouble", ""},
		{"Trouble", true, "", ""},
		{"Trouble: it broke", true, "Trouble", "it broke"},
		{"Troubles:", true, "Troubles", ""},
		{"Failures:", true, "", ""},
		{"my.own.Trouble: ", true, "my.own.Trouble", ""},
		{"WARNING: it may break", true, "", ""},
		{"Error: it broke", false, "", ""},
		{"Error: it broke", true, "Error", "it broke"},
		{"ValueError:", false, "ValueError", ""},
		{"a ValueError: odd", false, "", ""},
	} {
		kind, message, ok := python.ParseException(c.text, c.within)
		require.Equal(t, c.kind != "", ok, c.text)
		require.Equal(t, []string{c.kind, c.message}, []string{kind, message}, c.text)
	}
}

func TestExceptionsComeOfOthers(t *testing.T) {
	for _, c := range []struct {
		before, head string
		want         python.Chain
	}{
		{"The above exception was the direct cause of the following exception:", "", python.RaisedFrom},
		{"During handling of the above exception, another exception occurred:", "", python.Handling},
		{"", "Original ", python.Wrapping},
		{"RuntimeError: Caught KeyError in DataLoader worker process 3.", "", python.Wrapping},
		{"RuntimeError: Caught KeyError in a worker", "", python.Unchained},
		{"RuntimeError: Caught KeyError 3 times", "", python.Unchained},
		{"RuntimeError: see below:", "", python.Wrapping},
		{"see below:", "", python.Unchained},
		{"RuntimeError: see below", "", python.Unchained},
		{"Caught KeyError in DataLoader worker process 3", "", python.Wrapping},
		{"CheckpointException ranks:dict_keys([8])", "", python.Wrapping},
		{"loading", "", python.Unchained},
	} {
		require.Equal(t, c.want, python.ChainAfter(c.before, c.head), c.before)
	}
}

func TestADeepStackKeepsBothEnds(t *testing.T) {
	var tb python.Traceback
	for i := range 100 {
		tb.Add(python.Frame{File: "/w/x.py", Line: i, Function: fmt.Sprint("f", i)})
	}
	require.Len(t, tb.Frames, 64)
	require.Equal(t, 0, tb.Frames[0].Line)
	require.Equal(t, 31, tb.Frames[31].Line)
	require.Equal(t, 69, tb.Frames[33].Line)
	require.Equal(t, 99, tb.Frames[63].Line)
}

func TestAStackTellsWhereAndWhen(t *testing.T) {
	var none *python.Traceback
	_, ok := none.Innermost()
	require.False(t, ok)
	require.Empty(t, none.Phase())
	require.False(t, none.Has("f"))
	_, ok = new(python.Traceback).Innermost()
	require.False(t, ok)
	frame := func(file, function string) python.Frame { return python.Frame{File: file, Line: 1, Function: function} }
	tb := python.Traceback{Frames: []python.Frame{
		frame("/w/main.py", "main"), frame("/w/train.py", "forward_step"), frame("/v/site-packages/torch/nn.py", "_call_impl"),
	}}
	f, ok := tb.Innermost()
	require.True(t, ok)
	require.Equal(t, "/w/train.py", f.File, "the user's own code")
	require.Equal(t, "forward", tb.Phase())
	library := python.Traceback{Frames: []python.Frame{frame("/usr/lib/python3/a.py", "a"), frame("<frozen importlib>", "_find_and_load")}}
	f, ok = library.Innermost()
	require.True(t, ok)
	require.Equal(t, "_find_and_load", f.Function, "where all is a library's, the deepest")
	require.Equal(t, "import", library.Phase())
	require.True(t, tb.Has("w/main.py"))
	require.False(t, tb.Has("w/"+"other/"))
	require.True(t, tb.Has("torch/"))
}

func TestABoxedFunctionMayStandOnTheNextLine(t *testing.T) {
	tb := python.Traceback{Frames: []python.Frame{{File: "/w/x.py", Line: 1}}}
	require.True(t, tb.Boxes("│ step     │"))
	require.Equal(t, "step", tb.Frames[0].Function)
	require.True(t, tb.Boxes("╰──────╯"))
	require.Equal(t, "step", tb.Frames[0].Function)
	require.False(t, tb.Boxes("KeyError: 'loss'"))
	require.True(t, new(python.Traceback).Boxes("│ x │"))
}

func TestTheStackDecidesWhatAnExceptionIs(t *testing.T) {
	at := func(functions ...string) *python.Traceback {
		tb := &python.Traceback{}
		for _, f := range functions {
			tb.Add(python.Frame{File: "/w/x.py", Line: 1, Function: f})
		}
		return tb
	}
	for _, c := range []struct {
		kind, message string
		stack         *python.Traceback
		class         string
	}{
		{"KeyError", "'model'", at("main", "load_checkpoint"), outcome.CheckpointLoad},
		{"KeyError", "'model'", at("main"), outcome.UserException},
		{"TypeError", "'<' not supported", &python.Traceback{Frames: []python.Frame{{File: "/t/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py"}}}, outcome.Rendezvous},
		{"TypeError", "'<' not supported", at("next_rendezvous"), outcome.UserException},
		{"KeyError", "'LOCAL_RANK'", nil, outcome.EnvLaunch},
		{"ValueError", "odd", at("validate_args", "f"), outcome.BadArgs},
		{"ValueError", "odd", at("main", "validate_args", "f", "g"), outcome.BadArgs},
		{"ValueError", "odd", at("validate_args", "f", "g", "h"), outcome.UserException},
		{"ImportError", "odd", at("validate_args"), outcome.UserException},
		{"RuntimeError", "basic_ios::clear: iostream error", at("save_checkpoint"), outcome.DiskFull},
	} {
		class, _ := python.Refine(c.kind, c.message, c.stack)
		require.Equal(t, c.class, class, "%s: %s", c.kind, c.message)
	}
}

// For each row an exception that it classifies, with its weight, and an exception that it leaves alone.
func TestEveryRefinementHasAnException(t *testing.T) {
	deep := []string{"/w/a.py:a", "/w/b.py:b", "/w/c.py:c"}
	for _, c := range []struct {
		kind, message string
		stack         []string // file:function, outermost first
		class         string
		weight        int
	}{
		{"BrokenPipeError", "[Errno 32] Broken pipe", []string{"/v/multiprocessing/queues.py:_feed"}, outcome.UnknownExit, pattern.Symptom},
		{"EOFError", "", []string{"/v/torch/utils/data/dataloader.py:_try_get_data"}, outcome.UnknownExit, pattern.Symptom},
		{"EOFError", "", append([]string{"/v/multiprocessing/queues.py:_feed"}, deep...), outcome.UnknownExit, pattern.Symptom},
		{"EOFError", "", []string{"/w/train_utils/common.py:load_checkpoint"}, outcome.CheckpointLoad, pattern.Specific + 1}, // not a folder of torch
		{"ConnectionResetError", "the pipe was closed", []string{"/v/multiprocessing/queues.py:_feed"}, outcome.UnknownExit, pattern.Symptom},
		{"ConnectionResetError", "odd", []string{"/v/multiprocessing/queues.py:_feed"}, outcome.UserException, pattern.Generic},
		{"BrokenPipeError", "[Errno 32] Broken pipe", []string{"/w/a.py:a"}, outcome.UserException, pattern.Generic},
		{"_pickle.UnpicklingError", "pickle data was truncated", []string{"/v/multiprocessing/spawn.py:_main"}, outcome.UnknownExit, pattern.Symptom},
		{"EOFError", "Ran out of input", []string{"/v/multiprocessing/spawn.py:_main"}, outcome.UnknownExit, pattern.Symptom},
		{"EOFError", "Ran out of input", append([]string{"/v/multiprocessing/spawn.py:_main"}, deep...), outcome.UserException, pattern.Generic},
		{"urllib.error.URLError", "<urlopen error [Errno -2] Name or service not known>", nil, outcome.HFHub, pattern.Specific},
		{"requests.exceptions.ConnectTimeout", "it timed out", deep, outcome.HFHub, pattern.Specific},
		{"urllib.error.URLError", "odd", nil, outcome.UserException, pattern.Generic},
		{"KeyError", "'LOCAL_RANK'", nil, outcome.EnvLaunch, pattern.Specific},
		{"KeyError", "'MASTER_ADDR'", deep, outcome.EnvLaunch, pattern.Specific},
		{"KeyError", "'RANKS'", nil, outcome.UserException, pattern.Generic},
		{"KeyError", "'model'", append([]string{"/w/a.py:load_checkpoint"}, deep...), outcome.CheckpointLoad, pattern.Specific + 1},
		{"ZeroDivisionError", "odd", []string{"/w/a.py:load_checkpoint"}, outcome.UserException, pattern.Generic},
		{"FileNotFoundError", "no such file", append([]string{"/m/core/datasets/gpt_dataset.py:f"}, deep...), outcome.DatasetMissing, pattern.Specific},
		{"OSError", "the header is corrupt", []string{"/w/a.py:build_tokenizer"}, outcome.DatasetMissing, pattern.Specific},
		{"OSError", "odd", []string{"/w/a.py:build_tokenizer"}, outcome.UserException, pattern.Generic},
		{"RuntimeError", "basic_ios::clear: iostream error", append([]string{"/w/a.py:save_checkpoint"}, deep...), outcome.DiskFull, pattern.Specific},
		{"RuntimeError", "basic_ios::clear: iostream error", deep, outcome.UserException, pattern.Generic},
		{"ValueError", "odd", []string{"/v/torch/distributed/elastic/rendezvous/api.py:f"}, outcome.Rendezvous, pattern.Specific},
		{"ValueError", "odd", append([]string{"/v/torch/distributed/elastic/rendezvous/api.py:f"}, deep...), outcome.UserException, pattern.Generic},
		{"ValueError", "odd", []string{"/v/torch/distributed/run.py:f"}, outcome.BadArgs, pattern.Specific},
		{"ValueError", "odd", append([]string{"/v/torch/distributed/run.py:f"}, deep...), outcome.UserException, pattern.Generic},
		{"AssertionError", "odd", []string{"/m/core/indexed_dataset.py:f"}, outcome.DatasetMissing, pattern.Specific - 2},
		{"AssertionError", "odd", append([]string{"/m/core/indexed_dataset.py:f"}, deep...), outcome.UserException, pattern.Generic},
		{"AssertionError", "odd", []string{"/m/training/arguments.py:f"}, outcome.BadArgs, pattern.Specific},
		{"AssertionError", "odd", append([]string{"/m/training/arguments.py:f"}, deep...), outcome.UserException, pattern.Generic},
		{"AssertionError", "odd", append([]string{"/m/training/arguments.py:f"}, deep[1:]...), outcome.BadArgs, pattern.Specific},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/corpus_text_document.idx'", nil, outcome.DatasetMissing, pattern.Specific - 2},
		{"FileNotFoundError", "/data/part-3", deep, outcome.DatasetMissing, pattern.Specific - 2},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/images/split.mat'", deep, outcome.DatasetMissing, pattern.Specific - 2},
		{"FileNotFoundError", "/w/plan.yaml", deep, outcome.UserException, pattern.Generic},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/vit.pth.tar'", deep, outcome.CheckpointLoad, pattern.Specific - 2},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/vit.pt'", nil, outcome.CheckpointLoad, pattern.Specific - 2},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/a-dataset/net-snapshot-0042.pkl'", nil, outcome.CheckpointLoad, pattern.Specific + 4},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/out/checkpoint-600'", nil, outcome.CheckpointLoad, pattern.Specific + 4},
		{"FileNotFoundError", "[Errno 2] No such file or directory: 'out/checkpoint-600/trainer_state.json'", nil, outcome.CheckpointLoad, pattern.Specific + 4},
		{"FileNotFoundError", "[Errno 2] No such file or directory: 'out/iter_0000500/common.pt'", nil, outcome.CheckpointLoad, pattern.Specific + 4},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/tmp-checkpoint-600' -> '/w/checkpoint-600'", nil, outcome.UserException, pattern.Generic},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/checkpoint-400'", []string{"/v/shutil.py:rmtree"}, outcome.UserException, pattern.Generic},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/checkpoints/plan.yaml'", nil, outcome.UserException, pattern.Generic},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/mesh_data'", nil, outcome.DatasetMissing, pattern.Specific - 2},
		{"pytorch_lightning.utilities.exceptions.MisconfigurationException", "You requested gpu: [0, 1]", nil, outcome.BadArgs, pattern.Specific},
		{"RuntimeError", "You set `--ntasks=6` in your SLURM bash script, but this variable is not supported.", nil, outcome.BadArgs, pattern.Specific},
		{
			"ValueError", "You set `devices=2` in Lightning, but the number of tasks per node configured in SLURM `--ntasks-per-node=1` does not match.", nil,
			outcome.NodeCountMismatch, pattern.Specific,
		},
		{"ValueError", "require 2 GPUs", nil, outcome.NodeCountMismatch, pattern.Specific},
		{"AssertionError", "", []string{"/m/core/optimizer_param_scheduler.py:__init__"}, outcome.BadArgs, pattern.Specific},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/vit.pt.lock'", nil, outcome.UserException, pattern.Generic},
		{"FileNotFoundError", "[Errno 2] No such file or directory: '/w/out/vit.pt'", []string{"/v/torch/serialization.py:save"}, outcome.UserException, pattern.Generic},
	} {
		var tb *python.Traceback
		if c.stack != nil {
			tb = &python.Traceback{}
			for _, frame := range c.stack {
				file, function, _ := strings.Cut(frame, ":")
				tb.Add(python.Frame{File: file, Line: 1, Function: function})
			}
		}
		class, weight := python.Refine(c.kind, c.message, tb)
		require.Equal(t, fmt.Sprint(c.class, " ", c.weight), fmt.Sprint(class, " ", weight), "%s: %s %v", c.kind, c.message, c.stack)
	}
}

// One stack for each phase, and one on which the first matching row decides.
func TestEachPhaseIsToldByItsFunctions(t *testing.T) {
	for frames, phase := range map[string]string{
		"/w/a.py:load_checkpoint":                  "checkpoint load",
		"/m/core/dist_checkpointing/core.py:f":     "checkpoint load",
		"/w/a.py:save_checkpoint":                  "checkpoint save",
		"/w/a.py:evaluate":                         "evaluation",
		"/w/a.py:evaluate /w/a.py:get_batch":       "evaluation",
		"/v/torch/utils/data/dataloader.py:f":      "data",
		"/v/apex/adam.py:f":                        "optimizer",
		"/w/a.py:forward /w/a.py:backward":         "backward",
		"/w/a.py:initialize_megatron /w/a.py:main": "setup",
		"/w/a.py:main":                             "",
	} {
		tb := &python.Traceback{}
		for _, frame := range strings.Fields(frames) {
			file, function, _ := strings.Cut(frame, ":")
			tb.Add(python.Frame{File: file, Line: 1, Function: function})
		}
		require.Equal(t, phase, tb.Phase(), frames)
	}
}
