// Package replay keeps the latest messages that HTTP clients may have missed.
package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	sdkserver "github.com/mark3labs/mcp-go/server"
)

// How much of a session's streams is kept for a client that reconnects.
const (
	keptEvents = 256
	keptBytes  = 1 << 20
)

// Events keeps the latest messages of each session, so that a client whose connection
// broke gets what it missed. The library's own store keeps all messages until the
// session ends, which for an agent may be a day.
type Events struct {
	mu       sync.Mutex
	last     int64
	sessions map[string]*eventLog
}

type eventLog struct {
	bytes  int
	events []event
}

type event struct {
	id, stream string
	message    json.RawMessage
}

// New returns an empty store.
func New() *Events { return &Events{sessions: map[string]*eventLog{}} }

// StoreEvent keeps message and returns its id.
func (e *Events) StoreEvent(_ context.Context, session, stream string, message json.RawMessage) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	log := e.sessions[session]
	if log == nil {
		log = &eventLog{}
		e.sessions[session] = log
	}
	e.last++
	id := strconv.FormatInt(e.last, 10)
	log.events = append(log.events, event{id, stream, slices.Clone(message)})
	log.bytes += len(message)
	drop := 0
	for drop < len(log.events)-1 && (len(log.events)-drop > keptEvents || log.bytes > keptBytes) {
		log.bytes -= len(log.events[drop].message)
		drop++
	}
	if drop > 0 {
		log.events = slices.Clone(log.events[drop:])
	}
	return id, nil
}

// ReplayEventsAfter sends the messages that followed an event on the same stream.
func (e *Events) ReplayEventsAfter(_ context.Context, session, lastID string, send func(string, json.RawMessage) error) (string, error) {
	e.mu.Lock()
	var after []event
	stream, found := "", false
	if log := e.sessions[session]; log != nil {
		for _, ev := range log.events {
			switch {
			case ev.id == lastID:
				stream, found = ev.stream, true
			case found && ev.stream == stream:
				after = append(after, ev)
			}
		}
	}
	e.mu.Unlock()
	if !found {
		return "", fmt.Errorf("%w: %s", sdkserver.ErrUnknownEventID, lastID)
	}
	for _, ev := range after {
		if err := send(ev.id, ev.message); err != nil {
			return "", err
		}
	}
	return stream, nil
}

// PurgeSession forgets a session.
func (e *Events) PurgeSession(_ context.Context, session string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sessions, session)
	return nil
}
