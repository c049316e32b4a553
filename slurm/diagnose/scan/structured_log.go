package scan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// structuredNames are the field names of structured loggers (structlog, python-json-logger, loguru's
// serialize, zap). These print one JSON object per line, with a traceback in one of its fields.
var structuredNames = struct{ time, message, rank, exception, stack []string }{
	time:      []string{"ts", "t", "time", "timestamp", "asctime", "@timestamp"},
	message:   []string{"msg", "message", "event", "text"},
	rank:      []string{"rank", "global_rank"},
	exception: []string{"exc", "exception", "error"},
	stack:     []string{"traceback", "exc_info", "stack_trace", "stack", "exception", "exc_text"},
}

// structured converts a structured logger's line to the lines of a plain logger: time, level and
// message, the report of a step, and the traceback. rank is -1 if the line names none.
func structured(text string) (rank int, lines []string, ok bool) {
	if !strings.Contains(text, "level") && !strings.Contains(text, `"lvl"`) && !strings.Contains(text, `"sev`) {
		return -1, nil, false // parsing takes long, and each name of a level's field has one of these
	}
	entry, ok := logline.Object(text)
	level := logline.Level(entry)
	if !ok || level == "" {
		return -1, nil, false
	}
	said := func(names []string) string {
		for _, n := range names {
			switch v := entry[n].(type) {
			case string:
				if v != "" {
					return v
				}
			case float64:
				return fmt.Sprint(v)
			}
		}
		return ""
	}
	n := structuredNames
	message := said(n.message)
	if message == "" {
		return -1, nil, false
	}
	rank, known := logline.Number(said(n.rank))
	if !known {
		rank = -1
	}
	head := strings.TrimSpace(said(n.time) + " " + strings.ToUpper(level))
	first, more, _ := strings.Cut(message, "\n")
	if step, loss := said([]string{"step", "iteration", "global_step"}), said([]string{"loss", "train_loss", "lm_loss"}); step != "" && loss != "" {
		first += fmt.Sprintf(" step %s/%s loss: %s", step, cmp.Or(said([]string{"of", "total_steps", "max_steps"}), "?"), loss)
	}
	lines = append(lines, head+" "+first)
	stack := said(n.stack)
	if !strings.Contains(stack, python.Header) {
		stack = said(n.exception)
	}
	for _, l := range strings.Split(more+"\n"+stack, "\n") {
		if l != "" {
			lines = append(lines, l)
		}
	}
	return rank, lines, true
}
