package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

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

// A sender without a token, whose body never comes, holds no connection. A whole body
// leaves its handler all the time that it takes.
func TestARefusedBodyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := &http.Server{Handler: bodiesInTime(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/refused" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			_, _ = io.ReadAll(r.Body)
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Minute):
				w.WriteHeader(http.StatusNoContent)
			}
		}))}
		l := pipes{make(chan net.Conn, 2)}
		go func() { _ = srv.Serve(l) }()
		defer srv.Close()
		for path, want := range map[string]int{"/refused": http.StatusUnauthorized, "/long": http.StatusNoContent} {
			conn, served := net.Pipe()
			defer conn.Close()
			l.conns <- served
			length := map[string]int{"/refused": 1000, "/long": 6}[path]
			_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\ntoken=", path, length)
			require.NoError(t, err)
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err, path)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, want, answer.StatusCode, path)
			require.Equal(t, path == "/refused", answer.Close, path)
		}
	})
}

// pipes listen for connections that a test makes in memory.
type pipes struct{ conns chan net.Conn }

func (l pipes) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l pipes) Close() error {
	close(l.conns)
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }
