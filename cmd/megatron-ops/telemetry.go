package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/tracing"
)

// telemetryFlushTimeout bounds how long a command waits for the collector at its end.
const telemetryFlushTimeout = 2 * time.Second

// A telemetry sends spans and log lines to a collector.
type telemetry struct {
	traces *sdktrace.TracerProvider
	logs   *sdklog.LoggerProvider
}

// exportEnabled reports whether OpenTelemetry's own variables ask for a signal, TRACES
// or LOGS. The error says what is not supported.
func exportEnabled(signal string) (on bool, err error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	exporter := os.Getenv("OTEL_" + signal + "_EXPORTER")
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	switch {
	case exporter == "none" || exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, lang.Text{EN: "OTEL_%s_EXPORTER=%s: only otlp and none are supported", ZH: "OTEL_%s_EXPORTER=%s：这里只支持 otlp 与 none"}.Err(signal, exporter)
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if protocol != "http/protobuf" {
		return false, lang.Text{
			EN: "OTEL_EXPORTER_OTLP_PROTOCOL=%s: only http/protobuf is supported, which collectors accept on port 4318",
			ZH: "OTEL_EXPORTER_OTLP_PROTOCOL=%s：这里使用 http/protobuf，采集端一般在 4318 端口接收",
		}.Err(protocol)
	}
	if u, err := url.Parse(endpoint); endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return false, lang.Text{EN: "OTEL_EXPORTER_OTLP_ENDPOINT is not an http address", ZH: "OTEL_EXPORTER_OTLP_ENDPOINT 不是 http 地址"}.Err()
	}
	return true, nil
}

// startTelemetry starts to send what the variables ask for. It logs what cannot be
// sent; no command fails because of it.
func startTelemetry(ctx context.Context, log *slog.Logger) *telemetry {
	traces, err1 := exportEnabled("TRACES")
	logs, err2 := exportEnabled("LOGS")
	if err := errors.Join(err1, err2); err != nil {
		log.Warn("OpenTelemetry", "error", err)
	}
	if !traces && !logs {
		return nil
	}
	otel.SetLogger(logr.Discard()) // the library's own logger writes to standard error
	logTelemetryErrors(log, slog.LevelInfo)
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "megatron-ops"), attribute.String("service.version", version())),
		resource.WithFromEnv()) // last, so that OTEL_SERVICE_NAME overrides the name
	if err != nil {
		otel.Handle(err)
	}
	t := &telemetry{}
	if traces {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			otel.Handle(err)
			return nil
		}
		t.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
		otel.SetTracerProvider(t.traces)
	}
	if logs {
		exporter, err := otlploghttp.New(ctx)
		if err != nil {
			otel.Handle(err)
			return t
		}
		t.logs = sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)), sdklog.WithResource(about))
	}
	return t
}

// logTelemetryErrors logs what could not be sent. For a command, the level is one that
// only a debugging person sees.
func logTelemetryErrors(log *slog.Logger, level slog.Level) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Log(context.Background(), level, "OpenTelemetry", "error", err) }))
}

// withExport returns a handler that also sends h's lines to the collector.
func (t *telemetry) withExport(h slog.Handler) slog.Handler {
	if t == nil || t.logs == nil {
		return h
	}
	return slog.NewMultiHandler(h, otelslog.NewHandler("github.com/megatron-ops/megatron-ops", otelslog.WithLoggerProvider(t.logs)))
}

// runTraced runs an operation in a span, within the span that TRACEPARENT names.
func (sh *shell) runTraced(ctx context.Context, op ops.Op, words []string) error {
	ctx = tracing.Within(ctx, func(name string) string { return os.Getenv(strings.ToUpper(name)) })
	ctx, span := tracing.Start(ctx, "shell "+op.Name, trace.SpanKindInternal)
	err := sh.operation(ctx, op, words)
	code := "ok"
	if end, ok := errors.AsType[exitCode](err); ok && end == found {
		code = "found"
	} else if err != nil {
		code = string(ops.AsError(err).Code)
	}
	tracing.End(span, code)
	return err
}

// end sends what is left.
func (t *telemetry) end() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), telemetryFlushTimeout)
	defer cancel()
	if t.traces != nil {
		if err := t.traces.Shutdown(ctx); err != nil {
			otel.Handle(err)
		}
	}
	if t.logs != nil {
		if err := t.logs.Shutdown(ctx); err != nil {
			otel.Handle(err)
		}
	}
}
