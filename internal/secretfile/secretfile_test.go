package secretfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/secretfile"
)

func TestAFileThatOthersMayReadIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	_, err := secretfile.Read(file)
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.WriteFile(file, []byte("  hush\n"), 0o600))
	got, err := secretfile.Read(file)
	require.NoError(t, err)
	require.Equal(t, "hush", got, "without the blanks around it")

	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o601} {
		require.NoError(t, os.Chmod(file, mode))
		got, err := secretfile.Read(file)
		require.ErrorContains(t, err, "chmod 600", "%o", mode)
		require.Empty(t, got)
	}
}
