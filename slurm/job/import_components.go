package job

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// apart takes what the components of a heterogeneous job have of their own out
// of a script's options and keeps it as components; the rest is the job's.
func (m *importer) apart(options script.Options) script.Options {
	parts := []script.Options{options}
	for _, d := range m.job.Directives {
		for d.Ignored == "" && d.Component >= len(parts) {
			parts = append(parts, nil)
		}
		if d.Ignored == "" && d.Component > 0 {
			parts[d.Component] = append(parts[d.Component], d.Options...)
		}
	}
	if len(parts) == 1 {
		return options
	}
	var rest script.Options
	for at, own := range parts {
		words := []string{}
		for _, o := range own {
			field := strings.ReplaceAll(o.Name, "-", "_")
			value, literal := o.Value.Literal()
			switch {
			case slices.Contains(componentFields, field) && literal && o.Has && !strings.ContainsAny(value, " \t"):
				words = append(words, field+"="+value)
			case at == 0:
				rest = append(rest, o)
			case o.Name != "ntasks-per-node":
				m.note(o.Line, o.Given+eq(o, o.Text()), "is taken from the first component", "以第一个组成部分的为准")
			}
		}
		m.spec.Components = append(m.spec.Components, cmpOr(strings.Join(words, " "), "nodes=1"))
	}
	return rest
}
