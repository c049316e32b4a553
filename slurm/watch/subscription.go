package watch

import (
	"context"
	"sync"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Subscription receives every event since its start, in order. A slow reader loses no
// event and delays nobody.
type Subscription struct {
	w      *Watcher
	mu     sync.Mutex
	events []Event
	more   chan struct{}
}

// Subscribe starts a subscription. The caller must close it.
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

// maxParallel is the number of jobs whose events Each handles at once.
const maxParallel = 8

// Each calls do for every event until ctx ends: events of one job one after the other,
// events of different jobs in parallel. It returns when all calls have returned.
func (s *Subscription) Each(ctx context.Context, do func(Event)) {
	var mu sync.Mutex
	behind := map[slurm.JobID][]Event{} // events that wait until the running call for their job returns
	room := make(chan struct{}, maxParallel)
	var under sync.WaitGroup
	defer under.Wait()
	for {
		e, err := s.Next(ctx)
		if err != nil {
			return
		}
		id := e.Job.ID
		mu.Lock()
		queue, busy := behind[id]
		if busy {
			behind[id] = append(queue, e)
		} else {
			behind[id] = nil
		}
		mu.Unlock()
		if busy {
			continue
		}
		room <- struct{}{}
		under.Go(func() {
			defer func() { <-room }()
			for more := true; more && ctx.Err() == nil; {
				do(e)
				mu.Lock()
				if queue := behind[id]; len(queue) > 0 {
					e, behind[id] = queue[0], queue[1:]
				} else {
					delete(behind, id)
					more = false
				}
				mu.Unlock()
			}
		})
	}
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	delete(s.w.subs, s)
}

// tell adds an event to all subscriptions. The caller holds the watcher's lock.
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
