package mcp

import (
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
	mu     sync.Mutex
	owners map[string]string // session id → ownerOf its caller
}

func newSessions() *sessions { return &sessions{owners: map[string]string{}} }

// ResolveSessionIdManager returns the sessions as r's caller may use them. For the
// library's own housekeeping, r is nil.
func (s *sessions) ResolveSessionIdManager(r *http.Request) sdkserver.SessionIdManager {
	if r == nil {
		return sessionsOf{sessions: s, all: true}
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
	endWriter *messageWriter // the writer of a request that ends a session; else nil
}

// Generate makes a new session for the caller.
func (s sessionsOf) Generate() string {
	id := "mcp-" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[id] = s.owner
	return id
}

var errNoSession = errors.New("no such session")

// Validate returns an error for a session that is not the caller's.
func (s sessionsOf) Validate(id string) (ended bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves(id) {
		return false, errNoSession
	}
	return false, nil
}

// onlyOwn refuses a stream of a session that is not the caller's. The library checks the
// session of every other request, but a stream it opens for whoever knows the id, even
// one that was made up.
func (s *sessions) onlyOwn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get(sdkserver.HeaderKeySessionID); r.Method == http.MethodGet && id != "" {
			if _, err := s.ResolveSessionIdManager(r).Validate(id); err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// serves reports whether the caller may use a session. The caller of serves holds s.mu.
func (s sessionsOf) serves(id string) bool {
	owner, ok := s.owners[id]
	return ok && (s.all || owner == s.owner)
}

// Terminate ends a session of the caller.
func (s sessionsOf) Terminate(id string) (notAllowed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves(id) {
		if s.endWriter != nil {
			s.endWriter.noSuchSession = true
		}
		return false, errNoSession
	}
	delete(s.owners, id)
	return false, nil
}
