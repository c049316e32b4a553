package compute

import (
	"strconv"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A config holds what a question says about a run; zero means that it does not say.
type config struct {
	Nodes, PerNode, World                        int
	TP, PP, CP, EP, ETP, DP, VPP                 int
	MBS, GBS, Accum, Chunk                       int
	Heads, Groups, Layers, Hidden, Seq, Experts  int
	HeadDim, FFN                                 int
	Vocab                                        int
	Sockets, Cores, Threads                      int
	Arch                                         int
	GPU                                          string
	TorchFSDP, FSDP, Overlap, SP, Tensor, Contxt bool
	Huge                                         bool // a size or a number of GPUs is beyond any cluster
}

// A quantity is a number that a question may give, with the words before or after the
// number.
type quantity struct {
	to   func(*config) *int
	name string // regular expression of the words before the number
	unit string // regular expression of the words after the number; may be empty
}

var quantities = []quantity{
	{func(c *config) *int { return &c.ETP }, `expert-tensor-parallel-size|etp`, ``},
	{
		func(c *config) *int { return &c.EP }, `expert-model-parallel-size|expert[- ]parallel(?:ism)?(?: size)?|专家并行度?|专家(?:=)|\bexpert(?:=)|\bep`,
		`way expert|-way ep|路专家并行`,
	},
	{func(c *config) *int { return &c.TP }, `tensor-model-parallel-size|tensor[- ]model[- ]parallel(?:[- ]size)?|tensor[- ]parallel(?:ism)?(?:[- ]size)?` +
		`|张量(?:模型)?(?:并行)?度?|\btp(?:[- ]size)?|\btensor`, `[- ]way (?:tensor|tp)|路 ?(?:张量|tp)(?:并行)?`},
	{
		func(c *config) *int { return &c.VPP }, `num-virtual-stages-per-pipeline-rank|virtual[- ]pipeline(?:[- ](?:model[- ])?parallel)?(?:[- ]size)?` +
			`|virtual (?:stages|chunks)|interleav(?:e|ing)|交错(?:式)?(?:流水线?)?(?:调度)?|虚拟(?:流水线?)?(?:并行度?|阶段数?|级数?)?|\bvpp`,
		`virtual (?:pipeline )?(?:stages?|chunks?)|[- ]way interleav\w*|(?:model )?chunks|个 ?(?:虚拟` +
			`|交错)(?:流水线?)?的? ?(?:阶段|[段级块]|stages?|chunks?)|个 ?(?:model )?chunks?`,
	},
	{func(c *config) *int { return &c.Chunk }, `num-layers-per-virtual-(?:pipeline-)?stage|每个? ?(?:虚拟(?:流水线?)?(?:阶段|[段级块])?|vpp ?(?:阶段|[段级块])?|chunk) ?(?:里` +
		`|上)?(?:放|有|分|含|切)?`, `layers? (?:per|in each|in every|in one|each) (?:virtual \w+|vpp \w+|model chunk|chunk)`},
	{func(c *config) *int { return &c.PP }, `pipeline-model-parallel-size|pipeline[- ](?:model[- ])?parallel(?:ism)?(?:[- ]size)?|流水线?(?:并行)?度?` +
		`|\bpp(?:[- ]size)?|\bpipeline`, `[- ]way (?:pipeline|pp)|路 ?(?:流水|pp)线?(?:并行)?|pipeline (?:stages|parts|pieces|ranks|groups)|stages` +
		`|个流水线? ?(?:阶段|stages?)|[段级] ?流水线?`},
	{func(c *config) *int { return &c.CP }, `context-parallel-size|context[- ]parallel(?:ism)?(?:[- ]size)?|上下文(?:并行)?度?|\bcp(?:[- ]size)?` +
		`|\bcontext`, `[- ]way (?:context|cp)|路 ?(?:上下文|cp\b)(?:并行)?`},
	{
		func(c *config) *int { return &c.DP }, `data-parallel-size|data[- ]parallel(?:ism)?(?:[- ]size)?|数据(?:并行)?度?|\bdp(?:[- ]size)?|\bdata`,
		`[- ]way (?:data|dp)|路 ?(?:数据|dp)(?:并行)?|data[- ]parallel (?:ranks?|replicas?|groups?)|replicas|个副本|个 ?(?:dp` +
			`|数据并行)`,
	},
	{func(c *config) *int { return &c.MBS }, `micro-batch-size|micro[- ]?batch(?:[- ]size)?|\bmbs|微 ?(?:批|batch)(?:次)?(?:大小| size)?|\bmicro`, ``},
	{
		func(c *config) *int { return &c.GBS }, `global-batch-size|global[- ]?batch(?:[- ]size)?|\bgbs|全局 ?(?:批|batch)?(?:次)?(?:大小)?|\bbatch`,
		`samples(?: per step)?|(?:global )?batch\b|global\b|[个条] ?样本|(?:的|条的?)? ?全局 ?(?:批|batch)`,
	},
	{
		func(c *config) *int { return &c.Accum }, `(?:gradient )?accumulation(?: steps?)?|grad(?:ient)?[- ]accum\w*|accum(?:ulate)?(?: steps?)?` +
			`|num[- ]micro[- ]?batches|(?:number of )?microbatches|梯度累积(?:步数?)?|累[积加](?:步数?)?|微批次?数`,
		`(?:gradient |grad )?accum(?:ulation|ulate)?(?: steps?)?|micro[- ]?batches|(?:步|次)的?(?:梯度)?累[积加]|步梯度|个 ?(?:微批次?` +
			`|micro[- ]?batch(?:es)?|mb\b)`,
	},
	{
		func(c *config) *int { return &c.Groups }, `num-query-groups|(?:gqa|kv|query)[- ]groups|kv heads|kv 头数?|gqa`,
		`(?:个 ?)?(?:gqa |query |kv )?groups?|kv heads|个? ?kv ?头|个? ?kv ?组|组 ?kv|个?分组`,
	},
	{
		func(c *config) *int { return &c.Heads }, `num-attention-heads|attention heads|num heads|heads|注意力头数?|头数`,
		`(?:个 ?)?(?:attention |query )?heads?|个注意力头|个头|注意力头|头`,
	},
	{func(c *config) *int { return &c.Layers }, `num-layers|layers|层数|模型层数`, `(?:transformer )?layers?|-layer|个? ?transformer 层|层`},
	{func(c *config) *int { return &c.HeadDim }, `kv-channels|head[- ]dim(?:ension)?s?|每个?头的?维度|头维度`, ``},
	{func(c *config) *int { return &c.Vocab }, `vocab(?:ulary)?(?:[- ]size)?(?: for| with)?|词表(?:大小)?`, ``},
	{
		func(c *config) *int { return &c.FFN },
		`ffn(?:[- ]hidden)?(?:[- ](?:size|dim(?:ension)?|width))?|intermediate(?:[- ](?:size|dim))?|(?:前馈|ffn)(?:网络|层)?(?:的)?(?:隐藏层?)?(?:大小|维度|宽度)?`, ``,
	},
	{func(c *config) *int { return &c.Hidden }, `hidden-size|hidden(?:[- ](?:size|dim(?:ension)?))?|隐藏(?:层)?(?:大小|维度?|尺寸)?|\bd-model`, ``},
	{
		func(c *config) *int { return &c.Seq }, `seq-length|sequence[- ]length|seq[- ]?len(?:gth)?|序列(?:长度?)?|上下文长度|\bseq(?:uence)?|context length`,
		`(?:tokens? )?(?:of )?context\b(?: length| window)?|(?:的)?上下文(?:长度|窗口)?|tokens?|(?:的)?序列(?:长度)?` +
			`|(?:long )?sequences?`,
	},
	{func(c *config) *int { return &c.Experts }, `num-experts|experts|专家(?:数量?|个数)?`, `experts?|个? ?专家|个? ?expert`},
	{func(c *config) *int { return &c.Threads }, `threads per core|每核(?:心)?线程数?|超线程`, `threads? per core|threads each|(?:hyper-?)?threads`},
	{func(c *config) *int { return &c.Cores }, `cores per socket|每路|每颗|每个? ?cpu`, `(?:physical )?cores?(?: each| per (?:socket|cpu))?|个?(?:物理)?核心?`},
	{func(c *config) *int { return &c.Sockets }, `sockets`, `[- ]?sockets?|cpus|颗 ?cpu|[个块] ?(?:cpu|处理器)|[颗路](?: ?cpu| ?处理器)?`},
}

// number matches a count: 4096, 4k, 1m.
const number = `(\d+)(k\b|m\b)?`

// between matches the text between a name and its number.
const between = `\)?\s*(?:size|degree|度|大小|数|数量)?\s*(?:=+|:|\(|is|of|to|be|as|为|是|设为|设成|设置为|设置成|若为|若|设|定为|定|等于|取|想开|要开|开到|开|至少` +
	`|最少|at least|by|at|@|-|用|给|选)?\s*(?:=|:)?\s*\(?`

type quantityPattern struct{ before, behind *lazy.Pattern }

var quantityPatterns = sync.OnceValue(func() []quantityPattern {
	list := make([]quantityPattern, len(quantities))
	for i, q := range quantities {
		list[i].before = lazy.New(`(?:^|[^a-z])(?:--)?(?:` + q.name + `)` + between + number)
		if q.unit != "" {
			list[i].behind = lazy.New(`(?:^|[^0-9.a-z-])` + number + `\s*-?(?:` + q.unit + `)`)
		}
	}
	return list
})

var (
	gpuWord = `(?:gpus?|cards?|卡|显卡|加速卡|g?[abhlv]\d{2,3}s?|gb\d00s?)`
	perNode = lazy.New(`(\d+)\s*(?:x\s*)?(?:张|块|个)?\s*` + gpuWord + `?\s*(?:gpus?\s*)?(?:per|/|a|an|on each|on every|in each|each` +
		`|in every)\s*(?:node|host|machine|server|box)` +
		`|(\d+)\s*(?:张|块|个)?\s*` + gpuWord + `\s*each|(?:每|单)(?:个|台)?\s*(?:节点|机器|机|台|node)\s*(?:有|上|都|带|是|为|用|只有|跑)?\s*(\d+)\s*(?:张|块|个)?\s*(?:` +
		gpuWord + `|进程)?|每(?:个|台)\s*(\d+)\s*(?:张|块)?\s*卡|(\d+)[- ]?gpu\s*(?:nodes?|machines?|hosts?|box(?:es)?|servers?|机器?|节点)` +
		`|gpus-per-node[= ]+(\d+)|gres=gpu:(?:\w+:)?(\d+)|nproc(?:-per-node)?[=: ]+(\d+)|(?:一|每)(?:台|个节点|机|个机器` +
		`|台机器)\s*(?:有|是|带|装)?\s*(\d+)\s*(?:张|块|卡)|(\d+)\s*卡\s*(?:一|每|/)?\s*(?:机器?|节点|服务器|台)|(\d+)\s*(?:ranks?|processes` +
		`|procs?|workers) (?:per|a|on each|in each|each) (?:node|host|machine|box|server)|(\d+) (?:ranks?|processes` +
		`|procs?|workers) each\b|\beach (?:one |of them )?(?:has|have|with|having|holds?|carries|carrying|of)\s*(\d+)\b` +
		`|(?:^|[^\w])(\d+) (?:each\b|apiece\b|a piece\b)|(?:nodes|boxes|machines|hosts|servers)\s*(?:\(|with |of ` +
		`|having |at )\s*(\d+)\s*` + gpuWord + `|(?:nodes|boxes|machines|hosts|servers|node|box|machine|host|server) (?:holds?|have|has|carry|carries` +
		`|come with|comes with)\s*(\d+)\s*(?:` + gpuWord + `|[,;:?.)]|-|–|—|$)`)
	// nodesOf matches "nine 8-GPU nodes".
	nodesOf = lazy.New(`(\d+)\s*(?:x\s*|\s|of (?:the |our |these )?)(\d+)[- ]?(?:gpus?|cards?)[- ](?:nodes?|machines?|hosts?|servers?|box(?:es)?)\b`)
	nodesBy = lazy.New(`(\d+)\s*(?:个|台)?\s*(?:nodes?|机器|节点|机|台|machines?|hosts?|servers?|box(?:es)?)\s*(?:[x*,(]|of|with|w/|at|having` +
		`|各|每台|乘)?\s*(?:each\s*)?(?:having\s*)?(\d+)\s*(?:(?:张|块|个|x)?\s*` + gpuWord +
		`|for\b)|(\d+)\s*(?:nodes|machines|hosts|servers|boxes|节点|机|台)\s*(?:[x*]|of\b)\s*(\d+)\b`)
	times   = lazy.New(`(\d+)\s*[x*]\s*(\d+)\s*` + gpuWord)
	grid    = lazy.New(`(?:^|[^\dx.])(\d+)\s*x\s*(\d+)(?:[^\dx.]|$)`)
	nodeNum = lazy.New(`(\d+)\s*(?:个|台)?\s*(?:(?:compute|gpu|dgx|hgx|g?[abhlv]\d{2,3}|gb\d00)\s*)?(?:nodes?\b|节点|机器|台|machines?\b|hosts\b|servers?\b` +
		`|box(?:es)?\b)|(\d+)\s*(?:x\s*)?(?:dgx|hgx)\b|(?:--nodes|nnodes|-n)[= ]+(\d+)|(?:节点数|number of nodes)\s*(?:=|:` +
		`|is|为|是)?\s*(\d+)|(?:节点|机器)\s*(\d+)\s*(?:个|台)`)
	worldNum = lazy.New(`world(?:[- ]?size)?\s*(?:=|:|\(|is|of|为|是|等于)?\s*\(?(\d+)|(?:total|总共|一共|共|总)\s*(?:of\s*)?(\d+)\s*(?:张|块` +
		`|个)?\s*` + gpuWord + `|(\d+)\s*(?:张|块|个|x)?\s*` + gpuWord + `|(\d+)\s*(?:个)?\s*(?:ranks?\b|workers\b|procs\b|processes|进程|总卡数|个 rank)` +
		`|(?:总卡数|gpu 数|卡数|gpu count` +
		`|number of gpus|num gpus)\s*(?:=|:|is|为|是)?\s*(\d+)|\b(?:gpus?|cards|ranks|workers)\s*[=:]\s*(\d+)|(\d+)\s*张` +
		`|on (\d+)\b`)
	gpuName = lazy.New(`\b(?:g?[abhlv]\d{2,3}s?|gh200|gb\d00|h20|l4|t4|rtx ?(?:pro ?)?\d{4})\b|(hopper)|(ampere)|(blackwell)|(\bada\b` +
		`|lovelace)|(volta)|pre-(blackwell)`)
)

// fold returns a question in a uniform spelling: lower case, ASCII punctuation, hyphens
// instead of underscores, digits instead of number words.
func fold(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= '！' && r <= '～':
			r -= '！' - '!'
		case r == '×' || r == '✕':
			r = 'x'
		case r == '，' || r == '、':
			r = ','
		case r == '_':
			r = '-'
		case r == '　':
			r = ' '
		}
		b.WriteRune(r)
	}
	return spaced(numerals(strings.ReplaceAll(strings.ToLower(thousands(b.String())), "咋", "怎么")))
}

var (
	// glued matches sizes without a blank between them: tp8pp4, TP4xPP2.
	glued = lazy.New(`(\d)[x*]?((?:etp|tp|pp|cp|dp|ep|vpp|mbs|gbs)(?:[ =:]*\d))`)
	// ways matches "8-way tensor" and "8 路张量". Another number may follow.
	ways = lazy.New(`\b(\d+)[- ]way (tensor|pipeline|context|data|expert|tp|pp|cp|dp|ep)\b(?:[- ](?:model[- ])?parallel\w*)?` +
		`|(\d+) ?路 ?(张量|流水线?|上下文|数据|专家|tp|pp|cp\b|dp|ep)(?:并行)?`)
	// letters matches a layout in single letters: t4p2, t8p4c2.
	letters = lazy.New(`\bt(\d+)[-_/ ]?p(\d+)(?:[-_/ ]?c(\d+))?\b`)
	// racks matches a number of racks with the nodes in each.
	racks = lazy.New(`(\d+) ?(?:racks?|pods|个?机柜|个?机架)(?: of| with| x|,? each (?:with|holding|of)|, ?|每柜|每架|每个|各)* ?(\d+) ?(?:个` +
		`|台)?(?:nodes|boxes|machines|servers|hosts|节点|机器?|台)`)
	// alike matches sizes with the same value: "TP and PP both 4", tp=pp=2.
	alike = lazy.New(`\b(tp|pp|cp|dp|ep)(?: ?(?:and|&|\+|,|/|=|和|与|跟) ?(tp|pp|cp|dp|ep))(?: ?(?:and|&|\+|,|/|=|和|与|跟) ?(tp|pp|cp|dp` +
		`|ep))? ?(?:=|are |is |both|all|each|set to|of|at|都|均|各)(?: ?(?:=|are|is|set|both|all|each|to|of|at|设|是|为|成|了|开` +
		`|取|等于))* ?(\d+)`)
	// stepSamples matches the samples of a step, gpuSamples those of one GPU at a time.
	stepSamples = lazy.New(`(?:每|一|单)个?(?:步|step) ?(?:总共|一共|吃|处理|跑|用)? ?(\d+) ?(?:条|个样本|samples)`)
	gpuSamples  = lazy.New(`(?:单|每|一)(?:张|块|个)?(?:卡|gpu|rank)(?:每次|一次|上)?(?:处理|跑|吃|放|过)? ?(\d+) ?(?:条|个样本|samples)|\b(\d+) samples? (?:per` +
		`|on each|on every|on a|each) (?:gpu|rank|card)`)
	// legalBatch, microOnly and atLength match sizes with a shortened or moved name: "is 1000
	// a legal global batch", "2 micro,", "gbs 512 at 4096".
	legalBatch = lazy.New(`(\d+) (?:is |be )?(?:a |as |as the |as a )?(?:legal|valid|ok|good|possible|allowed` +
		`|fine) (?:global[- ]batch(?:[- ]size)?|gbs)\b`)
	// microCount matches words for the number of micro batches, whose number is not the size of one.
	microCount = lazy.New(`(?:微 ?批次?|micro[- ]?batch(?:es)?) ?(?:个数|数量?)|micro[- ]?batch count`)
	microsOf   = lazy.New(`\b(\d+) micro[- ]?batches of(?: size)? (\d+)\b`)
	microOnly  = lazy.New(`(\d+) micro( ?[,;.?]|$| and )`)
	atLength   = lazy.New(`((?:gbs|\bbatch(?:[- ]size)?)[ =:]*\d+) ?(?:at|x|by|\*|with) (\d{3,6}|\d+k)\b`)
	// perDash matches "8-gpu-per-node". socketsBy and coresBy match the number of sockets
	// after and before the cores: "56 cores per socket x2", "2 x 56 cores".
	perDash   = lazy.New(`(\d+)-(gpus?|cards?)-(?:per|a)-(node|machine|host|box|server)`)
	socketsBy = lazy.New(`(\d+) ?cores? (?:per|a) socket ?[x*,] ?(\d)\b`)
	coresBy   = lazy.New(`\b([124]) ?[x*] ?(\d+)[- ]?(?:physical )?cores?\b`)
	// askedSize matches a size in question, followed by the number of GPUs: "DP: 64 卡".
	askedSize = lazy.New(`((?:\bdp|data[- ]parallel\w*|数据并行度?)\s*)(?:[:?]|\b(?:at|on|for|with|in|using|over)\b) ?(\d+ ?(?:张|块|个)? ?(?:卡|gpus?\b|cards))`)
	// thousandsComma matches a length or a batch with a comma: 4,096 tokens.
	thousandsComma = lazy.New(`(?i)((?:gbs|batch|size|seq\w*|length|hidden|vocab\w*|词表|序列|长度)\D{0,8})([1-9]\d{0,2}),(\d{3})\b` +
		`|\b([1-9]\d{0,2}),(\d{3})( (?:tokens|samples|sequences|global|gpus|cards|steps|iterations)\b)`)
)

// inPercent matches a percentage, which is no size: "pipeline parallel is 30% faster".
var inPercent = lazy.New(`\d+(?:\.\d+)? ?(?:%(?:[^\w]|$)|percent\b|个百分点)`)

// halfOf matches half of a number of things.
var halfOf = lazy.New(`\b(?:only )?half (?:of )?(?:the |our |my |these )?(\d+)\b|(\d+)( ?[个台张]?(?:卡|节点|机器))(?:的)?(?:一半|里的?一半|中的?一半)`)

// spaced rewrites short and glued forms of sizes as "name=number" or separate words, and
// replaces a half of a number by the result.
func spaced(s string) string {
	s = rewrite(halfOf, s, func(g []string) string {
		n := parseCount(g[1] + g[2])
		if n%2 != 0 {
			return g[0]
		}
		return strconv.Itoa(n/2) + g[3]
	})
	s = rewrite(letters, s, func(g []string) string {
		m := "tp=" + g[1] + " pp=" + g[2]
		if g[3] != "" {
			m += " cp=" + g[3]
		}
		return m
	})
	s = rewrite(racks, s, func(g []string) string {
		return strconv.Itoa(parseCount(g[1])*parseCount(g[2])) + " nodes"
	})
	s = askedSize.ReplaceAllString(s, "$1 ; $2")
	s = perDash.ReplaceAllString(s, "$1 $2 per $3")
	s = socketsBy.ReplaceAllString(s, "$1 cores per socket ; $2 sockets ; ")
	s = coresBy.ReplaceAllString(s, "$1 sockets ; $2 cores")
	s = legalBatch.ReplaceAllString(s, " gbs=$1 ; ")
	s = microCount.ReplaceAllString(microsOf.ReplaceAllString(s, " num-micro-batches=$1 ; mbs=$2 "), " num-micro-batches ")
	s = microOnly.ReplaceAllString(s, " mbs=$1 ; $2")
	s = atLength.ReplaceAllString(s, "$1 ; seq=$2 ")
	s = stepSamples.ReplaceAllString(gpuSamples.ReplaceAllString(s, " mbs=$1$2 ; "), " gbs=$1 ; ")
	s = rewrite(alike, s, func(g []string) string {
		sizes := ""
		for _, size := range g[1:4] {
			if size != "" {
				sizes += " " + size + "=" + g[4]
			}
		}
		return sizes + " ; "
	})
	s = ways.ReplaceAllString(s, " $2$4=$1$3 ; ")
	for range 3 {
		s = glued.ReplaceAllString(s, "$1 $2")
	}
	return s
}

// thousands removes the comma between the thousands of a number.
func thousands(s string) string { return thousandsComma.ReplaceAllString(s, "$1$2$3$4$5$6") }

// expertData matches the expert data-parallel size, which is computed and never given.
var expertData = lazy.New(`expert[- ]data[- ]parallel\w*|专家 ?数据并行度?`)

// productMessage matches a product of sizes in the form of Megatron's assertions.
var productMessage = lazy.New(`(?:expert|tensor|context)-(?:tensor-)?(?:and-)?model-(?:and-)?pipeline-parallel[- ]?(?:size)?\s*\(?=?\s*\d*\)?`)

// readConfig reads what a folded question says about a run.
func readConfig(whole string) config {
	s := productMessage.ReplaceAllString(expertData.ReplaceAllString(whole, "edp"), " ")
	var c config
	if strings.ContainsAny(s, "0123456789") {
		s = c.readQuantities(withoutOtherFlags(s))
	}
	c.readImplied(s)
	c.readGPU(whole)
	return c
}

// withoutOtherFlags cuts out Megatron's flags whose names end like that of a quantity, such as
// --recompute-num-layers.
func withoutOtherFlags(s string) string {
	for _, q := range sizeFlags {
		s = compiled(`--[a-z-]+-`+strings.TrimPrefix(q.flag, "--")+`[= ]+\S+`).ReplaceAllString(s, " ; ")
	}
	return s
}

// readQuantities reads the quantities. It returns the text without those that it found by
// name.
func (c *config) readQuantities(s string) string {
	all := quantityPatterns()
	for i, q := range quantities {
		for _, re := range []*lazy.Pattern{all[i].before, all[i].behind} {
			if re == nil {
				continue
			}
			for *q.to(c) == 0 {
				m := re.FindStringSubmatchIndex(s)
				if m == nil {
					break
				}
				n := value(s, m)
				if most := c.most(q.to(c)); n > most {
					c.Huge, n = c.Huge || q.to(c) != &c.Vocab && !strings.Contains(s, "token"), 0 // a batch may be counted in tokens
				}
				*q.to(c) = n // after 0 the loop looks for the next
				s = cutOut(s, m[0], m[1])
			}
		}
	}
	if c.CP > maxContextParallel && c.Seq == 0 { // "context 8192" is a length
		c.Seq, c.CP = c.CP, 0
	}
	if c.CP > maxNumber {
		c.Huge, c.CP = true, 0
	}
	c.readNodes(s)
	return s
}

var (
	dgx = lazy.New(`\b(?:dgx|hgx)\b`)
	// oneNode matches that there is a single node. nodesAsked matches questions for the
	// number of nodes.
	oneNode = lazy.New(`\b(?:single|one|1)[- ](?:(?:dgx|hgx|gpu|h\d00|a\d00|\d+[- ]gpus?|\d+ ?卡) )*(?:;|dgx|hgx|node|machine|box|host` +
		`|server)|\bon (?:a|an|my|this|the) (?:single )?(?:;|dgx|hgx|node|machine|box|host|server)|单机|单台|单节点|一台|1 ?台` +
		`|一个节点|一机`)
	nodesAsked = lazy.New(`how many (?:dgx |gpu |such |of )*(?:nodes|machines|boxes|hosts|servers)|number of (?:nodes|machines|boxes` +
		`|hosts|servers)|几 ?[台机]|多少 ?[台机]|几个(?:节点|机器)|多少个?(?:节点|机器)|how many dgx`)
	leftOver = lazy.New(`(?:^|[^\d.,:%-])(\d+)[- ]?(?:x )?(tp|pp|cp|dp|ep)\b(?: ?[,;.)]|$| (?:and|with|ranks?|groups?|on|at|for|over)\b)`)
	bareStep = lazy.New(`(\d+)\s*(?:accum\w*\s*)?(?:steps?\b|步|次|times\b)`)
)

// readImplied reads what a question only implies: the GPUs of a DGX, a single node, a size
// before its name ("96 dp"), steps that can only be accumulation steps.
func (c *config) readImplied(s string) {
	if c.PerNode == 0 && dgx.MatchString(s) {
		c.PerNode = 8
	}
	if c.Nodes == 0 && c.World == 0 && c.DP == 0 && c.PerNode > 0 && oneNode.MatchString(s) && !nodesAsked.MatchString(s) {
		c.Nodes = 1
	}
	if c.World == 0 && c.Nodes > 0 {
		c.World = c.Nodes * c.PerNode
	}
	for _, m := range leftOver.FindAllStringSubmatch(s, -1) {
		if to := map[string]*int{"tp": &c.TP, "pp": &c.PP, "cp": &c.CP, "dp": &c.DP, "ep": &c.EP}[m[2]]; *to == 0 {
			*to = parseCount(m[1])
		}
	}
	if m := bareStep.FindStringSubmatch(s); m != nil && c.Accum == 0 && c.GBS == 0 && c.MBS > 0 && c.DP+c.World > 0 {
		c.Accum = parseCount(m[1])
	}
}

// maxContextParallel is the largest plausible context-parallel size. A larger number after
// "context" is a sequence length.
const maxContextParallel = 512

// maxPerNode is the largest plausible number of GPUs of a node.
const maxPerNode = 16

// maxNumber is the largest accepted number, so that no product of sizes overflows. A
// larger number counts as not given.
const maxNumber = 1 << 20

// maxLength is the largest accepted length of a sequence.
const maxLength = 1 << 26

// most returns the largest accepted number of a quantity. A larger one is no size that is read.
func (c *config) most(to *int) int {
	if to == &c.Seq || to == &c.CP { // a length may follow "context"
		return maxLength
	}
	return maxNumber
}

// value returns the number of a match of number; k means 1024 and m 1024². A number with more
// digits than any size counts as maxValue.
func value(s string, m []int) int {
	n, err := strconv.Atoi(s[m[2]:m[3]])
	if err != nil || n > maxValue {
		return maxValue
	}
	if m[4] >= 0 {
		n *= 1024
		if s[m[4]] == 'm' {
			n *= 1024
		}
	}
	return n
}

// maxValue is beyond every accepted number. Its product with 1024² does not overflow.
const maxValue = 1 << 40

// cutOut removes a part of the text, so that its numbers are not read again.
func cutOut(s string, from, to int) string { return s[:from] + " ; " + s[to:] }

// firstCount returns the first non-empty group of a match as a count.
func firstCount(m []string) int {
	for _, g := range m[1:] {
		if g != "" {
			return parseCount(g)
		}
	}
	return 0
}

// parseCount parses a count. A count above maxNumber is treated as not given.
func parseCount(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n > maxNumber {
		return 0
	}
	return n
}
