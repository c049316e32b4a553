package soak

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// A ledger records what was requested and what was delivered, which shows what was lost
// or duplicated.
type ledger struct {
	mu       sync.Mutex
	commands map[string]*command // by the channel, of which each has its own
	cards    map[string]int      // channel and job → cards
	ends     map[string]int      // channel and job → ends told
	heard    map[string]int      // job → ends told to the webhook, by its key
	keys     map[string]bool     // of the webhook's messages
	again    int                 // webhook's messages that came again with their key
	moved    time.Time           // when something was last told
}

func newLedger() *ledger {
	return &ledger{
		commands: map[string]*command{}, cards: map[string]int{}, ends: map[string]int{}, heard: map[string]int{}, keys: map[string]bool{}, moved: time.Now(),
	}
}

// A command is one that a user typed, in a channel of its own.
type command struct {
	kind, words string
	at          time.Time
	calm        bool // no fault was on, and none had been for a while
	ack         time.Duration
	acked       bool
	answers     int
	again       int // answers that say that they are sent once more
	answered    time.Duration
	submits     string // the name of the job, where it submits one
	job         string // that the answer named
	refused     string // why the answer says it was not done
}

var (
	// A message's key says what it is: a job's card, or a reply about a state in its
	// thread.
	cardKey = regexp.MustCompile(`^card/soak/(\d+)@T1/[^/]+$`)
	endKey  = regexp.MustCompile(`^card/soak/(\d+)@T1/[^/]+/(?:COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)\d+/0~*$`)
	jobSaid = regexp.MustCompile(`(?:job|as job|Job) (\d{6})`)
)

// sentAgain is the start of a message that may be a duplicate.
const sentAgain = "Sent once more"

// told records a message that Slack shows.
func (l *ledger) told(msg slacktest.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved = time.Now()
	payload, _ := msg.Metadata["event_payload"].(map[string]any)
	key, _ := payload["key"].(string)
	switch c := l.commands[msg.Channel]; {
	case cardKey.MatchString(key):
		l.cards[msg.Channel+" "+cardKey.FindStringSubmatch(key)[1]]++
	case endKey.MatchString(key):
		l.ends[msg.Channel+" "+endKey.FindStringSubmatch(key)[1]]++
	case strings.HasPrefix(key, "card/"):
	case c != nil:
		drawn := msg.Text + slacktest.JSON(msg.Blocks)
		if strings.Contains(drawn, sentAgain) {
			c.again++
			return
		}
		if c.answers++; c.answers == 1 {
			c.answered = time.Since(c.at)
		}
		if c.submits != "" {
			if m := jobSaid.FindStringSubmatch(drawn); m != nil {
				c.job = m[1]
			} else {
				c.refused = msg.Text
			}
		}
	}
}

// ServeHTTP is the webhook that notify sends to.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Key    string   `json:"key"`
		Events []string `json:"events"`
		Job    string   `json:"job"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved = time.Now()
	if l.keys[m.Key] { // the contract: at least once, with the same key
		l.again++
		return
	}
	l.keys[m.Key] = true
	if strings.Contains(fmt.Sprint(m.Events), "end") {
		l.heard[m.Job]++
	}
}

// still is the time since the last delivery.
func (l *ledger) still() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.moved)
}

// keysOf are the webhook's messages of a job. The caller holds the lock.
func (l *ledger) keysOf(job string) (keys []string) {
	for k := range l.keys {
		if strings.Contains(k, "/"+job+"/") {
			keys = append(keys, k)
		}
	}
	return keys
}
