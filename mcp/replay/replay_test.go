package replay

import (
	"encoding/json"
	"strings"
	"testing"

	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// A client that reconnects gets what it missed on its stream, as far as it is kept, and
// an error for what is not.
func TestWhatIsKeptForAClientThatComesBack(t *testing.T) {
	e := New()
	store := func(session, stream, message string) string {
		id, err := e.StoreEvent(t.Context(), session, stream, json.RawMessage(message))
		require.NoError(t, err)
		return id
	}
	missed := func(session, after string) (ids []string, err error) {
		_, err = e.ReplayEventsAfter(t.Context(), session, after, func(id string, _ json.RawMessage) error {
			ids = append(ids, id)
			return nil
		})
		return ids, err
	}
	first, other := store("s", "a", "1"), store("s", "b", "2")
	second := store("s", "a", "3")
	ids, err := missed("s", first)
	require.NoError(t, err)
	require.Equal(t, []string{second}, ids, "of its own stream")
	_, err = missed("stranger", first)
	require.ErrorIs(t, err, sdkserver.ErrUnknownEventID)

	for range keptEvents - 2 {
		store("s", "a", "4")
	}
	_, err = missed("s", first)
	require.ErrorIs(t, err, sdkserver.ErrUnknownEventID, "so many later it is forgotten")
	ids, err = missed("s", other)
	require.NoError(t, err, "the oldest that is kept")
	require.Empty(t, ids)
	ids, err = missed("s", second)
	require.NoError(t, err)
	require.Len(t, ids, keptEvents-2)

	long := strings.Repeat("x", keptBytes*2/3)
	before := store("s", "a", "5")
	one := store("s", "a", long)
	_, err = missed("s", before)
	require.NoError(t, err)
	two := store("s", "a", long)
	for _, id := range []string{before, one} {
		_, err = missed("s", id)
		require.ErrorIs(t, err, sdkserver.ErrUnknownEventID)
	}
	_, err = missed("s", two)
	require.NoError(t, err, "the newest is kept, however long")
	require.NoError(t, e.PurgeSession(t.Context(), "s"))
	_, err = missed("s", two)
	require.Error(t, err)
}
