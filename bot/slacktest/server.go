// Package slacktest plays Slack for tests: the Web API, Socket Mode, signed
// delivery over HTTP, response URLs and uploads, over real HTTP and WebSocket,
// with faults on demand. It refuses what Slack refuses: blocks beyond the
// published limits, trigger ids that are late, response URLs used too often, and
// methods that it does not know. The program fakeslack runs it on its own.
package slacktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config says whom a Server plays Slack for.
type Config struct {
	// SigningSecret signs what is delivered to Target, the app's address.
	SigningSecret string
	Target        string
	// BotScopes are what auth.test says the token may do.
	BotScopes string
	// Lean keeps no arguments of calls and no blocks of messages: for long runs,
	// which would fill the memory. Seen is told of each message as it comes.
	Lean bool
	Seen func(Message)
}

// A Call is one request that the app made.
type Call struct {
	Method   string         `json:"method"` // chat.postMessage, response_url, …
	Args     map[string]any `json:"args"`
	Problems []string       `json:"problems,omitempty"`
	At       time.Time      `json:"at"`
	Answer   string         `json:"answer"` // "ok", an error's name, or a fault's
}

// A Message is one that stands in a channel.
type Message struct {
	Channel  string         `json:"channel"`
	TS       string         `json:"ts"`
	Thread   string         `json:"thread_ts,omitempty"`
	Text     string         `json:"text"`
	Blocks   []any          `json:"blocks,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	Edits    int            `json:"edits,omitempty"`
	// Only is who sees an ephemeral message.
	Only string `json:"only,omitempty"`
	// Via is how it came: a method's name or "response_url".
	Via string `json:"via"`
	// Token is the one that it was posted with.
	Token string `json:"token,omitempty"`
	// Streaming says that the message still grows, since Began.
	Streaming bool      `json:"streaming,omitempty"`
	Began     time.Time `json:"began,omitzero"`
	mode      string    // what a stream is made of
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
	// Looked says that Slack has looked at it: until then no block shows it.
	Looked bool `json:"looked,omitempty"`
	// TS is that of the message that shares it.
	TS string `json:"ts,omitempty"`
}

// A Fault is something that goes wrong on purpose.
type Fault struct {
	// Method is whose calls it hits; "*" all, "response_url" answers, "slack_file" the
	// messages that show a file.
	Method string `json:"method"`
	// Times is how often; 0 with a Rate is for ever.
	Times int     `json:"times"`
	Rate  float64 `json:"rate"` // the share of calls, 0 for all
	// What goes wrong: an HTTP status, an error's name, or a connection that breaks
	// "before" the call has an effect or "after" it.
	Status     int    `json:"status"`
	RetryAfter int    `json:"retry_after"`
	Error      string `json:"error"`
	Reset      string `json:"reset"`
	DelayMS    int    `json:"delay_ms"`
}

// A lock counts how often something may have changed under it.
type lock struct {
	sync.Mutex
	changes atomic.Int64
}

// Unlock is for those who change something; who only looks unlocks the Mutex.
func (l *lock) Unlock() {
	l.changes.Add(1)
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
	started   time.Time
	held      map[string]time.Time // no call before: method+channel → time
	early     []string             // calls that came before their Retry-After
	rand      *rand.Rand
}

type responseURL struct {
	channel, user string
	uses          int
	made          time.Time
	ts            string // of the message that a button was in
}

// New returns a server for cfg.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg, files: map[string]*Stored{}, views: map[string]map[string]any{}, homes: map[string]map[string]any{},
		triggers: map[string]time.Time{}, responses: map[string]*responseURL{}, members: map[string][]string{}, names: map[string]string{},
		held: map[string]time.Time{}, started: time.Now(),
		rand: rand.New(rand.NewPCG(1, 2)), //nolint:gosec // repeatable faults
	}
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("/api/{method}", s.serveAPI)
	s.mux.HandleFunc("POST /response/{id}", s.serveResponse)
	s.mux.HandleFunc("POST /upload/{id}", s.serveUpload)
	s.mux.HandleFunc("GET /files/{id}", s.serveFile)
	s.mux.HandleFunc("/link", s.serveSocket)
	s.control()
	return s
}

// ServeHTTP serves Slack's side and the tests' own, below /_ctl/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// next returns a number that was not used before. The lock is held.
func (s *Server) next() int { s.n++; return s.n }

// ts makes a message's time stamp. The lock is held.
func (s *Server) ts() string {
	return fmt.Sprintf("%d.%06d", time.Now().Unix(), s.next())
}

// id makes an id with Slack's kind of prefix. The lock is held.
func (s *Server) id(prefix string) string { return fmt.Sprintf("%s%08d", prefix, s.next()) }

// fault returns what is to go wrong with this call, if anything. The lock is
// held.
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

// noteCall keeps a call. The lock is held.
func (s *Server) noteCall(c Call) {
	if s.cfg.Lean {
		c.Args = nil
	}
	s.calls = append(s.calls, c)
}

// keep puts a message into its channel. The lock is held.
func (s *Server) keep(msg *Message) {
	if s.cfg.Seen != nil {
		s.cfg.Seen(*msg)
	}
	if s.cfg.Lean {
		msg.Blocks = nil
	}
	s.messages = append(s.messages, msg)
}

// fail carries a fault out on w; it reports whether the call ends here.
func (f *Fault) fail(w http.ResponseWriter, r *http.Request) bool {
	time.Sleep(time.Duration(f.DelayMS) * time.Millisecond)
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
	_ = r
	return false
}

// name is how a call log calls the fault.
func (f *Fault) name() string {
	switch {
	case f.Reset != "":
		return "reset " + f.Reset
	case f.Status != 0:
		return fmt.Sprint(f.Status)
	}
	return f.Error
}

// hangUp breaks the connection without an answer.
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

// base is the address that the app reached us by.
func base(r *http.Request) string { return "http://" + r.Host }

func wsBase(r *http.Request) string { return strings.Replace(base(r), "http", "ws", 1) }

// JSON is v as JSON text, for tests that look for something in it.
func JSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return b.String()
}
