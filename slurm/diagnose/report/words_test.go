package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// Questions about partly known facts are answered as far as these are known.
func TestFollowUpsSayWhatIsNotKnown(t *testing.T) {
	node, other, rank, last := "gpu7", "gpu8", 3, 120
	noon := time.Date(2026, 6, 11, 12, 0, 0, 0, time.UTC)
	cause := report.Evidence{File: "a.out", LineNo: 6, Text: "KeyError: 'x'", Why: "cause"}
	dated := cause
	dated.Time = &noon
	first := dated
	first.Why = "start"
	behind := &report.Behind{Ranks: []int{5, 6}, Node: "gpu9", By: "stacks", Others: "all_reduce"}
	for _, c := range []struct {
		question string
		r        report.Report
		want     string
	}{
		{"which node?", report.Report{Class: outcome.UserException}, "The logs do not show which node."},
		{"which node?", report.Report{Class: outcome.Hang, Behind: behind}, "The others wait for gpu9."},
		{"which node?", report.Report{Class: outcome.Hang, Behind: &report.Behind{Ranks: []int{5}}}, "The logs do not show which node."},
		{"which node?", report.Report{Class: outcome.UserException, RootNode: &node}, "gpu7. Nothing shows that the node is at fault."},
		{"which rank?", report.Report{Class: outcome.UserException}, "No single rank: the logs do not show one, or several failed in the same way."},
		{"which rank?", report.Report{Class: outcome.Hang, Behind: behind}, "The others wait for rank 5, 6."},
		{"which rank?", report.Report{Class: outcome.UserException, RootRank: &rank, Behind: behind}, "Rank 3."},
		{"should I exclude a node?", report.Report{Class: outcome.UserException}, "No node: nothing shows that one is at fault."},
		{"how many ranks were hurt?", report.Report{Class: outcome.UserException, RootRank: &rank, DownstreamRanks: 7}, "7 other ranks only report the consequences."},
		{"how many ranks were hurt?", report.Report{Class: outcome.UserException, DownstreamRanks: 8}, "8 ranks report the consequences; a rank at fault may be among them."},
		{"should I retry?", report.Report{Class: outcome.SlurmCancelled}, "No: the same job would fail again. Nothing to do, unless nobody meant to cancel it."},
		{"should I retry?", report.Report{Class: outcome.UnknownExit, Retry: true}, "Yes, once: if it fails again in the same way, it was not an accident."},
		{"should I retry?", report.Report{Class: outcome.SlurmPreempted, Retry: true}, "Yes."},
		{"when did it fail?", report.Report{Class: outcome.UserException}, "The logs do not say."},
		{"when did it fail?", report.Report{Class: outcome.UserException, Evidence: []report.Evidence{cause}}, "The logs do not say."},
		{"when did it fail?", report.Report{Class: outcome.UserException, Evidence: []report.Evidence{first}}, "The logs do not say."},
		{"when did it fail?", report.Report{Class: outcome.UserException, Evidence: []report.Evidence{dated}, LastIter: &last}, "2026-06-11 12:00:00, the last iteration was 120"},
		{"show me the line", report.Report{Class: outcome.UserException, Evidence: []report.Evidence{cause}}, "cause a.out:6 KeyError: 'x'"},
	} {
		got, ok := c.r.FollowUp(c.question, nil, lang.EN)
		require.True(t, ok, c.question)
		require.Equal(t, c.want, got, c.question)
	}

	same := func(r, earlier report.Report) string {
		got, _ := r.FollowUp("the same error as last time?", &earlier, lang.EN)
		return got
	}
	at := func(node *string, line string) report.Report {
		return report.Report{Class: outcome.GPUHardware, RootNode: node, RootLine: line}
	}
	const yes = "Yes, the same cause: GPU or NVLink hardware fault."
	require.Equal(t, yes, same(at(nil, ""), at(nil, "")), "neither node nor line is known")
	require.Equal(t, yes+" Not on the same node.", same(at(&node, "Xid 79"), at(nil, "ECC error")))
	require.Equal(t, yes+" Not on the same node.", same(at(nil, "Xid 79"), at(&node, "ECC error")))
	require.Equal(t, yes+" Not on the same node. With the same line.", same(at(&node, "Xid 79"), at(&other, "Xid 79")))
}

// The summary begins with the unreadable logs, and ends with what is known about the end.
func TestTheSummarySaysWhatIsKnown(t *testing.T) {
	n, s, ten, hour := 120, 4.0, int64(10), int64(3600)
	lost := func(n int) (all []logfile.Unreadable) {
		for i := range n {
			all = append(all, logfile.Unreadable{Path: string(rune('a'+i)) + ".out", Reason: "no permission"})
		}
		return all
	}
	for name, c := range map[string]struct {
		r      report.Report
		en, zh string
	}{
		"finished":            {report.Report{Class: outcome.Success, Why: "finished"}, "The job finished; nothing failed.", "作业正常结束，没有失败。"},
		"finished, iteration": {report.Report{Class: outcome.Success, Why: "finished", LastIter: &n}, "The job finished; nothing failed (last iteration 120).", "作业正常结束，没有失败，最后一次迭代为第 120 次。"},
		"not started":         {report.Report{Class: outcome.Running, Why: "not started"}, "The job has not started.", "作业尚未开始。"},
		"suspended": {
			report.Report{Class: outcome.Running, Why: "suspended", LastIter: &n, AgeS: &hour},
			"Slurm has suspended the job: its processes are stopped and write nothing, so their silence is no sign of a hang; the last iteration was 120. " +
				"It goes on once it is resumed; until then its nodes stay taken.",
			"Slurm 暂停（suspend）了该作业：其进程已停住，没有输出并不说明它已卡住，最后一次迭代为第 120 次。恢复（resume）后会继续运行，期间仍占用节点。",
		},
		"nothing shows": {report.Report{Class: outcome.Success}, "The logs show no failure.", "日志中没有任何失败的迹象。"},
		"runs":          {report.Report{Class: outcome.Running, Why: "progress"}, "The job runs; nothing failed.", "作业在运行，没有失败。"},
		"runs, with a pace": {
			report.Report{Class: outcome.Running, Why: "progress", LastIter: &n, StepS: &s, AgeS: &ten},
			"The job runs; nothing failed, iteration 120, 4 s an iteration, last line 10 s ago.", "作业在运行，没有失败，第 120 次迭代，每次迭代 4 秒，最后一行在 10 秒前。",
		},
		"silent": {
			report.Report{Class: outcome.Running, Why: "progress", AgeS: &hour, MayHang: true},
			"The job runs; nothing failed. No line for 1 h: perhaps a hang.", "作业在运行，没有失败。已有 1 小时没有新的输出：可能已挂起。",
		},
		"silent, with a pace": {
			report.Report{Class: outcome.Running, Why: "progress", LastIter: &n, AgeS: &hour, MayHang: true},
			"The job runs; nothing failed, iteration 120. No line for 1 h: perhaps a hang.", "作业在运行，没有失败，第 120 次迭代。已有 1 小时没有新的输出：可能已挂起。",
		},
		"one log is closed": {
			report.Report{Class: outcome.Success, Why: "finished", Unreadable: lost(1)},
			"1 log could not be read (a.out: no permission); the cause may be there. The job finished; nothing failed.",
			"有 1 个日志无法读取（a.out：no permission），原因可能就在其中。作业正常结束，没有失败。",
		},
		"many logs are closed": {
			report.Report{Class: outcome.Success, Why: "finished", Unreadable: lost(4)},
			"4 logs could not be read (a.out: no permission; b.out: no permission; c.out: no permission; …); the cause may be there. The job finished; nothing failed.",
			"有 4 个日志无法读取（a.out：no permission；b.out：no permission；c.out：no permission；…），原因可能就在其中。作业正常结束，没有失败。",
		},
	} {
		c.r.Finish()
		require.Equal(t, c.en, c.r.Summary, name)
		require.Equal(t, c.zh, c.r.View(lang.ZH).Sections[0].Text, name)
	}
	for want, r := range map[string]report.Report{
		"Its exit code was 3.":               {ExitCode: "3:0"},
		"Slurm says that signal 9 ended it.": {ExitCode: "0:9"},
		"Its exit code was 2.":               {ExitCode: "0:15", RootLine: "srun: error: gpu1: task 0: Exited with exit code 2"},
		"The log stops without an error and without a message that the program ended.": {ExitCode: "0:0", Why: "nothing says how it ended"},
	} {
		r.Class = outcome.UnknownExit
		r.Finish()
		require.Contains(t, r.Summary, want)
	}
}

// Only running jobs have a Pulse, and it leaves out what is unknown.
func TestAPulseIsOfJobsThatRun(t *testing.T) {
	for _, c := range []struct {
		class, why  string
		ok, mayHang bool
	}{{outcome.Running, "progress", true, false}, {outcome.Running, "not started", false, false}, {outcome.Hang, "no progress", true, true}, {outcome.Success, "finished", false, false}} {
		p, ok := report.Report{Class: c.class, Why: c.why}.Pulse()
		require.Equal(t, []bool{c.ok, c.mayHang}, []bool{ok, p.MayHang}, c.class)
		require.Empty(t, p.Says().EN)
	}
}

// The ranks behind are named together with the evidence.
func TestWhoIsBehindIsSaid(t *testing.T) {
	for by, want := range map[string]string{
		"iterations": "Behind the others: ranks 3, 5 (node gpu7); they reached iteration 18.",
		"recorder":   "Behind the others: ranks 3, 5 (node gpu7), which according to the flight recorder never entered 18.",
		"stacks":     "Apart from the others: ranks 3, 5 (node gpu7), in 18.",
		"watchdog":   "Behind the others: ranks 3, 5 (node gpu7), by the watchdogs' sequence numbers.",
	} {
		require.Equal(t, want, report.Behind{Ranks: []int{3, 5}, Node: "gpu7", By: by, Others: "18"}.Says().EN)
	}
	one := report.Behind{Ranks: []int{3}, By: "watchdog"}.Says()
	require.Equal(t, "Behind the others: rank 3, by the watchdogs' sequence numbers.", one.EN)
	require.Equal(t, "落后的是 rank 3（依据 watchdog 的序号）。", one.ZH)
}

// The allocator's message is parsed in all its forms and units.
func TestTheMessageOfMemoryIsRead(t *testing.T) {
	for text, want := range map[string]*report.Memory{
		"CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 79.10 GiB total capacity; 70.00 GiB already allocated; 256.00 KiB free; 71 GiB reserved)": {
			TriedGiB: 0.5, TotalGiB: 79.1, AllocatedGiB: 70,
		},
		"CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.50 GiB is free. Process 7 has 30.00 GiB memory in use. " +
			"Process 8 has 40.00 GiB memory in use. Of the allocated memory 38.00 GiB is allocated by PyTorch, and 1.25 GiB is reserved by PyTorch but unallocated.": {
			TriedGiB: 2.5, TotalGiB: 79.1, FreeGiB: 1.5, AllocatedGiB: 38, ReservedGiB: 1.25, OthersGiB: 30,
		},
		"Tried to allocate 1.00 GiB. Process 7 has 30.00 GiB memory in use. Including non-PyTorch memory, this process has 40.00 GiB memory in use.": {TriedGiB: 1, OthersGiB: 30},
		"Tried to allocate 1.00 GiB. Process 7 has 30.00 GiB memory in use.":                                                                         {TriedGiB: 1},
		"Tried to allocate 1073741824 bytes.": {TriedGiB: 1},
		"out of memory":                       nil,
	} {
		require.Equal(t, want, report.MemoryOf(text), text)
	}
}
