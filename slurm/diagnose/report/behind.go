package report

import (
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Behind is the ranks that the others of a hanging job wait for, and how that
// is known.
type Behind struct {
	Ranks []int  `json:"ranks"`
	Node  string `json:"node,omitempty"` // of the first of them
	// By is recorder, iterations, stacks or watchdog.
	By string `json:"by"`
	// Others is what the other ranks reached, such as an iteration.
	Others string `json:"others,omitempty"`
}

// Says names the ranks and how they are known to be behind.
func (b Behind) Says() lang.Text {
	list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(b.Ranks)), ", "), "[]")
	en, zh := "rank "+list, "rank "+list
	if len(b.Ranks) > 1 {
		en = "ranks " + list
	}
	if b.Node != "" {
		en += " (node " + b.Node + ")"
		zh += "（节点 " + b.Node + "）"
	}
	switch b.By {
	case "iterations":
		return said("Behind the others: "+en+"; they reached iteration "+b.Others+".", "落后的是 "+zh+"；其他 rank 已到第 "+b.Others+" 次迭代。")
	case "recorder":
		return said("Behind the others: "+en+", by the flight recorder never in "+b.Others+".", "落后的是 "+zh+"：flight recorder 显示它从未进入 "+b.Others+"。")
	case "stacks":
		return said("Apart from the others: "+en+", in "+b.Others+".", "与其他 rank 不同的是 "+zh+"，位于 "+b.Others+"。")
	}
	return said("Behind the others: "+en+", by the watchdogs' sequence numbers.", "落后的是 "+zh+"（依据 watchdog 的序号）。")
}
