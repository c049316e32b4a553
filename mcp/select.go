package mcp

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// Select returns the operations that a server offers, in the table's order.
// Without toolsets and tools these are the core operations. A toolset is one of
// the table's own, "default" for the core or "all" for every operation; tools
// adds single operations by name. readOnly then takes away whatever is not
// read, whether or not it was asked for by name.
func Select(table []ops.Op, toolsets, tools []string, readOnly bool) ([]ops.Op, error) {
	var known []string
	for _, o := range table {
		if !slices.Contains(known, string(o.Toolset)) {
			known = append(known, string(o.Toolset))
		}
	}
	for _, t := range toolsets {
		if t != "all" && t != "default" && !slices.Contains(known, t) {
			return nil, &ops.Error{
				Code: ops.BadInput, Field: "toolsets", Message: "there is no toolset " + t,
				Fix: "use some of all, default, " + strings.Join(known, ", "),
			}
		}
	}
	for _, t := range tools {
		if !slices.ContainsFunc(table, func(o ops.Op) bool { return o.Name == t }) {
			return nil, &ops.Error{
				Code: ops.BadInput, Field: "tools", Message: "there is no tool " + t,
				Fix: "use some of " + strings.Join(names(table), ", "),
			}
		}
	}
	if len(toolsets) == 0 && len(tools) == 0 {
		toolsets = []string{"default"}
	}
	var chosen []ops.Op
	for _, o := range table {
		asked := slices.Contains(tools, o.Name) || slices.Contains(toolsets, "all") ||
			slices.Contains(toolsets, string(o.Toolset)) || o.Core && slices.Contains(toolsets, "default")
		if asked && (!readOnly || o.Effect == ops.Read) {
			chosen = append(chosen, o)
		}
	}
	return chosen, nil
}

func names(table []ops.Op) []string {
	var ns []string
	for _, o := range table {
		ns = append(ns, o.Name)
	}
	return ns
}
