package cluster

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// accountsPause is how long accounts that did not answer a patient question get no other one: the
// rest of a command does not wait again.
const accountsPause = 10 * time.Second

type patienceKey struct{}

// WithPatience returns a context whose questions to the accounts have no answer after limit: the caller
// can do without it. Any other question waits as long as a command may, and is asked in any case.
func WithPatience(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, limit)
}

// patiently asks the accounts a question.
func (m *Meter) patiently(ctx context.Context, ask func(context.Context) error) error {
	limit, bounded := ctx.Value(patienceKey{}).(time.Duration)
	if !bounded {
		return ask(ctx)
	}
	m.mu.Lock()
	silent := time.Since(m.silentAt) < accountsPause
	m.mu.Unlock()
	if silent {
		return silentAccounts(limit)
	}
	if err := m.wait(ctx); err != nil { // for the controller: the accounts were not asked
		return tooBusy("sacct", err)
	}
	brief, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := ask(brief)
	if err == nil || brief.Err() == nil || ctx.Err() != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.silentAt = time.Now()
	return silentAccounts(limit)
}

func silentAccounts(limit time.Duration) error {
	return &slurm.Error{
		Kind: slurm.Unreachable, Fix: silenceOf("sacct"),
		Msg: lang.Text{EN: "Slurm's accounting did not answer within %s", ZH: "Slurm 记账在 %s 内没有响应"}.With(limit),
	}
}
