package mcp

import (
	"crypto/rand"
	"errors"
	"net/http"
	"sync"

	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// sessions are the HTTP sessions that were given out, each with whom it belongs
// to: a session id is no proof of identity, so it serves nobody else, and one
// that was made up or has ended serves nobody.
type sessions struct {
	mu   sync.Mutex
	byID map[string]session
}

type session struct {
	owner string
}

func newSessions() *sessions { return &sessions{byID: map[string]session{}} }

// ResolveSessionIdManager returns the sessions as r's caller may use them; a
// nil r is the library's own housekeeping.
func (s *sessions) ResolveSessionIdManager(r *http.Request) sdkserver.SessionIdManager {
	if r == nil {
		return sessionsOf{sessions: s, all: true}
	}
	g, _ := r.Context().Value(grantKey{}).(Grant)
	ends, _ := r.Context().Value(endsKey{}).(*correctedWriter)
	return sessionsOf{sessions: s, owner: ownerOf(g.Caller), ends: ends}
}

// ownerOf names a caller; one without a token and one with are never the same.
func ownerOf(who ops.Caller) string {
	access := "write"
	if who.ReadOnly {
		access = "read"
	}
	return access + "\x00" + who.ID + "\x00" + who.User
}

type sessionsOf struct {
	*sessions
	owner string
	all   bool
	ends  *correctedWriter // of a request that ends a session; else nil
}

// Generate makes a new session of the caller's.
func (s sessionsOf) Generate() string {
	id := "mcp-" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[id] = session{owner: s.owner}
	return id
}

var errNoSession = errors.New("no such session")

// Validate reports an error for a session that is not the caller's.
func (s sessionsOf) Validate(id string) (ended bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.byID[id]
	if !ok || !s.all && known.owner != s.owner {
		return false, errNoSession
	}
	return false, nil
}

// Terminate ends a session of the caller's.
func (s sessionsOf) Terminate(id string) (notAllowed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.byID[id]
	if !ok || !s.all && known.owner != s.owner {
		if s.ends != nil {
			s.ends.unknown = true
		}
		return false, errNoSession
	}
	delete(s.byID, id)
	return false, nil
}
