package compute

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	timeOption = lazy.New(`(?:--time|(?:^|\s)-t|time limit|timelimit|time|walltime|时限|时间)\s*(?:=|of|is|为|是|:|设为|设成` +
		`|写)?\s*["']?(\d+(?:-\d+)?(?::\d+){0,2})`)
	timePattern = lazy.New(`(?:^|[^\w:\[-])(\d+-\d{1,2}(?::\d{2}){0,2}|\d+:\d{2}:\d{2})(?:[^\w:%-]|$)`)
	timeRange   = lazy.New(`\d+-\d+\s*(?:minutes?|mins?|hours?|hrs?|days?|weeks?|seconds?|secs?|times|分钟?|小时|天|秒|次|周|个)`)
	spanPattern = lazy.New(`(\d+(?:\.\d+)?)\s*(?:个)?\s*(weeks?|周|星期|days?|天|hours?|hrs?|h\b|小时|minutes?|mins?|分钟?|seconds?|secs?|秒)`)
)

// unitAfter matches a unit of time directly after a number.
var unitAfter = lazy.New(`^(?:\.\d+)?\s*个?\s*(?:days?|hours?|hrs?|minutes?|mins?|weeks?|天|小时|分钟|周|星期)`)

// daysAsked matches questions in which 2-06 is a time and no range.
var daysAsked = lazy.New(`\bhours?\b|\bminutes?\b|\bhow long\b|\btime ?limit|\bwalltime|--time|\bslurm time|小时|分钟|多久|多长|时限`)

var asksToWrite = lazy.New(`\b(?:in|as|for|to|with|into) (?:an? )?(?:slurm(?:'s)? ?)?(?:--time|-t\b|time\b|walltime|format|notation|limit)` +
	`|^(?:please )?(?:set|put|give|use|limit|write|ask|i (?:want|need)|we (?:want|need))\b|\bslurm (?:time|format` +
	`|notation)|\b(?:limit|time) string\b|写成|怎么(?:写|填|设|表示|指定)|如何(?:写|填|设|表示)|(?:--time|时限|walltime) ?(?:填|写|设|给|=` +
	`|为)? ?(?:怎么|如何|什么|多少|啥|\?|$)|限时|(?:--time|limit of [\w .]+|time limit)\??$`)

// otherTimeTopic matches questions that contain a time and ask something else.
var otherTimeTopic = lazy.New(`why|kill|timeout|time-?out|reach|exceed|left|remain|extend|change|before|after|default|max|为什么|杀|超时|到了|超过|剩|延长` +
	`|修改|改|之前|之后|默认|最长|上限|last|signal|check|save|warn|离|还有|信号|提前|快到|通知|保存|只有|自动|续|几天|多久|跑完|训练|\bonly\b|resume` +
	`|continue|auto`)

// maxTimeAsk is the maximal length, in characters, of a question how to write a time.
const maxTimeAsk = 80

// duration answers what a Slurm time means, or how to write one.
func duration(q *question) string {
	if q.has("--begin", "now+", "--signal", "elapsed=") || q.has("gpu hour", "gpu-hour", "卡时", "gpu 小时") {
		return ""
	}
	form := ""
	if m := timeOption.FindStringSubmatchIndex(q.low); m != nil && (strings.ContainsAny(q.low[m[2]:m[3]], "-:") || !unitAfter.MatchString(q.low[m[3]:])) {
		form = q.low[m[2]:m[3]]
	} else if m := timePattern.FindStringSubmatch(q.low); m != nil && (strings.Contains(m[1], ":") || daysAsked.MatchString(q.low)) &&
		!timeRange.MatchString(q.low) && !q.has("timeout", "time-out", "watchdog", "rank") &&
		q.has("time", "long", "hour", "minute", "second", "分钟", "秒", "多久", "多长", "小时", "时间", "how", "day") {
		form = m[1]
	}
	asksWrite := q.has("how do i write", "how to write", "how to specify", "how to ask", "write ", "spell", "set the time limit to", "as a slurm time", "what --time", "which --time", "format", "express", "as --time", "as a --time", "in --time", "as slurm", "slurm string", "字符串", "time string", "怎么写", "如何写", "写成", "怎么表示", "写法", "--time for", "--time 写", "--time 的值", "--time value", "value of --time", "value for --time", "--time=? ")
	if form == "" && len([]rune(q.low)) < maxTimeAsk && asksToWrite.MatchString(q.low) && !otherTimeTopic.MatchString(q.low) {
		asksWrite = true
	}
	if m := spanPattern.FindAllStringSubmatch(q.low, -1); m != nil && (form == "" || asksWrite) &&
		q.has("--time", "time limit", "walltime", "wall time", "limit of", "limit string", "timelimit", "-hour limit", "limit to", "时限", "限时", "slurm time", "slurm format", "slurm's format", "slurm notation", "slurm 格式", "time format", "time string") &&
		asksWrite {
		total := 0.0
		for _, w := range m {
			n, _ := strconv.ParseFloat(w[1], 64)
			total += n * unitSeconds(w[2])
		}
		sec := int(total)
		return q.say("`--time=%[1]s` (%[2]s).", "`--time=%[1]s`(%[2]s)。", slurmTime(sec), q.durationText(sec))
	}
	if form == "" {
		return ""
	}
	sec, unit, ok := readTime(form)
	if !ok {
		return ""
	}
	if sec == 0 && q.has("--time") && !q.has("--time-min") {
		// sbatch(1): a time limit of zero requests that no time limit be imposed.
		return q.say("No limit: `--time=%[1]s` asks for no time limit at all, not for zero minutes. Where the partition has a MaxTime the job "+
			"then exceeds it and waits or is refused.",
			"不限时(no limit):`--time=%[1]s` 表示不要时限,而不是 0 分钟。分区有 MaxTime 时就超出了上限,作业会一直排队或被拒绝。", form)
	}
	plain := !strings.ContainsAny(form, "-:")
	if plain && !q.has("--time", " -t ", "#sbatch") && !strings.HasPrefix(q.low, "-t") {
		return ""
	}
	t := q.say("%[1]s = %[2]s hours: `--time=%[3]s` has the form %[4]s.",
		"%[1]s(= %[2]s 小时,hours):`--time=%[3]s` 的格式是 %[4]s。", q.durationText(sec), hoursOf(sec), form, unit)
	switch {
	case q.has("minutes", "分钟") && sec%60 == 0 && sec >= 3600:
		t = q.say("%d minutes: ", "%d 分钟:", sec/60) + t
	case q.has("seconds", "多少秒", "几秒"):
		t = q.say("%d seconds: ", "%d 秒:", sec) + t
	}
	if plain {
		t = q.say("%[1]s minutes, not hours: a plain number in `--time=%[1]s` counts minutes (%[2]s). Where hours are meant write `--time=%[1]s:00:00`.",
			"%[1]s 分钟(minutes),不是小时:`--time=%[1]s` 只写一个数字时单位是分钟(%[2]s)。要 %[1]s 小时请写 `--time=%[1]s:00:00`。", form, q.durationText(sec))
	}
	return t
}

// unitSeconds returns the seconds of a unit of time. Its first letter or character decides.
func unitSeconds(unit string) float64 {
	first, _ := utf8.DecodeRuneInString(unit)
	return map[rune]float64{
		'w': 7 * 86400, 'd': 86400, 'h': 3600, 'm': 60, 's': 1,
		'周': 7 * 86400, '星': 7 * 86400, '天': 86400, '小': 3600, '分': 60, '秒': 1,
	}[first]
}

// readTime parses the forms of --time. unit names the form.
func readTime(form string) (sec int, unit string, ok bool) {
	d, ok := slurm.ParseDuration(form)
	if unit = []string{"minutes", "minutes:seconds", "hours:minutes:seconds"}[min(strings.Count(form, ":"), 2)]; strings.Contains(form, "-") {
		unit = "days-hours[:minutes[:seconds]]"
	}
	return int(d.Seconds()), unit, ok
}

// slurmTime formats seconds like Slurm: [D-]HH:MM:SS.
func slurmTime(sec int) string {
	days, rest := sec/86400, sec%86400
	s := fmt.Sprintf("%02d:%02d:%02d", rest/3600, rest/60%60, rest%60)
	if days > 0 {
		s = strconv.Itoa(days) + "-" + s
	}
	return s
}

// assumesUnit matches questions that assume a wrong unit and ask for confirmation.
var assumesUnit = lazy.New(`(?:小时|分钟|天).{0,6}(?:对吗|对吧|是吧|是吗|没错吧|吧|吗)|(?:hours?|minutes?|days?)\b.{0,24}(?:right|correct|true|yes|isn't it)\b`)

var beginForm = lazy.New(`now\+(\d+)\s*(seconds?|minutes?|hours?|days?|weeks?)?`)

// begin answers what a relative --begin means.
func begin(q *question) string {
	m := beginForm.FindStringSubmatch(q.low)
	if m == nil || q.has("self", "自我", "自己") {
		return ""
	}
	n, _ := strconv.Atoi(m[1])
	if m[2] == "" {
		if assumesUnit.MatchString(q.low) {
			return q.say("No, %[1]d seconds (%[2]s), not more: in `--begin=now+%[1]d` the default unit is seconds; write the unit out: minutes, "+
				"hours, days, weeks.",
				"不是,是 %[1]d 秒(seconds,%[2]s):`--begin=now+%[1]d` 里只写数字时默认单位是秒;其他单位要写出来:minutes、hours、days、weeks。", n, q.durationText(n))
		}
		return q.say("%[1]d seconds from now (%[2]s): in `--begin=now+%[1]d` the default unit is seconds; others are written out: minutes, hours, "+
			"days, weeks.",
			"%[1]d 秒(seconds)之后(%[2]s):`--begin=now+%[1]d` 默认单位是秒;其他单位要写出来:minutes、hours、days、weeks。", n, q.durationText(n))
	}
	return q.say("The job is considered %[2]s from now at the earliest (`--begin=now+%[1]s`); before that the scheduler ignores it, then it "+
		"waits for resources like any other.",
		"作业最早在 %[2]s 后参与调度(`--begin=now+%[1]s`);此前调度器忽略它,到时再像其他作业一样等资源。", m[1]+m[2], q.durationText(n*int(unitSeconds(m[2]))))
}

var signalForm = lazy.New(`--signal[= ]+(?:([rb]{1,2}):)?((?:sig)?(?:usr[12]|term|int|hup|cont|quit|abrt|alrm|kill|stop|tstp|urg|xcpu)` +
	`|\d+)\b(?:@(\d+))?`)

// inHours returns " = N hours" for a time of a day or more, else "".
func (q *question) inHours(sec int) string {
	if sec < 86400 {
		return ""
	}
	return q.say(" = %s hours", " = %s 小时", hoursOf(sec))
}

// sinceStart matches questions for a moment, not for the meaning of an option.
var sinceStart = lazy.New(`\bwhen\b|\b(?:after|since|from|into|counted from) (?:the |a |its |my )?(?:start|begin\w*|launch|job|run)\b` +
	`|\bhow (?:long|far|many)\b|\bat (?:what|which) (?:time|point|moment|minute|elapsed)|\bwhat (?:time|moment` +
	`|point|elapsed)|\belapsed\b|什么时候|何时|几点|多久|多长时间|多少(?:小时|分钟|秒|时间)|几(?:个)?(?:小时|分钟)|第几|哪个?(?:时刻|时间)`)

// timeLimit returns the time limit in a question, in seconds; 0 for none.
func (q *question) timeLimit() int {
	if m := timeOption.FindStringSubmatchIndex(q.low); m != nil && (strings.ContainsAny(q.low[m[2]:m[3]], "-:") || !unitAfter.MatchString(q.low[m[3]:])) {
		if sec, _, ok := readTime(q.low[m[2]:m[3]]); ok {
			return sec
		}
	}
	if m := timePattern.FindStringSubmatch(q.low); m != nil && strings.Contains(m[1], ":") {
		if sec, _, ok := readTime(m[1]); ok {
			return sec
		}
	}
	if m := limitWords.FindStringSubmatch(q.low); m != nil {
		n, _ := strconv.ParseFloat(m[1]+m[3], 64)
		return int(n * unitSeconds(m[2]+m[4]))
	}
	return 0
}

// limitWords matches a time limit in words: "a 4 hour limit", "时限 24 小时".
var limitWords = lazy.New(`(\d+(?:\.\d+)?)[ -]?(days?|hours?|h|minutes?|mins?)[ -](?:time[ -]?|wall[ -]?)?(?:limit|job|walltime` +
	`|allocation)|(?:limit(?:ed)?|walltime|时限|时长|限时)\D{0,8}?(\d+(?:\.\d+)?) ?个?(天|小时|分钟|days?|hours?|h\b|minutes?)`)

// signal answers when and to whom the --signal option of a job sends a signal. scancel has
// an option of the same name, which sends at once.
func signal(q *question) string {
	m := signalForm.FindStringSubmatch(q.low)
	if m == nil || q.has("scancel") {
		return ""
	}
	sec := 60
	if m[3] != "" {
		sec, _ = strconv.Atoi(m[3])
	}
	who := q.say("all job steps (the srun tasks), not the batch shell", "所有作业步(step,即 srun 的任务),不发给批处理 shell")
	if strings.Contains(m[1], "b") {
		who = q.say("only the batch shell, which must trap it; the srun steps do not get it", "只发给批处理 shell(batch shell,需要 trap),srun 作业步(step)收不到")
	}
	if strings.Contains(m[1], "r") {
		who += q.say(" (R: changes nothing of that; it lets the job overlap a reservation with MaxStartDelay)",
			"(R: 与接收方无关,只是允许作业与设了 MaxStartDelay 的预留重叠)")
	}
	name := strings.ToUpper(m[2])
	if known, ok := slurm.SignalNamed(name); ok {
		name = known.Word
	}
	if limit := q.timeLimit(); limit > sec && sinceStart.MatchString(q.low) {
		at := limit - sec
		return q.say("About %[1]s after the start (%[2]s): the limit %[3]s minus %[4]d seconds (%[5]s). SIG%[6]s goes to %[7]s; it may come up to "+
			"60 s earlier.",
			"开始后约 %[1]s(%[2]s):时限 %[3]s 减去 %[4]d 秒(%[5]s)。SIG%[6]s 的接收方:%[7]s;可能再提前最多 60 秒。",
			slurmTime(at), q.durationText(at)+q.inHours(at), slurmTime(limit), sec, q.durationText(sec), strings.TrimPrefix(name, "SIG"), who)
	}
	return q.say("Slurm sends SIG%[1]s about %[2]d seconds (%[3]s) before the time limit, to %[4]s. It may come up to 60 s earlier.",
		"Slurm 在时限前约 %[2]d 秒(%[3]s)发送 SIG%[1]s,%[4]s。可能提前最多 60 秒。", strings.TrimPrefix(name, "SIG"), sec, q.durationText(sec), who)
}

var (
	exitPair  = lazy.New(`(?:^|[^\d:])(\d{1,3}):(\d{1,3})(?:[^\d:]|$)`)
	exitPlain = lazy.New(`(?:exit ?code|exit status|exitcode|退出码|返回码|code)\s*(?:=|:|is|of|为|是)?\s*(-?\d{1,3})\b|(?:退出码` +
		`|exited with)\s*(?:exit code)?\s*(-?\d{1,3})|(?:^|\s)(-?\d{1,3}) (?:as )?(?:an )?(?:exit ?(?:code|status)|退出码` +
		`|返回码)|\bexit(?:ed|s)?(?: with)? (\d{3})\b`)
)

// exitCode answers what Slurm's code:signal or the shell's 128+signal means.
func exitCode(q *question) string {
	if m := exitPair.FindStringSubmatch(q.low); m != nil && q.has("exit", "退出", "sacct", "code", "返回码") {
		code, _ := strconv.Atoi(m[1])
		sig, _ := strconv.Atoi(m[2])
		if mark, ok := slurm.KnownSignalMark(sig); ok {
			return q.say("ExitCode %[1]d:%[2]d is a mark %[3]s. It is no signal of the program. What to do: %[4]s.",
				"ExitCode %[1]d:%[2]d 是标记，%[3]s。它不是程序收到的信号。处理:%[4]s。", code, sig, mark.Says.In(q.lang), mark.Do.In(q.lang))
		}
		if s, ok := slurm.KnownSignal(sig); ok {
			return q.say("Exit code %[1]d, ended by signal %[2]d (%[3]s): %[4]s. ExitCode is code:signal.",
				"退出码 %[1]d,被信号 %[2]d(%[3]s)结束:%[4]s。ExitCode 的格式是 退出码:信号。", code, sig, s.Word, s.Says.In(q.lang))
		}
		switch {
		case sig > 0 && sig < 32:
			return q.say("Exit code %[1]d, ended by signal %[2]d. ExitCode is code:signal.",
				"退出码 %[1]d,被信号 %[2]d 结束。ExitCode 的格式是 退出码:信号。", code, sig)
		case sig > 0:
			return ""
		case code == 0:
			q.success = true
			return q.say("Success as Slurm sees it: the batch script ended with exit code 0 and no signal (ExitCode is code:signal). A training that "+
				"failed all the same lost its status, in a pipe (`| tee`) or a command behind it.",
				"成功（Slurm 看来）:批处理脚本退出码 0,无信号(ExitCode 的格式是 退出码:信号)。如果训练其实失败了,是它的返回值丢了:后面有管道(`| tee`)或其他命令。")
		}
		if s, ok := slurm.KnownSignal(code - 128); ok {
			return q.say("Signal %[2]d (%[3]s): the exit code %[1]d is 128 + %[2]d, which a shell reports for a program ended by that signal: %[4]s.",
				"信号 %[2]d(%[3]s):退出码 %[1]d = 128 + %[2]d,即 shell 报告程序被该信号结束:%[4]s。", code, s.Number, s.Word, s.Says.In(q.lang))
		}
		return q.say("The program itself exited with code %[1]d, not by a signal (ExitCode is code:signal); read its traceback on all ranks.",
			"程序自己以退出码 %[1]d 结束,不是被信号杀死(ExitCode 的格式是 退出码:信号);到各 rank 日志里找 traceback。", code)
	}
	m := exitPlain.FindStringSubmatch(q.low)
	if m == nil {
		return ""
	}
	n, _ := strconv.Atoi(m[1] + m[2] + m[3] + m[4])
	var sig int
	switch {
	case n > 128 && n < 193:
		sig = n - 128
	case n < 0:
		sig = -n
	}
	s, ok := slurm.KnownSignal(sig)
	if !ok {
		return ""
	}
	return q.say("%[1]d means ended by signal %[2]d (%[3]s): %[4]s. (A shell reports 128 + signal, Python -signal.)",
		"%[1]d 表示被信号 %[2]d(%[3]s)结束:%[4]s。(shell 报 128+信号,Python 报 -信号。)", n, sig, s.Word, s.Says.In(q.lang))
}
