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
	if where, ok := in.(interface{ On(cluster string) }); ok {
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
	if f := ops.FieldNamed(in, name); f.Kind() == reflect.String && f.String() == "" {
		f.SetString(value)
	}
}

// IsZero reports whether v is nil or a zero value.
func IsZero(v any) bool { return v == nil || reflect.ValueOf(v).IsZero() }
