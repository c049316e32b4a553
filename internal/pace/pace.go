// Package pace bounds how often one person may ask, so that one who asks without end, such as
// an agent in a loop, takes nothing from the others.
package pace

import (
	"math"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// OfPrograms is how many calls one person may make in a minute through a program: an agent, or
// a browser that keeps its page up to date. A busy agent makes ten a second.
const OfPrograms = 1200

const mostPeople = 100_000

// A Limiter grants each person a number of calls a minute, by a token bucket for each person. All
// of them may come at once.
type Limiter struct {
	mu   sync.Mutex
	rate float64 // calls a second
	most float64
	who  map[string]*allowance
}

type allowance struct {
	left float64
	at   time.Time
}

// New returns a Limiter that grants that many calls a minute.
func New(perMinute int) *Limiter {
	return &Limiter{rate: float64(perMinute) / 60, most: float64(perMinute), who: map[string]*allowance{}}
}

// Take takes one of the person's calls; where none is left, ok is false and wait is the time
// until there is one.
func (l *Limiter) Take(who string, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.who[who]
	if k == nil {
		if len(l.who) > mostPeople {
			clear(l.who) // many different people must not fill the memory
		}
		k = &allowance{left: l.most, at: now}
		l.who[who] = k
	}
	k.left = min(l.most, k.left+now.Sub(k.at).Seconds()*l.rate)
	k.at = now
	if k.left < 1 {
		return time.Duration((1 - k.left) / l.rate * float64(time.Second)), false
	}
	k.left--
	return 0, true
}

// Seconds is a wait in whole seconds, after which there is a call again.
func Seconds(wait time.Duration) int { return max(1, int(math.Ceil(wait.Seconds()))) }

// Said tells a person to wait.
func Said(wait time.Duration) lang.Text {
	return lang.Text{
		EN: "That was a lot at once. Nothing was done; please try again in %d s.",
		ZH: "请求过于频繁，本次没有执行任何操作；请 %d 秒后再试。",
	}.With(Seconds(wait))
}
