package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// The nodes of a job say their addresses at the start; then some complain of the fabric, at seconds after 10:00:00.
func fabric(complaints ...string) string {
	var b strings.Builder
	for n := 1; n <= 5; n++ {
		fmt.Fprintf(&b, "gpu%d:400%d:400%d [0] NCCL INFO Bootstrap : Using ib0:10.0.0.%d<0>\n", n, n, n, n)
	}
	for _, c := range complaints {
		var at, node int
		var what string
		fmt.Sscanf(c, "%d %d", &at, &node)
		_, what, _ = strings.Cut(strings.SplitN(c, " ", 2)[1], " ")
		if peer, ok := strings.CutPrefix(what, "to "); ok {
			what = "Got completion from peer 10.0.0." + peer + "<4471> with status=12 opcode=0 len=0 vendor err 129 (Recv)"
		}
		fmt.Fprintf(&b, "[2026-06-11 10:%02d:%02d] gpu%d:400%d:500%d [0] transport/net_ib.cc:210 NCCL WARN NET/IB : %s\n", at/60, at%60, node, node, node, what)
	}
	return b.String() + "srun: error: gpu1: task 0: Exited with exit code 1\n"
}

// Of the nodes that complain of the fabric, the one whose own port fails is at fault, and else the one that several cannot reach.
func TestWhoseFabricFails(t *testing.T) {
	const port, wrong = "mlx5_3:1 Got async event : port error", "Got completion from peer 10.0.0.3<4471> with status=2 opcode=0 len=0 vendor err 104 (Send)"
	for name, c := range map[string]struct {
		log, node, line string
		exclude         []string
	}{
		"a port, after its peers' complaints":     {fabric("0 1 to 3", "4 2 to 3", "40 3 "+port), "gpu3", port, []string{"gpu3"}},
		"a port, before them":                     {fabric("0 3 "+port, "30 1 to 3"), "gpu3", port, []string{"gpu3"}},
		"the first of two ports":                  {fabric("0 1 to 3", "20 3 "+port, "25 4 "+port), "gpu3", port, []string{"gpu3"}},
		"a fatal event of a queue pair":           {fabric("0 1 to 3", "9 3 mlx5_0:1 async fatal event on QP (0x7f): local work queue catastrophic error"), "gpu3", "catastrophic", []string{"gpu3"}},
		"a port, long after them":                 {fabric("0 1 to 3", "200 4 "+port), "gpu1", "status=12", []string{}},
		"several cannot reach one":                {fabric("0 1 to 3", "1 2 to 3", "2 4 to 3"), "gpu3", "10.0.0.3", []string{"gpu3"}},
		"and it cannot reach one of them":         {fabric("0 3 to 1", "1 2 to 3", "2 4 to 3"), "gpu3", "10.0.0.3", []string{"gpu3"}},
		"one cannot reach another":                {fabric("0 1 to 3"), "gpu1", "10.0.0.3", []string{}},
		"one says it again and again":             {fabric("0 1 to 3", "1 1 to 3", "2 1 to 3"), "gpu1", "10.0.0.3", []string{}},
		"each cannot reach another one":           {fabric("0 1 to 2", "1 2 to 3", "2 3 to 4", "3 4 to 1"), "gpu1", "10.0.0.2", []string{}},
		"as many cannot reach another one":        {fabric("0 1 to 3", "1 2 to 3", "2 1 to 4", "3 2 to 4"), "gpu1", "10.0.0.3", []string{}},
		"several reached it, and it answered":     {fabric("0 1 "+strings.Replace(wrong, "status=2", "status=9", 1), "1 2 "+strings.Replace(wrong, "status=2", "status=9", 1)), "gpu1", "status=9", []string{}},
		"several cannot reach an unknown address": {fabric("0 1 to 99", "1 2 to 99"), "", "10.0.0.99", []string{}},
	} {
		r := diagnosetest.Old(t, c.log)
		require.Equal(t, outcome.NCCLIB, r.Class, name)
		require.Contains(t, r.RootLine, c.line, name)
		node := ""
		if r.RootNode != nil {
			node = *r.RootNode
		}
		require.Equal(t, c.node, node, name)
		require.Equal(t, c.exclude, r.ExcludeNodes, name)
		require.Equal(t, strings.HasPrefix(name, "several cannot") || strings.HasPrefix(name, "and it"), r.Laggard == "unreached", name)
	}
	r := diagnosetest.Old(t, fabric("0 1 to 3", "1 2 to 3"))
	require.Contains(t, r.Summary, "Several nodes could not reach this one")
}

// A run goes on after a port came back: what fails later is not its fault.
func TestAPortThatCameBack(t *testing.T) {
	iteration := func(n, at int) string {
		return fmt.Sprintf(" [2026-06-11 10:00:%02d] iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): 5000.0 | lm loss: 2.1E+00 |\n", at, n, 64*n)
	}
	start, end, _ := strings.Cut(fabric("0 3 mlx5_3:1 Got async event : port error", "50 1 to 4"), "port error\n")
	log := iteration(1, 0) + start + "port error\n" + iteration(2, 5) + iteration(3, 10) + iteration(4, 15) + iteration(5, 20) + end
	r := diagnosetest.Old(t, log)
	require.Equal(t, outcome.NCCLIB, r.Class)
	require.Contains(t, r.RootLine, "status=12")
	require.Equal(t, "gpu1", *r.RootNode)
}
