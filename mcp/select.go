package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/mark3labs/mcp-go/mcp"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
)

// extraDefaults are the operations that agents get by default besides the core ones,
// because people often ask for them.
var extraDefaults = []string{"lint", "metrics", "recommend", "import", "search"}

// selectFrom returns the operations that a server offers, in the table's order. Without
// toolsets and tools it returns the default ones. A toolset is one of the table's own,
// "default" for the default operations, or "all"; tools adds single operations by name.
// readOnly then removes all operations that write, even ones named in tools.
func selectFrom(table []ops.Op, toolsets, tools []string, readOnly bool) ([]ops.Op, error) {
	var known []string
	for _, o := range table {
		if !slices.Contains(known, string(o.Toolset)) {
			known = append(known, string(o.Toolset))
		}
	}
	for _, t := range toolsets {
		if t != "all" && t != "default" && !slices.Contains(known, t) {
			return nil, ops.InputError("toolsets",
				lang.Text{EN: "there is no toolset %s", ZH: "没有工具集 %s"}.With(t),
				lang.Text{EN: "use some of all, default, %s", ZH: "可用：all、default、%s"}.With(strings.Join(known, ", ")))
		}
	}
	for _, t := range tools {
		if !slices.ContainsFunc(table, func(o ops.Op) bool { return o.Name == t }) {
			return nil, ops.InputError("tools",
				lang.Text{EN: "there is no tool %s", ZH: "没有工具 %s"}.With(t),
				lang.Text{EN: "use some of %s", ZH: "可用：%s"}.With(strings.Join(names(table), ", ")))
		}
	}
	if len(toolsets) == 0 && len(tools) == 0 {
		toolsets = []string{"default"}
	}
	var chosen []ops.Op
	for _, o := range table {
		byDefault := o.Core || slices.Contains(extraDefaults, o.Name)
		asked := slices.Contains(tools, o.Name) || slices.Contains(toolsets, "all") ||
			slices.Contains(toolsets, string(o.Toolset)) || byDefault && slices.Contains(toolsets, "default")
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

// The headers with which an HTTP client chooses among the tools that a server may
// offer. Their names are those of GitHub's MCP server; their values are lists separated
// by commas, and "true".
const (
	headerToolsets = "X-MCP-Toolsets"
	headerTools    = "X-MCP-Tools"
	headerReadOnly = "X-MCP-Readonly"
)

// headerChoice returns the tools that a request's headers choose; nil: the headers
// choose none. They choose among what the configuration allows, which is every
// operation unless it names toolsets or tools.
func (s *Server) headerChoice(h http.Header) ([]string, error) {
	toolsets, tools := split(h.Get(headerToolsets)), split(h.Get(headerTools))
	readOnly, err := parseReadOnly(h.Get(headerReadOnly))
	if err != nil {
		return nil, err
	}
	if len(toolsets) == 0 && len(tools) == 0 {
		if !readOnly {
			return nil, nil
		}
		tools = names(s.offered)
	}
	chosen, err := selectFrom(s.selectable, toolsets, tools, readOnly)
	if err != nil {
		return nil, err
	}
	return append([]string{}, names(chosen)...), nil
}

// parseReadOnly reads the header that asks for tools that change nothing. A word that
// could mean that is not passed over.
func parseReadOnly(word string) (bool, error) {
	if word == "" {
		return false, nil
	}
	readOnly, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(word)))
	if err != nil {
		return false, ops.InputError(headerReadOnly,
			lang.Text{EN: "%s is %q, neither true nor false", ZH: "%s 的值是 %q，既不是 true 也不是 false"}.With(headerReadOnly, word),
			lang.Text{EN: "send true, or leave it out", ZH: "请发送 true，或去掉它"})
	}
	return readOnly, nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// offers reports whether a tool is among those of g's connection.
func (s *Server) offers(g Grant, tool string) bool {
	if g.Tools != nil {
		return slices.Contains(g.Tools, tool)
	}
	return slices.ContainsFunc(s.offered, func(o ops.Op) bool { return o.Name == tool })
}

// notOffered returns the error for calling an operation that is not among this server's
// tools: it says how to get the tool. The library would only say that there is no such
// tool.
func (s *Server) notOffered(ctx context.Context, _ any, message any) error {
	raw, _ := message.(json.RawMessage)
	if !bytes.Contains(raw, []byte(sdk.MethodToolsCall)) {
		return nil
	}
	var m struct {
		Method sdk.MCPMethod
		Params struct{ Name string }
	}
	if json.Unmarshal(raw, &m) != nil {
		return malformed(ctx, raw)
	}
	if m.Method != sdk.MethodToolsCall {
		return nil
	}
	o, known := operations.Lookup(m.Params.Name)
	if !known {
		fix := lang.Text{EN: "tools/list names the tools", ZH: "tools/list 会列出所有工具"}
		if m.Params.Name == "" {
			return protocolError(ctx, ops.InputError("name", lang.Text{EN: "is missing", ZH: "缺失"}, fix))
		}
		if near := operations.Nearest(m.Params.Name); near != "" {
			fix = ops.DidYouMean.With(near)
		}
		return protocolError(ctx, ops.InputError("name", lang.Text{EN: "there is no tool %q", ZH: "没有工具 %q"}.With(m.Params.Name), fix))
	}
	if slices.ContainsFunc(s.selectable, func(most ops.Op) bool { return most.Name == o.Name }) {
		return nil
	}
	e := &ops.Error{
		Code: ops.NotAllowed, Message: lang.Text{EN: "%s is not among the tools of this server", ZH: "此服务器的工具中没有 %s"}.With(o.Name),
		Fix: lang.Text{EN: "your person starts it with --toolsets default,%s", ZH: "请让用户以 --toolsets default,%s 启动它"}.With(o.Toolset),
	}
	if s.cfg.ReadOnly && o.Effect != ops.Read {
		e.Fix = lang.Text{EN: "it only reads: your person starts it without --read-only", ZH: "它只读：请让用户不带 --read-only 启动它"}
	}
	return protocolError(ctx, e)
}

// offerAll makes every tool that a header may choose callable.
func (s *Server) offerAll() error {
	if len(s.cfg.Toolsets) > 0 || len(s.cfg.Tools) > 0 {
		return nil
	}
	most, err := selectFrom(operations.All(), []string{"all"}, nil, s.cfg.ReadOnly)
	if err != nil {
		return err
	}
	s.selectable = most
	s.addTools(slices.DeleteFunc(slices.Clone(most), func(o ops.Op) bool { return s.offers(Grant{}, o.Name) }))
	return nil
}
