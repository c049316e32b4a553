package compute

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// An axis is a direction in which ranks are counted: neighbours along it are
// stride apart, and size of them make a group.
type axis struct {
	name         string
	size, stride int
	words        string // alternatives by which a question names it
}

// axes are the directions of a layout in the default order tp-cp-ep-dp-pp: TP
// varies fastest, PP slowest. The experts have their own grid over the same ranks.
// Source: megatron/core/parallel_state.py, RankGenerator and initialize_model_parallel.
func (c Config) axes() []axis {
	world := c.World
	size, _ := c.product()
	if world == 0 {
		world = size * one(c.DP)
	}
	if world%size != 0 {
		return nil
	}
	stage := world / one(c.PP)
	list := []axis{
		{"TP", one(c.TP), 1, `tp|tensor(?:[- ]model)?(?:[- ]parallel\w*)?|张量(?:并行)?`},
		{"CP", one(c.CP), one(c.TP), `cp|context(?:[- ]parallel\w*)?|上下文(?:并行)?`},
		{"DP", world / size, one(c.TP) * one(c.CP), `dp|data(?:[- ]parallel\w*)?|数据(?:并行)?`},
		{"PP", one(c.PP), stage, `pp|pipeline(?:[- ](?:model[- ])?parallel\w*)?|流水线?(?:并行)?`},
	}
	if etp := cmp.Or(c.ETP, one(c.TP)); c.EP > 1 && stage%(etp*c.EP) == 0 {
		list = append(list, axis{"EP", c.EP, etp, `ep|expert(?:[- ](?:model[- ])?parallel\w*)?|专家(?:并行)?`})
	}
	return list
}

// at is where a rank stands along the axis.
func (a axis) at(rank int) int { return rank / a.stride % a.size }

// group are the ranks that share every other axis with a rank.
func (a axis) group(rank int) []int {
	list := make([]int, a.size)
	for i := range list {
		list[i] = rank + (i-a.at(rank))*a.stride
	}
	return list
}

var (
	rankGiven    = lazy.New(`\brank ?(?:=|is|number|no\.?|号|为|#)? ?(\d+)\b|(?:^|[^\d])(\d+) ?号 ?(?:rank|卡)`)
	membersAsked = lazy.New(`\b(?:which|what|list|who|name|ranks|peers|neighbou?rs|members)\b|哪|谁|包含|成员|有什么|列出|都是|是什么|一起|同(?:一|属)`)
	countAsked   = lazy.New(`\b(?:how many|number of)\b|多少|几`)
	placeOf      = lazy.New(`\b(?:which|what|on|in|coordinates?)\b|哪|几|多少|第`)
)

// maxMembers is how many ranks of a group are listed.
const maxMembers = 64

// rankGroups answers which ranks share a group with one, where a rank stands in
// the layout, and how many groups there are.
func rankGroups(q *question) string {
	c := q.cfg
	if one(c.TP)*one(c.PP)*one(c.CP)*one(c.EP) == 1 || q.beside() || !q.has("group", "组", "rank", "stage", "阶段", "流水级") {
		return ""
	}
	axes := c.axes()
	if axes == nil {
		return ""
	}
	world := axes[3].stride * axes[3].size
	m := rankGiven.FindStringSubmatch(q.low)
	for _, a := range axes {
		named := compiled(`(?:^|[^a-z])(?:` + a.words + `)[- ]?(?:model[- ]|communication )?(?:(?:sub|process)?groups?|peers?|neighbou?rs?|通信组|通信域|组)`).MatchString(q.low)
		switch {
		case !named:
		case m != nil && membersAsked.MatchString(q.low):
			r := first(m)
			if r >= world || a.size > maxMembers {
				return ""
			}
			return q.say("Ranks %[1]s: the %[2]s group of rank %[3]d, %[4]d ranks with stride %[5]d in the default order tp-cp-ep-dp-pp (WORLD_SIZE %[6]d).",
				"rank %[1]s:rank %[3]d 的 %[2]s 组,共 %[4]d 个 rank,间隔 %[5]d(默认顺序 tp-cp-ep-dp-pp,WORLD_SIZE %[6]d)。",
				strings.Trim(strings.ReplaceAll(fmt.Sprint(a.group(r)), " ", ", "), "[]"), a.name, r, a.size, a.stride, world)
		case m == nil && a.name == "TP" && countAsked.MatchString(q.low) && c.PerNode > 0 && c.PerNode%a.size == 0 && c.World == 0 && perNodeTotal.MatchString(q.low):
			return q.say("%[1]d TP groups on each node: %[2]d GPUs / TP %[3]d = %[1]d.", "每个节点 %[1]d 个 TP 组:%[2]d 张 GPU / TP %[3]d = %[1]d。", c.PerNode/a.size, c.PerNode, a.size)
		case m == nil && countAsked.MatchString(q.low) && c.World > 0 && compiled(`(?:how many|number of) (?:\w+[- ])*groups\b|(?:多少|几) ?个? ?[\p{Han}a-z]* ?组`).MatchString(q.low):
			return q.say("%[1]d %[2]s groups: WORLD_SIZE %[3]d / %[2]s %[4]d = %[1]d, each of %[4]d ranks.", "%[1]d 个 %[2]s 组:WORLD_SIZE %[3]d / %[2]s %[4]d = %[1]d,每组 %[4]d 个 rank。", world/a.size, a.name, world, a.size)
		}
	}
	if m == nil || !placeOf.MatchString(q.low) {
		return ""
	}
	return q.rankPlaceIn(axes, first(m), world)
}

// rankPlaceIn answers with a rank's place along the axes that are asked for.
func (q *question) rankPlaceIn(axes []axis, r, world int) string {
	asked := slices.DeleteFunc(slices.Clone(axes), func(a axis) bool {
		return !compiled(`(?:^|[^a-z])(?:`+a.words+`)(?: ?(?:,|and|/|&|和|以及|与) ?(?:[tcdpe]p))*[- ]?(?:model[- ])?(?:rank|index|coordinate|stage|阶段|级|段|坐标|序号)`).MatchString(q.low) &&
			(a.name != "PP" || !compiled(`\bstages?\b(?: (?:is|does|holds?|has))?|哪个? ?(?:阶段|stage)|第几 ?个? ?(?:流水)?(?:阶段|stage|级|段)`).MatchString(q.low))
	})
	if len(asked) == 0 || r >= world {
		return ""
	}
	parts := make([]string, len(asked))
	for i, a := range asked {
		parts[i] = fmt.Sprintf("%s rank %d", a.name, a.at(r))
	}
	t := q.say("%[1]s: where global rank %[2]d stands, counted from 0, in the default order tp-cp-ep-dp-pp.", "%[1]s:全局 rank %[2]d 的位置,从 0 数,默认顺序 tp-cp-ep-dp-pp。", strings.Join(parts, ", "), r)
	if a := asked[0]; len(asked) == 1 {
		if a.name == "PP" {
			t = q.say("Pipeline stage (PP rank) %[1]d, counted from 0: rank %[2]d / %[3]d ranks per stage, which are WORLD_SIZE %[4]d / PP %[5]d.", "流水线阶段(PP rank)%[1]d(从 0 数):rank %[2]d / 每阶段 %[3]d 个 rank(WORLD_SIZE %[4]d / PP %[5]d)。", a.at(r), r, a.stride, world, a.size)
		} else {
			t += q.say(" (%[1]d / stride %[2]d) mod %[3]d = %[4]d.", "(%[1]d / 间隔 %[2]d) mod %[3]d = %[4]d。", r, a.stride, a.size, a.at(r))
		}
	}
	return t
}
