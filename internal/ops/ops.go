// Package ops is the table of operations: everything that the product can do,
// each defined once with its typed input and output, its effect and its words
// in two languages. The shell, Slack and MCP are loops over the table;
// authorisation, confirmation and audit happen here, once.
package ops

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"go.opentelemetry.io/otel/trace"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/tracing"
)

// An Effect says what an operation changes.
type Effect string

// The effects. Read changes nothing; Write creates or changes something of the
// caller's; Destructive ends something that cannot be restored.
const (
	Read        Effect = "read"
	Write       Effect = "write"
	Destructive Effect = "destructive"
)

// A Toolset is a group of operations. An agent or an operator can offer some groups
// only.
type Toolset string

// The toolsets.
const (
	PlanSet      Toolset = "plan"
	JobsSet      Toolset = "jobs"
	LogsSet      Toolset = "logs"
	NodesSet     Toolset = "nodes"
	KnowledgeSet Toolset = "knowledge"
	AdminSet     Toolset = "admin"
)

// An Op is one row of the table.
type Op struct {
	// Name is the word that a person types, and an agent's tool name.
	Name    string
	Effect  Effect
	Toolset Toolset
	// Core operations are in the list of tools that an agent sees by default.
	Core bool
	// Idempotent reports that a second, equal call changes nothing more. It says
	// nothing about an operation that only reads.
	Idempotent bool
	// Closed reports that the operation uses nothing outside of this process: no
	// cluster, no network.
	Closed bool
	// Summary is one line. Help says when to use the operation and when not to.
	Summary lang.Text
	Help    lang.Text
	// Example is a command line without the program's name. Examples are further ones.
	Example  string
	Examples []string
	// Batch answers JSON Lines in their order, one line with one line. It is nil where
	// the operation has no batch form.
	Batch func(io.Reader, io.Writer) error

	in, out reflect.Type
	run     func(context.Context, *Call, any) (any, error)
}

// NewIn returns a pointer to a zero input struct of o. Its fields carry JSON names,
// help texts and flag tags: one struct serves YAML, flags, Slack's words and MCP's
// arguments.
func (o Op) NewIn() any { return reflect.New(o.in).Interface() }

// In returns the type of o's input struct.
func (o Op) In() reflect.Type { return o.in }

// Out returns the type of o's output struct.
func (o Op) Out() reflect.Type { return o.out }

// Run runs the operation for c. in is what NewIn returned, filled. The error is an
// *Error wherever a user can do something about it. A partial answer may come with an
// error.
func (o Op) Run(ctx context.Context, c *Call, in any) (out any, err error) {
	v := reflect.ValueOf(in)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != o.in {
		return nil, fmt.Errorf("ops: %s takes *%s, not %T", o.Name, o.in, in)
	}
	ctx, span := tracing.Start(ctx, "operation "+o.Name, trace.SpanKindInternal)
	defer func() { o.endSpan(span, c, in, out, err) }()
	c, err = c.For(o)
	if err != nil {
		c.audit(ctx, o, in, nil, err)
		return nil, err
	}
	if c.Key != "" {
		c.Key += "/" + o.Name // an operation may run others
	}
	out, err = o.run(ctx, c, v.Elem().Interface())
	if o.Effect != Read && c.Service != nil {
		for _, view := range c.Views {
			view.Changed() // even a refused call may have changed something before it was refused
		}
	}
	c.audit(ctx, o, in, out, err)
	return out, err
}

// Define connects a typed function with its row of the table.
func Define[In, Out any](o Op, run func(context.Context, *Call, In) (Out, error)) Op {
	o.in, o.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	o.run = func(ctx context.Context, c *Call, in any) (any, error) {
		return run(ctx, c, in.(In))
	}
	return o
}

// A Finder is an output that can report that the operation found something wrong. The
// shell then exits with 3.
type Finder interface{ Found() bool }

// A Doer is an output of an operation that does not always change something, such as a submission
// that the plan refused. Other operations have changed something where they end without an error.
type Doer interface{ Did() bool }
