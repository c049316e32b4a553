package compute

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/recipes"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// layoutAsked matches questions for a layout, a number of GPUs, a speed, or whether
// something fits.
var layoutAsked = lazy.New(`\b(?:which|what|best|good|right|optimal|recommend\w*|suggest\w*|choose|pick)\b[^.?!;]{0,48}\b(?:layouts?|parallel\w*|tp|pp|ep|cp)\b` +
	`|\bhow (?:should|do|would|to|can) (?:i |we |you )?(?:parallel|split|shard|lay)|^\W*(?:tp|pp|ep|cp|layout|parallel\w*)\b[^.?!;]{0,24}\bfor\b` +
	`|how many (?:\S+ ){0,3}(?:gpus?|cards|nodes|machines|[abh]\d{2,3}s?)\b` +
	`|\b(?:minimum|fewest|smallest|least) (?:number|count|gpus?|nodes|cards)` +
	`|\b(?:expect\w*|typical|usual|reachable|should|what)\b[^.?!;]{0,32}\b(?:t?flops?|mfu|throughput)\b|\bhow fast\b` +
	`|\btokens? ?(?:per|/|a) ?s(?:ec\w*)?\b` +
	`|(?:什么|哪[种个些]?|怎么|如何|怎样|多少|推荐|合适)[^。？；]{0,12}(?:并行|tp|pp|切)|(?:并行|tp|pp|切)[^。？；]{0,12}(?:怎么|如何|多少|几|推荐|合适)` +
	`|(?:几|多少) ?(?:张|块|台|个)? ?(?:\S+ )?(?:卡|gpu|显卡|节点|机器|[abh]\d{2,3})|至少(?:要|需要)?(?:几|多少)|最少` +
	`|(?:吞吐|算力利用率|mfu|flops)[^。？；]{0,8}(?:多少|多高|几)|多快`)

// fitAsked matches questions whether something fits or is enough: GPUs, if it names them, or time or data.
var (
	fitAsked = lazy.New(`\benough\b|\blayout\b|\b(?:can|could) (?:i|we|you) (?:pre-?)?train\b|\bfits?\b|够(?:吗|不够|用|训)|(?:放|装|跑|训)(?:得|不)(?:下|动|了)|能(?:不能)?(?:跑|训)`)
	gpuSaid  = lazy.New(`\b(?:gpus?|cards?|vram|nodes?)\b|卡|显存|机器|节点`)
)

// unknownGPU matches names of accelerators as makers form them.
var unknownGPU = lazy.New(`(?:^|[^a-z0-9])(?:[abhlpv]\d{1,2}0|a16|(?:rtx|gtx|mi) ?\d{2,4}|910[a-c]?|[2-5]0[5-9]0)[a-z]*(?:$|[^a-z0-9])` +
	`|\b(?:amd|ascend|npus?|tpus?|gaudi|dcus?|trainium)|昇腾|寒武纪|海光|沐曦`)

// givenMemory matches a size of memory, which is no part of a GPU's name.
var givenMemory = lazy.New(`(\d+) ?g(?:i?b)?\b`)

// noGPU matches those of them that are no GPUs. No layout for one of ours is one for them, whatever their memory.
var noGPU = lazy.New(`^(?:910[a-c]?|ascend|npus?|tpus?|gaudi|trainium|昇腾|寒武纪)$`)

// gpuIn returns the GPU that a question names; unknown is its name where nothing is known of it.
func gpuIn(text string) (gpu megatron.GPU, unknown string) {
	gpu, known := megatron.LookupGPU(givenMemory.ReplaceAllString(text, " ") + "-" + strings.ReplaceAll(smallMemory.FindString(text), " ", ""))
	if !known {
		unknown = strings.TrimFunc(unknownGPU.FindString(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if gpu, known = megatron.LookupGPU("rtx" + unknown); known { // 4090
			unknown = ""
		}
	}
	return gpu, unknown
}

// durationAsked matches questions for the time that a number of tokens takes.
var durationAsked = lazy.New(`\bhow (?:long|many (?:days|hours|weeks))\b|多久|多少天|多长时间|几天`)

// otherSubject matches questions that name a model's sizes but ask about something else: a
// failure, a speed that is too low, a checkpoint, a command.
var otherSubject = lazy.New(`\d ?t?flop|\bonly\b|\bloss\b|\bnormal\b|\berrors?\b|\boom\b|out of memory|\bhang|\bstuck|crash|fail|traceback` +
	`|\bhow many \S+ (?:were|did|do (?:i|we) have)\b|checkpoint|convert|\bckpt|\bload|\bresum|\bslow|\bnan\b|\bscript|\bcommand|infer|\bserv(?:e|ing)\b` +
	`|finetun|fine-tun|\bsft\b|\blora\b|\brlhf\b|\bwhy\b` +
	`|只有|正常|优化|报错|转换|加载|续训|卡住|挂了|失败|爆显存|为什么|为啥|推理|微调|脚本|命令|权重`)

// smallMemory matches the memory of the smaller A100.
var smallMemory = lazy.New(`\b40 ?g`)

// numbersIn returns the type of the GEMMs that a question names, such as fp8; empty for none.
func numbersIn(text string) (named string) {
	for _, t := range recipes.Types() {
		if strings.Contains(text, t) && len(t) > len(named) {
			named = t
		}
	}
	return named
}

// computes reports whether a GPU computes with numbers of a type. mxfp8 came with Blackwell.
func computes(g megatron.GPU, numbers string) bool {
	switch {
	case strings.Contains(numbers, "fp4"):
		return g.FP4 > 0
	case numbers == "mxfp8":
		return g.Arch >= 10
	}
	return numbers == "" || numbers == "bf16" || g.FP8 > 0
}

// mostGPUs bounds what is taken for the size of a cluster.
const mostGPUs = 1 << 18

// largestCluster bounds the search for the fewest GPUs that a model takes.
const largestCluster = 16384

// A wanted is a model and the machines that it is to be trained on.
type wanted struct {
	model               recipes.Model
	gpu                 megatron.GPU
	perNode, batch, seq int
	numbers             string  // type of the GEMMs; empty for bf16
	gpus                int     // 0 where the question gives no number
	tokens              float64 // to train on; 0 where the question does not say

	assumed bool   // the question names no GPU
	unknown string // the GPU that it names and that is not known
	without string // the type that is asked for and that the GPU does not compute with
}

// wantedIn reads what a question that asks for a layout says. ok is false for other questions.
func wantedIn(q *question) (w wanted, ok bool) {
	layout, duration, fit := layoutAsked.MatchString(q.low), durationAsked.MatchString(q.low), fitAsked.MatchString(q.low)
	if !layout && !duration && !fit || otherSubject.MatchString(q.low) {
		return w, false
	}
	m, rest, ok := recipes.Named(q.low)
	if !ok {
		return w, false
	}
	if _, _, several := recipes.Named(rest); several {
		return w, false // an answer on one of several models would be taken for one on all
	}
	w.model, w.tokens = m, tokensIn(rest)
	gpu, unknown := gpuIn(rest)
	named := gpu.Name != "" || unknown != ""
	fit = fit && (named || gpuSaid.MatchString(q.low))
	if !layout && !fit && (w.tokens == 0 || !duration) {
		return w, false
	}
	c := readConfig(tokensGiven.ReplaceAllString(rest, " ; ")) // without numbers that are no size of the layout
	if c.TP+c.PP+c.CP+c.EP > 0 || c.GBS > 0 && c.MBS > 0 {
		return w, false
	}
	w.unknown = unknown
	if w.assumed = !named; gpu.Name == "" {
		gpu, _ = megatron.LookupGPU("h100")
	}
	w.gpu, w.perNode, w.batch, w.seq, w.numbers = gpu, cmp.Or(c.PerNode, recipes.PerNode(gpu.Name)), c.GBS, c.Seq, numbersIn(rest)
	if !computes(gpu, w.numbers) {
		w.without, w.numbers = w.numbers, ""
	}
	w.gpus = cmp.Or(c.World, c.Nodes*w.perNode)
	return w, w.gpus <= mostGPUs
}

// modelLayout answers which layout a model takes that is asked for by name, and where the
// question gives no number of GPUs, from how many on it fits.
func modelLayout(q *question) string {
	w, ok := wantedIn(q)
	if !ok {
		return ""
	}
	if w.unknown != "" {
		return w.standIn(q)
	}
	gpus := w.gpus
	var options []rules.Option
	if gpus > 0 {
		options = w.layouts(gpus)
	} else if gpus, options = w.fewest(); gpus == 0 {
		return ""
	}
	kind := strings.ToUpper(w.gpu.Name)
	head := q.say("%s on %d %s", "%s 用 %d 张 %s", w.model.Name, gpus, kind)
	if w.gpus == 0 {
		head = q.say("By estimate %s fits from %d %s on", "据估算 %s 至少需要 %d 张 %s", w.model.Name, gpus, kind)
	}
	if w.assumed {
		head += q.say(" (80 GB; the question names no GPU)", "(80 GB;问题没有说 GPU 型号)")
	}
	if w.without != "" {
		head += q.say(" (in bf16: it does not compute in %s)", "(用 bf16:它不支持 %s 计算)", w.without)
	}
	if len(options) == 0 {
		n, _ := w.fewest()
		if n <= gpus { // it does not divide: the cards say more
			return ""
		}
		return head + q.say(": no layout fits. It fits from %d on. `%s` tries them all.", ":没有任何并行配置放得下,至少需要 %d 张。`%s` 会逐一尝试。", n, w.command(n))
	}
	o := options[0]
	t := head + q.say(": %s", "：%s", o.Layout)
	if o.Recompute != "none" {
		t += q.say(", recompute %s", ",重计算 %s", o.Recompute)
	}
	t += q.say(", about %.0f of %.0f GiB on the fullest GPU", ",占用最多的 GPU 约 %.0f / %.0f GiB", o.Memory.GiB(), w.gpu.MemoryGiB)
	if o.High > 0 {
		t += q.say(", about %.0f TFLOP/s a GPU (%.0f to %.0f), %.0f tokens/s", ",每卡约 %.0f TFLOP/s(%.0f 至 %.0f)、%.0f token/s", o.TFLOPs, o.Low, o.High, w.tokensPerSecond(o)/float64(gpus))
	}
	t += q.say(". By estimate this is the cheapest legal layout:\n`%s`\n", "。这是估算代价最低的合法配置:\n`%s`\n", strings.Join(append(o.Flags, w.given()...), " "))
	t += published(q, w, gpus)
	return w.duration(q, o, gpus) + t + q.say("`%s` shows the others and why.", "`%s` 列出其他配置及理由。", w.command(gpus))
}

// standIn says how to plan for a GPU that is not known: with a known one of no more memory.
func (w wanted) standIn(q *question) string {
	if noGPU.MatchString(w.unknown) {
		return q.say("Megatron-LM itself needs CUDA. On %s a port by its maker runs, if there is one (MindSpeed on Ascend), so no layout and no speed of %s is computed here.",
			"Megatron-LM 本身需要 CUDA。该加速器（%s）只能运行厂商的移植版本（如昇腾的 MindSpeed），因此无法计算 %s 的并行配置和速度。", strings.ToUpper(w.unknown), w.model.Name)
	}
	memory := 0
	if m := givenMemory.FindAllStringSubmatch(q.low, -1); len(m) == 1 {
		memory, _ = strconv.Atoi(m[0][1])
	}
	var known []string
	last := 0.0
	w.gpu = megatron.GPU{}
	for _, g := range megatron.GPUs() {
		if g.MemoryGiB > 1.05*last { // one of several with about the same memory
			known = append(known, fmt.Sprintf("%s (%.0f GiB)", g.Name, g.MemoryGiB))
			last = g.MemoryGiB
		}
		if g.Arch >= 8 && g.Domain == 0 && g.MemoryGiB > w.gpu.MemoryGiB && g.MemoryGiB <= float64(memory) {
			w.gpu = g // bf16 came with Ampere
		}
	}
	t := q.say("The GPU %s is not known here, so no layout and no speed of %s is computed for it. A layout that fits a known GPU with no more memory fits yours too; known are, by memory: %s.",
		"不认识 GPU %s,因此无法计算 %s 的并行配置和速度。能放进某个显存不比你的卡大的已知型号的配置,也放得进你的卡。已知型号按显存:%s。", strings.ToUpper(w.unknown), w.model.Name, strings.Join(known, ", "))
	switch {
	case memory == 0:
		w.gpu.Name = "NAME"
		return t + q.say(" Its memory is not said: name the largest of them that has no more, in `%s`.", "问题没有给出它的显存:在 `%s` 中填其中不比它大的最大的一种。", w.command(cmp.Or(w.gpus, w.perNode)))
	case w.gpu.Name == "":
		return t
	}
	return t + q.say(" For example, with %d GB: `%s` (its speeds and number types are not those of your GPU).", "例如 %d GB 的卡:`%s`(其中的速度和数值类型不是你的卡的)。", memory, w.command(cmp.Or(w.gpus, w.perNode)))
}

// tokensGiven matches the number of tokens of a training.
var tokensGiven = lazy.New(`(\d+(?:\.\d+)?) ?(trillion|tn?|billion|bn?|万亿|亿)[ -]?(?:个 ?)?tokens?\b`)

// tokensIn returns the number of tokens that a question wants to train on; 0 for none.
func tokensIn(text string) float64 {
	m := tokensGiven.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	unit := map[string]float64{"t": 1e12, "万亿": 1e12, "b": 1e9, "亿": 1e8}
	return n * cmp.Or(unit[m[2]], unit[m[2][:1]])
}

// given returns what the question says of the training, as Megatron's flags.
func (w wanted) given() []string {
	argv := recipes.Run{Type: w.numbers}.Number()
	if w.seq > 0 {
		n := strconv.Itoa(w.seq)
		argv = append(argv, "--seq-length", n, "--max-position-embeddings", n)
	}
	return argv
}

// layouts returns the layouts on so many GPUs, the cheapest first, without those that fit
// only by the lower estimate of the memory.
func (w wanted) layouts(gpus int) []rules.Option {
	r, _, _ := w.model.Find(w.gpu.Name, gpus, "")
	batch := cmp.Or(w.batch, r.Batch, recipes.UsualBatch)
	if w.batch == 0 { // a batch that nobody asked for must not rule out a number of GPUs
		batch = (batch + gpus - 1) / gpus * gpus
	}
	argv := append(append(w.model.Argv(megatron.Main), w.given()...), "--global-batch-size", strconv.Itoa(batch), "--micro-batch-size", "1")
	found, err := rules.Recommend(rules.Question{Argv: argv, Entry: w.model.Entry, GPUs: gpus, GPUsPerNode: w.perNode, GPU: w.gpu.Name})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(found.Options, func(o rules.Option) bool { return o.Tight })
}

// fewest returns the least number of GPUs, of those that people take, on which the model
// fits, and the layouts there; 0 for none.
func (w wanted) fewest() (int, []rules.Option) {
	const optimizer = 12 // bytes of Adam's state a parameter, kept on at least one GPU
	args, _ := megatron.Parse(megatron.Run{Entry: w.model.Entry, Argv: w.model.Argv(megatron.Main), WorldSize: 1, Arch: w.gpu.Arch})
	all, _ := args.Effective().Shape().Params()
	for n := 1; n <= largestCluster; n *= 2 {
		if all*optimizer > float64(n)*w.gpu.MemoryGiB*(1<<30) {
			continue // the search is slowest where nothing fits
		}
		if options := w.layouts(n); len(options) > 0 {
			return n, options
		}
	}
	return 0, nil
}

// tokensPerSecond returns the estimated speed of a layout on all its GPUs.
func (w wanted) tokensPerSecond(o rules.Option) float64 {
	argv := append(w.model.Argv(megatron.Main), w.given()...)
	seq := 0
	for i, word := range argv {
		if word == "--seq-length" { // the last one counts
			seq, _ = strconv.Atoi(argv[i+1])
		}
	}
	return float64(o.DP*o.MicroBatch*o.Microbatches*seq) / o.StepSeconds
}

// duration tells how long the tokens take with a layout; empty where nothing supports it.
func (w wanted) duration(q *question, o rules.Option, gpus int) string {
	if w.tokens == 0 || o.High == 0 {
		return ""
	}
	days := w.tokens / w.tokensPerSecond(o) / (24 * 60 * 60)
	return q.say("About %s days (%s to %s) for %[5]g billion tokens on %[4]d GPUs without pauses; saving, evaluation and restarts come on top.\n",
		"约 %s 天(%s 至 %s):%[4]d 张 GPU 不间断训练 %[6]g 亿 token;保存、评测和重启另计。\n",
		inWords(days), inWords(days*o.TFLOPs/o.High), inWords(days*o.TFLOPs/o.Low), gpus, w.tokens/1e9, w.tokens/1e8)
}

// inWords writes a number with three digits or, if it is larger, as a whole one.
func inWords(n float64) string {
	if n >= 100 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3g", n)
}

// command returns the command that tries all layouts.
func (w wanted) command(gpus int) string {
	s := fmt.Sprintf("megatron-ops recommend --model %s --gpu %s", w.model.Name, w.gpu.Name)
	if gpus < w.perNode {
		return s + fmt.Sprintf(" --nodes 1 --gpus-per-node %d", gpus)
	}
	return s + fmt.Sprintf(" --nodes %d", (gpus+w.perNode-1)/w.perNode)
}

// published tells of the published run that is nearest in size on this GPU, of the type that
// is asked for where there is one.
func published(q *question, w wanted, gpus int) string {
	var best *recipes.Run
	for i, r := range w.model.Runs {
		if r.GPU != w.gpu.Name {
			continue
		}
		nearer := best == nil || apart(r.GPUs, gpus) < apart(best.GPUs, gpus)
		if nearer || r.GPUs == best.GPUs && r.Type == cmp.Or(w.numbers, "bf16") {
			best = &w.model.Runs[i]
		}
	}
	if best == nil {
		return ""
	}
	t := q.say("Published for %d: %s, global batch %d, %s", "已发表的 %d 卡配置:%s,全局批 %d,%s", best.GPUs, best.Layout(), best.Batch, best.Type)
	if best.TFLOPS > 0 {
		t += q.say(", %.0f TFLOP/s a GPU", ",每卡 %.0f TFLOP/s", best.TFLOPS)
	}
	return t + q.say(" (%s).\n", "(%s)。\n", best.Source)
}

// apart returns by what factor two numbers differ.
func apart(a, b int) float64 { return float64(max(a, b)) / float64(max(1, min(a, b))) }
