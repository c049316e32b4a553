package report_test

import (
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

func TestOneCauseOfSeveralJobsIsOneIncident(t *testing.T) {
	at := func(m int) time.Time { return diagnosetest.Start.Add(time.Duration(m) * time.Minute) }
	node := "gpu9"
	ecc := report.Report{Class: outcome.GPUHardware, RootNode: &node}
	stale := report.Report{Class: outcome.Filesystem, RootLine: "OSError: [Errno 116] Stale file handle: '/lustre/proj/x/y.bin'"}
	mine := report.Report{Class: outcome.UserException, RootNode: &node}
	got := report.Incidents([]report.Failure{
		{JobID: "1", At: at(0), Report: ecc}, {JobID: "2", At: at(5), Report: stale}, {JobID: "3", At: at(9), Report: ecc}, {JobID: "4", At: at(12), Report: stale}, {JobID: "5", At: at(500), Report: ecc}, {JobID: "6", At: at(7), Report: mine},
	}, 30*time.Minute, nil)
	require.Equal(t, []report.Incident{
		{Class: outcome.GPUHardware, Where: "gpu9", Jobs: []string{"1", "3"}, From: at(0), To: at(9)},
		{Class: outcome.Filesystem, Where: "/lustre/proj", Jobs: []string{"2", "4"}, From: at(5), To: at(12)},
	}, got)

	// Network failures on two nodes of one switch are the switch's.
	other := "gpu8"
	ib := func(node *string) report.Report { return report.Report{Class: outcome.NCCLIB, RootNode: node} }
	failures := []report.Failure{{JobID: "1", At: at(0), Report: ib(&node)}, {JobID: "2", At: at(5), Report: ib(&other)}, {JobID: "3", At: at(9), Report: report.Report{Class: outcome.Rendezvous, RootNode: &node}}}
	got = report.Incidents(failures, 30*time.Minute, map[string]string{"gpu8": "leaf1", "gpu9": "leaf1"})
	require.Len(t, got, 1)
	require.Equal(t, "switch leaf1", got[0].Where)
	require.Equal(t, []string{"1", "2", "3"}, got[0].Jobs)
	require.Contains(t, got[0].Says().EN, "One incident, not 3: jobs 1, 2, 3 failed on switch leaf1")
	require.Contains(t, got[0].Says().ZH, "交换机 leaf1")
	apart := report.Incidents(failures, 30*time.Minute, map[string]string{"gpu8": "leaf2", "gpu9": "leaf1"})
	require.Len(t, apart, 1)
	require.Equal(t, "gpu9", apart[0].Where, "one node of one switch is the node's incident")
}

// Failures of several jobs have a place in common: a node, a file system, or a hub or registry that
// every node uses.
func TestWhatSeveralJobsHaveInCommon(t *testing.T) {
	node, other := "gpu9", "gpu8"
	for name, c := range map[string]struct {
		one, two report.Report
		where    string // empty for none
	}{
		"a hub":                          {report.Report{Class: outcome.HFHub, RootNode: &node}, report.Report{Class: outcome.HFHub, RootNode: &other}, outcome.HFHub},
		"a registry":                     {report.Report{Class: outcome.Container}, report.Report{Class: outcome.Container}, outcome.Container},
		"a node that starts none":        {report.Report{Class: outcome.Container, RootNode: &node}, report.Report{Class: outcome.Container, RootNode: &node}, node},
		"two nodes that start none":      {report.Report{Class: outcome.Container, RootNode: &node}, report.Report{Class: outcome.Container, RootNode: &other}, ""},
		"a node with two kinds of fault": {report.Report{Class: outcome.GPUHardware, RootNode: &node}, report.Report{Class: outcome.NCCLIB, RootNode: &node}, node},
		"a full disk": {
			report.Report{Class: outcome.DiskFull, RootLine: "OSError: [Errno 28] No space left on device: '/scratch/a/x'"},
			report.Report{Class: outcome.DiskFull, RootLine: "OSError: [Errno 28] No space left on device: '/scratch/a/y'", RootNode: &node},
			"/scratch/a",
		},
		"two mistakes of two kinds":  {report.Report{Class: outcome.ImportError, RootNode: &node}, report.Report{Class: outcome.CUDAOOM, RootNode: &node}, ""},
		"a mistake on a faulty node": {report.Report{Class: outcome.CUDAOOM, RootNode: &node}, report.Report{Class: outcome.GPUHardware, RootNode: &node}, ""},
		"two people's mistakes":      {report.Report{Class: outcome.BadArgs, RootNode: &node}, report.Report{Class: outcome.BadArgs, RootNode: &node}, ""},
		"no place is known":          {report.Report{Class: outcome.GPUHardware}, report.Report{Class: outcome.GPUHardware}, ""},
	} {
		got := report.Incidents([]report.Failure{
			{JobID: "1", At: diagnosetest.Start, Report: c.one}, {JobID: "2", At: diagnosetest.Start.Add(time.Minute), Report: c.two},
		}, time.Hour, nil)
		where := ""
		if len(got) == 1 {
			where = got[0].Where
		}
		require.Equal(t, c.where, where, name)
	}
	again := report.Report{Class: outcome.HFHub}
	require.Empty(t, report.Incidents([]report.Failure{{JobID: "1", Report: again}, {JobID: "1", Report: again}}, time.Hour, nil), "one job twice is one job")
}
