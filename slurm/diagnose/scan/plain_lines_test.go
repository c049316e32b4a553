package scan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// TestWhatALineThatIsNoExceptionSays has lines on failures in the forms of programs, launchers and shells.
func TestWhatALineThatIsNoExceptionSays(t *testing.T) {
	const (
		full      = "No space left on device"
		unknown   = "The client socket has timed out"
		statement = pattern.Statement
	)
	type said struct {
		class  string
		weight int
		form   pattern.Form
	}
	room := said{outcome.DiskFull, pattern.Specific + 5, statement}
	for log, want := range map[string]*said{
		full:                                      &room,
		"INFO: " + full:                           {room.class, room.weight, pattern.Report},
		"it says: " + full:                        {room.class, room.weight, pattern.Bare},
		"| " + full + " |":                        nil,
		"+ echo " + full:                          nil,
		"# " + full:                               nil,
		"['a', '--b'] " + full:                    nil,
		"['a', 'b'] " + full:                      {room.class, room.weight, pattern.Bare},
		"+ python a.py --tag " + full:             nil,
		"ran python a.py --tag " + full:           nil,
		full + " in python a.py --tag 3":          &room,
		full + ", exit code: 3":                   &room,
		"/w/a.py:7: UserWarning: see:\n" + full:   nil,
		"/w/a.py:7: UserWarning: see\n" + full:    &room,
		"INFO: see:\n" + full:                     nil,
		"see:\n" + full:                           &room,
		"INFO: step 3 hit memory limit at 3 GiB":  {outcome.HostOOM, pattern.Fact - 1, statement},
		"INFO: the run hit its memory+swap limit": {outcome.HostOOM, pattern.Specific, pattern.Report},
		"WARNING: Received 15 death signal, shutting down workers": {outcome.UnknownExit, pattern.Symptom, statement},
		"exit code: 3":                             {outcome.UnknownExit, pattern.Exited, statement},
		"exit code: 0":                             nil,
		"WARNING: exit code: 3":                    nil,
		"Received SIGINT, will exit":               {outcome.SlurmCancelled, pattern.Ended - 5, statement},
		"Received SIGINT, will go on":              nil,
		"command failed: Input/output error":       {outcome.Filesystem, pattern.Specific + 3, pattern.Bare},
		"libfabric:7:1: Input/output error":        nil,
		"usage: a.py [-h] " + full + "\n  " + full: nil,
		"RuntimeError: " + unknown + ":\n" + full:  &room,
		"pyxis: child 7 failed with exit code 3":   {outcome.UnknownExit, pattern.Exited, statement},
	} {
		f := factsOf(t, "The data\n"+log+"\n")
		if want == nil {
			require.Empty(t, f.Events, log)
			continue
		}
		require.NotEmpty(t, f.Events, log)
		e := f.Events[len(f.Events)-1]
		require.Equal(t, *want, said{e.Class, e.Weight, e.Form}, log)
	}
}

// TestALineThatSaysMoreThanItsException has an exception whose message goes on in the next line.
func TestALineThatSaysMoreThanItsException(t *testing.T) {
	for name, c := range map[string]struct {
		log    string
		counts []bool
	}{
		"it says much more":        {inStep("RuntimeError: it failed with:") + "CUDA out of memory, it seems\n", []bool{false, true}},
		"it says no more":          {inStep("torch.OutOfMemoryError: CUDA out of memory with:") + "No space left on device\n", []bool{true, true}},
		"no colon":                 {inStep("RuntimeError: it failed") + "CUDA out of memory, it seems\n", []bool{true, true}},
		"a line between":           {inStep("RuntimeError: it failed with:") + "this\nCUDA out of memory, it seems\n", []bool{true, true}},
		"by its line, and no more": {"RuntimeError: it failed with:\nCUDA out of memory, it seems\n", []bool{false, true}},
	} {
		f := factsOf(t, c.log)
		require.Len(t, f.Events, len(c.counts), name)
		for n, e := range f.Events {
			require.Equal(t, c.counts[n], e.Counts(), "%s: %s", name, e.Text)
		}
	}
}

// TestOnlyTheFirstLocalRankOfDeepSpeedsLauncherIsKnown has its line on an exit code, which repeats the command of the
// process that it started last.
func TestOnlyTheFirstLocalRankOfDeepSpeedsLauncherIsKnown(t *testing.T) {
	for rank, local := range map[string]int{"0": 0, "3": -1} {
		f := factsOf(t, "[launch.py:324:sigkill_handler] cmd = ['python', '-u', 'a.py', '--local_rank="+rank+"'] exits with return code = 7\n")
		require.Len(t, f.Events, 1)
		require.Equal(t, 7, f.Events[0].Exit)
		require.Equal(t, local, f.Events[0].Tag.Local, rank)
		require.NotNil(t, f.Failed)
	}
}
