package launch

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// AlreadySubmitted reports whether in, by its idempotency key, asks for a job that is
// already submitted. Such a call starts nothing and needs no confirmation: it only
// repeats an answer that was lost.
func AlreadySubmitted(ctx context.Context, c *ops.Call, in *SubmitIn) bool {
	if in.IdempotencyKey == "" || in.Into != "" || c.Store == nil || c.Who.User == "" {
		return false
	}
	s, err := ReadSpec(c, in.SpecIn)
	if err != nil {
		return false
	}
	cl, err := c.Cluster(s.Cluster)
	if err != nil {
		return false
	}
	st, err := c.Store()
	if err != nil {
		return false
	}
	sub, err := st.Submission(ctx, c.Who.User+"/"+cl.Name()+"/"+in.IdempotencyKey)
	return err == nil && sub.State == store.Submitted
}
