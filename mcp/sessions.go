package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"

	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// sessions maps the id of each open HTTP session to its owner. A session id does not
// prove who the caller is, so a session serves only its owner; an id that was made up
// or has ended serves nobody.
type sessions struct {
	mu    sync.Mutex
	open  map[string]session // by session id
	count map[string]int     // the number of open sessions of each owner
	uses  int64
	// end ends a session that its owner has not used for longest, when the owner opens
	// more than mostSessions.
	end func(id string)
}

// A session is what is known of an open session.
type session struct {
	owner string // ownerOf its caller
	used  int64  // sessions.uses at the last request
}

// mostSessions bounds the sessions that one caller has open at a time. Many clients open a
// session for every call and end none.
const mostSessions = 1024

func newSessions() *sessions {
	return &sessions{open: map[string]session{}, count: map[string]int{}, end: func(string) {}}
}

type endingKey struct{}

// endBy makes server end the sessions that are too many, as if their owner had ended them.
func (s *sessions) endBy(server http.Handler) {
	s.end = func(id string) {
		r, err := http.NewRequestWithContext(context.WithValue(context.Background(), endingKey{}, true), http.MethodDelete, "/mcp", http.NoBody)
		if err != nil {
			return // cannot happen: the method and the path are always the same
		}
		r.Header.Set(sdkserver.HeaderKeySessionID, id)
		server.ServeHTTP(discarded{http.Header{}}, r)
	}
}

// A discarded is an answer that nobody waits for.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}

// ResolveSessionIdManager returns the sessions as r's caller may use them. For the
// library's own housekeeping, r is nil.
func (s *sessions) ResolveSessionIdManager(r *http.Request) sdkserver.SessionIdManager {
	if r == nil {
		return sessionsOf{sessions: s, all: true}
	}
	if r.Context().Value(endingKey{}) != nil {
		return sessionsOf{sessions: s, ended: true}
	}
	g, _ := r.Context().Value(grantKey{}).(Grant)
	of := sessionsOf{sessions: s, owner: ownerOf(g.Caller)}
	if r.Method == http.MethodDelete {
		of.endWriter, _ = r.Context().Value(writerKey{}).(*messageWriter)
	}
	return of
}

// ownerOf identifies a caller. Callers with and without write access are never the
// same.
func ownerOf(who ops.Caller) string {
	access := "write"
	if who.ReadOnly {
		access = "read"
	}
	return access + "\x00" + who.ID + "\x00" + who.User
}

type sessionsOf struct {
	*sessions
	owner     string
	all       bool
	ended     bool           // the session that is asked about has ended, and only the library still has it
	endWriter *messageWriter // the writer of a request that ends a session; else nil
}

// Generate makes a new session for the caller.
func (s sessionsOf) Generate() string {
	id := "mcp-" + rand.Text()
	if old := s.add(id); old != "" {
		s.end(old)
	}
	return id
}

// add stores a new session, and removes and returns the caller's session that is one too
// many.
func (s sessionsOf) add(id string) (tooMany string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[s.owner] >= mostSessions {
		last := s.uses + 1
		for other, o := range s.open {
			if o.owner == s.owner && o.used < last {
				tooMany, last = other, o.used
			}
		}
		s.remove(tooMany)
	}
	s.uses++
	s.open[id] = session{s.owner, s.uses}
	s.count[s.owner]++
	return tooMany
}

var errNoSession = errors.New("this session has ended, or the server has restarted: send initialize again, without Mcp-Session-Id")

// Validate returns an error for a session that is not the caller's.
func (s sessionsOf) Validate(id string) (ended bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves(id) {
		return false, errNoSession
	}
	s.uses++
	s.open[id] = session{s.open[id].owner, s.uses}
	return false, nil
}

// onlyOwn refuses a stream and a message of a session that is not the caller's. The library
// would open a stream for whoever knows the id, even one that was made up, and does not say
// of a message what to do.
func (s *sessions) onlyOwn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get(sdkserver.HeaderKeySessionID); r.Method != http.MethodDelete && id != "" {
			if _, err := s.ResolveSessionIdManager(r).Validate(id); err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// remove forgets an open session. The caller of remove holds s.mu.
func (s sessionsOf) remove(id string) {
	owner := s.open[id].owner
	delete(s.open, id)
	if s.count[owner]--; s.count[owner] == 0 {
		delete(s.count, owner)
	}
}

// serves reports whether the caller may use a session. The caller of serves holds s.mu.
func (s sessionsOf) serves(id string) bool {
	known, ok := s.open[id]
	return ok && (s.all || known.owner == s.owner)
}

// Terminate ends a session of the caller.
func (s sessionsOf) Terminate(id string) (notAllowed bool, err error) {
	if s.ended {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves(id) {
		if s.endWriter != nil {
			s.endWriter.noSuchSession = true
		}
		return false, errNoSession
	}
	s.remove(id)
	return false, nil
}
