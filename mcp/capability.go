package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	sdk "github.com/mark3labs/mcp-go/mcp"
)

// A tool that needs something of its client that the client did not declare
// returns MissingRequiredClientCapabilityError. Protocol version 2026-07-28
// wants that answered with its own code and status 400; the library answers
// with an internal error. So the handler notes it in the request's context, and
// the writer below puts the right answer in place of the library's.

type missingKey struct{}

// missing is where a request's handler notes the error.
type missing struct{ err *sdk.JSONRPCErrorDetails }

func noteMissingCapability(ctx context.Context, err error) {
	var lacks sdk.MissingRequiredClientCapabilityError
	if m, ok := ctx.Value(missingKey{}).(*missing); ok && errors.As(err, &lacks) {
		m.err = &sdk.JSONRPCErrorDetails{
			Code: sdk.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: lacks.Error(),
			Data: map[string]any{"requiredCapabilities": map[string]any{lacks.Capability: map[string]any{}}},
		}
	}
}

func capabilities(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !sdk.IsModernProtocol(r.Header.Get(sdk.HeaderProtocolVersion)) {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "message could not be read", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		m := &missing{}
		cw := &capabilityWriter{ResponseWriter: w, m: m, body: body}
		next.ServeHTTP(cw, r.WithContext(context.WithValue(r.Context(), missingKey{}, m)))
	})
}

// A capabilityWriter replaces the answer of a request whose handler noted a
// missing capability, unless a stream has begun.
type capabilityWriter struct {
	http.ResponseWriter
	m        *missing
	body     []byte
	began    bool
	replaced bool
}

// WriteHeader decides which answer it is.
func (w *capabilityWriter) WriteHeader(status int) {
	if w.began {
		return
	}
	w.began = true
	if w.m.err == nil {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.replaced = true
	var req envelope
	_ = json.Unmarshal(w.body, &req) // the library has read it before
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w.ResponseWriter).Encode(map[string]any{ // a client that is gone reads no answer
		"jsonrpc": sdk.JSONRPC_VERSION, "id": req.ID, "error": w.m.err,
	})
}

// Write drops what the library says where the answer was replaced.
func (w *capabilityWriter) Write(p []byte) (int, error) {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
	if w.replaced {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Flush passes on what a stream has written so far.
func (w *capabilityWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap lets the server set deadlines.
func (w *capabilityWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
