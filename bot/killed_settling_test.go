package bot_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A dyingStore stores nothing more once it has stored the outcome of an approved call, as where its
// server is killed then.
type dyingStore struct {
	record.Store
	dead atomic.Bool
}

var errKilled = errors.New("the server was killed")

// stored passes the result of a write on, after which the server may be dead: then no write returns.
func (d *dyingStore) stored(ctx context.Context, owed []store.SlackMessage, write func() error) error {
	if d.dead.Load() {
		if ctx.Done() != nil { // what is to be stored while the server stops must not hold the stop up
			<-ctx.Done()
		}
		return errKilled
	}
	err := write()
	for _, m := range owed {
		if strings.HasSuffix(m.Key, "/decided") {
			d.dead.Store(true)
		}
	}
	return err
}

func (d *dyingStore) Enqueue(ctx context.Context, owed ...store.SlackMessage) error {
	return d.stored(ctx, owed, func() error { return d.Store.Enqueue(ctx, owed...) })
}

func (d *dyingStore) Finish(ctx context.Context, key string, at time.Time, owed ...store.SlackMessage) error {
	return d.stored(ctx, owed, func() error { return d.Store.Finish(ctx, key, at, owed...) })
}

func (d *dyingStore) Replace(
	ctx context.Context, kind, key string, was json.RawMessage, value any, expires time.Time, owed ...store.SlackMessage,
) (done bool, err error) {
	err = d.stored(ctx, owed, func() (err error) {
		done, err = d.Store.Replace(ctx, kind, key, was, value, expires, owed...)
		return err
	})
	return done, err
}

func (d *dyingStore) Put(ctx context.Context, kind, key string, value any, expires time.Time) error {
	return d.stored(ctx, nil, func() error { return d.Store.Put(ctx, kind, key, value, expires) })
}

func (d *dyingStore) Delete(ctx context.Context, kind, key string) error {
	return d.stored(ctx, nil, func() error { return d.Store.Delete(ctx, kind, key) })
}

// A server that is killed as soon as it has stored what an approved call has done leaves nothing of the
// call to the next one.
func TestAnApprovedCallWhoseOutcomeIsStoredIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	for _, page := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			dying := &dyingStore{}
			var alive record.Store
			s := approving(t, func(c *bot.Config) {
				alive, dying.Store, c.Store = c.Store, c.Store, dying
				c.Policy.Approve = func(*ops.Call, string, any) lang.Text { return lang.Same("more than 8 GPUs") }
			})
			s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Pending, NumNodes: 2, GPUs: 16})
			s.Slash("update 4711 --cluster yard --time 1:00:00")
			q := s.said("Approval needed")
			s.became(q, `"user_id":"U1"`)
			yes, id := buttonOf(t, q, "Approve")
			if page {
				_, err := s.service.Decide(t.Context(), id, ops.Caller{Surface: "web", ID: "grace", User: "grace", Operator: true}, "grace", true, "")
				require.NoError(t, err)
			} else {
				s.Press(q, yes, id, "U5")
			}
			s.Wait("the outcome to be stored", func(slacktest.State) bool { return dying.dead.Load() })
			s.stop()
			s.again(func(c *bot.Config) { c.Store = alive })
			s.became(q, "Approved: update")
			s.Wait("nothing to wait for a decision", func(slacktest.State) bool {
				waiting, err := s.store.Slack().Keys(t.Context(), record.Waiting, time.Now())
				return err == nil && len(waiting) == 0
			})
			settled(t, s.store)
			require.EqualValues(t, 1, s.yard.updates.Load())
			for _, c := range s.State().Calls {
				require.NotContains(t, slacktest.JSON(c.Args), "decided already", "nobody else has decided")
			}
		})
	}
}

// A racedStore has something done once, just before the next messages are stored.
type racedStore struct {
	record.Store
	first atomic.Pointer[func()]
}

func (r *racedStore) race() {
	if f := r.first.Swap(nil); f != nil {
		(*f)()
	}
}

func (r *racedStore) Enqueue(ctx context.Context, owed ...store.SlackMessage) error {
	r.race()
	return r.Store.Enqueue(ctx, owed...)
}

func (r *racedStore) Replace(
	ctx context.Context, kind, key string, was json.RawMessage, value any, expires time.Time, owed ...store.SlackMessage,
) (done bool, err error) {
	r.race()
	return r.Store.Replace(ctx, kind, key, was, value, expires, owed...)
}

// A request that moves while another server begins to carry it out stays approved.
func TestARequestThatIsBeingSettledIsNotMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, askingIn("C8"))
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		s.became(q, `"user_id":"U1"`)
		settled(t, s.store)
		_, id := buttonOf(t, q, "Approve")
		s.stop()
		settle := func() {
			docs, waits := s.store.Slack(), map[string]any{}
			r, err := s.service.Decide(t.Context(), id, ops.Caller{Surface: "web", ID: "grace", User: "grace", Operator: true}, "grace", true, "")
			assert.NoError(t, err)
			ok, err := docs.Get(t.Context(), record.Waiting, id, time.Now(), &waits)
			assert.True(t, ok && err == nil)
			waits["request"] = r
			assert.NoError(t, docs.Put(t.Context(), record.Waiting, id, waits, time.Now().Add(time.Hour)))
			assert.NoError(t, s.service.Consume(t.Context(), r))
		}
		s.again(askingIn("C9"), func(c *bot.Config) {
			raced := &racedStore{Store: c.Store}
			raced.first.Store(&settle)
			c.Store = raced
		})
		s.became(q, "Approved: submit", "4711")
		settled(t, s.store)
		require.Equal(t, 1, s.yard.count())
		require.Zero(t, posted(s.State(), "Asked elsewhere"))
	})
}
