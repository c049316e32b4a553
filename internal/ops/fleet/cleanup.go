package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// CleanupIn names the nodes, and selects the caller's leftover processes there.
type CleanupIn struct {
	Nodes     string `json:"nodes" arg:"" help:"hostlist" zh:"节点列表（hostlist）"`
	Match     string `json:"match,omitempty" placeholder:"TEXT" help:"only commands that hold this text" zh:"只限命令行含该文字的进程"`
	Loose     bool   `json:"loose,omitempty" help:"processes of no job too, logins among them" zh:"也包括不属于任何作业的进程（含登录会话）"`
	Partition string `json:"partition,omitempty" help:"to reach the nodes through" zh:"经由哪个分区访问节点"`
	Yes       bool   `json:"yes,omitempty" help:"do not ask before ending them" zh:"不再询问，直接结束"`
	ops.OnCluster
}

// CleanupOut lists the processes that were left behind.
type CleanupOut struct {
	Nodes     string     `json:"nodes"`
	Processes []Leftover `json:"processes"`
	Ended     bool       `json:"ended"`
}

// A Leftover is a process of the caller's whose job has ended.
type Leftover struct {
	Node     string      `json:"node"`
	PID      int         `json:"pid"`
	JobID    slurm.JobID `json:"job_id,omitempty"` // the job that left the process behind
	ElapsedS int64       `json:"elapsed_s"`
	Command  string      `json:"command"`

	start string // tells the process from a later one with its pid
}

// leftoverAge is the least age of a leftover process. A younger process may belong to a
// job that started after the queue was read.
var leftoverAge = time.Minute

// leftovers is the script that the processes' owner runs on each node. Its arguments
// are an action ("list" or "end"), the least age in seconds, the running jobs, the text
// that a command must contain, and 1 to include processes of no job. If more follow, only
// the processes that they name count: each is a node, a colon and its processes, as pid/start.
// It prints one line for each process: node, pid/start, job, age and command, separated by tabs.
const leftovers = `action=$1 age=$2 running=" $3 " match=$4 loose=$5 node=${SLURMD_NODENAME:-?}
found=() named=
for arg in "${@:6}"; do [[ $arg != "$node:"* ]] || named=${arg#*:}; done
while read -r pid seconds args; do
  [[ $pid != "$$" && $pid != "$PPID" && $seconds -ge $age && $args == *"$match"* ]] || continue
  job=
  while IFS= read -r -d '' entry; do
    [[ $entry != SLURM_JOB_ID=* ]] || job=${entry#*=}
  done 2>/dev/null < "/proc/$pid/environ" || continue
  if [[ -z $job ]]; then [[ $loose = 1 ]] || continue
  elif [[ $job = "$SLURM_JOB_ID" || $running == *" $job "* ]]; then continue; fi
  stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
  stat=(${stat##*) }) # what follows the name, which may contain anything
  id=$pid/${stat[19]}
  [[ $# -le 5 || ",$named," == *",$id,"* ]] || continue
  printf '%s\t%s\t%s\t%s\t%s\n' "$node" "$id" "$job" "$seconds" "${args:0:200}"
  found+=("$pid")
done < <(ps -u "$(id -u)" -o pid=,etimes=,args=)
if [[ $action = end && ${#found[@]} -gt 0 ]]; then
  kill -TERM "${found[@]}" 2>/dev/null
  for _ in 1 2 3 4 5 6; do
    sleep 0.5
    kill -0 "${found[@]}" 2>/dev/null || break
  done
  kill -KILL "${found[@]}" 2>/dev/null
fi
exit 0
`

// Cleanup returns the operation cleanup.
func Cleanup() ops.Op {
	return ops.Define(ops.Op{
		Name: "cleanup", Effect: ops.Destructive, Toolset: ops.NodesSet, Idempotent: true,
		Summary: lang.Text{EN: "end processes that my ended jobs left on nodes; lists them first", ZH: "清理我已结束作业在节点上遗留的进程；先列出再执行"},
		Help:    lang.Text{EN: "Use when a GPU is busy with no job on it. Running jobs are spared.", ZH: "GPU 上没有作业却被占用时使用。运行中的作业不受影响。"},
		Example: "cleanup gpu[07,09]",
	}, cleanup)
}

func cleanup(ctx context.Context, c *ops.Call, in CleanupIn) (CleanupOut, error) {
	out := CleanupOut{Processes: []Leftover{}}
	names, err := nodeNames(in.Nodes)
	if err != nil {
		return out, err
	}
	if c.Who.User == "root" || c.Who.User == "" {
		return out, &ops.Error{Code: ops.NotAllowed, Message: lang.Text{EN: "the system's own processes are never cleaned up", ZH: "系统自身的进程从不清理"}, Fix: lang.Text{EN: "run it as the user whose jobs left them", ZH: "请以留下这些进程的作业所属用户执行"}}
	}
	out.Nodes = hostlist.Compress(names)
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	v, err := ops.Capable[interface {
		Visit(context.Context, slurm.Visit) (string, error)
	}](cl, lang.Text{EN: "end processes on its nodes", ZH: "结束节点上的进程"})
	if err != nil {
		return out, err
	}
	jobs, err := cl.Jobs(ctx, slurm.Filter{User: c.Who.User})
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	var running []string
	for _, j := range jobs {
		running = append(running, string(j.ID), string(j.RawID))
	}
	loose := "0"
	if in.Loose {
		loose = "1"
	}
	visit := func(action string) error {
		done := c.During(lang.Text{EN: "the nodes look for what was left there", ZH: "各节点正在查找遗留进程"}.In(c.Lang))
		said, err := v.Visit(ctx, slurm.Visit{Nodes: names, Partition: in.Partition, Argv: append([]string{
			"bash", "-c", leftovers, "leftovers", action, strconv.Itoa(int(leftoverAge.Seconds())), strings.Join(running, " "), in.Match, loose,
		}, byNode(c.Shown)...)})
		done()
		out.Processes = parseLeftovers(said)
		if err != nil {
			return c.SlurmError(err, "")
		}
		return nil
	}
	if in.Yes || c.Confirmed {
		out.Ended = true
		return out, visit("end")
	}
	if err := visit("list"); err != nil || len(out.Processes) == 0 {
		return out, err
	}
	var words, ids []string
	for _, p := range out.Processes {
		words = append(words, fmt.Sprintf("%s %d %s", p.Node, p.PID, p.Command))
		ids = append(ids, fmt.Sprintf("%s:%d/%s", p.Node, p.PID, p.start))
	}
	e := ops.ConfirmError(lang.Text{EN: "this ends %s of %s on %s: %s", ZH: "将结束 %[2]s 在 %[3]s 上的 %[1]s：%[4]s"}.
		With(ops.Counted(len(out.Processes), "process"), c.Who.User, out.Nodes, ops.FirstFew(words, 5)))
	e.Shown = strings.Join(ids, ",")
	return out, e
}

// byNode returns the processes that a question has named, one argument of leftovers a node.
func byNode(shown string) (args []string) {
	if shown == "" {
		return nil
	}
	last := ""
	for one := range strings.SplitSeq(shown, ",") { // sorted by node
		node, id, _ := strings.Cut(one, ":")
		if len(args) > 0 && node == last {
			args[len(args)-1] += "," + id
			continue
		}
		args, last = append(args, one), node
	}
	return args
}

func parseLeftovers(said string) []Leftover {
	all := []Leftover{}
	for line := range strings.Lines(said) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 5)
		if len(f) != 5 {
			continue
		}
		id, start, _ := strings.Cut(f[1], "/")
		pid, err := strconv.Atoi(id)
		if err != nil {
			continue
		}
		l := Leftover{Node: f[0], PID: pid, JobID: slurm.JobID(f[2]), Command: f[4], start: start}
		l.ElapsedS, _ = strconv.ParseInt(f[3], 10, 64)
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b Leftover) int { return strings.Compare(a.Node, b.Node) })
	return all
}

// View lists the processes that were found, and says whether they were ended.
func (o CleanupOut) View(l lang.Lang) view.Doc {
	if len(o.Processes) == 0 {
		return view.Doc{Tone: view.Good, Title: fmt.Sprintf(lang.Text{EN: "%s: no leftover processes of yours", ZH: "%s：没有您遗留的进程"}.In(l), o.Nodes)}
	}
	title := lang.Text{EN: "%s: leftover processes of yours: %d", ZH: "%s：有 %d 个您遗留的进程"}
	if o.Ended {
		title = lang.Text{EN: "%s: leftover processes ended: %d", ZH: "%s：已结束 %d 个作业遗留的进程"}
	}
	t := &view.Table{Header: view.Columns(l, "node|pid|job|age|command", "节点|进程号|作业|存在时间|命令")}
	for _, p := range o.Processes {
		t.Rows = append(t.Rows, []string{p.Node, strconv.Itoa(p.PID), string(p.JobID), ops.Duration(p.ElapsedS), p.Command})
	}
	return view.Doc{Title: fmt.Sprintf(title.In(l), o.Nodes, len(o.Processes)), Sections: []view.Section{{Table: t}}}
}
