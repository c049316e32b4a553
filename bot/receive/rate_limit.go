package receive

import (
	"fmt"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A limiter grants each person a number of requests a minute, by a token bucket for each
// person.
type limiter struct {
	mu   sync.Mutex
	rate float64 // tokens a second
	max  float64
	who  map[string]*allowance
}

type allowance struct {
	left float64
	at   time.Time
}

func newLimiter(perMinute int) *limiter {
	return &limiter{rate: float64(perMinute) / 60, max: float64(perMinute), who: map[string]*allowance{}}
}

// take takes one of the person's requests; where none is left, ok is false and wait is the time
// until there is one.
func (l *limiter) take(who string, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.who[who]
	if k == nil {
		if len(l.who) > 100_000 {
			clear(l.who) // requests of many different people must not fill the memory
		}
		k = &allowance{left: l.max, at: now}
		l.who[who] = k
	}
	k.left = min(l.max, k.left+now.Sub(k.at).Seconds()*l.rate)
	k.at = now
	if k.left < 1 {
		return time.Duration((1 - k.left) / l.rate * float64(time.Second)), false
	}
	k.left--
	return 0, true
}

// OverLimit returns what to tell a person who sends too many requests; it is empty where the
// request may proceed.
func (in *Receiver) OverLimit(a incoming.Ask) string {
	if a.Terminal != nil {
		return ""
	}
	wait, ok := in.limit.take(a.Team+"/"+a.User, in.cfg.Now())
	if ok {
		return ""
	}
	return fmt.Sprintf(textSlow.In(lang.Of(a.Text)), int(wait.Seconds())+1)
}

var textSlow = lang.Text{
	EN: "That was a lot at once. Nothing was done; please try again in %d s.",
	ZH: "请求过于频繁，本次没有执行任何操作；请 %d 秒后再试。",
}
