package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counted times requests; the path's label is one of few, whatever is asked.
func counted(mux *http.ServeMux, requests *prometheus.HistogramVec) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		if pattern == "" {
			pattern = "other"
		}
		rec := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		began := time.Now()
		mux.ServeHTTP(rec, r)
		if rec.Header().Get("Content-Type") != "text/event-stream" { // a stream lasts as long as somebody looks
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

// Unwrap lets streams be flushed through the recorder.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
