package slacktest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// Requests in memory need no network. They cost less, and tests that use them can run in a
// bubble of testing/synctest, where a network connection would stop the clock.

var (
	inMemory      sync.Map // host → http.Handler
	inMemoryCount atomic.Int64
)

// ServeInMemory makes h serve the returned URL until the test ends. Only requests of this
// process reach it, by http.DefaultTransport after InstallTransport.
func ServeInMemory(t testing.TB, h http.Handler) (url string) {
	t.Helper()
	host := fmt.Sprintf("memory-%d.test", inMemoryCount.Add(1))
	var calls sync.WaitGroup
	inMemory.Store(host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		defer calls.Done()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { inMemory.Delete(host); calls.Wait() })
	return "http://" + host
}

// InstallTransport lets http.DefaultTransport find what ServeInMemory serves. It is called
// once, before the tests.
func InstallTransport() { http.DefaultTransport = memoryTransport{http.DefaultTransport} }

// A memoryTransport passes requests to handlers in memory, and all others on to network.
type memoryTransport struct{ network http.RoundTripper }

func (m memoryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	h, ok := inMemory.Load(r.URL.Host)
	if !ok {
		return m.network.RoundTrip(r)
	}
	return RoundTrip(h.(http.Handler), r)
}

// RoundTrip makes h answer a client's request. It returns when the request's context ends,
// even where h has not answered yet, and an error where h closes the connection.
func RoundTrip(h http.Handler, r *http.Request) (*http.Response, error) {
	in := r.WithContext(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := &hijackRecorder{ResponseRecorder: httptest.NewRecorder()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(w, in)
	}()
	select {
	case <-done:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if w.hijacked {
		return nil, io.ErrUnexpectedEOF
	}
	res := w.Result()
	res.Request = r
	return res, nil
}

// A hijackRecorder records an answer, or that the handler took the connection over to close it.
type hijackRecorder struct {
	*httptest.ResponseRecorder
	hijacked bool
}

func (w *hijackRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	ours, theirs := net.Pipe()
	return ours, nil, theirs.Close()
}
