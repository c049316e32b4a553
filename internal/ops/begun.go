package ops

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A server that is stopped after a change and before it has stored the answer makes the call again.
// Submissions have their own records, and most other changes set a value, which may be set twice. What
// must not be done twice is recorded before it is done.

const docBegun = "begun" // a Call's Key → what the call was about to change, as it was then

// begunKept is how long a begun call is remembered, for a server that was off meanwhile.
const begunKept = 60 * 24 * time.Hour

// Begin records what the call is about to change, as it is now. Where an earlier attempt of the call has
// recorded it, again is true and first is what it was then.
func (c *Call) Begin(ctx context.Context, now, first any) (again bool, err error) {
	if c.Key == "" {
		return false, nil
	}
	docs := c.Docs()
	if fresh, err := docs.Add(ctx, docBegun, c.Key, now, c.Now(), c.Now().Add(begunKept)); err != nil || fresh {
		return false, err
	}
	return docs.Get(ctx, docBegun, c.Key, c.Now(), first)
}

// BeginOn begins a change of j, and reports whether an earlier attempt of the call has made it. made says
// that of the job as it was then; it is nil for a change that the job does not show. Where the change may
// have been made, the error asks the person.
func (c *Call) BeginOn(ctx context.Context, j slurm.Job, made func(was slurm.Job) bool) (already bool, err error) {
	var was slurm.Job
	again, err := c.Begin(ctx, j, &was)
	switch {
	case err != nil || !again:
		return false, err
	case made != nil && made(was):
		return true, nil
	case made != nil && sameRun(was, j):
		return false, nil
	}
	return false, &Error{
		Code: Failed, Field: "job", Confirm: true,
		Message: lang.Text{
			EN: "the server was stopped during this call: it may have been carried out on job %s already, and was not repeated",
			ZH: "服务器在执行这次调用时停止：作业 %s 上可能已经执行过，没有重复执行",
		}.With(j.ID),
		Fix: lang.Text{EN: "see `megatron-ops status %s`; a yes carries it out once more", ZH: "请先查看 `megatron-ops status %s`；确认后会再执行一次"}.With(j.ID),
	}
}

// MayBeDone reports whether what e asks to confirm may have been done already.
func (e *Error) MayBeDone() bool { return e.Confirm && e.Code == Failed }

// sameRun reports whether now is the run of the job that was is, in any state before or after its end.
func sameRun(was, now slurm.Job) bool {
	same := was.StartedAt == nil && now.StartedAt == nil || was.StartedAt != nil && now.StartedAt != nil && was.StartedAt.Equal(*now.StartedAt)
	return same && was.Restarts == now.Restarts && was.State.Ended() == now.State.Ended()
}
