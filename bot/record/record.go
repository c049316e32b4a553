// Package record declares what the bot stores so that a crash loses nothing: the interface of
// its store, and the kinds of documents that it keeps there.
package record

import (
	"context"
	"encoding/json"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A Store keeps accepted requests, queued messages and documents. *store.Slack implements it.
type Store interface {
	inbox
	outbox.Store
	Sweep(ctx context.Context, before, now time.Time) error
}

// inbox holds the requests that Slack delivered. A request is stored before it is acknowledged.
// Finish stores its answers in the same transaction that marks it as done, as Replace does for
// what a document waits for.
type inbox interface {
	Accept(context.Context, store.SlackRequest) (fresh bool, err error)
	Unfinished(ctx context.Context, limit int) ([]store.SlackRequest, error)
	Finish(ctx context.Context, key string, at time.Time, owed ...store.SlackMessage) error
	Replace(
		ctx context.Context, kind, key string, was json.RawMessage, value any, expires time.Time, owed ...store.SlackMessage,
	) (done bool, err error)
}

// The kinds of documents. Each comment says what the key is → what the value is.
const (
	Link         = "link"          // team/user → the cluster user
	CodesGiven   = "codes_given"   // team/user → when they were given codes, for an hour
	Code         = "code"          // team/user → the one-time code that they were given
	Held         = "held"          // an id → a call that waits for confirmation
	Claim        = "claim"         // id of a held call or a person's request → who answered or settled it
	Waiting      = "waiting"       // an id → a request whose buttons wait for somebody's decision
	Card         = "card"          // cluster/job → the job's card
	Alive        = "alive"         // cluster/job → nothing; one for each card whose job has not ended
	Thread       = "thread"        // channel/ts → what the thread is about
	Settings     = "settings"      // team/user → a person's settings
	Install      = "install"       // team → its encrypted token
	Follow       = "follow"        // a subscription → the user who made it, and their language
	Base         = "base"          // a hash of the request → the specification that a form started from
	Unexplained  = "unexplained"   // cluster/job → how many more times the cause of its failure is looked for
	Remedy       = "remedy"        // cluster/job → a change that would fix a failed job
	PipelineCard = "pipeline_card" // a pipeline's key → the one card of its jobs
	Incident     = "incident"      // a hash of the cause → the jobs that failed of it
	ScriptRead   = "script_read"   // cluster/job → that its script was read for requests to follow the job
	Discovered   = "discovered"    // "jobs" → when all jobs were last discovered
	Digested     = "digested"      // a person or a subscription → the day of the last digest
	Missing      = "missing"       // a subscription → since when the run that it expects is missing
	Longer       = "longer"        // cluster/job → the last of the jobs that extend it
	Open         = "open"          // a hash of equal requests → a submission whose outcome is unknown
	Last         = "last"          // team/user → the last form that was submitted
)
