package job

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// splitComponents moves the options that a component of a heterogeneous job sets for
// itself to the specification's components. It returns the options that apply to the
// whole job.
func (m *importer) splitComponents(options script.Options) script.Options {
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
				m.note(o.Line, o.Given+valueSuffix(o, o.Text()), "is taken from the first component", "以第一个组成部分的为准")
			}
		}
		m.spec.Components = append(m.spec.Components, cmp.Or(strings.Join(words, " "), "nodes=1"))
	}
	return rest
}
