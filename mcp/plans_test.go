package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
)

// Large plans take the place of older ones before they fill the memory.
func TestPlansFillNoMemory(t *testing.T) {
	p, who := newPlans(), ops.Caller{ID: "alice", User: "alice"}
	keep := func(name string) (handle string) {
		in := &launch.PlanIn{SpecIn: launch.SpecIn{YAML: name + strings.Repeat(" ", 1<<20)}}
		res := &sdk.CallToolResult{StructuredContent: json.RawMessage(`{"ok":true}`)}
		p.keep(res, in, who)
		var said struct{ Plan string }
		require.NoError(t, json.Unmarshal(res.StructuredContent.(json.RawMessage), &said))
		return said.Plan
	}
	first := keep("first")
	require.Nil(t, p.fill(&launch.PlanIn{}, who, first))
	last := ""
	for i := range 40 {
		last = keep(strings.Repeat("x", i+1))
		require.LessOrEqual(t, p.bytes, mostPlanBytes)
	}
	require.Nil(t, p.fill(&launch.PlanIn{}, who, last))
	require.NotNil(t, p.fill(&launch.PlanIn{}, who, first), "its agent plans again")
	require.Equal(t, len(p.order["alice"]), len(p.specs))
}

// One person's agents that plan without end push out no plan of another's.
func TestAPlanIsPushedOutByItsOwnersOnly(t *testing.T) {
	p := newPlans()
	keep := func(user, yaml string) (handle string) {
		res := &sdk.CallToolResult{StructuredContent: json.RawMessage(`{"ok":true}`)}
		p.keep(res, &launch.PlanIn{SpecIn: launch.SpecIn{YAML: yaml}}, ops.Caller{ID: user, User: user})
		var said struct{ Plan string }
		require.NoError(t, json.Unmarshal(res.StructuredContent.(json.RawMessage), &said))
		return said.Plan
	}
	bobs := keep("bob", "name: gpt")
	first := keep("alice", "name: first")
	for i := range mostPlans {
		keep("alice", strings.Repeat("x", i+1))
	}
	alice, bob := ops.Caller{ID: "alice", User: "alice"}, ops.Caller{ID: "bob", User: "bob"}
	require.NotNil(t, p.fill(&launch.PlanIn{}, alice, first))
	require.Nil(t, p.fill(&launch.PlanIn{}, bob, bobs), "after many plans")
	for i := range 40 {
		keep("alice", strings.Repeat("y", i+1<<20))
	}
	require.Nil(t, p.fill(&launch.PlanIn{}, bob, bobs), "after large plans")
	for i := range 40 { // of other people, of whom none has many
		keep("u"+strings.Repeat("u", i), strings.Repeat("y", 1<<20))
		require.LessOrEqual(t, p.bytes, mostPlanBytes)
	}
	require.Len(t, p.size, len(p.order))
}
