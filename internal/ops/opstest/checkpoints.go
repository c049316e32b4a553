package opstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// SaveAt creates checkpoints in dir, one for each iteration in ages and of that age,
// and a tracker file that names last.
func SaveAt(t *testing.T, dir string, ages map[int]time.Duration, last string) {
	t.Helper()
	tracker := filepath.Join(dir, "latest_checkpointed_iteration.txt")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(tracker, []byte(last), 0o644))
	for n, age := range ages {
		folder := filepath.Join(dir, fmt.Sprintf("iter_%07d", n))
		require.NoError(t, os.MkdirAll(folder, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "metadata.json"), nil, 0o644))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(folder, at, at))
		if strconv.Itoa(n) == last {
			require.NoError(t, os.Chtimes(tracker, at, at))
		}
	}
}
