package mcp

import (
	"context"

	sdk "github.com/mark3labs/mcp-go/mcp"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

const (
	// longestDecisive is how long the part of a question may be that decides. It
	// is never cut: a call that needs more is too long to be judged in a form.
	longestDecisive = 16 << 10
	// shownScript is how much of a script follows it.
	shownScript = 6 << 10
)

// A question is what a person is asked, whether it is about a job that is not
// the caller's, and the digest of the script that it shows.
type question struct {
	text    string
	foreign bool
	shown   []view.Section
	digest  string
}

// question says what the call would do: what starts, ends or changes, in one
// line, then every argument in full, then the script. What can be refused now is
// refused now, before a person is bothered.
func (s *Server) question(ctx context.Context, call *ops.Call, o ops.Op, in any) (question, *sdk.CallToolResult) {
	r, out, err := consent.Of(ctx, call, o, in)
	if err != nil || out != nil {
		return question{}, s.stopped(o, out, err)
	}
	q := question{text: r.Text(), foreign: r.Foreign, shown: r.Sections(lang.EN), digest: r.Digest}
	if len(q.text) > longestDecisive {
		return q, refusal(&ops.Error{
			Code: ops.NotAllowed, Message: lang.Text{EN: "what %s would do takes %d characters to say, too many for a person to judge in a form", ZH: "说明 %s 会做什么需要 %d 个字符，太长，无法让人在表单中判断"}.With(o.Name, len(q.text)),
			Fix: lang.Text{EN: "write the specification to a file and have your person run: megatron-ops %s -f FILE", ZH: "请把规格写入文件，并让用户执行：megatron-ops %s -f FILE"}.With(o.Name),
		})
	}
	if r.Script != "" {
		q.text += "\n\nscript, sha256 " + r.Digest + ":\n" + clip(redact.Text(redact.Clean(r.Script)), shownScript, "render shows all of it")
	}
	return q, nil
}

// stopped is the answer to a call that would come to nothing: what is wrong with
// it, or that there is nothing to do.
func (s *Server) stopped(o ops.Op, out any, err error) *sdk.CallToolResult {
	var stop *sdk.CallToolResult
	if err != nil {
		stop, err = s.failed(o, out, err)
	} else {
		stop, err = answer(o, out, room{bytes: defaultBudget}, "")
	}
	if err != nil {
		stop = refusal(ops.AsError(err))
	}
	return stop
}
