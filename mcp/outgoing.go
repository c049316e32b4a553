package mcp

import (
	"bytes"
	"cmp"
	"context"
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
)

// The library answers every error of a resource's, a prompt's or a completion's
// handler with −32603, refuses requests with −32600 at most, and answers calls that were cancelled. So a handler's
// error begins with the code that it means, or with the word that nobody waits
// for it any more, between two null characters, and what writes messages out puts
// that right. No text from outside holds a null character: redact.Clean and the
// decoder of JSON arguments see to that, and a quoted one is escaped once more.

// A coded is an error with a code of the protocol.
type coded struct {
	code int
	err  error
}

func (e coded) Error() string { return codeMark(e.code) + e.err.Error() }
func (e coded) Unwrap() error { return e.err }

// codeMark is what an error of that code begins with.
func codeMark(code int) string { return "\x00" + strconv.Itoa(code) + "\x00" }

// An unanswered is the error of a call that its client cancelled.
type unanswered struct{ err error }

func (e unanswered) Error() string { return "\x00unanswered\x00" + e.err.Error() }
func (e unanswered) Unwrap() error { return e.err }

var (
	codedMessage      = regexp.MustCompile(`"code":-326(?:00|03),"message":"\\u0000(-\d+)\\u0000`)
	unansweredMessage = []byte(`"code":-32603,"message":"\u0000unanswered\u0000`)
)

// codeOf is the code of a refusal in ctx's version of the protocol.
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

// protocolError is e as the error of something that is no tool: its code, what is
// wrong, and what would work.
func protocolError(ctx context.Context, e *ops.Error) error {
	e = cleanError(e)
	var err error = e
	if e.Fix.EN != "" {
		err = fmt.Errorf("%w; %s", e, e.Fix.EN)
	}
	if code := codeOf(ctx, e); code != sdk.INTERNAL_ERROR {
		return coded{code, err}
	}
	return err
}

// settledError is the error that a handler ends with: none of what it found where
// its client cancelled the request, and the protocol's code where err is about the
// request itself. A task goes on after its request, and tells by itself.
func settledError(ctx context.Context, err error) error {
	var has coded
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return unanswered{context.Canceled}
	case errors.Is(err, sdk.ErrInvalidParams) && !errors.As(err, &has):
		return coded{sdk.INVALID_PARAMS, err}
	}
	return err
}

// outgoing is a message as it is to be sent; nil: it is not.
func outgoing(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"message":"\u0000`)) {
		return message
	}
	if bytes.Contains(message, unansweredMessage) {
		return nil
	}
	return codedMessage.ReplaceAll(message, []byte(`"code":$1,"message":"`))
}

// A delivery counts the notifications of one connection, so that an answer can
// wait for those before it: the library writes both from different goroutines,
// over HTTP on whichever of a session's streams comes first, and the official
// TypeScript client forgets a call's progress handler as soon as its answer is
// in.
type delivery struct {
	mu      sync.Mutex
	sent    int
	written int
	by      *correctedWriter // who wrote the newest
	changed chan struct{}    // closed, and made anew, when written grows
}

type (
	deliveryKey struct{}
	writerKey   struct{}
	endsKey     struct{} // the writer of a request that ends a session
)

func newDelivery() *delivery { return &delivery{changed: make(chan struct{})} }

// Notified records that a notification was just sent within ctx's call.
func Notified(ctx context.Context) {
	if d, ok := ctx.Value(deliveryKey{}).(*delivery); ok {
		d.mu.Lock()
		d.sent++
		d.mu.Unlock()
		if w, ok := ctx.Value(writerKey{}).(*correctedWriter); ok {
			w.told.Store(true)
		}
	}
}

// notifications counts those of a message that are counted.
func notifications(message []byte) int {
	return bytes.Count(message, []byte(`"method":"notifications/progress"`)) + bytes.Count(message, []byte(`"method":"notifications/message"`))
}

// wrote notes that by has written so many.
func (d *delivery) wrote(n int, by *correctedWriter) {
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

// mostSettle is how long an answer waits for the notifications before it at
// most: one that has no reader is never written.
const mostSettle = time.Second

// otherStream is how long an answer waits for notifications that the library has
// written to another stream of the session: what two connections carry is not in
// order.
const otherStream = 50 * time.Millisecond

// settled waits until what was sent so far is written.
func settled(ctx context.Context) {
	d, ok := ctx.Value(deliveryKey{}).(*delivery)
	if !ok {
		return // the library keeps the order by itself
	}
	late := time.NewTimer(mostSettle)
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
	own, _ := ctx.Value(writerKey{}).(*correctedWriter)
	elsewhere := own != nil && own.told.Load() && d.by != own
	d.mu.Unlock()
	if elsewhere {
		select {
		case <-time.After(otherStream):
		case <-ctx.Done():
		}
	}
}

// deliveries are those of the sessions that have a request open.
type deliveries struct {
	mu   sync.Mutex
	open map[string]*openDelivery
}

type openDelivery struct {
	delivery *delivery
	requests int
}

// join is the delivery of a session while one of its requests is open.
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

// corrected puts an outgoing filter around next's answers, and counts the
// notifications: of each request in the newest version of the protocol, which
// has a stream for each, and before it of each session.
func corrected(next http.Handler) http.Handler {
	sessions := deliveries{open: map[string]*openDelivery{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cw := &correctedWriter{ResponseWriter: w}
		if r.Method == http.MethodDelete {
			r = r.WithContext(context.WithValue(r.Context(), endsKey{}, cw))
		}
		if sdk.IsModernProtocol(r.Header.Get(sdk.HeaderProtocolVersion)) {
			cw.delivery = newDelivery()
		} else if session := r.Header.Get(sdkserver.HeaderKeySessionID); session != "" {
			var leave func()
			cw.delivery, leave = sessions.join(session)
			defer leave()
		}
		if cw.delivery != nil {
			r = r.WithContext(context.WithValue(context.WithValue(r.Context(), deliveryKey{}, cw.delivery), writerKey{}, cw))
		}
		next.ServeHTTP(cw, r)
		cw.begin(0)
	})
}

// A correctedWriter passes on each message as it is to be sent. The status is
// held back until the first one, since a request without an answer has another.
type correctedWriter struct {
	http.ResponseWriter
	delivery *delivery
	unknown  bool        // its request would end a session that the caller has not
	told     atomic.Bool // its request has sent notifications
	// unflushed are the notifications that were written and may not be on their way.
	unflushed int
	status    int // as the library said it; 0: nothing yet
	began     bool
}

// WriteHeader keeps the status; a stream begins at once.
func (w *correctedWriter) WriteHeader(status int) {
	if w.unknown { // for which the library has no status of its own
		status = http.StatusNotFound
	}
	w.status = cmp.Or(w.status, status)
	if w.Header().Get("Content-Type") == "text/event-stream" {
		w.begin(0)
	}
}

// begin sends the status, or instead where there is none other.
func (w *correctedWriter) begin(instead int) {
	if w.began || w.status == 0 && instead == 0 {
		return
	}
	w.began = true
	if instead == 0 || w.status != 0 && instead == http.StatusOK {
		instead = w.status
	}
	w.ResponseWriter.WriteHeader(instead)
}

// Write passes on a message. Each of the library's writes is a whole one.
func (w *correctedWriter) Write(p []byte) (int, error) {
	message := outgoing(p)
	if message == nil {
		if !w.began {
			w.Header().Del("Content-Type")
		}
		w.begin(http.StatusAccepted)
		return len(p), nil
	}
	w.begin(http.StatusOK)
	_, err := w.ResponseWriter.Write(message)
	if w.delivery != nil {
		w.unflushed += notifications(message)
	}
	return len(p), err
}

// Flush passes on what a stream has written so far.
func (w *correctedWriter) Flush() {
	w.begin(0)
	if f, ok := w.ResponseWriter.(http.Flusher); ok && w.began {
		f.Flush()
	}
	if w.unflushed > 0 {
		w.delivery.wrote(w.unflushed, w)
		w.unflushed = 0
	}
}

// Unwrap lets the server set deadlines.
func (w *correctedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
