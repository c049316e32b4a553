package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Exec runs a command on the nodes of the named job, by the job number that srun
// accepts.
func TestCommandsOnTheNodesOfAJob(t *testing.T) {
	row := func(id, raw, state, nodes string) reply {
		return reply{"squeue", queued(id, raw, state, nodes, ""), "", 0}
	}
	both := reply{"--jobs=7 ", queued("7+0", "7", "RUNNING", "gpu1", "") + queued("7+1", "8", "RUNNING", "gpu[2-3]", ""), "", 0}
	for _, c := range []struct {
		name  string
		exec  slurm.Exec
		rows  []reply
		asked []string // of srun
		out   string
		err   string
	}{
		{
			"a job",
			slurm.Exec{Job: "7"},
			[]reply{row("7", "7", "RUNNING", "gpu[1-2]"), {"srun", "1: b\n0: a\n", "", 0}},
			[]string{"--jobid=7 --overlap --label --unbuffered --input=none --nodes=2 --ntasks=2 --ntasks-per-node=1 --nodelist=gpu1,gpu2 --gres=gpu:0 -- timeout --kill-after=5 60 hostname"},
			"gpu1=a gpu2=b", "",
		},
		{"an element", slurm.Exec{Job: "7_1", Limit: time.Second}, []reply{row("7_1", "9", "RUNNING", "gpu1")}, []string{"--jobid=9 "}, "gpu1=", ""},
		{"one that waits", slurm.Exec{Job: "7"}, []reply{row("7", "7", "PENDING", "")}, nil, "", "has no nodes"},
		{"a node of another job", slurm.Exec{Job: "7", Nodes: []string{"gpu9"}}, []reply{row("7", "7", "RUNNING", "gpu1")}, nil, "", "gpu9 is not one of the job's nodes"},
		{"out of time", slurm.Exec{Job: "7", Limit: time.Second}, []reply{row("7", "7", "RUNNING", "gpu1"), {"srun", "0: half\n", "", 124}}, []string{"--jobid=7"}, "gpu1=half", "ended after 1s"},
		{"that fails", slurm.Exec{Job: "7"}, []reply{row("7", "7", "RUNNING", "gpu1"), {"srun", "", "0: no such file\nsrun: error: gpu1: task 0: Exited with exit code 2\n", 2}}, []string{"--jobid=7"}, "gpu1=no such file", "exit status 2"},
		{"no job", slurm.Exec{Job: "x"}, nil, nil, "", "x: not known to Slurm"},
		{"each component", slurm.Exec{Job: "7"}, []reply{{"--jobs=7+0 ", queued("7+0", "7", "RUNNING", "gpu1", ""), "", 0}, {"--jobs=7+1 ", queued("7+1", "8", "RUNNING", "gpu[2-3]", ""), "", 0}, both}, []string{"--nodelist=gpu1 --het-group=0", "--nodelist=gpu2,gpu3 --het-group=1"}, "gpu1= gpu2= gpu3=", ""},
		{"the component that has the node", slurm.Exec{Job: "7", Nodes: []string{"gpu3"}}, []reply{{"--jobs=7+1 ", queued("7+1", "8", "RUNNING", "gpu[2-3]", ""), "", 0}, both}, []string{"--jobid=7 --overlap --label --unbuffered --input=none --nodes=1 --ntasks=1 --ntasks-per-node=1 --nodelist=gpu3 --het-group=1"}, "gpu3=", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.rows { // the id ends the line of a queue's question
				c.rows[i].asked = strings.TrimSuffix(c.rows[i].asked, " ")
			}
			cli, p := clusterWith(c.rows...)
			c.exec.Argv = []string{"hostname"}
			all, err := cli.Exec(t.Context(), c.exec)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			var said, asked []string
			for _, o := range all {
				said = append(said, o.Node+"="+strings.TrimSpace(strings.ReplaceAll(o.Text, "\n", " ")))
			}
			for _, a := range p.asked {
				if line, ok := strings.CutPrefix(a, "srun "); ok {
					asked = append(asked, line)
				}
			}
			if c.out != "" {
				require.Contains(t, strings.Join(said, " "), c.out)
			}
			require.Len(t, asked, len(c.asked))
			for i := range asked {
				require.Contains(t, asked[i], c.asked[i])
			}
		})
	}
}

// A visit is a job of its own. Its output is returned even where it fails.
func TestAVisit(t *testing.T) {
	cli, p := clusterWith(reply{"gpu9", "half\n", "srun: error: Unable to allocate resources: Requested nodes are busy\n", 1}, reply{"srun", "clean\n", "", 0})
	out, err := cli.Visit(t.Context(), slurm.Visit{Nodes: []string{"gpu1", "gpu2"}, Argv: []string{"df"}})
	require.NoError(t, err)
	require.Equal(t, "clean\n", out)
	require.Contains(t, p.asked[0], "--time=2 ")
	require.Contains(t, p.asked[0], "--nodelist=gpu1,gpu2")
	out, err = cli.Visit(t.Context(), slurm.Visit{Nodes: []string{"gpu9"}, Limit: 5 * time.Minute})
	require.ErrorContains(t, err, "visit gpu9: exit status 1")
	require.ErrorContains(t, err, "Requested nodes are busy")
	require.Equal(t, "half\n", out)
	require.Contains(t, p.asked[1], "--time=6 ")
	_, err = cli.Visit(t.Context(), slurm.Visit{})
	require.ErrorContains(t, err, "no node is named")
	require.Len(t, p.asked, 2)
}

// The processes of a node are listed over ssh, and no node name can pass for an option
// of ssh.
func TestTheProcessesOfANode(t *testing.T) {
	cli, p := clusterWith(reply{"gpu9", "", "Permission denied (publickey).\n", 255}, reply{"ssh", "", "", 0})
	_, err := cli.NodeProcesses(t.Context(), "gpu1")
	require.NoError(t, err)
	require.Contains(t, p.asked[0], " -- gpu1 ps -eo ")
	_, err = cli.NodeProcesses(t.Context(), "gpu9")
	require.ErrorIs(t, err, slurm.ErrUnreachable)
	require.Contains(t, slurm.FixOf(err).EN, "log in to the node by hand")
	_, err = cli.NodeProcesses(t.Context(), "-oProxyCommand=x")
	require.ErrorContains(t, err, "is not a node name")
	require.Len(t, p.asked, 2)
}
