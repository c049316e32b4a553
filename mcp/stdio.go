package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp/message"
)

const (
	// maxMessage is the longest message that is read, in bytes.
	maxMessage = 4 << 20
	// drainTimeout is how long answers may still take after the client closed its end.
	drainTimeout = 10 * time.Second
	// maxConcurrentCalls is how many tool calls of one client run at a time.
	maxConcurrentCalls = 32
)

// ServeStdio speaks the protocol on in and out, one message per line, until in ends or
// ctx is done. Nothing else may write to out. If the configuration has no roots, the
// agent may name files below the working directory, which is the project that it was
// started in.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if wd, err := os.Getwd(); s.cfg.Roots == nil && err == nil && wd != "/" {
		s.cfg.Roots = []string{wd}
	}
	return ServeStdio(ctx, s.sdk, s.cfg.Log, in, out)
}

// ServeStdio serves lib on in and out. The library's own loop reads lines of any length
// and, when in ends, drops answers that are not written yet: a client that pipes its
// requests in and closes would never see them. The lineReader in between bounds the
// lines and reports the end only when all requests are answered.
func ServeStdio(ctx context.Context, lib *sdkserver.MCPServer, log *slog.Logger, in io.Reader, out io.Writer) error {
	due := &pending{ids: map[string]bool{}, changed: make(chan struct{}, 1)}
	std := sdkserver.NewStdioServer(lib)
	std.SetErrorLogger(slog.NewLogLogger(log.Handler(), slog.LevelWarn))
	sdkserver.WithWorkerPoolSize(maxConcurrentCalls)(std)
	w := &answerWriter{out: out, due: due, delivery: newDelivery()}
	ctx = context.WithValue(ctx, deliveryKey{}, w.delivery)
	r := &lineReader{in: bufio.NewReaderSize(in, 64<<10), due: due, refuse: w.refuse}
	return std.Listen(ctx, r, w)
}

// pending tracks the requests that have no answer yet.
type pending struct {
	mu      sync.Mutex
	ids     map[string]bool
	changed chan struct{}
}

func (p *pending) add(id string) {
	p.mu.Lock()
	p.ids[id] = true
	p.mu.Unlock()
}

func (p *pending) done(id string) {
	p.mu.Lock()
	delete(p.ids, id)
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *pending) wait(limit time.Duration) {
	late := time.After(limit)
	for {
		p.mu.Lock()
		n := len(p.ids)
		p.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-p.changed:
		case <-late:
			return
		}
	}
}

// envelope holds the parts of a message that distinguish a request from other messages.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// A lineReader passes lines to the library and records each request as pending.
type lineReader struct {
	in     *bufio.Reader
	due    *pending
	refuse func(message string)
	unread []byte
	ended  error
}

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.unread) == 0 {
		if r.ended != nil {
			r.due.wait(drainTimeout)
			return 0, r.ended
		}
		r.next()
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// next reads one line. It refuses a line that is too long or nested too deeply; the
// library never sees such a line.
func (r *lineReader) next() {
	line, tooLong, err := ops.ReadLine(r.in, maxMessage)
	r.ended = err
	line = bytes.TrimSpace(line)
	switch {
	case tooLong:
		r.refuse(fmt.Sprintf("message is longer than %d bytes", maxMessage))
	case len(line) == 0:
	case message.TooDeep(line):
		r.refuse("message nests too deep")
	default:
		var m envelope
		if json.Unmarshal(line, &m) == nil {
			switch {
			case m.Method == "notifications/cancelled":
				// A cancelled request may get no answer, so do not wait for one.
				r.due.done(string(m.Params.RequestID))
			case m.Method == string(sdk.MethodSubscriptionsListen):
				// The answer comes when the subscription ends, which is when the
				// connection ends.
			case m.Method != "" && len(m.ID) > 0 && string(m.ID) != "null":
				r.due.add(string(m.ID))
			}
		}
		line = append(line, '\n')
		r.unread = line
	}
}

// An answerWriter writes whole lines and records which requests they answer.
type answerWriter struct {
	mu       sync.Mutex
	out      io.Writer
	due      *pending
	delivery *delivery
}

func (w *answerWriter) Write(line []byte) (int, error) {
	var err error
	if message := rewriteOutgoing(line); message != nil {
		w.mu.Lock()
		_, err = w.out.Write(message)
		w.mu.Unlock()
		w.delivery.wrote(notifications(message), nil)
	}
	if id := message.IDOf(line); id != "" {
		w.due.done(id)
	}
	return len(line), err
}

// refuse answers a message that could not be read and therefore has no id.
func (w *answerWriter) refuse(message string) {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32700, "message": message}})
	if err == nil {
		_, _ = w.Write(append(line, '\n')) // a failed write means that the client is gone
	}
}
