// Package record names what the bot must not forget over a crash: what the store has
// to do for it, and the kinds of documents that it keeps there.
package record

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A Store keeps the requests that were accepted, the messages that are owed, and
// documents. *store.Slack is one.
type Store interface {
	inbox
	outbox.Store
	documents
	Sweep(ctx context.Context, before, now time.Time) error
}

// inbox holds the requests that Slack delivered. One is accepted before it is
// acknowledged, and finished together with what it owes.
type inbox interface {
	Accept(context.Context, store.SlackRequest) (fresh bool, err error)
	Unfinished(ctx context.Context, limit int) ([]store.SlackRequest, error)
	Finish(ctx context.Context, key string, at time.Time, owed ...store.SlackMessage) error
}

// documents holds small things by kind and key: cards, links, settings, held
// calls. Take gives a document to exactly one of several takers; Claim does too,
// and gives it to the same one again.
type documents interface {
	Put(ctx context.Context, kind, key string, value any, expires time.Time) error
	Get(ctx context.Context, kind, key string, now time.Time, value any) (ok bool, err error)
	Take(ctx context.Context, kind, key string, now time.Time, value any) (ok bool, err error)
	Claim(ctx context.Context, kind, key, by string, expires time.Time) (owner string, err error)
	Delete(ctx context.Context, kind, key string) error
	Keys(ctx context.Context, kind string, now time.Time) ([]string, error)
}

// The kinds of documents.
const (
	Link         = "link"          // team/user → the cluster user
	CodesGiven   = "codes_given"   // a person → when they were given codes, for a while
	Code         = "code"          // a one-time code → who asked for it
	Held         = "held"          // an id → a call that waits for a yes
	Claim        = "claim"         // an id of a held call → the request that answered it
	Card         = "card"          // cluster/job → the job's card
	Alive        = "alive"         // cluster/job → nothing: the cards that wait for an end
	Thread       = "thread"        // channel/ts → what the thread is about
	Settings     = "settings"      // team/user → a person's settings
	Install      = "install"       // team → its encrypted token
	Follow       = "follow"        // subscriptions
	Base         = "base"          // a key → the specification that a form began with
	Unexplained  = "unexplained"   // cluster/job → how many looks are left for the cause of its failure
	Remedy       = "remedy"        // cluster/job → what would mend a failed job
	Failure      = "failure"       // cluster/job → why it failed, for an hour
	PipelineCard = "pipeline_card" // a pipeline's key → its one card
	Incident     = "incident"      // its cause → what several jobs failed of
	ScriptRead   = "script_read"   // cluster/job → that its script was read for whom to tell
	Missing      = "missing"       // a subscription → since when the run that it expects is not there
	Longer       = "longer"        // cluster/job → the last job that waits for it
	Open         = "open"          // equal requests → a submission whose outcome is not known
	Last         = "last"          // team/user → the last form that was submitted
)
