package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	messages "github.com/megatron-ops/megatron-ops/mcp/message"
)

// The library answers every error of a resource's, prompt's or completion's handler
// with −32603, refuses requests with −32600 at most, and answers calls that were
// cancelled. So a handler's error begins with the code that it means, or with a mark
// that nobody waits for the answer, between two null characters, and rewriteOutgoing
// corrects the message as it is written. No text from outside can contain a null
// character: redact.Clean and the decoder of JSON arguments remove them, and encoding
// escapes a quoted one once more.

// A codedError is an error with a JSON-RPC error code.
type codedError struct {
	code int
	err  error
}

func (e codedError) Error() string { return codeMark(e.code) + e.err.Error() }
func (e codedError) Unwrap() error { return e.err }

func codeMark(code int) string { return "\x00" + strconv.Itoa(code) + "\x00" }

// An unansweredError is the error of a call that its client cancelled.
type unansweredError struct{ err error }

func (e unansweredError) Error() string { return "\x00unanswered\x00" + e.err.Error() }
func (e unansweredError) Unwrap() error { return e.err }

var (
	codedMessage      = regexp.MustCompile(`"code":-326(?:00|03),"message":"\\u0000(-\d+)\\u0000`)
	unansweredMessage = []byte(`"code":-32603,"message":"\u0000unanswered\u0000`)
)

// codeOf returns the error code of a refusal in ctx's version of the protocol.
func codeOf(ctx context.Context, e *ops.Error) int {
	switch e.Code {
	case ops.NotFound:
		if sdk.IsModernProtocol(sdkserver.RequestProtocolVersion(ctx)) {
			return sdk.INVALID_PARAMS
		}
		return sdk.RESOURCE_NOT_FOUND
	case ops.BadInput, ops.NotAllowed, ops.Preflight:
		return sdk.INVALID_PARAMS
	}
	return sdk.INTERNAL_ERROR
}

// protocolError returns e as the error of a request that is not a tool call: its code,
// what is wrong, and what would work.
func protocolError(ctx context.Context, e *ops.Error) error {
	e = cleanError(e)
	var err error = e
	if e.Fix.EN != "" {
		err = fmt.Errorf("%w; %s", e, e.Fix.EN)
	}
	if code := codeOf(ctx, e); code != sdk.INTERNAL_ERROR {
		return codedError{code, err}
	}
	return err
}

// finalError returns the error that a handler ends with: an unansweredError if the
// client cancelled the request, an error with the protocol's code if err is about the
// request itself, else err. It is not for tasks: a task outlives its request and
// reports its own result.
func finalError(ctx context.Context, err error) error {
	var has codedError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return unansweredError{context.Canceled}
	case errors.Is(err, sdk.ErrInvalidParams) && !errors.As(err, &has):
		return codedError{sdk.INVALID_PARAMS, err}
	}
	return err
}

// rewriteOutgoing returns a message as it is to be sent, or nil if it must not be sent.
func rewriteOutgoing(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"message":"\u0000`)) {
		return message
	}
	if bytes.Contains(message, unansweredMessage) {
		return nil
	}
	return codedMessage.ReplaceAll(message, []byte(`"code":$1,"message":"`))
}

// A delivery counts the notifications of one connection, so that an answer can wait for
// the notifications before it. The library writes both from different goroutines, and
// over HTTP on whichever stream of the session comes first; the official TypeScript
// client forgets a call's progress handler as soon as the call is answered.
type delivery struct {
	mu      sync.Mutex
	sent    int
	written int
	by      *messageWriter // the writer of the newest notification
	changed chan struct{}  // closed and replaced when written grows
}

type (
	deliveryKey struct{}
	writerKey   struct{} // the messageWriter of a request
)

func newDelivery() *delivery { return &delivery{changed: make(chan struct{})} }

// Notified records that ctx's call has just sent a notification.
func Notified(ctx context.Context) {
	if d, ok := ctx.Value(deliveryKey{}).(*delivery); ok {
		d.mu.Lock()
		d.sent++
		d.mu.Unlock()
		if w, ok := ctx.Value(writerKey{}).(*messageWriter); ok {
			w.notified.Store(true)
		}
	}
}

// notifications counts the notifications in a message that a delivery counts.
func notifications(message []byte) int {
	return bytes.Count(message, []byte(`"method":"notifications/progress"`)) + bytes.Count(message, []byte(`"method":"notifications/message"`))
}

// wrote records that by has written n notifications.
func (d *delivery) wrote(n int, by *messageWriter) {
	if n == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written += n
	d.by = by
	close(d.changed)
	d.changed = make(chan struct{})
}

// maxNotificationWait bounds how long an answer waits for the notifications before it:
// a notification without a reader is never written.
const maxNotificationWait = time.Second

// otherStreamDelay is how long an answer waits if the library has written the
// notifications before it to another stream of the session: two connections have no
// common order.
const otherStreamDelay = 50 * time.Millisecond

// awaitNotifications waits until the notifications that were sent so far are written.
func awaitNotifications(ctx context.Context) {
	d, ok := ctx.Value(deliveryKey{}).(*delivery)
	if !ok {
		return // without a delivery the library keeps the order itself
	}
	late := time.NewTimer(maxNotificationWait)
	defer late.Stop()
	d.mu.Lock()
	sent := d.sent
	for d.written < sent {
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-late.C:
			return
		}
		d.mu.Lock()
	}
	own, _ := ctx.Value(writerKey{}).(*messageWriter)
	elsewhere := own != nil && own.notified.Load() && d.by != own
	d.mu.Unlock()
	if elsewhere {
		ops.Pause(ctx, otherStreamDelay)
	}
}

// deliveries holds the delivery of each session that has an open request.
type deliveries struct {
	mu   sync.Mutex
	open map[string]*openDelivery
}

type openDelivery struct {
	delivery *delivery
	requests int
}

// join returns the delivery of a session. The caller calls leave when its request ends.
func (ds *deliveries) join(session string) (d *delivery, leave func()) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	o := ds.open[session]
	if o == nil {
		o = &openDelivery{delivery: newDelivery()}
		ds.open[session] = o
	}
	o.requests++
	return o.delivery, func() {
		ds.mu.Lock()
		defer ds.mu.Unlock()
		if o.requests--; o.requests == 0 {
			delete(ds.open, session)
		}
	}
}

// rewriteAnswers rewrites next's messages and counts their notifications: for each
// request in the newest version of the protocol, which has a stream for each request,
// and for each session in older versions.
func rewriteAnswers(next http.Handler) http.Handler {
	sessions := deliveries{open: map[string]*openDelivery{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cw := &messageWriter{ResponseWriter: w}
		if sdk.IsModernProtocol(r.Header.Get(sdk.HeaderProtocolVersion)) {
			cw.delivery = newDelivery()
		} else if session := r.Header.Get(sdkserver.HeaderKeySessionID); session != "" {
			var leave func()
			cw.delivery, leave = sessions.join(session)
			defer leave()
		}
		ctx := context.WithValue(r.Context(), writerKey{}, cw)
		if cw.delivery != nil {
			ctx = context.WithValue(ctx, deliveryKey{}, cw.delivery)
		}
		next.ServeHTTP(cw, r.WithContext(ctx))
		cw.begin(0)
	})
}

// A messageWriter rewrites each message before it is sent. It holds the status back
// until the first message, because a request without an answer needs another status.
type messageWriter struct {
	http.ResponseWriter
	delivery      *delivery
	noSuchSession bool                     // the request would end a session that the caller does not have
	notified      atomic.Bool              // the request has sent notifications
	missing       *sdk.JSONRPCErrorDetails // the answer in place of the library's
	// unflushed counts the notifications that were written but may not be sent yet.
	unflushed int
	status    int // the library's status; 0: none yet
	began     bool
}

// WriteHeader keeps the status; a stream begins at once.
func (w *messageWriter) WriteHeader(status int) {
	if w.noSuchSession { // the library has no status for this
		status = http.StatusNotFound
	}
	w.status = cmp.Or(w.status, status)
	if w.Header().Get("Content-Type") == "text/event-stream" {
		w.begin(0)
	}
}

// begin sends the library's status, or fallback if the library has set none. A fallback
// other than 200 takes precedence; a fallback of 0 stands for none.
func (w *messageWriter) begin(instead int) {
	if w.began || w.status == 0 && instead == 0 {
		return
	}
	w.began = true
	if instead == 0 || w.status != 0 && instead == http.StatusOK {
		instead = w.status
	}
	w.ResponseWriter.WriteHeader(instead)
}

// Write passes on a message. The library writes each message in one call.
func (w *messageWriter) Write(p []byte) (int, error) {
	message := rewriteOutgoing(p)
	if message == nil {
		if !w.began {
			w.Header().Del("Content-Type")
		}
		w.begin(http.StatusAccepted)
		return len(p), nil
	}
	if w.missing != nil && !w.began {
		w.begin(http.StatusBadRequest)
		return len(p), json.NewEncoder(w.ResponseWriter).Encode(map[string]any{
			"jsonrpc": sdk.JSONRPC_VERSION, "id": json.RawMessage(messages.IDOf(message)), "error": w.missing,
		})
	}
	w.begin(http.StatusOK)
	_, err := w.ResponseWriter.Write(message)
	if w.delivery != nil {
		w.unflushed += notifications(message)
	}
	return len(p), err
}

// noteMissingCapability has the request answered as the newest version of the protocol
// demands where a tool needs a capability that its client did not declare: with an error
// and a status of their own. The library would answer with an internal error.
func noteMissingCapability(ctx context.Context, err error) {
	var lacks sdk.MissingRequiredClientCapabilityError
	w, ok := ctx.Value(writerKey{}).(*messageWriter)
	if ok && errors.As(err, &lacks) && sdk.IsModernProtocol(sdkserver.RequestProtocolVersion(ctx)) {
		w.missing = &sdk.JSONRPCErrorDetails{
			Code: sdk.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: lacks.Error(),
			Data: map[string]any{"requiredCapabilities": map[string]any{lacks.Capability: map[string]any{}}},
		}
	}
}

// Flush passes on what a stream has written so far.
func (w *messageWriter) Flush() {
	w.begin(0)
	if f, ok := w.ResponseWriter.(http.Flusher); ok && w.began {
		f.Flush()
	}
	if w.unflushed > 0 {
		w.delivery.wrote(w.unflushed, w)
		w.unflushed = 0
	}
}

// Unwrap lets http.ResponseController set deadlines.
func (w *messageWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
