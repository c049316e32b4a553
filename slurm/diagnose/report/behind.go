package report

import (
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Behind names the ranks for which the others of a hanging job wait, and how the logs show that.
type Behind struct {
	Ranks []int  `json:"ranks"`
	Node  string `json:"node,omitempty"` // of the first rank
	// By is the source: recorder, iterations, stacks or watchdog.
	By string `json:"by"`
	// Others is how far the other ranks got, such as an iteration.
	Others string `json:"others,omitempty"`
}

// commaList is "0, 3, 5" for these numbers.
func commaList(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}

// Says names the ranks and the evidence.
func (b Behind) Says() lang.Text {
	ranks := commaList(b.Ranks)
	en, zh := "rank "+ranks, "rank "+ranks
	if len(b.Ranks) > 1 {
		en = "ranks " + ranks
	}
	if b.Node != "" {
		en += " (node " + b.Node + ")"
		zh += "（节点 " + b.Node + "）"
	}
	switch b.By {
	case "iterations":
		return said("Behind the others: "+en+"; they reached iteration "+b.Others+".", "落后的是 "+zh+"；其他 rank 已到第 "+b.Others+" 次迭代。")
	case "recorder":
		return said("Behind the others: "+en+", which according to the flight recorder never entered "+b.Others+".", "落后的是 "+zh+"：flight recorder 显示它从未进入 "+b.Others+"。")
	case "stacks":
		return said("Apart from the others: "+en+", in "+b.Others+".", "与其他 rank 不同的是 "+zh+"，位于 "+b.Others+"。")
	}
	return said("Behind the others: "+en+", by the watchdogs' sequence numbers.", "落后的是 "+zh+"（依据 watchdog 的序号）。")
}
