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
	// maxMessage is the longest message that is read.
	maxMessage = 4 << 20
	// drain is how long answers may still take after the client closed its end.
	drain = 10 * time.Second
	// atOnce is how many tool calls of one client run at a time.
	atOnce = 32
)

// ServeStdio speaks the protocol on in and out, one message a line, until in
// ends or ctx is done. Nothing else may write to out. Without roots in its
// configuration, the agent may name files below the working directory, which is
// the project that it was started in.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if wd, err := os.Getwd(); s.cfg.Roots == nil && err == nil && wd != "/" {
		s.cfg.Roots = []string{wd}
	}
	return ServeStdio(ctx, s.sdk, s.cfg.Log, in, out)
}

// ServeStdio serves lib on in and out. The library's own loop reads lines of any
// length and, when in ends, drops the answers that are still due: a client that
// pipes its requests in and closes would never see them. The reader in between
// bounds the lines and holds back the end until all is answered.
func ServeStdio(ctx context.Context, lib *sdkserver.MCPServer, log *slog.Logger, in io.Reader, out io.Writer) error {
	due := &pending{ids: map[string]bool{}, changed: make(chan struct{}, 1)}
	std := sdkserver.NewStdioServer(lib)
	std.SetErrorLogger(slog.NewLogLogger(log.Handler(), slog.LevelWarn))
	sdkserver.WithWorkerPoolSize(atOnce)(std)
	w := &answerWriter{out: out, due: due, delivery: newDelivery()}
	ctx = context.WithValue(ctx, deliveryKey{}, w.delivery)
	r := &lineReader{in: bufio.NewReaderSize(in, 64<<10), due: due, refuse: w.refuse}
	return std.Listen(ctx, r, w)
}

// pending counts the requests that have no answer yet.
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

// envelope is the part of a message that tells requests from the rest.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// A lineReader hands lines to the library, noting each request as due.
type lineReader struct {
	in     *bufio.Reader
	due    *pending
	refuse func(message string)
	rest   []byte
	ended  error
}

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.ended != nil {
			r.due.wait(drain)
			return 0, r.ended
		}
		r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next reads one line; one that is too long or nests too deep is refused here
// and never seen by the library.
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
				// A cancelled request may have no answer: nobody waits for it.
				r.due.done(string(m.Params.RequestID))
			case m.Method == string(sdk.MethodSubscriptionsListen):
				// It is answered when it ends, and ends with the connection.
			case m.Method != "" && len(m.ID) > 0 && string(m.ID) != "null":
				r.due.add(string(m.ID))
			}
		}
		line = append(line, '\n')
		r.rest = line
	}
}

// An answerWriter writes whole lines and notes which requests they answer.
type answerWriter struct {
	mu       sync.Mutex
	out      io.Writer
	due      *pending
	delivery *delivery
}

func (w *answerWriter) Write(line []byte) (int, error) {
	var err error
	if message := outgoing(line); message != nil {
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

// refuse answers a message that could not be read, and so has no id.
func (w *answerWriter) refuse(message string) {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32700, "message": message}})
	if err == nil {
		_, _ = w.Write(append(line, '\n')) // a client that is gone reads no refusals
	}
}
