package store

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The list of messages that may be sent contains no files: the sender reads each file
// when it sends it.
func TestWhatMayBeSentIsListedWithoutFiles(t *testing.T) {
	t.Parallel()
	st, err := Open(t.Context(), t.TempDir()+"/s.db")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	s := st.Slack()
	file := strings.Repeat("x", largeBody+1)
	require.NoError(t, s.Enqueue(t.Context(), SlackMessage{Key: "a", Lane: "1", Body: "small"}, SlackMessage{Key: "b", Lane: "2", Body: file}))
	due, err := s.Due(t.Context(), time.Now(), 10)
	require.NoError(t, err)
	require.Len(t, due, 2)
	require.Equal(t, "small", due[0].Body)
	require.Empty(t, due[1].Body)
	body, err := s.Body(t.Context(), due[1].ID)
	require.NoError(t, err)
	require.Equal(t, file, body)
	body, err = s.Body(t.Context(), 99)
	require.NoError(t, err)
	require.Empty(t, body)
}
