package form

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// A Verdict holds the messages about a form's values: At by field, shown below the field, and
// Summary with the estimates, shown below all fields.
type Verdict struct {
	At      map[string][]string
	Summary []string
}

// AtFields returns the messages that prevent a submission, by field. A message about no field
// of the form is put at the arguments.
func AtFields(l lang.Lang, err error, problems []rules.Problem) map[string]string {
	out := VerdictOf(l, err, problems).Errors()
	if len(out) == 0 {
		out["name"] = answer.Broken.In(l)
	}
	return out
}

// stopMark starts a message that prevents a submission, and warnMark starts a warning.
const (
	stopMark = "⛔ "
	warnMark = "⚠️ "
)

// VerdictOf puts the messages of an error and of the plan's problems at their fields.
func VerdictOf(l lang.Lang, err error, problems []rules.Problem) Verdict {
	at := map[string][]string{}
	add := func(mark, field, message, fix string) {
		root, _, _ := strings.Cut(field, ".")
		root, _, _ = strings.Cut(root, "[")
		if !slices.ContainsFunc(Fields, func(f Field) bool { return f.Name == root }) {
			if root = "args"; field != "" {
				message = field + answer.Colon.In(l) + message
			}
		}
		if i := slices.IndexFunc(Fields, func(f Field) bool { return f.Name == root }); field != "" && strings.HasPrefix(message, "is ") {
			message = Fields[i].Label.In(l) + " " + message // the message has the field as its subject
		}
		if fix != "" {
			message += " → " + fix
		}
		at[root] = append(at[root], mark+message)
	}
	if err != nil {
		e := ops.AsError(err)
		for _, x := range append([]*ops.Error{e}, e.More...) {
			add(stopMark, x.Field, x.Message.In(l), x.Fix.In(l))
		}
	}
	for _, p := range problems {
		switch p.Severity {
		case rules.Error:
			add(stopMark, p.Field, p.Message, p.Fix)
		case rules.Warning:
			add(warnMark, p.Field, p.Message, p.Fix)
		}
	}
	return Verdict{At: at}
}

// ErrorVerdict turns error messages by field into a Verdict.
func ErrorVerdict(errs map[string]string) Verdict {
	at := map[string][]string{}
	for field, said := range errs {
		at[field] = []string{stopMark + said}
	}
	return Verdict{At: at}
}

// Errors returns the messages that prevent a submission, by field.
func (v Verdict) Errors() map[string]string {
	out := map[string]string{}
	for f, lines := range v.At {
		var stops []string
		for _, s := range lines {
			if said, ok := strings.CutPrefix(s, stopMark); ok {
				stops = append(stops, said)
			}
		}
		if len(stops) > 0 {
			out[f] = answer.Cut(strings.Join(stops, "\n"), answer.MaxText)
		}
	}
	return out
}

// Stops reports whether v has a message that prevents a submission.
func (v Verdict) Stops() bool { return len(v.Errors()) > 0 }
