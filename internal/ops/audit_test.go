package ops

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

func TestWhoMaySeeTheAuditTrail(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	for _, c := range []struct {
		who   Caller
		limit int
		code  Code
	}{
		{Caller{Surface: Shell}, 1, ""},
		{Caller{Surface: Chat}, 1, ""},
		{Caller{Surface: MCP}, 1, ""},
		{Caller{Surface: Slack}, 1, NotAllowed},
		{Caller{Surface: Web}, 1, NotAllowed},
		{Caller{Surface: MCPHTTP}, 1, NotAllowed},
		{Caller{Surface: Slack, Operator: true}, 1, ""},
		{Caller{Surface: Shell}, 0, BadInput},
	} {
		out, err := auditTrail(t.Context(), &Call{Who: c.who, Service: &Service{Store: func() (*store.Store, error) { return st, nil }}}, AuditIn{Limit: c.limit})
		if c.code != "" {
			require.Equal(t, c.code, AsError(err).Code, c.who)
			continue
		}
		require.NoError(t, err)
		require.False(t, out.Found())
		require.NotNil(t, out.Entries, "no entries are a list, not null")
	}
}

func TestAnAuditTrailSaysWhoAskedAndWhetherItWasChanged(t *testing.T) {
	t.Parallel()
	text := func(o AuditOut, l lang.Lang) string {
		var b strings.Builder
		require.NoError(t, view.Text(&b, o.View(l), view.Style{Width: 200}))
		return b.String()
	}
	sound := AuditOut{Entries: []store.Entry{
		{At: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Who: "ada", Owner: "ada", Surface: "mcp", Op: "cancel", Job: "4711", Agreed: "self", Result: "ok", Agent: "some-agent"},
		{Who: "ben", Op: "submit"},
	}}
	require.Contains(t, text(sound, lang.EN), "2026-05-04 03:02:01")
	require.Contains(t, text(sound, lang.EN), "ada, by some-agent")
	require.Contains(t, text(sound, lang.ZH), "ada，通过 some-agent")
	require.NotContains(t, text(sound, lang.EN), "ben, by")
	require.NotContains(t, text(sound, lang.EN), "the trail")
	for said, o := range map[string]AuditOut{"entry 7 does not follow": {Broken: 7}, "at the end of the trail are gone": {Cut: true}} {
		require.True(t, o.Found())
		require.Contains(t, text(o, lang.EN), said)
		require.Equal(t, view.Bad, o.View(lang.ZH).Tone)
	}
}
