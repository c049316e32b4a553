package compute

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// What a request comes to: tasks, CPUs, memory and GPU hours.

var (
	tasksPerNode = `ntasks-per-node[= ]+(\d+)|(\d+) tasks? (?:per|on each|on every|a|each) (?:node|machine|host)|每个?(?:节点|台|机器?) ?(?:有|跑|起|上)? ?(\d+) ?个? ?(?:任务|tasks?|进程)`
	tasksInAll   = `(?:--ntasks|ntasks|(?:^|\s)-n)[= ]+(\d+)|(\d+) ?(?:个 ?)?(?:slurm )?(?:tasks?|任务|进程)\b?`
	cpusPerTask  = `cpus-per-task[= ]+(\d+)|(?:^|\s)-c[= ]?(\d+)|(\d+) (?:cpus?|cores?) (?:per|for each|a|each) task|每个?(?:任务|task) ?(?:用|有|分)? ?(\d+) ?个? ?(?:cpu|核)`
	cpusInNode   = `(\d+)[- ]?(?:个 ?)?(?:logical |physical )?(?:cpus?|cores?|核)`
	memPerCPU    = `mem-per-cpu[= ]+(\d+)([kmgt])?|(\d+) ?([kmgt])b? (?:of (?:memory|ram) )?(?:per|for each|for every|a|each) (?:cpu|core)|每个? ?(?:cpu|核) ?(?:内存)? ?(\d+) ?([kmgt])`
	memPerGPU    = `mem-per-gpu[= ]+(\d+)([kmgt])?|(\d+) ?([kmgt])b? (?:of (?:memory|ram|host memory) )?(?:per|for each|for every|a|each) (?:gpu|card)`
)

var (
	tasksAsked   = lazy.New(`\b(?:how many|number of|total|count of)\b(?: \w+){0,2} (?:tasks|processes)\b|slurm-ntasks\b|\btasks (?:in (?:total|all)|altogether)|(?:多少|几) ?个? ?(?:任务|tasks?|进程)|(?:任务|进程) ?(?:总数|数)`)
	memNode      = lazy.New(`(\d+(?:\.\d+)?) ?([gt])i?b\b`)
	memShare     = lazy.New(`(?:memory|ram|mem) (?:is left )?(?:per|for each|a|for every) (?:task|gpu|rank|process)|每个?张?(?:任务|卡|rank|进程).{0,6}(?:内存|多少)`)
	cpusAsked    = lazy.New(`\b(?:how many|number of|total)\b(?: \w+){0,3} (?:cpus?|cores?)\b|\b(?:cpus?|cores?) (?:in (?:total|all)|altogether|overall|per node|on each node|does)|(?:多少|几) ?个? ?(?:cpu|核)|(?:cpu|核) ?(?:总数|数(?:是|有)?多少)`)
	memAsked     = lazy.New(`\b(?:memory|ram|mem)\b|内存`)
	taskShare    = lazy.New(`cpus?[- ](?:per|for each|a)[- ](?:task|gpu)|每张?(?:卡|gpu) ?(?:分|配|能用|可用|最多)?(?:几|多少) ?个? ?(?:核|cpu)|cores? (?:per|for each|a) task|每个?(?:任务|task|进程).{0,6}(?:几|多少)|cpus-per-task ?(?:设|填|写|取|该|应该?|为|是)`)
	perNodeTotal = lazy.New(`(?:per|each|every|a|one) (?:node|machine|host)|每个?(?:节点|台|机)|单(?:节点|机)`)
)

// given is the number that one of the alternatives of an expression captures.
func (q *question) given(expr string) int {
	m := compiled(expr).FindStringSubmatch(q.low)
	if m == nil {
		return 0
	}
	return first(m)
}

// demand answers what the options of a request come to.
func demand(q *question) string {
	if q.beside() || q.has("array", "数组", "gpu hour", "卡时", "world") {
		return ""
	}
	each, per := q.given(tasksPerNode), q.given(cpusPerTask)
	nodes := q.cfg.Nodes
	tasks := each * nodes
	if tasks == 0 && each == 0 {
		tasks = q.given(tasksInAll)
	}
	if t := q.memoryOf(each, per); t != "" {
		return t
	}
	switch {
	case cpusAsked.MatchString(q.low) && per > 0 && each > 0 && (nodes == 0 || perNodeTotal.MatchString(strings.ReplaceAll(q.low, "ntasks-per-node", " ")) && !q.has("total", "in all", "总", "一共")):
		return q.say("%[1]d CPUs on each node: %[2]d tasks × --cpus-per-task %[3]d = %[1]d.", "每个节点 %[1]d 个 CPU:%[2]d 个任务 × --cpus-per-task %[3]d = %[1]d。", each*per, each, per)
	case cpusAsked.MatchString(q.low) && per > 0 && tasks > 0:
		return q.say("%[1]d CPUs: %[2]d tasks × --cpus-per-task %[3]d = %[1]d%[4]s.", "%[1]d 个 CPU:%[2]d 个任务 × --cpus-per-task %[3]d = %[1]d%[4]s。", tasks*per, tasks, per, q.overNodes(nodes, each))
	case taskShare.MatchString(q.low) && per == 0:
		return q.cpusForTask(cmp.Or(each, tasks))
	case tasksAsked.MatchString(q.low) && each > 0 && nodes > 0:
		return q.say("%[1]d tasks: %[2]d nodes × --ntasks-per-node %[3]d = %[1]d (SLURM_NTASKS).", "%[1]d 个任务:%[2]d 个节点 × --ntasks-per-node %[3]d = %[1]d(SLURM_NTASKS)。", tasks, nodes, each)
	}
	return ""
}

// overNodes says how tasks are counted over nodes.
func (q *question) overNodes(nodes, each int) string {
	if nodes == 0 || each == 0 {
		return ""
	}
	return q.say(" (%[1]d nodes × %[2]d tasks)", "(%[1]d 个节点 × %[2]d 个任务)", nodes, each)
}

// cpusForTask divides the CPUs of a node among its tasks.
func (q *question) cpusForTask(tasks int) string {
	m := compiled(cpusInNode).FindStringSubmatch(q.low)
	if m == nil {
		return ""
	}
	cpus := first(m)
	if tasks == 0 {
		tasks = q.cfg.PerNode
		if tasks == 0 && q.cfg.World <= largestNode {
			tasks = q.cfg.World
		}
	}
	if q.cfg.Sockets > 1 && q.cfg.Cores > 0 {
		cpus = q.cfg.Sockets * q.cfg.Cores
	}
	if q.cfg.Threads > 1 || tasks < 2 || cpus < tasks {
		return ""
	}
	rest := ""
	if cpus%tasks != 0 {
		rest = q.say(" (%d are left over)", "(余 %d 个)", cpus%tasks)
	}
	return q.say("`--cpus-per-task=%[1]d`: %[2]d CPUs of the node / %[3]d tasks = %[1]d%[4]s.", "`--cpus-per-task=%[1]d`:节点 %[2]d 个 CPU / %[3]d 个任务 = %[1]d%[4]s。", cpus/tasks, cpus, tasks, rest)
}

// memoryOf multiplies the memory of a CPU or a GPU.
func (q *question) memoryOf(each, per int) string {
	if !memAsked.MatchString(q.low) {
		return ""
	}
	if m := memNode.FindStringSubmatch(q.low); m != nil && memShare.MatchString(q.low) && cmp.Or(each, q.given(tasksInAll), q.cfg.PerNode) > 1 {
		n, _ := strconv.ParseFloat(m[1], 64)
		if m[2] == "t" {
			n *= 1024
		}
		tasks := cmp.Or(each, q.given(tasksInAll), q.cfg.PerNode)
		return q.say("%[1]s GB each: %[2]s GB of the node / %[3]d = %[1]s GB.", "每个 %[1]s GB:节点 %[2]s GB / %[3]d = %[1]s GB。", short(n/float64(tasks)), short(n), tasks)
	}
	for _, by := range []struct {
		expr, option string
		count        int
		how          string
	}{
		{memPerCPU, "--mem-per-cpu", each * per, strconv.Itoa(each) + " × " + strconv.Itoa(per)},
		{memPerCPU, "--mem-per-cpu", cmp.Or(each, 1) * per, strconv.Itoa(per)},
		{memPerCPU, "--mem-per-cpu", q.given(cpusInNode), ""},
		{memPerGPU, "--mem-per-gpu", cmp.Or(q.cfg.PerNode, q.cfg.World), ""},
	} {
		m := compiled(by.expr).FindStringSubmatch(q.low)
		if m == nil || by.count == 0 {
			continue
		}
		size, unit := pairs(m)
		n := small(size)
		if n == 0 {
			continue
		}
		unit = strings.ToUpper(cmp.Or(unit, "m"))
		if by.how == "" || by.how == strconv.Itoa(by.count) {
			by.how = strconv.Itoa(by.count)
		} else {
			by.how = "(" + by.how + ")"
		}
		where, zh := "", ""
		if perNodeTotal.MatchString(q.low) {
			where, zh = " on each node", "每个节点 "
		}
		total := q.say("%[1]d %[2]sB"+where, zh+"%[1]d %[2]sB", n*by.count, unit)
		for _, u := range []struct{ from, to string }{{"K", "M"}, {"M", "G"}, {"G", "T"}} {
			if unit == u.from && n*by.count >= 1024 {
				total += " (" + short(float64(n*by.count)/1024) + " " + u.to + "B)"
			}
		}
		nodes := ""
		if k := q.cfg.Nodes; k > 1 && where != "" {
			nodes = q.say(" Over %[1]d nodes %[2]d %[3]sB.", " %[1]d 个节点共 %[2]d %[3]sB。", k, k*n*by.count, unit)
		}
		return q.say("%[1]s: %[2]s %[3]d%[4]s × %[5]s.%[6]s", "%[1]s:%[2]s %[3]d%[4]s × %[5]s。%[6]s", total, by.option, n, unit, by.how, nodes)
	}
	return ""
}

var (
	// gpuHoursAsked finds GPU hours and node hours, cpuHoursAsked CPU hours.
	gpuHoursAsked = lazy.New(`\b(?:gpu|card|node|machine)s?[- ](?:hours?|hrs|days?)\b|(?:gpu|节点) ?(?:小时|时|天)|卡(?:小时|时|天)|机时`)
	timesTasks    = lazy.New(`\barray of (\d+)|(\d+) ?(?:个 ?)?(?:数组|array )?(?:tasks|jobs|elements|runs|任务|作业|元素)|(\d+) (?:such|identical) `)
	gpusOfEach    = lazy.New(`(\d+) ?(?:张|块|个)? ?` + gpuWord + ` ?(?:each|per (?:task|job|element|run)|apiece)|每个?(?:任务|作业|元素)?(?:用|要|占)? ?(\d+) ?(?:张|块|个)? ?` + gpuWord)
)

// gpuHours multiplies GPUs, or nodes, by hours.
func gpuHours(q *question) string {
	if !gpuHoursAsked.MatchString(q.low) || q.beside() {
		return ""
	}
	h := q.runLength().longest / 3600
	if h == 0 {
		return ""
	}
	gpus, unit := q.cfg.World, q.say("GPUs", "张")
	name := q.say("GPU hours", "GPU 小时")
	times, how := 1, ""
	if m := timesTasks.FindStringSubmatch(q.low); m != nil {
		times = first(m)
	} else if m := arrayForm.FindStringSubmatch(q.low); m != nil {
		if n, ok := elements(m[1]); ok {
			times = n
		}
	}
	if m := gpusOfEach.FindStringSubmatch(q.low); m != nil && times > 1 {
		gpus = first(m)
	}
	if q.has("node hour", "node-hour", "节点小时", "节点时") {
		gpus, unit, name = q.cfg.Nodes, q.say("nodes", "个节点"), q.say("node hours", "节点小时")
	}
	if gpus == 0 {
		gpus = q.cfg.PerNode * one(q.cfg.Nodes)
	}
	if gpus == 0 || times == 0 {
		return ""
	}
	if times > 1 {
		how = q.say("%d tasks × ", "%d 个任务 × ", times)
	}
	return q.say("%[1]s %[2]s: %[3]s%[4]d %[5]s × %[6]s h.", "%[1]s %[2]s:%[3]s%[4]d %[5]s × %[6]s 小时。", short(float64(times*gpus)*h), name, how, gpus, unit, short(h))
}
