package compute

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// capture returns the number in the first group of the first expression that matches.
func (q *question) capture(exprs ...string) (int, bool) {
	for _, e := range exprs {
		if m := compiled(e).FindStringSubmatch(q.low); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && n <= maxNumber {
				return n, true
			}
		}
	}
	return 0, false
}

var (
	hostlistPattern  = lazy.New(`[A-Za-z][\w.-]*\[[0-9][0-9,\-\s]*\][\w.-]*(?:\[[0-9,\-]+\])?(?:,\s*[A-Za-z][\w.-]*(?:\[[0-9,\-]+\][\w.-]*|\d+))*`)
	hostnamesPattern = lazy.New(`[A-Za-z][A-Za-z-]*\d+(?:\s*[,，]\s*[A-Za-z][A-Za-z-]*\d+)+`)
)

// nthNode matches questions for one node of a list: the last, the 5th.
var nthNode = lazy.New(`\b(\d+)(?:st|nd|rd|th) (?:node|host|machine|one|of|in|name|entry)|\blast (?:node|host|machine|one|name` +
	`|entry)\b|第 ?(\d+) ?(?:个|台)|最后一?(?:个|台)`)

// hosts answers about a compressed hostlist: its nodes, their number, or one of them.
func hosts(q *question) string {
	word := hostlistPattern.FindString(q.text)
	if strings.HasPrefix(strings.ToUpper(word), "SLURM_") || strings.Contains(q.text, "{"+word) {
		word = "" // an element of a shell array
	}
	if word == "" {
		if list := hostnamesPattern.FindString(q.text); list != "" && q.has("compress", "compact", "short form", "压缩", "紧凑", "缩写") {
			names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '，' || r == ' ' })
			return q.say("%s (`scontrol show hostlistsorted %s`).",
				"%s(`scontrol show hostlistsorted %s`)。", hostlist.Compress(names), strings.Join(names, ","))
		}
		return ""
	}
	names, err := hostlist.Expand(strings.ReplaceAll(word, " ", ""))
	if err != nil || len(names) == 0 {
		return ""
	}
	switch {
	case q.has("notavail", "unavailable", "pending", "reason", "原因", "error", "报错", "prompt", "shell", "--pty", "log in", "login", "登录", "登陆", "ssh"):
		return ""
	case q.has("master-addr", "master", "head node", "first", "head -n", "第一台", "主节点", "第一个", "首个", "rank 0"):
		return q.say("MASTER_ADDR is %[1]s, the first (head) node of %[2]s: `$(set +o pipefail; scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)`.",
			"MASTER_ADDR 是 %[1]s,即 %[2]s 的第一个节点(first):`$(set +o pipefail; scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)`。", names[0], word)
	case nthNode.MatchString(q.low):
		m := nthNode.FindStringSubmatch(q.low)
		n := len(names)
		if m[1] != "" || m[2] != "" {
			n = parseCount(m[1] + m[2])
		}
		if n < 1 || n > len(names) {
			return ""
		}
		return q.say("%[1]s: node %[2]d of the %[3]d in %[4]s (SLURM_NODEID %[5]d).",
			"%[1]s:%[4]s 共 %[3]d 个节点,它是第 %[2]d 个(SLURM_NODEID %[5]d)。", names[n-1], n, len(names), word, n-1)
	case q.has("exclude", "排除", "--nodelist", "-w ", "not land", "avoid", "skip", "keep off", "避开", "跳过", "踢") && !q.has("how many", "几", "多少", "expand", "展开"):
		return ""
	case q.cfg.PerNode > 0 && q.has("gpu", "卡", "world", "rank"):
		n := len(names) * q.cfg.PerNode
		return q.say("%[1]d GPUs: %[2]d nodes in %[3]s × %[4]d GPUs per node = %[1]d (WORLD_SIZE).",
			"%[1]d 张 GPU:%[3]s 共 %[2]d 个节点 × 每节点 %[4]d 张 = %[1]d(WORLD_SIZE)。", n, len(names), word, q.cfg.PerNode)
	case q.has("how many", "count", "number of", "几", "多少", "数一下", "个数", "size of"):
		return q.say("%[1]d nodes: %[2]s to %[3]s%[4]s. (`scontrol show hostnames %[5]s | wc -l`)",
			"%[1]d 个节点:%[2]s 到 %[3]s%[4]s。(`scontrol show hostnames %[5]s | wc -l`)",
			len(names), names[0], names[len(names)-1], enumerate(names, 24), word)
	}
	shown := names
	more := ""
	if len(shown) > 64 {
		shown, more = shown[:64], " …"
	}
	return q.say("%s%s (%d nodes; `scontrol show hostnames %s`).",
		"%s%s(共 %d 个节点;`scontrol show hostnames %s`)。", strings.Join(shown, ", "), more, len(names), word)
}

// enumerate returns the names in brackets, or "" for more than limit names.
func enumerate(names []string, limit int) string {
	if len(names) > limit {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

var (
	arrayForm = lazy.New(`(?:--array|-a|array|数组)\s*(?:=|:|\s|为|是)\s*(?:from|从)?\s*([0-9][0-9,\-:]*)(?:%(\d+))?`)
	elementOf = lazy.New(`(?:element|task|index|number) (\d{1,4}) (?:of|from|in) (?:the |my )?(?:array|job array|job)\D{0,4}(\d{4,})\b`)
	// oneElement matches an array's id with one of its elements. cancelsElement matches that
	// the element should be cancelled.
	oneElement = lazy.New(`(?:array|数组|作业|job)\D{0,8}(\d{4,})\b.{0,24}(?:(?:element|task|index|number|no\.?|#|编号|下标|第) ?(\d{1,4})\b` +
		`|(\d{1,4})(?:st|nd|rd|th)\b)`)
	cancelsElement = lazy.New(`cancel|kill|stop|drop|scrap|abort|terminate|end\b|remove|get rid|不要|取消|停|杀|去掉`)
	// jobStep matches a job step, which is no array element.
	jobStep = lazy.New(`\bjob ?steps?\b|\b(?:step|srun) ?\d|\d ?(?:号|个)? ?(?:step|步)|作业步`)
	arrayTo = lazy.New(`(\d+) ?(?:到|至|~|\bto\b|\bthrough\b) ?(\d+)`)
	// arrayGiven matches the option with its value.
	arrayGiven  = lazy.New(`(?:--array|-a)[ =]\d`)
	asksIndices = lazy.New(`\bwhich\b|\bindices\b|\bindexes\b|\blist\b|\bids\b|\bnumbers\b|\btask ?ids?\b|哪些|哪几|编号|索引|下标|列出`)
	arrayStepOf = lazy.New(`\b(?:steps?|stride)(?: of| size)?[ =-](\d+)|步长 ?(?:为|是|=)? ?(\d+)|every (\d+)(?:st|nd|rd|th)`)
	arrayElem   = lazy.New(`\b(\d{2,})_(\d+)\b`)
)

// array answers how many elements an array has and how many run at once, or how to write
// an array.
func array(q *question) string {
	low := arrayTo.ReplaceAllString(strings.ReplaceAll(q.low, "％", "%"), "$1-$2")
	low = elementOf.ReplaceAllString(low, "array $2 element $1")
	if m := oneElement.FindStringSubmatch(low); m != nil && cancelsElement.MatchString(low) && !jobStep.MatchString(low) {
		e := firstCount(m[1:])
		return q.say("`scancel %[1]s_%[2]d`: it cancels element %[2]d of array %[1]s alone; the others go on.",
			"`scancel %[1]s_%[2]d`:只取消数组 %[1]s 的第 %[2]d 个任务,其余照常运行。", m[1], e)
	}
	m := arrayForm.FindStringSubmatch(low)
	if m != nil {
		m[1] = strings.TrimRight(m[1], ",:-")
	}
	if step := arrayStepOf.FindStringSubmatch(low); m != nil && step != nil && !strings.Contains(m[1], ":") {
		m[1] += ":" + strconv.Itoa(firstCount(step))
	}
	if list := arrayList.FindString(low); list != "" && !arrayGiven.MatchString(low) && q.has("array", "数组") &&
		q.has("write", "how do", "spell", "short", "elements", "indices", "only", "...", "…", "怎么写", "写成", "如何写", "只跑", "下标") {
		if t := arrayStep(q, list); t != "" {
			return t
		}
	}
	if m == nil {
		return arrayFor(q)
	}
	indices, ok := slurm.ParseArray(strings.Trim(m[1], ",-:"), slurm.MostIndices)
	n := len(indices)
	if !ok {
		return ""
	}
	if n == 1 && m[2] == "" {
		return arrayFor(q)
	}
	if q.has("%a", "log name", "file name", "filename", "日志名", "文件名", "right?", "对吧", "百分", "percent", "%的", "% 的", "% of", "cancel", "取消", "refus", "reject", "invalid", "被拒", "提交不") && !q.has("how many", "多少", "几个") {
		return ""
	}
	form := m[1]
	if k, ok := q.concurrency(); ok && m[2] == "" && k < n {
		m[2] = strconv.Itoa(k)
	}
	if t := q.arrayEnd(form, indices); t != "" {
		return t
	}
	if (asksIndices.MatchString(q.low) || n <= 12 && strings.ContainsAny(form, ":,")) && n <= 40 {
		limit := ""
		if m[2] != "" {
			limit = q.say("; at most %s at the same time", ";同时最多 %s 个", m[2])
		}
		return q.say("%[1]s: %[2]d array tasks (--array=%[3]s)%[4]s.", "%[1]s:共 %[2]d 个数组任务(--array=%[3]s)%[4]s。", strings.Trim(strings.ReplaceAll(fmt.Sprint(indices), " ", ", "), "[]"), n, form, limit)
	}
	if m[2] == "" {
		return q.say("%[1]d array tasks (--array=%[2]s); without `%%N` all may run at the same time, as far as resources and limits allow.",
			"共 %[1]d 个数组任务(--array=%[2]s);没有 `%%N` 时可能同时全部运行,取决于资源和限额。", n, form)
	}
	return q.say("%[1]d array tasks, at most %[3]s at the same time: `--array=%[2]s%%%[3]s` has %[1]d elements, and `%%%[3]s` limits how many "+
		"run at once (simultaneously).",
		"共 %[1]d 个数组任务,同时最多运行 %[3]s 个:`--array=%[2]s%%%[3]s` 有 %[1]d 个元素,`%%%[3]s` 限制并发数。", n, form, m[2])
}

var lastIndex = lazy.New(`\b(?:last|highest|largest|final|max\w*|biggest) (?:array )?(?:index|id|element|task|number|value)` +
	`|最后一?个? ?(?:下标|索引|编号|任务|元素|index)|(?:最大|末尾)的? ?(?:下标|索引|编号|任务 ?id|index)|slurm-array-task-max`)

// arrayEnd answers with the last index of an array, if the question asks for it.
func (q *question) arrayEnd(form string, indices []int) string {
	if n := len(indices); lastIndex.MatchString(q.low) {
		return q.say("%[1]d is the last index of --array=%[2]s, which has %[3]d elements (SLURM_ARRAY_TASK_MAX).",
			"最后一个下标是 %[1]d:--array=%[2]s 共 %[3]d 个任务(SLURM_ARRAY_TASK_MAX)。", indices[n-1], form, n)
	}
	return ""
}

// arrayList matches a list of elements: 0,4,8,…,28.
var arrayList = lazy.New(`\d+\s*,\s*\d+\s*,\s*\d+(?:\s*,?\s*(?:\.{2,}|…+|and so on|to|到|一直到)?\s*,?\s*(?:and |和)?\d+)*`)

// arrayStep answers with the range that stands for equally spaced elements.
func arrayStep(q *question, list string) string {
	var v []int
	for _, d := range compiled(`\d+`).FindAllString(list, -1) {
		v = append(v, parseCount(d))
	}
	step := v[1] - v[0]
	last := len(v) - 1
	for i := 1; i < len(v); i++ {
		if d := v[i] - v[i-1]; step < 1 || d < 1 || d%step != 0 || d != step && i != last {
			return ""
		}
	}
	spec := strconv.Itoa(v[0]) + "-" + strconv.Itoa(v[last])
	if step > 1 {
		spec += ":" + strconv.Itoa(step)
	}
	return q.say("`--array=%[1]s`: from %[2]d to %[3]d in steps of %[4]d, %[5]d array tasks.",
		"`--array=%[1]s`:从 %[2]d 到 %[3]d,步长 %[4]d,共 %[5]d 个数组任务。", spec, v[0], v[last], step, (v[last]-v[0])/step+1)
}

// concurrency returns the number of tasks that may run at the same time.
func (q *question) concurrency() (int, bool) {
	return q.capture(`(?:at most|max(?:imum)?|only|up to|(?:no|never|not) more than|最多|同时只?|[一每]次只?|并发|限制)\D{0,12}(\d+)`, `(\d+)\s*(?:at a time|at once|together|simultaneous|concurrent|in parallel|at the same time|个?并发|个?同时)`)
}

// inTurns matches a number of tasks and how many of them run at a time.
var inTurns = lazy.New(`\d+ ?(?:个|次)?子?(?:任务|作业|tasks|jobs|runs)\b?.{0,16}(?:每次|一次|同时|each time|at a time|at once|in parallel)` +
	`|\d+ (?:tasks|jobs|runs).{0,24}\d+ (?:at a time|at once|in parallel|concurrently)`)

// arrayFor answers with the option for a number of tasks, of which a given number runs at
// a time.
func arrayFor(q *question) string {
	if !q.has("array", "数组") && !inTurns.MatchString(q.low) || q.has("cancel", "取消", "hold", "暂停", "update", "修改", "log", "日志") {
		return ""
	}
	if m := arrayElem.FindStringSubmatch(q.low); m != nil {
		return ""
	}
	n, ok := q.capture(`(\d+)\s*(?:个|次)?\s*(?:array\s*|数组\s*|子)?(?:tasks?|jobs?|elements?|作业|任务|runs?|元素)`, `(?:of|size|大小|长度)\s*(\d+)`, `数组 ?(?:有|共|里|总共|一共)? ?(\d+) ?个`)
	if !ok || n < 2 {
		return ""
	}
	k, ok := q.concurrency()
	if !ok {
		if !q.has("one at a time", "one after another", "sequential", "一次一个", "依次", "串行", "逐个") {
			return ""
		}
		k = 1
	}
	if k == n {
		return ""
	}
	from, to := 1, n
	if q.has("from 0", "from zero", "at 0", "at zero", "with 0", "zero-based", "从 0", "从0", "从零") {
		from, to = 0, n-1
	}
	return q.say("`--array=%[3]d-%[4]d%%%[2]d`: %[1]d array tasks, `%%%[2]d` lets at most %[2]d run at the same time.",
		"`--array=%[3]d-%[4]d%%%[2]d`:%[1]d 个数组任务,`%%%[2]d` 表示同时最多运行 %[2]d 个。", n, k, from, to)
}

var (
	sinfoForm  = lazy.New(`(?:^|[^\d/])(\d+)/(\d+)/(\d+)/(\d+)(?:[^\d/]|$)`)
	sinfoShort = lazy.New(`(?:^|[^\d/])(\d+)/(\d+)(?:[^\d/]|$)`)
)

// sinfo answers what the numbers in sinfo's A/I/O/T column mean.
func sinfo(q *question) string {
	if m := sinfoForm.FindStringSubmatch(q.low); m != nil {
		if g := q.cfg.PerNode; g > 0 && q.has("gpu", "卡") {
			return q.say("%[1]d GPUs: %[2]s idle nodes × %[3]d GPUs per node (A/I/O/T = allocated/idle/other/total = %[4]s/%[2]s/%[5]s/%[6]s).",
				"%[1]d 张 GPU:空闲节点 %[2]s 个 × 每节点 %[3]d 张(A/I/O/T = 已分配/空闲/其他/总数 = %[4]s/%[2]s/%[5]s/%[6]s)。", parseCount(m[2])*g, m[2], g, m[1], m[3], m[4])
		}
		return q.say("Allocated %[1]s, idle %[2]s, other %[3]s (drained, down …), total %[4]s nodes: A/I/O/T = allocated/idle/other/total. So "+
			"%[2]s are idle (free) now.",
			"已分配(allocated)%[1]s 个、空闲(idle)%[2]s 个、其他(other,drain/down 等)%[3]s 个、总数(total)%[4]s 个:A/I/O/T 的含义。即当时空闲节点 %[2]s 个。", m[1], m[2], m[3], m[4])
	}
	if m := sinfoShort.FindStringSubmatch(q.low); m != nil && q.has("sinfo", "%a", "a/i", "输出说明", "这个输出", "idle nodes", "空闲节点") {
		return q.say("Allocated %[1]s, idle %[2]s: sinfo's %%A prints NODES(A/I) = allocated/idle.",
			"已分配 %[1]s 个,空闲 %[2]s 个:sinfo 的 %%A 输出 NODES(A/I) = 已分配/空闲。", m[1], m[2])
	}
	return ""
}

// threads answers with --cpus-per-task for a number of sockets, cores and threads.
func threads(q *question) string {
	c := q.cfg
	if c.Cores == 0 || !q.has("thread", "超线程", "ht", "cpus-per-task", "smt", "hint", "逻辑核", "物理核") {
		return ""
	}
	sockets := c.Sockets
	if sockets == 0 {
		sockets = 1
		if q.has("dual", "双路", "two sockets", "2s") {
			sockets = 2
		}
	}
	physical := sockets * c.Cores
	t := cmp.Or(c.Threads, 2)
	off := q.has("no hyper", "without", "disable", "turn off", "off", "nomultithread", "不用超线程", "不使用超线程", "关闭", "关掉", "不用 ht", "不用ht", "physical", "物理核", "不要超线程", "不开")
	if off {
		return q.say("`--cpus-per-task=%[1]d` with `--hint=nomultithread`: %[2]d × %[3]d = %[1]d physical cores, one thread each (with "+
			"hyper-threading it would be %[4]d).",
			"`--cpus-per-task=%[1]d` 加 `--hint=nomultithread`:%[2]d × %[3]d = %[1]d 个物理核,每核一个线程(用超线程则为 %[4]d)。", physical, sockets, c.Cores, physical*t)
	}
	return q.say("`--cpus-per-task=%[4]d` to use the whole node with hyper-threading: %[2]d × %[3]d cores × %[5]d threads = %[4]d; without it "+
		"%[1]d and `--hint=nomultithread`.",
		"用满整个节点(含超线程)写 `--cpus-per-task=%[4]d`:%[2]d × %[3]d 核 × %[5]d 线程 = %[4]d;不用超线程为 %[1]d,并加 `--hint=nomultithread`。", physical, sockets, c.Cores, physical*t, t)
}

// cache holds the compiled expressions that answerers contain inline.
var cache sync.Map

func compiled(expr string) *lazy.Pattern {
	p, _ := cache.LoadOrStore(expr, lazy.New(expr))
	return p.(*lazy.Pattern)
}

// durationText returns seconds in words: days, hours, minutes and seconds.
func (q *question) durationText(sec int) string {
	units := []struct {
		seconds   int
		one, many string
		zh        string
	}{{86400, "day", "days", "天"}, {3600, "hour", "hours", "小时"}, {60, "minute", "minutes", "分钟"}, {1, "second", "seconds", "秒"}}
	var parts []string
	for _, u := range units {
		k := sec / u.seconds
		sec %= u.seconds
		if k == 0 {
			continue
		}
		name := u.many
		if k == 1 {
			name = u.one
		}
		parts = append(parts, q.say("%[1]d "+name, "%[1]d "+u.zh, k))
	}
	if len(parts) == 0 {
		return q.say("0 seconds", "0 秒")
	}
	return strings.Join(parts, " ")
}

// hoursOf formats seconds as hours, with a fraction where needed.
func hoursOf(sec int) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", float64(sec)/3600), "0"), ".")
}
