package slurm

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// An Exec is a command to run once on each node of a running job, beside the job's own
// processes.
type Exec struct {
	Job   JobID
	Nodes []string // empty: all nodes of the job
	Argv  []string
	// GPUs lets the command see the job's GPUs. Without it the command cannot disturb
	// them.
	GPUs bool
	// HetGroup is the component of a heterogeneous job, such as "1"; Job is then the
	// whole job. Empty for any other job.
	HetGroup string
	// Limit bounds the command's run time; zero means one minute.
	Limit time.Duration
}

// A NodeOutput is the output of a command on one node, standard output and standard
// error together.
type NodeOutput struct {
	Node string `json:"node"`
	Text string `json:"text"`
}

// Args returns the arguments of srun for e. Without --overlap the step would wait until
// the job's own steps have ended.
func (e Exec) Args(nodes []string) []string {
	n := strconv.Itoa(len(nodes))
	args := []string{
		"--jobid=" + string(e.Job), "--overlap", "--label", "--unbuffered", "--input=none",
		"--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--nodelist=" + strings.Join(nodes, ","),
	}
	if e.HetGroup != "" {
		args = append(args, "--het-group="+e.HetGroup)
	}
	if !e.GPUs {
		args = append(args, "--gres=gpu:0")
	}
	args = append(args, "--")
	if e.Limit > 0 { // timeout(1) runs on the node because a step outlives a killed srun
		args = append(args, "timeout", "--kill-after=5", strconv.FormatFloat(e.Limit.Seconds(), 'f', -1, 64))
	}
	return append(args, e.Argv...)
}

// OutOfTime returns the error of a command that was ended at its limit.
func (e Exec) OutOfTime() *Error {
	return &Error{
		Op: "run on " + string(e.Job), Kind: Rejected, Msg: lang.Text{EN: "the command was ended after %s, which is its limit", ZH: "命令运行 %s 后因超过上限而被终止"}.With(e.Limit),
		Fix: lang.Text{EN: "give it more seconds with --limit", ZH: "用 --limit 增加秒数"},
	}
}

// Outputs groups the labelled output lines of srun by node. srun numbers the tasks in
// the order of nodes. Lines without a label come under the node "".
func Outputs(labelled string, nodes []string) []NodeOutput {
	texts := make([]strings.Builder, len(nodes))
	var rest strings.Builder
	for line := range strings.Lines(labelled) {
		label, text, ok := strings.Cut(line, ": ")
		n, err := strconv.Atoi(strings.TrimSpace(label))
		if !ok {
			label, ok = strings.CutSuffix(strings.TrimSuffix(line, "\n"), ":")
			n, err = strconv.Atoi(strings.TrimSpace(label))
			text = "\n"
		}
		if !ok || err != nil || n < 0 || n >= len(nodes) {
			rest.WriteString(line)
			continue
		}
		texts[n].WriteString(text)
	}
	var all []NodeOutput
	for i, node := range nodes {
		all = append(all, NodeOutput{node, texts[i].String()})
	}
	if rest.Len() > 0 {
		all = append(all, NodeOutput{"", rest.String()})
	}
	return all
}

// ExecNodes returns the nodes of j to run on: wanted, or all nodes where wanted is
// empty. It fails for a job that is not running, because that job has no nodes.
func ExecNodes(j Job, wanted []string) ([]string, error) {
	op := "run on " + string(j.ID)
	if j.State != Running || len(j.Nodes) == 0 {
		return nil, &Error{Op: op, Msg: lang.Text{EN: "the job is %s and has no nodes", ZH: "作业处于 %s，没有节点"}.With(j.State), Kind: Rejected, Fix: lang.Text{
			EN: "a command can be run on the nodes of a running job only", ZH: "只能在运行中作业的节点上执行命令",
		}}
	}
	if len(wanted) == 0 {
		return j.Nodes, nil
	}
	for _, node := range wanted {
		if !slices.Contains(j.Nodes, node) {
			return nil, &Error{Op: op, Msg: lang.Text{EN: "%s is not one of the job's nodes: %s", ZH: "%s 不是该作业的节点：%s"}.With(node, hostlist.Compress(j.Nodes)), Kind: Rejected, Fix: lang.Text{
				EN: "name nodes of the job, or none for all", ZH: "请指定该作业的节点，或不指定以选择全部",
			}}
		}
	}
	return wanted, nil
}
