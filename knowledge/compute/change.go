package compute

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A question often tells a run and then what would change in it: "after I
// double the nodes", "what if TP 2", "PP 从 4 改成 8", "两台机器坏了". What is asked
// for is the run after the change.

var (
	// what is changed comes behind one of these, and counts before what was said.
	turn = lazy.New(`\b(?:what if|what about|how about|if (?:i|we) (?:then |now |also |instead )?(?:switch|change|go|move|use|set|raise|increase|lower|reduce|add|had|have|took|take)|and with|but with|switch(?:ing)? to|chang(?:e|ing) (?:it |that )?to|after (?:adding|switching|changing|going))\b|如果|要是|假如|倘若|若是|改成|改为|换成|调成|调到|变成`)
	// fromTo finds a number and the one it becomes.
	fromTo = lazy.New(`(?:\b(nodes|gpus|machines|节点数?|卡数|机器数?)\s*)?(?:\b(?:goes|went|go|changes?|changed|moves?|moved|rises?|rose|grows?|grew|increases?|is|was|raised|bumped|set) )?(?:\b(?:up|down) )?(?:\bfrom|从|由)\s*(?:[a-z]+\s*)?\d+k?\s*(?:张|个|台|块)?\s*(?:卡|节点|机器?|gpus?|nodes?|层|路)?\s*,?\s*(?:\bup to\b|\bdown to\b|\bto\b|(?:改|变|换|加|升|增|扩|减|降|调|提|缩)[\p{Han}]{0,2}?(?:成|为|到)|到|->|→)\s*(?:[a-z]+\s*)?(\d+k?)`)
	// ofMany finds "two of our twenty nodes died".
	ofMany = lazy.New(`\b(\d+|one) of (?:the |our |my |these )?(\d+) (?:gpu |compute )?(?:nodes|machines|boxes|hosts|servers)(?: (?:have|has|are|is|just|suddenly))* (?:died|fail\w*|broke\w*|dropp?\w* out|down|gone|lost|drained|dead)\b`)
	// onTop finds "three more nodes on top of the 21", broken "20 台坏了 2 台".
	onTop  = lazy.New(`(\d+) (?:more|extra|additional|further|new) (?:gpu |compute )?(?:nodes|machines|boxes|hosts|servers) (?:on top of|in addition to|besides|to|next to) (?:the |our |my |these )?(?:old |present |existing )?(\d+)\b`)
	broken = lazy.New(`(\d+) ?(?:个|台) ?(?:节点|机器?)?(?:里面?|中|当中)? ?(?:有|又)? ?(坏|少|挂|掉|宕|下线|撤)(?:机|了|掉)* ?(\d+) ?(?:个|台)`)
	// lostOf finds "we lose two of our twenty nodes".
	lostOf = lazy.New(`\b(?:los(?:e|es|ing|t)|without|minus|drop(?:s|ped|ping)?|remov(?:e|es|ed|ing)|exclud(?:e|es|ed|ing)|drain(?:ed|ing)?) (\d+|one) of (?:the |our |my |these )?(\d+) (?:gpu |compute )?(?:nodes|machines|boxes|hosts|servers)\b`)
	// scaled finds how many times as much of what there will be; grown and shrunk how many more or fewer nodes.
	scaled = []struct {
		mul, div int
		re       *lazy.Pattern
	}{
		{2, 1, changes(`doubl(?:e|es|ed|ing)|twice|2x`, `翻倍|翻一倍|翻一番|加倍|增加一倍|扩大?一倍|多一倍|变成?两倍|变为两倍|双倍`)},
		{3, 1, changes(`tripl(?:e|es|ed|ing)|three times|3x`, `变成?三倍|变为三倍|三倍`)},
		{4, 1, changes(`quadrupl(?:e|es|ed|ing)|four times|4x`, `变成?四倍|变为四倍|四倍`)},
		{1, 2, changes(`halv(?:e|es|ed|ing)|half`, `减半|砍半|减一半|少一半|砍掉?一半|减少一半|只剩一半`)},
	}
	grown  = lazy.New(`(?:\b(?:add(?:ing)?|plus|gain(?:ing)?|get|with|have|had|got|were given|given)\s+)?(?:another|an extra|an additional|one more|(\d+) (?:more|extra|additional|further))\s*(?:gpu |compute )?(?:nodes?|machines?|boxe?s?|hosts?|servers?)\b|\b(?:add(?:ing)?|plus)\s+(\d+) (?:gpu |compute )?(?:nodes?|machines?|boxes|hosts|servers)\b|(?:再加|再增加|多加|增加|又加|加上|再来|再多)\s*(?:了)?\s*(\d+|一|两)\s*(?:个|台)?\s*(?:节点|机器?|台)`)
	shrunk = lazy.New(`\b(?:los(?:e|es|ing|t)|without|minus|drop(?:s|ped|ping)?|remov(?:e|es|ed|ing)|exclud(?:e|es|ed|ing)|tak(?:e|es|ing) away|drain(?:ed|ing)?|(?:give|gave|giving) back)\s+(?:(\d+)|one|a|an)\s*(?:of the |of them |of my |bad |broken )?(?:nodes?|machines?|box(?:es)?|hosts?|servers?)\b|\b(?:(\d+)|one|a) (?:of the |of my )?(?:nodes?|machines?|box(?:es)?|hosts?|servers?) (?:dies?|died|fails?|failed|breaks?|broke|drops? out|is down|are down|goes down|go down|went down|is gone|are gone|is lost|are lost)|(?:坏|少|挂|掉|去掉|减少|减|撤|撤掉|下线|剔除|踢掉|排除)(?:了|掉)?\s*(\d+|一|两)\s*(?:个|台)\s*(?:节点|机器?)?|(?:有)?(\d+|一|两)\s*(?:个|台)\s*(?:节点|机器?)?(?:坏|挂|掉线|宕机|故障|下线)`)
)

// things are what a change multiplies.
const (
	thingsEN = `nodes?|machines?|box(?:es)?|gpus?|cards?|cluster|world[- ]?size|ranks|tp|tensor[- ]parallel\w*|pp|pipeline[- ]parallel\w*|cp|context[- ]parallel\w*|gbs|global[- ]batch(?:[- ]size)?|mbs|micro[- ]?batch(?:[- ]size)?|batch(?: size)?|seq\w*|heads|layers|experts`
	thingsZH = `节点数?|机器数?|台数|卡数?|gpu 数?|集群|规模|world size|tp|张量并行度?|pp|流水线?并行度?|cp|上下文并行度?|gbs|全局批\p{Han}{0,3}|global batch|mbs|微批\p{Han}{0,2}|micro batch|batch|序列(?:长度)?|层数|专家数?`
)

func changes(en, zh string) *lazy.Pattern {
	return lazy.New(`\b(?:` + en + `)\s+(?:up )?(?:(?:the|my|our|as many|of|number of|count of|those|these|that many) ){0,4}(` + thingsEN + `)\b|\b(` + thingsEN + `)(?: count| number)? (?:is |are |were |was |gets? |has |have )?(?:been )?(?:` + en + `)\b|(` + thingsZH + `)\s*(?:都|再|也|数量|数)?\s*(?:` + zh + `)|(?:` + zh + `)的?\s*(` + thingsZH + `)`)
}

// after brings a folded question into the order in which it counts: what it
// changes before what it said.
func after(s string) string {
	s = ofMany.ReplaceAllString(s, "$2 nodes ; $1 nodes died")
	s = onTop.ReplaceAllString(s, "$2 nodes ; add $1 nodes")
	s = broken.ReplaceAllString(s, "$1 台 ; $2 $3 台")
	s = lostOf.ReplaceAllString(s, "$2 nodes ; lose $1 nodes")
	s = fromTo.ReplaceAllStringFunc(s, func(m string) string {
		g := fromTo.FindStringSubmatch(m)
		return " " + g[2] + " " + g[1]
	})
	if at := turn.FindStringIndex(s); at != nil && at[0] > 0 {
		return s[at[0]:] + " ; " + s[:at[0]]
	}
	return s
}

// A change is what a question does to the numbers that it gives.
type change struct {
	mul, div int
	thing    string
	nodes    int
}

// takeChanges reads the changes and takes them out of the question.
func takeChanges(said string) ([]change, string) {
	var list []change
	s, both := after(said), fromTo.MatchString(said)
	for _, by := range scaled {
		if both { // "double the nodes from 8 to 16" tells the numbers
			break
		}
		if m := by.re.FindStringSubmatchIndex(s); m != nil {
			thing := group(s, m)
			list = append(list, change{mul: by.mul, div: by.div, thing: thing})
			if compiled(`^\s*(?:of|=|:)?\s*\d`).MatchString(s[m[1]:]) { // "halve the batch 1024" gives it, too
				s = s[:m[0]] + thing + s[m[1]:]
			} else {
				s = blank(s, m[0], m[1])
			}
		}
	}
	for _, by := range []struct {
		re   *lazy.Pattern
		sign int
	}{{grown, 1}, {shrunk, -1}} {
		if m := by.re.FindStringSubmatchIndex(s); m != nil {
			n := small(group(s, m))
			switch group(s, m) {
			case "", "一":
				n = 1
			case "两":
				n = 2
			}
			list = append(list, change{nodes: by.sign * n})
			s = blank(s, m[0], m[1])
		}
	}
	return list, s
}

// group is the first group of a match that is there.
func group(s string, m []int) string {
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] >= 0 {
			return s[m[i]:m[i+1]]
		}
	}
	return ""
}

// apply changes the numbers.
func (ch change) apply(c *Config) {
	if ch.nodes != 0 {
		if c.Nodes == 0 || c.Nodes+ch.nodes < 1 {
			return
		}
		if c.World > 0 && c.PerNode == 0 && c.World%c.Nodes == 0 {
			c.PerNode = c.World / c.Nodes
		}
		c.Nodes += ch.nodes
		c.World = c.Nodes * c.PerNode
		return
	}
	list := []*int{&c.Nodes, &c.World}
	for _, t := range []struct {
		words []string
		to    *int
	}{
		{[]string{"tp", "tensor", "张量"}, &c.TP},
		{[]string{"pp", "pipeline", "流水"}, &c.PP},
		{[]string{"cp", "context", "上下文"}, &c.CP},
		{[]string{"mbs", "micro", "微批"}, &c.MBS},
		{[]string{"gbs", "global", "batch", "全局"}, &c.GBS},
		{[]string{"seq", "序列"}, &c.Seq},
		{[]string{"heads"}, &c.Heads},
		{[]string{"layer", "层"}, &c.Layers},
		{[]string{"expert", "专家"}, &c.Experts},
	} {
		if hasAny(ch.thing, t.words) {
			list = []*int{t.to}
			break
		}
	}
	for _, n := range list {
		if *n*ch.mul%ch.div == 0 && *n*ch.mul <= most {
			*n = *n * ch.mul / ch.div
		}
	}
}

func hasAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
