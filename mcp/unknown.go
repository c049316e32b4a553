package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	sdk "github.com/mark3labs/mcp-go/mcp"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// nothingThere returns the error for a resource, a prompt or a page of a listing that
// does not exist: it says what does. The library would only say that there is none.
func (s *Server) nothingThere(ctx context.Context, _ any, message any) error {
	raw, _ := message.(json.RawMessage)
	if bytes.Contains(raw, []byte(sdk.MethodToolsCall)) {
		return nil
	}
	var m struct {
		Method sdk.MCPMethod
		Params struct {
			Name, URI, Cursor, Level, ProtocolVersion string

			Meta map[string]any `json:"_meta"`
		}
	}
	if json.Unmarshal(raw, &m) != nil {
		return malformed(ctx, raw)
	}
	switch p := m.Params; m.Method {
	case sdk.MethodPromptsGet:
		if !slices.ContainsFunc(prompts, func(row promptRow) bool { return row.name == p.Name }) {
			return protocolError(ctx, ops.InputError("name", lang.Text{EN: "there is no prompt %q", ZH: "没有提示词 %q"}.With(p.Name),
				lang.Text{EN: "prompts/list names them", ZH: "prompts/list 会列出所有提示词"}))
		}
	case sdk.MethodResourcesRead:
		if !s.hasResource(p.URI) {
			e := ops.NotFoundError("uri", lang.Text{EN: "there is no resource %q", ZH: "没有资源 %q"}.With(p.URI),
				lang.Text{EN: "resources/list and resources/templates/list name them", ZH: "resources/list 与 resources/templates/list 会列出所有资源"})
			// The library has not read yet which version of the protocol the request is in.
			if version, _ := p.Meta[sdk.MetaKeyProtocolVersion].(string); sdk.IsModernProtocol(version) {
				e.Code = ops.BadInput
			}
			return protocolError(ctx, e)
		}
	case sdk.MethodToolsList, sdk.MethodPromptsList, sdk.MethodResourcesList, sdk.MethodResourcesTemplatesList:
		if p.Cursor != "" {
			return protocolError(ctx, ops.InputError("cursor", lang.Text{EN: "%q is no cursor of this listing, which has one page", ZH: "%q 不是此列表的游标：此列表只有一页"}.With(p.Cursor),
				lang.Text{EN: "leave cursor out: the answer is the whole list", ZH: "不带 cursor 即返回完整列表"}))
		}
	}
	return nil
}

// malformed says which part of a request has the wrong type. The library would name its
// own Go types.
func malformed(ctx context.Context, raw []byte) error {
	var m struct{ Params any }
	if json.Unmarshal(raw, &m) != nil {
		return nil // the library reports what is wrong with the message
	}
	params, ok := m.Params.(map[string]any)
	if !ok {
		return protocolError(ctx, ops.InputError("params", lang.Text{EN: "is not an object", ZH: "不是对象"}, lang.Text{EN: `send an object such as {"name": "value"}`, ZH: `请发送对象，例如 {"name": "value"}`}))
	}
	for _, name := range []string{"name", "uri", "cursor", "level", "protocolVersion"} {
		if _, ok := params[name].(string); !ok && params[name] != nil {
			return protocolError(ctx, ops.InputError(name, lang.Text{EN: "is not a string", ZH: "不是字符串"}, lang.Text{EN: "give a string", ZH: "请给出字符串"}))
		}
	}
	return nil
}

// hasResource reports whether a URI is a resource's, or has a template's form.
func (s *Server) hasResource(uri string) bool {
	if _, ok := s.sdk.ListResources()[uri]; ok {
		return true
	}
	return slices.ContainsFunc(s.forms, func(form *sdk.URITemplate) bool { return form.Regexp().MatchString(uri) })
}
