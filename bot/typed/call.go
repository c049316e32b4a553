package typed

import (
	"reflect"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// Call is a call as it was typed: what a confirmation keeps, since words
// may hold more than the input's JSON does.
type Call struct {
	Op     string   `json:"op"`
	Words  []string `json:"words,omitempty"`
	Blocks []string `json:"blocks,omitempty"`
	Rest   string   `json:"rest,omitempty"`
	// Key names the submission that may come of it.
	Key   string `json:"key"`
	Share bool   `json:"share,omitempty"`
	JSON  bool   `json:"json,omitempty"`
	// Page is which page of a long answer is meant, from 1.
	Page    int    `json:"page,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// Note says what a button has changed, for whoever says yes to it.
	Note []string `json:"note,omitempty"`
	// Then is a command that follows once this call has gone through.
	Then string `json:"then,omitempty"`
	// Longer is the job, as cluster/id, that the submitted one waits for.
	Longer string `json:"longer,omitempty"`
}

// Fill makes an operation's input of what was typed: the words as flags, and a
// code block as the specification, or as part of the question.
func Fill(op ops.Op, t Call) (any, error) {
	in := op.NewIn()
	words := t.Words
	if op.Name == "ask" && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") }) {
		// A question is taken as it was typed, quotes and all.
		if q := strings.TrimSpace(strings.Join(append([]string{t.Rest}, t.Blocks...), "\n")); q != "" {
			words = []string{q}
		}
	}
	if err := op.Words(in, words); err != nil {
		return nil, err
	}
	if where, ok := in.(interface{ On(cluster string) }); ok && t.Cluster != "" {
		where.On(t.Cluster)
	}
	if len(t.Blocks) > 0 && op.Name != "ask" {
		SetIfEmpty(in, "yaml", t.Blocks[0])
	}
	SetIfEmpty(in, "idempotency_key", "slack-"+t.Key)
	return in, nil
}

// SetIfEmpty sets a string field of in by its JSON name, where it has one that
// is empty.
func SetIfEmpty(in any, name, value string) {
	if f := fieldNamed(reflect.ValueOf(in), name); f.IsValid() && f.Kind() == reflect.String && f.String() == "" {
		f.SetString(value)
	}
}

// fieldNamed finds a field by its JSON name, in embedded structs too.
func fieldNamed(v reflect.Value, name string) reflect.Value {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return reflect.Value{}
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for f, x := range v.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return x
		}
		if f.Anonymous || tag == "" && x.Kind() == reflect.Struct && f.IsExported() {
			if y := fieldNamed(x, name); y.IsValid() {
				return y
			}
		}
	}
	return reflect.Value{}
}

// IsZero reports whether v is nothing, or nothing but empty fields.
func IsZero(v any) bool { return v == nil || reflect.ValueOf(v).IsZero() }

// StringField reads a string, or a pointer to one, by its JSON name.
func StringField(v any, name string) string {
	f := fieldNamed(reflect.ValueOf(v), name)
	for f.IsValid() && f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	if !f.IsValid() || f.Kind() != reflect.String {
		return ""
	}
	return f.String()
}
