package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// Each request is counted under its route and the class of its status; one without a
// route under "other". A stream, which lasts as long as somebody watches, is not
// counted.
func TestRequestsAreCountedByRouteAndAnswer(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /jobs/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "0" {
			http.Error(w, "no", http.StatusNotFound)
		}
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
	})
	requests := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "requests"}, []string{"path", "status"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(requests)
	handler := instrument(mux, requests)
	for _, path := range []string{"/jobs/1", "/jobs/2", "/jobs/0", "/live", "/secret-link"} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		require.Equal(t, path == "/live", answer.Flushed, path)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]uint64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetHistogram().GetSampleCount()
	}
	require.Equal(t, map[string]uint64{"GET /jobs/{id} 2xx": 2, "GET /jobs/{id} 4xx": 1, "other 4xx": 1}, got)
}
