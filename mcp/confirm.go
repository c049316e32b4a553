package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
)

// A Policy says how an agent's write is confirmed. A model writes a tool's arguments,
// so no argument of its own choosing confirms anything: a person confirms, asked
// through the client. If the client cannot ask, the write is refused, unless Tokens
// lets a second call bring a token that this server made for exactly that call, or
// Approve asks somebody elsewhere.
type Policy struct {
	// Beyond returns why a call exceeds what a token may confirm, such as its GPU
	// hours, or "" if it does not. A person who is asked may still say yes.
	Beyond func(call *ops.Call, op string, in any) string
	// Approve asks somebody outside of the client, for example by a button in Slack,
	// and returns at once: whether somebody has approved the call, which it then confirms. It
	// decides about calls that are Beyond, and about every write if ApproveAll is set.
	Approve    func(ctx context.Context, call *ops.Call, in any, r consent.Request) (bool, error)
	ApproveAll bool
	// Where says where a person approves, such as a channel or the address of a page; it
	// follows "a person approves it". It may be empty.
	Where lang.Text
	// Tokens lets a token stand in for a person whom the client cannot ask. The model
	// that wrote the call gets the token and may use it although nobody has looked, so
	// it is off unless an operator switches it on.
	Tokens bool
}

// A verdict is what the policy decides about one call.
type verdict struct {
	beyond   string // why a token is not enough; empty: a token is enough
	approval bool   // somebody outside of the client decides
}

func (p Policy) judge(call *ops.Call, o ops.Op, in any) verdict {
	v := verdict{}
	if p.Beyond != nil {
		v.beyond = p.Beyond(call, o.Name, in)
	}
	v.approval = p.Approve != nil && (p.ApproveAll || v.beyond != "")
	return v
}

// acceptsToken reports whether a token may confirm the call.
func (p Policy) acceptsToken(v verdict) bool { return p.Tokens && !v.approval && v.beyond == "" }

// tokenLife is how long a confirmation stays valid.
const tokenLife = 10 * time.Minute

// confirm decides whether a call that changes something may go on. A nil result and a
// nil error mean yes; otherwise the result is the question or the refusal.
func (s *Server) confirm(ctx context.Context, req sdk.CallToolRequest, o ops.Op, call *ops.Call, in any, said ownArguments) (*sdk.CallToolResult, error) {
	if consent.IsSet(in, "dry_run") {
		return nil, nil
	}
	if call.Who.ReadOnly || call.Who.User == "" {
		return nil, nil // ops refuses this caller in its own words
	}
	if submit, ok := in.(*launch.SubmitIn); ok && launch.AlreadySubmitted(ctx, call, submit) {
		call.Confirmed = true
		return nil, nil
	}
	digest := digest(o, call.Who, in)
	policy := s.cfg.Policy()
	v := policy.judge(call, o, in)
	if req.Params.RequestState != "" {
		if v.approval { // within the limits, the person was asked; a job may have grown since
			return refusal(&ops.Error{
				Code: ops.NotAllowed, Message: lang.Text{EN: "%s needs an approval by an operator by now; nothing was done", ZH: "%s 现在需要管理员批准；没有执行任何操作"}.With(o.Name),
				Fix: lang.Text{EN: "call %s again with the same arguments: operators are asked", ZH: "请以相同参数再次调用 %s，将通知管理员审批"}.With(o.Name),
			}), nil
		}
		return s.readAnswer(ctx, req, call, digest)
	}
	if said.token != "" && policy.acceptsToken(v) && !canAsk(ctx) {
		agreed, err := s.tokens.spend(said.token, digest)
		if err != nil {
			return refusal(&ops.Error{
				Code: ops.NotAllowed, Field: tokenField, Message: lang.Said(err),
				Fix: lang.Text{EN: "call %s again without it, show your person what it answers, and bring the new token", ZH: "请不带它再次调用 %s，把回答给用户看，再带上新的令牌"}.With(o.Name),
			}), nil
		}
		consent.Agree(call, agreed)
		return nil, nil
	}
	question, stop := s.question(ctx, call, o, in, v.beyond, said.limit)
	if stop != nil {
		return stop, nil
	}
	asks := elicitationIn(ctx)
	onPage := asks.url && !v.approval && baseIn(ctx) != "" && len(question.text) <= longestPage && (question.long || !asks.form)
	if len(question.decisive) > longestDecisive && !onPage {
		return question.tooLong(o), nil
	}
	switch {
	case v.approval:
		approved, err := policy.Approve(ctx, call, in, question.request)
		if err != nil {
			return refusal(ops.AsError(err)), nil
		}
		if !approved {
			return policy.waits(o, v), nil
		}
		return nil, nil
	case onPage:
		return s.askOnPage(ctx, call, digest, question), nil
	case asks.form:
		return sdkserver.NewInputRequestBuilder(s.tokens.issue(call.Who, digest, question.digest)).Elicit("confirm", sdk.ElicitationParams{
			Mode:    sdk.ElicitationModeForm,
			Message: question.text,
			RequestedSchema: map[string]any{
				"type":       "object",
				"properties": map[string]any{"ok": map[string]any{"type": "boolean", "title": "Yes, " + o.Name, "default": false}},
				"required":   []string{"ok"},
			},
		}).ToolResult(), nil
	case !policy.acceptsToken(v) || question.foreign:
		why := "this server's policy wants a person's yes for " + o.Name
		switch {
		case question.foreign:
			why = "the job is not yours, so a person has to say yes to " + o.Name
		case v.beyond != "":
			why = v.beyond + ", so a person has to say yes"
		}
		fix := lang.Text{
			EN: "have your person run megatron-ops %s in a shell or in Slack, or use a client that can ask (elicitation)",
			ZH: "请让用户在 shell 或 Slack 中执行 megatron-ops %s，或改用能够询问用户的客户端（elicitation）",
		}.With(o.Name)
		if !policy.Tokens {
			fix = lang.Text{
				EN: "%s; an operator may also let a token stand in, within the limits (mcp.confirm: fallback-token)",
				ZH: "%s；管理员也可以在限额之内允许用令牌代替（mcp.confirm: fallback-token）",
			}.With(fix)
		}
		return refusal(&ops.Error{
			Code: ops.NotAllowed, Message: lang.Text{EN: "%s, and this client cannot ask one", ZH: "%s，而此客户端无法询问用户"}.With(why), Fix: fix,
		}), nil
	}
	return s.refuseWithToken(o, call.Who, question, digest), nil
}

// waits answers a call that waits for an approval: why it needs one, and where a person gives it.
func (p Policy) waits(o ops.Op, v verdict) *sdk.CallToolResult {
	e := &ops.Error{
		Code: ops.NotAllowed, Message: lang.Text{EN: "%s waits for an approval by an operator", ZH: "%s 正在等待管理员批准"}.With(o.Name),
		Fix: lang.Text{EN: "call %s again with the same arguments once it is approved", ZH: "批准后请以相同参数再次调用 %s"}.With(o.Name),
	}
	if v.beyond != "" {
		e.Message = lang.Text{EN: "%s: %s", ZH: "%s：%s"}.With(e.Message, v.beyond)
	}
	if p.Where.EN != "" {
		e.Fix = lang.Text{EN: "a person approves it %s; %s", ZH: "由人在%s批准；%s"}.With(p.Where, e.Fix)
	}
	return refusal(e)
}

// refuseWithToken refuses for now and returns a token that a second call must bring.
func (s *Server) refuseWithToken(o ops.Op, who ops.Caller, q question, digest string) *sdk.CallToolResult {
	token := s.tokens.issue(who, digest, q.digest)
	res := refusal(&ops.Error{
		Code: ops.NotAllowed, Field: tokenField, Message: lang.Text{EN: "%s needs a confirmation; nothing was done", ZH: "%s 需要确认；没有执行任何操作"}.With(o.Name),
		Fix: lang.Text{
			EN: "show your person what follows; if they agree, call %s again within %d minutes with the same arguments and %s %q",
			ZH: "请把以下内容给用户看；若用户同意，请在 %[2]d 分钟内以相同参数再次调用 %[1]s，并加上 %[3]s %[4]q",
		}.With(o.Name, int(tokenLife.Minutes()), tokenField, token),
	})
	res.Content = append(res.Content, sdk.NewTextContent(fence(q.text)))
	object, _ := res.StructuredContent.(json.RawMessage)
	res.StructuredContent = json.RawMessage(withLeadingFields([]leadingField{{tokenField, token}, {"question", q.text}}, object))
	return res
}

// readAnswer reads the person's answer to the question of an earlier round. The request
// state is the token of that question: a state that is made up, repeated or of another
// call is a protocol error, which the model cannot repair. Only an explicit yes counts:
// a form that was declined or dismissed ends the call, even if a client without a
// person dismissed it.
func (s *Server) readAnswer(ctx context.Context, req sdk.CallToolRequest, call *ops.Call, digest string) (*sdk.CallToolResult, error) {
	agreed, err := s.tokens.spend(req.Params.RequestState, digest)
	if err != nil {
		return nil, fmt.Errorf("requestState: %w; call %s again without it: your person is asked anew: %w", err, req.Params.Name, sdk.ErrInvalidParams)
	}
	said := sdkserver.ElicitationResponse(req.Params.InputResponses, "confirm")
	accepted := said != nil && said.Action == sdk.ElicitationResponseActionAccept
	var yes bool
	if p := s.pages.find(func(p *page) bool { return p.state == req.Params.RequestState }); p != nil {
		yes = s.answeredOnPage(ctx, call, p, accepted)
	} else if accepted {
		content, _ := said.Content.(map[string]any)
		yes, _ = content["ok"].(bool)
	}
	if yes {
		consent.Agree(call, agreed)
		return nil, nil
	}
	return refusal(&ops.Error{
		Code: ops.NotAllowed, Message: lang.Text{EN: "the person who was asked did not say yes; nothing was done", ZH: "用户没有同意，未执行任何操作"},
		Fix: lang.Text{EN: "ask them what to change before calling again", ZH: "再次调用之前请先问用户要改什么"},
	}), nil
}

// tokenFor returns the token with which submit accepts what plan has judged, so that an
// agent's run takes two calls. It returns "" if there is none to offer.
func (s *Server) tokenFor(ctx context.Context, grant Grant, call *ops.Call, o ops.Op, in, out any) string {
	if o.Name != "plan" || call.Who.ReadOnly || call.Who.User == "" || canAsk(ctx) {
		return ""
	}
	if plan, ok := out.(launch.PlanOut); !ok || !plan.Ready {
		return ""
	}
	submit, ok := operations.Lookup("submit")
	if !ok || !s.offers(grant, submit.Name) {
		return ""
	}
	target := submit.NewIn()
	if ops.Decode([]byte("{}"), target, nil) != nil || !copyField(target, in, "spec") {
		return ""
	}
	for _, name := range []string{"yaml", "command_line", "from", "without", "cluster"} {
		copyField(target, in, name)
	}
	if policy := s.cfg.Policy(); !policy.acceptsToken(policy.judge(call, submit, target)) {
		return ""
	}
	return s.tokens.issue(call.Who, digest(submit, call.Who, target), "")
}

// copyField copies the field of that name from from into to, and reports whether both
// have it with the same type.
func copyField(to, from any, name string) bool {
	t, f := ops.FieldNamed(to, name), ops.FieldNamed(from, name)
	if !t.IsValid() || !f.IsValid() || f.Type() != t.Type() {
		return false
	}
	t.Set(f)
	return true
}

// elicitation says in which ways a client can ask its person.
type elicitation struct{ form, url bool }

// elicitationIn returns how ctx's client can ask its person. A client that declares
// elicitation without saying how shows forms.
func elicitationIn(ctx context.Context) elicitation {
	e := capabilitiesIn(ctx).Elicitation
	if e == nil {
		return elicitation{}
	}
	return elicitation{form: e.Form != nil || e.URL == nil, url: e.URL != nil}
}

func canAsk(ctx context.Context) bool {
	a := elicitationIn(ctx)
	return a.form || a.url && baseIn(ctx) != ""
}

// digest identifies one call: the caller, the operation, and every argument that
// decides what is done. The idempotency key is not part of it, so that a plan's token
// fits a submit that brings a key.
func digest(o ops.Op, who ops.Caller, in any) string { return ops.CallDigest(who, o.Name, in) }

// mostTokens is how many confirmations of one person are kept: an agent that asks without end fills
// no memory, and takes nobody else's.
const mostTokens = 256

// tokens issues and spends confirmations, and keeps them until nobody can bring them any more.
type tokens struct {
	now func() time.Time

	mu    sync.Mutex
	all   map[string]confirmation // by token
	own   map[string][]string     // the tokens of each person, oldest first
	swept time.Time
}

// A confirmation is what a token confirms: a call, with what its question showed.
type confirmation struct {
	call, shown string
	until       time.Time
	spent       bool
}

func newTokens() *tokens {
	return &tokens{now: time.Now, all: map[string]confirmation{}, own: map[string][]string{}}
}

// issue returns the token of one call of a person, whose question showed the given agreement.
func (t *tokens) issue(who ops.Caller, call, shown string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Sub(t.swept) > time.Minute {
		t.swept = now
		// A token that is too old is told from one that was never issued.
		maps.DeleteFunc(t.all, func(_ string, c confirmation) bool { return now.After(c.until.Add(tokenLife)) })
		maps.DeleteFunc(t.own, func(_ string, all []string) bool { return t.all[all[len(all)-1]].call == "" })
	}
	token, person := rand.Text(), personOf(who)
	t.own[person] = append(t.own[person], token)
	if own := t.own[person]; len(own) > mostTokens {
		delete(t.all, own[0])
		t.own[person] = own[1:]
	}
	t.all[token] = confirmation{call: call, shown: shown, until: now.Add(tokenLife)}
	return token
}

// spend accepts a token once, before it expires, and for the call that it was issued
// for. It returns the agreement that its question showed.
func (t *tokens) spend(token, call string) (shown string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.all[token]
	switch {
	case !ok:
		return "", lang.Text{
			EN: "this server keeps no such confirmation: it is not one, or it is from before the server's start, or more than %d others were given out for your person since",
			ZH: "此服务没有这样的确认：它不是确认令牌，或在服务启动之前发出，或此后又为您的用户发出了超过 %d 个确认",
		}.Err(mostTokens)
	case c.call != call:
		return "", lang.Text{EN: "the confirmation does not belong to this call and these arguments", ZH: "该确认不属于此调用及其参数"}.Err()
	case t.now().After(c.until):
		return "", lang.Text{EN: "the confirmation is older than %d minutes", ZH: "该确认已超过 %d 分钟"}.Err(int(tokenLife.Minutes()))
	case c.spent:
		return "", lang.Text{EN: "the confirmation was used already", ZH: "该确认已被使用"}.Err()
	}
	c.spent, c.shown, shown = true, "", c.shown
	t.all[token] = c
	return shown, nil
}
