package compute

import (
	"math"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

var (
	inMilli     = lazy.New(`(\d{2,12}) ?(?:ms\b|milliseconds?|毫秒)|timeout ?\(?ms\)? ?=? ?(\d{2,12})`)
	inMinutes   = lazy.New(`timeout-minutes[ =]+(\d{1,5})|(?:timeout|超时)\D{0,12}(\d{1,5}) ?(?:minutes?|mins?|分钟)`)
	inSeconds   = lazy.New(`(\d{1,6}) ?(?:s|secs?|seconds?|秒)(?:[^a-z]|$)`)
	minutesWant = lazy.New(`\b(?:in|to|as|many|into) (?:minutes|hours|seconds)\b|(?:多少|几|等于|换算|合)[^,.?]{0,3}(?:分钟?|秒|小时)|\bhow long\b|多久|多长`)
	milliWant   = lazy.New(`\b(?:in|many|as|to|into) (?:ms|milli\w*)\b|(?:多少|几|等于|换算).{0,3}(?:毫秒|ms)`)
)

// milliseconds turns the milliseconds that NCCL's watchdog prints into minutes,
// and --distributed-timeout-minutes into milliseconds.
func milliseconds(q *question) string {
	if q.beside() {
		return ""
	}
	if m := inMinutes.FindStringSubmatch(q.low); m != nil && milliWant.MatchString(q.low) {
		n := first(m)
		return q.say("%[1]d ms: %[2]d minutes × 60000; the watchdog prints it as Timeout(ms)=%[1]d.", "%[1]d 毫秒(ms):%[2]d 分钟 × 60000;watchdog 日志里写作 Timeout(ms)=%[1]d。", n*60000, n)
	}
	if m := inSeconds.FindStringSubmatch(q.low); m != nil && milliWant.MatchString(q.low) {
		return q.say("%[1]d ms: %[2]d s × 1000.", "%[1]d 毫秒(ms):%[2]d 秒 × 1000。", first(m)*1000, first(m))
	}
	m := inMilli.FindStringSubmatch(q.low)
	if m == nil || !minutesWant.MatchString(q.low) {
		return ""
	}
	ms, err := strconv.Atoi(m[1] + m[2])
	if err != nil {
		return ""
	}
	return q.say("%[1]s minutes (%[2]s s): %[3]d ms / 60000.", "%[1]s 分钟(%[2]s 秒):%[3]d 毫秒 / 60000。", short(float64(ms)/60000), short(float64(ms)/1000), ms)
}

var (
	portFirst = lazy.New(`(\d{1,5}) ?\+ ?[$({ ]*(?:slurm-)?job-?id[)} ]*% ?(\d{1,5})`)
	portLast  = lazy.New(`(?:slurm-)?job-?id[)} ]*% ?(\d{1,5})[)} ]*\+ ?(\d{1,5})`)
	jobNumber = lazy.New(`(?:job(?:[- ]?id)?|作业 ?(?:号|id)?|jobid) ?(?:is|=|number|no\.?|为|是|:)? ?(\d{1,10})\b`)
)

// port works a port out of a job's id.
func port(q *question) string {
	base, span := 0, 0
	if m := portFirst.FindStringSubmatch(q.low); m != nil {
		base, span = small(m[1]), small(m[2])
	} else if m := portLast.FindStringSubmatch(q.low); m != nil {
		base, span = small(m[2]), small(m[1])
	}
	id := jobNumber.FindStringSubmatch(q.low)
	if span == 0 || id == nil || q.beside() {
		return ""
	}
	n, err := strconv.Atoi(id[1])
	if err != nil {
		return ""
	}
	p := base + n%span
	t := q.say("%[1]d: %[2]d %% %[3]d = %[4]d, plus %[5]d.", "%[1]d:%[2]d %% %[3]d = %[4]d,再加 %[5]d。", p, n, span, n%span, base)
	if p > 65535 {
		t += q.say(" That is no valid port: 65535 is the largest.", " 这不是合法端口:最大为 65535。")
	}
	return t
}

var (
	cpuTime   = lazy.New(`cpu-?time(?:-?raw)? ?(?:=|of|is|为|是|:)? ?(\d+)`)
	cpusGiven = lazy.New(`(\d+) ?个? ?(?:alloc(?:ated)? ?)?(?:cpus?|cores?|核)|alloc-?cpus ?(?:=|of|is|为|是|:)? ?(\d+)`)
)

// cpuSeconds divides what sacct charges by the CPUs.
func cpuSeconds(q *question) string {
	m, n := cpuTime.FindStringSubmatch(q.low), cpusGiven.FindStringSubmatch(q.low)
	if m == nil || n == nil || q.beside() || !q.has("elapsed", "how long", "wall", "多久", "多长", "实际", "运行时间") {
		return ""
	}
	total, err := strconv.Atoi(m[1])
	cpus := first(n)
	if err != nil || cpus == 0 {
		return ""
	}
	return q.say("%[1]d seconds (%[2]s): CPUTimeRAW %[3]d / %[4]d CPUs, since CPUTime = Elapsed × CPUs.", "%[1]d 秒(%[2]s):CPUTimeRAW %[3]d / %[4]d 个 CPU,因为 CPUTime = Elapsed × CPU 数。", total/cpus, q.span(total/cpus), total, cpus)
}

var (
	rampupForm  = lazy.New(`rampup-batch-size[= ]+["'\[]?(\d+)[ ,]+(\d+)[ ,]+(\d+)`)
	rampupAsked = lazy.New(`\bhow (?:many|long)\b|\bwhat\b|\bwhen\b|\beach\b|\bnumber of\b|多少|几|多久|什么时候`)
)

// rampup works out the stages of --rampup-batch-size START INCREMENT SAMPLES.
// Source: megatron/core/num_microbatches_calculator.py,
// RampupBatchsizeNumMicroBatchesCalculator.
func rampup(q *question) string {
	m := rampupForm.FindStringSubmatch(q.low)
	if m == nil || q.cfg.GBS == 0 || q.beside() || !rampupAsked.MatchString(rampupForm.ReplaceAllString(q.low, " ")) {
		return ""
	}
	start, step := small(m[1]), small(m[2])
	samples, err := strconv.ParseFloat(m[3], 64)
	rise := q.cfg.GBS - start
	if err != nil || start == 0 || step == 0 || rise <= 0 {
		return ""
	}
	if rise%step != 0 {
		return q.say("Not accepted: the rise from %[1]d to %[2]d = %[3]d is not a multiple of the increment %[4]d (remainder %[5]d).", "不会被接受:从 %[1]d 到 %[2]d 的增量 %[3]d 不是每档增量 %[4]d 的倍数(余 %[5]d)。", start, q.cfg.GBS, rise, step, rise%step)
	}
	stages := rise / step
	each := samples / float64(stages)
	iters, consumed := 0.0, 0.0
	for k := 1; k <= stages; k++ {
		n := math.Ceil((each*float64(k) - consumed) / float64(start+(k-1)*step))
		iters += max(n, 0)
		consumed += max(n, 0) * float64(start+(k-1)*step)
	}
	return q.say("%[1]s samples at each batch size, %[2]d increments: %[3]s samples / ((%[4]d − %[5]d) / %[6]d = %[2]d). The full batch %[4]d comes after about %[7]s iterations.",
		"每档 %[1]s 个样本,共 %[2]d 档:%[3]s 个样本 / ((%[4]d − %[5]d) / %[6]d = %[2]d)。约 %[7]s 步后达到 %[4]d。", short(each), stages, m[3], q.cfg.GBS, start, step, whole(iters))
}
