package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A followUp answers one kind of question about a diagnosis.
type followUp struct {
	asks   *lazy.Pattern
	answer func(r Report, earlier *Report, l lang.Lang) string
}

// followUps are the kinds of questions. The first match decides, so narrow questions stand before broad
// ones. The first row compares with the run before, and the second lists the errors that are no cause.
var followUps = []followUp{
	{lazy.New(`(?i)\blast time\b|\bbefore\b|\bpreviou|\bearlier\b|\bsame (?:as|error|problem|thing)\b|\bhappened again\b|` +
		`\bonce more\b|\bprior\b|\bfirst time\b|第一次|首次|上次|上一次|之前|以前|前一次|又是`), Report.compareWithEarlier},
	{lazy.New(`(?i)\bother (?:errors?|exceptions?|tracebacks?|failures?)\b|\banother (?:error|exception|traceback)\b|(?:其他|其它|别的|另一个)(?:报错|错误|异常|问题)`), Report.otherErrors},
	{lazy.New(`(?i)\bre-?(?:run|start|submit|queue)|\bretry|\btry (?:it )?again|\brun (?:it )?again|\bworth\b|重试|重跑|重新|再跑|再提交`), Report.aboutRetry},
	{lazy.New(`(?i)\bexclud|\bavoid|\bdrain|排除|避开`), Report.nodesToAvoid},
	{lazy.New(`(?i)\bother ranks?\b|\bhow many ranks?\b|\brest of|其他 ?rank|其它 ?rank|多少个? ?rank`), Report.otherRanks},
	{lazy.New(`(?i)\bnodes?\b|\bhosts?\b|\bmachines?\b|\bserver\b|节点|机器|主机`), Report.aboutNode},
	{lazy.New(`(?i)\branks?\b|\bgpus?\b|\bprocess(?:es)?\b|哪(?:个|张).{0,3}(?:卡|进程)`), Report.aboutRank},
	{lazy.New(`(?i)\bwhen\b|\bwhat time\b|\bhow (?:long|far)\b|\biteration\b|\bstep\b|什么时候|几点|何时|多久|第几步|迭代`), Report.when},
	{lazy.New(`(?i)\bhow (?:do|can|should|would) (?:i|we|you)\b.*\b(?:fix|solve|avoid|prevent|mend)|\bfix|\bsolve|` +
		`\bwhat (?:should|can|do|must|now)\b|\bwhat to do\b|\bnext\b|\badvice\b|\bremed|怎么办|怎么[修改调]|[改调]什么|如何(?:修|解决|处理)|怎么解决|解决办法|建议|下一步`), Report.whatToDo},
	{lazy.New(`(?i)\bwho(?:se)?\b|\bfault\b|\bblame\b|\bhardware\b|\bmy (?:own )?(?:bug|code|script)\b|谁|责任|硬件|代码(?:问题|的问题|错)`), Report.whoActs},
	{lazy.New(`(?i)\bline\b|\bshow\b|\bevidence\b|\bproof\b|\bprove|\bhow do you know\b|\bsure\b|\btraceback\b|\bstack\b|` +
		`\blog\b|\bcode\b|\bfile\b|哪一行|证据|日志|堆栈|依据|确定吗`), Report.fromWhichLines},
	{lazy.New(`(?i)\bwhy\b|\breason\b|\bcause\b|\bwhat (?:happened|went wrong|broke|failed|is wrong|is it|does (?:it|` +
		`that) mean)\b|\bexplain\b|\berror\b|\bfail|\bmean|为什么|为何|原因|怎么回事|怎么了|什么意思|失败|解释`), Report.why},
}

// FollowUp answers a question about a diagnosis from its evidence alone; ok is false for a question of
// no known kind. earlier is the diagnosis of the run before, or nil.
func (r Report) FollowUp(question string, earlier *Report, l lang.Lang) (string, bool) {
	for _, p := range r.PassedOver {
		if name := exceptionName.FindString(p.Text); name != "" && strings.Contains(question, name) && !strings.Contains(r.RootLine, name) {
			return said("That is not the cause: %s", "那不是原因：%s").With(p.said()).In(l), true
		}
	}
	if i := kindOf(question); i >= 0 {
		return followUps[i].answer(r, earlier, l), true
	}
	return "", false
}

// kindOf is the index in followUps of a question's kind, or -1.
func kindOf(question string) int {
	return slices.IndexFunc(followUps, func(f followUp) bool { return f.asks.MatchString(question) })
}

// Asks reports whether a question is of a kind that FollowUp answers, or about an exception that the
// diagnosis may know.
func Asks(question string) bool { return kindOf(question) >= 0 || exceptionName.MatchString(question) }

// AsksForEarlier reports whether FollowUp needs the diagnosis of the run before to answer a question.
func AsksForEarlier(question string) bool { return kindOf(question) == 0 }

// AsksForOthers reports whether a question is for errors that are no cause, which a job that has not
// failed has too.
func AsksForOthers(question string) bool { return kindOf(question) == 1 }

// exceptionName matches the name of an exception as Python's own and torch's end.
var exceptionName = lazy.New(`\b[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b`)

// said tells where an error stands and what followed it.
func (p PassedOver) said() lang.Text {
	return said("%s (%s), and then %s.", "%s（%s），其后还有 %s。").With(p.Text, place(p.File, p.LineNo, p.Rank), p.followed())
}

// otherErrors lists the errors that are no cause.
func (r Report) otherErrors(_ *Report, l lang.Lang) string {
	switch {
	case len(r.PassedOver) > 0:
	case !r.Found():
		return r.noFailure(l)
	default:
		return r.notShown("The log shows no other error after which the run went on.", "日志中没有其他未中断运行的报错。", l)
	}
	lines := []string{said("The run went on after these:", "这些报错之后运行仍在继续：").In(l)}
	for _, p := range r.PassedOver {
		lines = append(lines, "- "+p.said().In(l))
	}
	return strings.Join(lines, "\n")
}

// notShown says that the logs do not show what was asked, or why none was read.
func (r Report) notShown(en, zh string, l lang.Lang) string {
	if r.NoLog.EN != "" {
		return NoLogRead.With(r.NoLog).In(l)
	}
	return said(en, zh).In(l)
}

// NoLogRead says that no log was read, and why.
var NoLogRead = said("No log was read: %s", "没有读取任何日志：%s")

func (r Report) why(_ *Report, l lang.Lang) string {
	s := r.summary(l)
	switch {
	case r.RootLine == "":
	case r.onlyLast():
		s += said(" The last line: %s", "最后一行：%s").With(fmt.Sprintf("%s (%s)", r.RootLine, r.rootPlace())).In(l)
	default:
		s += said(" The deciding line: %s", "决定性的一行：%s").With(fmt.Sprintf("%s (%s)", r.RootLine, r.rootPlace())).In(l)
	}
	return s
}

// rootPlace is the file and line number of the root cause.
func (r Report) rootPlace() string {
	if r.RootLineNo == nil {
		return r.RootFile
	}
	return fmt.Sprintf("%s:%d", r.RootFile, *r.RootLineNo)
}

func (r Report) aboutNode(_ *Report, l lang.Lang) string {
	switch {
	case !r.Found():
		return r.noFailure(l)
	case r.RootNode == nil && r.Behind != nil && r.Behind.Node != "":
		return said("The others wait for %s.", "其他 rank 都在等待 %s。").With(r.Behind.Node).In(l)
	case r.RootNode == nil:
		return r.notShown("The logs do not show which node.", "日志没有给出节点。", l)
	case len(r.ExcludeNodes) > 0:
		return said("%s. A retry should avoid %s.", "%s。重试时应避开 %s。").With(*r.RootNode, strings.Join(r.ExcludeNodes, ",")).In(l)
	}
	return said("%s. Nothing shows that the node is at fault.", "%s。没有迹象表明是该节点的问题。").With(*r.RootNode).In(l)
}

func (r Report) nodesToAvoid(earlier *Report, l lang.Lang) string {
	if len(r.ExcludeNodes) == 0 {
		return said("No node: nothing shows that one is at fault.", "不需要：没有迹象表明哪个节点有问题。").In(l)
	}
	return said("%s (--exclude).", "%s（--exclude）。").With(strings.Join(r.ExcludeNodes, ",")).In(l)
}

func (r Report) aboutRank(_ *Report, l lang.Lang) string {
	switch {
	case !r.Found():
		return r.noFailure(l)
	case r.RootRank == nil && r.Behind != nil:
		return said("The others wait for rank %s.", "其他 rank 都在等待 rank %s。").With(commaList(r.Behind.Ranks)).In(l)
	case r.RootRank == nil:
		return r.notShown("No single rank: the logs do not show one, or several failed in the same way.", "没有单独的一个：日志没有指出，或多个 rank 同样失败。", l)
	}
	return said("Rank %d%s.", "rank %d%s。").With(*r.RootRank, r.onNode(l)).In(l)
}

// onNode is ", node gpu-07" where the report names a node.
func (r Report) onNode(l lang.Lang) string {
	if r.RootNode == nil {
		return ""
	}
	return said(", node %s", "，节点 %s").With(*r.RootNode).In(l)
}

func (r Report) otherRanks(_ *Report, l lang.Lang) string {
	if r.DownstreamRanks == 0 {
		return r.notShown("No other rank reports a consequence.", "没有其他 rank 报告连锁错误。", l)
	}
	return r.consequences(l)
}

func (r Report) aboutRetry(_ *Report, l lang.Lang) string {
	if !r.Found() {
		return r.noFailure(l)
	}
	if !r.Retry {
		return said("No: the same job would fail again. %s", "不必：原样重跑还会失败。%s").With(r.firstAdvice(l)).In(l)
	}
	if len(r.ExcludeNodes) > 0 {
		return said("Yes, without %s.", "可以，但要避开 %s。").With(strings.Join(r.ExcludeNodes, ",")).In(l)
	}
	if outcome.Of(r.Class).Retry == outcome.RetryOnce {
		return said("Yes, once: if it fails again in the same way, it was not an accident.", "可以重试一次：若再次以同样方式失败，就不是偶然。").In(l)
	}
	return said("Yes.", "可以。").In(l)
}

func (r Report) firstAdvice(l lang.Lang) string {
	if a := r.advice(l); len(a) > 0 {
		return a[0]
	}
	return ""
}

func (r Report) whatToDo(_ *Report, l lang.Lang) string {
	a := r.advice(l)
	if len(a) == 0 {
		return said("Nothing.", "无需处理。").In(l)
	}
	return "- " + strings.Join(a, "\n- ")
}

func (r Report) whoActs(_ *Report, l lang.Lang) string { return outcome.Of(r.Class).Who.In(l) }

func (r Report) when(_ *Report, l lang.Lang) string {
	var parts []string
	for _, e := range r.Evidence {
		if e.Time != nil && e.Why == "cause" {
			parts = append(parts, e.Time.Format("2006-01-02 15:04:05"))
			break
		}
	}
	if r.LastIter != nil {
		parts = append(parts, said("the last iteration was %d", "最后一次迭代是第 %d 次").With(*r.LastIter).In(l))
	}
	if len(parts) == 0 {
		return r.notShown("The logs do not say.", "日志没有给出。", l)
	}
	return strings.Join(parts, said(", ", "，").In(l))
}

func (r Report) fromWhichLines(_ *Report, l lang.Lang) string {
	if len(r.Evidence) == 0 {
		return r.summary(l)
	}
	var lines []string
	for _, e := range r.Evidence[:min(5, len(r.Evidence))] {
		lines = append(lines, fmt.Sprintf("%s %s:%d %s", e.WhyIn(l), e.File, e.LineNo, e.Text))
	}
	if r.Traceback != nil {
		lines = append(lines, fmt.Sprintf("%s:%d (%s)", r.Traceback.File, r.Traceback.Line, r.Traceback.Function))
	}
	return strings.Join(lines, "\n")
}

// compareWithEarlier says whether this failure is that of the run before.
func (r Report) compareWithEarlier(earlier *Report, l lang.Lang) string {
	if earlier == nil {
		return said("No earlier run of the same name is known.", "没有同名的更早一次运行。").In(l)
	}
	if !earlier.Found() {
		return said("No: the run before did not fail. %s", "不是：上一次没有失败。%s").With(earlier.noFailure(l)).In(l)
	}
	if earlier.Class != r.Class {
		return said("No: the run before failed for another reason. %s", "不是：上一次的原因不同。%s").With(earlier.summary(l)).In(l)
	}
	c, _ := r.classInfo()
	s := said("Yes, the same cause: %s.", "是，同一原因：%s。").With(c.Name.In(l)).In(l)
	if r.RootNode != nil && earlier.RootNode != nil && *r.RootNode == *earlier.RootNode {
		s += said(" On the same node, %s.", "同一节点 %s。").With(*r.RootNode).In(l)
	} else if r.RootNode != nil || earlier.RootNode != nil {
		s += said(" Not on the same node.", "不在同一节点。").In(l)
	}
	if logline.Template(r.RootLine) == logline.Template(earlier.RootLine) && r.RootLine != "" {
		s += said(" With the same line.", "报错行也相同。").In(l)
	}
	return s
}
