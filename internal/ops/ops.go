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

// An Effect says what an operation does to the world.
type Effect string

// The effects. Read changes nothing; Write makes or changes something of the
// caller's; Destructive ends something that cannot be had back.
const (
	Read        Effect = "read"
	Write       Effect = "write"
	Destructive Effect = "destructive"
)

// A Toolset groups operations, so that an agent or an operator can offer some
// of them only.
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
	// Core operations are in the listing that an agent sees by default.
	Core bool
	// Idempotent reports whether a second, equal call changes nothing more, of one
	// that does not only read.
	Idempotent bool
	// Closed reports that the operation asks nothing outside of this process: no
	// cluster, no network.
	Closed bool
	// Summary is one line; Help says when to use the operation and when not.
	Summary lang.Text
	Help    lang.Text
	// Example is what one would type after the program's name.
	Example string
	// Examples are further ones, for the help.
	Examples []string
	// Batch answers JSON Lines, in order, one answer a line; nil where the
	// operation has no batch form.
	Batch func(io.Reader, io.Writer) error

	in, out reflect.Type
	run     func(context.Context, *Call, any) (any, error)
}

// NewIn returns a pointer to a zero input struct of o. Its fields carry json
// names, help texts and flag tags: one struct serves YAML, flags, Slack words
// and MCP arguments.
func (o Op) NewIn() any { return reflect.New(o.in).Interface() }

// In is the type of o's input struct.
func (o Op) In() reflect.Type { return o.in }

// Out is the type of o's output struct.
func (o Op) Out() reflect.Type { return o.out }

// Run carries the operation out for c. The input is what NewIn returned,
// filled. The error is an *Error wherever a user can do something about it; a
// partial answer may come with an error.
func (o Op) Run(ctx context.Context, c *Call, in any) (out any, err error) {
	v := reflect.ValueOf(in)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != o.in {
		return nil, fmt.Errorf("ops: %s takes *%s, not %T", o.Name, o.in, in)
	}
	ctx, span := tracing.Start(ctx, "operation "+o.Name, trace.SpanKindInternal)
	defer func() { o.traced(span, c, v.Elem(), out, err) }()
	c, err = c.For(o)
	if err != nil {
		c.audit(ctx, o, in, nil, err)
		return nil, err
	}
	out, err = o.run(ctx, c, v.Elem().Interface())
	if o.Effect != Read && c.Service != nil {
		for _, view := range c.Views {
			view.Changed() // even a refusal may have come half-way
		}
	}
	c.audit(ctx, o, in, out, err)
	return out, err
}

// Define ties a typed function to its row.
func Define[In, Out any](o Op, run func(context.Context, *Call, In) (Out, error)) Op {
	o.in, o.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	o.run = func(ctx context.Context, c *Call, in any) (any, error) {
		return run(ctx, c, in.(In))
	}
	return o
}

// A Finder is an output that may have found something wrong; the shell then
// exits with 3.
type Finder interface{ Found() bool }
