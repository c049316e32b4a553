package slacktest

import (
	"encoding/json"
	"fmt"
	"net/http"
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

// unchangedFor is how long a request for the state waits for a change, where the client has the
// present state already.
const unchangedFor = 100 * time.Millisecond

// stamp returns a value that is different after each change.
func (s *Server) stamp() string {
	return fmt.Sprintf(`"%d-%d"`, s.mu.changes.Load(), s.sockets.mu.changes.Load())
}

// control registers the handlers for tests, below /_ctl/.
func (s *Server) control() {
	s.mux.HandleFunc("GET /_ctl/state", func(w http.ResponseWriter, r *http.Request) {
		for end := time.Now().Add(unchangedFor); s.stamp() == r.Header.Get("If-None-Match"); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		s.mu.Lock()
		defer s.mu.Mutex.Unlock()
		w.Header().Set("ETag", s.stamp())
		st := State{Calls: s.calls, Messages: s.messages, Views: s.views, Homes: s.homes, Early: s.early}
		for _, f := range s.files {
			st.Files = append(st.Files, f)
		}
		slices.SortFunc(st.Files, func(a, b *Stored) int { return strings.Compare(a.ID, b.ID) })
		s.sockets.mu.Lock()
		st.Sockets, st.Opened = len(s.sockets.conns), s.sockets.opened
		s.sockets.mu.Mutex.Unlock()
		writeJSON(w, http.StatusOK, st)
	})
	s.mux.HandleFunc("POST /_ctl/deliver", func(w http.ResponseWriter, r *http.Request) {
		var d Delivery
		if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, http.StatusOK, s.Deliver(r.Context(), d, base(r)))
	})
	s.mux.HandleFunc("POST /_ctl/fault", func(w http.ResponseWriter, r *http.Request) {
		var f Fault
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = append(s.faults, &f)
	})
	s.mux.HandleFunc("POST /_ctl/calm", func(http.ResponseWriter, *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = nil
	})
	s.mux.HandleFunc("POST /_ctl/target", func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cfg.Target = r.URL.Query().Get("url")
	})
	s.mux.HandleFunc("POST /_ctl/members", func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var of map[string][]string
		_ = json.NewDecoder(r.Body).Decode(&of)
		for channel, people := range of {
			id, name, _ := strings.Cut(channel, " #")
			s.members[id], s.names[id] = people, name
		}
	})
	s.mux.HandleFunc("POST /_ctl/file", func(w http.ResponseWriter, r *http.Request) {
		var f Stored
		_ = json.NewDecoder(r.Body).Decode(&f)
		s.mu.Lock()
		defer s.mu.Unlock()
		f.ID = s.id("F")
		s.files[f.ID] = &f
		writeJSON(w, http.StatusOK, m{"id": f.ID, "name": f.Name, "size": len(f.Data), "url_private": base(r) + "/files/" + f.ID})
	})
	s.mux.HandleFunc("POST /_ctl/disconnect", func(_ http.ResponseWriter, r *http.Request) {
		s.sockets.disconnect(r.URL.Query().Get("reason"))
	})
	s.mux.HandleFunc("POST /_ctl/silence", func(http.ResponseWriter, *http.Request) { s.sockets.silence() })
	s.mux.HandleFunc("POST /_ctl/age", func(_ http.ResponseWriter, r *http.Request) {
		// Makes every trigger id, response_url and stream older.
		d, _ := time.ParseDuration(r.URL.Query().Get("by"))
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
	})
}
