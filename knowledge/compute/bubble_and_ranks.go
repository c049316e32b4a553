package compute

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// wholeStep matches questions for the bubble as a share of the whole step, not of the
// compute time.
var wholeStep = lazy.New(`\b(?:of|per) (?:the |a |each |every |my |our )*(?:whole |total |entire |full |overall )*(?:step|iteration|run` +
	`|wall[- ]?clock|training)(?: time)?\b|\b(?:whole|total|entire|overall) (?:step |iteration |run )?time\b` +
	`|\bidle\b|整个?(?:一?步|step|迭代|iteration)|总(?:时间|耗时|步时)|(?:单步|步|迭代|step|iteration) ?(?:时间|耗时|用时)|空闲|闲着`)

// percent formats a share as percent, with at most two decimals.
func percent(n float64) string {
	s := strings.TrimRight(fmt.Sprintf("%.2f", 100*n), "0")
	return strings.TrimSuffix(s, ".") + " %"
}

// bubble answers with the share of the pipeline bubble.
func bubble(q *question) string {
	c := q.cfg
	if !q.has("bubble", "气泡", "空泡") {
		return ""
	}
	for name, to := range map[string]*int{"p": &c.PP, "v": &c.VPP} { // as papers write it
		if n, ok := q.capture(`\b` + name + ` ?= ?(\d+)\b`); ok && *to == 0 {
			*to = n
		}
	}
	if c.PP < 2 {
		return ""
	}
	m := c.Accum
	if n, ok := q.capture(`\bm ?=? ?(\d+)\b`); m == 0 && ok {
		m = n
	}
	if dp := c.DP; m == 0 && c.GBS > 0 && c.MBS > 0 {
		if size, _ := c.product(); dp == 0 && c.World%size == 0 {
			dp = c.World / size
		}
		if dp > 0 && c.GBS%(c.MBS*dp) == 0 {
			m = c.GBS / (c.MBS * dp)
		}
	}
	if m == 0 && c.GBS == 0 {
		m = c.MBS // "microbatch 56 个"
	}
	v := orOne(c.VPP)
	if m == 0 {
		return batchesForBubble(q, c.PP, v)
	}
	chunks := fmt.Sprint(m)
	if v > 1 {
		chunks = fmt.Sprintf("(%d × %d)", m, v)
	}
	lost, work := c.PP-1, m*v
	ideal, whole := percent(float64(lost)/float64(work)), percent(float64(lost)/float64(work+lost))
	if wholeStep.MatchString(q.low) && !q.has("ideal", "理想") {
		return q.say("%[1]s of the whole step: bubble / (work + bubble) = %[3]d/(%[4]d + %[3]d), with work = micro batches × VPP = %[5]s. "+
			"Relative to the ideal compute time it is (PP − 1) / (micro batches × VPP) = %[3]d/%[4]d = %[2]s.",
			"占整步时间的 %[1]s:气泡 /(计算 + 气泡)= %[3]d/(%[4]d + %[3]d),计算 = 微批次数 × VPP = %[5]s。相对理想计算时间为 (PP − 1) / (微批次数 × VPP) = %[3]d/%[4]d = %[2]s。",
			whole, ideal, lost, work, chunks)
	}
	return q.say("%[1]s: the bubble is (PP − 1) / (micro batches × VPP) = %[3]d / %[5]s = %[3]d/%[4]d of the ideal compute time (%[2]s of the "+
		"whole step).",
		"%[1]s:流水线气泡 = (PP − 1) / (微批次数 × VPP) = %[3]d / %[5]s = %[3]d/%[4]d,相对理想计算时间(占整步的 %[2]s)。",
		ideal, whole, lost, work, chunks)
}

// boundOfBubble matches an upper limit of the bubble, in percent.
var boundOfBubble = lazy.New(`(?:below|under|less than|at most|no more than|within|<=?|≤|低于|小于|不超过|不到|控制在|以内|降到) ?(\d+(?:\.\d+)?) ?(?:%|percent|个百分点)` +
	`|(\d+(?:\.\d+)?) ?% ?(?:以下|以内|or less)`)

// batchesForBubble answers with the number of micro batches that keeps the bubble below
// the limit in the question, for pp stages with v virtual stages each.
func batchesForBubble(q *question, pp, v int) string {
	found := boundOfBubble.FindStringSubmatch(q.low)
	if found == nil {
		return ""
	}
	most, err := strconv.ParseFloat(found[1]+found[2], 64)
	if err != nil || most <= 0 || most >= 100 {
		return ""
	}
	enough := func(share float64) int {
		m := int(math.Ceil(share / (most * float64(v))))
		if v > 1 { // the interleaved schedule needs a multiple of PP
			m = (m + pp - 1) / pp * pp
		}
		return m
	}
	ideal, whole := enough(float64(pp-1)*100), enough(float64(pp-1)*(100-most))
	return q.say("At least %[1]d micro batches: the bubble is (PP − 1) / (micro batches × VPP) of the ideal compute time = %[2]d / (%[1]d × %[3]d) = %[4]s. "+
		"As a share of the whole step %[5]d are enough. Micro batches = global batch / (micro batch × DP).",
		"至少 %[1]d 个微批次：流水线气泡 = (PP − 1) / (微批次数 × VPP) = %[2]d / (%[1]d × %[3]d) = %[4]s，相对理想计算时间。"+
			"若按占整步时间的比例算，%[5]d 个就够。微批次数 = global batch / (micro batch × DP)。",
		ideal, pp-1, v, percent(float64(pp-1)/float64(ideal*v)), whole)
}

// rankPlace answers with the node and the local rank of a global rank.
func rankPlace(q *question) string {
	r, ok := q.capture(`\brank\s*(?:=|is|number|号|为)?\s*(\d+)(?:[^\d/.-]|\.?(?:\s|$))`, `全局 ?rank ?(?:为|是|=)? ?(\d+)`, `第? ?(\d+) ?号 ?rank`)
	c := q.cfg
	if c.PerNode == 0 && q.has("8-gpu", "dgx") {
		c.PerNode = 8
	}
	if !ok || c.PerNode == 0 || !placeAsked.MatchString(perNodeWord.ReplaceAllString(q.low, " ")) {
		return ""
	}
	return q.say("Global rank %[1]d is on node %[3]d (counted from 0, so the %[5]s node), local rank (GPU) %[4]d: %[1]d / %[2]d = %[3]d "+
		"remainder %[4]d.",
		"全局 rank %[1]d 在节点 %[3]d(从 0 数,即第 %[6]d 个节点),local rank(GPU)为 %[4]d:%[1]d / %[2]d = %[3]d 余 %[4]d。",
		r, c.PerNode, r/c.PerNode, r%c.PerNode, ordinal(r/c.PerNode+1), r/c.PerNode+1)
}

var (
	// perNodeWord matches words such as "per node", which belong to a number of GPUs.
	perNodeWord = lazy.New(`(?:per|each|every|a)[- ](?:node|machine|host|box|server)|(?:每|一|单)(?:个|台)?(?:节点|机器?)|\d ?卡机器?`)
	// placeAsked matches questions for the place of a rank.
	placeAsked = lazy.New(`\bnodes?\b|节点|\blocal|\bhost|\bwhere\b|\bwhich\b|\bwhat (?:machine|box|server)|\b(?:sits|lives|belongs|located` +
		`|runs on)\b|哪|几号|第几`)
)

// nodeIndex captures the index of a node, counted from 0.
const nodeIndex = `(?:slurm-nodeid|node[- ]?rank|node id|node|节点)\s*(?:=|is|号|为|:|number|index)?\s*(\d+)\b`

var (
	ranksAsked = lazy.New(`which (?:global )?ranks|what (?:global )?ranks|ranks? range|range of ranks|list (?:the )?(?:global )?ranks` +
		`|\branks? (?:are |is |do |does |that |which )?(?:hosted|placed|located|running|run|live|lives|sit|sits) (?:by` +
		`|on|at|in)|\branks (?:on|of) (?:the )?(?:\w+ )?(?:node|machine|host|box|server)\b|(?:哪些|哪几个|什么) ?(?:全局 ?)?rank` +
		`|rank ?(?:范围|有哪些|是哪些|从几到几)`)
	lastNode = lazy.New(`\blast (?:node|machine|host|box|server)|最后一?(?:个|台)`)
	nodeNth  = lazy.New(`\b(?:(first|second|third|fourth|fifth|sixth|seventh|eighth)|(\d+)(?:st|nd|rd|th)) node\b|第 ?(\d+) ?(?:个|台) ?(?:节点|机器?|node)`)
	nth      = map[string]int{"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8}
)

// ranksOfNode answers which global ranks a node runs.
func ranksOfNode(q *question) string {
	g := q.cfg.PerNode
	if g == 0 || !ranksAsked.MatchString(q.low) {
		return ""
	}
	n := -1
	if m := nodeNth.FindStringSubmatch(q.low); m != nil {
		n = nth[m[1]] - 1
		if n < 0 {
			n = firstCount(m[1:]) - 1
		}
		if q.has("from 0", "from zero", "zero-based", "0-based", "从 0", "从0", "从零") {
			n++
		}
	} else if w := q.cfg.World; w >= g && lastNode.MatchString(q.low) {
		n = w/g - 1
	} else if k, ok := q.capture(nodeIndex); ok {
		n = k
	}
	if n < 0 {
		return ""
	}
	return q.say("Global ranks %[1]d to %[2]d: node rank %[3]d (counted from 0) × %[4]d GPUs per node = %[1]d is its first.",
		"全局 rank %[1]d 到 %[2]d:节点序号 %[3]d(从 0 数)× 每节点 %[4]d 卡 = %[1]d 是该节点的第一个。", n*g, n*g+g-1, n, g)
}

// globalRank answers with the global rank of a node's local rank.
func globalRank(q *question) string {
	node, okN := q.capture(`第 ?(\d+) ?个? ?(?:节点|node)`, `(?:slurm-nodeid|node[- ]?rank|node id|node number|节点 ?rank|节点序号)\s*(?:=|is|号|为|:`+
		`|number)?\s*(\d+)`, `(?:node|(?:^|[^每])节点)\s*(?:=|is|号|为|:|number)?\s*(\d+)`)
	local, okL := q.capture(`(?:local(?:[- ]?rank)?|slurm-localid)\s*(?:=|is|为|:)?\s*(\d+)`, `(?:本地|本机|节点内) ?(?:的|第)? ?(?:rank|序号)? ?(\d+)`,
		`(?:local|本地) (?:gpu|card) (?:number )?(\d+)`, `\b(?:gpu|card) (?:number |no\.? ?|#)?(\d+) (?:on|of|in) (?:the )?(?:node|machine|host|box)`,
		`第 ?(\d+) ?(?:张|块|号) ?(?:卡|gpu)`)
	c := q.cfg
	if c.PerNode == 0 && c.World <= maxPerNode {
		c.PerNode = c.World // "node 4, local rank 6, 8 GPUs"
	}
	if !okN || !okL || c.PerNode == 0 {
		return ""
	}
	return q.say("%[4]d: global rank = node rank × GPUs per node + local rank = %[1]d × %[3]d + %[2]d = %[4]d.",
		"%[4]d:全局 rank = 节点序号 × 每节点卡数 + local rank = %[1]d × %[3]d + %[2]d = %[4]d。", node, local, c.PerNode, node*c.PerNode+local)
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}
