// Package tracing tells OpenTelemetry what is done here: one span for each request
// at a door, each operation and each request to Slurm. A span holds names, a
// cluster, a job's id and how it ended; never an argument, a script, a log's text
// or what an error says. Without a provider, which the program sets where
// OpenTelemetry's variables ask for it, a span costs next to nothing.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var tracer = otel.Tracer("github.com/megatron-ops/megatron-ops")

// Start begins a span inside of ctx's own.
func Start(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// End ends a span with the code of its result: "ok", "found" where what was looked
// at has faults, or that of an error.
func End(span trace.Span, code string) {
	span.SetAttributes(attribute.String("megatron_ops.code", code))
	if code != "ok" && code != "found" {
		span.SetStatus(codes.Error, code)
	}
	span.End()
}

// Within returns ctx inside of the span that the headers of a request name, as
// W3C's Trace Context has them; where they name none, ctx as it is.
func Within(ctx context.Context, header func(name string) string) context.Context {
	parent := header("traceparent")
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": header("tracestate")})
}
