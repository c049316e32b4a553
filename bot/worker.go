package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/tracing"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

const (
	// maxRequests is how many requests are handled at the same time, and maxPerPerson is how
	// many of one person, so that one person's long diagnoses do not delay everybody.
	maxRequests  = 16
	maxPerPerson = 2
	// requestTimeout is the time after which a request is cancelled.
	requestTimeout = 10 * time.Minute
)

// accept stores the ask. Once it returns nil, the ask may be acknowledged: it will be carried
// out once, even if this process crashes.
func (b *Bot) accept(ctx context.Context, a incoming.Ask) error {
	a.At = b.now()
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	fresh, err := b.cfg.Store.Accept(ctx, store.SlackRequest{Key: a.Key, Body: string(body), At: a.At})
	if err != nil {
		return err
	}
	if !fresh {
		b.log.Info("slack: seen before", "kind", a.Kind)
		return nil
	}
	b.wakeWorker()
	return nil
}

func (b *Bot) wakeWorker() {
	select {
	case b.work <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// workLoop carries out accepted requests. The database is the queue, so that requests that a
// crash left unfinished are found there.
func (b *Bot) workLoop(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxRequests)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		list, err := b.cfg.Store.Unfinished(ctx, 16*maxRequests)
		if err != nil && ctx.Err() == nil {
			b.log.Error("slack: inbox", "err", err)
		}
		for _, r := range list {
			var a incoming.Ask
			if err := json.Unmarshal([]byte(r.Body), &a); err != nil {
				b.log.Error("slack: unreadable request", "key", r.Key, "err", err)
				_ = b.cfg.Store.Finish(ctx, r.Key, b.now())
				continue
			}
			a.Key = r.Key
			if !b.inProgress.begin(a) {
				continue
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots; b.inProgress.end(a); b.wakeWorker() }()
				b.carryOut(ctx, a)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-b.work:
		case <-tick.C:
		}
	}
}

// carryOut handles one ask and queues its answers. Where the process is told to stop meanwhile,
// the ask stays unfinished and is carried out after the restart; its key is the idempotency
// key, by which an earlier submission is found.
func (b *Bot) carryOut(ctx context.Context, a incoming.Ask) {
	work, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	owed := b.handle(work, a)
	if a.Kind == incoming.AsMessage {
		owed = b.out.InPlace(ctx, a.Team, a.Key, owed)
	}
	if ctx.Err() != nil {
		return
	}
	if err := b.cfg.Store.Finish(ctx, a.Key, b.now(), owed...); err != nil {
		b.log.Error("slack: result not stored", "key", a.Key, "err", err)
		return
	}
	b.out.Wake()
}

// handle answers one ask. It recovers from a panic, which then ends this request only, with an
// error message.
func (b *Bot) handle(ctx context.Context, a incoming.Ask) (owed []store.SlackMessage) {
	ctx, span := tracing.Start(ctx, "slack "+string(a.Kind), trace.SpanKindConsumer)
	code := "ok"
	defer func() { tracing.End(span, code) }()
	defer func() {
		if p := recover(); p != nil {
			code = "failed"
			b.log.Error("slack: panic", "kind", a.Kind, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			owed = b.reply.Doc(a, b.internalError(ctx, a), false)
		}
	}()
	if a.Kind == incoming.AsMessage || a.Kind == incoming.AsButton || a.Kind == incoming.AsShortcut {
		// Commands were checked before they were acknowledged.
		if words := b.receiver.OverLimit(a); words != "" {
			return b.reply.Doc(a, view.Doc{Title: words, Tone: view.Warn}, false)
		}
	}
	switch a.Kind {
	case incoming.AsCommand:
		return b.command(ctx, a)
	case incoming.AsMessage:
		return b.message(ctx, a)
	case incoming.AsButton:
		return b.button(ctx, a)
	case incoming.AsShortcut:
		return b.shortcut(ctx, a)
	case incoming.AsForm:
		return b.submitted(ctx, a)
	case incoming.AsHome:
		return b.home(ctx, a)
	case incoming.AsAssistant:
		return b.assistant(ctx, a)
	case incoming.AsLinks:
		return b.unfurl(ctx, a)
	case incoming.AsGone:
		b.app.Uninstalled(ctx, a.Team)
	}
	return nil
}

func (b *Bot) internalError(ctx context.Context, a incoming.Ask) view.Doc {
	return answer.Error(&ops.Error{Code: ops.Failed, Message: answer.Broken}, b.people.LangOf(ctx, a))
}

type requestSet struct {
	mu     sync.Mutex
	keys   map[string]bool
	people map[string]int
}

func (f *requestSet) begin(a incoming.Ask) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		f.keys, f.people = map[string]bool{}, map[string]int{}
	}
	who := a.Team + "/" + a.User
	if f.keys[a.Key] || f.people[who] >= maxPerPerson {
		return false
	}
	f.keys[a.Key] = true
	f.people[who]++
	return true
}

func (f *requestSet) end(a incoming.Ask) {
	f.mu.Lock()
	defer f.mu.Unlock()
	who := a.Team + "/" + a.User
	delete(f.keys, a.Key)
	if f.people[who]--; f.people[who] <= 0 {
		delete(f.people, who)
	}
}
