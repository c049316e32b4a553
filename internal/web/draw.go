package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// functions are what the templates call.
var functions = template.FuncMap{
	"t": func(l lang.Lang, key string) (string, error) {
		text, ok := labels[key]
		if !ok {
			return "", lang.Text{EN: "no label %q", ZH: "没有标签 %q"}.Err(key)
		}
		return text.In(l), nil
	},
	"tf": func(l lang.Lang, key string, values ...any) string { return labels[key].With(values...).In(l) },
	"in": func(l lang.Lang, doc any, level int) inLang { return inLang{l, doc, level} },
	"time": func(at any) template.HTML {
		var t time.Time
		switch x := at.(type) {
		case time.Time:
			t = x
		case *time.Time:
			if x != nil {
				t = *x
			}
		}
		if t.IsZero() {
			return ""
		}
		utc := t.UTC()
		return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, utc.Format(time.RFC3339), utc.Format("2006-01-02 15:04:05 UTC"))) //nolint:gosec // digits
	},
	"duration": ops.Duration,
	"limit": func(s *int64) string {
		if s == nil {
			return ""
		}
		return " / " + ops.Duration(*s)
	},
	"hosts": hostlist.Compress,
	"state": stateIn,
	"mark":  markOf,
	"group": groupOf,
	"path":  ops.JobPath,
	"line":  ops.PipelinePath,
	"act": func(l lang.Lang, cluster, op, label string, word any) map[string]any {
		return map[string]any{"Lang": l, "Cluster": cluster, "Op": op, "Label": label, "Word": fmt.Sprint(word)}
	},
	"size": size,
}

// inLang is something to draw in a language, with headings of the given level.
type inLang struct {
	Lang  lang.Lang
	Doc   any
	Level int
}

func stateIn(l lang.Lang, s slurm.State) string {
	if word, ok := statesZH[s]; ok && l == lang.ZH {
		return word
	}
	return strings.ToLower(strings.ReplaceAll(string(s), "_", " "))
}

// markOf returns a state's sign and colour: colour is never the only difference.
func markOf(s slurm.State) struct{ Sign, Class string } {
	switch {
	case s == slurm.Pending:
		return struct{ Sign, Class string }{"○", "waits"}
	case !s.Ended():
		return struct{ Sign, Class string }{"●", "runs"}
	}
	tone := jobcontrol.Tone(s)
	return struct{ Sign, Class string }{map[view.Tone]string{view.Good: "✓", view.Warn: "■", view.Bad: "✕"}[tone], string(tone)}
}

// size returns a job's nodes and GPUs: 2 × 8 GPU, or 1 node where it has none.
func size(l lang.Lang, j slurm.Job) string {
	nodes := max(j.NumNodes, len(j.Nodes))
	switch {
	case nodes == 0:
		return "-"
	case j.GPUs > 0 && j.GPUs%nodes == 0:
		return fmt.Sprintf("%d × %d GPU", nodes, j.GPUs/nodes)
	}
	said := ops.Counted(nodes, "node").In(l)
	if j.GPUs > 0 {
		said += fmt.Sprintf(", %d GPU", j.GPUs)
	}
	return said
}
