package ops

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/tree"
)

// A Schema is the part of JSON Schema 2020-12 that the table of operations needs.
// Properties keep the order of the struct, because people and models read them from the
// top.
type Schema struct {
	// Type is empty where any JSON value is valid.
	Type        string
	Nullable    bool
	Description string
	Format      string
	Enum        []string
	Default     any
	Items       *Schema
	Properties  []Property
	Required    []string
	// Values describes the values of an object with arbitrary keys.
	Values *Schema
	// Closed rejects properties that are not listed.
	Closed bool
}

// A Property is a named part of an object.
type Property struct {
	Name   string
	Schema *Schema
}

// MarshalJSON writes s in the order type, description, constraints, parts.
func (s *Schema) MarshalJSON() ([]byte, error) {
	if s.Nullable && s.Type != "" {
		// Two branches are used instead of a list of types, because some clients map a
		// schema onto a dialect in which a type is one word.
		one := *s
		one.Nullable, one.Description = false, ""
		return tree.JSON(struct {
			Description string    `json:"description,omitempty"`
			AnyOf       []*Schema `json:"anyOf"`
		}{s.Description, []*Schema{&one, {Type: "null"}}})
	}
	doc := struct {
		Type        string      `json:"type,omitempty"`
		Description string      `json:"description,omitempty"`
		Format      string      `json:"format,omitempty"`
		Enum        []string    `json:"enum,omitempty"`
		Default     any         `json:"default,omitempty"`
		Items       *Schema     `json:"items,omitempty"`
		Properties  *properties `json:"properties,omitempty"`
		Required    []string    `json:"required,omitempty"`
		Others      any         `json:"additionalProperties,omitempty"`
	}{s.Type, s.Description, s.Format, s.Enum, s.Default, s.Items, nil, s.Required, nil}
	if s.Type == "object" && s.Values == nil && (len(s.Properties) > 0 || s.Closed) {
		doc.Properties = (*properties)(&s.Properties)
	}
	if s.Closed {
		doc.Others = false
	} else if s.Values != nil {
		doc.Others = s.Values
	}
	return tree.JSON(doc)
}

type properties []Property

func (ps properties) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, p := range ps {
		one, err := tree.JSON(map[string]*Schema{p.Name: p.Schema})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, one[1:len(one)-1]...)
	}
	return append(b, '}'), nil
}

// Property returns the schema of the property of that name, or nil.
func (s *Schema) Property(name string) *Schema {
	for _, p := range s.Properties {
		if p.Name == name {
			return p.Schema
		}
	}
	return nil
}

// InputSchema describes o's input struct completely. The schema is closed: an argument
// that it does not name is a mistake.
func (o Op) InputSchema() *Schema { return schemaOf(o.in, input) }

// OutputSchema describes o's output. The schema is open, so that a later version may
// add properties.
func (o Op) OutputSchema() *Schema { return schemaOf(o.out, output) }

// A direction says whether a schema describes an input or an output. A property of an
// input is required only where its tags say so.
type direction bool

// The directions.
const (
	input  direction = false
	output direction = true
)

// schemaOf returns the schema of a Go type, as encoding/json and the struct tags see
// it.
func schemaOf(t reflect.Type, d direction) *Schema {
	if t == reflect.TypeFor[time.Time]() {
		return &Schema{Type: "string", Format: "date-time"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		s := schemaOf(t.Elem(), d)
		s.Nullable = d == output && s.Type != ""
		return s
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer"}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Slice, reflect.Array:
		return &Schema{Type: "array", Items: schemaOf(t.Elem(), d)}
	case reflect.Map:
		return &Schema{Type: "object", Values: schemaOf(t.Elem(), d)}
	case reflect.Struct:
		return describeStruct(t, d)
	}
	return &Schema{}
}

func describeStruct(t reflect.Type, d direction) *Schema {
	s := &Schema{Type: "object", Closed: d == input}
	for _, f := range fieldsOf(t) {
		p := schemaOf(f.typ, d)
		p.Description = f.help.EN
		target := p
		if p.Type == "array" && p.Items.Type == "string" {
			target = p.Items
		}
		if target.Type == "string" {
			target.Enum = f.enum
		}
		if d == input && f.def != "" {
			p.Default = typedDefault(f.def, p.Type)
		}
		s.Properties = append(s.Properties, Property{Name: f.name, Schema: p})
		if d == input && f.required || d == output && !f.omit {
			s.Required = append(s.Required, f.name)
		}
	}
	return s
}

// typedDefault reads a tag's default as a value of the property's type. It returns nil
// where the schema cannot express the default.
func typedDefault(word, typ string) any {
	if typ == "string" {
		return word
	}
	var v any
	if json.Unmarshal([]byte(word), &v) != nil {
		return nil
	}
	switch v.(type) {
	case bool:
		if typ == "boolean" {
			return v
		}
	case float64:
		if typ == "integer" || typ == "number" {
			return json.Number(word)
		}
	}
	return nil
}

// A field is one property of an input or output struct.
type field struct {
	name     string
	index    []int
	typ      reflect.Type
	help     lang.Text
	enum     []string
	def      string
	required bool
	omit     bool // left out of the output when empty
}

var knownFields sync.Map // reflect.Type → []field

// fieldsOf lists the fields that encoding/json would read and write of struct t, in
// order, with embedded structs flattened.
func fieldsOf(t reflect.Type) []field {
	if all, ok := knownFields.Load(t); ok {
		return all.([]field)
	}
	var all []field
	for _, sf := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Anonymous || !sf.IsExported() || name == "-" {
			continue
		}
		name = cmp.Or(name, sf.Name)
		_, isArg := sf.Tag.Lookup("arg")
		_, optional := sf.Tag.Lookup("optional")
		_, required := sf.Tag.Lookup("required")
		f := field{
			name: name, index: sf.Index, typ: sf.Type, help: helpOf(sf.Tag), def: sf.Tag.Get("default"),
			required: required || isArg && !optional,
			omit:     strings.Contains(opts, "omitempty") || strings.Contains(opts, "omitzero"),
		}
		if e := sf.Tag.Get("enum"); e != "" {
			for w := range strings.SplitSeq(e, ",") {
				if w = strings.TrimSpace(w); w != "" && w != "${enum}" {
					f.enum = append(f.enum, w)
				}
			}
		}
		all = append(all, f)
	}
	knownFields.Store(t, all)
	return all
}

func helpOf(tag reflect.StructTag) lang.Text {
	return lang.Text{EN: tag.Get("help"), ZH: tag.Get("zh")}
}

// Only returns a schema with only the properties in names, in that order. The schema is
// open: the other properties are still allowed. It is for an agent's list of tools, in
// which every property costs tokens.
func (s *Schema) Only(names ...string) *Schema {
	short := *s
	short.Properties, short.Closed = nil, false
	for _, n := range names {
		if p := s.Property(n); p != nil {
			short.Properties = append(short.Properties, Property{Name: n, Schema: p})
		}
	}
	short.Required = slices.DeleteFunc(slices.Clone(s.Required), func(n string) bool { return !slices.Contains(names, n) })
	return &short
}
