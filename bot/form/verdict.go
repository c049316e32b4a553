package form

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// A Verdict is what is said of a form's values: lines below the fields that they
// are about, and below all of them the estimates.
type Verdict struct {
	At      map[string][]string
	Summary []string
}

// AtFields puts each problem that stops the job at the field that it is about;
// what belongs to no field of the form stands at the arguments.
func AtFields(l lang.Lang, err error, problems []rules.Problem) map[string]string {
	out := VerdictOf(l, err, problems).Errors()
	if len(out) == 0 {
		out["name"] = answer.Broken.In(l)
	}
	return out
}

// The marks of what stops a job and of what is only warned of.
const (
	stopMark = "⛔ "
	warnMark = "⚠️ "
)

// VerdictOf puts what is wrong, and what is warned of, at the fields.
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
			message = Fields[i].Label.In(l) + " " + message // the field is what is
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

// Said is a verdict of errors by field.
func Said(errs map[string]string) Verdict {
	at := map[string][]string{}
	for field, said := range errs {
		at[field] = []string{stopMark + said}
	}
	return Verdict{At: at}
}

// Errors are what stops a job, by field.
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

// Stops reports whether a verdict has what stops a job.
func (v Verdict) Stops() bool { return len(v.Errors()) > 0 }
