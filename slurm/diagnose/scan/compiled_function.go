package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// inCompiled handles a line that TensorFlow quotes from a function that it compiles. Such lines are
// indented by four blanks: frames, and the exception, which replaces the words that introduced the
// quotation (tensorflow/python/autograph/impl/api.py).
func (s *scanner) inCompiled(st *stream, text string, off int64) bool {
	e := st.raised
	if e == nil || st.open != nil || e.message != "in user code:" && e.message != "in converted code:" || !strings.HasPrefix(text, "    ") {
		return false
	}
	if f, ok := python.ParseFrame(text); ok && e.Stack != nil {
		f.Function = strings.TrimRight(f.Function, " *") // TensorFlow marks compiled functions with "*"
		e.Stack.Add(f)
	} else if kind, message, ok := python.ParseException(text[4:], true); ok {
		e.Kind, e.message, e.Text, e.Raw, e.Off = kind, message, text[4:], text[4:], off
		s.classify(e)
	}
	return true
}
