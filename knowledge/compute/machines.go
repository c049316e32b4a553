package compute

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// consumerGPU matches GPUs whose name is a number.
var consumerGPU = lazy.New(`\b(?:rtx ?)?(?:[345]0[5-9]0|20[5-8]0)(?:ti|d)?\b`)

// readNodes reads the number of nodes, of GPUs per node and of all GPUs.
func (c *config) readNodes(s string) {
	s = consumerGPU.ReplaceAllString(s, " gpu ")
	if m := nodesOf.FindStringSubmatchIndex(s); m != nil {
		c.Nodes, c.PerNode = c.count(s[m[2]:m[3]]), c.count(s[m[4]:m[5]])
		s = cutOut(s, m[0], m[1])
	}
	if m := nodesBy.FindStringSubmatchIndex(s); m != nil && c.Nodes == 0 && !strings.Contains(s[m[0]:m[1]], "total") {
		if m[2] < 0 { // "3 nodes x 8"
			copy(m[2:6], m[6:10])
		}
		c.Nodes, c.PerNode = c.count(s[m[2]:m[3]]), c.count(s[m[4]:m[5]])
		if n := c.PerNode; n > maxPerNode && c.Nodes > 0 && n%c.Nodes == 0 && !compiled(`each|per|每|各|[x*]`).MatchString(s[m[0]:m[1]]) {
			c.World, c.PerNode = n, n/c.Nodes // "8 机 64 卡" gives the total
		}
		s = cutOut(s, m[0], m[1])
	}
	if m := perNode.FindStringSubmatchIndex(s); m != nil && c.PerNode == 0 {
		c.PerNode = c.firstCount(perNode.FindStringSubmatch(s))
		s = cutOut(s, m[0], m[1])
	}
	if m := times.FindStringSubmatchIndex(s); m != nil && c.Nodes == 0 && c.PerNode == 0 {
		c.Nodes, c.PerNode = c.count(s[m[2]:m[3]]), c.count(s[m[4]:m[5]])
		s = cutOut(s, m[0], m[1])
	}
	if m := grid.FindStringSubmatch(s); m != nil && c.Nodes == 0 && c.PerNode == 0 && c.TP+c.PP+c.CP > 0 {
		c.Nodes, c.PerNode = c.count(m[1]), c.count(m[2]) // "an 8x8 cluster"
	}
	if m := nodeNum.FindStringSubmatchIndex(s); m != nil && c.Nodes == 0 {
		c.Nodes = c.firstCount(nodeNum.FindStringSubmatch(s))
		s = cutOut(s, m[0], m[1])
	}
	if m := worldNum.FindStringSubmatch(s); m != nil {
		c.World = c.firstCount(m)
	}
}

// count is parseCount for a number of machines or of GPUs. It marks one beyond any cluster.
func (c *config) count(digits string) int {
	n := parseCount(digits)
	c.Huge = c.Huge || n == 0 && strings.Trim(digits, "0") != ""
	return n
}

// firstCount is count for the first group of a match that is not empty.
func (c *config) firstCount(m []string) int {
	i := slices.IndexFunc(m[1:], func(g string) bool { return g != "" })
	if i < 0 {
		return 0
	}
	return c.count(m[1+i])
}

// moved matches a move from one GPU to another and captures the new one.
var moved = lazy.New(`(?:from|从)[^.;?]{0,24}?(?:\bto\b|到|换成|迁移?到?|升级到?)(.*)`)

func (c *config) readGPU(whole string) {
	named := whole
	if to := moved.FindStringSubmatch(whole); to != nil && gpuName.MatchString(to[1]) {
		named = to[1]
	}
	if m := gpuName.FindStringSubmatch(named); m != nil {
		c.GPU = m[0]
		switch {
		case m[1] != "":
			c.Arch = 9
		case m[2] != "", m[4] != "":
			c.Arch = 8
		case m[3] != "" || m[6] != "":
			c.Arch = 10
			if strings.Contains(whole, "pre-blackwell") {
				c.Arch = 9
			}
		case m[5] != "":
			c.Arch = 7
		default:
			if a, ok := megatron.GPUArch(strings.TrimSuffix(m[0], "s")); ok {
				c.Arch = a
			} else if a, ok := megatron.GPUArch(m[0]); ok {
				c.Arch = a
			} else if strings.HasPrefix(m[0], "a800") {
				c.Arch = 8
			} else if strings.Contains(m[0], "b") {
				c.Arch = 10
			}
		}
		if c.Arch == 0 && strings.Contains(whole, "blackwell") && !strings.Contains(whole, "pre-blackwell") {
			c.Arch = 10
		}
	}
	has := (&question{low: whole}).has
	c.TorchFSDP = has("torch-fsdp", "fsdp2", "torch fsdp")
	without := compiled(`(?:no|non|not|without|w/o|非|不用|没有?用?|没开|不开|不是|未用|未开|无)[- ]*(?:using |use )?(?:(?:megatron|torch)[- ])?fsdp`).MatchString(whole)
	c.FSDP = has("fsdp") && !without
	c.TorchFSDP = c.TorchFSDP && c.FSDP
	c.Overlap = has("overlap-moe-expert-parallel-comm") ||
		has("overlap", "重叠") && has("moe", "expert", "专家") && !has("no overlap", "without overlap", "不重叠")
	c.SP = has("sequence-parallel", "sequence parallel", "序列并行") && !withoutSP.MatchString(whole)
	c.Tensor = c.TP > 1 || c.TP == 0 && has("tensor model parallel", "tensor parallel", "tp>1", "tp > 1", "张量并行")
	c.Contxt = c.CP > 1 || c.CP == 0 && has("cp>1", "cp > 1")
}
