// Package slacktest plays Slack for tests: the Web API, Socket Mode, signed delivery over HTTP,
// response URLs and uploads, over real HTTP and WebSocket, with faults on demand. It refuses
// what Slack refuses: blocks beyond the published limits, late trigger ids, response URLs that
// were used too often, and unknown methods.
package slacktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Config configures a Server.
type Config struct {
	// SigningSecret signs deliveries to Target, which is the app's address.
	SigningSecret string
	Target        string
	// BotScopes are the scopes of the bot token, separated by commas; empty means all.
	BotScopes string
	// Lean keeps neither the arguments of calls nor the blocks of messages, so that long runs
	// do not fill the memory. Seen is called with each new message.
	Lean bool
	Seen func(Message)
}

// A Call is one request of the app.
type Call struct {
	Method   string         `json:"method"` // chat.postMessage, response_url, …
	Args     map[string]any `json:"args"`
	Problems []string       `json:"problems,omitempty"`
	At       time.Time      `json:"at"`
	Answer   string         `json:"answer"` // "ok", an error code, or the name of a fault
}

// A Message is a message in a channel.
type Message struct {
	Channel  string         `json:"channel"`
	TS       string         `json:"ts"`
	Thread   string         `json:"thread_ts,omitempty"`
	Text     string         `json:"text"`
	Blocks   []any          `json:"blocks,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	Edits    int            `json:"edits,omitempty"`
	// Only is the user who sees an ephemeral message.
	Only string `json:"only,omitempty"`
	// Via is the method by which the message came, or "response_url".
	Via string `json:"via"`
	// Token is the token with which the message was posted.
	Token string `json:"token,omitempty"`
	// Streaming says that the message has been streamed since Began.
	Streaming bool      `json:"streaming,omitempty"`
	Began     time.Time `json:"began,omitzero"`
	mode      string    // "text" or "chunks", for a streamed message
	grown     int       // blocks that came in chunks
	// Broadcast says that a reply was shown in the channel too.
	Broadcast bool `json:"broadcast,omitempty"`
}

// A Stored is an uploaded file.
type Stored struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Title   string `json:"title"`
	Channel string `json:"channel"`
	Thread  string `json:"thread_ts"`
	Data    []byte `json:"data"`
	Done    bool   `json:"done"`
	// Looked says that Slack has processed the file; before that, no block can show it.
	Looked bool `json:"looked,omitempty"`
	// TS is the timestamp of the message that shares the file.
	TS string `json:"ts,omitempty"`
}

// A Fault is an error that a test causes.
type Fault struct {
	// Method is the method whose calls fail: "*" for all, "response_url" for answers, or
	// "slack_file" for messages that show a file.
	Method string `json:"method"`
	// Times is how many calls fail; 0 means all.
	Times int     `json:"times"`
	Rate  float64 `json:"rate"` // the share of calls that fail; 0 means all
	// What goes wrong: an HTTP status, an error code, or a connection that breaks "before" or
	// "after" the call has its effect.
	Status     int    `json:"status"`
	RetryAfter int    `json:"retry_after"`
	Error      string `json:"error"`
	Reset      string `json:"reset"`
	DelayMS    int    `json:"delay_ms"`
}

// A lock is a mutex whose Unlock reports a change to those who wait for one. Who only reads
// unlocks the embedded Mutex instead.
type lock struct {
	sync.Mutex
	changes chan struct{} // closed at the next change; nil where nobody waits
}

// Unlock releases the lock after a change.
func (l *lock) Unlock() {
	if l.changes != nil {
		close(l.changes)
		l.changes = nil
	}
	l.Mutex.Unlock()
}

// A Server plays Slack. It is an http.Handler.
type Server struct {
	cfg Config
	mux *http.ServeMux

	mu        lock
	n         int
	calls     []Call
	messages  []*Message
	files     map[string]*Stored
	views     map[string]map[string]any // by view id
	homes     map[string]map[string]any // by user
	faults    []*Fault
	triggers  map[string]time.Time
	responses map[string]*responseURL
	members   map[string][]string // of channels and groups
	names     map[string]string   // of channels
	sockets   sockets
	held      map[string]time.Time // method+channel → when a 429's Retry-After ends
	early     []string             // methods of calls that came before their Retry-After
	rand      *rand.Rand
}

type responseURL struct {
	channel, user string
	uses          int
	made          time.Time
	ts            string // of the message with the pressed button
}

// New returns a server.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg, files: map[string]*Stored{}, views: map[string]map[string]any{}, homes: map[string]map[string]any{},
		triggers: map[string]time.Time{}, responses: map[string]*responseURL{}, members: map[string][]string{}, names: map[string]string{},
		held: map[string]time.Time{},
		rand: rand.New(rand.NewPCG(1, 2)), //nolint:gosec // repeatable faults
	}
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("/api/{method}", s.serveAPI)
	s.mux.HandleFunc("POST /response/{id}", s.serveResponse)
	s.mux.HandleFunc("POST /upload/{id}", s.serveUpload)
	s.mux.HandleFunc("GET /files/{id}", s.serveFile)
	s.mux.HandleFunc("/link", s.serveSocket)
	return s
}

// ServeHTTP serves Slack's API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// next returns an unused number. The caller holds the lock.
func (s *Server) next() int { s.n++; return s.n }

// ts returns a new message timestamp. The caller holds the lock.
func (s *Server) ts() string {
	return fmt.Sprintf("%d.%06d", time.Now().Unix(), s.next())
}

// id returns a new id with that prefix. The caller holds the lock.
func (s *Server) id(prefix string) string { return fmt.Sprintf("%s%08d", prefix, s.next()) }

// fault returns the fault that this call meets, or nil. The caller holds the lock.
func (s *Server) fault(method string) *Fault {
	for i, f := range s.faults {
		if f.Method != "*" && f.Method != method {
			continue
		}
		if f.Rate > 0 && s.rand.Float64() >= f.Rate {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			}
		}
		return f
	}
	return nil
}

// noteCall records a call. The caller holds the lock.
func (s *Server) noteCall(c Call) {
	if s.cfg.Lean {
		c.Args = nil
	}
	s.calls = append(s.calls, c)
}

// addMessage adds a message to its channel. The caller holds the lock.
func (s *Server) addMessage(msg *Message) {
	if s.cfg.Seen != nil {
		s.cfg.Seen(*msg)
	}
	if s.cfg.Lean {
		msg.Blocks = nil
	}
	s.messages = append(s.messages, msg)
}

// fail makes the call fail as the fault says, and reports whether an answer was sent or the
// connection was closed.
func (f *Fault) fail(w http.ResponseWriter, r *http.Request) bool {
	select {
	case <-time.After(time.Duration(f.DelayMS) * time.Millisecond):
	case <-r.Context().Done():
	}
	switch {
	case f.Reset != "":
		hangUp(w)
		return true
	case f.Status == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", fmt.Sprint(max(1, f.RetryAfter)))
		writeJSON(w, f.Status, m{"ok": false, "error": "ratelimited"})
		return true
	case f.Status != 0:
		http.Error(w, cmp.Or(f.Error, "fault on demand"), f.Status)
		return true
	case f.Error != "":
		writeJSON(w, http.StatusOK, m{"ok": false, "error": f.Error})
		return true
	}
	return false
}

// name is the fault's name in the list of calls.
func (f *Fault) name() string {
	switch {
	case f.Reset != "":
		return "reset " + f.Reset
	case f.Status != 0:
		return fmt.Sprint(f.Status)
	}
	return f.Error
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return ""
	}
	return fmt.Sprint(v)
}

// addressOf returns the address by which the app reached the server.
func addressOf(r *http.Request) string { return "http://" + r.Host }

func wsBase(r *http.Request) string { return strings.Replace(addressOf(r), "http", "ws", 1) }

// JSON returns v as JSON, for tests that search for a text in it.
func JSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return b.String()
}
