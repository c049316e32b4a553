package slacktest

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// A State is the server's state as tests see it.
type State struct {
	Calls    []Call                    `json:"calls"`
	Messages []*Message                `json:"messages"`
	Files    []*Stored                 `json:"files"`
	Views    map[string]map[string]any `json:"views"`
	Homes    map[string]map[string]any `json:"homes"`
	Sockets  int                       `json:"sockets"`
	Opened   int                       `json:"opened"`
	// Early lists the methods of calls that came before the Retry-After of a 429 had passed.
	Early []string `json:"early"`
}

// State returns the present state.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Mutex.Unlock()
	st := State{Calls: slices.Clone(s.calls), Views: maps.Clone(s.views), Homes: maps.Clone(s.homes), Early: slices.Clone(s.early)}
	for _, msg := range s.messages {
		st.Messages = append(st.Messages, new(*msg))
	}
	for _, id := range slices.Sorted(maps.Keys(s.files)) {
		st.Files = append(st.Files, new(*s.files[id]))
	}
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	st.Sockets, st.Opened = len(s.sockets.conns), s.sockets.opened
	return st
}

// changed returns a channel that is closed at the next change of the state. It does not
// report connections.
func (s *Server) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Mutex.Unlock()
	if s.mu.changes == nil {
		s.mu.changes = make(chan struct{})
	}
	return s.mu.changes
}

// Fault makes calls fail as f says.
func (s *Server) Fault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Calm removes all faults.
func (s *Server) Calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Target sets the app's address.
func (s *Server) Target(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Target = url
}

// Members sets the members of channels and groups. A channel's name may follow its id:
// "C7 #runs".
func (s *Server) Members(of map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, people := range of {
		id, name, _ := strings.Cut(channel, " #")
		s.members[id], s.names[id] = people, name
	}
}

// addFile adds a file as if somebody had uploaded it, and returns it as events have it; here
// is the server's own address.
func (s *Server) addFile(f Stored, here string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.ID = s.id("F")
	s.files[f.ID] = &f
	return m{"id": f.ID, "name": f.Name, "size": len(f.Data), "url_private": here + "/files/" + f.ID}
}

// Age makes every trigger id, response URL and stream older.
func (s *Server) Age(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, t := range s.triggers {
		s.triggers[k] = t.Add(-d)
	}
	for _, msg := range s.messages {
		if msg.Streaming {
			msg.Began = msg.Began.Add(-d)
		}
	}
	for _, u := range s.responses {
		u.made = u.made.Add(-d)
	}
}

// Disconnect ends the Socket Mode connections as Slack does: with a reason that asks for a new
// connection or, for an empty reason, without notice.
func (s *Server) Disconnect(reason string) { s.sockets.disconnect(reason) }

// Silence makes the Socket Mode connections half-open: no delivery uses them, they are neither
// pinged nor answered, and they are not closed.
func (s *Server) Silence() { s.sockets.silence() }
