package mcp

import (
	"encoding/json"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp/shorten"
)

// outputSchema is o's output schema. No top-level field is required, because a refusal
// has only the field error. The fields that every answer may have are not described: the
// listing would say it once for each tool.
func outputSchema(o ops.Op) json.RawMessage {
	out := o.OutputSchema()
	if out.Type != "object" {
		return nil
	}
	oneLanguage(out)
	shortSpecs(out)
	for i, p := range out.Properties {
		if p.Name == "derived" {
			out.Properties[i].Schema = derivedSchema()
		}
	}
	out.Required = nil
	out.Values = nil
	str := func(words string) *ops.Schema { return &ops.Schema{Type: "string", Description: words} }
	out.Properties = append(out.Properties,
		ops.Property{Name: "notice", Schema: str("")},
		ops.Property{Name: shorten.CursorField, Schema: str("")},
		ops.Property{Name: "next", Schema: &ops.Schema{Type: "array", Items: &ops.Schema{
			Type:       "object",
			Properties: []ops.Property{{Name: "tool", Schema: str("")}, {Name: "arguments", Schema: &ops.Schema{Type: "object", Values: &ops.Schema{}}}},
		}}},
		ops.Property{Name: "error", Schema: &ops.Schema{Type: "object", Properties: []ops.Property{
			{Name: "code", Schema: str("")}, {Name: "field", Schema: str("")}, {Name: "message", Schema: str("")}, {Name: "fix", Schema: str("")},
		}}},
	)
	if o.Name == "plan" {
		out.Properties = append(out.Properties,
			ops.Property{Name: planField, Schema: str("handle that submit takes in place of the specification")},
			ops.Property{Name: tokenField, Schema: str("submit accepts this specification with it")})
	} else if o.Effect != ops.Read {
		out.Properties = append(out.Properties,
			ops.Property{Name: tokenField, Schema: str("confirms this call, once its person agreed")},
			ops.Property{Name: "question", Schema: str("what the person has to see")})
	}
	raw, err := out.MarshalJSON()
	if err != nil {
		panic("mcp: schema of " + o.Name + ": " + err.Error())
	}
	return raw
}

// shortSpecs replaces the schema of every job specification in an output by a reference
// to the resource that has it: it is longer than all else that the output holds.
func shortSpecs(s *ops.Schema) {
	if s == nil {
		return
	}
	if slices.ContainsFunc(s.Properties, func(p ops.Property) bool { return p.Name == "launcher_argv" }) {
		*s = ops.Schema{Type: "object", Nullable: s.Nullable, Description: "job specification, as in resource " + jobSchemaURI}
		return
	}
	shortSpecs(s.Items)
	shortSpecs(s.Values)
	for _, p := range s.Properties {
		shortSpecs(p.Schema)
	}
}

// oneLanguage turns the schema of every text in two languages into that of a string, as
// answers have it.
func oneLanguage(s *ops.Schema) {
	if s == nil {
		return
	}
	if len(s.Properties) == 2 && s.Properties[0].Name == "en" && s.Properties[1].Name == "zh" {
		*s = ops.Schema{Type: "string", Nullable: s.Nullable, Description: s.Description}
		return
	}
	oneLanguage(s.Items)
	oneLanguage(s.Values)
	for _, p := range s.Properties {
		oneLanguage(p.Schema)
	}
}
