package launch

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// AlreadySubmitted reports whether in asks, by its idempotency key, for a job that is
// submitted already. Carrying it out starts nothing more, so there is nothing
// that a person would have to confirm: a lost answer is only told again.
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
