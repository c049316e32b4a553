package typed

import (
	"reflect"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// Call is an operation's call as it was typed. A confirmation keeps it in this form, since the
// words may hold more than the JSON of the operation's input.
type Call struct {
	Op     string   `json:"op"`
	Words  []string `json:"words,omitempty"`
	Blocks []string `json:"blocks,omitempty"`
	Rest   string   `json:"rest,omitempty"`
	// Key is the idempotency key of a submission.
	Key   string `json:"key"`
	Share bool   `json:"share,omitempty"`
	JSON  bool   `json:"json,omitempty"`
	// Page is the page of a long answer, from 1.
	Page    int    `json:"page,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// Note says what a button has changed, for the person who confirms the call.
	Note []string `json:"note,omitempty"`
	// Then is a command to run after this call has succeeded.
	Then string `json:"then,omitempty"`
	// Longer is the job, as cluster/id, that the submitted one waits for.
	Longer string `json:"longer,omitempty"`
}

// Fill returns an operation's input for what was typed. The words are arguments and flags. A
// code block is the specification or, for ask, a part of the question.
func Fill(op ops.Op, t Call) (any, error) {
	in := op.NewIn()
	words := t.Words
	if op.Name == "ask" && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") }) {
		// A question is taken as it was typed, including its quotes.
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

// SetIfEmpty sets the string field of in with that JSON name, where there is one and it is
// empty.
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

// IsZero reports whether v is nil or a zero value.
func IsZero(v any) bool { return v == nil || reflect.ValueOf(v).IsZero() }

// StringField returns the string field with that JSON name, or what a pointer field points to.
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
