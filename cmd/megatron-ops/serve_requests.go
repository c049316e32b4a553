package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/megatron-ops/megatron-ops/internal/tracing"
)

// instrument measures requests, each in a trace span. The label of the path is the
// route's pattern, so that requests cannot create labels without end.
func instrument(mux *http.ServeMux, requests *prometheus.HistogramVec) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		pattern = cmp.Or(pattern, "other")
		rec := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		began := time.Now()
		// The span must not contain the URL, which may hold a one-time link.
		method := r.Method
		if !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete, http.MethodOptions}, method) {
			method = "_OTHER"
		}
		ctx, span := tracing.Start(tracing.Within(r.Context(), r.Header.Get), method+" "+pattern, trace.SpanKindServer,
			attribute.String("http.request.method", method), attribute.String("http.route", pattern))
		defer func() {
			span.SetAttributes(attribute.Int("http.response.status_code", rec.status))
			code := "ok"
			if rec.status >= http.StatusInternalServerError {
				code = "failed"
			}
			tracing.End(span, code)
		}()
		mux.ServeHTTP(rec, r.WithContext(ctx))
		if rec.Header().Get("Content-Type") != "text/event-stream" { // a stream lasts as long as somebody watches it
			requests.WithLabelValues(pattern, fmt.Sprintf("%dxx", rec.status/100)).Observe(time.Since(began).Seconds())
		}
	})
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.status = code
	s.ResponseWriter.WriteHeader(code)
}

// Flush sends what is written so far, as streams need.
func (s *statusRecorder) Flush() {
	if f, ok := s.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// bodyWithin is how long a request's body may take, whichever path it is for and whether
// or not its sender may use that path.
const bodyWithin = 30 * time.Second

// bodiesInTime passes on requests whose bodies must arrive in time. A handler that refuses
// a request without reading its body does not end the connection: the library reads on
// before it answers, for as long as the sender likes.
func bodiesInTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			connection := http.NewResponseController(w)
			_ = connection.SetReadDeadline(time.Now().Add(bodyWithin)) // fails only where there is no network connection, as in tests
			r.Body = &timedBody{r.Body, connection}
		}
		next.ServeHTTP(w, r)
	})
}

// A timedBody lifts the deadline when it was read to its end: the answer may take longer,
// and the connection is read on to learn that the client went away.
type timedBody struct {
	io.ReadCloser
	connection *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}
