package job

import (
	"reflect"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Field documents one field of the specification.
type Field struct {
	Name    string // path, such as container.image
	Type    string // string, integer, boolean, list or map
	Doc     lang.Text
	Example string // in YAML
	Default string
}

// Fields lists the fields of the specification, in the order of Spec. The documents, the
// answers about fields and the hints of MCP use this list.
func Fields() []Field { return fieldsOf(reflect.TypeFor[Spec](), "") }

func fieldsOf(t reflect.Type, prefix string) []Field {
	var fs []Field
	for f := range t.Fields() {
		name := prefix + jsonName(f)
		if f.Type.Kind() == reflect.Struct {
			fs = append(fs, fieldsOf(f.Type, name+".")...)
			continue
		}
		fs = append(fs, Field{Name: name, Type: typeWord(f.Type), Doc: docOf(f), Example: f.Tag.Get("ex"), Default: f.Tag.Get("def")})
	}
	return fs
}

func docOf(f reflect.StructField) lang.Text {
	return lang.Text{EN: f.Tag.Get("help"), ZH: f.Tag.Get("zh")}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeWord(t.Elem())
	case reflect.Int:
		return "integer"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "map"
	}
	return "string"
}

// enums lists the allowed words of each field that takes one of a few words.
var enums = map[string][]string{
	"gpu_request":       {"gpus-per-node", "gres", "gpus"},
	"hint":              {"compute_bound", "memory_bound", "multithread", "nomultithread"},
	"launcher":          {UV, Python, Accelerate, Custom},
	"rdzv.backend":      {"static", "c10d"},
	"container.runtime": {NoContainer, Pyxis, Enroot, Singularity, Apptainer, Docker},
}

// Schema returns the JSON schema of a specification. Its descriptions are in English.
func Schema() map[string]any { return schemaOf(reflect.TypeFor[Spec](), "") }

func schemaOf(t reflect.Type, prefix string) map[string]any {
	props := map[string]any{}
	for f := range t.Fields() {
		name := jsonName(f)
		var p map[string]any
		if f.Type.Kind() == reflect.Struct {
			p = schemaOf(f.Type, prefix+name+".")
		} else {
			p = map[string]any{}
			switch w := typeWord(f.Type); w {
			case "list":
				p["type"], p["items"] = "array", map[string]any{"type": "string"}
				if _, pairs := f.Tag.Lookup("pairs"); pairs {
					p["items"] = map[string]any{"type": []string{"object", "string"}}
				}
			case "map":
				p["type"], p["additionalProperties"] = "object", map[string]any{"type": "string"}
			default:
				p["type"] = w
			}
		}
		p["description"] = docOf(f).EN
		if d := f.Tag.Get("def"); d != "" {
			p["description"] = docOf(f).EN + " (default " + d + ")"
		}
		if words := enums[prefix+name]; words != nil {
			p["enum"] = words
		}
		props[name] = p
	}
	return map[string]any{"type": "object", "properties": props, "additionalProperties": false}
}
