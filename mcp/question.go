package mcp

import (
	"context"
	"fmt"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/mcp/shorten"
)

const (
	// longestDecisive is the longest decisive part of a question, in bytes, that a form
	// shows. The decisive part is never cut; a call that needs more is too long to
	// judge in a form.
	longestDecisive = 16 << 10
	// shownScript is how many bytes of a script follow the decisive part.
	shownScript = 6 << 10
)

// A question is what a person is asked about one call.
type question struct {
	text     string // what a form shows
	decisive string // the part that decides, which is never cut
	long     bool   // a form does not show all of it
	foreign  bool
	digest   string
	request  consent.Request
}

// question says what the call would do: a line that says what starts, ends or changes,
// then every argument in full, then the script. If the call can already be refused, it
// returns the refusal, so that no person is asked in vain.
func (s *Server) question(ctx context.Context, call *ops.Call, o ops.Op, in any, beyond string, limit shorten.Limit) (question, *sdk.CallToolResult) {
	asked, out, err := consent.Of(ctx, call, o, in)
	if err != nil || out != nil {
		return question{}, s.stopped(call, o, in, out, err, limit)
	}
	asked.Beyond = beyond
	q := question{decisive: asked.Text(), foreign: asked.Foreign, digest: asked.Agreement(), request: asked}
	q.text, q.long = q.decisive, len(q.decisive) > longestDecisive
	if asked.Script != "" {
		script := asked.ShownScript()
		q.long = q.long || len(script) > shownScript
		q.text += "\n\nscript, sha256 " + asked.Digest + ":\n" + clip(script, shownScript, "render shows all of it")
	}
	return q, nil
}

// tooLong refuses a call that is too long to judge in a form.
func (q question) tooLong(o ops.Op) *sdk.CallToolResult {
	return refusal(&ops.Error{
		Code: ops.NotAllowed,
		Message: lang.Text{
			EN: "what %s would do takes %d characters to say, too many for a person to judge in a form",
			ZH: "说明 %s 会做什么需要 %d 个字符，太长，无法让人在表单中判断",
		}.With(o.Name, len(q.decisive)),
		Fix: lang.Text{
			EN: "write the specification to a file and have your person run: megatron-ops %s -f FILE; over HTTP a client that opens pages (elicitation.url) " +
				"asks them on one",
			ZH: "请把规格写入文件，并让用户执行：megatron-ops %s -f FILE；经 HTTP 时，能打开网页的客户端（elicitation.url）会在网页上询问",
		}.With(o.Name),
	})
}

// askOnPage asks the client's person on a page that shows the whole request.
func (s *Server) askOnPage(ctx context.Context, call *ops.Call, digest string, q question) *sdk.CallToolResult {
	state := s.tokens.issue(call.Who, digest, q.digest)
	p := s.pages.ask(state, call.Who, q.request)
	if !sdk.IsModernProtocol(sdkserver.RequestProtocolVersion(ctx)) {
		// The call waits for the answer, and when it ends its page closes. In the
		// newest version the answer comes with another request.
		context.AfterFunc(ctx, func() { p.settle() })
	}
	return sdkserver.NewInputRequestBuilder(state).Elicit("confirm", sdk.ElicitationParams{
		Mode: sdk.ElicitationModeURL, ElicitationID: p.asked, URL: baseIn(ctx) + pagesAt + p.id,
		Message: fmt.Sprintf("%s?\nThe page shows all of it, with the script. Say yes or no there with the code %s, within %d minutes. "+
			"The code is for you alone: give it to nobody.", redact.Text(q.request.Headline.EN), p.code, int(tokenLife.Minutes())),
	}).ToolResult()
}

// answeredOnPage waits for the person's answer on p. opened says that the client agreed
// to open the page, which alone is not a yes.
func (s *Server) answeredOnPage(ctx context.Context, call *ops.Call, p *page, opened bool) bool {
	if !opened {
		p.settle()
		return false
	}
	yes := s.pages.wait(ctx, p, func() {
		if call.Progress != nil {
			call.Progress(0, 0, "waiting for the answer on the page")
		}
	})
	if session := sdkserver.ClientSessionFromContext(ctx); session != nil && !sdk.IsModernProtocol(sdkserver.RequestProtocolVersion(ctx)) {
		_ = s.sdk.SendElicitationComplete(ctx, session, p.asked) // a client that misses this learns of the answer from the call's result
	}
	return yes
}

// stopped answers a call that would fail, or that has nothing to do.
func (s *Server) stopped(call *ops.Call, o ops.Op, in, out any, err error, limit shorten.Limit) *sdk.CallToolResult {
	var stop *sdk.CallToolResult
	if err != nil {
		stop, err = s.failed(o, out, err, clusterOf(call, in, out))
	} else {
		stop, err = answer(o, withoutScript(out), limit, "", clusterOf(call, in, out))
	}
	if err != nil {
		stop = refusal(ops.AsError(err))
	}
	return stop
}
