package cluster

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A scriptedRunner answers each command line with a text.
type scriptedRunner map[string]result

func (s scriptedRunner) run(_ context.Context, c command) (result, error) {
	r, ok := s[strings.Join(c.argv, " ")]
	if !ok {
		return result{}, &slurm.Error{Op: c.argv[0], Kind: slurm.Broken, Msg: lang.Same("not found")}
	}
	return r, nil
}

func TestQuotasAreThoseOverTheFolder(t *testing.T) {
	me := account.User{UID: 1001, GID: 100}
	local := scriptedRunner{
		"quota --no-wrap --raw-grace --show-mntpoint --quiet-refuse --user":  {stdout: " nas:/home /home 10 20 30 0 2 0 0 0\n nas:/data /data 10 0 99 0 2 0 0 0\n", code: 1},
		"quota --no-wrap --raw-grace --show-mntpoint --quiet-refuse --group": {stdout: "Disk quotas for group users (gid 100): none\n"},
	}
	got, err := quotas(t.Context(), local, nil, me, "/data/alice/ckpt", false)
	require.NoError(t, err)
	require.Equal(t, []slurm.Quota{{Of: "user", Mount: "/data", Used: 10 << 10, Limit: 99 << 10}}, got)

	got, err = quotas(t.Context(), scriptedRunner{
		"lfs quota -q -u 1001 /lustre/a": {stdout: "/lustre 10 0 99 - 2 0 0 -\n"},
		"lfs quota -q -g 100 /lustre/a":  {stdout: "/lustre 50 0 0 - 2 0 0 -\n"},
	}, nil, me, "/lustre/a", true)
	require.NoError(t, err)
	require.Len(t, got, 1, "a group without a limit has none")

	got, err = quotas(t.Context(), scriptedRunner{}, nil, me, "/data", false)
	require.NoError(t, err, "a machine without the command knows of no quota")
	require.Empty(t, got)
}
