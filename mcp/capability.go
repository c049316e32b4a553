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

// A tool that needs a capability which its client did not declare returns
// MissingRequiredClientCapabilityError. Protocol version 2026-07-28 demands its own
// error code and status 400 for that, but the library answers with an internal error.
// So the handler records the error in the request's context, and capabilityWriter
// replaces the library's answer.

type missingKey struct{} // the capabilityWriter of a request

func noteMissingCapability(ctx context.Context, err error) {
	var lacks sdk.MissingRequiredClientCapabilityError
	if w, ok := ctx.Value(missingKey{}).(*capabilityWriter); ok && errors.As(err, &lacks) {
		w.missing = &sdk.JSONRPCErrorDetails{
			Code: sdk.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: lacks.Error(),
			Data: map[string]any{"requiredCapabilities": map[string]any{lacks.Capability: map[string]any{}}},
		}
	}
}

func answerMissingCapabilities(next http.Handler) http.Handler {
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
		cw := &capabilityWriter{ResponseWriter: w, body: body}
		next.ServeHTTP(cw, r.WithContext(context.WithValue(r.Context(), missingKey{}, cw)))
	})
}

// A capabilityWriter replaces the answer of a request whose handler recorded a missing
// capability, unless a stream has begun.
type capabilityWriter struct {
	http.ResponseWriter
	missing  *sdk.JSONRPCErrorDetails // the error that the request's handler recorded
	body     []byte
	began    bool
	replaced bool
}

// WriteHeader sends either the library's status or the replacement answer.
func (w *capabilityWriter) WriteHeader(status int) {
	if w.began {
		return
	}
	w.began = true
	if w.missing == nil {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.replaced = true
	var req envelope
	_ = json.Unmarshal(w.body, &req) // the library has decoded it before
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w.ResponseWriter).Encode(map[string]any{ // a failed write means that the client is gone
		"jsonrpc": sdk.JSONRPC_VERSION, "id": req.ID, "error": w.missing,
	})
}

// Write drops the library's answer if it was replaced.
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

// Unwrap lets http.ResponseController set deadlines.
func (w *capabilityWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
