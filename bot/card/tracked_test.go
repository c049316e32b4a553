package card_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A link from a log is labelled by its host.
func TestACardLeadsToTheRunsTracker(t *testing.T) {
	k := card.Card{News: card.News{Job: slurm.Job{ID: "77", Name: "gpt", User: "alice", State: slurm.Running}, Tracked: "https://wandb.ai/lab/gpt/runs/gpt-77"}}
	_, blocks := card.Draw(k, lang.EN, true)
	require.Contains(t, string(blocks), `https://wandb.ai/lab/gpt/runs/gpt-77|wandb.ai`)
	k.News.Tracked = ""
	_, blocks = card.Draw(k, lang.EN, true)
	require.NotContains(t, string(blocks), "wandb.ai")
}
