package report_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// update rewrites the golden file: go test ./slurm/diagnose/report -update.
var update = flag.Bool("update", false, "rewrite what is shown")

func of[T any](v T) *T { return &v }

// shown are reports of each kind, with all fields and with few.
var shown = []struct {
	name string
	r    report.Report
}{
	{"out of memory", report.Report{
		Class: outcome.CUDAOOM, RootFile: "a.out", RootLineNo: of(7), RootLine: "torch.OutOfMemoryError: x", RootRank: of(3), RootNode: of("gpu1"), DownstreamRanks: 1,
		Attempts: 2, Runs: 2, Phase: "backward", Traceback: &python.Frame{File: "/w/t.py", Line: 9, Function: "step"},
		Memory: &report.Memory{TriedGiB: 2.5, FreeGiB: 1, TotalGiB: 80, OthersGiB: 1.5}, Layout: &report.Layout{WorldSize: 8, TP: 2, PP: 1, MicroBatchSize: 4, SeqLength: 8192},
		Evidence: []report.Evidence{{File: "a.out", LineNo: 7, Rank: of(3), Text: "torch.OutOfMemoryError: x", Why: "cause"}, {File: "b.out", LineNo: 1, Text: "y", Why: "downstream"}},
		Clocks:   []report.Clock{{Node: "gpu2", AheadS: 90}, {Node: "gpu3", AheadS: -61}}, RanksRead: 2, Unreadable: []logfile.Unreadable{{Path: "c.out", Reason: "no right"}},
		Stacks: []report.StackGroup{{Ranks: []int{1, 2}, Frames: []string{"f", "g"}}},
	}},
	{"out of memory, with what would fit", report.Report{
		Class: outcome.CUDAOOM, Fit: &report.Fit{Flags: []string{"--tensor-model-parallel-size", "4"}, EstimateGiB: 60.5, TotalGiB: 80},
		Layout: &report.Layout{MicroBatchSize: 2}, Memory: &report.Memory{TriedGiB: 1, OthersGiB: 1}, DownstreamRanks: 2, OnlyRanks: []int{0, 5},
		Traceback: &python.Frame{File: "/w/t.py", Line: 9},
	}},
	{"out of memory, a batch of one", report.Report{Class: outcome.CUDAOOM, Layout: &report.Layout{MicroBatchSize: 1}, Memory: &report.Memory{TotalGiB: 80}, Attempts: 1, Runs: 1, OnlyRanks: []int{4}}},
	{"a node to avoid", report.Report{Class: outcome.GPUHardware, Retry: true, RootLine: "NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus", RootNode: of("gpu1"), ExcludeNodes: []string{"gpu1", "gpu2"}}},
	{"a node to avoid, offered", report.Report{Class: outcome.GPUHardware, RootNode: of("gpu1"), ExcludeNodes: []string{"gpu1"}}.Offered()},
	{"a number that no table has, and one that it has", report.Report{
		Class: outcome.GPUHardware, RootLine: "NVRM: Xid (PCI:0000:1a:00): 999, x", RootNode: of("gpu1"), Evidence: []report.Evidence{{Text: "NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus", Why: "cause"}},
	}},
	{"memory of a GPU", report.Report{Class: outcome.GPUHardware, RootLine: "RuntimeError: CUDA error: uncorrectable ECC error encountered", RootNode: of("gpu1")}},
	{"a collective that two missed", report.Report{Class: outcome.NCCLTimeout, Laggard: "recorder", MissedBy: []int{1, 3}, Collective: "all_reduce #5"}},
	{"a collective that one missed", report.Report{Class: outcome.NCCLTimeout, Laggard: "recorder", Collective: "all_reduce #5", Behind: &report.Behind{Ranks: []int{2}, By: "recorder"}}},
	{"a collective that one missed, with its group", report.Report{Class: outcome.NCCLTimeout, Laggard: "recorder", Missed: &report.Missed{Op: "all_reduce", Seq: 5, Group: "0", Waiting: 3}}},
	{"no log", report.Report{Class: outcome.UnknownExit, NoLog: lang.Text{EN: "no log was found at a.out", ZH: "在 a.out 没有找到日志"}}},
	{"behind", report.Report{Class: outcome.NCCLTimeout, Laggard: "behind"}},
	{"another collective", report.Report{Class: outcome.NCCLTimeout, Laggard: "other"}},
	{"named", report.Report{Class: outcome.NCCLTimeout, Laggard: "named"}},
	{"an exit code of its own", report.Report{Class: outcome.UnknownExit, Laggard: "exit"}},
	{"lines that name no rank", report.Report{Class: outcome.HostOOM, Laggard: "unprefixed", RootNode: of("gpu2"), DownstreamRanks: 3}},
	{"lines that name only the number on the node", report.Report{Class: outcome.HostOOM, Laggard: "local", DownstreamRanks: 3}},
	{"an error of all ranks", report.Report{Class: outcome.BadArgs, Laggard: "all"}},
	{"silent", report.Report{Class: outcome.NCCLTimeout, Laggard: "silent"}},
	{"a peer, and nodes that differ", report.Report{Class: outcome.NCCLConnection, Peer: "gpu7 (10.1.2.3)", Differs: []string{"argv", "commit"}}},
	{"a hang", report.Report{Class: outcome.Hang, SinceS: of(int64(4000)), LastIter: of(12), Behind: &report.Behind{Ranks: []int{1, 2}, Node: "gpu1", By: "iterations", Others: "9"}}},
	{"a hang, by the recorder", report.Report{Class: outcome.Hang, SinceS: of(int64(3600)), Behind: &report.Behind{Ranks: []int{1}, By: "recorder", Others: "all_reduce #5"}}},
	{"a hang, by stacks", report.Report{Class: outcome.Hang, SinceS: of(int64(600)), Behind: &report.Behind{Ranks: []int{1}, By: "stacks", Others: "f"}}},
	{"a hang, by watchdogs", report.Report{Class: outcome.Hang, Behind: &report.Behind{Ranks: []int{1}, By: "watchdog"}}},
	{"it runs", report.Report{Class: outcome.Running, Why: "progress", LastIter: of(5), StepS: of(2.5), AgeS: of(int64(3))}},
	{"it may hang", report.Report{Class: outcome.Running, Why: "progress", LastIter: of(5), AgeS: of(int64(90)), MayHang: true}},
	{"it may hang, and nothing else is known", report.Report{Class: outcome.Running, Why: "progress", AgeS: of(int64(90)), MayHang: true}},
	{"it runs, and nothing is known", report.Report{Class: outcome.Running, Why: "progress", OnlyRanks: []int{0}}},
	{"not started", report.Report{Class: outcome.Running, Why: "not started"}},
	{"finished", report.Report{Class: outcome.Success, Why: "finished", LastIter: of(100)}},
	{"no failure", report.Report{Class: outcome.Success}},
	{"cancelled", report.Report{Class: outcome.SlurmCancelled}},
	{"the time limit", report.Report{Class: outcome.SlurmTimeLimit, Retry: true}},
	{"preempted", report.Report{Class: outcome.SlurmPreempted, Retry: true}},
	{"preempted, by Slurm's state", report.Report{Class: outcome.SlurmPreempted, State: "PREEMPTED"}},
	{"requeued", report.Report{Class: outcome.SlurmPreempted, State: "REQUEUED"}},
	{"suspended", report.Report{Class: outcome.Running, Why: "suspended"}},
	{"an exit code", report.Report{Class: outcome.UnknownExit, ExitCode: "3:0"}},
	{"a signal", report.Report{Class: outcome.UnknownExit, ExitCode: "0:9"}},
	{"a task's exit code", report.Report{Class: outcome.UnknownExit, ExitCode: "0:9", RootLine: "srun: error: gpu1: task 0: Exited with exit code 7"}},
	{"exit code 0", report.Report{Class: outcome.UnknownExit, ExitCode: "0:0"}},
	{"a log that stops", report.Report{Class: outcome.UnknownExit, Why: "nothing says how it ended"}},
	{"a locked file", report.Report{Class: outcome.Filesystem, RootLine: "OSError: Unable to open file (unable to lock file, errno = 11)"}},
	{"no process more", report.Report{Class: outcome.EnvLaunch, RootLine: "bash: fork: retry: Resource temporarily unavailable"}},
	{"no slot more", report.Report{Class: outcome.NodeCountMismatch, RootLine: "There are not enough slots available in the system to satisfy the 16"}},
	{"documents that were not read", report.Report{Class: outcome.Success, LeftOut: []string{"a.md", "b.md", "c.md", "d.html"}}},
	{"logs of other jobs and older ones", report.Report{Class: outcome.Success, OtherJobs: []string{"slurm-1.out"}, OtherLogs: []logfile.Unreadable{{Path: "/w/rank_0.log", Reason: "its lines are those of job 34", ReasonZH: "内容属于作业 34"}}, LeftOut: []string{"a.md"}}},
	{"four that cannot be read", report.Report{Class: outcome.Success, Unreadable: []logfile.Unreadable{{Path: "a", Reason: "x"}, {Path: "b", Reason: "x"}, {Path: "c", Reason: "x"}, {Path: "d", Reason: "x"}}}},
	{"three that cannot be read", report.Report{Class: outcome.Success, Unreadable: []logfile.Unreadable{{Path: "a", Reason: "x"}, {Path: "b", Reason: "x"}, {Path: "c", Reason: "x"}}}},
}

// TestWhatIsShown pins every report in both languages, with the marks of its parts.
func TestWhatIsShown(t *testing.T) {
	var b strings.Builder
	for _, s := range shown {
		for _, l := range []lang.Lang{lang.EN, lang.ZH} {
			fmt.Fprintf(&b, "== %s, %s\n%s", s.name, l, drawn(s.r.View(l)))
		}
	}
	golden := filepath.Join("testdata", "shown.golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "what is shown changed; rewrite with -update where that is meant")
}

// drawn draws a document as plain lines, with a mark before folded parts.
func drawn(d view.Doc) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s [%v]\n", d.Title, d.Tone)
	for _, s := range d.Sections {
		mark := ""
		if s.Fold {
			mark = "> "
		}
		line := func(format string, args ...any) {
			for _, l := range strings.Split(strings.TrimRight(fmt.Sprintf(format, args...), "\n"), "\n") {
				b.WriteString(mark + l + "\n")
			}
		}
		if s.Heading != "" {
			line("# %s", s.Heading)
		}
		if s.Text != "" {
			line("%s", s.Text)
		}
		for _, f := range s.Facts {
			line("%s: %s", f.Name, f.Value)
		}
		if s.Table != nil {
			for _, row := range append([][]string{s.Table.Header}, s.Table.Rows...) {
				line("%s", strings.Join(row, " | "))
			}
		}
		for _, i := range s.Items {
			line("- %s", i)
		}
		if s.Code != "" {
			line("%s `%s`", s.Lang, s.Code)
		}
	}
	return b.String()
}

// Two failures, whether they are one incident, and where.
func TestWhatAFailureHasInCommonWithOthers(t *testing.T) {
	at := func(class, node, line string) report.Report {
		r := report.Report{Class: class, RootLine: line}
		if node != "" {
			r.RootNode = &node
		}
		return r
	}
	const stale, full = "OSError: [Errno 116] Stale file handle: '/lustre/proj/x/y.bin'", "OSError: [Errno 28] No space left on device: '/lustre/proj/x/y.bin'"
	for name, c := range map[string]struct {
		a, b  report.Report
		where string // empty for none
	}{
		"a mount":                             {at(outcome.Filesystem, "gpu1", stale), at(outcome.Filesystem, "gpu2", stale), "/lustre/proj"},
		"a full disk":                         {at(outcome.DiskFull, "gpu1", full), at(outcome.DiskFull, "gpu2", full), "/lustre/proj"},
		"a mount, and another class":          {at(outcome.Filesystem, "gpu1", stale), at(outcome.DiskFull, "gpu2", full), ""},
		"a hub":                               {at(outcome.HFHub, "gpu1", "x"), at(outcome.HFHub, "gpu2", "y"), outcome.HFHub},
		"a registry, nobody knows the node":   {at(outcome.Container, "", "x"), at(outcome.Container, "", "y"), outcome.Container},
		"containers of two nodes":             {at(outcome.Container, "gpu1", "x"), at(outcome.Container, "gpu2", "x"), ""},
		"containers of one node":              {at(outcome.Container, "gpu1", "x"), at(outcome.Container, "gpu1", "x"), "gpu1"},
		"one node, two classes":               {at(outcome.GPUHardware, "gpu1", "x"), at(outcome.CUDADriver, "gpu1", "y"), "gpu1"},
		"two nodes":                           {at(outcome.GPUHardware, "gpu1", "x"), at(outcome.GPUHardware, "gpu2", "x"), ""},
		"nobody knows where":                  {at(outcome.GPUHardware, "", "x"), at(outcome.GPUHardware, "", "x"), ""},
		"each its own mistake":                {at(outcome.UserException, "gpu1", "x"), at(outcome.UserException, "gpu1", "x"), ""},
		"a file system, nobody knows of what": {at(outcome.Filesystem, "gpu1", "x"), at(outcome.Filesystem, "gpu1", "x"), "gpu1"},
	} {
		got := report.Incidents([]report.Failure{{JobID: "1", Report: c.a}, {JobID: "2", Report: c.b}}, 0, nil)
		if c.where == "" {
			require.Empty(t, got, name)
			continue
		}
		require.Len(t, got, 1, name)
		require.Equal(t, c.where, got[0].Where, name)
	}
}
