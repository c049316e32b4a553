package cluster

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// accountsPatience bounds a question to the accounts whose caller can do without the answer.
// For accountsPause after such a question had no answer, the next ones are not asked: the rest
// of a command does not wait again.
const (
	accountsPatience = 5 * time.Second
	accountsPause    = 10 * time.Second
)

// errSilentAccounts is the error of such a question.
var errSilentAccounts = &slurm.Error{
	Kind: slurm.Unreachable, Fix: silenceOf("sacct"),
	Msg: lang.Text{EN: "Slurm's accounting did not answer within %s", ZH: "Slurm 记账在 %s 内没有响应"}.With(accountsPatience),
}

// soon asks the accounts a question whose caller can do without the answer.
func (m *Meter) soon(ctx context.Context, ask func(context.Context) ([]slurm.Job, error)) ([]slurm.Job, error) {
	m.mu.Lock()
	silent := time.Since(m.silent) < accountsPause
	m.mu.Unlock()
	if silent {
		return nil, errSilentAccounts
	}
	brief, cancel := context.WithTimeout(ctx, accountsPatience)
	defer cancel()
	jobs, err := ask(brief)
	if err == nil || brief.Err() == nil || ctx.Err() != nil {
		return jobs, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.silent = time.Now()
	return jobs, errSilentAccounts
}
