package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// A nodeLine is one test result as a node's program prints it.
type nodeLine struct {
	Node    string   `json:"node"`
	Check   string   `json:"check"`
	OK      bool     `json:"ok"`
	GPU     *int     `json:"gpu"`
	Pair    []string `json:"pair"`
	Value   float64  `json:"value"`
	Unit    string   `json:"unit"`
	Error   string   `json:"error"`
	Skipped string   `json:"skipped"`
	Missing []string `json:"unreached"`
	Backend string   `json:"backend"`
	Given   int      `json:"given"`
}

// skipReasons explain why a test could not be run.
var skipReasons = map[string]lang.Text{
	"no-nvidia-smi":    {EN: "there is no nvidia-smi", ZH: "没有 nvidia-smi"},
	"nvidia-smi-fails": {EN: "nvidia-smi fails", ZH: "nvidia-smi 执行失败"},
	"kernel-log":       {EN: "this user may not read the kernel's log", ZH: "当前用户无权读取内核日志"},
	"no-torch":         {EN: "torch cannot be imported; name a Python that has it by --python", ZH: "无法导入 torch；请用 --python 指定带 torch 的 Python"},
	"no-gpu":           {EN: "no GPU was asked for, or there is none", ZH: "没有申请 GPU，或节点没有 GPU"},
	"alone":            {EN: "one node has no peers", ZH: "只有一个节点，无从比较"},
	"not-all":          {EN: "not every node could take part", ZH: "并非所有节点都能参与"},
}

// whyNot returns a skipped test's reason in words.
func (x nodeLine) whyNot(l lang.Lang) string {
	text, known := skipReasons[x.Skipped]
	if !known {
		return x.Skipped
	}
	if x.Error != "" {
		return text.In(l) + " (" + x.Error + ")"
	}
	return text.In(l)
}

// checkOrder lists the tests in the order in which they are shown. Tests with a share
// are compared between nodes: a node with less than that share of the median is odd.
var checkOrder = []struct {
	name, unit string
	says       lang.Text
	share      float64
}{
	{"driver", "", lang.Text{EN: "driver", ZH: "驱动"}, 0},
	{"ecc", "", lang.Text{EN: "ECC errors", ZH: "ECC 错误"}, 0},
	{"xid", "", lang.Text{EN: "Xid lines in the kernel's log", ZH: "内核日志中的 Xid"}, 0},
	{"shm", "GiB", lang.Text{EN: "/dev/shm", ZH: "/dev/shm"}, 0},
	{"cuda", "GPUs", lang.Text{EN: "CUDA", ZH: "CUDA"}, 0},
	{"memory", "GiB", lang.Text{EN: "GPU memory", ZH: "GPU 显存"}, 0},
	{"compute", "TFLOP/s", lang.Text{EN: "matrix product", ZH: "矩阵乘"}, 0.85},
	{"inside", "GB/s", lang.Text{EN: "all-reduce in the node", ZH: "节点内 all-reduce"}, 0.7},
	{"connect", "", lang.Text{EN: "peers reached", ZH: "可连接节点数"}, 0},
	{"barrier", "", lang.Text{EN: "barrier of all nodes", ZH: "全节点 barrier"}, 0},
	{"allreduce", "GB/s", lang.Text{EN: "all-reduce with its neighbours", ZH: "与相邻节点的 all-reduce"}, 0.6},
}

func checkName(name string) lang.Text {
	for _, k := range checkOrder {
		if k.name == name {
			return k.says
		}
	}
	return lang.Text{EN: name, ZH: name}
}

// readChecks finds the test results in what the nodes printed.
func readChecks(said string) []nodeLine {
	var all []nodeLine
	for line := range strings.Lines(said) {
		_, text, ok := strings.Cut(line, "nodecheck {")
		var l nodeLine
		if !ok || json.Unmarshal([]byte("{"+text), &l) != nil || l.Node == "" {
			continue
		}
		l.Error, l.Skipped = redact.Text(redact.Clean(l.Error)), redact.Text(redact.Clean(l.Skipped))
		all = append(all, l)
	}
	return all
}

// An addFinding adds a finding about a node.
type addFinding func(node, format string, args ...any)

// judge turns the results into findings for each node.
func (o *NodeCheckOut) judge(names []string, lines []nodeLine, l lang.Lang) {
	by := map[string]*CheckedNode{}
	ended, tried := map[string]bool{}, map[string]bool{}
	for _, n := range names {
		by[n] = &CheckedNode{Node: n, Findings: []string{}, Measured: map[string]float64{}}
	}
	found := func(node, format string, args ...any) {
		if n := by[node]; n != nil {
			n.Findings = append(n.Findings, fmt.Sprintf(format, args...))
		}
	}
	skipped := map[string]map[string]string{} // test → node → reason
	best := map[string]float64{}              // node → the figure of its better link
	unreached := map[string][]string{}        // node → the nodes that do not reach it
	for _, x := range lines {
		n := by[x.Node]
		switch {
		case n == nil:
		case x.Check == "end":
			ended[x.Node] = true
		case x.Skipped != "":
			if skipped[x.Check] == nil {
				skipped[x.Check] = map[string]string{}
			}
			skipped[x.Check][x.Node] = x.whyNot(l)
		case x.Check == "connect":
			tried[x.Check] = true
			n.Measured[x.Check] = x.Value
			for _, m := range x.Missing {
				unreached[m] = append(unreached[m], x.Node)
			}
		case x.Check == "barrier" && !x.OK:
			// All nodes wait for the bad one; its own error says why.
			tried[x.Check] = true
			found(x.Node, "%s (%s): %s", checkName("barrier").In(l), x.Backend, x.Error)
		case !x.OK:
			tried[x.Check] = true
			at := checkName(x.Check).In(l)
			if x.GPU != nil {
				at += fmt.Sprintf(" (GPU %d)", *x.GPU)
			}
			if x.Check == "cuda" {
				x.Error = lang.Text{EN: "torch sees %s, and %d were given", ZH: "分配了 %[2]d 张 GPU，而 torch 只看到 %[1]s"}.With(ops.Counted(int(x.Value), "GPU"), x.Given).In(l)
			}
			found(x.Node, "%s: %s", at, x.Error)
		case x.Check == "allreduce":
			tried[x.Check] = true
			for _, p := range x.Pair {
				best[p] = max(best[p], x.Value)
			}
		default:
			tried[x.Check] = true
			if x.Unit != "" && x.Unit != "peers" {
				if old, had := n.Measured[x.Check]; !had || x.Value < old {
					n.Measured[x.Check] = x.Value
				}
			}
		}
	}
	for node, v := range best {
		if by[node] != nil {
			by[node].Measured["allreduce"] = v
		}
	}
	o.blameUnreachable(names, unreached, found, l)
	o.findSlowNodes(names, by, found, l)
	for _, n := range names {
		if !ended[n] {
			found(n, "%s", lang.Text{EN: "did not finish the check", ZH: "未完成检测"}.In(l))
		}
	}
	o.listUntested(names, skipped, tried, found, l)
	for _, n := range names {
		by[n].OK = len(by[n].Findings) == 0
		o.Nodes = append(o.Nodes, *by[n])
	}
}

// blameUnreachable blames a missing connection on the node that most others miss: a node that
// nobody reaches is odd, but the nodes that try to reach it are not.
func (o *NodeCheckOut) blameUnreachable(names []string, unreached map[string][]string, found addFinding, l lang.Lang) {
	cannot := map[string]int{}
	for _, by := range unreached {
		for _, n := range by {
			cannot[n]++
		}
	}
	for _, n := range names {
		by := unreached[n]
		if len(by) == 0 {
			continue
		}
		// A node that reaches nobody does not make the others odd.
		others := slices.DeleteFunc(slices.Clone(by), func(b string) bool { return len(names) > 2 && cannot[b] >= len(names)-1 })
		if len(others) > 0 {
			found(n, lang.Text{EN: "not reached by %s", ZH: "%s 无法连接到它"}.In(l), strings.Join(others, ", "))
		}
	}
	for n, count := range cannot {
		if len(names) > 2 && count >= len(names)-1 {
			found(n, "%s", lang.Text{EN: "reaches no other node", ZH: "无法连接任何其他节点"}.In(l))
		}
	}
}

// findSlowNodes finds the nodes whose figures are far below the median.
func (o *NodeCheckOut) findSlowNodes(names []string, by map[string]*CheckedNode, found addFinding, l lang.Lang) {
	for _, k := range checkOrder {
		var all []float64
		for _, n := range names {
			if v, ok := by[n].Measured[k.name]; ok {
				all = append(all, v)
			}
		}
		if k.share == 0 || len(all) < 3 { // of two nodes, either could be the odd one
			continue
		}
		slices.Sort(all)
		middle := all[len(all)/2]
		for _, n := range names {
			if v, ok := by[n].Measured[k.name]; ok && v < k.share*middle {
				found(n, lang.Text{EN: "%s: %g %s, where its peers have %g", ZH: "%s：%g %s，其他节点为 %g"}.In(l), k.says.In(l), v, k.unit, middle)
			}
		}
	}
}

// listUntested lists the tests that no node could run. Where other nodes could run a test,
// a node that could not is odd.
func (o *NodeCheckOut) listUntested(names []string, skipped map[string]map[string]string, tried map[string]bool, found addFinding, l lang.Lang) {
	for _, k := range checkOrder {
		at := skipped[k.name]
		whys := map[string][]string{}
		var order []string
		for _, n := range names {
			why, ok := at[n]
			switch {
			case !ok:
			case tried[k.name] && k.name != "allreduce" && k.name != "xid":
				found(n, "%s: %s", k.says.In(l), why)
			default:
				if whys[why] == nil {
					order = append(order, why)
				}
				whys[why] = append(whys[why], n)
			}
		}
		for _, why := range order {
			o.Untested = append(o.Untested, Untested{Test: k.name, Why: why, Nodes: whys[why]})
		}
	}
}
