package joblogs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A silentSite is a cluster whose accounts never answer.
type silentSite struct{ *opstest.Site }

func (silentSite) Past(ctx context.Context, _ slurm.Filter) ([]slurm.Job, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A job whose state is known without the accounts is not kept waiting for them.
func TestAccountsThatDoNotAnswerAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := time.Now()
		require.Zero(t, joblogs.InAccounts(t.Context(), silentSite{&opstest.Site{}}, "7"))
		require.LessOrEqual(t, time.Since(asked), 5*time.Second)
	})
}
