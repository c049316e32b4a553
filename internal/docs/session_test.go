package docs

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// session is the session in the README: real answers to a specification and to logs in
// testdata.
var session = []struct{ say, op, words string }{
	{"A job that would wait for hours in the queue and fail in its first second:", "plan", "-f gpt-8b.yaml"},
	{"The launch constants for any configuration:", "constants", "--gpu gb200 --tp 4 --nodes 2 --gpus-per-node 4"},
	{"Sixteen ranks failed, fifteen of them with NCCL timeouts. Which one failed first?", "diagnose", "gpt-8b-4711"},
	{"A question:", "ask", "do I need to set CUDA_DEVICE_MAX_CONNECTIONS with FSDP?"},
	{"一个问题：", "ask", "36 个注意力头可以用 TP 8 吗？"},
}

// shown limits the lines of one answer in the README, and width the length of a line:
// longer lines are wrapped, as a terminal of that width would do.
const shown, width = 16, 112

// Session runs the README's session in dir and returns it as Markdown.
func Session(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	call := &ops.Call{
		Service: &ops.Service{Now: time.Now, Answerer: func() *knowledge.Answerer { return knowledge.New(knowledge.Options{}) }},
		Who:     ops.Caller{Surface: ops.Shell}, Dir: abs, Lang: lang.EN,
	}
	var b strings.Builder
	for _, s := range session {
		op, ok := operations.Lookup(s.op)
		if !ok {
			return "", fmt.Errorf("the README's session uses %s, which is no operation", s.op)
		}
		words := strings.Fields(s.words)
		if s.op == "ask" {
			words = []string{s.words}
		}
		in := op.NewIn()
		if err := op.Words(in, words); err != nil {
			return "", err
		}
		out, err := op.Run(context.Background(), call, in)
		if err != nil {
			return "", err
		}
		l := lang.Of(s.words)
		typed := s.op + " " + s.words
		if s.op == "ask" {
			typed = fmt.Sprintf("ask %q", s.words)
		}
		fmt.Fprintf(&b, "%s\n\n    $ megatron-ops %s\n", s.say, typed)
		b.WriteString(indent(out.(view.Viewer).View(l), l) + "\n")
	}
	return b.String(), nil
}

// indent draws d as an indented block, and only the beginning of a long answer.
func indent(d view.Doc, l lang.Lang) string {
	d.Next = nil
	var text strings.Builder
	_ = view.Text(&text, d, view.Style{Width: width, Folded: view.Unfold.In(l)})
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	var b strings.Builder
	for i, l := range lines {
		if i == shown {
			io.WriteString(&b, "    …\n")
			break
		}
		b.WriteString(strings.TrimRight("    "+l, " ") + "\n")
	}
	return b.String()
}
