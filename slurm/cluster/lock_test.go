package cluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Only one process at a time holds the lock of a submission. The lock files are removed
// when the submission has its result.
func TestOneSubmissionAtATime(t *testing.T) {
	const token = "abcdefgh1"
	dir := filepath.Join(t.TempDir(), "locks")
	require.True(t, Abandoned(dir, token), "nobody is at work on it")
	first, err := TakeLock(t.Context(), dir, token)
	require.NoError(t, err)
	require.False(t, Abandoned(dir, token))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "nobody else can hold a submission up")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = TakeLock(ctx, dir, token)
	require.ErrorIs(t, err, slurm.ErrUnknown)
	require.ErrorContains(t, err, "the same submission is under way")
	other, err := TakeLock(t.Context(), dir, "another12")
	require.NoError(t, err)
	other.Release(true)
	first.Release(false)
	require.FileExists(t, first.File.Name())
	second, err := TakeLock(t.Context(), dir, token)
	require.NoError(t, err)
	second.Release(true)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	for _, bad := range []string{"", "short", "../../etc/x", "ABCDEFGH", "abcdefg\n"} {
		_, err := TakeLock(t.Context(), dir, bad)
		require.ErrorContains(t, err, "want 8 to 64 of a-z and 0-9", bad)
		require.False(t, Abandoned(dir, bad))
	}
	// The lock stays taken while an sbatch holds it, even where the process that
	// started the sbatch has died.
	held, err := TakeLock(t.Context(), dir, token)
	require.NoError(t, err)
	require.NoError(t, held.owner.Close())
	require.True(t, Abandoned(dir, token))
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = TakeLock(ctx, dir, token)
	require.ErrorIs(t, err, slurm.ErrUnknown)
}

func TestWhetherLimitsBind(t *testing.T) {
	for config, want := range map[string]bool{
		"AccountingStorageEnforce = none\n": false, "AccountingStorageEnforce = associations\n": false, "": false, "Other = limits\n": false,
		"AccountingStorageEnforce = associations,limits\n": true, "AccountingStorageEnforce = associations,limits,qos,safe\n": true,
		"A = b\nAccountingStorageEnforce = qos\nC = d\n": true, "AccountingStorageEnforce=safe": true,
	} {
		require.Equal(t, want, enforcesLimits(config), config)
	}
}
