package launch

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A dry run lists only requests that start the job sooner, and says when it would
// start.
func TestADryRunTellsTheStartAndOnlyWhatWouldBringItSooner(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.Local)
	text := func(e *EarlierOut, l lang.Lang) string {
		var b strings.Builder
		require.NoError(t, view.Text(&b, SubmitOut{Name: "gpt", DryRun: true, Earlier: e}.View(l), view.Style{}))
		return b.String()
	}
	none := &EarlierOut{AsItIs: &at}
	require.Contains(t, text(none, lang.EN), "it would start at 2026-06-11 10:00:00")
	require.Contains(t, text(none, lang.ZH), "2026-06-11 10:00:00 开始")
	require.NotContains(t, text(none, lang.EN), "sooner")
	some := &EarlierOut{AsItIs: &at, Options: []EarlierStep{{Nodes: 1, Start: at.Add(-time.Hour)}}}
	require.Contains(t, text(some, lang.EN), "2026-06-11 09:00:00: --nodes 1")
	require.NotContains(t, text(nil, lang.EN), "start")
}
