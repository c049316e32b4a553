package slacktest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// sockets are the app's Socket Mode connections.
type sockets struct {
	mu     sync.Mutex
	conns  []*socket
	acks   map[string]chan json.RawMessage
	opened int // apps.connections.open calls
	n      int
	// refuse is how many calls of apps.connections.open are still to fail.
	refuse int
}

type socket struct {
	mu   sync.Mutex
	conn *websocket.Conn
	// silent says that nothing is sent any more, including pings and pongs, while TCP stays
	// open: the state of a connection whose other end is gone.
	silent bool
}

// pingPace is the time between two pings of a connection.
const pingPace = 500 * time.Millisecond

func (c *socket) send(v any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn.WriteJSON(v)
}

func (s *Server) openConnection(_ m, r *http.Request) m {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	s.sockets.opened++
	if s.sockets.refuse > 0 {
		s.sockets.refuse--
		return m{"error": "internal_error"}
	}
	return m{"url": wsBase(r) + "/link?ticket=" + fmt.Sprint(s.sockets.opened)}
}

// serveSocket serves a Socket Mode connection from hello to its end.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // slack-go sends an Origin header of Slack
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &socket{conn: conn}
	s.sockets.mu.Lock()
	s.sockets.conns = append(s.sockets.conns, c)
	n := len(s.sockets.conns)
	if s.sockets.acks == nil {
		s.sockets.acks = map[string]chan json.RawMessage{}
	}
	s.sockets.mu.Unlock()
	_ = c.send(m{
		"type": "hello", "num_connections": n, "connection_info": m{"app_id": "A1"},
		"debug_info": m{"host": "slacktest", "approximate_connection_time": 3600},
	})
	pong := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.silent {
			return nil
		}
		return pong(data)
	})
	stop := make(chan struct{})
	go func() {
		tick := time.NewTicker(pingPace)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				c.mu.Lock()
				if !c.silent {
					_ = conn.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(time.Second))
				}
				c.mu.Unlock()
			}
		}
	}()
	for {
		var ack struct {
			ID      string          `json:"envelope_id"`
			Payload json.RawMessage `json:"payload"`
		}
		if err := conn.ReadJSON(&ack); err != nil {
			break
		}
		s.sockets.mu.Lock()
		if ch := s.sockets.acks[ack.ID]; ch != nil {
			delete(s.sockets.acks, ack.ID)
			ch <- ack.Payload
		}
		s.sockets.mu.Unlock()
	}
	close(stop)
	s.sockets.drop(c)
}

func (k *sockets) drop(c *socket) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, x := range k.conns {
		if x == c {
			k.conns = append(k.conns[:i:i], k.conns[i+1:]...)
			break
		}
	}
	_ = c.conn.Close()
}

func (k *sockets) silence() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		c.mu.Lock()
		c.silent = true
		c.mu.Unlock()
	}
	k.conns = nil
}

// deliver sends an envelope over one of the connections, in turn.
func (k *sockets) deliver(ctx context.Context, d Delivery, retry int) Receipt {
	k.mu.Lock()
	if len(k.conns) == 0 {
		k.mu.Unlock()
		return Receipt{Error: "no connection"}
	}
	k.n++
	c := k.conns[k.n%len(k.conns)]
	id := fmt.Sprintf("env-%d", k.n)
	ch := make(chan json.RawMessage, 1)
	k.acks[id] = ch
	k.mu.Unlock()
	began := time.Now()
	err := c.send(m{
		"envelope_id": id, "type": d.Kind, "payload": d.Payload, "accepts_response_payload": d.Kind != "events_api",
		"retry_attempt": retry, "retry_reason": "",
	})
	if err != nil {
		return Receipt{Error: err.Error()}
	}
	select {
	case <-ctx.Done():
		return Receipt{Error: ctx.Err().Error()}
	case <-time.After(3 * time.Second):
		return Receipt{Error: "not acknowledged within three seconds"}
	case p := <-ch:
		return Receipt{Status: http.StatusOK, Body: string(p), MS: float64(time.Since(began).Microseconds()) / 1000}
	}
}

func (k *sockets) disconnect(reason string) {
	k.mu.Lock()
	conns := append([]*socket(nil), k.conns...)
	k.mu.Unlock()
	for _, c := range conns {
		if reason != "" {
			_ = c.send(m{"type": "disconnect", "reason": reason, "debug_info": m{"host": "slacktest"}})
		}
		if reason != "warning" {
			k.drop(c)
		}
	}
}
