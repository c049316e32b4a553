package compute

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

var (
	// idPattern matches a possible job id with the characters around it.
	idPattern = lazy.New(`(?:^|[^\w:.\-=])#?(\d{1,9}(?:_\d+)?)(?:[^\w:.\-%]|$)`)
	// notID matches options with their values, and numbers that count something.
	notID = lazy.New(`(?i)(?:^|\s)--?[a-z][\w-]*(?:=\S+| \d[\w:-]*)|\b\d+ ?(?:days?|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|weeks?` +
		`|gb|g|tb|t|k|cards?|steps?|iterations?|iters?|times|am|pm|o'clock|percent)\b|\d+ ?(?:天|小时|分钟|秒|周|张|台|次|步|点|倍` +
		`|层)`)
	// counted matches a count of things; its number is no job id.
	counted = lazy.New(`\b(\d+) (?:jobs|tasks|nodes|gpus|cpus|ranks)\b`)
	// namesJob matches a number that the words around it mark as a job id.
	namesJob = lazy.New(`(?:jobs?|job ?id|id|作业号?|任务号?|after|once|when|until|behind|#|等|在)\s*(?:number |no\.? |is |为|是|:|=)?\s*#?\d+` +
		`|\d+(?:_\d+)? ?(?:号|has\b|have\b|is\b|are\b|was\b|both\b|all\b|finish|end|succe|fail|crash|complete|start` +
		`|begin|began|done|exit|ok\b|and #?\d|完|结束|成功|失败|出错|挂|跑|启动|开始|正常|之?后|以后|没|不管|无论|都)`)
	// dependencyType matches the name of a dependency type. asksConfirmation matches
	// questions that expect a yes.
	dependencyType   = lazy.New(`\bafter(?:ok|notok|any|corr)\b`)
	asksConfirmation = lazy.New(`\b(?:right|correct|true|yes|agree)\s*\?|(?:对吧|对吗|是吧|是吗|没错吧|对不对|吧)\s*\??$`)
	// asksToWatch matches questions about observing a job, not about starting another one
	// after it.
	asksToWatch = lazy.New(`\bsee (?:whether|if)\b|\bmonitor|\bwatch\b|\bnotif|return code|exit status|tell me|监控|通知|返回码|看看`)
)

var (
	// condition matches words with which one job waits for another.
	condition = lazy.New(`\bjobs?\b|\bdepend|\bafter\b|\bonce\b|\bwhen\b|\bif\b|\buntil\b|\bas soon as\b|\bwaits?\b|作业|任务|依赖|只要|结束|下一个|后` +
		`|再跑|再启|再运|才|就(?:跑|启|接|提|运)|等`)
	// waiting matches the job that should wait, where the job already has an id.
	waiting = lazy.New(`(?:^|[^\w:])#?(\d{2,9}) (?:should |must |has to |have to |needs to |need to |to |only )*(?:waits?|depends?` +
		`|hold)\b|让 ?(?:作业|job)? ?(\d{2,9}) ?(?:要|得|应该?|去)?(?:等|依赖|排)|(\d{2,9}) ?(?:要|得|应该?)?(?:等待|依赖)`)
	// exitZero matches success described by the exit code 0.
	exitZero = lazy.New(`(?:with |at )?(?:an? )?exit(?:ed|s)?(?: code| status)?(?: of| is| =|=| with)? ?(?:0|zero)\b|(?:return(?:ed|s)?` +
		`|code) (?:0|zero)\b|\b(?:clean(?:ly)?|exits? (?:fine|ok|well)|(?:ends?|ended|finish(?:es|ed)?|completes?` +
		`|completed) (?:fine|ok|okay|well)|goes (?:fine|ok|well|through))\b|退出码 ?(?:为|是|=)? ?0`)
	// afterStart matches that the other job only has to start. delayed matches the minutes
	// to wait after that.
	afterStart = lazy.New(`\b(?:has|have|had) (?:actually |really |just )?(?:started|begun)\b|\bstarted \(?not (?:ended|finished|done)` +
		`|\b(?:once|when|after|as soon as) (?:the )?(?:job )?#?\d+ (?:is running|is up|starts|begins|runs|gets going)\b` +
		`|\bonce it (?:starts|begins|is running)\b|从.{0,16}(?:开始|启动).{0,6}算|开始(?:运行)?之?后(?:再|就)?(?:过` +
		`|等)? ?\d* ?分?钟?.{0,12}不是结束`)
	delayed = lazy.New(`(\d+) ?(?:minutes?|mins?|分钟)`)
)

// longID is the number of digits from which on a number counts as a job id even without
// a word that says so.
const longID = 3

// jobs returns the job ids in a question.
func (q *question) jobs() []string {
	text := notID.ReplaceAllString(q.text, " ; ")
	counts := counted.FindAllStringSubmatch(q.low, -1)
	var ids []string
	sure := namesJob.MatchString(strings.ToLower(text))
	for _, m := range idPattern.FindAllStringSubmatch(strings.ReplaceAll(text, " ", "  "), -1) {
		if slices.ContainsFunc(counts, func(c []string) bool { return c[1] == m[1] }) {
			continue
		}
		ids = append(ids, m[1])
		sure = sure || len(m[1]) >= longID
	}
	if m := compiled(`(?:作业|任务|job)\s*(\d{1,9}(?:_\d+)?)`).FindStringSubmatch(q.low); m != nil && len(ids) == 0 {
		ids, sure = []string{m[1]}, true
	}
	if !sure {
		return nil
	}
	return ids
}

// dependency answers with --dependency for a condition on the jobs in the question.
func dependency(q *question) string {
	if strings.Contains(q.low, "satisfied") || !condition.MatchString(q.low) {
		return ""
	}
	if dependencyType.MatchString(q.low) && (asksConfirmation.MatchString(q.low) || strings.HasSuffix(q.low, "?")) {
		return "" // the question asks what a type means
	}
	ids := q.jobs()
	waits := ""
	if m := waiting.FindStringSubmatch(q.low); m != nil {
		waits = m[1] + m[2] + m[3]
		if ids = slices.DeleteFunc(ids, func(id string) bool { return id == waits }); len(ids) == 0 {
			return ""
		}
	}
	low := exitZero.ReplaceAllString(q.low, " succeeded ")
	if len(ids) == 0 || asksToWatch.MatchString(q.low) || q.has("node", "gpu", "卡", "--time", "hour", "小时", "节点", "array", "数组", "%") ||
		strings.Contains(low, "exit code") || strings.Contains(low, "退出码") {
		return ""
	}
	has := (&question{low: low}).has
	var kind string
	switch {
	case q.has("right?", "对吧", "correct?", "对不对", "对吗", "是吧", "--dependency=", "yes?", "command line", "what command", "exact command", "how was",
		"命令行", "没?", "了没", "跑完没", "elapsed", "wall time", "多久", "多长", "how long", "how much", "how many", "did job", "did it", "why ", "which ",
		"where ", "what happened", "see when", "know when", "tell when", "queued and waiting", "什么时候", "为什么", "哪个", "哪些", "哪台"):
		return ""
	case afterStart.MatchString(low):
		kind = "after"
	case has("regardless", "no matter", "not matter", "n't matter", "not care", "n't care", "whether or not", "either way", "any way",
		"in any case", "even if", "crashed or", "or not", "不管", "无论", "不论", "成败", "whatever") || has("ended") && !has("succeeded"):
		kind = "afterany"
	case has("fail", "crash", "失败", "崩", "异常退出", "出错", "non-zero", "挂了", "not succeed"):
		kind = "afternotok"
	case has("succe", "成功", "ok", "exit 0", "正常结束", "completed", "without error"):
		kind = "afterok"
	case has("has started", "starts", "started", "begins", "开始后", "启动后", "开始运行后", "开始运行之后", "开始之后", "启动之后", "跑起来之后"):
		kind = "after"
	case has("finish", "end", "done", "over", "结束", "跑完", "完成"):
		kind = "afterany"
	default:
		return ""
	}
	if strings.HasSuffix(q.low, "没") || !q.has("run", "start", "sbatch", "submit", "launch", "only", "wait", "跑", "运行", "启动", "提交", "depend", "依赖",
		"再", "才", "执行", "清理") {
		return ""
	}
	list := strings.Join(ids, ":")
	if m := delayed.FindStringSubmatch(numerals(q.low)); kind == "after" && m != nil {
		list = strings.Join(ids, "+"+m[1]+":") + "+" + m[1]
		return q.say("`sbatch --dependency=after:%[1]s job.slurm`: considered %[2]s minutes after it has begun.",
			"`sbatch --dependency=after:%[1]s job.slurm`:在它开始运行 %[2]s 分钟后参与调度。", list, m[1])
	}
	means := map[string][2]string{
		"afterok":    {"starts only if it ended with success (exit code 0)", "只有成功结束(退出码 0)才启动"},
		"afternotok": {"starts only if it failed (non-zero exit, time-out, node failure)", "只有失败(非零退出、超时、节点故障)才启动"},
		"afterany":   {"starts once it ended, whatever the result", "结束后启动,不论结果"},
		"after":      {"starts once it has begun (or was cancelled)", "在它开始运行(或被取消)后启动"},
	}[kind]
	if kind == "afterok" || kind == "afternotok" {
		means[0] += "; otherwise it stays pending as DependencyNeverSatisfied (add --kill-on-invalid-dep=yes)"
		means[1] += ";否则一直排队,原因 DependencyNeverSatisfied(可加 --kill-on-invalid-dep=yes)"
	}
	if waits != "" {
		return q.say("`scontrol update jobid=%[5]s dependency=%[1]s:%[2]s` for job %[5]s, which waits already (a new one: `sbatch "+
			"--dependency=%[1]s:%[2]s job.slurm`): %[3]s.",
			"作业 %[5]s 已提交:`scontrol update jobid=%[5]s dependency=%[1]s:%[2]s`(新作业用 `sbatch --dependency=%[1]s:%[2]s job.slurm`):%[4]s。", kind,
			list, means[0], means[1], waits)
	}
	return q.say("`sbatch --dependency=%[1]s:%[2]s job.slurm`: %[3]s.", "`sbatch --dependency=%[1]s:%[2]s job.slurm`:%[4]s。", kind, list, means[0], means[1])
}
