package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	slackwords "github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/mcp"
)

// Every operation is reachable in the shell, in Slack and by an agent, under
// the same name.
func TestEverySurfaceHasEveryOperation(t *testing.T) {
	srv, err := mcp.NewServer(mcp.Config{Toolsets: []string{"all"}})
	require.NoError(t, err)
	tools := map[string]bool{}
	for _, tool := range srv.Tools() {
		tools[tool.Name] = true
	}
	for _, op := range operations.All() {
		var out, errs strings.Builder
		code := run(context.Background(), []string{"help", op.Name}, streams{in: strings.NewReader(""), out: &out, err: &errs})
		require.Zero(t, code, "the shell has no %s: %s", op.Name, errs.String())
		require.Contains(t, out.String(), "megatron-ops "+op.Name)

		name, ok := slackwords.Resolve(op.Name)
		require.True(t, ok && name == op.Name, "Slack has no /megatron %s", op.Name)

		require.True(t, tools[op.Name], "agents have no tool %s", op.Name)
	}
}
