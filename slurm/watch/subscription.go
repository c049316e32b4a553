package watch

import (
	"context"
	"sync"
)

// A Subscription receives every event from its beginning on, in order. One that
// reads slowly loses nothing and holds nobody up.
type Subscription struct {
	w      *Watcher
	mu     sync.Mutex
	events []Event
	more   chan struct{}
}

// Subscribe begins a subscription. Close it when it is not read any more.
func (w *Watcher) Subscribe() *Subscription {
	s := &Subscription{w: w, more: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subs[s] = true
	return s
}

// Next waits for the next event.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		s.mu.Lock()
		if len(s.events) > 0 {
			e := s.events[0]
			s.events = s.events[1:]
			s.mu.Unlock()
			return e, nil
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return Event{}, ctx.Err()
		case <-s.more:
		}
	}
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	delete(s.w.subs, s)
}

// tell gives an event to all subscriptions; the watcher's lock is held.
func (w *Watcher) tell(e Event) {
	e.Cluster = w.cluster.Name()
	for s := range w.subs {
		s.mu.Lock()
		s.events = append(s.events, e)
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
	}
}
