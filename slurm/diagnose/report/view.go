package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// Finish fills the sentences that depend on all other fields, in English. View writes them in the
// requested language.
func (r *Report) Finish() {
	c := outcome.Of(r.Class)
	r.Who = c.Who.EN
	r.Summary = r.summary(lang.EN)
	r.Advice = r.advice(lang.EN)
	r.Notes = r.notes(lang.EN)
	r.Collective = r.collective(lang.EN)
}

// summary says what broke, where and when, after any logs that could not be read.
func (r Report) summary(l lang.Lang) string {
	if t, some := r.unreadableFirst(); some {
		return t.In(l) + space(l) + r.verdictSummary(l)
	}
	return r.verdictSummary(l)
}

// space stands between two sentences.
func space(l lang.Lang) string {
	if l == lang.ZH {
		return ""
	}
	return " "
}

// unreadableFirst names the logs that could not be read.
func (r Report) unreadableFirst() (lang.Text, bool) {
	n := len(r.Unreadable)
	if n == 0 {
		return lang.Text{}, false
	}
	var en, zh []string
	for _, u := range r.Unreadable[:min(n, 3)] {
		en, zh = append(en, u.Said().EN), append(zh, u.Said().ZH)
	}
	if n > len(en) {
		en, zh = append(en, "…"), append(zh, "…")
	}
	return said(fmt.Sprintf("%s could not be read (%s); the cause may be there.", count(n, "log"), strings.Join(en, "; ")),
		fmt.Sprintf("有 %d 个日志无法读取（%s），原因可能就在其中。", n, strings.Join(zh, "；"))), true
}

// verdictSummary says what broke, where and when.
func (r Report) verdictSummary(l lang.Lang) string {
	c, _ := r.classInfo()
	switch {
	case r.Class == outcome.Success, r.Class == outcome.Running:
		return r.noFailureSummary(l)
	case r.Class == outcome.Hang && r.RootLine == "":
		silent := said("no rank writes anything", "没有任何输出")
		if r.SinceS != nil {
			silent = said("no rank has written anything for %s", "已有 %s没有任何输出").With(lang.Span((time.Duration(*r.SinceS) * time.Second).Round(time.Minute)))
		}
		return strings.TrimSpace(said("The job runs, but %s, and none reports an error%s. %s", "作业仍在运行，但%s，也没有报错%s。%s").
			With(silent, r.lastIteration("; the last iteration was %d", "，最后一次迭代为第 %d 次"), r.detail(l)).In(l))
	}
	what := lang.Text{EN: lang.Capital(c.Name.EN), ZH: c.Name.ZH}
	if where := r.where(l); where != "" {
		what = said("%s %s", "%[2]s：%[1]s").With(what, where)
	}
	sentences := []string{said("%s.", "%s。").With(what).In(l)}
	if d := r.detail(l); d != "" {
		sentences = append(sentences, d)
	}
	if r.DownstreamRanks > 0 {
		sentences = append(sentences, r.consequences(l))
	}
	return strings.Join(sentences, space(l))
}

// consequences says how many ranks report what followed. Where no rank and no node is known to be at fault, it may be one of these.
func (r Report) consequences(l lang.Lang) string {
	n := r.DownstreamRanks
	if r.RootRank == nil && r.Laggard != "quiet" && r.Laggard != "unlogged" {
		return said(count(n, "rank")+" "+verb(n, "reports", "report")+" the consequences; a rank at fault may be among them.",
			fmt.Sprintf("%d 个 rank 报告了后果，出错的 rank 可能也在其中。", n)).In(l)
	}
	return said(count(n, "other rank")+" only "+verb(n, "reports", "report")+" the consequences.", fmt.Sprintf("另有 %d 个 rank 的报错只是其后果。", n)).In(l)
}

// onlyTheseRanks says which ranks' logs are present, if some are missing.
func (r Report) onlyTheseRanks() (lang.Text, bool) {
	if len(r.OnlyRanks) == 0 {
		return lang.Text{}, false
	}
	words := make([]string, len(r.OnlyRanks))
	for i, n := range r.OnlyRanks {
		words[i] = strconv.Itoa(n)
	}
	zh := "这里只有 rank " + strings.Join(words, "、") + " 的日志。"
	en := "ranks " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
	if len(words) == 1 {
		en = "rank " + words[0]
	}
	return said("Only the logs of "+en+" are available.", zh), true
}

func (r Report) noFailureSummary(l lang.Lang) string {
	s := r.noFailure(l)
	if t, ok := r.onlyTheseRanks(); ok {
		return s + space(l) + t.In(l)
	}
	return s
}

func (r Report) noFailure(l lang.Lang) string {
	switch r.Why {
	case "finished":
		return said("The job finished; nothing failed%s.", "作业正常结束，没有失败%s。").
			With(r.lastIteration(" (last iteration %d)", "，最后一次迭代为第 %d 次")).In(l)
	case "progress":
		p, _ := r.Pulse()
		return said("The job runs; nothing failed%s.", "作业在运行，没有失败%s。").With(p.asClause()).In(l)
	case "suspended":
		return said("Slurm has suspended the job: its processes are stopped and write nothing, so their silence is no sign of a hang%s. It goes on once it is resumed; "+
			"until then its nodes stay taken.",
			"Slurm 暂停（suspend）了该作业：其进程已停住，没有输出并不说明它已卡住%s。恢复（resume）后会继续运行，期间仍占用节点。").
			With(r.lastIteration("; the last iteration was %d", "，最后一次迭代为第 %d 次")).In(l)
	case "not started":
		return said("The job has not started.", "作业尚未开始。").In(l)
	}
	return said("The logs show no failure.", "日志中没有任何失败的迹象。").In(l)
}

// lastIteration is a clause with the number of the last iteration; empty if that is unknown.
func (r Report) lastIteration(en, zh string) lang.Text {
	if r.LastIter == nil {
		return lang.Text{}
	}
	return said(en, zh).With(*r.LastIter)
}

// where names the rank and the node.
func (r Report) where(l lang.Lang) string {
	var parts []string
	if r.RootRank != nil {
		parts = append(parts, "rank "+strconv.Itoa(*r.RootRank))
	}
	if r.RootNode != nil {
		parts = append(parts, said("node ", "节点 ").In(l)+*r.RootNode)
	}
	if len(parts) == 0 {
		return ""
	}
	if l == lang.ZH {
		return strings.Join(parts, "，")
	}
	return "on " + strings.Join(parts, ", ")
}

var phaseZH = map[string]string{
	"checkpoint load": "加载检查点", "checkpoint save": "保存检查点", "evaluation": "评估", "data": "读取数据", "optimizer": "优化器",
	"backward": "反向传播", "forward": "前向传播", "setup": "初始化", "import": "导入模块",
}

// detail adds the facts of the class.
func (r Report) detail(l lang.Lang) string {
	var s []string
	say := func(en, zh string) { s = append(s, said(en, zh).In(l)) }
	if t, ok := r.onlyTheseRanks(); ok {
		say(t.EN, t.ZH)
	}
	if t, ok := r.endBySlurm(); ok {
		say(t.EN, t.ZH)
	}
	if r.Phase != "" {
		say("It was in the "+r.Phase+" phase.", "发生在"+phaseZH[r.Phase]+"阶段。")
	}
	if m := r.Memory; m != nil && m.TriedGiB > 0 {
		switch {
		case m.TotalGiB > 0 && m.FreeGiB == 0: // how much was free is not said, or nothing was
			say(fmt.Sprintf("It tried to allocate %.2f GiB on a GPU of %.2f GiB.", m.TriedGiB, m.TotalGiB),
				fmt.Sprintf("试图在 %.2f GiB 的 GPU 上分配 %.2f GiB。", m.TotalGiB, m.TriedGiB))
		case m.TotalGiB > 0:
			say(fmt.Sprintf("It tried to allocate %.2f GiB with %.2f of %.2f GiB free.", m.TriedGiB, m.FreeGiB, m.TotalGiB),
				fmt.Sprintf("试图分配 %.2f GiB，而 %.2f GiB 中仅剩 %.2f GiB。", m.TriedGiB, m.TotalGiB, m.FreeGiB))
		default: // the message was incomplete
			say(fmt.Sprintf("It tried to allocate %.2f GiB.", m.TriedGiB), fmt.Sprintf("试图分配 %.2f GiB。", m.TriedGiB))
		}
		if m.OthersGiB > 0 {
			say(fmt.Sprintf("Other processes on that GPU hold %.2f GiB.", m.OthersGiB), fmt.Sprintf("该 GPU 上其他进程占用 %.2f GiB。", m.OthersGiB))
		}
	}
	if r.Behind != nil && r.Laggard == "" {
		b := r.Behind.Says()
		say(b.EN, b.ZH)
	}
	if len(r.Differs) > 0 {
		names := strings.Join(r.Differs, ", ")
		say("The nodes started differently: they differ in "+names+".", "各节点的启动条件不一致："+names+" 不同。")
	}
	switch r.Laggard {
	case "behind":
		say("All others waited for this rank: it had enqueued fewer collectives.", "其他 rank 都在等它：它提交的集合操作更少。")
	case "other":
		say("This rank waited in another collective than all others.", "它等待的集合操作与其他 rank 不同。")
	case "recorder":
		if n := len(r.MissedBy); n > 1 {
			ranks := commaList(r.MissedBy[:min(n, 16)])
			say("According to the flight recorder, ranks "+ranks+" never entered "+r.collective(l)+".", "flight recorder 显示 rank "+ranks+" 从未进入 "+r.collective(l)+"。")
		} else {
			say("According to the flight recorder, it never entered "+r.collective(l)+".", "flight recorder 显示它从未进入 "+r.collective(l)+"。")
		}
	case "named":
		say("The others' error names this rank as the one that did not join.", "其他 rank 的报错点名它没有参与集合操作。")
	case "exit":
		say("Only this rank exited with a different exit code.", "只有它以不同的退出码退出。")
	case "unlogged":
		say("No log of this node is here, and the ranks of the others only lost its ranks: look for its log first.",
			"此处没有该节点的日志，其他节点的 rank 只报告与它断开连接：先找到该节点的日志。")
	case "quiet":
		say("All processes of this node and their launcher stopped without a word, and those of the other nodes lost them: its kernel's log may tell why.",
			"该节点的所有进程和启动器都无声停止，其他节点的进程只报告与它们断开连接：原因可查该节点的内核日志。")
	case "unheard":
		say("Its monitor heard nothing of it for too long, and killed it.", "它的监控进程长时间收不到它的心跳，随后将其终止。")
	case "unreached":
		say("Several nodes could not reach this one; this is the line of one of them.", "多个节点都无法连通它；所示行由其中一个节点写下。")
	case "unprefixed":
		say("The log does not tell which rank it was: `--tee 3` of torchrun or `--label` of srun puts the rank before each line.",
			"日志看不出是哪个 rank：torchrun 的 `--tee 3` 或 srun 的 `--label` 会在每行前标明 rank。")
	case "local":
		say("One rank raised it, and the log does not tell on which node: each node has a process of that number. `--label` of srun, or a file for each node, tells.",
			"由其中一个 rank 抛出，但日志看不出是在哪个节点：每个节点都有这一编号的进程。srun 的 `--label`，或每个节点各写一个文件，可以区分。")
	case "all":
		say("Every rank that failed by itself raised it: the rank of this line only wrote it first.", "自行失败的 rank 都报了同一个错误：这一行的 rank 只是最先写出它。")
	case "silent":
		say("Only this rank was silent when the others timed out or lost it.", "其他 rank 都报告超时或连接断开，只有它没有报错。")
	}
	if r.Traceback != nil && r.Traceback.File != "" {
		at := fmt.Sprintf("%s:%d", r.Traceback.File, r.Traceback.Line)
		if r.Traceback.Function != "" {
			at += " (" + r.Traceback.Function + ")"
		}
		say("Raised at "+at+".", "出错位置："+at+"。")
	}
	return strings.Join(s, space(l))
}

// taskExit matches srun's line about a task's own exit.
var taskExit = lazy.New(`Exited with exit code (\d+)$`)

// slurmMark explains an exit code by which Slurm itself says why a job without a log ended.
func (r Report) slurmMark() (slurm.Meaning, bool) {
	_, signal, _ := strings.Cut(r.ExitCode, ":")
	number, err := strconv.Atoi(signal)
	if err != nil || r.RootLine != "" {
		return slurm.Meaning{}, false
	}
	return slurm.KnownSignalMark(number)
}

// endBySlurm describes an unexplained end by Slurm's exit code.
func (r Report) endBySlurm() (lang.Text, bool) {
	if m, ok := r.slurmMark(); ok {
		return said("Exit code %s, %s.", "退出码 %s，%s。").With(r.ExitCode, m.Says), true
	}
	if r.Class != outcome.UnknownExit {
		return lang.Text{}, false
	}
	code, signal, _ := strings.Cut(r.ExitCode, ":")
	if own := taskExit.FindStringSubmatch(r.RootLine); own != nil {
		code, signal = own[1], "" // a step's exit code is that of the task that ended last
	}
	switch {
	case signal != "" && signal != "0":
		return said("Slurm says that signal "+signal+" ended it.", "Slurm 记录它被信号 "+signal+" 终止。"), true
	case code != "" && code != "0":
		return said("Its exit code was "+code+".", "退出码为 "+code+"。"), true
	case r.Why == "nothing says how it ended":
		return said("The log stops without an error and without a message that the program ended.", "日志中断：既没有报错，也没有正常结束的输出。"), true
	}
	return lang.Text{}, false
}

// Offered returns the report for a view that also offers a corrected specification. Its advice leaves
// out the changes that the specification makes.
func (r Report) Offered() Report {
	r.offered = true
	return r
}

// advice returns what to do: first remedies derived from the run, then the class's.
func (r Report) advice(l lang.Lang) []string {
	out := []string{}
	add := func(t lang.Text) { out = append(out, t.In(l)) }
	if len(r.ExcludeNodes) > 0 && !r.offered {
		nodes := strings.Join(r.ExcludeNodes, ",")
		add(said("Resubmit with --exclude="+nodes+".", "使用 --exclude="+nodes+" 重新提交。"))
	}
	if f := r.Fit; f != nil && !r.offered {
		flags := strings.Join(f.Flags, " ")
		add(said(fmt.Sprintf("Smallest change that fits, by the memory estimate and what this run used: %s (about %.1f of %.1f GiB).", flags, f.EstimateGiB, f.TotalGiB),
			fmt.Sprintf("按显存估算与本次实际用量，能放下的最小改动：%s（约 %.1f/%.1f GiB）。", flags, f.EstimateGiB, f.TotalGiB)))
	}
	for _, id := range r.Rules {
		if t, ok := ruleAdvice(id); ok {
			add(t)
		}
	}
	switch {
	case r.Peer != "" && lostPeer.MatchString(r.RootLine):
		add(said("The lost peer is "+r.Peer+".", "失去的对端是 "+r.Peer+"。"))
	case r.Peer != "":
		add(said("The peer that could not be reached is "+r.Peer+"; if this persists, resubmit with that node in --exclude.",
			"无法连通的对端是 "+r.Peer+"；若持续如此，把该节点加入 --exclude 后重新提交。"))
	}
	if len(r.Differs) > 0 {
		names := strings.Join(r.Differs, ", ")
		add(said("First make "+names+" the same on every node.", "应先让各节点的 "+names+" 一致。"))
	}
	if r.Class == outcome.CUDAOOM {
		for _, t := range r.memoryAdvice() {
			add(t)
		}
	}
	if r.Class == outcome.GPUHardware || r.Class == outcome.CUDAIllegalAccess {
		if t, ok := r.hardwareAdvice(); ok {
			add(t)
		}
	}
	if r.Class == outcome.ImportError {
		if t, ok := r.ImportAdvice(); ok {
			add(t)
		}
	}
	if r.MayHang {
		add(said("Look at where the ranks stand: stacks (py-spy dump) or the flight recorder of all ranks, and nvidia-smi on the nodes; a job "+
			"that saves or evaluates without output does not hang.", "查看各 rank 停在哪里：取所有 rank 的堆栈（py-spy dump）或 flight recorder，并在节点上看 nvidia-smi；若只是在保存或评估而没有输出，则不是挂起。"))
	}
	if r.Why == "nothing says how it ended" {
		add(said("Whether it completed, Slurm's accounts say: `sacct -j JOB --format=State,ExitCode`; `diagnose JOB` reads them.",
			"作业是否正常完成，以 Slurm 的记账为准：`sacct -j JOB --format=State,ExitCode`；`diagnose JOB` 会读取它。"))
	}
	c, asks := r.classInfo()
	for i, t := range c.Advice {
		if asks == nil || asks[i] == "" || !r.pointless(asks[i]) {
			add(t)
		}
	}
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// View shows the report: root cause first, then advice, with the evidence folded.
func (r Report) View(l lang.Lang) view.Doc {
	word := func(en, zh string) string { return said(en, zh).In(l) }
	c, _ := r.classInfo()
	doc := view.Doc{Title: c.Name.In(l), Tone: view.Bad}
	switch r.Class {
	case outcome.Success, outcome.Running:
		doc.Tone = view.Good
		if r.MayHang {
			doc.Tone = view.Warn
		}
	case outcome.SlurmCancelled, outcome.SlurmPreempted, outcome.SlurmTimeLimit, outcome.Hang:
		doc.Tone = view.Warn
	}
	doc.Sections = append(doc.Sections, view.Section{Text: r.summary(l)})
	if r.RootLine != "" {
		heading := word("Root cause", "根本原因")
		if r.onlyLast() {
			heading = word("The last line", "最后一行")
		}
		doc.Sections = append(doc.Sections, view.Section{Heading: heading, Code: r.RootLine, Lang: "log"})
	}
	doc.Sections = append(doc.Sections, view.Section{Facts: r.facts(l)})
	if a := r.advice(l); len(a) > 0 {
		doc.Sections = append(doc.Sections, view.Section{Heading: word("What to do", "处理建议"), Items: a})
	}
	if len(r.Evidence) > 0 {
		t := view.Table{Header: []string{word("why", "依据"), word("where", "位置"), word("line", "内容")}}
		for _, e := range r.Evidence {
			t.Rows = append(t.Rows, []string{e.WhyIn(l), place(e.File, e.LineNo, e.Rank), e.Text})
		}
		doc.Sections = append(doc.Sections, view.Section{Heading: word("Evidence", "证据链"), Table: &t, Fold: true})
	}
	if len(r.PassedOver) > 0 {
		doc.Sections = append(doc.Sections, r.passedOver(l))
	}
	if len(r.Stacks) > 0 {
		var b strings.Builder
		for _, g := range r.Stacks {
			fmt.Fprintf(&b, "ranks %s\n    %s\n", strings.Trim(fmt.Sprint(g.Ranks), "[]"), strings.Join(g.Frames, "\n    "))
		}
		doc.Sections = append(doc.Sections, view.Section{Heading: word("Stacks, smallest group first", "堆栈（最小的一组在前）"), Code: b.String(), Fold: true})
	}
	if notes := r.notes(l); len(notes) > 0 {
		doc.Sections = append(doc.Sections, view.Section{Heading: word("Notes", "说明"), Items: notes, Fold: true})
	}
	return doc
}

// onlyLast reports whether the root line is only the last one, because no line shows a cause.
func (r Report) onlyLast() bool { return len(r.Evidence) > 0 && r.Evidence[0].Why == "last sign" }

// passedOver shows the errors that are no cause, and what followed each.
func (r Report) passedOver(l lang.Lang) view.Section {
	t := view.Table{Header: []string{said("followed by", "其后").In(l), said("where", "位置").In(l), said("line", "内容").In(l)}}
	for _, p := range r.PassedOver {
		t.Rows = append(t.Rows, []string{p.followed().In(l), place(p.File, p.LineNo, p.Rank), p.Text})
	}
	return view.Section{Heading: said("Seen, and not the cause: the run went on", "看到了，但不是原因：其后仍在运行").In(l), Table: &t, Fold: true}
}

// followed is how much followed the error: iterations, or lines if none were reported.
func (p PassedOver) followed() lang.Text {
	if p.Iterations > 0 {
		return said(count(p.Iterations, "iteration"), fmt.Sprintf("%d 次迭代", p.Iterations))
	}
	return said(count(p.Lines, "line"), fmt.Sprintf("%d 行", p.Lines))
}

// place names a line and, if it is known, the rank that wrote it.
func place(file string, line int, rank *int) string {
	where := fmt.Sprintf("%s:%d", file, line)
	if rank != nil {
		where += fmt.Sprintf(" (rank %d)", *rank)
	}
	return where
}

// WhyIn is Why in the given language.
func (e Evidence) WhyIn(l lang.Lang) string {
	return said(e.Why, map[string]string{
		"cause": "原因", "same cause": "同一原因", "downstream": "后果", "earlier attempt": "之前的尝试", "last sign": "最后输出",
		"last words": "该 rank 的最后输出",
		"start":      "启动",
	}[e.Why]).In(l)
}

// facts are the short values of the report.
func (r Report) facts(l lang.Lang) (fs []view.Fact) {
	add := func(en, zh, value string) {
		if value != "" {
			fs = append(fs, view.Fact{Name: said(en, zh).In(l), Value: value})
		}
	}
	add("Class", "类别", r.Class)
	if r.RootLineNo != nil {
		add("Place", "位置", r.RootFile+":"+strconv.Itoa(*r.RootLineNo))
	}
	if r.RootRank != nil {
		add("Rank", "Rank", strconv.Itoa(*r.RootRank))
	}
	if r.RootNode != nil {
		add("Node", "节点", *r.RootNode)
	}
	if r.Found() {
		add("Who acts", "由谁处理", outcome.Of(r.Class).Who.In(l))
		retry := said("no", "否")
		if r.Retry {
			retry = said("yes", "是")
		}
		add("Retry as it is", "原样重试", retry.In(l))
	}
	add("Exclude", "排除节点", strings.Join(r.ExcludeNodes, ","))
	if r.Attempts > 1 {
		add("Attempts", "尝试次数", strconv.Itoa(r.Attempts))
	}
	if r.Runs > 1 {
		add("Runs in one log", "同一日志中的运行", said(fmt.Sprintf("%d, of which the last is judged", r.Runs), fmt.Sprintf("%d 次，以最后一次为准", r.Runs)).In(l))
	}
	add("Not read", "未读取", r.leftOut(l))
	return fs
}
