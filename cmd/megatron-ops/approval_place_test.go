package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/config"
)

// A held call says where a person approves it; without operators it names no place.
func TestWhereAPersonApproves(t *testing.T) {
	channel, slack, page := config.Config{}, config.Config{}, config.Config{}
	channel.Slack.Approval.Channel, slack.Slack.Operators = "C1", []string{"U1"}
	page.Web.URL, page.Web.Operators = "https://ops.example.org/", []string{"bob"}
	both := page
	both.Slack = channel.Slack
	for want, cfg := range map[string]config.Config{
		"in the Slack channel C1": channel, "in Slack": slack, "on the page https://ops.example.org/web/approvals": page,
		"in the Slack channel C1 or on the page https://ops.example.org/web/approvals": both, "": {},
	} {
		require.Equal(t, want, approvalPlace(cfg).EN)
	}
	require.Equal(t, " Slack 频道 C1 或网页 https://ops.example.org/web/approvals ", approvalPlace(both).ZH)
}
