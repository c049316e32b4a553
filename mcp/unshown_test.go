package mcp

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/view"
)

// Only an operation's command becomes a tool call.
func TestWhichCommandsAreCalls(t *testing.T) {
	got := hints([]string{"serve", "", "cancel '4711", "cancel --nosuch 1", "nosuch 4711", "cancel 4711 --yes", "list --all"})
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `[{"tool":"cancel","arguments":{"job":"4711"}},{"tool":"list","arguments":{"all":true}}]`, string(raw))
}

// What the rendered answer does not show is added, once, for clients that read only the
// text.
func TestWhatTheTextWouldLackIsAdded(t *testing.T) {
	doc := view.Doc{Title: "job 7"}
	type out struct {
		Job     string         `json:"job"`
		Script  string         `json:"script"`
		Derived map[string]int `json:"derived"`
		Empty   map[string]int `json:"empty"`
		hidden  string
		Inside  string `json:"-"`
	}
	said := unshown(out{Job: "job 7", Script: "#!/bin/bash\ntrue", Derived: map[string]int{"dp": 8}, Empty: map[string]int{}, hidden: "h", Inside: "i"}, doc)
	require.Equal(t, namedText("script", "#!/bin/bash\ntrue")+"derived: {\"dp\":8}\n", said)
	require.Empty(t, unshown("text", doc))
}
