package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/tracing"
	"github.com/megatron-ops/megatron-ops/mcp/message"
	"github.com/megatron-ops/megatron-ops/mcp/shorten"
)

//go:generate go test . -run TestToolsAreAsReviewed -update

func (s *Server) addTools(offered []ops.Op) {
	tools := make([]sdkserver.ServerTool, 0, len(offered))
	for _, o := range offered {
		tools = append(tools, sdkserver.ServerTool{
			Tool:    sdk.Tool{Name: o.Name, Execution: execution(o), RawInputSchema: json.RawMessage(`{"type":"object"}`)},
			Handler: s.handler(o),
		})
	}
	s.sdk.AddTools(tools...)
}

// listedTool returns o as a listing shows it. It is built on first use: a server
// without schemas starts in half the time.
func (s *Server) listedTool(o ops.Op) sdk.Tool {
	if t, ok := s.shown.Load(o.Name); ok {
		return t.(sdk.Tool)
	}
	t, _ := s.shown.LoadOrStore(o.Name, s.tool(o))
	return t.(sdk.Tool)
}

// execution returns how o may run, or nil for an operation that runs as an ordinary
// call.
func execution(o ops.Op) *sdk.ToolExecution {
	if !longRunning[o.Name] {
		return nil
	}
	return &sdk.ToolExecution{TaskSupport: sdk.TaskSupportOptional}
}

// tool describes o to a model.
func (s *Server) tool(o ops.Op) sdk.Tool {
	return sdk.Tool{
		Execution:       execution(o),
		Name:            o.Name,
		Description:     description(o),
		RawInputSchema:  inputSchema(o),
		RawOutputSchema: outputSchema(o),
		Meta:            appMeta(o.Name),
		Annotations: sdk.ToolAnnotation{
			Title:           o.Summary.In(lang.EN),
			ReadOnlyHint:    new(o.Effect == ops.Read),
			DestructiveHint: new(o.Effect == ops.Destructive),
			IdempotentHint:  new(o.Idempotent || o.Effect == ops.Read),
			OpenWorldHint:   new(!o.Closed),
		},
	}
}

// longRunning are the operations that may take minutes: a client that knows tasks may
// run them as one and ask for the result later.
var longRunning = map[string]bool{"wait": true, "smoke": true}

// description is the text from which a model chooses a tool: what it does, when to use
// it and when not. It is in English, which agents read whatever language their person
// speaks.
func description(o ops.Op) string {
	d := strings.TrimRight(o.Summary.In(lang.EN), ".") + ". " + o.Help.In(lang.EN)
	d = strings.ToUpper(d[:1]) + d[1:]
	if e := examples[o.Name]; e != "" {
		d += " Example: " + e
	}
	return d
}

// examples are arguments of operations whose schema alone does not show enough.
var examples = map[string]string{
	"plan":       `{"spec":{"nodes":2,"gpu":"h100","worktree":"/lustre/me/Megatron-LM","args":["--tensor-model-parallel-size","4"]}}`,
	"lint":       `{"script":"#!/bin/bash\n…"}`,
	"image":      `{"variant":"lts"}`,
	"rules":      `{"find":"heads"}`,
	"explain":    `{"word":"QOSMaxGRESPerUser"}`,
	"update":     `{"job":"4711","time":"2:00:00"}`,
	"run":        `{"job":"4711","argv":["nvidia-smi"]}`,
	"hostlist":   `{"nodes":["n[1-4,7]"]}`,
	"killswitch": `{"turn":"on","job":"4711"}`,
	"cleanup":    `{"nodes":"gpu[07,09]"}`,
	"resume":     `{"reason":"Kill task failed"}`,
	"knowledge":  `{"what":"gaps"}`,
}

// specFields are the fields of a job specification that plan's schema lists; the
// resource megatron-ops://schema/job has all of them.
var specFields = []string{"name", "nodes", "gpus_per_node", "gpu", "partition", "account", "time", "worktree", "script", "args", "env", "container"}

// planField is the field in which plan returns the handle of its specification, and the
// argument with which submit takes it.
const planField = "plan"

// tokenField is the argument that confirms a repeated call once its person has seen it.
const tokenField = "confirm_token"

// yesField is the shell's "do not ask". Agents do not get it: an agent writes its own
// arguments.
const yesField = "yes"

// describedElsewhere are arguments that many tools share and that the instructions or
// the tools' own descriptions explain: the schemas list their names without
// descriptions.
var describedElsewhere = []string{"cluster", "yaml", "command_line", "without", "recipe", "gpus", tokenField, shorten.CursorField, "idempotency_key", "dry_run"}

// agentWords describe arguments that mean something else to an agent than to a person, or
// that need fewer words: an agent has no standard input, sends a script and not its file,
// and reads the tool's own description first.
var agentWords = map[string]string{
	"diagnose job":     "job id, or absolute path of a log file or folder",
	"lint fix":         "mend what can be mended",
	"logs follow":      "wait for new lines, 25 s at most",
	"logs level":       "",
	"metrics gpu":      "for MFU, where the specification names none",
	"metrics jobs":     "job ids, or logs, event files and folders",
	"nodes check":      "with drained or reason: look for processes left there",
	"search query":     "",
	"submit into":      "start it as a step of this running job, without queueing",
	"status earlier":   "would a waiting job start sooner with less time or fewer nodes",
	"wait artifact":    "wait for this file; the specification's artifact where left out",
	"wait end":         "wait for the end, whatever its artifact",
	"wait timeout_s":   "give up after so many seconds; the job goes on",
	"plan check_files": "also look at the files that the job will open, and at your rights and limits",
}

// inputSchema is o's input schema for agents: with a shortened specification, and with
// a confirmation token if o changes something.
func inputSchema(o ops.Op) json.RawMessage {
	in := o.InputSchema()
	in.Properties = slices.DeleteFunc(in.Properties, func(p ops.Property) bool { return p.Name == yesField })
	for i, p := range in.Properties {
		if words, ok := agentWords[o.Name+" "+p.Name]; ok {
			p.Schema.Description = words
		}
		if p.Name == "spec" && len(p.Schema.Properties) > len(specFields) {
			in.Properties[i].Schema = shortSpec(o, p.Schema)
		}
	}
	if o.Effect != ops.Read {
		in.Properties = append(in.Properties, ops.Property{Name: tokenField, Schema: &ops.Schema{Type: "string"}})
	} else if hasList(o.OutputSchema()) && !newestLast(o) && !slices.Contains(neverLong, o.Name) {
		in.Properties = append(in.Properties, ops.Property{Name: shorten.CursorField, Schema: &ops.Schema{Type: "string"}})
	}
	hasSpec := slices.ContainsFunc(in.Properties, func(p ops.Property) bool { return p.Name == "spec" })
	for i, p := range in.Properties {
		if slices.Contains(describedElsewhere, p.Name) || hasSpec && p.Name == "from" {
			in.Properties[i].Schema = &ops.Schema{Type: p.Schema.Type, Items: p.Schema.Items}
		} else if !saysMore(p.Name, p.Schema.Description) {
			p.Schema.Description = ""
		}
	}
	if o.Name == "submit" {
		in.Properties = append(in.Properties, ops.Property{Name: planField, Schema: &ops.Schema{Type: "string", Description: "plan's handle, in place of spec"}})
	}
	raw, err := in.MarshalJSON()
	if err != nil {
		panic("mcp: schema of " + o.Name + ": " + err.Error()) // a mistake in the table, which its test finds
	}
	return raw
}

// neverLong are tools whose lists always fit into an answer.
var neverLong = []string{"constants", "ask", "import"}

// saysMore reports whether a description says more about an argument than its name
// does.
func saysMore(name, words string) bool {
	known := append(strings.Split(name, "_"), "only", "this", "these", "the", "of", "a", "each", "on", "id", "number")
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(words), func(r rune) bool { return r == ' ' || r == '\'' }), func(w string) bool {
		return w != "s" && !slices.Contains(known, w) && !slices.Contains(known, strings.TrimSuffix(w, "s")) && !slices.Contains(known, w+"s")
	})
}

// shortSpec is the schema of a job specification in a listing: the usual fields for
// plan, and a reference to plan elsewhere.
func shortSpec(o ops.Op, spec *ops.Schema) *ops.Schema {
	if o.Name != "plan" {
		return &ops.Schema{Type: "object", Description: "as for plan"}
	}
	short := spec.Only(specFields...)
	for j, f := range short.Properties {
		short.Properties[j].Schema = shortField(f.Name, f.Schema)
	}
	short.Description = "job specification; args are Megatron's flags; more fields: resource " + jobSchemaURI
	return short
}

// hasList reports whether an output has a list of objects, which may be long.
func hasList(out *ops.Schema) bool {
	return slices.ContainsFunc(out.Properties, func(p ops.Property) bool {
		return p.Schema.Type == "array" && p.Schema.Items != nil && p.Schema.Items.Type == "object"
	})
}

// shortField is the schema of one field of a shortened specification: its type, and a
// description only where the name does not say enough.
func shortField(name string, s *ops.Schema) *ops.Schema {
	words := map[string]string{
		"time":      "such as 24:00:00",
		"gpu":       "such as h100",
		"worktree":  "absolute path of the Megatron-LM checkout",
		"container": "runtime, image, mounts",
	}
	short := &ops.Schema{Type: s.Type, Description: words[name]}
	if s.Items != nil {
		short.Items = &ops.Schema{Type: s.Items.Type}
	}
	if s.Values != nil {
		short.Values = &ops.Schema{Type: s.Values.Type}
	}
	return short
}

// handler runs o for one request.
func (s *Server) handler(o ops.Op) sdkserver.ToolHandlerFunc {
	return func(ctx context.Context, req sdk.CallToolRequest) (result *sdk.CallToolResult, err error) {
		ctx, span := tracing.Start(withinMeta(ctx, req.Params.Meta), "tools/call "+o.Name, trace.SpanKindServer, attribute.String("mcp.method.name", "tools/call"))
		defer func() {
			code := "ok"
			switch {
			case err != nil:
				code = "failed"
			case result.IsError:
				code = "refused"
			}
			tracing.End(span, code)
		}()
		if req.Params.Task != nil {
			own, done := s.tasks.detach(ctx)
			defer done()
			ctx = own
		}
		start := time.Now()
		res, err := s.call(ctx, o, req)
		if err != nil {
			level := slog.LevelError
			if errors.Is(err, context.Canceled) { // the client no longer wants the answer
				level = slog.LevelInfo
			}
			s.cfg.Log.Log(ctx, level, "call", "tool", o.Name, "err", err, "took", time.Since(start))
			if errors.Is(err, sdk.ErrInvalidParams) || errors.Is(err, context.Canceled) {
				return nil, err // about the protocol, so its text is for the client
			}
			return nil, errInternal
		}
		if s.cfg.Log.Enabled(ctx, slog.LevelInfo) {
			s.cfg.Log.Info("call", "tool", o.Name, "refused", res.IsError, "took", time.Since(start))
		}
		return res, nil
	}
}

// withinMeta returns ctx within the trace span that a message's _meta names: standard
// input has no headers.
func withinMeta(ctx context.Context, meta *sdk.Meta) context.Context {
	if meta == nil {
		return ctx
	}
	return tracing.Within(ctx, func(name string) string {
		text, _ := meta.AdditionalFields[name].(string)
		return text
	})
}

func (s *Server) call(ctx context.Context, o ops.Op, req sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if e := s.overLimit(ctx); e != nil {
		return refusal(e), nil
	}
	in := o.NewIn()
	given, err := decode(ctx, o, req, in)
	if err != nil {
		return refusal(ops.AsError(err), o), nil
	}
	grant := s.grant(ctx)
	if given.plan != "" {
		if e := s.plans.fill(in, grant.Caller, given.plan); e != nil {
			return refusal(e), nil
		}
	}
	if e := grant.scope(o); e != nil {
		return refusal(e), nil
	}
	if !s.offers(grant, o.Name) {
		return refusal(&ops.Error{
			Code: ops.NotAllowed, Message: lang.Text{EN: "%s is not among the tools of this connection", ZH: "此连接的工具中没有 %s"}.With(o.Name),
			Fix: lang.Text{
				EN: "use one of those, or connect with the header %s: default,%s",
				ZH: "请使用已有的工具，或在连接时带上 HTTP 头 %s: default,%s",
			}.With(headerToolsets, o.Toolset),
		}), nil
	}
	svc, err := s.service()
	if err != nil {
		return refusal(ops.AsError(err)), nil
	}
	call := &ops.Call{Service: svc, Who: grant.Caller, Lang: lang.EN, Progress: progress(ctx, req), MayRead: s.mayRead, Roots: s.cfg.Roots}
	if o.Effect != ops.Read {
		if res, err := s.confirm(ctx, req, o, call, in, given); res != nil || err != nil {
			return res, err
		}
	}
	out, err := o.Run(ctx, call, in)
	if err != nil {
		return s.failed(o, out, err, clusterOf(call, in, out))
	}
	if done, ok := out.(launch.SubmitOut); ok && consent.IsSet(in, "dry_run") {
		given.limit.Bytes += len(strconv.Quote(done.Script)) // the problems beside it matter as much
	} else {
		out = withoutScript(out)
	}
	res, err := answer(o, out, given.limit, s.tokenFor(ctx, grant, call, o, in, out), clusterOf(call, in, out))
	if plan, ok := out.(launch.PlanOut); err == nil && ok && plan.Ready {
		s.plans.keep(res, in, grant.Caller)
	}
	return res, err
}

// withoutScript removes the script from a submission's answer for a caller that did not
// ask for it by render or dry_run. The script would take up most of the answer and
// leave no room for the problems.
func withoutScript(out any) any {
	if done, ok := out.(launch.SubmitOut); ok {
		done.Script, done.DryRun = "", false
		return done
	}
	return out
}

// service calls cfg.Service, or returns a service without clusters if there is none.
func (s *Server) service() (*ops.Service, error) {
	if s.cfg.Service == nil {
		return &ops.Service{Now: time.Now}, nil
	}
	return s.cfg.Service()
}

// failed turns an operation's error into an answer, together with the partial output of
// an operation that failed halfway.
func (s *Server) failed(o ops.Op, out any, err error, cluster string) (*sdk.CallToolResult, error) {
	if errors.Is(err, context.Canceled) {
		return nil, err
	}
	e := ofCluster(ops.AsError(err), cluster)
	res := refusal(e, o)
	// An operation that was refused has done nothing; only one that failed on the way
	// has partial output.
	if v := reflect.ValueOf(out); e.Code == ops.Failed && v.IsValid() && !v.IsZero() {
		part, perr := answer(o, out, shorten.Limit{Bytes: defaultBudget}, "", cluster)
		if perr == nil {
			object, _ := part.StructuredContent.(json.RawMessage)
			res.Content = append(res.Content, part.Content...)
			res.StructuredContent = json.RawMessage(withLeadingFields([]leadingField{{"error", cleanError(e, o)}}, object))
		}
	}
	return res, nil
}

// ofCluster returns e, whose commands name the cluster.
func ofCluster(e *ops.Error, cluster string) *ops.Error {
	c := *e
	c.Message.EN, c.Fix.EN = onCluster(e.Message.EN, cluster), onCluster(e.Fix.EN, cluster)
	return &c
}

// ownArguments are the arguments of a call that this package handles itself: the
// cursor, the confirmation token, and a plan's handle. limit also holds the size of the
// answer.
type ownArguments struct {
	limit       shorten.Limit
	token, plan string
}

// decode reads the request's arguments into in and returns those that are this
// package's own. An answer may be longer if the caller says how many lines it wants.
func decode(ctx context.Context, o ops.Op, req sdk.CallToolRequest, in any) (g ownArguments, err error) {
	raw, err := argumentsIn(ctx, req)
	if err != nil {
		return g, err
	}
	g.limit.Bytes = defaultBudget
	message.Members(raw, 0, func(m message.Member) bool {
		switch string(m.Name) {
		case "tail", "limit", "head", "lines":
			g.limit.Bytes = askedBudget
		}
		return true
	})
	own := map[string]*string{shorten.CursorField: &g.limit.Cursor}
	if o.Effect != ops.Read {
		own = map[string]*string{tokenField: &g.token, yesField: nil}
	}
	if o.Name == "submit" {
		own[planField] = &g.plan
	}
	err = o.Decode(raw, in, own)
	if tail := ops.FieldNamed(in, "tail"); tail.CanInt() && tail.Int() == 0 {
		tail.SetInt(pageLines)
	}
	return g, err
}

type argumentsKey struct{} // of a call's arguments that were taken out of its message

// argumentsIn returns a call's arguments, from ctx or as the library decoded them.
func argumentsIn(ctx context.Context, req sdk.CallToolRequest) ([]byte, error) {
	if raw, ok := ctx.Value(argumentsKey{}).([]byte); ok {
		return raw, nil
	}
	if len(req.Params.RawArguments) > 0 || req.Params.Arguments == nil {
		return req.Params.RawArguments, nil
	}
	return json.Marshal(req.Params.Arguments)
}
