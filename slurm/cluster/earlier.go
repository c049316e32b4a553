package cluster

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A tester makes test submissions.
type tester interface {
	Test(ctx context.Context, s slurm.Submission) (slurm.Estimate, error)
}

// A Variant is a submission that asks for less, with its estimated start.
type Variant struct {
	Nodes    int           // 0: as submitted
	Time     time.Duration // 0: as submitted
	Estimate slurm.Estimate
}

// Earlier makes test submissions of s as it is, with half and a quarter of its time,
// and with half and a quarter of its nodes. It returns the estimate for s itself and
// the variants that would start at least a minute sooner; where s itself has no
// estimate, every variant with one. It queues nothing and makes at most five requests.
func Earlier(ctx context.Context, c tester, s slurm.Submission) (asGiven slurm.Estimate, sooner []Variant, err error) {
	if asGiven, err = c.Test(ctx, s); err != nil {
		return asGiven, nil, err
	}
	options, err := slurm.ReadDirectives(s.Script)
	if err != nil {
		return asGiven, nil, err
	}
	args, err := slurm.ReadOptions(s.Args)
	if err != nil {
		return asGiven, nil, err
	}
	options = append(options, args...)
	var tries []Variant
	if d, ok := slurm.ParseDuration(options.Value("time")); ok && d >= 4*time.Minute {
		tries = append(tries, Variant{Time: d / 2}, Variant{Time: d / 4})
	}
	var nodes int
	if _, err := fmt.Sscanf(options.Value("nodes"), "%d", &nodes); err == nil {
		for _, n := range []int{nodes / 2, nodes / 4} {
			if n > 0 {
				tries = append(tries, Variant{Nodes: n})
			}
		}
	}
	for _, v := range tries {
		less := s
		less.Args = append([]string{}, s.Args...)
		if v.Nodes > 0 {
			less.Args = append(less.Args, fmt.Sprintf("--nodes=%d", v.Nodes))
		} else {
			less.Args = append(less.Args, fmt.Sprintf("--time=%d", int(math.Ceil(v.Time.Minutes()))))
		}
		var refused error
		if v.Estimate, refused = c.Test(ctx, less); refused != nil {
			if ctx.Err() != nil {
				return asGiven, sooner, ctx.Err()
			}
			continue // for example where the partition wants more nodes
		}
		if at := v.Estimate.Start; !at.IsZero() && (asGiven.Start.IsZero() || asGiven.Start.Sub(at) >= time.Minute) {
			sooner = append(sooner, v)
		}
	}
	return asGiven, sooner, nil
}
