package compute

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// How long a run is: iterations, epochs, hours, chained jobs, checkpoints. Each
// is a product or a ratio of what the question gives.

// A length is what a question says of a run's length; zero means it does not say.
type length struct {
	iters, samples    float64
	tokens, dataset   float64 // trained on, and held by the dataset
	gbs, seq          float64
	step              float64 // seconds of one iteration
	longest, shortest float64 // seconds of the spans that are told beside it
	sum               float64 // of the spans in Slurm's form
	spans             int     // how many those are
	every             float64 // iterations between two checkpoints
	fraction          float64
	epochs            float64 // how often the dataset is gone through
	gpus              float64
	stepTokens        float64 // where the batch is told in tokens
}

var (
	grouping   = lazy.New(`\b(\d{1,3}(?:,\d{3})+)( ?(?:training )?(?:tokens|samples|sequences|steps|iterations|iters|documents|条|个|步))`)
	secondUnit = `(ms|milliseconds?|毫秒|s|secs?|seconds?|秒|mins?|minutes?|分钟?)`
	// stepTime finds how long one iteration takes: "9.6 s each", "8 s/it", "每步 8 秒".
	stepTime   = lazy.New(`(\d+(?:\.\d+)?) ?` + secondUnit + ` ?(?:per|a|an|each|every|for each|for one|/) ?(?:single )?(?:step|iter\w*|it\b)|(\d+(?:\.\d+)?) ?` + secondUnit + ` (?:step|iteration|iter)s?(?: time\b|\b)|(?:step|iteration|iter)s? ?(?:time|duration)?s? ?(?:each |every )?(?:that )?(?:is|are|of|=|:|at|takes?|taking|lasts?|needs?|runs? at|costs?)?(?: (?:about|around|roughly|approximately))? ?(\d+(?:\.\d+)?) ?` + secondUnit + `\b|(?:at|of|,|with|takes?) ?(\d+(?:\.\d+)?) ?` + secondUnit + ` (?:each|apiece|per)\b|(?:每一?个?|一|单)(?:步|次?迭代|个? ?(?:step|iteration|iter)) ?(?:大约|大概|约|平均)?(?:要|需要?|耗时|用时|花|跑|用|是|为|时间|得)? ?(?:大约|大概|约)? ?(\d+(?:\.\d+)?) ?` + secondUnit + `|(?:步时|迭代时间|step time|iteration time) ?(?:是|为|约|=|:)? ?(\d+(?:\.\d+)?) ?` + secondUnit + `|(\d+(?:\.\d+)?) ?` + secondUnit + ` ?(?:一步|一个? ?(?:step|iter\w*)|/ ?步|每步)`)
	trainFor   = lazy.New(`(?:train-iters|iters|iterations?|steps?|lr-decay-iters|总?(?:步数|迭代数|迭代次数)) ?(?:=|of|is|是|为|:|设为|,)? ?(\d+(?:\.\d+)?)(k|m|万)?\b|(\d+(?:\.\d+)?) ?(k|m|thousand|million|万|千)? ?(?:个 ?|次 ?)?(?:training |train |more |total )?(?:steps?\b|iterations?\b|iters?\b|步|次?迭代)`)
	samplesFor = lazy.New(`(?:train-samples|\bsamples|样本(?:总)?(?:数|量)?) ?(?:=|of|is|是|为|:|有|共|一共|总共)? ?(\d+(?:\.\d+)?) ?(k\b|m\b|万|亿|百万)?`)
	savedEvery = lazy.New(`(?:save-interval|saves? interval|checkpoint interval|保存间隔) ?(?:=|of|is|at|set to|是|为|:|设为|设)? ?(\d+)|(?:sav\w*|checkpoint\w*|ckpt)[^.?]{0,24}?(?:every|each|per) (\d+) ?(?:steps|iter\w*)|every (\d+) (?:steps|iter\w*)|每隔? ?(\d+) ?(?:个 ?)?(?:步|次?迭代|step|iter\w*)`)
	spanForm   = lazy.New(`(?:^|[^\w:.\-])(\d+-\d{1,2}(?::\d{2}){1,2}|\d{1,3}:\d{2}:\d{2})(?:[^\w:%-]|$)`)
	spanWords  = lazy.New(`(\d+(?:\.\d+)?)[ -]?个?(weeks?|周|星期|days?|天|hours?\b|hrs?\b|h\b|小时|minutes?\b|mins?\b|分钟)`)
	share      = lazy.New(`fraction ?(?:=|of|is|at|为|是|:|,)? ?(0?\.\d+)|(\d+(?:\.\d+)?) ?%`)
	// hyphened finds "a 120b-token dataset", hourly a span without a number,
	// timesOver how often a dataset is gone through.
	hyphened  = lazy.New(`(\d[a-z]{0,2})-(tokens?|samples?)\b`)
	hourly    = lazy.New(`\b(?:every|each|an|per) hour\b|\bhourly\b|每个?小时`)
	daily     = lazy.New(`\b(?:a|one|each|per|every|in a) day\b|\bdaily\b|(?:一|每)天`)
	timesOver = lazy.New(`(\d+) ?(?:个 ?)?(?:full )?(?:epochs?\b|轮|遍|passes\b)`)
	// perBatch finds that the tokens behind it are those of a step.
	perBatch = lazy.New(`(?:batch(?:[- ]size)?|gbs|批(?:大小)?|每一?步|per step) ?(?:is|of|=|:|为|是|有)? ?(?:about |约)?$`)
	// sized finds the sizes of a batch, which stand beside the counts.
	sized = lazy.New(`(?:batch-size|\bgbs|\bmbs|seq(?:uence)?(?:[- ]?len(?:gth)?)?) ?[=:]? ?\d+k?\b`)
	held  = lazy.New(`(?:data ?set|corpus|data|数据集?|语料|训练集)`)
)

// seconds is how long so many of a unit are.
func seconds(digits, unit string) float64 {
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	if strings.HasPrefix(unit, "ms") || strings.HasPrefix(unit, "milli") || unit == "毫秒" {
		return n / 1000
	}
	return n * unitSeconds(unit)
}

// pairs are the number and the unit of a match whose alternatives capture both.
func pairs(m []string) (digits, unit string) {
	for i := 1; i+1 < len(m); i += 2 {
		if m[i] != "" {
			return m[i], m[i+1]
		}
	}
	return "", ""
}

// taken returns the match of a pattern, and the text without it.
func taken(p *lazy.Pattern, s string) (m []string, rest string) {
	at := p.FindStringSubmatchIndex(s)
	if at == nil {
		return nil, s
	}
	m = p.FindStringSubmatch(s)
	return m, blank(s, at[0], at[1])
}

// runLength reads what a question says of a run's length.
func (q *question) runLength() length {
	c := q.cfg
	l := length{gbs: float64(c.GBS), seq: float64(c.Seq), gpus: float64(c.World)}
	s := hyphened.ReplaceAllString(q.low, "$1 $2")
	s = grouping.ReplaceAllStringFunc(s, func(m string) string { return strings.ReplaceAll(m, ",", "") })
	var m []string
	s = sized.ReplaceAllString(s, " ; ")
	if at := stepTime.FindStringSubmatchIndex(s); at != nil {
		digits := group(s, at)
		from := strings.Index(s[at[0]:], digits) + at[0]
		_, unit := pairs(stepTime.FindStringSubmatch(s))
		l.step = seconds(digits, unit)
		s = blank(s, from, from+len(digits)) // "20000 iterations at 6 s": the count is read below
	}
	if m, s = taken(savedEvery, s); m != nil {
		l.every = float64(first(m))
	}
	if m, s = taken(samplesFor, s); m != nil {
		l.samples = counted(m[1], m[2])
	}
	if m, s = taken(trainFor, s); m != nil {
		l.iters = counted(pairs(m))
	}
	if m := share.FindStringSubmatch(s); m != nil {
		n, _ := strconv.ParseFloat(m[1]+m[2], 64)
		if m[2] != "" {
			n /= 100
		}
		l.fraction = n
	}
	for _, at := range amount.FindAllStringSubmatchIndex(s, -1) {
		m := amount.FindStringSubmatch(s[at[0]:at[1]])
		n, unit, behind := counted(m[1], m[2]), m[3], strings.TrimLeft(s[at[1]:], " 的")
		switch {
		case !strings.HasPrefix(unit, "token"):
			l.samples = max(l.samples, n)
		case perBatch.MatchString(s[max(0, at[0]-20):at[0]]) || compiled(`^(?:per|a|each|/|每) ?(?:step|batch|global batch|iteration|步)|^(?:batch|global batch)`).MatchString(behind):
			l.stepTokens = n
		case compiled(`^(?:data|corpus|语料)`).MatchString(behind), l.dataset == 0 && held.MatchString(s[max(0, at[0]-24):at[0]]):
			l.dataset = max(l.dataset, n)
		default:
			l.tokens = max(l.tokens, n)
		}
	}
	if m := timesOver.FindStringSubmatch(s); m != nil {
		l.epochs = float64(first(m))
	}
	l.readSpans(s)
	return l
}

// readSpans reads the spans of time: a training's, a limit's, a job's.
func (l *length) readSpans(s string) {
	span := func(sec float64) {
		if sec > 0 {
			l.longest = max(l.longest, sec)
			l.shortest = min(cmp.Or(l.shortest, sec), sec)
		}
	}
	for m := spanForm.FindStringSubmatch(s); m != nil; m = spanForm.FindStringSubmatch(s) {
		if sec, _, ok := readTime(m[1]); ok {
			span(float64(sec))
			l.sum, l.spans = l.sum+float64(sec), l.spans+1
		}
		s = strings.Replace(s, m[1], " ; ", 1)
	}
	if m := timeGiven.FindStringSubmatch(s); m != nil && strings.Contains(s, "--time") && !unitBehind.MatchString(s[strings.Index(s, m[0])+len(m[0]):]) {
		if sec, _, ok := readTime(m[1]); ok {
			span(float64(sec))
		}
	}
	if hourly.MatchString(s) {
		span(3600)
	}
	if daily.MatchString(s) {
		span(24 * 3600)
	}
	for _, m := range spanWords.FindAllStringSubmatch(s, -1) {
		span(seconds(m[1], m[2]))
	}
}

// steps are the iterations that a question tells in one way or another.
func (l length) steps() float64 {
	switch {
	case l.iters > 0:
		return l.iters
	case l.stepTokens > 0:
		return math.Ceil(max(l.tokens, l.dataset) / l.stepTokens)
	case l.samples > 0 && l.gbs > 0:
		return math.Ceil(l.samples / l.gbs)
	case l.tokens > 0 && l.gbs > 0 && l.seq > 0:
		return math.Ceil(l.tokens / (l.gbs * l.seq))
	}
	return 0
}

// A measure is one thing that is asked of a run's length.
type measure struct {
	asked  *lazy.Pattern
	answer func(*question, length) string
}

const (
	manyEN = `\b(?:how many|number of|count of|what number of)\b`
	manyZH = `(?:多少|几)`
)

// lossAsked finds that the work which a failure may cost is asked for.
var lossAsked = lazy.New(`\b(?:lost|lose|losing|redo|redone|repeat\w*)\b|丢(?:失|掉)?|白跑|损失多|重跑`)

// measures are tried in order; the first that is asked for and whose numbers
// are there answers.
var measures = []measure{
	{lazy.New(`\b(?:steps|iterations|iters?|updates) (?:are |is |make |do |does |there |in |for |per |an? |one |each |a single )*epoch|\bepoch\b.{0,24}\b(?:how many|in) (?:steps|iter\w*)|epoch.{0,12}` + manyZH + ` ?(?:个 ?)?(?:步|次?迭代|step|iter\w*)|(?:步|迭代).{0,6}(?:每|一)个? ?epoch`), perEpoch},
	{lazy.New(manyEN + ` (?:\w+ )?(?:epochs?|passes)\b|\bepochs?\s*\??$|\bepochs (?:done|is that|is it|have|did|so far|after|in)\b|\bhow often is (?:the|my|our) (?:data|corpus)|` + manyZH + ` ?(?:个|轮|遍)? ?(?:epoch|轮|遍)|epoch ?(?:数|是多少|是几|等于)`), epochs},
	{lazy.New(`\b(?:disk|storage|space|tb|gb|terabytes?)\b|磁盘|存储|空间|多少 ?(?:tb|gb|t|g)`), diskOfAll},
	{lossAsked, lost},
	{lazy.New(`\b(?:plus|sum|total|altogether|combined|together|add(?:ed)?)\b|\d ?\+ ?\d|[加和与].{0,24}(?:一共|总共|共|多少|多久)|(?:一共|总共|合计|总和|加起来)`), sumOfSpans},
	{lazy.New(manyEN + `(?: \w+)? (?:checkpoints?|saves|ckpts?)\b|\bcheckpoints? (?:count|in total|in all|altogether)|` + manyZH + ` ?(?:个|次|份)? ?(?:checkpoint|ckpt|检查点|存档)|(?:存|保存|写)(?:下)?(?:多少|几) ?(?:个|次|份)`), checkpoints},
	{lazy.New(`\bsave-interval (?:for|to|gives|value|should|would)|\b(?:what|which) (?:--)?save[- ]interval|save-interval ?(?:设|填|写|取|该|应该?|要)?(?:设|填|写|取|为|是)? ?(?:多少|几)`), saveInterval},
	{lazy.New(`\bhow (?:often|frequent\w*|much time|long)\b|\b(?:minutes|hours|seconds|time) (?:between|per|apart|passes|from one)|\bin (?:minutes|hours|seconds)\b|\bevery how many (?:minutes|hours)|多久|多长时间|多少(?:分钟|小时|秒)|几(?:分钟|个?小时)`), cadence},
	{lazy.New(manyEN + ` (?:\w+[ -]){0,3}(?:jobs|submissions|resubmi\w+|restarts|links|segments|runs|array (?:tasks|elements)|chain\w*|slots|allocations|elements|times)\b|(?:多少|几) ?(?:个|次|段|轮|棒)? ?(?:数组)?(?:作业|任务|job|接力|提交|段|棒|续跑|次)|(?:接力|续跑|串|分成?|拆成?|提交|排) ?(?:多少|几)`), chained},
	{lazy.New(manyEN + ` (?:\w+ )?(?:steps|iterations|iters?)\b|\b(?:steps|iterations|iters) (?:that )?(?:fit|can be|i can|we can)|(?:多少|几) ?(?:个 ?)?(?:步|次?迭代|step|iter\w*)`), fitting},
	{lazy.New(`\btok(?:en)?s? ?(?:/|per|a|each) ?(?:s\b|sec)|\btokens?\b.{0,20}\bthroughput|\bthroughput\b|(?:每|一)秒.{0,10}token|token.{0,4}(?:/|每) ?(?:s\b|秒)|token.{0,6}吞吐|吞吐`), throughput},
	{lazy.New(manyEN + ` tokens\b|\b(?:total )?tokens (?:seen|consumed|processed|trained|after|at iter\w*)|(?:多少|几) ?(?:个 ?)?token`), tokensSeen},
	{lazy.New(manyEN + ` (?:training )?samples\b|\bsamples (?:seen|consumed|processed)|\bconsumed samples|(?:多少|几) ?(?:个|条)? ?样本`), samplesSeen},
	{lazy.New(`\bsamples? ?(?:/|per) ?s(?:ec\w*)?\b|(?:每|一)秒.{0,8}(?:样本|条)`), sampleRate},
	{lazy.New(`\bwarm-?up\b|预热`), warmup},
	{timeAsked, atRate},
	{lazy.New(`\bhow long\b|\bhow (?:many|much) (?:days|hours|time|minutes|weeks)\b|\bin (?:days|hours|minutes)\b|\b(?:wall[- ]?(?:clock|time)|duration|total time|run ?time|hours|days)\b|多久|多长时间|(?:多少|几) ?个?(?:天|小时|分钟)|总(?:时间|时长|耗时)`), wallTime},
	{lazy.New(manyEN + ` (?:\w+ )?(?:steps|iterations|iters?)\b|\b(?:iterations|iters|steps)\s*\??$|\bin iterations\b|(?:多少|几) ?(?:个 ?)?(?:步|次?迭代|step|iter\w*)|(?:步|迭代)数`), iterationsOfSamples},
}

// lengths answers what a question wants to know of a run's length.
func lengths(q *question) string {
	if q.beside() && !lossAsked.MatchString(q.low) || !strings.ContainsAny(q.low, "0123456789") {
		return ""
	}
	var l length
	read := false
	for _, m := range measures {
		if !m.asked.MatchString(q.low) {
			continue
		}
		if !read {
			l, read = q.runLength(), true
		}
		if t := m.answer(q, l); t != "" {
			return t
		}
	}
	return ""
}

// beside reports that numbers of a run can only be the setting: something was
// printed or went wrong, a reason is wanted, or a way.
func (q *question) beside() bool {
	low := harmless.ReplaceAllString(writing.ReplaceAllString(q.low, " "), " ")
	return printed.MatchString(low) || reason.MatchString(low) || trouble.MatchString(low) || compiled(`\bhow (?:do|should|to)\b (?:i |we )?(?:resume|restart|submit|chain|save|set up|measure|lower|speed)|怎么(?:续|提交|保存|接|串|测|加快|降)`).MatchString(low)
}

func perEpoch(q *question, l length) string {
	size, of := l.samples, "samples"
	batch := l.gbs
	if tokens := cmp.Or(l.dataset, l.tokens); size == 0 {
		size, of, batch = tokens, "tokens", l.gbs*l.seq
	}
	if size == 0 || batch == 0 || size < batch {
		return ""
	}
	n := size / batch
	return q.say("%[1]s iterations per epoch (%[2]s full batches): %[3]s %[4]s / %[5]s a step = %[6]s.", "每个 epoch %[1]s 步(完整批 %[2]s 个):%[3]s 个 %[4]s / 每步 %[5]s = %[6]s。",
		whole(math.Ceil(n)), whole(math.Floor(n)), whole(size), q.say(of, map[string]string{"samples": "样本", "tokens": "token"}[of]), whole(batch), short(n))
}

func epochs(q *question, l length) string {
	seen, size := l.tokens, l.dataset
	switch {
	case l.iters > 0 && l.gbs > 0 && l.samples > 0:
		seen, size = l.iters*l.gbs, l.samples
	case l.iters > 0 && l.gbs > 0 && l.seq > 0:
		seen, size = l.iters*l.gbs*l.seq, cmp.Or(l.dataset, l.tokens)
	}
	if seen == 0 || size == 0 {
		return ""
	}
	return q.say("%[1]s epochs: %[2]s seen / %[3]s in the dataset = %[1]s. (Megatron has no epoch flag: give --train-iters or --train-samples.)",
		"%[1]s 个 epoch:共训 %[2]s / 数据集 %[3]s = %[1]s。(Megatron 没有 epoch 参数,用 --train-iters 或 --train-samples。)", short(seen/size), whole(seen), whole(size))
}

// checkpoints counts the saves of a run. A last one follows where the interval
// does not divide the iterations (megatron/training/training.py, train).
func checkpoints(q *question, l length) string {
	n := l.steps()
	if l.every == 0 || n < l.every {
		return ""
	}
	k := math.Floor(n / l.every)
	t := q.say("%[1]s checkpoints: %[2]s iterations / --save-interval %[3]s = %[4]s.", "%[1]s 个检查点:%[2]s 步 / --save-interval %[3]s = %[4]s。", whole(k), whole(n), whole(l.every), short(n/l.every))
	if k*l.every != n {
		t = q.say("%[1]s checkpoints: %[2]s at every %[3]s of the %[4]s iterations, and one at the end.", "%[1]s 个检查点:%[4]s 步中每 %[3]s 步一个,共 %[2]s 个,结束时再存一个。", whole(k+1), whole(k), whole(l.every), whole(n))
	}
	return t
}

func saveInterval(q *question, l length) string {
	if l.every > 0 || l.step == 0 || l.longest < l.step {
		return ""
	}
	n := math.Floor(l.longest / l.step)
	return q.say("`--save-interval %[1]s`: %[2]s / %[3]s s per iteration = %[1]s iterations.", "`--save-interval %[1]s`:%[2]s / 每步 %[3]s 秒 = %[1]s 步。", whole(n), q.span(int(l.longest)), short(l.step))
}

func cadence(q *question, l length) string {
	if l.every == 0 || l.step == 0 || l.iters > 0 && !q.has("often", "apart", "between", "一次", "间隔") {
		return ""
	}
	sec := l.every * l.step
	return q.say("Every %[1]s minutes (%[2]s): %[3]s iterations × %[4]s s = %[5]s s between two checkpoints.", "每 %[1]s 分钟一次(%[2]s):%[3]s 步 × %[4]s 秒 = %[5]s 秒。",
		short(sec/60), q.span(int(sec+0.5)), whole(l.every), short(l.step), short(sec))
}

// lost is the work since the last checkpoint, at worst.
func lost(q *question, l length) string {
	if l.every == 0 || l.step == 0 || !compiled(`\bhow (?:much|many|long)\b|\bat (?:worst|most)\b|多少|多久|最多|几`).MatchString(q.low) {
		return ""
	}
	sec := l.every * l.step
	return q.say("At most %[1]s hours (%[2]s): everything since the last checkpoint, up to %[3]s iterations × %[4]s s.", "最多 %[1]s 小时(%[2]s):上次检查点之后的部分,至多 %[3]s 步 × %[4]s 秒。", hours(sec), q.span(int(sec+0.5)), whole(l.every), short(l.step))
}

// diskOfAll multiplies the checkpoints of a run by the size of one.
func diskOfAll(q *question, l length) string {
	m, n := memNode.FindStringSubmatch(q.low), l.steps()
	if m == nil || l.every == 0 || n < l.every || !ckptAsked.MatchString(q.low) {
		return ""
	}
	each, _ := strconv.ParseFloat(m[1], 64)
	if m[2] == "t" {
		each *= 1000
	}
	k := math.Ceil(n / l.every)
	return q.say("%[1]s TB: %[2]s checkpoints (%[3]s iterations / %[4]s) × %[5]s GB.", "%[1]s TB:%[2]s 个检查点(%[3]s 步 / %[4]s)× %[5]s GB。", short(k*each/1000), whole(k), whole(n), whole(l.every), short(each))
}

func tokensSeen(q *question, l length) string {
	if l.iters == 0 && l.step > 0 { // "in a day at 6 s each"
		l.iters = math.Floor(l.longest / l.step)
	}
	if l.iters == 0 || l.gbs == 0 || l.seq == 0 {
		return ""
	}
	n := l.iters * l.gbs * l.seq
	return q.say("%[1]s tokens (%[5]s billion): %[2]s steps × global batch %[3]s × sequence %[4]s.", "%[1]s 个 token(约 %[5]s B):%[2]s 步 × global batch %[3]s × 序列 %[4]s。", whole(n), whole(l.iters), whole(l.gbs), whole(l.seq), short(n/1e9))
}

func samplesSeen(q *question, l length) string {
	if l.iters == 0 || l.gbs == 0 || l.samples > 0 {
		return ""
	}
	return q.say("%[1]s samples: %[2]s iterations × global batch %[3]s.", "%[1]s 个样本:%[2]s 步 × global batch %[3]s。", whole(l.iters*l.gbs), whole(l.iters), whole(l.gbs))
}

// sumOfSpans adds the times of several jobs.
func sumOfSpans(q *question, l length) string {
	if l.spans < 2 {
		return ""
	}
	return q.say("%[1]s hours (%[2]s): the sum of the %[3]d times.", "%[1]s 小时(%[2]s):%[3]d 段时间之和。", hours(l.sum), slurmTime(int(l.sum)), l.spans)
}

// chained counts the jobs of one limit that a longer training takes.
func chained(q *question, l length) string {
	total, limit := l.longest, l.shortest
	if n := l.steps(); n > 0 && l.step > 0 {
		total = n * l.step
		limit = l.longest
	}
	if limit == 0 || total <= limit {
		return ""
	}
	n := math.Ceil(total / limit)
	return q.say("%[1]s jobs: %[2]s h of training / %[3]s h a job = %[4]s, rounded up. Each loads the last checkpoint, so add one where restarts and repeated iterations eat into that: `sbatch --array=1-%[1]s%%1 job.slurm`.",
		"%[1]s 个作业:训练 %[2]s 小时 / 每个作业 %[3]s 小时 = %[4]s,向上取整。每个都从最近的检查点继续,启动和重跑的步也占时间,余量小时再加一个:`sbatch --array=1-%[1]s%%1 job.slurm`。",
		whole(n), hours(total), hours(limit), short(total/limit))
}

// fitting counts the iterations that a time holds.
func fitting(q *question, l length) string {
	if l.step == 0 || l.longest < l.step || l.iters > 0 {
		return ""
	}
	return q.say("%[1]s iterations: %[2]s h = %[3]s s / %[4]s s per iteration, without start-up and saving.", "%[1]s 步:%[2]s 小时 = %[3]s 秒 / 每步 %[4]s 秒,未计启动和保存的时间。",
		whole(math.Floor(l.longest/l.step)), hours(l.longest), whole(l.longest), short(l.step))
}

func throughput(q *question, l length) string {
	if l.step == 0 || l.gbs == 0 || l.seq == 0 {
		return ""
	}
	rate := l.gbs * l.seq / l.step
	if l.gpus > 0 && q.has("gpu", "per card", "每卡", "单卡", "每张") {
		return q.say("%[1]s tokens/s per GPU: global batch %[2]s × sequence %[3]s / %[4]s s / %[5]s GPUs (%[6]s tokens/s in all).", "每卡每秒 %[1]s 个 token:global batch %[2]s × 序列 %[3]s / %[4]s 秒 / %[5]s 张卡(总共每秒 %[6]s 个)。",
			whole(rate/l.gpus), whole(l.gbs), whole(l.seq), short(l.step), whole(l.gpus), whole(rate))
	}
	return q.say("%[1]s tokens/s: global batch %[2]s × sequence %[3]s = %[4]s tokens a step / %[5]s s.", "每秒 %[1]s 个 token:global batch %[2]s × 序列 %[3]s = 每步 %[4]s 个 / %[5]s 秒。",
		whole(rate), whole(l.gbs), whole(l.seq), whole(l.gbs*l.seq), short(l.step))
}

func sampleRate(q *question, l length) string {
	if l.step == 0 || l.gbs == 0 {
		return ""
	}
	return q.say("%[1]s samples/s: global batch %[2]s / %[3]s s per iteration.", "每秒 %[1]s 个样本:global batch %[2]s / 每步 %[3]s 秒。", short(l.gbs/l.step), whole(l.gbs), short(l.step))
}

// warmup counts the iterations of a warm-up that is given as a fraction.
func warmup(q *question, l length) string {
	n := l.steps()
	if l.fraction == 0 || l.fraction > 1 || n == 0 {
		return ""
	}
	return q.say("%[1]s warm-up iterations: fraction %[2]s × %[3]s (of --lr-decay-iters, which is --train-iters unless given).", "预热 %[1]s 步:比例 %[2]s × %[3]s 步(按 --lr-decay-iters 计,不写时等于 --train-iters)。",
		short(l.fraction*n), strconv.FormatFloat(l.fraction, 'g', -1, 64), whole(n))
}

func wallTime(q *question, l length) string {
	n := l.steps()
	if l.step == 0 || n == 0 || n == 1 {
		return ""
	}
	sec := n * l.step
	return q.say("%[1]s hours (%[2]s days): %[3]s iterations × %[4]s s = %[5]s s; start-up, evaluation and saving come on top.", "%[1]s 小时(%[2]s 天):%[3]s 步 × %[4]s 秒 = %[5]s 秒;启动、评估和保存另计。",
		hours(sec), short(sec/86400), whole(n), short(l.step), whole(sec))
}

func iterationsOfSamples(q *question, l length) string {
	if n := l.steps(); l.stepTokens > 0 && n > 1 && l.iters == 0 {
		total := max(l.tokens, l.dataset)
		return q.say("%[1]s iterations: %[2]s tokens / %[3]s tokens a step = %[4]s.", "%[1]s 步:%[2]s 个 token / 每步 %[3]s 个 = %[4]s。", whole(n), whole(total), whole(l.stepTokens), short(total/l.stepTokens))
	}
	if l.samples == 0 || l.gbs == 0 || l.samples < l.gbs || l.iters > 0 {
		return ""
	}
	l.samples *= max(l.epochs, 1)
	return q.say("%[1]s iterations: %[2]s samples / global batch %[3]s = %[4]s.", "%[1]s 步:%[2]s 个样本 / global batch %[3]s = %[4]s。", whole(l.steps()), whole(l.samples), whole(l.gbs), short(l.samples/l.gbs))
}

// hours writes seconds as hours.
func hours(sec float64) string { return short(sec / 3600) }
