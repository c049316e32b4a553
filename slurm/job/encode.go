package job

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
)

// Encode writes a specification as YAML, without the fields that were left out.
// Decode gives the same specification back.
func Encode(s Spec) []byte {
	var b strings.Builder
	encodeStruct(&b, reflect.ValueOf(s), "")
	return []byte(b.String())
}

func encodeStruct(b *strings.Builder, v reflect.Value, indent string) {
	for f, field := range v.Fields() {
		if field.IsZero() {
			continue
		}
		name := indent + jsonName(f) + ":"
		switch field.Kind() {
		case reflect.Struct:
			b.WriteString(name + "\n")
			encodeStruct(b, field, indent+"  ")
		case reflect.Map:
			if field.Len() == 0 {
				continue
			}
			b.WriteString(name + "\n")
			m := field.Interface().(map[string]string)
			for _, k := range sorted(m) {
				fmt.Fprintf(b, "%s  %s: %s\n", indent, scalar(k), scalar(m[k]))
			}
		case reflect.Slice:
			if field.Len() == 0 {
				continue
			}
			b.WriteString(name + "\n")
			for i := range field.Len() {
				fmt.Fprintf(b, "%s  - %s\n", indent, scalar(field.Index(i).String()))
			}
		case reflect.Pointer:
			fmt.Fprintf(b, "%s %v\n", name, field.Elem())
		default:
			fmt.Fprintf(b, "%s %s\n", name, scalar(field.String()))
		}
	}
}

// plainScalar matches values that need no quotes in YAML.
var plainScalar = lazy.New(`^[A-Za-z0-9_./+-][A-Za-z0-9_./+=@%^-]*$`)

// scalar writes a value so that YAML reads the same text back. A value that YAML
// could read as something else is double-quoted and escaped.
func scalar(s string) string {
	if plainScalar.MatchString(s) && !strings.HasPrefix(s, "-") && s[0] != '.' && !strings.EqualFold(s, "null") {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x100 && shellword.Invisible(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000 && shellword.Invisible(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		case shellword.Invisible(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
