// Package tracing reports to OpenTelemetry what is done here: one span for each request
// to a surface, each operation and each request to Slurm. A span contains names, a
// cluster, a job's id and the result; never an argument, a script, log text or an error
// message. Without a provider, which the program sets if OpenTelemetry's variables ask
// for it, a span costs next to nothing.
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

// Start begins a span within ctx's span.
func Start(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// End ends a span with the code of its result: "ok", "found" if an examination has
// found faults, or an error's code.
func End(span trace.Span, code string) {
	span.SetAttributes(attribute.String("megatron_ops.code", code))
	if code != "ok" && code != "found" {
		span.SetStatus(codes.Error, code)
	}
	span.End()
}

// Within returns ctx within the span that a request's headers name, in the format of
// W3C Trace Context, or ctx itself if they name none.
func Within(ctx context.Context, header func(name string) string) context.Context {
	parent := header("traceparent")
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": header("tracestate")})
}
