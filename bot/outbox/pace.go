package outbox

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A rateLimiter keeps the sender within Slack's rate limits: about one message a second for each
// channel, with a small burst, and nothing while a 429's Retry-After lasts.
type rateLimiter struct {
	mu    sync.Mutex
	posts map[string]*bucket
	until map[string]time.Time
}

// postBurst is how many messages a channel takes at once before it takes one a second.
const postBurst = 4

// wait returns how long a message of that rate-limit lane must wait; zero means that it may be
// sent now. Messages that wait are given different times, so that they do not all come back at
// once.
func (p *rateLimiter) wait(do Method, lane string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.until[lane].Sub(now); d > 0 {
		return d
	}
	if do != Post {
		return 0
	}
	if p.posts == nil {
		p.posts = map[string]*bucket{}
	}
	k := p.posts[lane]
	if k == nil {
		if len(p.posts) > 10_000 {
			clear(p.posts)
		}
		k = &bucket{left: postBurst, at: now}
		p.posts[lane] = k
	}
	k.left += now.Sub(k.at).Seconds()
	k.at = now
	if k.left >= postBurst {
		k.left, k.waiting = postBurst, 0
	}
	if k.left < 1 {
		k.waiting++
		return time.Duration((k.waiting - k.left) * float64(time.Second))
	}
	k.left--
	k.waiting = max(k.waiting-1, 0)
	return 0
}

// hold keeps back everything of a lane until a time.
func (p *rateLimiter) hold(lane string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil || len(p.until) > 10_000 {
		p.until = map[string]time.Time{}
	}
	p.until[lane] = until
}

// A bucket is a token bucket: it refills steadily, and each message takes one token.
type bucket struct {
	left    float64
	waiting float64 // messages that were told to wait and have not come back yet
	at      time.Time
}

// lane names what Slack limits together: the calls of one method to one channel.
func (o Message) lane() string {
	switch {
	case o.Do == Respond:
		return "respond/" + o.URL
	case o.Channel != "":
		return fmt.Sprint(o.Do, "/", o.Team, "/", o.Channel)
	}
	return fmt.Sprint(o.Do, "/", o.Team, "/", o.ThreadOf, o.Ref)
}

// withChannel returns o with its channel filled in where o refers to another message of ours and
// that message was sent.
func (s *Sender) withChannel(ctx context.Context, o Message) Message {
	for _, key := range []string{o.ThreadOf, o.Ref} {
		if key == "" || o.Channel != "" {
			continue
		}
		if ref, ok, err := s.refOf(ctx, key); err == nil && ok {
			o.Channel = ref.Channel
		}
	}
	return o
}
