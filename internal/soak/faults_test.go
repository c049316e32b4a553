package soak

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// A fault is something that fails for a while: begin starts it, end stops it.
type fault struct {
	name       string
	begin, end func(r *run) error
	kills      bool
}

func slackFault(f slacktest.Fault) func(*run) error {
	return func(r *run) error {
		for _, method := range []string{"chat.postMessage", "chat.update", "response_url"} {
			f.Method = method
			if method == "response_url" && f.Reset == "after" {
				continue // Slack shows nobody a private answer: the next fault is for it
			}
			r.slack.Fault(f)
		}
		return nil
	}
}

func slackCalm(r *run) error { r.slack.Calm(); return nil }

// faults are injected in turn.
var faults = []fault{
	{
		name:  "Slurm's controller away",
		begin: func(r *run) error { r.slurm.away.Store(true); return nil },
		end:   func(r *run) error { r.slurm.away.Store(false); return nil },
	},
	{name: "Slack answers 503 to half", begin: slackFault(slacktest.Fault{Rate: 0.5, Status: 503}), end: slackCalm},
	{name: "serve killed (kill -9)", kills: true, begin: (*run).killServe},
	{name: "PostgreSQL restarted", begin: func(r *run) error { return r.database.Restart("fast") }},
	{
		name:  "sbatch takes the job and loses the answer",
		begin: func(r *run) error { r.slurm.mute.Store(true); return nil },
		end:   func(r *run) error { r.slurm.mute.Store(false); return nil },
	},
	{name: "Slack takes a message and hangs up", begin: slackFault(slacktest.Fault{Rate: 0.5, Reset: "after"}), end: slackCalm},
	{name: "PostgreSQL crashed and started", begin: func(r *run) error { return r.database.Restart("immediate") }},
	{
		name:  "Slurm slow, 2 s a command",
		begin: func(r *run) error { r.slurm.slow.Store(int64(2 * time.Second)); return nil },
		end:   func(r *run) error { r.slurm.slow.Store(0); return nil },
	},
	{name: "Slack answers 429 to a third", begin: slackFault(slacktest.Fault{Rate: 0.3, Status: 429, RetryAfter: 2}), end: slackCalm},
	{name: "serve killed while PostgreSQL restarts", kills: true, begin: func(r *run) error {
		r.server.kill()
		if err := r.database.Restart("fast"); err != nil {
			return err
		}
		return r.server.start()
	}},
}

// killServe kills serve, and starts it again, as systemd would.
func (r *run) killServe() error {
	r.server.kill()
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
	return r.server.start()
}

// trouble injects the faults in turn until ctx ends, each for a third of a turn. During
// the measured time serve is not killed, because memory and goroutines are compared
// within one process.
func (r *run) trouble(ctx context.Context, turn time.Duration) error {
	for i := 0; ctx.Err() == nil; i++ {
		f := faults[i%len(faults)]
		pause(ctx, turn/3+rand.N(turn/6))
		if ctx.Err() != nil || f.kills && r.measured(time.Now()) {
			continue
		}
		r.alone.Lock()
		r.begins(f.name)
		err := f.begin(r)
		r.alone.Unlock()
		if err != nil {
			return err
		}
		pause(ctx, turn/3)
		if f.end != nil {
			if err := f.end(r); err != nil {
				return err
			}
		}
		r.ends()
		pause(ctx, turn/6)
	}
	return nil
}

// killing kills serve at random moments outside the measured time, in addition to the
// faults.
func (r *run) killing(ctx context.Context, every time.Duration) error {
	for ctx.Err() == nil {
		pause(ctx, every/2+rand.N(every))
		if ctx.Err() != nil || r.measured(time.Now()) {
			continue
		}
		r.alone.Lock()
		r.begins("serve killed at random")
		err := r.killServe()
		r.ends()
		r.alone.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
