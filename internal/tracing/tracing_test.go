package tracing_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/megatron-ops/megatron-ops/internal/tracing"
)

// A span belongs to the trace that the request names, if any, and has an error if its
// result is one. A result with findings is not an error.
func TestWhatASpanTells(t *testing.T) {
	seen := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSpanProcessor(seen)))
	for code, want := range map[string]codes.Code{"ok": codes.Unset, "found": codes.Unset, "not_found": codes.Error} {
		headers := map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
		ctx := tracing.Within(t.Context(), func(name string) string { return headers[name] })
		_, span := tracing.Start(ctx, "list", trace.SpanKindServer)
		tracing.End(span, code)
		ended := seen.Ended()
		last := ended[len(ended)-1]
		require.Equal(t, want, last.Status().Code, code)
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c", last.Parent().TraceID().String())
	}
	require.Equal(t, t.Context(), tracing.Within(t.Context(), func(string) string { return "" }))
}
